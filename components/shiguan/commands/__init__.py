"""The commands of `shiguan`, a file a subject; `arguments.py` says what each takes and which function runs it."""
