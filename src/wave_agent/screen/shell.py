"""`!`: the user's shell line. No hook or rule applies to it; its output is sent with the next prompt."""

from collections.abc import Callable, Mapping
from pathlib import Path

from wave_agent.system.credentials import without_credentials
from wave_agent.tools.base import ToolContext, ToolResult
from wave_agent.tools.bash import Bash
from wave_agent.tools.shells import Shells

LONGEST = 600_000
"""Timeout in milliseconds; Esc ends the line earlier."""


class UserShell:
    """Runs lines one after another; each starts in the directory where the previous one ended."""

    def __init__(self, project: str, environment: Mapping[str, str], outputs: Path) -> None:
        self._bash = Bash(Shells())
        kept = without_credentials(environment)
        self._context = ToolContext(project_dir=Path(project), environment=kept, outputs=outputs)

    async def run(self, command: str, emit: Callable[[str], None]) -> ToolResult:
        """Cancelling ends the command and all its child processes."""
        arguments = self._bash.parse({"command": command, "timeout": LONGEST})
        context = ToolContext(
            project_dir=self._context.project_dir,
            environment=self._context.environment,
            outputs=self._context.outputs,
            emit=emit,
        )
        return await self._bash.run(arguments, context)

    async def close(self) -> None:
        await self._bash.close()
