"""How the processor's time of a call grows with what it is given."""

import time


def seconds(call, *given, times=1):
    """The processor's time of the quickest of several calls: what else runs makes the same work cost more of it."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        call(*given)
        taken.append(time.process_time() - began)
    return min(taken)


def assert_grows_with_length(call, make, size, *, most=2.6):
    """Twice as much takes at most `most` times as long, in one of several measurements, each with more calls."""
    call(make(size // 8))  # loads what it needs
    # What is measured once, or quickly, may be unlucky; what takes long is measured on a shorter text first.
    for times, length in ((1, size // 4), (1, size), (3, size), (5, 4 * size)):
        once, twice = (seconds(call, make(longer), times=times) for longer in (length, 2 * length))
        # Under a millisecond the clock says nothing, and a text that long is no burden.
        if (once < 0.001 and length >= size) or (once >= 0.001 and twice <= most * once):
            return
    raise AssertionError(f"{once:.4f} s became {twice:.4f} s, {twice / once:.1f} times as long")
