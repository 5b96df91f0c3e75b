"""One result cannot fill the model's window."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent import Agent, tool
from wave_agent.models.base import ToolCall
from wave_agent.models.scripted import Reply, ScriptedModel, call

WINDOW = 16_384
QUARTER = WINDOW // 4 * 3
"""Bytes: three for each token."""


def user_settings(project: Project, **settings: Any) -> None:
    project.home.mkdir(exist_ok=True)
    (project.home / "settings.json").write_text(json.dumps(settings))


def results(request: Any) -> list[str]:
    return [message["content"] for message in request.body["messages"] if message["role"] == "tool"]


def left_out(result: str) -> Path:
    """The file that a cut result names."""
    found = re.search(r"characters omitted here; the whole is in (\S+): Grep it, or Read it", result)
    assert found, result[-500:]
    return Path(found[1])


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (call("Read", file_path="server.log"), r"\[Lines 1 to \d+ of 8,000, the most .*Continue with offset \d+]$"),
        (call("Read", file_path="server.log", limit=8000), r"\[Lines 1 to \d+ of 8,000, the most .*offset \d+]$"),
        (
            call("Grep", pattern="took", path="server.log", head_limit=0),
            r"\[The first \d+ lines are shown, and there are more\. Narrow the search",
        ),
        (call("Glob", pattern="names/*"), r"\[\d+ of 400 files shown: use a narrower pattern or path]$"),
        (call("Bash", command="cat server.log"), r"\[… [\d,]+ characters omitted here; the whole is in "),
    ],
    ids=["read", "read, asking for more", "grep", "glob", "bash"],
)
def test_one_long_result_leaves_room_for_the_next_request(project: Project, asked: ToolCall, says: str) -> None:
    log = "".join(f"2024-01-01 12:00:00 request {number} took {number % 97} ms\n" for number in range(8000))
    (project.directory / "server.log").write_text(log)
    (project.directory / "names").mkdir()
    for number in range(400):
        (project.directory / "names" / f"{number:03}-{'x' * 100}").touch()
    user_settings(project, models={"test": {"contextWindow": WINDOW}})
    with serving(Reply(tool_calls=[asked]), "Done.") as server:
        done = project.wave("-p", "Look at the log", "--permission-mode", "bypassPermissions", server=server)
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    (result,) = results(server.requests[1])
    assert QUARTER // 2 < len(result.encode()) <= QUARTER
    assert re.search(says, result)
    if asked.name == "Bash":
        assert left_out(result).read_text() == log


def test_what_a_hook_puts_in_place_of_a_result_fits_as_well(project: Project) -> None:
    replacement = json.dumps({"hookSpecificOutput": {"updatedToolOutput": "redacted " * 20_000}})
    (project.directory / "replacement.json").write_text(replacement)
    project.settings({"hooks": {"PostToolUse": [{"hooks": [{"command": "cat replacement.json"}]}]}})
    user_settings(project, models={"test": {"contextWindow": WINDOW}})
    (project.directory / "a.txt").write_text("secret")
    with serving(Reply(tool_calls=[call("Read", file_path="a.txt")]), "Done.") as server:
        done = project.wave("-p", "Read it", "--trust", server=server)
    assert done.returncode == 0, done.stderr
    (result,) = results(server.requests[1])
    assert len(result.encode()) <= QUARTER + len('<hook event="PostToolUse" name="cat replacement.json">\n\n</hook>')
    assert "characters omitted here" in result
    assert "secret" not in result


async def test_a_tool_of_your_own_cannot_fill_it_either(tmp_path: Path) -> None:
    @tool(reads_only=True)
    def dump() -> str:
        """Everything."""
        return "\n".join(map(str, range(50_000)))

    model = ScriptedModel([Reply(tool_calls=[call("dump")]), "Done."])
    settings = {"models": {"small": {"contextWindow": WINDOW}}}
    async with await Agent.create(
        workdir=tmp_path, model="small", model_client=model, tools=[dump], settings=settings
    ) as agent:
        assert (await agent.send_message("Dump it")).status == "completed"
    result: str = model.requests[1].messages[-1]["content"]
    assert len(result) <= QUARTER
    assert result.endswith("\n49999")
    assert left_out(result).read_text() == dump()


async def test_while_the_window_is_unknown_a_result_has_thirty_thousand_characters(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x" * 99 + "\n" + ("y" * 99 + "\n") * 5000)
    model = ScriptedModel([Reply(tool_calls=[call("Read", file_path="log", limit=5000)]), "Done."])
    async with await Agent.create(workdir=tmp_path, model_client=model, setting_sources=[]) as agent:
        await agent.send_message("Read it")
    result: str = model.requests[1].messages[-1]["content"]
    assert 29_000 < len(result) <= 30_000
