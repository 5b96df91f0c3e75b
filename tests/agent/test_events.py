"""What front ends and programs are given: the JSON of events, hook runs and results."""

import json
from typing import Any, get_args

import pytest

from tests.rows import rows
from wave_agent.agent.result import Result, Violation
from wave_agent.events import (
    Error,
    Event,
    HookFinished,
    HookRun,
    HookStarted,
    ModelWoken,
    Notice,
    PermissionRequested,
    ReasoningDelta,
    SessionStarted,
    SubagentFinished,
    SubagentStarted,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    event_to_dict,
)
from wave_agent.messages import Message, TextBlock
from wave_agent.models.base import Usage


def hook_run(**facts: Any) -> HookRun:
    common: dict[str, Any] = {
        "event": "PreToolUse",
        "name": "guard",
        "command": "./guard.sh",
        "layer": "project",
        "tool_use_id": "one",
        "exit_code": 2,
        "outcome": "deny",
        "failure": None,
        "mode": "enforce",
        "look": 1,
        "rewrote": False,
        "let_through": False,
        "duration_ms": 1.5,
    }
    return HookRun(**{**common, **facts})


RUN_SHAPE = {
    "event": "PreToolUse",
    "name": "guard",
    "command": "./guard.sh",
    "layer": "project",
    "tool_use_id": "one",
    "exit_code": 2,
    "outcome": "deny",
    "failure": None,
    "mode": "enforce",
    "look": 1,
    "rewrote": False,
    "let_through": False,
    "agent_id": None,
    "agent_type": None,
    "duration_ms": 1.5,
}

EXAMPLES: dict[type, tuple[Event, dict[str, Any]]] = {
    SessionStarted: (
        SessionStarted(session_id="s", transcript_path="/t"),
        {"type": "session_started", "session_id": "s", "transcript_path": "/t", "resumed": False},
    ),
    TurnStarted: (TurnStarted(prompt="hi"), {"type": "turn_started", "prompt": "hi"}),
    TextDelta: (TextDelta(text="a"), {"type": "text_delta", "text": "a"}),
    ReasoningDelta: (ReasoningDelta(text="a"), {"type": "reasoning_delta", "text": "a"}),
    ToolStarted: (
        ToolStarted(id="1", name="Bash", parameters={"command": "ls"}),
        {"type": "tool_started", "id": "1", "name": "Bash", "parameters": {"command": "ls"}},
    ),
    ToolOutput: (ToolOutput(id="1", text="a"), {"type": "tool_output", "id": "1", "text": "a"}),
    ToolFinished: (
        ToolFinished(id="1", success=True, result="ok"),
        {"type": "tool_finished", "id": "1", "success": True, "result": "ok"},
    ),
    HookStarted: (
        HookStarted(event="Stop", name="tests", tool_use_id=None),
        {"type": "hook_started", "event": "Stop", "name": "tests", "tool_use_id": None, "status_message": ""},
    ),
    HookFinished: (HookFinished(run=hook_run(reason="no")), {"type": "hook_finished", **RUN_SHAPE}),
    ModelWoken: (
        ModelWoken(event="PostToolUse", hook="tests"),
        {"type": "model_woken", "event": "PostToolUse", "hook": "tests"},
    ),
    PermissionRequested: (
        PermissionRequested(
            id="1", tool_name="Bash", tool_input={}, reason="why", does="reads a", effects={"reads": ["/a"]}
        ),
        {
            "type": "permission_requested",
            "id": "1",
            "tool_name": "Bash",
            "tool_input": {},
            "reason": "why",
            "does": "reads a",
            "effects": {"reads": ["/a"]},
        },
    ),
    Notice: (Notice(content="look"), {"type": "notice", "content": "look", "level": "warning"}),
    Error: (Error(content="broken"), {"type": "error", "content": "broken"}),
    SubagentFinished: (
        SubagentFinished(agent_id="a1", agent_type="explore", tool_use_id="1", status="completed"),
        {
            "type": "subagent_finished",
            "agent_id": "a1",
            "agent_type": "explore",
            "tool_use_id": "1",
            "status": "completed",
        },
    ),
    SubagentStarted: (
        SubagentStarted(agent_id="a1", agent_type="explore", description="look", tool_use_id="1"),
        {
            "type": "subagent_started",
            "agent_id": "a1",
            "agent_type": "explore",
            "description": "look",
            "tool_use_id": "1",
        },
    ),
    TurnEnded: (TurnEnded(status="completed"), {"type": "turn_ended", "status": "completed"}),
}


def test_every_event_has_an_example_here() -> None:
    assert set(EXAMPLES) == set(get_args(Event))


@rows("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_an_event_becomes_the_line_of_stream_json_that_is_documented(kind: type) -> None:
    event, line = EXAMPLES[kind]
    assert event_to_dict(event) == line
    assert json.loads(json.dumps(event_to_dict(event))) == line


@rows("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_an_event_is_frozen(kind: type) -> None:
    event, _ = EXAMPLES[kind]
    with pytest.raises(AttributeError):
        setattr(event, event.__struct_fields__[0], "changed")


def test_the_json_of_a_hook_run_is_exactly_the_documented_one() -> None:
    """What the journal knows beyond that (texts, inputs, hashes) stays in the journal."""
    everything = hook_run(
        reason="why", is_async=True, before={"a": 1}, after={"a": 2}, original_sha256="00", deferred=("later",)
    )
    assert everything.to_dict() == RUN_SHAPE


def test_the_json_of_a_result_is_exactly_the_documented_one() -> None:
    result = Result(
        status="completed",
        text="done",
        error=None,
        usage=Usage(3, 4) + Usage(1, 1),
        hooks=(hook_run(let_through=True), hook_run(), hook_run(let_through=True)),
        turns=2,
        messages=(Message("user", (TextBlock("hi", "user"),)),),
        session_id="s",
        transcript_path="/t",
        duration_ms=12,
        cost_usd=0.1234567,
        violations=(Violation(path="/p/x", tool_use_id="call_1", restored=True, kept_at=None),),
    )
    assert json.loads(json.dumps(result.to_dict())) == {
        "type": "result",
        "status": "completed",
        "session_id": "s",
        "transcript_path": "/t",
        "result": "done",
        "error": None,
        "turns": 2,
        "messages": [{"role": "user", "blocks": [{"type": "text", "content": "hi", "source": "user"}]}],
        "hooks": [{**RUN_SHAPE, "let_through": True}, RUN_SHAPE, {**RUN_SHAPE, "let_through": True}],
        "hooks_failed_open": 2,
        "usage": {
            "input_tokens": 4,
            "output_tokens": 5,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "hook_tokens": 0,
        },
        "cost_usd": 0.123457,
        "violations": [{"path": "/p/x", "tool_use_id": "call_1", "restored": True, "kept_at": None}],
        "duration_ms": 12,
    }
