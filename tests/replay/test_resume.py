"""Backtests that do not come to their end: interrupted, killed, or with sessions that change meanwhile."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.replay.recorded import (
    GUARD,
    WAVE,
    compared,
    complaint,
    report,
    script,
    sessions,
    settings,
    wait_until,
    wave_hooks,
)

CALLS, BLOCKED = 10, 2
"""Of each session."""


def gated(tmp_path: Path, session: str) -> tuple[str, ...]:
    """A guard that waits for a gate file when it comes to this session, and the sessions for it."""
    here = f"*{session}.jsonl*) touch {tmp_path}/started; while test ! -e {tmp_path}/gate; do sleep 0.02; done"
    guard = script(tmp_path / "guard.sh", f'said=$(cat); case "$said" in {here};; esac; echo "$said" | ({GUARD})')
    new = settings(tmp_path / "new.json", PreToolUse=[{"name": "guard", "command": str(guard)}])
    return "--from", str(sessions(tmp_path / "old", 8, CALLS, padding=2000)), "--settings", str(new)


def started(project: Path, tmp_path: Path, *arguments: str) -> "subprocess.Popen[str]":
    """A backtest that waits for the gate."""
    running = subprocess.Popen(
        [WAVE, "hooks", "backtest", "--json", *arguments],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until((tmp_path / "started").exists)
    return running


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


def test_an_interrupt_keeps_what_is_done_and_the_run_goes_on_from_there(
    project: Path, tmp_path: Path, temporary: Path
) -> None:
    asked = gated(tmp_path, "s005")
    running = started(project, tmp_path, *asked, "--jobs", "1")
    running.send_signal(signal.SIGINT)
    said, complaints = running.communicate(timeout=60)
    assert running.returncode == 130, complaints
    part = json.loads(said)
    assert (part["interrupted"], part["complete"]) == (True, False)
    assert 0 < part["sessions"] < 8
    assert part["sessions"] + part["pending"] == 8
    assert part["totals"]["newly blocked"] == len(part["findings"]) == BLOCKED * part["sessions"]
    assert "wave hooks backtest --resume" in complaints
    assert list(temporary.iterdir()) == []
    (tmp_path / "gate").touch()
    (tmp_path / "old" / "s000.jsonl").unlink()  # it has been replayed
    whole = report(project, "--resume", "--jobs", "2")
    assert (whole["complete"], whole["sessions"]) == (True, 8)
    sessions(tmp_path / "again", 8, CALLS, padding=2000)
    assert compared(report(project, "--from", str(tmp_path / "again"), *asked[2:])) == compared(whole)
    nothing = wave_hooks(project, "backtest", "--resume")
    assert complaint(nothing) == (1, "wave: There is no unfinished backtest of this project to resume.")


def test_a_killed_run_leaves_no_copy_of_the_project_and_can_be_resumed(
    project: Path, tmp_path: Path, temporary: Path
) -> None:
    asked = gated(tmp_path, "s005")
    running = started(project, tmp_path, *asked, "--jobs", "1")
    running.kill()
    running.communicate(timeout=60)
    wait_until(lambda: not list(temporary.iterdir()))
    (tmp_path / "gate").touch()
    whole = report(project, "--resume")
    assert (whole["sessions"], whole["totals"]["newly blocked"]) == (8, 8 * BLOCKED)
    assert list(temporary.iterdir()) == []


def test_the_files_of_a_run_that_was_killed_with_its_processes_are_removed_by_the_next(
    project: Path, tmp_path: Path, temporary: Path
) -> None:
    running = started(project, tmp_path, *gated(tmp_path, "s005"), "--jobs", "1")
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(running.pid)], capture_output=True, text=True, check=True)
    running.send_signal(signal.SIGSTOP)  # so that it does not replace them
    for process in (*map(int, found.stdout.split()), running.pid):
        os.kill(process, signal.SIGKILL)
    running.communicate(timeout=60)
    assert len(list(temporary.glob("wave-backtest-*"))) == 1
    (tmp_path / "gate").touch()
    assert report(project, "--resume")["sessions"] == 8
    assert list(temporary.iterdir()) == []


def test_a_killed_process_and_its_hooks_are_replaced(project: Path, tmp_path: Path, temporary: Path) -> None:
    asked = gated(tmp_path, "s005")
    running = started(project, tmp_path, *asked, "--jobs", "1")
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(running.pid)], capture_output=True, text=True, check=True)
    os.kill(int(found.stdout.split()[0]), signal.SIGKILL)
    (tmp_path / "gate").touch()
    said, complaints = running.communicate(timeout=60)
    assert running.returncode == 1, complaints
    assert json.loads(said)["totals"]["newly blocked"] == 8 * BLOCKED


def test_hooks_or_settings_that_have_changed_are_no_continuation(project: Path, tmp_path: Path) -> None:
    asked = gated(tmp_path, "s005")
    running = started(project, tmp_path, *asked, "--jobs", "1")
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    file = tmp_path / "new.json"
    same = json.loads(file.read_text())
    (event,) = same["hooks"]
    (group,) = same["hooks"][event]
    (hook,) = group["hooks"]
    others = [
        {"matcher": "Write"}, {"sequential": True},
        *({"hooks": [{**hook, **change}]} for change in (
            {"command": "true"}, {"if": "Bash(rm *)"}, {"timeout": 3}, {"onFailure": "block"}, {"mode": "shadow"},
        )),
    ]  # fmt: skip
    for other in [
        *({**same, "hooks": {event: [{**group, **one}]}} for one in others),
        {**same, "env": {"STRICT": "1"}},
    ]:
        file.write_text(json.dumps(other))
        done = wave_hooks(project, "backtest", "--resume")
        assert (done.returncode, "have changed since this run began" in done.stderr) == (1, True), other
    file.write_text(json.dumps(same))
    (tmp_path / "gate").touch()
    assert report(project, "--resume")["complete"]


def test_sessions_that_change_during_the_run_do_not_spoil_the_others(project: Path, tmp_path: Path) -> None:
    asked = gated(tmp_path, "s001")
    running = started(project, tmp_path, *asked, "--jobs", "1")
    old = tmp_path / "old"
    (old / "s007.jsonl").unlink()
    os.truncate(old / "s006.jsonl", 100)
    with (old / "s005.jsonl").open("a") as file:
        file.write((old / "s004.jsonl").read_text())
    (old / "s008.jsonl").write_text((old / "s004.jsonl").read_text())
    (tmp_path / "gate").touch()
    said, complaints = running.communicate(timeout=60)
    assert running.returncode == 3, complaints
    found = json.loads(said)
    assert (found["complete"], found["sessions"], found["missing"]) == (False, 6, 2)
    assert [(Path(one["session"]).name, one["why"]) for one in found["left_out"]] == [
        ("s006.jsonl", "it is shorter than when the run began"),
        ("s007.jsonl", "it was deleted"),
    ]
    assert found["totals"]["newly blocked"] == 6 * BLOCKED
    assert "1 session has grown since the run began: what was added is not replayed." in found["notes"]
    for name in ("s006.jsonl", "s007.jsonl"):
        (old / name).write_text((old / "s004.jsonl").read_text())
    whole = report(project, "--resume")
    assert (whole["complete"], whole["sessions"], len(whole["findings"])) == (True, 8, 8 * BLOCKED)


def test_a_run_that_takes_a_while_says_how_far_it_is(project: Path, tmp_path: Path) -> None:
    asked = gated(tmp_path, "s005")
    running = started(project, tmp_path, *asked, "--jobs", "1")
    assert running.stderr is not None
    line = running.stderr.readline()
    while " 0%" in line or "…" in line:
        line = running.stderr.readline()
    (tmp_path / "gate").touch()
    running.communicate(timeout=60)
    assert line.startswith("wave: Replaying: ")
    assert "% , " not in line
    assert " events, " in line
    assert line.endswith(" left\n")
