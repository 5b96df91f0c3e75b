"""Which hooks would run on an event, in which order, and why the others would not. Runs nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from wave_agent.hooks.definitions import HookDefinition, Phase
from wave_agent.hooks.event_run import strand_key
from wave_agent.hooks.events import EVENTS, HookEvent
from wave_agent.rules.rule import Places

if TYPE_CHECKING:
    from wave_agent.effects.values import Effects


class LeftOut(Struct, frozen=True):
    hook: HookDefinition
    why: str


class EventPlan(Struct, frozen=True, kw_only=True):
    """The hooks of one event, for one payload."""

    first: tuple[HookDefinition, ...] = ()
    """The rewrite phase: one after another, before all other hooks."""
    strands: tuple[tuple[HookDefinition, ...], ...] = ()
    """Strands run in parallel; the hooks of one strand run one after another."""
    background: tuple[HookDefinition, ...] = ()
    """Async hooks: started with the others, not awaited."""
    left_out: tuple[LeftOut, ...] = ()
    second_look: bool = False
    """If a hook rewrites the input, every hook that judged the old one runs again."""

    @property
    def hooks(self) -> tuple[HookDefinition, ...]:
        """All hooks that run."""
        return (*self.first, *(hook for strand in self.strands for hook in strand), *self.background)


def plan(
    hooks: Iterable[HookDefinition],
    event: HookEvent,
    payload: Mapping[str, Any],
    places: Places,
    effects: "Callable[[], Effects] | None" = None,
) -> EventPlan:
    """The first round for this payload. A rewrite can add or remove hooks whose `if` depends on the input. `effects`
    returns what the call would do; without it, that is not known."""
    here = [hook for hook in hooks if hook.event is event]
    reasons = {hook.position: hook.why_not(payload, places, effects) for hook in here}
    runs = [hook for hook in here if reasons[hook.position] is None]
    rest = [hook for hook in runs if hook.phase is not Phase.REWRITE]
    waited = [hook for hook in rest if not hook.is_async]
    return EventPlan(
        first=tuple(hook for hook in runs if hook.phase is Phase.REWRITE),
        strands=tuple(tuple(strand) for _, strand in groupby(waited, key=strand_key)),
        background=tuple(hook for hook in rest if hook.is_async),
        left_out=tuple(LeftOut(hook, why) for hook in here if (why := reasons[hook.position]) is not None),
        second_look=EVENTS[event].has_rewrites and bool(waited),
    )


def in_order(hooks: Sequence[HookDefinition]) -> list[HookDefinition]:
    """All hooks in the order they would run: event by event, rewrite phase first."""
    events = list(EVENTS)
    return sorted(hooks, key=lambda hook: (events.index(hook.event), hook.phase is not Phase.REWRITE, hook.position))
