"""Plots as inline SVG: small enough for a phone, without a script, in the colours of the page."""

from collections.abc import Sequence
from math import log10

from msgspec import Struct

from wave_agent.replay.html import plain

_WIDE, _HIGH = 400, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 8, 12, 22
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


class Bar(Struct, frozen=True):
    """One value of a plot over time."""

    label: str
    value: float
    hint: str
    """Shown when a pointer rests on it."""
    part: float = 0.0
    """The part of the value to mark."""


def over_time(title: str, bars: Sequence[Bar], *, unit: str = "") -> str:
    """Bars from left to right, in order of time."""
    top = _round_up(max((bar.value for bar in bars), default=0))
    inner, tall = _WIDE - _LEFT - _RIGHT, _HIGH - _TOP - _BOTTOM
    step = inner / max(len(bars), 1)
    parts = [f'<svg class="plot" viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{plain(title)}">']
    for share in (0.0, 0.5, 1.0):
        y = _TOP + tall * (1 - share)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDE - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="axis" x="{_LEFT - 4}" y="{y + 4:.1f}">{_number(top * share)}{unit}</text>')
    for at, bar in enumerate(bars):
        x, width = _LEFT + at * step, max(step * 0.8, 0.5)
        for kind, value in (("value", bar.value), ("part", bar.part)):
            if value > 0:
                height = tall * value / top
                y = _TOP + tall - height
                parts.append(
                    f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
                    f"<title>{plain(bar.hint)}</title></rect>"
                )
    for at, anchor in _labelled(len(bars)):
        x = _LEFT + at * step + step / 2
        parts.append(f'<text class="time {anchor}" x="{x:.1f}" y="{_HIGH - 6}">{plain(bars[at].label)}</text>')
    return "".join([*parts, "</svg>"])


def span(low: float, high: float, longest: float) -> str:
    """A line from `low` to `high` on a logarithmic scale from 1 to `longest`."""
    left, right = _place(low, longest), _place(high, longest)
    return (
        f'<svg class="span" viewBox="0 0 {_WIDE} 16" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="lane" width="{_WIDE}" height="16"/>'
        f'<rect class="part" x="{left:.1f}" y="6" width="{max(right - left, 2):.1f}" height="4"/>'
        f'<rect class="value" x="{max(left - 2, 0):.1f}" y="2" width="4" height="12"/>'
        f'<rect class="part" x="{max(right - 2, 0):.1f}" y="2" width="4" height="12"/></svg>'
    )


def share(value: float, whole: float) -> str:
    """A bar as long as its share."""
    width = _WIDE * value / whole if whole else 0
    return (
        f'<svg class="span" viewBox="0 0 {_WIDE} 16" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="lane" width="{_WIDE}" height="16"/>'
        f'<rect class="value" y="2" width="{width:.1f}" height="12"/></svg>'
    )


def _place(value: float, longest: float) -> float:
    return _WIDE * log10(max(value, 1)) / max(log10(max(longest, 1)), 1e-9) if longest > 1 else 0.0


def _round_up(value: float) -> float:
    """The next number that looks well at an axis."""
    if value <= 0:
        return 1.0
    power = 10.0 ** int(log10(value) // 1)
    return next(step * power for step in _STEPS if step * power >= value * 0.999999)


def _number(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _labelled(count: int) -> list[tuple[int, str]]:
    """Which bars have a label, and how it is aligned."""
    if count < 3:
        return [(at, "middle") for at in range(count)]
    return [(0, "start"), (count // 2, "middle"), (count - 1, "end")]
