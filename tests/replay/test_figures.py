"""`wave hooks stats`, on the transcripts of real sessions."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.replay.recorded import commands, record, wave_hooks
from tests.rows import rows as each_row
from wave_agent.replay.figures import figures, percentile
from wave_agent.replay.tally import HookTally

FLAKY = 'n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) > count; [ "$n" = 1 ] && exit 3; exit 0'


def hooks(event: str = "PreToolUse", **named: str) -> dict[str, Any]:
    return {event: [{"hooks": [{"name": name, "command": command} for name, command in named.items()]}]}


def rows(project: Path, *arguments: str) -> dict[str, Any]:
    done = wave_hooks(project, "stats", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)["hooks"]}


def test_without_a_session_it_says_so_and_is_content(project: Path) -> None:
    done = wave_hooks(project, "stats")
    assert (done.returncode, done.stdout) == (0, "There are no sessions to analyse.\n")
    assert json.loads(wave_hooks(project, "stats", "--json").stdout) == {"sessions": 0, "hooks": []}


def test_runs_blocks_and_failures_are_counted_per_hook(project: Path) -> None:
    deny = 'case $(cat) in *secret*) echo "no" >&2; exit 2;; esac'
    replies = [commands("true"), commands("echo secret"), commands("true"), "Done."]
    record(project, replies, hooks=hooks(guard=deny, broken="exit 7", sound="true"))
    found = rows(project)
    counts = {name: (row["runs"], row["blocks"], row["failures"], row["let_through"]) for name, row in found.items()}
    assert counts == {"guard": (3, 1, 0, 0), "broken": (3, 0, 3, 3), "sound": (3, 0, 0, 0)}
    assert found["broken"]["marks"][-1] == "failing"
    assert all(0 < row["p50_ms"] <= row["p95_ms"] <= row["max_ms"] for row in found.values())


def test_a_hook_that_fails_now_and_then_is_flaky(project: Path) -> None:
    record(project, [commands("true"), commands("true"), commands("true"), "Done."], hooks=hooks(moody=FLAKY))
    row = rows(project)["moody"]
    assert (row["runs"], row["failures"]) == (3, 1)
    assert "flaky" in row["marks"]
    assert "failing" not in row["marks"]


def test_a_hook_that_holds_the_turn_up_is_slow_and_check_makes_it_an_error(project: Path) -> None:
    record(project, ["Done."], hooks=hooks("Stop", laggard="sleep 0.6"))
    row = rows(project)["laggard"]
    assert row["marks"] == ["slow"]
    assert row["share"] > 0.2
    assert wave_hooks(project, "stats").returncode == 0
    checked = wave_hooks(project, "stats", "--check")
    assert checked.returncode == 1
    assert "slow" in checked.stdout


@each_row(
    ("waited_ms", "turn_seconds", "sessions", "marks"),
    [
        (9.0, 0.02, 1, ()),  # nearly half of a turn that takes no time
        (499.0, 1.0, 1, ()),
        (500.0, 1.0, 1, ("slow",)),
        (500.0, 3.0, 1, ()),
        (500.0, 1.0, 2, ()),
        (1000.0, 2.0, 2, ("slow",)),
    ],
)
def test_a_share_counts_once_a_session_waits_for_half_a_second(
    waited_ms: float, turn_seconds: float, sessions: int, marks: tuple[str, ...]
) -> None:
    tally = HookTally(
        day="2026-01-31",
        event="PreToolUse",
        name="often",
        layer="user",
        mode="enforce",
        sessions=sessions,
        runs=100,
        waited_ms=waited_ms,
        turn_seconds=turn_seconds,
        times=[9.0],
        counts=[100],
    )
    assert figures([tally])[0].marks == marks


def test_an_async_hook_holds_nobody_up(project: Path) -> None:
    late = {"Stop": [{"hooks": [{"name": "late", "command": "sleep 0.6", "async": True}]}]}
    record(project, ["Done."], hooks=late)
    row = rows(project)["late"]
    assert (row["share"], row["marks"]) == (0, [])
    assert row["max_ms"] > 500


def test_all_counts_the_sessions_of_other_projects_too(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    record(project, ["Done."], hooks=hooks("Stop", one="true"))
    record(other, ["Done."], hooks=hooks("Stop", two="true"))
    assert set(rows(project)) == {"one"}
    assert set(rows(project, "--all")) == {"one", "two"}


def test_sessions_of_long_ago_are_left_out_with_since(project: Path) -> None:
    old = record(project, ["Done."], hooks=hooks("Stop", one="true"))
    record(project, ["Done."], hooks=hooks("Stop", two="true"))
    os.utime(old, (1, 1))
    assert set(rows(project, "--since", "7d")) == {"two"}


@pytest.mark.parametrize("span", ["7", "d", "-1d", "7y", ""])
def test_a_span_that_is_none_is_a_wrong_command_line(project: Path, span: str) -> None:
    done = wave_hooks(project, "stats", "--since", span)
    assert done.returncode == 2
    assert "such as 7d" in done.stderr


def test_a_journal_of_an_older_version_counts_as_well(project: Path) -> None:
    path = record(project, ["Done."], hooks=hooks("Stop", one="true"))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert any(line.pop("started", None) for line in lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "{torn")
    assert rows(project)["one"]["runs"] == 1


@pytest.mark.parametrize(
    ("values", "part", "expected"),
    [
        ([], 0.5, 0.0),
        ([3.0], 0.95, 3.0),
        ([4.0, 1.0, 2.0, 3.0], 0.5, 2.0),
        ([float(n) for n in range(1, 101)], 0.95, 95.0),
    ],
)
def test_a_percentile_is_a_value_that_was_measured(values: list[float], part: float, expected: float) -> None:
    assert percentile(values, part) == expected
