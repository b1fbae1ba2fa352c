"""Question to better questions, vectors, route and goal."""
