"""Changes that rules deny, noticed after a call: what is restored, what is only reported, and what is said about it."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent, tool
from wave_agent.agent.file_watch import NAMED, FileWatch, WatchedPlaces
from wave_agent.hooks import HookCall
from wave_agent.hooks.events import CHANGED_FILES, changed_files
from wave_agent.messages import MessageManager, NoticeBlock
from wave_agent.permissions.decision import RestoreRequest
from wave_agent.rules.rule import Places, parse_rule
from wave_agent.testing import Reply, ScriptedModel, call
from wave_agent.tools.changes import FileChanges


class Watched:
    """A project with a watch, and what it has said."""

    def __init__(self, top: Path) -> None:
        self.root = top / "project"
        self.root.mkdir()
        self.displaced = top / "displaced"
        self.busy = False
        self.others = False
        self.records: list[Mapping[str, Any]] = []
        self.messages = MessageManager([], lambda _: None)
        self.changes = FileChanges()

    def write(self, name: str, text: str = "old") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    @property
    def notices(self) -> list[str]:
        blocks = (block for message in self.messages.messages for block in message.blocks)
        return [block.content for block in blocks if isinstance(block, NoticeBlock)]

    @asynccontextmanager
    async def watch(self, *rules: str, **more: Any) -> AsyncIterator[FileWatch]:
        watch = FileWatch(
            WatchedPlaces(
                project=str(self.root), own=(), contents=self.displaced.parent / "private", displaced=self.displaced
            ),
            [parse_rule(rule) for rule in rules],
            Places(str(self.root), "/nonexistent"),
            dict(os.environ),
            changes=self.changes,
            messages=self.messages,
            record=self.records.append,
            is_busy=lambda: self.busy,
            others=lambda: self.others,
            **more,
        )
        try:
            yield watch
        finally:
            await watch.close()


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path.resolve())


async def test_many_files_are_restored_and_some_are_named(watched: Watched) -> None:
    files = [watched.write(f"vendor/{number}") for number in range(NAMED + 3)]
    async with watched.watch("Edit(vendor/**)") as watch:
        await watch.before()
        for file in files:
            file.write_text("new")
        changed = await watch.after("call_1", "Bash")
    assert changed.paths == ()
    (note,) = changed.notes
    assert note.content.count("It was restored.") == NAMED
    assert "The same happened to 3 more files." in note.content
    assert [file.read_text() for file in files] == ["old"] * len(files)
    assert len(watch.violations) == len(watched.records) == len(files)
    assert watched.changes.changed() == ()


async def test_the_target_of_a_link_that_a_rule_denies(watched: Watched) -> None:
    target = watched.write("real")
    (watched.root / "link").symlink_to("real")
    async with watched.watch("Edit(link)") as watch:
        await watch.before()
        target.write_text("new")
        (note,) = (await watch.after("call_1", "Bash")).notes
    assert "Bash changed real, which a rule denies. It was restored." in note.content
    assert target.read_text() == "old"


async def test_reading_is_denied_but_the_file_was_changed(watched: Watched) -> None:
    """No rule is against that. What it was is kept all the same."""
    secret = watched.write(".env", "KEY")
    watched.write(".gitignore", ".env")
    async with watched.watch("Read(.env)") as watch:
        await watch.before()
        secret.write_text("new")
        changed = await watch.after("call_1", "Bash")
        assert (changed.paths, changed.notes) == ((str(secret),), ())
        assert watched.changes.take_back().restored == (str(secret),)
    assert secret.read_text() == "KEY"


async def test_the_model_does_not_learn_where_a_version_is_that_it_must_not_read(watched: Watched) -> None:
    secret = watched.write(".env", "KEY")
    async with watched.watch("Read(.env)", "Edit(.env)") as watch:
        await watch.before()
        secret.write_text("KEY and more")
        (note,) = (await watch.after("call_1", "Bash")).notes
    assert "It was restored." in note.content
    assert str(watched.displaced) not in note.content
    assert str(watched.displaced) in watched.notices[0]


async def test_an_async_hook_may_have_done_it(watched: Watched) -> None:
    file = watched.write("vendor/x")
    async with watched.watch("Edit(vendor/**)") as watch:
        watched.others = True
        await watch.before()
        watched.others = False
        file.write_text("new")
        changed = await watch.after("call_1", "Bash")
    assert changed.paths == (str(file),)
    assert file.read_text() == "new"
    assert [one.restored for one in watch.violations] == [False]
    assert "an async hook ran meanwhile" in watched.records[0]["why"]


async def test_a_former_content_that_was_too_large(watched: Watched) -> None:
    file = watched.write("vendor/large")
    os.truncate(file, 65 << 20)
    async with watched.watch("Edit(vendor/**)") as watch:
        await watch.before()
        assert "cannot be restored: vendor/large." in watched.notices[0]
        file.unlink()
        (note,) = (await watch.after("call_1", "Bash")).notes
    assert "It was not restored: its former content was not kept: it is larger than " in note.content
    assert not watch.violations[0].restored


async def test_the_files_cannot_be_read_in_time(watched: Watched) -> None:
    file = watched.write("vendor/x")
    async with watched.watch("Edit(vendor/**)", patience=0.0) as watch:
        await watch.before()
        file.write_text("new")
        blind = await watch.after("call_1", "Bash")
        assert (blind.paths, watch.violations) == ((), [])
        assert "neither noticed nor undone" in watched.notices[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
async def test_a_directory_that_cannot_be_listed(watched: Watched) -> None:
    file = watched.write("vendor/x")
    async with watched.watch("Edit(vendor/**)") as watch:
        await watch.before()
        file.write_text("new")
        file.parent.chmod(0)
        await watch.after("call_1", "Bash")
        await watch.before()
        file.parent.chmod(0o755)
        await watch.after("call_2", "Bash")
    assert file.read_text() == "old"
    assert [notice for notice in watched.notices if "cannot be listed" in notice] == [
        "These directories cannot be listed, so changes in them are not noticed: vendor."
    ]


async def test_someone_else_changes_files_between_two_calls(watched: Watched) -> None:
    file = watched.write("vendor/x")
    async with watched.watch("Edit(vendor/**)") as watch:
        await watch.before()
        await watch.after("call_1", "Bash")
        file.write_text("mine")
        await watch.before()
        assert (await watch.after("call_2", "Bash")).paths == ()
    assert file.read_text() == "mine"
    assert watched.changes.changed() == ()


def answering(answer: bool, seen: list[RestoreRequest]) -> Callable[[RestoreRequest], Awaitable[bool]]:
    async def approve(request: RestoreRequest) -> bool:
        seen.append(request)
        return answer

    return approve


@pytest.mark.parametrize("interrupted", [False, True])
async def test_a_person_is_asked_even_if_something_else_ran(watched: Watched, interrupted: bool) -> None:
    file, seen = watched.write("vendor/x"), list[RestoreRequest]()
    async with watched.watch("Edit(vendor/**)", approver=answering(True, seen)) as watch:
        watched.busy = True
        await watch.before()
        file.unlink()
        changed = await watch.after("call_1", "Bash", interrupted=interrupted)
    assert [(one.changes[0].kind, one.meanwhile) for one in seen] == ([] if interrupted else [("deleted", True)])
    assert file.exists() is not interrupted
    assert ("the turn was interrupted" in changed.notes[0].content) is interrupted


# ----------------------------------------------------------------------------------------------------- in a whole agent


def acting(directory: Path) -> Any:
    @tool
    def generate(name: str) -> str:
        """Generates a file."""
        (directory / name).write_text("generated")
        return "done"

    return generate


async def test_a_tool_of_ones_own_changes_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    project.mkdir()
    seen: list[tuple[str, list[str]]] = []

    def note(event: HookCall) -> None:
        seen.append((event.event, [os.path.basename(path) for path in event.changed_files]))

    odd = "python3 -c \"open(b'\\\\xff', 'w')\""
    replies = [
        Reply(tool_calls=[call("Read", file_path="x"), call("Bash", command="ls")]),
        Reply(tool_calls=[call("generate", name="made"), call("Bash", command=odd)]),
        "Done.",
    ]
    events = ("PostToolUse", "Stop", "SessionEnd", "PostToolUseFailure")
    agent = await Agent.create(
        workdir=project,
        model_client=ScriptedModel(replies),
        tools=[acting(project)],
        hooks={event: [note] for event in events},
        permission_mode="bypassPermissions",
        setting_sources=[],
    )
    async with agent:
        result = await agent.send_message("go")
    assert result.violations == ()
    assert seen == [
        ("PostToolUseFailure", []),
        ("PostToolUse", []),
        ("PostToolUse", ["made"]),
        ("PostToolUse", ["\ufffd"]),
        ("Stop", ["made", "\ufffd"]),
        ("SessionEnd", ["made", "\ufffd"]),
    ]


def test_very_many_changed_files_are_cut() -> None:
    paths = [f"/p/{number}" for number in range(CHANGED_FILES + 2)]
    found = changed_files(paths)
    assert (found["changed_files"], found["changed_files_left_out"]) == (paths[:CHANGED_FILES], 2)
    assert changed_files(paths[:1]) == {"changed_files": ["/p/0"]}


def test_the_files_of_a_session_are_those_of_its_turns_that_were_not_undone(tmp_path: Path) -> None:
    changes = FileChanges(memory=1000)
    root = str(tmp_path.resolve())
    names = [f"{root}/{name}" for name in "abc"]
    note = partial(changes.note, before=None)
    for name in names[:2]:
        Path(name).write_bytes(b"x")
        note(name, after=b"x")
        changes.begin_turn()
    assert changes.changed() == ()
    assert changes.changed_ever() == tuple(names[:2])
    assert changes.take_back().removed == (names[1],)
    assert changes.changed_ever() == (names[0],)
    changes.note(names[2], b"x" * 2000, b"y")  # too much to be stored, but it did happen
    assert changes.changed() == (names[2],)
    changes.begin_turn()
    assert changes.changed_ever() == (names[0], names[2])
