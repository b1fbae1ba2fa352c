"""
The rules that a pipeline file must keep, a file each.

Each check takes the definition and yields findings. `structure` runs first and alone: the others rely on it.
"""
