"""`wave sessions verify`, as a real process on the transcript of a real session."""

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def wave(project: Path, *arguments: str) -> Any:
    return subprocess.run(
        [WAVE, "sessions", "verify", *arguments],
        cwd=project, env=dict(os.environ), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


async def session(project: Path, *, resume: str | None = None) -> tuple[str, Path]:
    """Two prompts, one of which a hook refuses; four hook runs."""
    guard = "case $(cat) in *hunter2*) echo 'no hunter2' >&2; exit 2;; esac"
    hooks = {"UserPromptSubmit": [{"hooks": [{"command": guard}]}], "Stop": [{"hooks": [{"command": "true"}]}]}
    hooks["PreToolUse"] = hooks["Stop"]
    model = ScriptedModel([Reply(tool_calls=[call("Glob", pattern="*")]), "Done."])
    async with await Agent.create(workdir=project, model_client=model, hooks=hooks, resume=resume) as agent:
        await agent.send_message("say hunter2")
        await agent.send_message("go")
    return agent.session_id, Path(agent.transcript_path)


async def test_a_session_that_nobody_touched_is_fine_also_after_a_resumption(project: Path) -> None:
    session_id, path = await session(project)
    done = wave(project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{session_id}  fine; 4 hook runs, head ")
    noted = done.stdout.split()[-1]
    await session(project, resume=session_id)
    done = wave(project, session_id, "--head", noted, "--json")
    assert done.returncode == 0
    (report,) = json.loads(done.stdout)
    assert report["hook_runs"] == 8
    assert report["head"] != noted
    assert (report["session_id"], report["transcript_path"], report["findings"]) == (session_id, str(path), [])


async def test_a_broken_journal_is_named_with_file_line_and_what(project: Path) -> None:
    session_id, path = await session(project)
    lines = path.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if '"hook_run"' in line)
    path.write_text("".join([*lines[:at], lines[at].replace('"exit_code":2', '"exit_code":0'), *lines[at + 1 :]]))
    done = wave(project, session_id)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{path}:{at + 1}: altered record: hook run 1 does not match its chain\n")
    (report,) = json.loads(wave(project, "--json").stdout)
    assert [(finding["line"], finding["kind"]) for finding in report["findings"]] == [(at + 1, "altered record")]


async def test_one_broken_session_among_all_is_found(project: Path) -> None:
    _, broken = await session(project)
    await session(project)
    assert wave(project, "--all").returncode == 0
    with broken.open("ab") as file:
        file.write(b"{torn")
    done = wave(project, "--all")
    assert done.returncode == 1
    assert f"{broken}:" in done.stdout
    assert "unreadable line" in done.stdout
    assert done.stdout.count(" hook runs, head ") == 2


async def test_a_tail_that_was_cut_off_shows_to_whoever_has_noted_the_head(project: Path) -> None:
    session_id, path = await session(project)
    noted = wave(project).stdout.split()[-1]
    lines = path.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if '"hook_run"' in line)
    path.write_text("".join(lines[: at + 1]))
    assert wave(project, session_id).returncode == 0
    done = wave(project, session_id, "--head", noted)
    assert done.returncode == 1
    assert "truncated or rewritten" in done.stdout


def test_what_cannot_be_asked_is_a_usage_error(project: Path) -> None:
    assert wave(project, "--all", "abc").returncode == 2
    assert wave(project, "--all", "--head", "abc").returncode == 2
    assert wave(project, "--nonsense").returncode == 2


def test_where_there_is_no_session_that_is_said(project: Path) -> None:
    assert (wave(project, "--all").returncode, wave(project, "--all").stdout) == (0, "")
    assert (wave(project).returncode, "no session" in wave(project).stderr) == (1, True)
    assert wave(project, "../../etc/passwd").returncode == 1


async def test_an_empty_id_is_not_that_of_the_latest_session(project: Path) -> None:
    await session(project)
    done = wave(project, "")
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not a session id" in done.stderr
