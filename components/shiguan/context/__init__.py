"""Parents to one bounded, numbered context."""
