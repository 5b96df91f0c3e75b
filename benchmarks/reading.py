"""The cost of interpreting a hook's output, compared with parsing it with the standard library."""

import json

from benchmarks.measure import Claim, microseconds
from wave_agent.hooks.events import HookEvent
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.hooks.semantics import merge, read
from wave_agent.hooks.verdicts import RankedVerdict

OUTPUT = json.dumps({
    "systemMessage": "rewritten",
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "permissionDecisionReason": "safe",
        "updatedInput": {"command": "ls -la", "timeout": 5},
        "additionalContext": "the working tree is clean",
    },
})  # fmt: skip
RESULT = HookExecutionResult(exit_code=0, stdout=OUTPUT)


def read_and_merge(hooks: int) -> None:
    readings = [
        RankedVerdict(position=at, name="guard", verdict=read(HookEvent.PRE_TOOL_USE, RESULT, name="guard"))
        for at in range(hooks)
    ]
    merge(HookEvent.PRE_TOOL_USE, readings)


def claims() -> list[Claim]:
    floor = microseconds(lambda: json.loads(OUTPUT))
    one, fifty = microseconds(lambda: read_and_merge(1)), microseconds(lambda: read_and_merge(50), inner=1)
    return [
        Claim(name=name, value=value, unit="µs", limit=limit, floor_name="json.loads", floor=floor)
        for name, value, limit in (("read and merge, 1 hook", one, 50), ("read and merge, 50 hooks", fifty, 1000))
    ]
