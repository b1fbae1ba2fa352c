"""Faults of one line, and the tests that catch them."""
