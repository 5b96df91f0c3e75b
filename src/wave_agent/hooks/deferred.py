"""Context from hooks that were not awaited: it waits for the next request of the turn, or for the next prompt."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.hooks.verdicts import Outcome, Said


class Deferred(Struct, frozen=True):
    """Context from a hook that was not awaited, sent to the model with the next request or prompt."""

    event: str
    said: Said
    occasion: int = 0
    agent_id: str = ""
    """The subagent whose model gets it; empty: the agent's own."""
    wakes: bool = False
    """Worth a new turn, should the model be done."""


class DeferredContext:
    """The context that is waiting, in the order it arrived."""

    def __init__(self, earlier: Sequence[Deferred] = ()) -> None:
        """`earlier`: what was waiting when a resumed session ended."""
        self.waiting = list(earlier)
        self._erased: set[int] = set()
        """Occasions whose prompt was erased."""
        self._owners: dict[int, str] = {}
        """Occasions of the subagents that are running."""

    def belongs(self, occasion: int, agent_id: str) -> None:
        """The context of this occasion is for a subagent."""
        self._owners[occasion] = agent_id

    def add(self, outcome: Outcome, occasion: int) -> None:
        if occasion not in self._erased:
            owner = self._owners.get(occasion, "")
            self.waiting.extend(
                Deferred(outcome.event, said, occasion, owner, outcome.wakes) for said in outcome.contexts
            )

    def erase(self, occasion: int) -> None:
        """Drop the context of this occasion, including what is still to come: its hooks saw an erased prompt."""
        self._erased.add(occasion)
        self.waiting = [one for one in self.waiting if one.occasion != occasion]

    def take(self, agent_id: str = "") -> tuple[Deferred, ...]:
        """Remove and return what is waiting for this agent."""
        taken = tuple(one for one in self.waiting if one.agent_id == agent_id)
        self.waiting = [one for one in self.waiting if one.agent_id != agent_id]
        return taken

    def hand_over(self, agent_id: str) -> None:
        """A subagent has ended: what is still to come from its hooks is for the agent above."""
        self._owners = {occasion: owner for occasion, owner in self._owners.items() if owner != agent_id}
        self.waiting = [replace(one, agent_id="") if one.agent_id == agent_id else one for one in self.waiting]
