"""The background commands of a session."""

import asyncio
import re
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex
from wave_agent.messages import HARNESS, Block, Message, TextBlock, ToolBlock
from wave_agent.system.processes import StreamName
from wave_agent.text import did_you_mean, strip_controls
from wave_agent.tools.base import ToolContext, ToolInputError

if TYPE_CHECKING:  # loaded with the first command
    from wave_agent.tools.output import Output
    from wave_agent.tools.process import Launch
    from wave_agent.tools.stray_processes import Orphans, StrayWatch

_AT_ONCE = 32
"""Maximum number of running commands. Each takes a thread and a handful of descriptors."""
_PAUSE = 1.0
"""Seconds without output after which a command is considered idle."""
_WIDTH = 80
"""Characters of a command shown to identify it."""


class Shell:
    """One background command."""

    def __init__(self, name: str, command: str, launch: "Launch", output: "Output") -> None:
        from wave_agent.tools.process import Process  # lazy: see above

        self.name = name
        self.command = command
        self.output = output
        self.killed = False
        self.end_is_known = False
        """The model knows that it has ended."""
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self.process = Process(launch, self._receive, self._finish)
        self.process.when_ended(self._wake)

    def _receive(self, stream: StreamName, data: bytes) -> None:
        self.output.add(stream, data)
        self._wake()

    def _finish(self) -> None:
        self.output.finish()

    def _wake(self) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    @property
    def state(self) -> str:
        ending = self.process.ending
        if ending is None:
            return "running"
        ended = ending.error or ("killed" if self.killed else f"ended with exit code {ending.exit_code}")
        ended = f"{ended}. {ending.remark}" if ending.remark else ended
        if not ending.left:
            return ended
        from wave_agent.tools.process import named  # lazy: see above

        return f"{ended}; it left running: {named(ending.left)}"

    async def wait(self, seconds: float) -> None:
        """Waits until it has ended, or has printed something and then paused, or for `seconds`."""
        with self._listening() as woken, suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.process.running:
                    woken.clear()
                    try:
                        async with asyncio.timeout(_PAUSE if self.output.has_news else None):
                            await woken.wait()
                    except TimeoutError:
                        return

    @contextmanager
    def _listening(self) -> Generator[asyncio.Event]:
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # The loop is closed: there is no waiter any more.
                loop.call_soon_threadsafe(woken.set)

        with self._lock:
            self._listeners.append(wake)
        try:
            yield woken
        finally:
            with self._lock:
                self._listeners.remove(wake)

    async def kill(self) -> None:
        self.killed = self.process.running
        await self.process.kill()


class EarlierShell(Struct, frozen=True):
    """A background command from before the session was resumed."""

    name: str
    command: str
    output: str | None
    """The file with its output."""
    end_is_known: bool = False


def started(shell: Shell, ends: str) -> str:
    """What the model reads when a command was started, which `ends` at the latest. `earlier_shells` parses it."""
    begun = f"Started in the background as {shell.name}: read its output with BashOutput."
    text = f"{begun} It ends with KillShell, or {ends}."
    whole = shell.output.whereabouts()
    return f"{text} All its output goes to {whole}" if whole else text


_STARTED = lazy_regex(r"^Started in the background as (bash_\d+): .*?(?: All its output goes to (.+))?$", re.MULTILINE)
_ENDED = lazy_regex(
    r"^\[(bash_\d+): (?!running\b)|^(bash_\d+) (?:and everything|was over)|command (bash_\d+) \(", re.MULTILINE
)


def earlier_shells(messages: Sequence[Message]) -> tuple[EarlierShell, ...]:
    """The background commands mentioned in a conversation. None of them outlives its session."""
    found: dict[str, EarlierShell] = {}
    ended: set[str] = set()
    for block in (block for message in messages for block in message.blocks):
        if isinstance(block, ToolBlock) and block.name == "Bash" and block.parameters.get("run_in_background"):
            if started := _STARTED.search(block.result or ""):
                name, output = started.groups()
                found[name] = EarlierShell(name, str(block.parameters.get("command", "")), output)
        elif isinstance(block, ToolBlock) and block.name in ("BashOutput", "KillShell"):
            ended.update(filter(None, (name for match in _ENDED.findall(block.result or "") for name in match)))
        elif isinstance(block, TextBlock) and block.origin == HARNESS:
            ended.update(filter(None, (name for match in _ENDED.findall(block.content) for name in match)))
    return tuple(EarlierShell(one.name, one.command, one.output, one.name in ended) for one in found.values())


_RESUMED = "The session was resumed: commands start in the project again"
_BACK = r"^\[Commands now start in /.* again\]$"
_MOVED = lazy_regex(rf"^\[?Commands (?:now )?start in (/.*?)\.(?: Relative paths |$)|{_BACK}|{_RESUMED}", re.MULTILINE)


def directory_left(messages: Sequence[Message]) -> str | None:
    """Where commands last started, according to a conversation. None: where they start again after resuming."""
    texts = (
        text
        for message in messages
        for block in message.blocks
        if (text := _text_of_commands(message, block)) and "ommands " in text
    )
    found = [moved for text in texts for moved in _MOVED.findall(text)]
    return found[-1] or None if found else None


def _text_of_commands(message: Message, block: Block) -> str | None:
    """Texts that say where commands start: their results, our own notes, and the facts added to a summary."""
    if isinstance(block, ToolBlock):
        return block.result if block.name == "Bash" else None
    if not isinstance(block, TextBlock):
        return None
    beside_summary = message.role == "user" and block.source == "model"
    return block.content if block.origin == HARNESS or beside_summary else None


class Shells:
    """The commands that Bash starts, BashOutput reads and KillShell ends.

    `earlier` are the background commands from before the session was resumed, `left` is the directory that commands
    started in then.
    """

    def __init__(self, earlier: Sequence[EarlierShell] = (), left: str | None = None) -> None:
        self._left = left
        self._orphans: Orphans | None = None
        self._shells: dict[str, Shell] = {}
        self._earlier = {shell.name: shell for shell in earlier}
        self._untold = [shell for shell in earlier if not shell.end_is_known]
        # A name identifies one command, even after the session was resumed.
        self._started = max((int(shell.name.removeprefix("bash_")) for shell in earlier), default=0)

    @property
    def any_started(self) -> bool:
        """Whether this session, or the one it continues, has run a command in the background."""
        return self._started > 0

    def start(self, command: str, launch: "Launch", context: ToolContext) -> Shell:
        """Raises `ToolInputError` if too many are running, `OSError` or `RuntimeError` if resources have run out."""
        if sum(shell.process.running for shell in self._shells.values()) >= _AT_ONCE:
            raise ToolInputError(f"{_AT_ONCE} commands already run in the background: end some with KillShell first")
        from wave_agent.tools.output import NoFile, Output, PrivateFile, printed_limit  # lazy: see above

        self._started += 1
        name = f"bash_{self._started}"
        file = (NoFile if context.hold else PrivateFile)(context.outputs, "background")
        output = Output(file, limit=printed_limit(context), always_in_file=not context.hold)
        try:
            self._shells[name] = Shell(name, command, launch, output)
        except (OSError, RuntimeError):
            output.finish()
            raise
        return self._shells[name]

    def find(self, name: str) -> Shell:
        """Raises a `ToolInputError` that lists the existing ones."""
        if earlier := self._earlier.get(name):
            where = f" Its output is in {earlier.output}." if earlier.output else ""
            raise ToolInputError(
                f"{name} ({_short(earlier.command)}) ended with the earlier session, before this one was resumed."
                f"{where} Start it again with Bash if it is still needed."
            )
        if name not in self._shells:
            known = f"there are {', '.join(self._shells)}" if self._shells else "none was started in this session"
            raise ToolInputError(f'No background command "{name}"{did_you_mean(name, self._shells)}: {known}')
        return self._shells[name]

    def take_reports(self) -> list[str]:
        """Reports, once, each command that has ended without the model knowing."""
        gone, self._untold = self._untold, []
        reports = [
            f"The background command {one.name} ({_short(one.command)}) ended with the earlier session." for one in gone
        ]
        if self._left is not None:
            reports.append(f"{_RESUMED}, no longer in {self._left}.")
            self._left = None
        for shell in self._shells.values():
            if not (shell.end_is_known or shell.process.running):
                shell.end_is_known = True
                news = "Read its output with BashOutput" if shell.output.has_news else "It printed nothing new"
                reports.append(f"The background command {shell.name} ({_short(shell.command)}) {shell.state}. {news}.")
        return reports

    def running(self) -> list[str]:
        """Each command that is still running, on one line."""
        return [f"{one.name} ({_short(one.command)})" for one in self._shells.values() if one.process.running]

    def is_busy(self) -> bool:
        """A command runs in the background, or has left something running."""
        if any(one.process.running for one in self._shells.values()):
            return True
        return self._orphans is not None and self._orphans.any_alive()

    def watch(self) -> "StrayWatch":
        """For one command, in the foreground or background: finds what it leaves running."""
        if self._orphans is None:
            from wave_agent.tools.stray_processes import Orphans  # lazy: a session may never run a command

            self._orphans = Orphans()
        return self._orphans.watch()

    def end_orphans(self) -> str:
        """Ends what commands left running. Returns a notice for the user, or nothing."""
        return self._orphans.close() if self._orphans is not None else ""

    async def close(self) -> None:
        """Kills all of them, and waits until they are dead."""
        await asyncio.gather(*(shell.kill() for shell in self._shells.values() if shell.process.running))


def _short(command: str) -> str:
    line = " ".join(strip_controls(command).split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
