"""Queries to children, children to parents worth reading."""
