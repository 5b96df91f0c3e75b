"""The input and the result of one hook run.

A runner turns a `HookJob` into a `HookExecutionResult`; `semantics` decides what the result means. Neither knows the
other; both use this module.
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from wave_agent.events import HookRun, InnerCall


class HookKind(StrEnum):
    """What a hook is, which decides the runner."""

    COMMAND = "command"
    PYTHON = "python"
    HTTP = "http"
    MCP_TOOL = "mcp_tool"
    PROMPT = "prompt"
    """A question to a model."""
    AGENT = "agent"
    """A question to a model that may read the project before it answers."""
    FUNCTION = "function"
    """A function in this process; settings cannot name one."""
    ABSENT = "absent"
    """A type that another agent supports and this one does not."""


class BodyFormat(StrEnum):
    """What an HTTP hook posts, and where its output is in the response."""

    PLAIN = "plain"
    OPA = "opa"


class HookJob(Struct, frozen=True, kw_only=True):
    """One hook to run."""

    kind: HookKind = HookKind.COMMAND
    command: str
    """Depends on the kind: a shell command line or, with `args`, a program; `FILE:FUNCTION`; a URL; a prompt."""
    args: tuple[str, ...] | None = None
    """If set, `command` is started with exactly these arguments, without a shell."""
    arguments: tuple[str, ...] = ()
    """Positional values appended to a shell command that is one bare path."""
    stdin: bytes = b""
    env: Mapping[str, str]
    """The complete environment, not additions to the agent's."""
    cwd: str
    timeout: float
    """Seconds for the whole run: writing stdin, running, and reading output."""
    is_waited_for: bool = True
    """False if it runs in the background, where nothing may have to wait for it."""
    look_again: Callable[[], str | None] | None = None
    """Checks again whether the hook may run, and returns why not: for a runner that queues jobs."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of an HTTP request as written, with variables not yet expanded."""
    header_env: tuple[str, ...] = ()
    """The variables these headers may use, besides those in the settings."""
    names_its_services: bool = False
    """Written for another agent: trusting the hook covers its host, and a response need not be JSON."""
    body_format: BodyFormat = BodyFormat.PLAIN
    call: "ServerCall | None" = None
    """The tool of an MCP server to call."""
    layer: str = ""
    """The settings layer of the hook: a user's hook does not ask a project's server."""
    model: str = ""
    """The model that a hook of kind `prompt` or `agent` asks; empty for the usual one."""
    task: Callable[[], str] = str
    """What the agent is to do, for a hook of these kinds."""
    traceparent: str = ""
    """The run's place in a trace, for services; empty: telemetry is off."""


class ServerCall(Struct, frozen=True):
    """What a hook of type `mcp_tool` calls."""

    server: str
    tool: str
    input: str = "{}"
    """A JSON object, with the variables as written."""


class Opinion(Struct, frozen=True, gc=False):
    """What a model thinks of an event; `opinions` reads it from the model's answer."""

    ok: bool
    reason: str = ""
    """Empty if it is not ok, and the model has not said why even when asked again."""
    impossible: bool = False
    """It is not ok, and nothing the agent could still do would change that."""

    def to_dict(self) -> dict[str, bool | str]:
        """The answer as a model gives it."""
        given: dict[str, bool | str] = {"ok": self.ok, "reason": self.reason, "impossible": self.impossible}
        return {key: value for key, value in given.items() if key == "ok" or value}


class HookExecutionResult(Struct, frozen=True, kw_only=True):
    """The result of one run."""

    exit_code: int | None = None
    """None unless the process exited by itself."""
    stdout: str = ""
    """Decoded as UTF-8 with replacement, trimmed, up to the size limit."""
    stderr: str = ""
    duration: float = 0.0
    """Milliseconds."""
    timed_out: bool = False
    signal: int | None = None
    """The signal that killed the process, including our own."""
    error: str | None = None
    """Why the run could not start, or why its exit status is unknown."""
    is_refused: bool = False
    """The hook must not run; `error` says why. This blocks wherever a failure can."""
    by_server: bool = False
    """The server of an `mcp_tool` hook could not be asked, or its tool failed; `error` says why."""
    by_service: bool = False
    """The service of an `http` hook could not be asked, or its answer is not one; `error` says why."""
    opinion: Opinion | None = None
    """What the model of a `prompt` or `agent` hook answered."""
    by_model: bool = False
    """There is no such answer; `error` says why."""
    is_spent: bool = False
    """The model could not be asked because the session may spend no more. This blocks a call: the model that made it
    can bring that about."""
    model: str = ""
    """The model that was asked."""
    tokens: int = 0
    """The tokens of the requests to it."""
    calls: tuple[InnerCall, ...] = ()
    """The calls that it made."""
    cancelled: bool = False
    """The turn was cancelled during the run."""
    stdout_dropped: int = 0
    """Bytes of stdout beyond the limit: read and counted, but dropped."""
    stderr_dropped: int = 0
    stdin_left: int = 0
    """Bytes of stdin that the hook did not read."""
    has_cut_arguments: bool = False
    """An argument was too long for a command line and was truncated; stdin had all of it."""
    stdout_end: str = ""
    """The end of stdout if part of it was dropped; else empty."""
    stderr_end: str = ""

    @property
    def success(self) -> bool:
        return self.exit_code == 0


class HookTrace(Protocol):
    """One run, as telemetry sees it."""

    @property
    def traceparent(self) -> str: ...

    def end(self, run: "HookRun") -> None: ...


class HookRunner(Protocol):
    """The interface between the manager and processes."""

    async def run(self, job: HookJob) -> HookExecutionResult:
        """Raises only `asyncio.CancelledError`, and only after the process has ended."""
        ...


async def close_runner(runner: HookRunner) -> None:
    """Close a runner, if it holds anything between runs."""
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
