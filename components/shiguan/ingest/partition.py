"""Cut a row of pieces into passages of the right size, at the best places: one optimal partition in linear time."""

from collections import deque
from collections.abc import Sequence

# Costs, in units in which one whole width of the wanted range away from the target costs 1.
OUT_OF_RANGE = 20.0
"""What a passage below the range costs at least, and once more in proportion to what it lacks."""


def partition(sizes: Sequence[int], cuts: Sequence[float], *, low: int, high: int, target: int) -> list[int]:
    """
    Group neighbouring pieces so that the groups' sizes lie in a range and the cuts fall at the best boundaries.

    Minimises the sum, over all groups, of the distance of its size from `target` (in widths of the range), of
    `OUT_OF_RANGE` and more where it is smaller than `low`, and of the cost of the cut after it. No group is larger
    than `high` unless it is a single piece. Each part of that penalty is linear in the size, so the best start of a
    group is the minimum over a sliding window, and the whole takes linear time whatever the sizes.
    """
    count = len(sizes)
    total = [0] * (count + 1)
    for index, size in enumerate(sizes):
        total[index + 1] = total[index] + size
    width = max(high - low, 1)
    # A group of size s in a window costs offset + slope * s.
    windows = [
        _Window(0, low - 1, 2 * OUT_OF_RANGE, -OUT_OF_RANGE / max(low, 1), total),
        _Window(low, target, target / width, -1 / width, total),
        _Window(target + 1, high, -target / width, 1 / width, total),
    ]
    best = [0.0] * (count + 1)
    origin = [0] * (count + 1)
    for end in range(1, count + 1):
        # An oversized piece stands alone.
        cost, start = (best[end - 1] + 2 * OUT_OF_RANGE, end - 1) if sizes[end - 1] > high else (float("inf"), -1)
        for window in windows:
            candidate, index = window.best_start(end, best)
            if candidate < cost:
                cost, start = candidate, index
        best[end] = cost + (cuts[end - 1] if end < count else 0.0)
        origin[end] = start
    ends = []
    at = count
    while at:
        ends.append(at)
        at = origin[at]
    return ends[::-1]


class _Window:
    """The best start of a group whose size lies in one part of the range, as the end moves to the right."""

    def __init__(self, smallest: int, largest: int, offset: float, slope: float, total: list[int]) -> None:
        self._smallest, self._largest = smallest, largest
        self._offset, self._slope = offset, slope
        self._total = total
        self._next = 0
        self._queue: deque[tuple[float, int]] = deque()

    def best_start(self, end: int, best: list[float]) -> tuple[float, int]:
        total, queue = self._total, self._queue
        here = total[end]
        while self._next < end and here - total[self._next] >= self._smallest:
            start = self._next
            value = best[start] - self._slope * total[start]
            while queue and queue[-1][0] >= value:
                queue.pop()
            queue.append((value, start))
            self._next += 1
        while queue and here - total[queue[0][1]] > self._largest:
            queue.popleft()
        if not queue:
            return float("inf"), -1
        value, start = queue[0]
        return value + self._offset + self._slope * here, start
