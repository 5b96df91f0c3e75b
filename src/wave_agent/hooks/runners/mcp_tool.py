"""MCP hooks: calls a tool of an MCP server and treats its text like the output of a command.

Loaded only if the settings contain such a hook.
"""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from msgspec import Struct

from wave_agent.errors import WaveError
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.execution import HookExecutionResult, HookJob
from wave_agent.lazy_regex import lazy_regex
from wave_agent.text import one_line

_CAP = 1 << 20
"""Maximum characters of an answer. A longer one is a failure: half a decision is not a decision."""
_SHOWN = 500
"""Characters of a failed tool's text in the message."""
_VARIABLE = lazy_regex(r"\$\{([A-Za-z_]\w*(?:\.[^{}.]+)*)\}")
"""`${tool_input.file_path}`: a field of the event, and the way into it."""


class ServerAnswer(Struct, frozen=True):
    """What a server's tool returned."""

    text: str
    is_error: bool = False


AskServer = Callable[[str, str, Mapping[str, Any], Layer, str], Awaitable[ServerAnswer]]
"""(server, tool, arguments, the hook's layer, `traceparent`) → answer. Raises a `WaveError` if the server cannot be
asked. No hooks fire for the call."""


async def no_servers(
    server: str, _tool: str, _arguments: Mapping[str, Any], _layer: Layer, _trace: str = ""
) -> ServerAnswer:
    """For runs without a session."""
    raise WaveError(f'the MCP server "{server}" is not connected here: no session with MCP servers is running')


class McpToolRunner:
    """Runs hooks of kind `mcp_tool`."""

    def __init__(self, ask: AskServer = no_servers) -> None:
        self._ask = ask

    async def run(self, job: HookJob) -> HookExecutionResult:
        """Run the job. Raises only `CancelledError`."""
        started = time.monotonic()
        stdout, error, timed_out = "", None, False
        try:
            async with asyncio.timeout(job.timeout):
                stdout = await self._answer(job)
        except TimeoutError:
            timed_out = True
        except WaveError as failure:
            error = str(failure)
        done = error is None and not timed_out
        return HookExecutionResult(
            exit_code=0 if done else None,
            stdout=stdout,
            error=error,
            by_server=error is not None,
            timed_out=timed_out,
            duration=(time.monotonic() - started) * 1000,
        )

    async def _answer(self, job: HookJob) -> str:
        call = job.call
        if call is None:
            raise WaveError("the hook names no tool")
        event: Any = json.loads(job.stdin or b"{}")
        arguments = filled(json.loads(call.input), cast(Mapping[str, Any], event))
        answer = await self._ask(call.server, call.tool, arguments, Layer(job.layer), job.traceparent)
        if answer.is_error:
            raise WaveError(
                f"{call.tool} of {call.server} failed: {one_line(answer.text, _SHOWN) or 'no reason given'}"
            )
        if len(answer.text) > _CAP:
            raise WaveError(f"{call.tool} of {call.server} returned more than {_CAP:,} characters")
        return answer.text.strip()


def filled(value: Any, event: Mapping[str, Any]) -> Any:
    """The value with its variables replaced by fields of the event, at any depth. Text that is exactly one variable
    becomes the field as it is, whatever its type; inside other text, a field is written as text or JSON. Raises
    `WaveError` if the event has no such field: without it, the tool would judge something else."""
    if isinstance(value, str):
        if whole := _VARIABLE.fullmatch(value):
            return _field(event, whole[1])
        return _VARIABLE.sub(lambda found: _as_text(_field(event, found[1])), value)
    if isinstance(value, dict):
        return {key: filled(one, event) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [filled(one, event) for one in cast("list[Any]", value)]
    return value


def _field(event: Mapping[str, Any], path: str) -> Any:
    """Raises `WaveError` if there is none."""
    found: Any = event
    for step in path.split("."):
        if isinstance(found, Mapping) and step in found:
            found = cast(Mapping[str, Any], found)[step]
        elif isinstance(found, list) and re.fullmatch(r"\d{1,6}", step) and int(step) < len(cast("list[Any]", found)):
            found = cast("list[Any]", found)[int(step)]
        else:
            raise WaveError(f"the event has no field {path}")
    return found


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
