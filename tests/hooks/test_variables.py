"""Variables that SessionStart hooks set for the commands of a session."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent, ErrorBlock, NoticeBlock
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.hooks.variables import SessionVariables, exported
from wave_agent.testing import Reply, ScriptedModel, call


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BEFORE", "old")
    return tmp_path / "home"


class Session:
    """One prompt with a hook at its start, and commands after it."""

    def __init__(self, project: Path, hook: str, *commands: str, **more: Any) -> None:
        self.project, self.hook, self.more = project, hook, more
        calls = [Reply(tool_calls=[call("Bash", command=command)]) for command in commands]
        self.model = ScriptedModel([*calls, "Done."])

    async def run(self) -> list[str]:
        """What the commands printed."""
        async with await Agent.create(
            workdir=self.project,
            model_client=self.model,
            permission_mode="bypassPermissions",
            settings={"hooks": {"SessionStart": [{"command": self.hook}], **self.more}},
        ) as agent:
            await agent.send_message("go")
        self.told = "\n".join(
            block.content
            for message in agent.messages
            for block in message.blocks
            if isinstance(block, NoticeBlock | ErrorBlock)
        )
        return [message["content"] for message in self.model.requests[-1].messages if message["role"] == "tool"]


async def test_what_a_hook_exports_reaches_later_commands(tmp_path: Path) -> None:
    hook = """echo 'export NEW="a b"; export BEFORE="$BEFORE and new"; PRIVATE=1' >> "$CLAUDE_ENV_FILE" """
    session = Session(tmp_path, hook, 'echo "$NEW|$BEFORE|$PRIVATE"', "env | grep -c ^CLAUDE_ENV_FILE=")
    assert await session.run() == ["a b|old and new|", "0\n[exit code 1]"]
    assert session.told == ""


async def test_the_file_is_private_and_gone_when_the_hooks_are_through(tmp_path: Path, home: Path) -> None:
    file = '"$CLAUDE_ENV_FILE"'
    hook = f"ls -l {file} | cut -c1-10 > mode; echo {file} > where; echo 'export A=1' > {file}"
    await Session(tmp_path, hook).run()
    assert (tmp_path / "mode").read_text() == "-rw-------\n"
    where = (tmp_path / "where").read_text().strip()
    assert (where.startswith(str(home)), os.path.exists(where)) == (True, False)
    assert stat.S_IMODE(os.stat(os.path.dirname(where)).st_mode) == 0o700


async def test_hooks_do_not_get_the_variables_nor_the_file_elsewhere(tmp_path: Path) -> None:
    spy = {"PreToolUse": [{"command": 'echo "[$NEW$CLAUDE_ENV_FILE]" > spy'}]}
    await Session(tmp_path, "echo 'export NEW=1' >> $CLAUDE_ENV_FILE", "true", **spy).run()
    assert (tmp_path / "spy").read_text() == "[]\n"


@pytest.mark.parametrize(
    ("line", "told"),
    [("export A=1; if", "syntax error"), ("exit 3", "it exits the shell"), ("no-such-program", "not found")],
)
async def test_a_file_that_cannot_be_read_is_told_and_harms_nothing(tmp_path: Path, line: str, told: str) -> None:
    session = Session(tmp_path, f"echo '{line}' > $CLAUDE_ENV_FILE", "echo fine")
    assert await session.run() == ["fine"]
    assert "problem in what hooks wrote to CLAUDE_ENV_FILE: " in session.told
    assert told in session.told


async def test_limits_that_are_handed_down_cannot_be_exported_away(tmp_path: Path) -> None:
    session = Session(tmp_path, "echo 'export WAVE_PARENT=x' > $CLAUDE_ENV_FILE", "echo ${WAVE_PARENT:0:1}")
    assert await session.run() == ["{"]


async def test_a_hook_that_writes_nothing_costs_no_shell(tmp_path: Path) -> None:
    session = Session(tmp_path, "rm $CLAUDE_ENV_FILE", "echo fine")
    assert (await session.run(), session.told) == (["fine"], "")


async def test_where_no_file_can_be_made_the_hooks_run_and_it_is_told(tmp_path: Path) -> None:
    hooks = {"SessionStart": [{"command": "echo ran > ran"}]}
    model = ScriptedModel(["Done."])
    async with await Agent.create(workdir=tmp_path, model_client=model, settings={"hooks": hooks}) as agent:
        outputs = Path(agent.transcript_path).with_suffix("")
        outputs.parent.mkdir(parents=True)
        outputs.write_text("a file where the directory should be")
        await agent.send_message("go")
        notices = [block.content for one in agent.messages for block in one.blocks if isinstance(block, NoticeBlock)]
    assert any("hooks cannot set variables" in notice for notice in notices)
    assert (tmp_path / "ran").exists()


def test_only_what_differs_is_taken_and_nothing_of_a_failed_run() -> None:
    before = {"A": "1", "B": "2", "SHLVL": "1"}
    result = HookExecutionResult(exit_code=0, stdout="A=1\0B=3\0C=x=y\0SHLVL=2\0_=/bin/env\0PWD=/\0broken\0")
    assert exported(result, before) == ({"B": "3", "C": "x=y"}, "")
    late = HookExecutionResult(exit_code=None, timed_out=True, stdout="C=1\0")
    assert exported(late, {}) == ({}, "problem in what hooks wrote to CLAUDE_ENV_FILE: it timed out")


def test_the_environment_is_one_mapping_that_grows() -> None:
    variables = SessionVariables({"A": "1", "LIMIT": "low"}, fixed={"LIMIT": "x"})
    variables.add({"B": "2", "LIMIT": "high"})
    assert (dict(variables), len(variables)) == ({"A": "1", "LIMIT": "x", "B": "2"}, 3)
