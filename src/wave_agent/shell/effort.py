"""How much work a line may make: counted, not timed, so that a line is judged alike on every machine.

Whoever reads a line sets a budget, and whatever does a piece of work on the way spends from it. A unit is about a
microsecond. When the budget is used up, the line is one that is not understood.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

MOST = 150_000
"""Units for one reading of a line. A line of an ordinary day takes a few hundred."""
MOST_UNPARSED = 12_000
"""The same for a line that is too long for the grammar: its length alone costs something that is not counted."""


class TooMuchError(Exception):
    """The budget is used up."""


class Effort:
    """A budget, and what is left of it."""

    __slots__ = ("left", "most")

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    @property
    def spent(self) -> int:
        return self.most - self.left


_CURRENT: ContextVar[Effort | None] = ContextVar("effort", default=None)


@contextmanager
def limited(most: int = MOST) -> Generator[Effort]:
    """In here, work is counted."""
    effort = Effort(most)
    before = _CURRENT.set(effort)
    try:
        yield effort
    finally:
        _CURRENT.reset(before)


def spend(units: int) -> None:
    """Raises `TooMuchError` if there is nothing left. Without a budget, work is not counted."""
    effort = _CURRENT.get()
    if effort is not None:
        effort.left -= units
        if effort.left < 0:
            raise TooMuchError
