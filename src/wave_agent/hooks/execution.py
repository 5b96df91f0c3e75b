"""What one run of a hook is given and what it yields.

The runner turns a `HookJob` into a `HookExecutionResult`; `semantics` gives the result its meaning. Neither
knows the other, so this module belongs to both.
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct


class HookKind(StrEnum):
    """What a hook is, and so who runs it."""

    COMMAND = "command"
    PYTHON = "python"
    HTTP = "http"
    FUNCTION = "function"
    """Of this process; settings cannot name one."""
    ABSENT = "absent"
    """Of a type that another agent has and this one does not; settings name that type."""


class BodyFormat(StrEnum):
    """What an HTTP hook posts, and where in the answer its output is."""

    PLAIN = "plain"
    OPA = "opa"


class HookJob(Struct, frozen=True, kw_only=True):
    """One hook to run."""

    kind: HookKind = HookKind.COMMAND
    command: str
    """A shell command line or, with `args`, the program itself; `FILE:FUNCTION`; a URL. As the kind has it."""
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
    is_waited_for: bool = True
    """False: it runs beside what goes on, which must not have to wait for it."""
    look_again: Callable[[], str | None] | None = None
    """Why it must not run, if that is so by now: for a runner that may have let it wait."""
    headers: tuple[tuple[str, str], ...] = ()
    """Of an HTTP request, as they are written: variables are not yet put in."""
    header_env: tuple[str, ...] = ()
    """The variables that these may name, beside those of the settings."""
    names_its_services: bool = False
    """Written for another agent: trust in the hook covers its host, and an answer need not be JSON."""
    body_format: BodyFormat = BodyFormat.PLAIN


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
    is_refused: bool = False
    """It must not run; `error` says why. That blocks wherever a failure can."""
    cancelled: bool = False
    """The turn was cancelled while it ran."""
    stdout_dropped: int = 0
    """Bytes of stdout beyond the cap: read, counted, not kept."""
    stderr_dropped: int = 0
    stdin_left: int = 0
    """Bytes of its stdin that it did not take."""
    has_cut_arguments: bool = False
    """An argument was too long for a command line; stdin had the whole."""
    stdout_end: str = ""
    """The last of a stdout that was not kept whole; else empty."""
    stderr_end: str = ""

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


async def close_runner(runner: HookRunner) -> None:
    """Lets go of what a runner keeps between runs. A `close` is for those that keep something."""
    close: Callable[[], Awaitable[None]] | None = getattr(runner, "close", None)
    if close is not None:
        await close()


class Runners:
    """A runner for each kind of hook."""

    def __init__(self, by_kind: Mapping[HookKind, HookRunner]) -> None:
        self._by_kind = by_kind

    async def run(self, job: HookJob) -> HookExecutionResult:
        return await self._by_kind[job.kind].run(job)

    async def close(self) -> None:
        for runner in self._by_kind.values():
            await close_runner(runner)
