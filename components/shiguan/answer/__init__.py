"""Context to a cited answer."""
