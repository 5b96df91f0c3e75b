"""KillShell: ends a background command."""

from typing import Any, ClassVar

from msgspec import Struct

from wave_agent.permissions.decision import ToolKind
from wave_agent.tools.base import BuiltinTool, ToolContext, ToolResult
from wave_agent.tools.shells import Shells


class KillShellInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    shell_id: str


class KillShell(BuiltinTool):
    name: ClassVar[str] = "KillShell"
    description: ClassVar[str] = "Ends a background command and everything it started."
    dispensable: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = ToolKind.ACTS
    own: ClassVar[bool] = True
    Input: ClassVar[type[Struct]] = KillShellInput

    def __init__(self, shells: Shells) -> None:
        self._shells = shells

    def is_of_use(self) -> bool:
        return self._shells.any_started

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        call: KillShellInput = arguments
        shell = self._shells.find(call.shell_id)
        shell.end_is_known = True
        if not shell.process.running:
            return ToolResult(
                content=f"{shell.name} was over already: {shell.state}.", response={"shell_id": shell.name}
            )
        await shell.kill()
        return ToolResult(
            content=f"{shell.name} and everything it started were ended. BashOutput returns its remaining output.",
            response={"shell_id": shell.name},
        )
