"""
Checks whether a pipeline file may be built and run: first its text, then the graph that Haystack builds from it.

`reading` turns a file into data, `definition` into components, `building` into Haystack's graph; the others hold the
rules, and `pipeline_check` applies them all, for `load_pipeline` and `shiguan check` alike.
"""
