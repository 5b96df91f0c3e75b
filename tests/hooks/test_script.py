"""`@hook`: one function, as a command, in an agent and in a test."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wave_agent
from wave_agent.hooks import HookCall, deny, hook
from wave_agent.hooks.events import HookEvent, OnFailure
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.hooks.semantics import read
from wave_agent.testing import Reply, ScriptedModel, call

EVENT = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm -rf build"}}
HEAD = "import os, subprocess, sys\nfrom wave_agent.hooks import deny, hook\n\n\n@hook\n"
MAIN = '\n\nif __name__ == "__main__":\n    guard.main()\n'


def run_script(
    tmp_path: Path, body: str, stdin: str | None = None, *, head: str = HEAD, main: str = MAIN
) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "guard.py"
    script.write_text(head + body + main)
    return subprocess.run(
        [sys.executable, script],
        input=json.dumps(EVENT) if stdin is None else stdin,
        env={**os.environ, "HOOK_EVENT": "PreToolUse"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def meaning(ran: subprocess.CompletedProcess[str], on_failure: OnFailure = OnFailure.CONTINUE) -> str:
    result = HookExecutionResult(exit_code=ran.returncode, stdout=ran.stdout, stderr=ran.stderr.strip())
    verdict = read(HookEvent.PRE_TOOL_USE, result, name="guard", on_failure=on_failure)
    return "failure" if verdict.failure else verdict.decision.name.lower()


# --------------------------------------------------------------------------------------------------------- as a command


def test_a_script_answers_with_json_and_exit_status_0(tmp_path: Path) -> None:
    ran = run_script(tmp_path, "def guard(call):\n    return deny(f'not {call.input[\"command\"]}')\n")
    assert (ran.returncode, json.loads(ran.stdout), ran.stderr) == (
        *(0, {"decision": "block", "reason": "not rm -rf build"}, ""),
    )


def test_a_script_without_an_answer_prints_nothing(tmp_path: Path) -> None:
    ran = run_script(tmp_path, "def guard(call):\n    return None\n")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_an_async_function_is_awaited(tmp_path: Path) -> None:
    ran = run_script(tmp_path, "async def guard(call):\n    return deny(call.tool)\n")
    assert json.loads(ran.stdout) == {"decision": "block", "reason": "Bash"}


def test_what_the_function_and_its_children_print_does_not_hide_its_answer(tmp_path: Path) -> None:
    body = "def guard(call):\n    print('thinking')\n    subprocess.run(['echo', 'child'])\n    return deny('no')\n"
    ran = run_script(tmp_path, body)
    assert json.loads(ran.stdout) == {"decision": "block", "reason": "no"}
    assert {"thinking", "child"} <= set(ran.stderr.split())


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("def guard(call):\n    return deny(call.input['absent'])\n", "KeyError: 'absent'"),
        ("def guard(call):\n    sys.exit(0)\n", "SystemExit: 0"),
        ("def guard(call):\n    raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        (
            "def guard(call):\n    return True\n",
            "TypeError: a hook function must return None, a dict or an answer, not bool",
        ),
        ("def guard(call):\n    return {'decision': {1, 2}}\n", "something that is not JSON"),
        ("async def guard(call):\n    raise ValueError('late')\n", "ValueError: late"),
    ],
)
def test_a_function_that_gives_no_answer_is_a_failure_and_no_opinion(tmp_path: Path, body: str, told: str) -> None:
    ran = run_script(tmp_path, body)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert told in ran.stderr
    assert meaning(ran) == meaning(ran, OnFailure.BLOCK) == "failure"


def test_the_traceback_begins_with_the_hooks_own_code(tmp_path: Path) -> None:
    ran = run_script(tmp_path, "def guard(call):\n    return 1 / 0\n")
    first, place, *_ = ran.stderr.splitlines()
    assert (first, "guard.py" in place) == ("Traceback (most recent call last):", True)


@pytest.mark.parametrize(
    ("stdin", "told"),
    [
        ("", "is not valid JSON"),
        ("{", "is not valid JSON"),
        ("[1]", "must be a JSON object, not list"),
        ("\x00", "is not valid JSON"),
    ],
)
def test_what_is_no_event_is_a_failure_that_says_so_without_a_traceback(tmp_path: Path, stdin: str, told: str) -> None:
    ran = run_script(tmp_path, "def guard(call):\n    return None\n", stdin)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
    assert told in ran.stderr


def test_a_script_whose_last_line_is_missing_fails_instead_of_letting_everything_through(tmp_path: Path) -> None:
    ran = run_script(tmp_path, "def guard(call):\n    return deny('no')\n", main="")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert 'End its script with: if __name__ == "__main__": guard.main()' in ran.stderr
    assert meaning(ran) == "failure"


@pytest.mark.parametrize("status", [0, 2])
def test_a_script_may_end_before_its_last_line(tmp_path: Path, status: int) -> None:
    body = f"def guard(call):\n    return deny('no')\n\n\nsys.exit({status})\n"
    ran = run_script(tmp_path, body)
    assert (ran.returncode, ran.stderr) == (status, "")


def test_one_of_several_hooks_in_a_script_is_enough(tmp_path: Path) -> None:
    body = "def other(call):\n    return None\n\n\n@hook\ndef guard(call):\n    return deny('no')\n"
    assert json.loads(run_script(tmp_path, body).stdout)["decision"] == "block"


def test_a_script_that_calls_its_hook_itself_is_left_alone(tmp_path: Path) -> None:
    ran = run_script(tmp_path, "def guard(call):\n    return None\n", main="\n\nguard(None)\n")
    assert (ran.returncode, ran.stderr) == (0, "")


# ----------------------------------------------------------------------------------------------------------- in process


@hook
def guard(tool_call: HookCall) -> Any:
    """Denies rm."""
    if "rm" in tool_call.input["command"]:
        return deny("no rm")
    return None


def test_a_hook_keeps_the_name_and_the_words_of_its_function() -> None:
    assert (guard.__name__, guard.__doc__) == ("guard", "Denies rm.")


def test_the_same_function_is_a_hook_of_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path))
    model = ScriptedModel([Reply(tool_calls=[call("Bash", command="rm x"), call("Bash", command="ls")]), "Done."])
    result = wave_agent.run(
        "Go.",
        hooks={"PreToolUse": [{"matcher": "Bash", "hooks": [guard]}]},
        model_client=model,
        setting_sources=[],
        workdir=tmp_path,
    )
    assert [(run.name, run.outcome, run.reason) for run in result.hooks] == [
        ("guard", "deny", "no rm"),
        ("guard", "none", ""),
    ]


def test_an_async_function_is_a_hook_of_an_agent_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @hook
    async def slow(_: HookCall) -> Any:
        return deny("never")

    monkeypatch.setenv("WAVE_HOME", str(tmp_path))
    model = ScriptedModel([Reply(tool_calls=[call("Bash", command="ls")]), "Done."])
    result = wave_agent.run("Go.", hooks={"PreToolUse": [slow]}, model_client=model, setting_sources=[])
    assert [(run.name, run.outcome) for run in result.hooks] == [("slow", "deny")]
