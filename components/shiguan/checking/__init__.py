"""
Decides whether a pipeline file may be built, by reading it: nothing that a file names is imported here.

`reading` turns a file into data, `definition` into components and connections, the other files hold the rules, and
`pipeline_check` runs them all. `load_pipeline` and `shiguan check` ask the same question and get the same answer.
"""
