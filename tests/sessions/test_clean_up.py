"""Old sessions are deleted by their own user, and by no one else."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from wave_agent import Agent
from wave_agent.sessions.clean_up import forget_old_sessions
from wave_agent.sessions.index_file import IndexFile
from wave_agent.sessions.outbox import queue
from wave_agent.system.identity import user_name
from wave_agent.testing import ScriptedModel

LATER = datetime.now(UTC) + timedelta(days=31)


def make(home: Path, name: str, *, project: str = "-project", first: str = "", **head: str) -> Path:
    path = home / "projects" / project / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(first or json.dumps({"type": "session", **head}) + "\n")
    return path


def left(home: Path) -> set[str]:
    return {path.stem for path in home.glob("projects/*/*.jsonl")}


@pytest.mark.parametrize("few", [0, 5000])
def test_only_the_users_own_sessions_are_deleted(few: int, tmp_path: Path) -> None:
    make(tmp_path, "own", user=user_name())
    make(tmp_path, "older-version", project="-other")
    make(tmp_path, "torn", first="{")
    make(tmp_path, "colleague", user="ada")
    recent = make(tmp_path, "recent", user=user_name())
    os.utime(recent, (LATER.timestamp(), LATER.timestamp()))
    (tmp_path / "projects" / "-project" / "directory.jsonl").mkdir()
    assert forget_old_sessions(tmp_path, 30, LATER, few=few) == 3
    assert left(tmp_path) == {"colleague", "recent", "directory"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_files_of_another_account_are_kept(tmp_path: Path) -> None:
    os.chown(make(tmp_path, "theirs"), 12345, 12345)
    assert forget_old_sessions(tmp_path, 30, LATER) == 0
    assert left(tmp_path) == {"theirs"}


def test_a_session_that_waits_to_be_uploaded_is_kept(tmp_path: Path) -> None:
    queue(tmp_path, make(tmp_path, "unsent"))
    make(tmp_path, "sent")
    assert forget_old_sessions(tmp_path, 30, LATER) == 1
    assert left(tmp_path) == {"unsent"}


def test_it_happens_once_a_day_unless_the_setting_changes(tmp_path: Path) -> None:
    assert forget_old_sessions(tmp_path, 30) == 0
    old = make(tmp_path, "old")
    os.utime(old, (1, 1))
    assert forget_old_sessions(tmp_path, 30) == 0
    assert forget_old_sessions(tmp_path, 0) == 0
    assert forget_old_sessions(tmp_path, 60) == 1


def test_what_is_deleted_leaves_the_index(tmp_path: Path) -> None:
    make(tmp_path, "old")
    with IndexFile(tmp_path):
        pass
    assert forget_old_sessions(tmp_path, 30, LATER, few=0) == 1
    with IndexFile(tmp_path) as index:
        assert index.ids("-project") == set()


async def test_nothing_about_the_user_is_recorded_if_the_settings_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    heads: list[set[str]] = []
    for settings in ({}, {"sessions": {"identity": False}}):
        model = ScriptedModel(["Hi."])
        async with await Agent.create(
            workdir=tmp_path, model_client=model, settings=settings, setting_sources=[]
        ) as agent:
            await agent.send_message("Hello")
        heads.append(set(json.loads(Path(agent.transcript_path).read_text().splitlines()[0])))
    assert heads[0] - heads[1] == {"user", "hostname"}
