"""What counts as a block and as a failure in figures: of a run, and of a row of an export in SQL."""

from typing import Protocol

from wave_agent.hooks.events import BLOCKING_WORDS, FAILURE_WORD

SAYS_NO = f"(outcome IN ({', '.join(repr(word) for word in sorted(BLOCKING_WORDS))}) AND NOT is_async)"
FAILED = f"(outcome = '{FAILURE_WORD}' OR failure IS NOT NULL)"


class Run(Protocol):
    """A run of a hook, however it was read."""

    @property
    def outcome(self) -> str: ...
    @property
    def failure(self) -> str | None: ...
    @property
    def is_async(self) -> bool: ...


def is_blocking(run: Run) -> bool:
    """Whether it blocked or, in shadow mode, would have. What nothing waits for can block nothing."""
    return run.outcome in BLOCKING_WORDS and not run.is_async


def is_failure(run: Run) -> bool:
    """Whether it failed, or printed malformed JSON and its exit code ruled."""
    return run.outcome == FAILURE_WORD or run.failure is not None
