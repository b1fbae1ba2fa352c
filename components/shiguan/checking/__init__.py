"""
Decides whether a pipeline file may be built and run: by its text first, then by the graph that Haystack makes of it.

`reading` turns a file into data and `definition` into components; the others hold the rules, `building` what Haystack
says, and `pipeline_check` runs them all. `load_pipeline` and `shiguan check` ask the same function.
"""
