"""Checks whether a pipeline file may be built and run: first its text, then the graph that Haystack builds from it."""
