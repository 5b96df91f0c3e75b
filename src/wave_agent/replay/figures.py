"""Statistics about what hooks cost and did, across many sessions."""

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from wave_agent.replay.tally import ENFORCE, SHADOW, HookTally

SLOW_MS = 500.0
"""A hook with a higher p95 is slow."""
SLOW_SHARE = 0.2
"""A hook that takes a larger share of the time of its turns is slow too, if it makes the average session wait for at
least `SLOW_MS`: of a turn that takes no time, any hook is a large part."""


def percentile(values: Sequence[float], part: float) -> float:
    """The nearest-rank percentile: always a measured value, never interpolated."""
    ordered = sorted(values)
    return ordered[max(0, ceil(part * len(ordered)) - 1)] if ordered else 0.0


HookKey = tuple[str, str, str, str]
"""Event, name, layer and mode."""


class HookFigures(Struct, frozen=True, kw_only=True):
    """One hook on one event, in one mode."""

    event: str
    name: str
    layer: str
    mode: str
    """`enforce` or `shadow`. With `rollout`, a hook has figures for each."""
    sessions: int
    """Sessions in which it ran."""
    blocked_sessions: int
    """Sessions in which it blocked or, in shadow mode, would have."""
    runs: int
    blocks: int
    would_block: int
    """Blocks in shadow mode, which had no effect."""
    failures: int
    let_through: int
    """Failures that were let through."""
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    share: float
    """Share of the time of the turns it ran in. Parallel hooks each count in full; an async hook counts as 0."""
    tokens: int = 0
    """Tokens of its requests to a model."""
    marks: tuple[str, ...]
    """`slow`, `flaky`, `failing`"""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def figures(hooks: Iterable[HookTally]) -> list[HookFigures]:
    """Statistics per hook, event and mode, most expensive first; the two modes of a hook stay together.

    However many sessions there are, memory does not grow."""
    sums: dict[HookKey, RunSum] = {}
    for one in hooks:
        sums.setdefault((one.event, one.name, one.layer, one.mode), RunSum()).add(one)
    found: dict[tuple[str, str, str], list[HookFigures]] = {}
    for key in sorted(sums):
        found.setdefault(key[:3], []).append(_figures(key, sums[key]))
    ordered = sorted(found.values(), key=lambda rows: min(map(_cost, rows)))
    return [row for rows in ordered for row in rows]


def _cost(row: HookFigures) -> tuple[float, float, str, str]:
    return (-row.share, -row.p95_ms, row.name, row.event)


def rolled_out(rows: Iterable[HookFigures]) -> list[tuple[HookFigures, HookFigures]]:
    """Hooks that were enforced in some sessions and shadow in others: the figures of both."""
    by_hook: dict[tuple[str, str, str], dict[str, HookFigures]] = {}
    for row in rows:
        by_hook.setdefault((row.event, row.name, row.layer), {})[row.mode] = row
    return [(modes[ENFORCE], modes[SHADOW]) for modes in by_hook.values() if ENFORCE in modes and SHADOW in modes]


class RunSum:
    """The runs of many tallies together."""

    def __init__(self) -> None:
        self.times: dict[float, int] = {}
        """Duration in ms, to three digits → runs."""
        self.waited_ms = self.turn_seconds = 0.0
        self.sessions = self.blocked_sessions = self.runs = self.blocks = self.would_block = 0
        self.failures = self.let_through = self.tokens = 0

    def add(self, one: HookTally) -> None:
        self.sessions += one.sessions
        self.blocked_sessions += one.blocked_sessions
        self.runs += one.runs
        self.blocks += one.blocks
        self.would_block += one.would_block
        self.failures += one.failures
        self.let_through += one.let_through
        self.tokens += one.tokens
        self.waited_ms += one.waited_ms
        self.turn_seconds += one.turn_seconds
        times = self.times
        for time, count in zip(one.times, one.counts, strict=False):
            times[time] = times.get(time, 0) + count

    def percentile(self, part: float) -> float:
        """The nearest-rank percentile, to three digits."""
        rank, passed = max(1, ceil(part * sum(self.times.values()))), 0
        for time in sorted(self.times):
            passed += self.times[time]
            if passed >= rank:
                return time
        return 0.0


def _figures(key: HookKey, total: RunSum) -> HookFigures:
    share = min(1.0, total.waited_ms / 1000 / total.turn_seconds) if total.turn_seconds > 0 else 0.0
    p95 = total.percentile(0.95)
    is_felt = total.waited_ms >= SLOW_MS * max(1, total.sessions)
    slow = total.waited_ms > 0 and (p95 > SLOW_MS or (share > SLOW_SHARE and is_felt))
    event, name, layer, mode = key
    return HookFigures(
        event=event,
        name=name,
        layer=layer,
        mode=mode,
        sessions=total.sessions,
        blocked_sessions=total.blocked_sessions,
        runs=total.runs,
        blocks=total.blocks,
        would_block=total.would_block,
        failures=total.failures,
        let_through=total.let_through,
        p50_ms=total.percentile(0.5),
        p95_ms=p95,
        p99_ms=total.percentile(0.99),
        max_ms=max(total.times, default=0.0),
        share=round(share, 4),
        tokens=total.tokens,
        marks=tuple(
            mark
            for mark, holds in (
                ("slow", slow),
                ("flaky", 0 < total.failures < total.runs),
                ("failing", total.failures == total.runs),
            )
            if holds
        ),
    )
