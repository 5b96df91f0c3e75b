"""Bash: runs a shell command, in the foreground or in the background."""

import asyncio
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from wave_agent.errors import SandboxError
from wave_agent.lazy_regex import lazy_regex
from wave_agent.permissions.decision import ToolKind
from wave_agent.shell.values import ParsedLine, Placed, Reach, Word, WriteTarget
from wave_agent.system.private_files import make_private
from wave_agent.system.processes import StreamName
from wave_agent.system.which import which
from wave_agent.text import strip_controls
from wave_agent.tools.base import BuiltinTool, ToolContext, ToolInterrupted, ToolResult
from wave_agent.tools.files import KnownFiles, uninterrupted
from wave_agent.tools.shells import Shells, started

if TYPE_CHECKING:  # loaded with the first command
    from wave_agent.tools.output import Output
    from wave_agent.tools.process import Ending, Launch

_UNATTENDED = {"GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0"}
"""For commands: no one is there to use an editor or answer a prompt that git would open."""
_NAMED_GIT = lazy_regex(r"\bgit\b")
_LOOPS = lazy_regex(r"\b(?:for|while|until|select|xargs|watch|function|alias|trap|PROMPT_COMMAND)\b|\(\s*\)")
"""With these, a command that is written once may run again, in a repository it has changed."""
_GIVEN = lazy_regex(r"(\w+)\+?=")
_EDITORS = ("GIT_SEQUENCE_EDITOR", "GIT_EDITOR", "EDITOR", "VISUAL")
_DEFAULT_TIMEOUT = 120_000
_LONGEST_TIMEOUT = 600_000

# The command is passed as an argument and eval'ed, so that its syntax errors do not show our own line. The trap
# reports where the shell ended up; if a command sets its own EXIT trap or execs, the directory stays the same.
_SCRIPT = """trap {trap} EXIT; _wave_command=$1; shift; eval "$_wave_command" """
_TRAP = "{{ command pwd >|{file}; }} 2>/dev/null || :"


def default_shell() -> str:
    """The shell that runs commands."""
    return which("bash") or "/bin/sh"


class BashInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    command: Annotated[str, Meta(min_length=1)]
    timeout: Annotated[int, Meta(gt=0, description="Milliseconds, at most 600000.")] = _DEFAULT_TIMEOUT
    description: Annotated[str, Meta(description="A few words, for the user.")] = ""
    run_in_background: bool = False


class Bash(BuiltinTool):
    """Remembers the working directory."""

    name: ClassVar[str] = "Bash"
    runs_bash: ClassVar[bool] = True
    description: ClassVar[str] = (
        "Runs a shell command. The working directory persists between calls; variables and functions do not. stdin is "
        "empty: nothing interactive. Long output is shortened; the full output is in a file that is named. For servers "
        "and watchers set run_in_background (not `&`): the call returns an id for BashOutput and KillShell, and you "
        "are notified when it ends. Prefer the other tools to cat, grep, find, sed and echo."
    )
    brief: ClassVar[str] = "Runs a shell command and returns its output."
    brief_fields: ClassVar[tuple[str, ...]] = ("command",)
    kind: ClassVar[ToolKind] = ToolKind.ACTS
    Input: ClassVar[type[Struct]] = BashInput

    def __init__(self, shells: Shells, *, shell: str | None = None, known: KnownFiles | None = None) -> None:
        self._shells = shells
        self._known = known
        self._shell = shell or default_shell()
        self._directory: str | None = None
        """Where the last command ended up. None: still where the agent was started."""
        self._last: tuple[tuple[str, Mapping[str, str], str], ParsedLine] | None = None

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        call: BashInput = arguments
        directory, notes = self._working_directory(context)
        if call.run_in_background:
            return await self._start(call, directory, notes, context)
        from wave_agent.tools.output import HeldFile, Output, PrivateFile, Relay, printed_limit  # lazy: see above
        from wave_agent.tools.process import Ending, Launch, Process

        cwd_file = context.outputs / f"cwd-{os.urandom(6).hex()}"
        with suppress(OSError):  # Only the directory is not remembered; the command still runs.
            make_private(context.outputs)
        file = (HeldFile if context.hold else PrivateFile)(context.outputs, "bash")
        output = Output(file, limit=printed_limit(context))
        relay = Relay(context.emit)

        def receive(stream: StreamName, data: bytes) -> None:
            relay.send(output.add(stream, data))

        def finish() -> None:
            relay.send(output.finish())

        seconds, begun = min(call.timeout, _LONGEST_TIMEOUT) / 1000, monotonic()
        watch = self._shells.watch()
        launch = Launch(
            argv=self._command_line(call.command, cwd_file),
            cwd=directory,
            environment={**_UNATTENDED, **context.environment, "PWD": directory, **watch.environment},
            ledger=context.ledger,
            seconds=seconds,
            watch=watch,
        )
        try:
            launch = await _confined(launch, context, notes, cwd_file)
            ending = await Process(launch, receive, finish).run()
            notes += self._follow(cwd_file, directory, context)
        except (OSError, RuntimeError, SandboxError) as error:
            ending = Ending(error=f"The command cannot be started: {error}")
        except asyncio.CancelledError:
            ending = Ending(cut_short="cancellation")
            raise ToolInterrupted(_result(output, ending, monotonic() - begun, notes, context.ends)) from None
        finally:
            relay.flush()
            with suppress(OSError):
                cwd_file.unlink()
        result = _result(output, ending, seconds, notes, context.ends)
        if result.success:
            await self._note_printed(call.command, directory, result.response["output"])
        return replace(result, keep=file.release) if isinstance(file, HeldFile) and file.exists else result

    async def _note_printed(self, command: str, directory: str, printed: str) -> None:
        if self._known is not None and command.startswith(("cat", "head", "tail", "sed")):
            from wave_agent.tools.printed_files import note_printed, printed_paths  # lazy: a session may never do it

            if paths := printed_paths(command, directory):
                await asyncio.to_thread(note_printed, self._known, paths, printed)

    def written_paths(self, tool_input: Mapping[str, Any], context: ToolContext) -> tuple[WriteTarget, ...]:
        try:
            return self._read(tool_input, context).writes
        except (ImportError, OSError):  # out of descriptors to load it: then anything may be written
            return (WriteTarget("/", Reach.TREE),)

    def unread_words(self, tool_input: Mapping[str, Any], context: ToolContext) -> int:
        try:
            too_much = self._read(tool_input, context).too_much
        except (ImportError, OSError):  # see `written_paths`
            return 0
        return len(str(tool_input["command"]).split()) if too_much else 0

    def git_runs(self, tool_input: Mapping[str, Any], context: ToolContext) -> tuple[tuple[Placed, ...], Sequence[str]]:
        line = self._read(tool_input, context)
        given = (_GIVEN.match(word.text) for command in line.commands for word in command.words)  # `env A=1 git …`
        command = str(tool_input.get("command", ""))
        names = [*line.assignments, *(found[1] for found in given if found)]
        names = [name for name in names if name not in _EDITORS or not _edits_nothing(name, command)]
        if line.understood:
            again = _LOOPS.search(command) or len(_NAMED_GIT.findall(command)) > len(line.git)
            return line.git * (2 if again else 1), names
        from wave_agent.shell.doubt import git_words  # lazy: see below

        # There may be more than were found: anything that looks like a git command may be one.
        hidden = dict.fromkeys(git_words(command))
        where = (self._working_directory(context)[0],)
        more = (Placed((Word("git"), Word(name), Word("", static=False)), where) for name in hidden)
        return (*line.git, *more), names

    def place(self, context: ToolContext) -> tuple[str, Mapping[str, str]]:
        directory, _ = self._working_directory(context)
        return directory, {"WAVE_PROJECT_DIR": str(context.project_dir), **context.environment, "PWD": directory}

    def _read(self, tool_input: Mapping[str, Any], context: ToolContext) -> ParsedLine:
        """The parsed line, in the place where it would run. Called more than once."""
        from wave_agent.shell.reader import read_placed  # lazy: a session may never run a command

        directory, variables = self.place(context)
        asked = (str(tool_input.get("command", "")), variables, directory)
        if self._last is None or self._last[0] != asked:
            self._last = asked, read_placed(*asked)
        return self._last[1]

    def shown_by(self, arguments: Any) -> tuple[str, ...]:
        call: BashInput = arguments
        return ("BashOutput",) if call.run_in_background else ()

    def reports(self) -> Sequence[str]:
        return self._shells.take_reports()

    def standing(self) -> Sequence[str]:
        where = (f"Commands start in {self._directory}.",) if self._directory else ()
        return (*where, *(f"The background command {name} is still running." for name in self._shells.running()))

    def in_background(self) -> Sequence[str]:
        return self._shells.running()

    def is_busy(self) -> bool:
        return self._shells.is_busy()

    def directory(self) -> str:
        return self._directory if self._directory and os.path.isdir(self._directory) else ""

    async def close(self) -> str | None:
        """Ends what runs in the background, and what commands left running."""
        await self._shells.close()
        return await uninterrupted(self._shells.end_orphans)

    async def _start(self, call: BashInput, directory: str, notes: list[str], context: ToolContext) -> ToolResult:
        from wave_agent.tools.process import Launch  # lazy: see above

        watch = self._shells.watch()
        launch = Launch(
            argv=[self._shell, "-c", call.command],
            cwd=directory,
            environment={**_UNATTENDED, **context.environment, "PWD": directory, **watch.environment},
            ledger=context.ledger,
            whole_group=True,
            watch=watch,
        )
        try:
            shell = self._shells.start(call.command, await _confined(launch, context, notes), context)
        except (OSError, RuntimeError, SandboxError) as error:
            return ToolResult(content=f"The command cannot be started: {error}", success=False, ran=False)
        return ToolResult(
            content="\n".join([*notes, started(shell, context.ends)]),
            response={
                "stdout": "",
                "stderr": "",
                "exit_code": None,
                "interrupted": False,
                "output": "",
                "backgroundTaskId": shell.name,
            },
        )

    def _working_directory(self, context: ToolContext) -> tuple[str, list[str]]:
        start = str(context.cwd)
        directory = self._directory or start
        if os.path.isdir(directory):
            return directory, []
        self._directory = None
        if directory == start:
            return start, []  # starting the command reports it
        return start, [f"[The working directory {directory} no longer exists. This command ran in {start}]"]

    def _command_line(self, command: str, cwd_file: Path) -> list[str]:
        trap = _TRAP.format(file=shlex.quote(str(cwd_file)))
        return [self._shell, "-c", _SCRIPT.format(trap=shlex.quote(trap)), os.path.basename(self._shell), command]

    def _follow(self, cwd_file: Path, before: str, context: ToolContext) -> list[str]:
        """Adopts the directory that the command ended in."""
        try:
            after = os.fsdecode(cwd_file.read_bytes()).removesuffix("\n")
        except OSError:
            return []
        if not after.startswith("/") or after == before:
            return []
        self._directory = after
        if after == str(context.cwd):
            return [f"[Commands now start in {after} again]"]
        return [f"[Commands now start in {after}. Relative paths of other tools still start in {context.cwd}]"]


async def _confined(launch: "Launch", context: ToolContext, notes: list[str], *files: Path) -> "Launch":
    """The same launch in the sandbox, if there is one. `files` are ours, and the command has to write them.

    Raises `SandboxError` if the sandbox cannot apply the rules.
    """
    sandbox = context.sandbox
    if sandbox is None:
        return launch
    for file in files:
        file.touch(mode=0o600)  # only existing files can be mounted
    way_out = sandbox.way_out()
    try:
        # In a thread: with rules for files, it may have to search the project.
        argv = await uninterrupted(
            lambda: sandbox.command(
                launch.argv,
                launch.environment,
                cwd=launch.cwd,
                writable=[str(file) for file in files],
                way_out=way_out,
            )
        )
    except BaseException:
        if way_out is not None:
            way_out.close()
        raise
    notes += [f"[{note}]" for note in sandbox.take_notes()]
    confined = replace(launch, argv=argv, environment=sandbox.outside(launch.environment), complaint=sandbox.watch())
    if way_out is None:
        return confined
    environment = {**confined.environment, **way_out.variables}
    return replace(confined, environment=environment, kept=(way_out.descriptor,), released=way_out.close)


def _result(output: "Output", ending: "Ending", seconds: float, notes: list[str], ends: str) -> ToolResult:
    """`seconds` is the command's timeout, or how long it ran until the user interrupted it. What it left running `ends`
    at the latest then."""
    printed = output.take()
    if ending.error and ending.exit_code is None and ending.cut_short is None and not printed:
        return ToolResult(content=ending.error, success=False, ran=False)
    timed_out = ending.cut_short == "timeout"
    if ending.cut_short == "cancellation":
        notes.append(
            f"[Interrupted by the user after {seconds:.1f} s: the command and everything it started were ended]"
        )
    elif timed_out:
        notes.append(
            f"[Timed out after {seconds:g} s: the command and everything it started were ended. Raise `timeout` (at "
            f"most {_LONGEST_TIMEOUT} ms), or use run_in_background]"
        )
    if ending.error:
        notes.append(f"[{ending.error}]")
    elif ending.exit_code and not timed_out:
        notes.append(f"[exit code {ending.exit_code}]")
    if ending.remark:
        notes.append(f"[{ending.remark}]")
    if ending.left:
        from wave_agent.tools.process import named  # lazy: see above

        notes.append(
            f"[Left running in the background: {named(ending.left)}. It ends {ends} at the latest; for "
            "servers and watchers use run_in_background]"
        )
    shown = strip_controls(printed).strip("\n")
    return ToolResult(
        content="\n".join([shown or "(no output)", *notes]) if notes or not shown else shown,
        success=ending.exit_code == 0 and not timed_out and ending.error is None,
        response={
            "stdout": output.stream("stdout"),
            "stderr": output.stream("stderr"),
            "exit_code": ending.exit_code,
            "interrupted": ending.cut_short is not None,
            "output": printed,
        },
    )


def _edits_nothing(name: str, command: str) -> bool:
    """Everywhere the command names this editor, it is set to a program that leaves the file unchanged."""
    harmless = re.findall(rf"(?<![\w$]){name}=(['\"]?)(?::|true|cat)\1(?=\s)", command)
    return len(harmless) == len(re.findall(rf"\b{name}\b", command))
