"""The quickstart of specification 011: its four scripts and its configuration, unchanged, run by the agent."""

import json
import shutil
from pathlib import Path

import pytest

from tests.spec.covering import covers
from tests.spec.world import (
    DONE,
    PROMPT,
    World,
    errors,
    notices,
    records,
    refused,
    results_in,
    said_in,
    shape,
    tools,
    transcript,
    users,
    work,
    wrapped,
)
from wave_agent.testing import Reply, call

EXAMPLES = Path(__file__).parent / "quickstart"
SCRIPTS = ("validate-prompt.sh", "check-bash-safety.sh", "log-tool-usage.sh", "check-completion.sh")
INCOMPLETE = "Session incomplete. Please save work before stopping."
SAVE = call("Bash", command="touch .wave/session-complete")


@pytest.fixture
def quickstart(world: World) -> World:
    """A project as someone has it who followed the quickstart."""
    wave = world.project / ".wave"
    wave.mkdir()
    shutil.copy(EXAMPLES / "settings.json", wave / "settings.json")
    for name in SCRIPTS:
        copied = Path(shutil.copy(EXAMPLES / name, world.project / name))
        copied.chmod(0o755)
    return world


def finished(world: World) -> World:
    (world.project / ".wave" / "session-complete").touch()
    return world


async def test_quickstart_the_configuration_has_no_fault(quickstart: World) -> None:
    agent, result = await finished(quickstart).run([DONE])

    assert notices(agent) == []
    assert errors(agent) == []
    assert result.status == "completed"


@covers("012 SC-001")
async def test_quickstart_every_script_of_the_configuration_runs(quickstart: World) -> None:
    agent, result = await finished(quickstart).run(work(call("Bash", command="touch made.txt; echo fine")))

    assert quickstart.exists()
    assert [(run.event, run.exit_code, run.outcome) for run in result.hooks] == [
        ("UserPromptSubmit", 0, "context"),
        ("PreToolUse", 0, "none"),
        ("PostToolUse", 0, "none"),
        ("Stop", 0, "none"),
    ]
    assert {run["command"] for run in records(agent, "hook_run")} == {f"./{name}" for name in SCRIPTS}


async def test_quickstart_the_prompt_arrives_as_the_first_argument(quickstart: World) -> None:
    prompt = """Say "it's done", $HOME & `date`;\nthen stop *"""

    agent, _ = await finished(quickstart).run([DONE], prompt)

    told = f"User intent analyzed: {prompt}\nConfidence: high"
    assert quickstart.request(0) == [
        {"role": "user", "content": prompt},
        {"role": "user", "content": wrapped("UserPromptSubmit", "validate-prompt.sh", told)},
    ]
    assert [message.text for message in users(agent)] == [prompt, told]
    assert said_in(transcript(agent), "user") == [prompt, told]


async def test_quickstart_an_empty_prompt_is_blocked(quickstart: World) -> None:
    agent, result = await finished(quickstart).run([DONE], "")

    assert quickstart.requests == 0
    assert shape(agent) == [("assistant", "error")]
    assert errors(agent) == ["Error: Empty prompt not allowed"]
    assert [(line["reason"], line["length"]) for line in records(agent, "prompt_blocked")] == [
        ("Error: Empty prompt not allowed", 0)
    ]
    assert result.status == "blocked"


async def test_quickstart_a_dangerous_command_is_blocked_by_what_the_second_argument_holds(quickstart: World) -> None:
    (quickstart.project / "keep").mkdir()
    command = "rm -rf keep"

    agent, result = await finished(quickstart).run(work(call("Bash", command=command)))

    reason = f'Blocked dangerous operation: {{"command":"{command}"}}'
    assert quickstart.request(1)[-1]["content"] == refused("check-bash-safety.sh", reason)
    assert (quickstart.project / "keep").is_dir()
    assert (tools(agent)[0].result, tools(agent)[0].success) == (reason, False)
    assert tools(agent)[0].parameters == {"command": command}
    assert results_in(transcript(agent))[0]["content"] == reason
    assert [run.event for run in result.hooks] == ["UserPromptSubmit", "PreToolUse", "Stop"]


async def test_quickstart_the_first_argument_is_the_name_of_the_tool(quickstart: World) -> None:
    """The script prints it to stdout, which only a journal of its own can show."""
    script = quickstart.project / "check-bash-safety.sh"
    script.write_text(script.read_text().replace("exit 0", 'echo "$TOOL_NAME: $TOOL_INPUT" > seen.txt\nexit 0'))

    await finished(quickstart).run(work(call("Bash", command="true")))

    assert (quickstart.project / "seen.txt").read_text() == 'Bash: {"command":"true"}\n'


async def test_quickstart_the_matcher_names_bash_alone(quickstart: World) -> None:
    (quickstart.project / "note.txt").write_text("rm -rf everything")

    agent, result = await finished(quickstart).run(work(call("Grep", pattern="rm -rf", path=".")))

    assert [run.event for run in result.hooks] == ["UserPromptSubmit", "PostToolUse", "Stop"]
    assert tools(agent)[0].success is True


async def test_quickstart_a_result_with_an_error_gets_feedback(quickstart: World) -> None:
    failing = call("Bash", command="touch made.txt; echo 'Error: no space left'; exit 1")

    agent, result = await finished(quickstart).run(work(failing))

    reason = "Tool execution completed with errors. Manual review recommended."
    assert quickstart.request(1)[-1] == {
        "role": "user",
        "content": wrapped("PostToolUse", "log-tool-usage.sh", reason),
    }
    assert quickstart.exists()
    assert "Error: no space left" in (tools(agent)[0].result or "")
    assert users(agent)[-1].text == reason
    assert said_in(transcript(agent), "user")[-1] == reason
    assert (result.status, result.text) == ("completed", DONE)


async def test_quickstart_the_agent_may_not_stop_before_the_work_is_saved(quickstart: World) -> None:
    agent, result = await quickstart.run(["Ready.", Reply(tool_calls=[SAVE]), DONE])

    assert quickstart.request(1)[-1] == {
        "role": "user",
        "content": wrapped("Stop", "check-completion.sh", INCOMPLETE),
    }
    assert quickstart.exists(".wave/session-complete")
    assert [message.text for message in users(agent)][2:] == [INCOMPLETE]
    assert said_in(transcript(agent), "user")[2] == INCOMPLETE
    assert (result.status, result.text, result.turns) == ("completed", DONE, 3)


async def test_quickstart_stdout_of_the_other_scripts_is_not_seen(quickstart: World) -> None:
    agent, _ = await finished(quickstart).run(work(call("Bash", command="echo fine")))

    for text in ("validated successfully", "logged successfully", "Session completed"):
        assert not quickstart.model_saw(text)
        assert text not in str(agent.messages)
    assert len(users(agent)) == 2
    assert users(agent)[0].text == PROMPT


def test_quickstart_the_copies_are_what_the_quickstart_shows() -> None:
    """The lines that a reader would recognise; the scripts must never be adapted to the agent."""
    settings = json.loads((EXAMPLES / "settings.json").read_text())
    assert list(settings["hooks"]) == ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]
    assert settings["hooks"]["PreToolUse"][0]["matcher"] == "bash*"
    for name, line in zip(
        SCRIPTS,
        ('USER_PROMPT="$1"', 'TOOL_INPUT="$2"', 'TOOL_RESULT="$2"', 'if [[ ! -f ".wave/session-complete" ]]; then'),
        strict=True,
    ):
        assert line in (EXAMPLES / name).read_text()
