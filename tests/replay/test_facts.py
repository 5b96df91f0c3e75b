"""What is counted of a transcript: the same as its timeline shows."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from tests.replay.recorded import commands, record
from wave_agent.replay.facts import CallFact, TranscriptFacts, read_facts
from wave_agent.replay.lines import lines_of
from wave_agent.replay.tally import DeniedTally, day_of, decode, tally
from wave_agent.replay.timeline import timeline


def read(*records: Any) -> TranscriptFacts:
    return read_facts([one if isinstance(one, bytes) else json.dumps(one).encode() for one in records])


def run(**facts: Any) -> dict[str, Any]:
    named = {"event": "Stop", "name": "a", "layer": "user", "outcome": "none", "duration_ms": 1.23456}
    return {"type": "system", "subtype": "hook_run", "timestamp": "2026-01-31T23:59:59Z", **named, **facts}


def test_turns_and_runs_are_those_of_the_timeline(project: Path) -> None:
    guard = "case $(cat) in *secret*) exit 2;; esac"
    hooks = {
        "UserPromptSubmit": [{"hooks": [{"name": "early", "command": "true"}]}],
        "PreToolUse": [{"hooks": [{"name": "guard", "command": guard}]}],
        "Stop": [{"hooks": [{"name": "late", "command": "true", "async": True}]}],
    }
    path = record(project, [commands("true", "echo secret"), "Done.", "Hi."], hooks=hooks, prompts=("Go.", "Again."))
    facts, shown = read_facts(path.read_bytes().splitlines()), timeline(path.stem, lines_of(path))
    assert facts.turns == {turn.number: (pytest.approx(turn.start), pytest.approx(turn.end)) for turn in shown.turns}
    runs = sorted((span.run.name, span.turn, span.start) for span in shown.spans if span.run is not None)
    assert sorted((one.name, one.turn, one.at) for one in facts.runs) == runs
    assert [(call.tool, call.success, call.by) for call in facts.calls.values()] == [
        ("Bash", True, ""), ("Bash", False, "guard"),
    ]  # fmt: skip
    found = tally(facts)
    assert (found.prompts, found.calls, facts.prompts) == (2, 2, ["Go.", "Again."])
    assert found.denied == [DeniedTally(day=found.hooks[0].day, tool="Bash", text="echo secret", by="guard")]


def test_the_first_line_tells_who_and_where(project: Path) -> None:
    head = json.loads(record(project, ["Hi."]).read_text().splitlines()[0])
    assert head["user"] == tally(read(head)).user != ""
    assert head["hostname"] == tally(read(head)).hostname != ""
    assert "repository" not in head


def test_a_lone_surrogate_a_torn_line_and_a_wrong_type_cost_only_their_line() -> None:
    facts = read(
        {"type": "user", "message": {"content": "\ud800 ok"}, "timestamp": "2026-01-31T00:00:00Z"},
        b'{"type":"system","subtype":"hook_run",',
        b'{"type":"system","subtype":"hook_run","event":5}',
        b"[" * 100_000,
        b"not JSON \xff",
        {"type": "user", "message": 5},
        {"type": "user"},
        {"type": "assistant"},
        run(duration_ms="x"),
        run(),
        {"type": "unknown"},
    )
    assert (facts.prompts, len(facts.runs)) == (["? ok"], 1)


def test_transcripts_of_other_agents_count_as_well() -> None:
    text = [{"type": "text", "text": "Tidy"}, {"type": "text", "text": "up."}]
    facts = read(
        {"type": "user", "cwd": "/srv/app", "message": {"content": text}},
        {"type": "user", "isMeta": True, "message": {"content": "a caveat"}},
        {"type": "user", "source": "hook", "message": {"content": "context"}},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "1", "name": "Bash", "input": [1]}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "other"}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]},
         "changed_files": ["a", "b"], "started": "2026-01-31T00:00:00Z", "duration_ms": 5},
        {"type": "system", "subtype": "notice"},
        {"type": "system", "subtype": "prompt_blocked"},
        {"type": "system", "subtype": "usage", "requests": 2, "cost_usd": 0.5},
        {"type": "system", "subtype": "usage", "requests": "two"},
    )  # fmt: skip
    [call] = facts.calls.values()
    assert (facts.head.cwd, facts.prompts, facts.blocked_prompts) == ("/srv/app", ["Tidy\nup.", ""], 1)
    assert (call.success, call.changed_files, call.duration_ms, call.arguments) == (True, 2, 5, {})
    assert (facts.spent.requests, facts.spent.cost_usd) == (2, 0.5)


def test_a_cost_that_is_unknown_once_is_unknown_in_all() -> None:
    usage = {"type": "system", "subtype": "usage"}
    assert read({**usage, "cost_usd": None}, {**usage, "cost_usd": 1}).spent.cost_usd is None


def test_durations_are_kept_to_three_digits_per_day() -> None:
    facts = read(
        run(), run(duration_ms=1.2312), run(started="2026-02-01T00:00:00Z", outcome="deny", tokens=7),
        run(outcome="failure", failure="exit", let_through=True, is_async=True), run(started="0001-01-01T00:00:00Z"),
    )  # fmt: skip
    first, second, odd = tally(facts).hooks
    assert (first.day, first.runs, first.times, first.counts) == ("2026-01-31", 3, [1.23], [3])
    assert (first.failures, first.let_through, first.waited_ms) == (1, 1, pytest.approx(1.23456 + 1.2312))
    assert (second.day, second.blocks, second.tokens) == ("2026-02-01", 1, 7)
    assert odd.runs == 1
    assert day_of(1e30) == "1970-01-01"


def test_of_one_session_a_hundred_denied_calls_are_kept() -> None:
    part = {"type": "tool_use", "name": "Bash"}
    calls = [{**part, "id": str(at), "input": {"command": f"rm {at}"}} for at in range(101)]
    calls += [{**part, "id": "again", "input": {"command": "rm 1"}}]
    results = [
        {"type": "user", "error": "Permission denied", "origins": [None],
         "message": {"content": [{"type": "tool_result", "tool_use_id": call["id"], "is_error": True}]}}
        for call in calls
    ]  # fmt: skip
    denied = tally(read({"type": "assistant", "message": {"content": calls}}, *results)).denied
    assert (len(denied), denied[1].count, denied[2].count) == (100, 2, 1)


def test_a_surrogate_deep_in_a_line_and_an_input_that_is_not_json_are_no_problem() -> None:
    content = [{"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "echo \ud800", "all": [1, True]}}]
    [call] = read({"type": "assistant", "message": {"content": content}}).calls.values()
    assert call.arguments == {"command": "echo ?", "all": [1, True]}
    assert CallFact(id="", tool="", input=Raw(b"{"), at=0, turn=0).arguments == {}


@pytest.mark.parametrize("data", [None, b"", b"{", b"[5]", b'["x"]', b"\xff"])
def test_a_tally_that_is_damaged_is_none(data: bytes | None) -> None:
    assert decode(data) is None
