"""BashOutput: the new output of a background command."""

from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from wave_agent.permissions.decision import ToolKind
from wave_agent.text import strip_controls
from wave_agent.tools.base import BuiltinTool, SameResult, ToolContext, ToolResult
from wave_agent.tools.shells import Shells

_LONGEST_WAIT = 600_000


class BashOutputInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bash_id: str
    wait_ms: Annotated[
        int,
        Meta(ge=0, description="Wait up to this long for the end, or for output; at most 600000."),
    ] = 0


class BashOutput(BuiltinTool):
    name: ClassVar[str] = "BashOutput"
    description: ClassVar[str] = "Returns new output of a background command, and whether it is still running."
    dispensable: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = ToolKind.READS
    own: ClassVar[bool] = True
    polls: ClassVar[bool] = True
    Input: ClassVar[type[Struct]] = BashOutputInput

    def __init__(self, shells: Shells) -> None:
        self._shells = shells

    def is_of_use(self) -> bool:
        return self._shells.any_started

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        call: BashOutputInput = arguments
        shell = self._shells.find(call.bash_id)
        if call.wait_ms:
            await shell.wait(min(call.wait_ms, _LONGEST_WAIT) / 1000)
        ending = shell.process.ending  # Before the output is taken: after the end there is no more output.
        state = shell.state if ending else "running"
        shell.end_is_known = shell.end_is_known or ending is not None
        exit_code = ending.exit_code if ending else None
        output = shell.output.take()
        shown = strip_controls(output).strip("\n") or "(no new output)"
        return ToolResult(
            content=f"{shown}\n[{shell.name}: {state}]",
            response={
                "bash_id": shell.name,
                "command": shell.command,
                "status": state,
                "output": output,
                "exit_code": exit_code,
            },
            also_of=SameResult(
                tool="Bash",
                tool_input={"command": shell.command, "run_in_background": True},
                success=not exit_code,
                response={
                    "stdout": output,
                    "stderr": "",
                    "exit_code": exit_code,
                    "interrupted": shell.killed,
                    "output": output,
                    "backgroundTaskId": shell.name,
                },
                text_fields=("stdout", "output"),
            ),
        )
