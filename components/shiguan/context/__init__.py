"""Turns parents into one bounded, numbered context."""
