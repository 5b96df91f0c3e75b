"""Progress of work that may take a while, on stderr."""

import sys
from collections.abc import Callable
from time import monotonic
from types import TracebackType

import click

_QUIET = 2.0
"""Seconds before anything is shown: most work takes less."""
_ENOUGH = 0.005
"""The part that has to be done before the rest can be estimated."""
_ON_TERMINAL, _IN_LOG = 0.2, 5.0
"""Seconds between two lines. On a terminal, each replaces the one before."""


class Progress:
    """How much is done, and how long the rest will take. Without a terminal, a line every few seconds."""

    def __init__(self, what: str, now: Callable[[], float] = monotonic) -> None:
        """`what` is done, such as "Reading sessions"."""
        self._now = now
        self._what = what
        self._terminal = sys.stderr.isatty()
        self._started = now()
        self._next = self._started + _QUIET
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        now = self._now()
        if now < self._next:
            return
        self._next = now + (_ON_TERMINAL if self._terminal else _IN_LOG)
        line = f"{self._what}: {done:,} of {total:,} ({done / max(total, 1):.0%})"
        if done >= total * _ENOUGH:
            line += f", {_seconds((now - self._started) * (total - done) / max(done, 1))} left"
        click.echo(f"\r\x1b[K{line}" if self._terminal else line, err=True, nl=not self._terminal)
        self._shown = True

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown and self._terminal:
            click.echo("\r\x1b[K", err=True, nl=False)


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value < 100 else f"{value / 60:.0f} min"
