"""Finds children for queries, and the parents worth reading."""
