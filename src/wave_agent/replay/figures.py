"""Statistics about what hooks cost and did, across many sessions."""

from array import array
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from wave_agent.events import HookRun
from wave_agent.replay.timeline import Timeline

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
    """Statistics per hook and event, most expensive first. Of each run, only its duration is kept."""
    tallies: dict[tuple[str, str, str], _RunTally] = {}
    for one in timelines:
        turns = {turn.number: turn.end - turn.start for turn in one.turns}
        seen: set[tuple[tuple[str, str, str], int]] = set()
        for span in one.spans:
            if span.run is None:
                continue
            key = (span.run.event, span.run.name, span.run.layer)
            tally = tallies.setdefault(key, _RunTally())
            tally.add(span.run)
            if (key, span.turn) not in seen:
                seen.add((key, span.turn))
                tally.turn_seconds += turns.get(span.turn, 0.0)
    found = [_figures(key, tally) for key, tally in tallies.items()]
    return sorted(found, key=lambda row: (-row.share, -row.p95_ms, row.name, row.event))


class _RunTally:
    """The runs of one hook on one event."""

    def __init__(self) -> None:
        self.durations = array("d")
        self.waited = 0.0
        self.turn_seconds = 0.0
        """Of the turns in which it ran."""
        self.blocks = self.failures = self.let_through = self.tokens = 0

    def add(self, run: HookRun) -> None:
        self.durations.append(run.duration_ms)
        self.waited += 0 if run.is_async else run.duration_ms
        self.blocks += run.outcome in _BLOCKING
        self.failures += run.outcome == "failure" or run.failure is not None
        self.let_through += run.let_through
        self.tokens += run.tokens


def _figures(key: tuple[str, str, str], tally: _RunTally) -> HookFigures:
    share = min(1.0, tally.waited / 1000 / tally.turn_seconds) if tally.turn_seconds > 0 else 0.0
    runs, p95 = len(tally.durations), percentile(tally.durations, 0.95)
    slow = tally.waited > 0 and (p95 > SLOW_MS or share > SLOW_SHARE)
    event, name, layer = key
    return HookFigures(
        event=event,
        name=name,
        layer=layer,
        runs=runs,
        blocks=tally.blocks,
        failures=tally.failures,
        let_through=tally.let_through,
        p50_ms=percentile(tally.durations, 0.5),
        p95_ms=p95,
        max_ms=max(tally.durations),
        share=round(share, 4),
        tokens=tally.tokens,
        marks=tuple(
            mark
            for mark, holds in (
                ("slow", slow),
                ("flaky", 0 < tally.failures < runs),
                ("failing", tally.failures == runs),
            )
            if holds
        ),
    )
