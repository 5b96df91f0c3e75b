"""What hooks did in many sessions, day by day: the data of `wave hooks report`."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.replay.figures import HookFigures, figures
from wave_agent.replay.tally import ENFORCE, DeniedTally, HookTally, SessionTally

MOST_DENIED = 20
"""Denied calls on the page."""
_KEPT = 10_000
"""Different denied calls to count before rare ones are dropped."""


class DayFigures(Struct, kw_only=True):
    day: str
    runs: int = 0
    enforced: int = 0
    """Runs that were not in shadow mode."""
    blocks: int = 0
    would_block: int = 0
    """Runs in shadow mode that would have blocked."""
    failures: int = 0
    let_through: int = 0


class HookOverview(Struct, frozen=True, kw_only=True):
    sessions: int
    days: Sequence[DayFigures]
    """Those on which a hook ran, in order."""
    hooks: Sequence[HookFigures]
    denied: Sequence[DeniedTally]
    """The most frequent ones first; of all days together."""

    @property
    def runs(self) -> int:
        return sum(day.runs for day in self.days)


def overview(sessions: Iterable[SessionTally]) -> HookOverview:
    """Reads each once, and keeps none."""
    days: dict[str, DayFigures] = {}
    denied: dict[tuple[str, str, str], DeniedTally] = {}
    count = 0

    def hooks() -> Iterable[HookTally]:
        nonlocal count
        for one in sessions:
            count += 1
            for hook in one.hooks:
                _add(days.setdefault(hook.day, DayFigures(day=hook.day)), hook)
                yield hook
            for call in one.denied:
                known = denied.setdefault((call.tool, call.text, call.by), replace(call, day="", count=0))
                known.count += call.count
            if len(denied) > 2 * _KEPT:
                frequent = _most(denied.values(), _KEPT)
                denied.clear()
                denied.update({(one.tool, one.text, one.by): one for one in frequent})

    found = figures(hooks())
    return HookOverview(
        sessions=count,
        days=[days[day] for day in sorted(days)],
        hooks=found,
        denied=_most(denied.values(), MOST_DENIED),
    )


def _add(day: DayFigures, hook: HookTally) -> None:
    day.runs += hook.runs
    day.enforced += hook.runs if hook.mode == ENFORCE else 0
    day.blocks += hook.blocks
    day.would_block += hook.would_block
    day.failures += hook.failures
    day.let_through += hook.let_through


def _most(denied: Iterable[DeniedTally], most: int) -> list[DeniedTally]:
    return sorted(denied, key=lambda one: (-one.count, one.tool, one.text, one.by))[:most]
