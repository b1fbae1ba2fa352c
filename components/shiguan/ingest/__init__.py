"""Files to sources, sources to parents and children."""
