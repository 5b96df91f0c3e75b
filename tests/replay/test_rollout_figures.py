"""The figures of a hook that is being rolled out: enforced in some sessions, shadow in the others."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.replay.recorded import commands, record, wave_hooks
from wave_agent.replay.export import export_sessions
from wave_agent.replay.export_place import ExportPlace
from wave_agent.replay.export_query import ask, export_overview, hook_figures
from wave_agent.replay.figures import HookFigures, figures, rolled_out
from wave_agent.replay.overview import overview
from wave_agent.replay.questions import QUESTIONS
from wave_agent.replay.report_page import report_page
from wave_agent.replay.tallies import Tallies
from wave_agent.replay.tally import SessionTally

GUARD = "case $(cat) in *secret*) echo no >&2; exit 2;; esac"
ENFORCED, SHADOW = 1, 0


def hooks(rollout: float, **more: Any) -> dict[str, Any]:
    return {"PreToolUse": [{"hooks": [{"name": "guard", "command": GUARD, "rollout": rollout, **more}]}]}


@pytest.fixture
def rolling(project: Path) -> Path:
    """Enforced in one session, which blocks once; shadow in two, one of which would have blocked two calls."""
    record(project, [commands("true", "echo secret"), "Done."], hooks=hooks(ENFORCED))
    record(project, [commands("echo secret", "echo secret 2", "true"), "Done."], hooks=hooks(SHADOW))
    record(project, [commands("true"), "Done."], hooks=hooks(SHADOW))
    return project


def counts(row: HookFigures | dict[str, Any]) -> tuple[Any, ...]:
    facts = row if isinstance(row, dict) else row.to_dict()
    return tuple(facts[key] for key in ("mode", "sessions", "blocked_sessions", "runs", "blocks", "would_block"))


COUNTS = [("enforce", 1, 1, 2, 1, 0), ("shadow", 2, 1, 4, 0, 2)]


def tallies(home: Path) -> list[SessionTally]:
    return list(Tallies(lambda _done, _total: None).of_projects(home, [*(home / "projects").iterdir()]))


def test_each_mode_has_its_own_figures(rolling: Path) -> None:
    found = json.loads(wave_hooks(rolling, "stats", "--json").stdout)["hooks"]
    assert [*map(counts, found)] == COUNTS


def test_the_table_compares_both(rolling: Path) -> None:
    head, columns, enforced, shadow, _, compared, *rows = wave_hooks(rolling, "stats").stdout.splitlines()
    assert head == "6 hook runs in 3 sessions"
    assert columns.split()[2:4] == ["runs", "blocks"]
    assert (enforced.split()[2:4], shadow.split()[2:4]) == (["2", "1"], ["4", "(2)"])
    assert (enforced.endswith("shadow"), shadow.endswith("shadow")) == (False, True)
    assert compared.split()[:3] == ["rolled", "out", "event"]
    assert [row.split()[2:10] for row in rows] == [
        ["enforce", "1", "1", "100.0%", "2", "1", "50.0%", "0"],
        ["shadow", "2", "1", "50.0%", "4", "2", "50.0%", "0"],
    ]


def test_without_a_rollout_there_is_nothing_to_compare(project: Path) -> None:
    record(project, [commands("echo secret"), "Done."], hooks=hooks(ENFORCED))
    assert "rolled out" not in wave_hooks(project, "stats").stdout


def test_the_page_counts_only_what_was_blocked(rolling: Path, tmp_path: Path) -> None:
    found = overview(tallies(tmp_path / "home"))
    [day] = found.days
    assert (day.runs, day.enforced, day.blocks, day.would_block) == (6, 2, 1, 2)
    page = report_page(found, "rolled out")
    for part in ("1 (50.0%)", "would have blocked", "Rolled out", "1 of 2 runs (50.0 %)", "2 (50.0%)"):
        assert part in page
    enforced = report_page(overview([one for one in tallies(tmp_path / "home") if one.hooks[0].blocks]), "enforced")
    assert "would have blocked" not in enforced
    assert "Rolled out" not in enforced


def test_an_export_has_the_same_figures(rolling: Path, tmp_path: Path) -> None:
    place = ExportPlace(str(tmp_path / "export"))
    export_sessions(tmp_path / "home", place, lambda _done, _total: None)
    assert [*map(counts, hook_figures(place)[1])] == COUNTS
    own = overview(tallies(tmp_path / "home"))
    assert export_overview(place).days == own.days
    answer = ask(place, QUESTIONS["rollout"].sql)
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    chosen = ("mode", "sessions", "percent_of_sessions_blocked", "runs", "percent_of_runs_blocked")
    assert [tuple(row[key] for key in chosen) for row in rows] == [("enforce", 1, 100, 2, 50), ("shadow", 2, 50, 4, 50)]
    [user] = ask(place, QUESTIONS["users"].sql).rows
    assert user[2] == 1  # blocked for real
    [day] = ask(place, QUESTIONS["days"].sql).rows
    assert day[3] == 50


def test_a_hook_that_nothing_waits_for_blocks_nothing(project: Path, tmp_path: Path) -> None:
    late = {"Stop": [{"hooks": [{"name": "late", "command": "exit 2", "async": True}]}]}
    record(project, ["Done."], hooks=late)
    [row] = figures(hook for one in tallies(tmp_path / "home") for hook in one.hooks)
    assert counts(row) == ("enforce", 1, 0, 1, 0, 0)


def test_a_session_of_two_days_is_counted_once(rolling: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "home").rglob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for number, line in enumerate(line for line in lines if line.get("subtype") == "hook_run"):
            line["started"] = f"2026-01-0{1 + number}T12:00:00.000000Z"
        head = '{"type":"system","subtype":"hook_run",'
        written = [json.dumps(line, separators=(",", ":")) for line in lines]
        assert any(line.startswith(head) for line in written)
        path.write_text("".join(f"{line}\n" for line in written))
    found = tallies(tmp_path / "home")
    assert {hook.day for one in found for hook in one.hooks} == {"2026-01-01", "2026-01-02", "2026-01-03"}
    assert [*map(counts, figures(hook for one in found for hook in one.hooks))] == COUNTS


def test_the_modes_of_a_hook_stay_together(rolling: Path, tmp_path: Path) -> None:
    found = figures(hook for one in tallies(tmp_path / "home") for hook in one.hooks)
    assert [(one.mode, other.mode) for one, other in rolled_out(found)] == [("enforce", "shadow")]
    assert rolled_out(found[:1]) == []
