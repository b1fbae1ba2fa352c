"""
Plots as inline SVG: no script, no font and no file from elsewhere, so a report can be read anywhere and for ever.

Colours come from the page's own CSS classes and follow its light or dark theme. Every text is escaped.
"""

from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from shiguan.evaluation.intervals import Estimate

_WIDTH = 720  # of the drawing, in its own units; the page scales it
_LABEL = 170
_SPAN = _WIDTH - _LABEL - 150
_ROW = 30
_QUARTERS = (0, 0.25, 0.5, 0.75, 1)


def interval_bars(estimates: Mapping[str, Estimate]) -> Markup:
    """Draw shares, by label, as bars with their intervals."""
    height = _ROW * len(estimates) + 26
    parts = [
        Markup(
            '<path class="grid" d="M{0:.1f} 0V{1}"/>'
            '<text class="tick" x="{0:.1f}" y="{2}" text-anchor="middle">{3}</text>'
        ).format(_LABEL + _SPAN * x, height - 20, height - 6, f"{x:g}")
        for x in _QUARTERS
    ]
    for row, (label, estimate) in enumerate(estimates.items()):
        middle = _ROW * row + _ROW / 2
        low, value, high = (min(1.0, max(0.0, x)) for x in (estimate.low, estimate.value, estimate.high))
        parts.append(
            _bar(middle, value)
            + Markup('<path class="whisker" d="M{0:.1f} {2}V{4}M{0:.1f} {3}H{1:.1f}M{1:.1f} {2}V{4}"/>').format(
                _LABEL + _SPAN * low, _LABEL + _SPAN * high, middle - 5, middle, middle + 5
            )
            + _words(middle, label, f"{estimate.value:.3f}", f"[{estimate.low:.3f}, {estimate.high:.3f}]")
        )
    return _svg(height, parts, "Shares with their 95 % intervals")


def amount_bars(amounts: Mapping[str, tuple[float, float]], unit: str) -> Markup:
    """Draw usual amounts, by label, as bars with a thin bar behind each: the amount that one in twenty exceeds."""
    most = max((high for _, high in amounts.values()), default=0) or 1
    parts = []
    for row, (label, (usual, high)) in enumerate(amounts.items()):
        middle = _ROW * row + _ROW / 2
        parts.append(
            Markup('<rect class="faint" x="{}" y="{}" width="{:.1f}" height="6" rx="3"/>').format(
                _LABEL, middle - 3, max(0.5, _SPAN * high / most)
            )
            + _bar(middle, usual / most)
            + _words(middle, label, f"{usual:,.1f}", f"p95 {high:,.1f} {unit}")
        )
    return _svg(_ROW * len(amounts) + 6, parts, f"Usual amounts and those that one in twenty exceeds, in {unit}")


def line(
    points: Sequence[tuple[float, float]],
    *,
    x_label: str,
    y_label: str,
    ticks: Sequence[float] = _QUARTERS,
    band: Sequence[tuple[float, float, float]] = (),
) -> Markup:
    """Draw a curve, y from 0 to 1, with x, low and high of an interval behind it."""
    left, top, right, bottom = 60, 14, _WIDTH - 30, 262
    begin, end = ticks[0], ticks[-1]

    def across(x: float) -> float:
        return left + (right - left) * (x - begin) / ((end - begin) or 1)

    def up(y: float) -> float:
        return bottom - (bottom - top) * min(1.0, max(0.0, y))

    parts = [
        Markup(
            '<path class="grid" d="M{0} {1:.1f}H{2}"/>'
            '<text class="tick" x="{3}" y="{4:.1f}" text-anchor="end">{5}</text>'
        ).format(left, up(y), right, left - 8, up(y) + 4, f"{y:g}")
        for y in _QUARTERS
    ]
    parts += [
        Markup('<text class="tick" x="{0:.1f}" y="{1}" text-anchor="middle">{2}</text>').format(
            across(x), bottom + 18, f"{x:g}"
        )
        for x in ticks
    ]
    parts.append(
        Markup(
            '<text class="tick" x="{0}" y="{1}" text-anchor="middle">{2}</text>'
            '<text class="tick" x="14" y="{3}" text-anchor="middle" transform="rotate(-90 14 {3})">{4}</text>'
        ).format((left + right) / 2, bottom + 38, x_label, (top + bottom) / 2, y_label)
    )
    if band:
        outline = [(x, high) for x, _, high in band] + [(x, low) for x, low, _ in reversed(band)]
        parts.append(Markup('<polygon class="band" points="{0}"/>').format(_points(outline, across, up)))
    parts.append(Markup('<polyline class="line" points="{0}"/>').format(_points(points, across, up)))
    if len(points) <= 25:
        parts += [
            Markup('<circle class="dot" cx="{0:.1f}" cy="{1:.1f}" r="3.5"/>').format(across(x), up(y))
            for x, y in points
        ]
    return _svg(bottom + 46, parts, f"{y_label} over {x_label}")


def _bar(middle: float, share: float) -> Markup:
    return Markup('<rect class="bar" x="{}" y="{}" width="{:.1f}" height="14" rx="3"/>').format(
        _LABEL, middle - 7, max(0.5, _SPAN * share)
    )


def _words(middle: float, label: str, value: str, note: str) -> Markup:
    return Markup(
        '<text class="label" x="{}" y="{}" text-anchor="end">{}</text>'
        '<text class="value" x="{}" y="{}">{} <tspan class="muted">{}</tspan></text>'
    ).format(_LABEL - 12, middle + 4, label, _LABEL + _SPAN + 10, middle + 4, value, note)


def _points(
    points: Sequence[tuple[float, float]], across: Callable[[float], float], up: Callable[[float], float]
) -> str:
    return " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)


def _svg(height: float, parts: Sequence[Markup], title: str) -> Markup:
    return Markup('<svg viewBox="0 0 {0} {1:.0f}" role="img" aria-label="{2}">{3}</svg>').format(
        _WIDTH, height, title, Markup("").join(parts)
    )
