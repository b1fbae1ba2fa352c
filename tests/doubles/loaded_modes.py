"""Importing this loads every mode once: what their classes import, the patterns and files that they read."""

from shiguan.engine.loading import list_modes, load_pipeline

for _mode in list_modes()["embedded"]:
    load_pipeline("embedded", _mode)
