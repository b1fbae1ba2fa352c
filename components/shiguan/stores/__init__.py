"""The embedded document store and its retrievers."""
