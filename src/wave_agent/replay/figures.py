"""Statistics about what hooks cost and did, across many sessions."""

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from wave_agent.replay.timeline import Span, Timeline

SLOW_MS = 500.0
"""A hook with a higher p95 is slow."""
SLOW_SHARE = 0.2
"""A hook that takes a larger share of the time of its turns is slow too."""

_BLOCKING = frozenset({"deny", "block", "stop"})


def percentile(values: Sequence[float], part: float) -> float:
    """The nearest-rank percentile: always a measured value, never interpolated."""
    ordered = sorted(values)
    return ordered[max(0, ceil(part * len(ordered)) - 1)] if ordered else 0.0


class HookFigures(Struct, frozen=True, kw_only=True):
    """One hook on one event."""

    event: str
    name: str
    layer: str
    runs: int
    blocks: int
    failures: int
    let_through: int
    """Failures that were let through."""
    p50_ms: float
    p95_ms: float
    max_ms: float
    share: float
    """Share of the time of the turns it ran in. Parallel hooks each count in full; an async hook counts as 0."""
    tokens: int = 0
    """Tokens of its requests to a model."""
    marks: tuple[str, ...]
    """`slow`, `flaky`, `failing`"""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def figures(timelines: Iterable[Timeline]) -> list[HookFigures]:
    """Statistics per hook and event, most expensive first."""
    runs: dict[tuple[str, str, str], list[Span]] = {}
    times: dict[tuple[str, str, str], float] = {}
    for one in timelines:
        turns = {turn.number: turn.end - turn.start for turn in one.turns}
        seen: set[tuple[tuple[str, str, str], int]] = set()
        for span in one.spans:
            if span.run is None:
                continue
            key = (span.run.event, span.run.name, span.run.layer)
            runs.setdefault(key, []).append(span)
            if (key, span.turn) not in seen:
                seen.add((key, span.turn))
                times[key] = times.get(key, 0.0) + turns.get(span.turn, 0.0)
    found = [_figures(key, own, times[key]) for key, own in runs.items()]
    return sorted(found, key=lambda row: (-row.share, -row.p95_ms, row.name, row.event))


def _figures(key: tuple[str, str, str], spans: Sequence[Span], turn_seconds: float) -> HookFigures:
    journal = [span.run for span in spans if span.run is not None]
    durations = [run.duration_ms for run in journal]
    waited = sum(run.duration_ms for run in journal if not run.is_async)
    share = min(1.0, waited / 1000 / turn_seconds) if turn_seconds > 0 else 0.0
    failures = sum(run.outcome == "failure" or run.failure is not None for run in journal)
    p95 = percentile(durations, 0.95)
    held_up = waited > 0
    slow = held_up and (p95 > SLOW_MS or share > SLOW_SHARE)
    event, name, layer = key
    return HookFigures(
        event=event,
        name=name,
        layer=layer,
        runs=len(journal),
        blocks=sum(run.outcome in _BLOCKING for run in journal),
        failures=failures,
        let_through=sum(run.let_through for run in journal),
        p50_ms=percentile(durations, 0.5),
        p95_ms=p95,
        max_ms=max(durations),
        share=round(share, 4),
        tokens=sum(run.tokens for run in journal),
        marks=tuple(
            mark
            for mark, holds in (
                ("slow", slow),
                ("flaky", 0 < failures < len(journal)),
                ("failing", failures == len(journal)),
            )
            if holds
        ),
    )
