"""Figures count the same blocks and failures, whether they come from transcripts or from an export."""

import pytest

from wave_agent.events import HookRun
from wave_agent.hooks.events import BLOCK_WORDS, BLOCKING_WORDS
from wave_agent.replay.outcomes import FAILED, SAYS_NO, is_blocking, is_failure

RUNS = [
    ("deny", None, False), ("block", None, False), ("stop", None, False), ("stop", None, True), ("deny", None, True),
    ("none", None, False), ("none", "json", False), ("failure", "exit", False), ("ask", None, False),
    ("defer", None, False), ("allow", None, False), ("context", None, True),
]  # fmt: skip


def run(outcome: str, failure: str | None, is_async: bool) -> HookRun:
    return HookRun(
        event="PreToolUse", name="guard", command="guard", layer="user", tool_use_id=None, exit_code=0,
        outcome=outcome, failure=failure, is_async=is_async,
        mode="enforce", look=1, rewrote=False, let_through=False, duration_ms=1,
    )  # fmt: skip


def test_ending_the_turn_counts_as_a_block_and_what_nothing_waits_for_does_not() -> None:
    assert {"deny", "block"} == BLOCK_WORDS
    assert {"stop"} == BLOCKING_WORDS - BLOCK_WORDS
    assert [one[0] for one in RUNS if is_blocking(run(*one))] == ["deny", "block", "stop"]
    assert [one[:2] for one in RUNS if is_failure(run(*one))] == [("none", "json"), ("failure", "exit")]


def test_sql_says_the_same() -> None:
    duckdb = pytest.importorskip("duckdb")
    for outcome, failure, is_async in RUNS:
        row = "SELECT $1::VARCHAR AS outcome, $2::VARCHAR AS failure, $3::BOOLEAN AS is_async"
        found = duckdb.execute(f"SELECT {SAYS_NO}, {FAILED} FROM ({row})", [outcome, failure, is_async]).fetchone()
        one = run(outcome, failure, is_async)
        assert found == (is_blocking(one), is_failure(one))
