"""A text read once: what is worked out of it is kept with it, and a text is found again by its string."""
