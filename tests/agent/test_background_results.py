"""What a background command prints reaches hooks on Bash, whichever tool shows it."""

from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent, ToolBlock
from wave_agent.testing import Reply, ScriptedModel, call

SECRET = "printf 'RAW%s\\n' SECRET"
REDACTED = {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "[redacted]"}}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


class Session:
    """A command in the background, whose output is then read."""

    def __init__(self, directory: Path, command: str = SECRET) -> None:
        self._directory = directory
        self.model = ScriptedModel(
            [
                Reply(tool_calls=[call("Bash", command=command, run_in_background=True)]),
                Reply(tool_calls=[call("BashOutput", bash_id="bash_1", wait_ms=60_000)]),
                "Done.",
            ]
        )

    async def run(self, **hooks: Any) -> list[str]:
        """What the model got as results."""
        async with await Agent.create(
            workdir=self._directory, model_client=self.model, permission_mode="bypassPermissions", hooks=hooks
        ) as agent:
            await agent.send_message("go")
        blocks = [block for message in agent.messages for block in message.blocks if isinstance(block, ToolBlock)]
        self.successes = [block.success for block in blocks]
        return [block.result or "" for block in blocks]


def raw_secrets(home: Path) -> list[str]:
    return [str(file) for file in home.rglob("*") if file.is_file() and "RAWSECRET" in file.read_text(errors="replace")]


@pytest.mark.parametrize("matcher", ["Bash", "BashOutput", "Bash|BashOutput", "*"])
async def test_a_hook_on_either_tool_redacts_it_once_and_no_file_has_it(
    tmp_path: Path, home: Path, matcher: str
) -> None:
    seen: list[str] = []

    def redact(event: Any) -> Any:
        seen.append(event["tool_name"])
        return REDACTED if "RAWSECRET" in event["tool_response"]["output"] else None

    results = await Session(tmp_path).run(PostToolUse=[{"matcher": matcher, "hooks": [redact]}])
    assert results[1] == "[redacted]"
    assert raw_secrets(home) == []
    assert "All its output goes to" not in results[0]
    assert seen.count("Bash") == (0 if matcher == "BashOutput" else 2 if matcher == "Bash" else 1)
    assert seen.count("BashOutput") == (0 if matcher == "Bash" else 1)


async def test_a_hook_on_bash_gets_the_fields_of_a_bash_call(tmp_path: Path) -> None:
    seen: list[Any] = []
    hooks = {"PostToolUse": [{"matcher": "Bash", "hooks": [seen.append]}]}
    session = Session(tmp_path, "echo out; exit 3")
    await session.run(**hooks)
    event = seen[1]
    assert (event["tool_name"], event["tool_input"]) == (
        "Bash",
        {"command": "echo out; exit 3", "run_in_background": True},
    )
    response = event["tool_response"]
    assert {name: response[name] for name in ("stdout", "stderr", "output", "exit_code", "success", "interrupted")} == {
        "stdout": "out\n",
        "stderr": "",
        "output": "out\n",
        "exit_code": 3,
        "success": False,
        "interrupted": False,
    }
    assert response["backgroundTaskId"] == "bash_1"
    assert session.successes == [True, True]  # BashOutput itself did its work


async def test_a_hook_on_bash_sees_what_a_hook_on_bash_output_has_left(tmp_path: Path) -> None:
    def redact(event: Any) -> Any:
        return REDACTED

    seen: list[str] = []
    last = [lambda event: seen.append(event["tool_response"]["stdout"])]
    hooks = [{"matcher": "BashOutput", "hooks": [redact]}, {"matcher": "Bash", "hooks": last}]
    await Session(tmp_path).run(PostToolUse=hooks)
    assert seen[1] == "[redacted]"


async def test_a_condition_about_the_command_holds_for_its_output(tmp_path: Path) -> None:
    script = tmp_path / "redact.sh"
    script.write_text(
        """#!/bin/sh
echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "[redacted]"}}'
"""
    )
    script.chmod(0o755)

    def group(rule: str) -> dict[str, Any]:
        return {"PostToolUse": [{"matcher": "*", "hooks": [{"command": str(script), "if": rule}]}]}

    assert (await Session(tmp_path).run(**group("Bash(printf *)")))[1] == "[redacted]"
    assert "RAWSECRET" in (await Session(tmp_path).run(**group("Bash(ls *)")))[1]


async def test_a_failure_of_a_redactor_on_bash_withholds_it(tmp_path: Path, home: Path) -> None:
    hooks = {"PostToolUse": [{"matcher": "Bash", "hooks": [{"command": "exit 1", "onFailure": "block"}]}]}
    results = await Session(tmp_path).run(**hooks)
    assert "Its result is withheld" in results[1]
    assert raw_secrets(home) == []
