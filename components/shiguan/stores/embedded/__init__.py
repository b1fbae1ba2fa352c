"""Qdrant Edge behind Haystack's protocols: words, vectors and passages in one folder, in process."""
