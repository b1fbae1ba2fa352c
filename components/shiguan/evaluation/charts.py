"""
Plots as inline SVG: no script, no font and no file from elsewhere, so a report can be read anywhere and for ever.

Colours come from the page's own CSS classes and follow its light or dark theme. Every text is escaped.
"""

from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from shiguan.evaluation.intervals import Estimate

WIDTH = 720
"""Of the drawing, in its own units; the page scales it."""

_LABEL = 170
_VALUE = 150
_ROW = 30
_SERIES = 5


def interval_bars(estimates: Mapping[str, Estimate]) -> Markup:
    """Draw shares as bars with their intervals."""
    span = WIDTH - _LABEL - _VALUE
    height = _ROW * len(estimates) + 26
    parts = [_grid(span, height)]
    for row, (label, estimate) in enumerate(estimates.items()):
        middle = _ROW * row + _ROW / 2
        low, value, high = (
            _LABEL + span * min(1.0, max(0.0, x)) for x in (estimate.low, estimate.value, estimate.high)
        )
        parts.append(
            Markup(
                '<text class="label" x="{x}" y="{y}" text-anchor="end">{label}</text>'
                '<rect class="bar" x="{left}" y="{top}" width="{width:.1f}" height="14" rx="3"/>'
                '<path class="whisker" d="M{low:.1f} {y0}V{y1}M{low:.1f} {m}H{high:.1f}M{high:.1f} {y0}V{y1}"/>'
                '<text class="value" x="{right}" y="{y}">{value} <tspan class="muted">[{from_}, {to}]</tspan></text>'
            ).format(
                x=_LABEL - 12,
                y=middle + 4,
                label=label,
                left=_LABEL,
                top=middle - 7,
                width=max(0.5, value - _LABEL),
                low=low,
                high=high,
                m=middle,
                y0=middle - 5,
                y1=middle + 5,
                right=_LABEL + span + 10,
                value=f"{estimate.value:.3f}",
                from_=f"{estimate.low:.3f}",
                to=f"{estimate.high:.3f}",
            )
        )
    return _svg(height, parts, "Shares with their 95 % intervals")


def amount_bars(amounts: Mapping[str, tuple[float, float]], unit: str) -> Markup:
    """Draw amounts as bars with a thin bar behind each."""
    span = WIDTH - _LABEL - _VALUE
    most = max((high for _, high in amounts.values()), default=0) or 1
    height = _ROW * len(amounts) + 6
    parts = []
    for row, (label, (usual, high)) in enumerate(amounts.items()):
        middle = _ROW * row + _ROW / 2
        parts.append(
            Markup(
                '<text class="label" x="{x}" y="{y}" text-anchor="end">{label}</text>'
                '<rect class="faint" x="{left}" y="{thin}" width="{high:.1f}" height="6" rx="3"/>'
                '<rect class="bar" x="{left}" y="{top}" width="{usual:.1f}" height="14" rx="3"/>'
                '<text class="value" x="{right}" y="{y}">{value} <tspan class="muted">p95 {p95} {unit}</tspan></text>'
            ).format(
                x=_LABEL - 12,
                y=middle + 4,
                label=label,
                left=_LABEL,
                thin=middle - 3,
                top=middle - 7,
                usual=max(0.5, span * usual / most),
                high=max(0.5, span * high / most),
                right=_LABEL + span + 10,
                value=f"{usual:,.1f}",
                p95=f"{high:,.1f}",
                unit=unit,
            )
        )
    return _svg(height, parts, f"Usual amounts and those that one in twenty exceeds, in {unit}")


def lines(
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x_label: str,
    y_label: str,
    ticks: Sequence[float] = (0, 0.25, 0.5, 0.75, 1),
    band: Sequence[tuple[float, float, float]] = (),
) -> Markup:
    """Draw curves over a common axis."""
    left, top, right, bottom = 60, 14, WIDTH - 30, 262
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
        for y in (0, 0.25, 0.5, 0.75, 1)
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
    for number, (label, points) in enumerate(series.items()):
        style = f"s{number % _SERIES}"
        parts.append(Markup('<polyline class="line {0}" points="{1}"/>').format(style, _points(points, across, up)))
        if len(points) <= 25:
            parts += [
                Markup('<circle class="dot {0}" cx="{1:.1f}" cy="{2:.1f}" r="3.5"/>').format(style, across(x), up(y))
                for x, y in points
            ]
        if len(series) > 1:
            parts.append(
                Markup(
                    '<rect class="key {0}" x="{1}" y="{2}" width="12" height="12" rx="2"/>'
                    '<text class="label" x="{3}" y="{4}">{5}</text>'
                ).format(style, left + 14, top + 8 + 20 * number, left + 32, top + 18 + 20 * number, label)
            )
    return _svg(bottom + 46, parts, f"{y_label} over {x_label}")


def _points(
    points: Sequence[tuple[float, float]], across: Callable[[float], float], up: Callable[[float], float]
) -> str:
    return " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)


def _grid(span: int, height: int) -> Markup:
    return Markup("").join(
        Markup(
            '<path class="grid" d="M{0:.1f} 0V{1}"/>'
            '<text class="tick" x="{0:.1f}" y="{2}" text-anchor="middle">{3}</text>'
        ).format(_LABEL + span * x, height - 20, height - 6, f"{x:g}")
        for x in (0, 0.25, 0.5, 0.75, 1)
    )


def _svg(height: float, parts: Sequence[Markup], title: str) -> Markup:
    return Markup('<svg viewBox="0 0 {0} {1:.0f}" role="img" aria-label="{2}">{3}</svg>').format(
        WIDTH, height, title, Markup("").join(parts)
    )
