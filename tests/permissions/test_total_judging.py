"""Judging a call is total: an exception while a call is judged denies it, and the agent goes on."""

import os
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec import Struct

from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call
from wave_agent.tools.base import Tool, ToolContext, ToolResult


class _Nothing(Struct, frozen=True):
    pass


class Broken(Tool):
    """A tool of which nobody can say what it would write to."""

    name: ClassVar[str] = "Broken"
    description: ClassVar[str] = "Cannot be judged."
    Input: ClassVar[type[Struct]] = _Nothing

    def __init__(self) -> None:
        self.ran = False

    def written_paths(self, tool_input: Any, context: ToolContext) -> tuple[Any, ...]:
        raise RuntimeError("no idea")

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        self.ran = True
        return ToolResult(content="ran")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    project = (tmp_path / "project").resolve()
    project.mkdir()
    return project


async def results(project: Path, *calls: Any, **options: Any) -> tuple[list[str], str]:
    """What the model was told of each call, and all that the user was."""
    model = ScriptedModel([Reply(tool_calls=list(calls)), "Done."])
    mode = "bypassPermissions"
    async with await Agent.create(workdir=project, model_client=model, permission_mode=mode, **options) as agent:
        result = await agent.send_message("go")
        assert result.status == "completed"
        blocks = [block for message in agent.messages for block in message.blocks]
    told = [str(getattr(block, "result", "")) for block in blocks if hasattr(block, "parameters")]
    return told, "\n".join(str(getattr(block, "content", "")) for block in blocks)


async def test_a_tool_that_cannot_be_judged_does_not_run_and_the_next_call_does(project: Path) -> None:
    broken = Broken()
    (project / "a.txt").write_text("hello")
    (first, second), told = await results(project, call("Broken"), call("Read", file_path="a.txt"), tools=[broken])
    assert not broken.ran
    assert "it could not be judged (RuntimeError: no idea)" in first
    assert "Broken was not run: it could not be judged (RuntimeError: no idea)" in told
    assert "hello" in second


async def test_a_path_that_the_system_does_not_resolve_is_denied_with_its_reason(project: Path) -> None:
    (project / "loop").symlink_to("loop")
    (first, second), _ = await results(project, call("Read", file_path="loop"), call("Read", file_path="x" * 300))
    assert f"it could not be judged ({project}/loop: it is a symbolic link that points back to itself)" in first
    assert "File name too long" in second


async def test_a_hard_link_is_compared_with_rules_by_device_and_inode(project: Path) -> None:
    (project / ".env").write_text("TOKEN=1")
    os.link(project / ".env", project / "copy.txt")
    rules = {"permissions": {"deny": ["Read(.env)", "Edit(.env)"], "ask": ["Write(.env)"]}}
    told, _ = await results(
        project,
        call("Read", file_path="copy.txt"),
        call("Edit", file_path="copy.txt", old_string="1", new_string="2"),
        call("Write", file_path="copy.txt", content="x"),
        settings=rules,
    )
    for one, rule in zip(told, ("Read(.env)", "Edit(.env)", "Edit(.env)"), strict=True):
        assert f"permission rule {rule}" in one
    assert (project / "copy.txt").read_text() == "TOKEN=1"
