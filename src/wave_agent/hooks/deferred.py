"""Context from hooks that were not awaited: it waits for the next request of the turn, or for the next prompt."""

from collections.abc import Sequence

from msgspec import Struct

from wave_agent.hooks.verdicts import Outcome, Said


class Deferred(Struct, frozen=True):
    """Context from a hook that was not awaited, sent to the model with the next request or prompt."""

    event: str
    said: Said
    occasion: int = 0
    wakes: bool = False
    """Worth a new turn, should the model be done."""


class DeferredContext:
    """The context that is waiting, in the order it arrived."""

    def __init__(self, earlier: Sequence[Deferred] = ()) -> None:
        """`earlier`: what was waiting when a resumed session ended."""
        self.waiting = list(earlier)
        self._erased: set[int] = set()
        """Occasions whose prompt was erased."""

    def add(self, outcome: Outcome, occasion: int) -> None:
        if occasion not in self._erased:
            self.waiting.extend(Deferred(outcome.event, said, occasion, outcome.wakes) for said in outcome.contexts)

    def erase(self, occasion: int) -> None:
        """Drop the context of this occasion, including what is still to come: its hooks saw an erased prompt."""
        self._erased.add(occasion)
        self.waiting = [one for one in self.waiting if one.occasion != occasion]

    def take(self) -> tuple[Deferred, ...]:
        """Remove and return what is waiting."""
        taken = tuple(self.waiting)
        self.waiting.clear()
        return taken
