"""Variables that SessionStart hooks set for the commands of a session."""

import os
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent, ErrorBlock, NoticeBlock
from wave_agent.hooks.variables import SessionVariables
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
    assert await session.run() == ["a b|old and new|1", "0\n[exit code 1]"]
    assert session.told == ""


async def test_the_file_is_private_and_gone_when_the_hooks_are_through(tmp_path: Path, home: Path) -> None:
    file = '"$CLAUDE_ENV_FILE"'
    hook = f"stat -c %a {file} \"$(dirname {file})\" > modes; echo {file} > where; echo 'export A=1' > {file}"
    await Session(tmp_path, hook).run()
    assert (tmp_path / "modes").read_text() == "600\n300\n"  # not even its owner lists the directory
    where = Path((tmp_path / "where").read_text().strip())
    assert (where.parent.parent, where.parent.exists()) == (home / "exports", False)
    assert stat.S_IMODE((home / "exports").stat().st_mode) == 0o700


async def test_hooks_do_not_get_the_variables_nor_the_file_elsewhere(tmp_path: Path) -> None:
    spy = {"PreToolUse": [{"command": 'echo "[$NEW$CLAUDE_ENV_FILE]" > spy'}]}
    await Session(tmp_path, "echo 'export NEW=1' >> $CLAUDE_ENV_FILE", "true", **spy).run()
    assert (tmp_path / "spy").read_text() == "[]\n"


async def test_nothing_in_the_file_runs_and_what_is_ignored_is_told_with_hook_and_line(tmp_path: Path) -> None:
    lines = ["export A=1", "touch ran", "export B=$(touch ran)", "export C=x;touch ran", "exit 3", "export D=1"]
    hook = f"printf '%s\\n' {' '.join(map(shlex.quote, lines))} > $CLAUDE_ENV_FILE"
    session = Session(tmp_path, hook, "echo $A$B$C$D")
    assert await session.run() == ["1x1"]
    assert not (tmp_path / "ran").exists()
    assert "hook printf" in session.told
    assert "line 2 (not an assignment): touch ran; line 3 (its value is computed): " in session.told
    assert session.told.endswith("and 1 more")


@pytest.mark.parametrize(
    "swap",
    [
        "mv theirs $CLAUDE_ENV_FILE",
        "ln -sf $PWD/theirs $CLAUDE_ENV_FILE",
        "cat theirs > $CLAUDE_ENV_FILE; ln $CLAUDE_ENV_FILE x",
    ],
)
async def test_a_file_in_the_place_of_the_hooks_own_does_not_count(tmp_path: Path, swap: str) -> None:
    (tmp_path / "theirs").write_text("export A=1")
    session = Session(tmp_path, swap, "echo [$A]")
    assert await session.run() == ["[]"]
    assert "CLAUDE_ENV_FILE was replaced by another file, or linked" in session.told


async def test_a_file_that_is_too_long_does_not_count(tmp_path: Path) -> None:
    session = Session(tmp_path, "yes export A=1 | head -c 2000000 > $CLAUDE_ENV_FILE", "echo [$A]")
    assert await session.run() == ["[]"]
    assert "more than 1 MiB" in session.told


async def test_hooks_export_in_the_order_of_the_settings_and_can_remove_a_variable(tmp_path: Path) -> None:
    first = "while [ ! -e second ]; do sleep 0.01; done; echo 'export A=first:$HOME' > $CLAUDE_ENV_FILE"
    second = "echo 'export A=second:$A; unset BEFORE' > $CLAUDE_ENV_FILE; touch second"
    hooks = {"SessionStart": [{"command": first}, {"command": second}]}
    session = Session(tmp_path, "true", "echo $A${BEFORE-gone}", **hooks)
    assert await session.run() == [f"second:first:{os.environ['HOME']}gone"]


async def test_a_command_in_the_background_cannot_name_the_file_of_a_hook(tmp_path: Path) -> None:
    session = Session(
        tmp_path, "echo 'export A=1' > $CLAUDE_ENV_FILE", 'for f in "$WAVE_HOME"/exports/*/*; do echo x >> "$f"; done'
    )
    assert "protected" in (await session.run())[0]


async def test_limits_that_are_handed_down_cannot_be_exported_away(tmp_path: Path) -> None:
    session = Session(tmp_path, "echo 'export WAVE_PARENT=x' > $CLAUDE_ENV_FILE", "echo ${WAVE_PARENT:0:1}")
    assert await session.run() == ["{"]


async def test_a_hook_may_remove_its_file(tmp_path: Path) -> None:
    session = Session(tmp_path, "rm $CLAUDE_ENV_FILE", "echo fine")
    assert (await session.run(), session.told) == (["fine"], "")


async def test_where_no_file_can_be_made_the_hooks_run_and_it_is_told(tmp_path: Path, home: Path) -> None:
    home.mkdir()
    (home / "exports").write_text("a file where the directory should be")
    session = Session(tmp_path, "echo ran > ran")
    await session.run()
    assert "hooks cannot set variables" in session.told
    assert (tmp_path / "ran").exists()


def test_the_environment_is_one_mapping_that_grows() -> None:
    variables = SessionVariables({"A": "1", "LIMIT": "low"}, fixed={"LIMIT": "x"})
    variables.add({"B": "2", "LIMIT": "high"})
    assert (dict(variables), len(variables)) == ({"A": "1", "LIMIT": "x", "B": "2"}, 3)
