"""`wave sessions`, `wave doctor` and `wave completion`, as real processes."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent
from wave_agent.sessions.clean_up import forget_old_sessions
from wave_agent.testing import RecordingModelServer, Reply, ScriptedModel, call

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    for name in ("WAVE_BASE_URL", "WAVE_MODEL", "WAVE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


def wave(project: Path, *arguments: str, stdin: str = "", **environment: str) -> Any:
    return subprocess.run(
        [WAVE, *arguments], cwd=project, env={**os.environ, **environment}, input=stdin, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


async def session(project: Path, prompt: str) -> Agent:
    (project / "made.txt").write_text("```\nfence\n```")
    model = ScriptedModel([Reply(text="Reading.", tool_calls=[call("Read", file_path="made.txt")]), "Done."])
    async with await Agent.create(workdir=project, model_client=model) as agent:
        await agent.send_message(prompt)
    return agent


async def test_sessions_are_listed_shown_exported_and_deleted(project: Path):
    first, second = await session(project, "The first one"), await session(project, "The second\x1b[31m one")
    listed = wave(project, "sessions")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [second.session_id, first.session_id]
    assert len(wave(project, "sessions", "list", "--limit", "1").stdout.splitlines()) == 1
    assert wave(project, "sessions", "--cwd", str(project), "list").stdout == listed.stdout
    assert "\x1b" not in listed.stdout
    assert [row["first_prompt"] for row in json.loads(wave(project, "sessions", "--json").stdout)][1] == "The first one"
    shown = wave(project, "sessions", "show", first.session_id[:8]).stdout
    assert "## You\n\nThe first one" in shown
    assert "````\n" in shown  # a fence in a result does not end the block
    exported = project / "out.md"
    written = wave(project, "sessions", "export", first.session_id, "-o", str(exported))
    assert (written.returncode, written.stdout) == (0, f"Wrote {exported}\n")
    again = wave(project, "sessions", "export", second.session_id, "-o", str(exported))
    assert (again.returncode, "is not overwritten" in again.stderr) == (2, True)
    assert "The first one" in exported.read_text()
    assert "Done." in exported.read_text()
    assert exported.stat().st_mode & 0o777 == 0o600
    assert json.loads(wave(project, "sessions", "show", "--json", first.session_id).stdout)[0]["role"] == "user"
    assert wave(project, "sessions", "delete", first.session_id, stdin="n\n").returncode == 0
    unasked = wave(project, "sessions", "delete", first.session_id, stdin="")
    assert (unasked.returncode, "rerun with --yes" in unasked.stderr) == (2, True)
    assert unasked.stdout.endswith("? [y/N]: \n")
    assert Path(first.transcript_path).exists()
    assert wave(project, "sessions", "delete", "--yes", first.session_id).returncode == 0
    assert not Path(first.transcript_path).exists()


def test_without_a_session_every_command_says_so(project: Path):
    assert wave(project, "sessions").stdout == "There are no sessions in this project yet.\n"
    for command in ("show", "export", "delete"):
        done = wave(project, "sessions", command, "abc")
        assert done.returncode == 1
        assert 'no session "abc"' in done.stderr
    assert wave(project, "sessions", "show").returncode == 2
    assert wave(project, "sessions", "show", "../../etc").returncode == 1


async def test_old_sessions_are_forgotten(project: Path, tmp_path: Path):
    agent = await session(project, "hi")
    later = datetime.now(UTC) + timedelta(days=31)
    assert forget_old_sessions(tmp_path / "home", 0, later) == 0
    assert forget_old_sessions(tmp_path / "home", 30) == 0
    assert forget_old_sessions(tmp_path / "home", 30, later) == 1
    assert not Path(agent.transcript_path).exists()


def test_the_doctor_finds_what_is_wrong(project: Path):
    (project / ".wave").mkdir()
    settings = {"hooks": {"Stop": [{"hooks": [{"command": "./missing.sh"}, {"command": "true", "timeot": 5}]}]}}
    (project / ".wave" / "settings.json").write_text(json.dumps(settings))
    done = wave(project, "doctor")
    assert done.returncode == 1
    assert "missing.sh" in done.stdout
    assert 'did you mean "timeout"' in done.stdout
    assert "WAVE_BASE_URL" in done.stdout
    (project / ".wave" / "settings.json").write_text("{,}")
    assert "settings.json:1:2" in wave(project, "doctor").stdout


def test_the_doctor_counts_only_definitions_that_are_used(project: Path):
    agents = project / ".wave" / "agents"
    agents.mkdir(parents=True)
    (agents / "good.md").write_text("---\nname: good\ndescription: d\n---\nWork.\n")
    (agents / "bad.md").write_text("---\nname: bad\ndescription: d\npermissionMode: yolo\n---\nWork.\n")
    wave(project, "hooks", "trust", "--yes")
    said = wave(project, "doctor").stdout
    assert "ok  extensions   1 agent\n" in said
    assert "bad.md:4: permissionMode: must be one of default" in said


@pytest.mark.skipif(sys.platform != "linux", reason="there is a sandbox on Linux only")
@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("exit 0", "ok  sandbox      --sandbox works here; network: only api.example.com (sandbox.network)"),
        ("echo 'setting up uid map: denied' >&2; exit 1", "--  sandbox      not available: --sandbox: bubblewrap does"),
    ],
)
def test_the_doctor_says_what_the_sandbox_can_do_here(project: Path, tmp_path: Path, ending: str, said: str):
    (project / ".wave").mkdir()
    (project / ".wave" / "settings.json").write_text(json.dumps({"sandbox": {"network": ["api.example.com"]}}))
    program = tmp_path / "programs" / "bwrap"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{ending}\n")
    program.chmod(0o755)
    done = wave(project, "doctor", PATH=f"{program.parent}:{os.environ['PATH']}")
    assert said in done.stdout
    assert ("uid map: denied" in done.stdout) is ("uid map" in ending)


def test_the_doctor_asks_the_model_for_an_answer_and_a_call(project: Path):
    with RecordingModelServer.in_thread(["ready", Reply(tool_calls=[call("ping", word="hello")])]) as server:
        done = wave(project, "doctor", "--json", WAVE_BASE_URL=server.base_url, WAVE_MODEL="m", NO_PROXY="127.0.0.1")
    found = {row["check"]: row["status"] for row in json.loads(done.stdout)}
    assert (found["model"], found["tools"], done.returncode) == ("ok", "ok", 0)
    with RecordingModelServer.in_thread(["ready", "pong"]) as server:
        done = wave(project, "doctor", WAVE_BASE_URL=server.base_url, WAVE_MODEL="m", NO_PROXY="127.0.0.1")
    assert "no tool call" in done.stdout
    refused = wave(project, "doctor", WAVE_BASE_URL="http://127.0.0.1:9/v1", WAVE_MODEL="m", NO_PROXY="127.0.0.1")
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr


def test_the_doctor_asks_the_managed_model_as_an_agent_would(project: Path):
    managed = project / "managed.json"
    with RecordingModelServer.in_thread(["ready", Reply(tool_calls=[call("ping", word="hello")])]) as server:
        managed.write_text(json.dumps({"baseUrl": server.base_url, "model": "managed"}))
        elsewhere = {"WAVE_BASE_URL": "http://127.0.0.1:9/v1", "WAVE_MODEL": "m", "NO_PROXY": "127.0.0.1"}
        done = wave(project, "doctor", WAVE_MANAGED_SETTINGS=str(managed), **elsewhere)
    assert {one.body["model"] for one in server.requests} == {"managed"}
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_ones_the_shell_can_read(project: Path, shell: str):
    script = wave(project, "completion", shell)
    assert script.returncode == 0
    assert "_WAVE_COMPLETE" in script.stdout
    if shell == "bash" and (bash := shutil.which("bash")):
        subprocess.run([bash, "-n"], input=script.stdout, text=True, check=True)


def test_completion_of_an_unknown_shell_is_wrong_usage(project: Path):
    assert wave(project, "completion", "tcsh").returncode == 2
