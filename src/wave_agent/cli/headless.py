"""`wave -p`: one prompt, from a terminal, a script or CI."""

import asyncio
import gc
import json
import os
import select
import signal
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO

from msgspec import to_builtins
from msgspec.structs import replace

from wave_agent.agent.agent import Agent
from wave_agent.agent.options import Options
from wave_agent.agent.result import Callbacks, Result
from wave_agent.agent.turn import TurnStatus
from wave_agent.cli.flags import check_rules, options_from
from wave_agent.cli.quick import complain
from wave_agent.errors import MissingPathError, WaveError
from wave_agent.events import (
    Error,
    Event,
    HookFinished,
    HookRun,
    Notice,
    PermissionRequested,
    SubagentStarted,
    ToolStarted,
    event_to_dict,
)
from wave_agent.models.base import Usage
from wave_agent.system.processes import kill_children
from wave_agent.text import strip_controls

if TYPE_CHECKING:
    from click import UsageError

    from wave_agent.cli.hook_reports import HookReports

EXIT: Mapping[str, int] = {
    TurnStatus.COMPLETED: 0,
    TurnStatus.ERROR: 1,
    TurnStatus.BLOCKED: 3,
    TurnStatus.STOPPED: 3,
    TurnStatus.STOP_LIMIT: 3,
    TurnStatus.MAX_TURNS: 4,
    TurnStatus.MAX_COST: 4,
    TurnStatus.INTERRUPTED: 130,
}
TERMINATED = 143
HUNG_UP = 129
TWICE = 0.5
"""Seconds within which a repeated signal is treated as the same request."""
FROM_STDIN = "-"
PATIENCE = 1.0
"""Seconds to wait for input on a stdin that may never deliver any."""
STDIN_LIMIT = 10_000_000
"""Maximum number of bytes read from stdin."""


def start_prompt(prompt: str, debug_topics: Sequence[str], **flags: Any) -> int:
    """Runs the prompt with these flags and returns the exit status."""
    check_rules(flags)
    options = partial(options_from, flags)
    resumes = flags["resume"] is not None or bool(flags["go_on"])
    return run_prompt(
        prompt, options, flags["output_format"], debug_hooks="hooks" in debug_topics, needs_prompt=not resumes
    )


def run_prompt(
    given: str, options: Callable[[], Options], output_format: str, *, debug_hooks: bool, needs_prompt: bool = True
) -> int:
    """Runs the prompt and returns the exit status. `options` may raise: that is a failed run like any other. If it
    `needs_prompt`, a missing one is reported before anything else that is wrong."""
    screen = Screen(output_format, debug_hooks=debug_hooks)
    if given in ("", FROM_STDIN) and is_terminal(sys.stdin):
        screen.tell("Reading the prompt from the terminal; end it with Ctrl-D.")
    # Before the event loop, whose Ctrl-C handler would wait for it.
    prompt, piped, notice = read_prompt(given, sys.stdin)
    if notice:
        screen.tell(notice)
    is_missing = needs_prompt and not (prompt or piped)
    try:
        status = asyncio.run(_run(options, prompt, piped, screen))
    except WaveError as error:
        if is_missing:
            raise _no_prompt() from error
        if output_format == "text" or isinstance(error, MissingPathError):
            raise
        screen.tell(str(error))  # whoever reads stderr, a CI log for example, learns why in every format
        screen.print(json.dumps(failed(str(error))))
        status = EXIT[TurnStatus.ERROR]
    screen.close()
    if screen.unwritten:
        screen.tell(f"The answer cannot be written: {screen.unwritten}")
        status = EXIT[TurnStatus.ERROR]
    return status


async def _run(options: Callable[[], Options], prompt: str, piped: str, screen: "Screen") -> int:
    callbacks = Callbacks(on_event=screen.show)
    asked = options()
    agent = Agent.from_options(replace(asked, callbacks=callbacks, interactive=False))
    gc.freeze()  # what a session consists of lives as long as it
    gc.enable()
    if agent.unused_hooks:
        from wave_agent.settings.unused_hooks import unused_hooks_notice  # lazy: few projects have any

        if notice := unused_hooks_notice(agent.home, agent.project, agent.unused_hooks):
            screen.tell(notice)
    if os.geteuid() == 0 and is_terminal(sys.stderr):  # in CI and containers, root is usual and nobody reads it
        from wave_agent.permissions.root_user import root_caution  # lazy: few people are root

        if caution := root_caution(os.geteuid(), agent.permission_mode, sandbox=asked.sandbox):
            screen.tell(caution)
    interruption = Interruption(agent)
    screen.on_closed = agent.interrupt
    async with agent:
        if prompt:
            # Only what the user wrote on the command line is expanded, never what another program has piped in.
            result = await agent.send_message(prompt, expand=True, complete=partial(_with_piped, piped))
        elif piped:
            result = await agent.send_message(piped)
        elif agent.can_continue:
            result = await agent.continue_turn()
        else:
            raise _no_prompt()
        from wave_agent.replay.upkeep import after_session  # lazy: not needed before the answer

        await asyncio.to_thread(after_session, agent.home, agent.settings.cleanup_days)
    screen.finish(result)
    return interruption.status or EXIT[result.status]


def _with_piped(piped: str, prompt: str) -> str:
    return "\n\n".join(filter(None, (prompt, piped)))


def _no_prompt() -> "UsageError":
    from click import UsageError  # lazy: only to explain a mistake

    return UsageError("There is no prompt: pass one after -p or on stdin.")


def is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()


def read_prompt(given: str, stdin: TextIO | None) -> tuple[str, str, str]:
    """The prompt that the user wrote, the piped input, and a notice for the user about it. Both may be empty."""
    if given in ("", FROM_STDIN):
        text, notice = ("", "") if stdin is None else _read(stdin)
        return "", text if text.strip() else "", notice
    if stdin is None or stdin.closed or stdin.isatty():
        return given, "", ""
    try:
        ready, _, _ = select.select([stdin], [], [], PATIENCE)
    except (OSError, ValueError):  # not a stream that can be waited for
        return given, "", ""
    if not ready:
        return given, "", f"No input on stdin within {PATIENCE:g} s; continuing without it."
    piped, notice = _read(stdin)
    return given, piped if piped.strip() else "", notice


def _read(stdin: TextIO) -> tuple[str, str]:
    """Stdin up to a limit, since some programs never stop writing, and a notice for the user."""
    data = stdin.buffer.read(STDIN_LIMIT + 1)
    is_cut = len(data) > STDIN_LIMIT
    decoder = getincrementaldecoder(stdin.encoding or "utf-8")("replace")
    text = decoder.decode(data[:STDIN_LIMIT], final=not is_cut)  # drops a character split by the limit
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not is_cut:
        return text, ""
    where = f"after {STDIN_LIMIT // 1_000_000} MB"
    return f"{text}\n[Stdin was truncated here, {where}.]", f"Stdin was truncated {where}; the rest was not read."


def failed(error: str) -> dict[str, Any]:
    """The result object if no session was started."""
    return {
        "type": "result",
        "status": TurnStatus.ERROR.value,
        "session_id": None,
        "transcript_path": None,
        "result": None,
        "error": error,
        "turns": 0,
        "messages": [],
        "hooks": [],
        "hooks_failed_open": 0,
        "usage": to_builtins(Usage()),
        "cost_usd": 0,
        "violations": [],
        "duration_ms": 0,
    }


class Interruption:
    """Ctrl-C and SIGTERM end the turn; a second one ends the process.

    `timeout` and some supervisors send the same signal twice within milliseconds, to the process and to its group. That
    is one request, and the result is still printed: a second SIGTERM or SIGHUP only takes effect later. A second Ctrl-C
    comes from a person, who waits at most for the rest of that interval.
    """

    def __init__(self, agent: Agent) -> None:
        self.status = 0
        self._agent = agent
        self._since = 0.0
        loop = asyncio.get_running_loop()
        for number, status in (
            (signal.SIGINT, EXIT[TurnStatus.INTERRUPTED]),
            (signal.SIGTERM, TERMINATED),
            (signal.SIGHUP, HUNG_UP),
        ):
            loop.add_signal_handler(number, self._signalled, status)

    def _signalled(self, status: int) -> None:
        if not self.status:
            self.status, self._since = status, monotonic()
            self._agent.interrupt()
            return
        left = self._since + TWICE - monotonic()
        if left <= 0 or status != self.status:
            _end_at_once(status)
        elif status == EXIT[TurnStatus.INTERRUPTED]:
            asyncio.get_running_loop().call_later(left, _end_at_once, status)


def _end_at_once(status: int) -> None:
    kill_children()  # whatever is still running ignored the signal
    os._exit(status)


class Screen:
    """The answer goes to stdout in the requested format, everything else to stderr."""

    def __init__(self, output_format: str, *, debug_hooks: bool) -> None:
        self._format = output_format
        self._debug_hooks = debug_hooks
        streams: tuple[Any, Any] = (sys.stdout, sys.stderr)  # None if the caller closed them
        self._closed = streams[0] is None
        self._progress = streams[1] is not None and sys.stderr.isatty()
        self.on_closed = _nothing
        self.unwritten = ""
        """Why the answer could not be written. Not set if the reader closed the pipe."""

    @cached_property
    def _reports(self) -> "HookReports":
        from wave_agent.cli.hook_reports import HookReports  # lazy: no call or hook runs before the first request

        return HookReports()

    def show(self, event: Event) -> None:
        if self._format == "stream-json":
            self.print(json.dumps(event_to_dict(event)))
        match event:
            case Notice(content=content, agent_id=agent_id) | Error(content=content, agent_id=agent_id):
                for line in self._reports.lines(content, agent_id):
                    self.tell(line)
            case SubagentStarted():
                self._reports.subagent(event)
            case HookFinished(run=run):
                self._note(run)
            case ToolStarted():
                shown = self._reports.started(event)
                if self._progress:
                    self.tell(shown)
            case PermissionRequested(tool_name=name, does=does) if self._progress:
                self.tell(f"{name} ({does}) needs confirmation, but this run is not interactive")
            case _:
                pass

    def _note(self, run: HookRun) -> None:
        if self._debug_hooks:
            self.tell(f"hook {run.event} {run.name}: {run.outcome} ({run.duration_ms:.0f} ms) {run.reason}".rstrip())
        if notice := self._reports.finished(run):
            self.tell(notice)

    def finish(self, result: Result) -> None:
        if self._format == "text":
            if result.text is not None:
                self.print(strip_controls(result.text))
        else:
            self.print(json.dumps(result.to_dict()))

    def print(self, text: str) -> None:
        """Write to stdout. The first error calls `on_closed`: the answer can no longer be delivered."""
        if self._closed:
            return
        encoding = sys.stdout.encoding or "utf-8"
        try:
            sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
            sys.stdout.flush()
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                self.unwritten = error.strerror or str(error)
            self._closed = True
            self.on_closed()

    def tell(self, text: str) -> None:
        complain(strip_controls(text))  # a closed stderr must not cost the answer

    def close(self) -> None:
        """Python flushes stdout again at exit, which prints a traceback if it is closed."""
        streams: tuple[Any] = (sys.stdout,)
        if self._closed and streams[0] is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nothing() -> None:
    pass
