"""The commands of a session that run in the background."""

import asyncio

from wave_agent.text import did_you_mean
from wave_agent.tools.base import ToolContext, ToolInputError
from wave_agent.tools.output import Output, PrivateFile, printed_limit
from wave_agent.tools.process import Launch, Process, StreamName

_AT_ONCE = 32
"""Each takes a thread and a handful of descriptors."""


class Shell:
    """One background command."""

    def __init__(self, name: str, command: str, launch: Launch, output: Output) -> None:
        self.name = name
        self.command = command
        self.output = output
        self.killed = False
        self.process = Process(launch, self._receive, self._finish)

    def _receive(self, stream: StreamName, data: bytes) -> None:
        self.output.add(stream, data)

    def _finish(self) -> None:
        self.output.finish()

    @property
    def state(self) -> str:
        ending = self.process.ending
        if ending is None:
            return "running"
        return ending.error or ("killed" if self.killed else f"ended with exit code {ending.exit_code}")

    async def kill(self) -> None:
        self.killed = self.process.running
        await self.process.kill()


class Shells:
    """What Bash starts, BashOutput reads and KillShell ends."""

    def __init__(self) -> None:
        self._shells: dict[str, Shell] = {}
        self._started = 0

    def start(self, command: str, launch: Launch, context: ToolContext) -> Shell:
        """Raises `ToolInputError` when too many run, `OSError` or `RuntimeError` where resources have run out."""
        if sum(shell.process.running for shell in self._shells.values()) >= _AT_ONCE:
            raise ToolInputError(f"{_AT_ONCE} commands run in the background already: end some with KillShell first")
        self._started += 1
        name = f"bash_{self._started}"
        output = Output(PrivateFile(context.outputs, "background"), limit=printed_limit(context), always_in_file=True)
        try:
            self._shells[name] = Shell(name, command, launch, output)
        except (OSError, RuntimeError):
            output.finish()
            raise
        return self._shells[name]

    def find(self, name: str) -> Shell:
        """Raises `ToolInputError` that names those that there are."""
        if name not in self._shells:
            known = f"there are {', '.join(self._shells)}" if self._shells else "none was started in this session"
            raise ToolInputError(f'No background command "{name}"{did_you_mean(name, self._shells)}: {known}')
        return self._shells[name]

    async def close(self) -> None:
        """End them all, and wait until they are dead."""
        await asyncio.gather(*(shell.kill() for shell in self._shells.values() if shell.process.running))
