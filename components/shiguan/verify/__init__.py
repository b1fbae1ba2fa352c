"""Checks any text against the library: its quotations word for word, its other sentences as claims."""
