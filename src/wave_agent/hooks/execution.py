"""What one run of a hook is given and what it yields.

The runner turns a `HookJob` into a `HookExecutionResult`; `semantics` gives the result its meaning. Neither
knows the other, so this module belongs to both.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct


class HookJob(Struct, frozen=True, kw_only=True):
    """One command to run."""

    command: str
    """A shell command line or, with `args`, the program itself."""
    args: tuple[str, ...] | None = None
    """Given: `command` is started with exactly these, without a shell."""
    arguments: tuple[str, ...] = ()
    """Positional values appended to a shell command that is one bare path."""
    stdin: bytes = b""
    env: Mapping[str, str]
    """The whole environment, not an addition to the agent's."""
    cwd: str
    timeout: float
    """Seconds for everything together: feeding, running, reading."""


class HookExecutionResult(Struct, frozen=True, kw_only=True):
    """What came of one run."""

    exit_code: int | None = None
    """None unless the process ended by itself."""
    stdout: str = ""
    """UTF-8 with replacement, trimmed, at most the cap."""
    stderr: str = ""
    duration: float = 0.0
    """Milliseconds."""
    timed_out: bool = False
    signal: int | None = None
    """The signal that ended the process, ours included."""
    error: str | None = None
    """Why the run could not start, or why its exit status is unknown."""
    cancelled: bool = False
    """The turn was cancelled while it ran."""
    stdout_dropped: int = 0
    """Bytes of stdout beyond the cap: read, counted, not kept."""
    stderr_dropped: int = 0

    @property
    def success(self) -> bool:
        return self.exit_code == 0

    @property
    def truncated(self) -> bool:
        return self.stdout_dropped > 0 or self.stderr_dropped > 0


class HookRunner(Protocol):
    """The seam between the manager and processes."""

    async def run(self, job: HookJob) -> HookExecutionResult:
        """Never raises but `asyncio.CancelledError`, and then only after the process is gone."""
        ...
