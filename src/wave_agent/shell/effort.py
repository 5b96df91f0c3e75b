"""Limits the work per line: counted, not timed, so that a line is judged the same on every machine.

The reader of a line sets a budget, and each piece of work spends from it. A unit is about a microsecond. When the
budget is used up, the line is treated as not understood.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

MOST = 150_000
"""Units for one reading of a line. An ordinary line takes a few hundred."""
MOST_UNPARSED = 12_000
"""The same for a line that is too long for the grammar: its length alone has uncounted costs."""


class TooMuchError(Exception):
    """The budget is used up."""


class Effort:
    """A budget, and how much of it is left."""

    __slots__ = ("left", "most")

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    @property
    def spent(self) -> int:
        return self.most - self.left


_CURRENT: ContextVar[Effort | None] = ContextVar("effort", default=None)


@contextmanager
def limited(most: int = MOST) -> Generator[Effort]:
    """Work in this context is counted."""
    effort = Effort(most)
    before = _CURRENT.set(effort)
    try:
        yield effort
    finally:
        _CURRENT.reset(before)


def spend(units: int) -> None:
    """Raises `TooMuchError` if nothing is left. Without a budget, work is not counted."""
    effort = _CURRENT.get()
    if effort is not None:
        effort.left -= units
        if effort.left < 0:
            raise TooMuchError
