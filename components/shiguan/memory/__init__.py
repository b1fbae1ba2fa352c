"""Reads conversations: what of them still matters for a question."""
