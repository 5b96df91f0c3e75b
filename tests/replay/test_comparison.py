"""What the journal says that hooks decided, and what differs from it."""

import json
from typing import Any

from tests.rows import rows
from wave_agent.events import HookRun
from wave_agent.hooks.events import Decision, HookEvent
from wave_agent.hooks.verdicts import Outcome
from wave_agent.replay.comparison import (
    ALLOWED,
    BLOCKED,
    DECIDED,
    FAILED,
    REWRITTEN,
    UNCHANGED,
    Judgement,
    kind_of,
    present,
    recorded,
)
from wave_agent.replay.lines import parse_lines
from wave_agent.replay.timeline import seen_by, timeline, verdict_of

RUN = HookRun(
    event="PreToolUse",
    name="guard",
    command="./guard.sh",
    layer="user",
    tool_use_id="1",
    exit_code=0,
    outcome="none",
    failure=None,
    mode="enforce",
    look=1,
    rewrote=False,
    let_through=False,
    duration_ms=1.0,
)


def run(**fields: Any) -> HookRun:
    return HookRun(**{**{name: getattr(RUN, name) for name in RUN.__struct_fields__}, **fields})


@rows(
    ("fields", "decision"),
    [
        ({}, Decision.NONE),
        ({"outcome": "context"}, Decision.NONE),
        ({"outcome": "allow"}, Decision.ALLOW),
        ({"outcome": "ask"}, Decision.ASK),
        ({"outcome": "deny"}, Decision.BLOCK),
        ({"outcome": "block"}, Decision.BLOCK),
        ({"outcome": "stop"}, Decision.STOP),
        ({"outcome": "failure", "failure": "exit"}, Decision.BLOCK),
        ({"outcome": "failure", "failure": "exit", "let_through": True}, Decision.NONE),
        ({"outcome": "deny", "mode": "shadow"}, Decision.NONE),
        ({"outcome": "deny", "is_async": True}, Decision.NONE),
    ],
)
def test_a_run_decided_what_its_word_and_its_role_say(fields: dict[str, Any], decision: Decision) -> None:
    assert recorded([RUN, run(**fields)]).decision is decision


def test_the_strongest_word_of_an_event_counts_with_its_own_reasons() -> None:
    runs = [run(outcome="allow", reason="fine"), run(outcome="deny", reason="no"), run(outcome="deny", reason="never")]
    assert (recorded(runs).decision, recorded(runs).reason) == (Decision.BLOCK, "no\nnever")


@rows(
    ("before", "after", "kind"),
    [
        ({}, {}, UNCHANGED),
        ({}, {"decision": Decision.STOP}, BLOCKED),
        ({"decision": Decision.BLOCK}, {"decision": Decision.ASK}, ALLOWED),
        ({"decision": Decision.BLOCK}, {"decision": Decision.STOP}, DECIDED),
        ({}, {"decision": Decision.ALLOW}, DECIDED),
        ({"tool_input": {"a": 1, "b": 2}}, {"tool_input": {"b": 2, "a": 1}}, UNCHANGED),
        ({"tool_input": {"a": 1}}, {"tool_input": {"a": True}}, REWRITTEN),
        ({"tool_input": {"a": 1}}, {}, REWRITTEN),
        ({}, {"result": "x"}, REWRITTEN),
        ({"decision": Decision.BLOCK, "tool_input": {}}, {"decision": Decision.BLOCK}, UNCHANGED),
        ({}, {"decision": Decision.BLOCK, "failed": ("x",)}, FAILED),
    ],
)
def test_the_difference_is_named_in_the_order_in_which_it_matters(
    before: dict[str, Any], after: dict[str, Any], kind: str
) -> None:
    assert kind_of(Judgement(**before), Judgement(**after)) == kind


@rows(
    ("fields", "words", "readers"),
    [
        ({}, "none", ()),
        ({"outcome": "context"}, "context", ("model",)),
        ({"outcome": "deny"}, "deny", ("model",)),
        ({"outcome": "block", "event": "UserPromptSubmit"}, "block", ("user",)),
        ({"outcome": "block", "event": "SomethingNew"}, "block", ()),
        ({"outcome": "deny", "mode": "shadow"}, "deny (shadow)", ()),
        ({"outcome": "failure", "failure": "timeout"}, "failure (timeout)", ("user",)),
        ({"outcome": "failure", "failure": "exit", "let_through": True}, "failure (exit, let through)", ("user",)),
        ({"rewrote": True, "look": 2}, "none + rewrite on the second look", ()),
        ({"original_sha256": "x"}, "none + new result", ()),
        ({"outcome": "deny", "model": "m", "tokens": 1234}, "deny (asked m, 1,234 tokens)", ("model",)),
        ({"answer": {"ok": True}}, "none (asked a model)", ()),
    ],
)
def test_a_verdict_is_told_with_who_read_it(fields: dict[str, Any], words: str, readers: tuple[str, ...]) -> None:
    assert (verdict_of(run(**fields)), seen_by(run(**fields))) == (words, readers)


def test_what_a_hook_told_the_model_is_a_note_and_what_only_the_program_says_is_no_prompt() -> None:
    lines = [
        b'{"type":"user","source":"hook","message":{"content":"mind the gap"}}',
        b'{"type":"user","source":"hook","message":{"content":"x"},"origins":[{"event":"harness","hook":"wave"}]}',
        b'{"type":"user","isMeta":true,"message":{"content":"x"}}',
        b'{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"}]}}',
    ]
    note, ours, thought = timeline("s", parse_lines(lines)).spans
    assert (note.kind, note.title, note.seen_by) == ("note", "a hook tells the model: mind the gap", ("model",))
    assert ours.title == "Wave tells the model: x"
    assert (thought.kind, thought.title, thought.facts) == ("model", "(thinking)", {"reasoning": "hm"})


def test_what_hooks_decide_now() -> None:
    outcome = Outcome(event=HookEvent.PRE_TOOL_USE, decision=Decision.BLOCK)
    judged = present(outcome, [RUN, RUN], {"command": "ls"})
    assert (judged.decision, judged.hooks, judged.failed) == (Decision.BLOCK, ("guard",), ())


def test_a_call_is_shown_with_what_it_would_do() -> None:
    inputs = {"Bash": {"command": "rm -r a"}, "Odd": "x"}
    calls = [{"type": "tool_use", "id": name, "name": name, "input": given} for name, given in inputs.items()]
    results = [{"type": "tool_result", "tool_use_id": name} for name in inputs]
    lines = [
        {"type": "assistant", "cwd": "/p", "message": {"content": calls}},
        {"type": "user", "message": {"content": results}},
    ]
    spans = timeline("s", parse_lines([json.dumps(line).encode() for line in lines])).spans
    tools = [span for span in spans if span.kind == "tool"]
    assert [span.facts.get("does") for span in tools] == ["deletes a/", None]
