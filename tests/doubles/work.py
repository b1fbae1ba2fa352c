"""Work counted in steps of Python, which are the same on every machine, and the threads that it is done in."""

import sys
import threading


def work(call):
    """How often Python calls a function or passes a line meanwhile."""
    count = 0

    def step(*_):
        nonlocal count
        count += 1
        return step

    sys.settrace(step)
    try:
        call()
    finally:
        sys.settrace(None)
    return count


def calls_with_threads(monkeypatch, owner, *names):
    """Note from now on each call of these methods: its name, and the thread that it is done in."""
    seen = []
    for name in names:
        method = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a, n=name, m=method: seen.append((n, threading.get_ident())) or m(*a))
    return seen
