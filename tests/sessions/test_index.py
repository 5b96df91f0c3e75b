"""Finding, exporting and forgetting sessions."""

import os
from pathlib import Path

import pytest

from wave_agent.errors import SessionError
from wave_agent.messages import (
    BLOCKED,
    DENIED,
    HARNESS,
    ErrorBlock,
    Message,
    NoticeBlock,
    Origin,
    ReasoningBlock,
    TextBlock,
    ToolBlock,
)
from wave_agent.sessions.index import (
    as_markdown,
    delete_session,
    find_session,
    latest_session,
    list_sessions,
    session_files,
)
from wave_agent.sessions.recorder import transcripts


def make(home: Path, name: str, content: str = "") -> Path:
    directory = transcripts(home, "/project")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.jsonl").write_text(content)
    return directory / f"{name}.jsonl"


def test_a_prefix_must_be_the_only_one(tmp_path: Path):
    make(tmp_path, "abc-1")
    path = make(tmp_path, "abd-2")
    assert find_session(tmp_path, "/project", "abd") == path
    with pytest.raises(SessionError, match="matches 2 sessions"):
        find_session(tmp_path, "/project", "ab")


def test_the_latest_sessions_are_found_without_opening_the_others(tmp_path: Path):
    for number in range(5):
        path = make(tmp_path, f"s-{number}", '{"type":"session"}\n')
        os.utime(path, (number, number))
    (transcripts(tmp_path, "/project") / "directory.jsonl").mkdir()
    assert [session.session_id for session in list_sessions(tmp_path, "/project", 2)] == ["s-4", "s-3"]
    assert latest_session(tmp_path, "/project") == "s-4"
    assert [path.stem for path in session_files(transcripts(tmp_path, "/project"))] == [
        "s-4", "s-3", "s-2", "s-1", "s-0",
    ]  # fmt: skip


def test_the_latest_session_is_one_of_this_agent(tmp_path: Path):
    os.utime(make(tmp_path, "own", '{"type":"session"}\n'), (1, 1))
    os.utime(make(tmp_path, "guarded", '{"type":"session","host":"codex"}\n'), (2, 2))
    assert latest_session(tmp_path, "/project") == "own"


def test_without_sessions_there_is_none_to_continue(tmp_path: Path):
    assert list_sessions(tmp_path, "/project") == []
    with pytest.raises(SessionError, match="no session in this project"):
        latest_session(tmp_path, "/project")


def test_the_first_prompt_is_found_behind_lines_that_cannot_be_read(tmp_path: Path):
    lines = [
        '{"type":"session"}', '{"type":"user",', '{"type":"user","message":{"content":"context"},"source":"hook"}',
        '{"type":"user","message":{"content":[]}}',
        '{"type":"user","message":{"content":"the prompt"},"source":"user"}',
    ]  # fmt: skip
    make(tmp_path, "s", "\n".join(lines))
    assert [session.first_prompt for session in list_sessions(tmp_path, "/project")] == ["the prompt"]


def test_what_is_gone_cannot_be_deleted(tmp_path: Path):
    with pytest.raises(SessionError, match="cannot be deleted"):
        delete_session(tmp_path / "gone.jsonl")


def test_markdown_has_every_block_that_people_read():
    text = as_markdown(
        (
            Message("user", (TextBlock("question", "user"),)),
            Message("user", (TextBlock("context", "hook", Origin("Stop", "notes")), TextBlock("stray", "hook"))),
            Message("user", (TextBlock("bash_1 has ended", "hook", HARNESS),)),
            Message(
                "assistant",
                (
                    ReasoningBlock("hm"),
                    TextBlock("answer", "model"),
                    ToolBlock("id", "Bash", {"command": "ls"}, "no", False),
                    ToolBlock("id", "Write", {}, "no", False, BLOCKED, Origin("PreToolUse", "guard")),
                    ToolBlock("id", "Edit", {}, "no", False, DENIED),
                    ErrorBlock("two\nlines"),
                    NoticeBlock("look"),
                ),
            ),
        ),
        "Title",
    )
    for part in ("# Title", "## You\n\nquestion", "Hook notes on Stop", "## Wave\n\nanswer", "**Bash** (failed)",
                 "**Write** (denied by hook guard)", "**Edit** (not run)",
                 "> **Error:** two\n> lines", "> look", "stray", "\n> bash_1 has ended\n"):  # fmt: skip
        assert part in text
    assert "hm" not in text
