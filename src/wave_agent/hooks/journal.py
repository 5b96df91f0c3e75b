"""The journal of a session's hooks: what ran, and on which occasion."""

from collections.abc import Sequence

from wave_agent.events import HookRun
from wave_agent.hooks.definitions import HookDefinition

DEFERRED = "defer"


class HookJournal:
    """Every run of the session so far, in order. Knows which `once` hooks have run."""

    def __init__(self, earlier: Sequence[HookRun] = ()) -> None:
        """`earlier`: the runs of a resumed session."""
        self.runs = list(earlier)
        self._occasions = max((run.occasion for run in earlier), default=0)
        decided = [run for run in earlier if run.outcome != DEFERRED]
        self._ran_earlier = {(run.event, run.layer, run.name, run.command) for run in decided}
        self._first_occasion: dict[int, int] = {}
        """By position: the occasion on which a `once` hook ran."""

    def next_occasion(self) -> int:
        """The number of a new occurrence of an event."""
        self._occasions += 1
        return self._occasions

    def claim(self, hook: HookDefinition, occasion: int) -> bool:
        """Whether this hook may run now. A `once` hook is then used up: it may run again only on the same occasion, for
        a second look. One that deferred its decision has yet to judge the call."""
        if not hook.once:
            return True
        if (hook.event.value, hook.layer.value, hook.name, hook.shown_command) in self._ran_earlier:
            return False
        return self._first_occasion.setdefault(hook.position, occasion) == occasion

    def add(self, run: HookRun) -> None:
        self.runs.append(run)
        if run.outcome == DEFERRED:
            self._first_occasion.pop(run.position, None)
