"""Work counted in steps of Python, which are the same on every machine, and the threads that it is done in."""

import sys


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
