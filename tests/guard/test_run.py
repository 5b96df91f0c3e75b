"""`wave guard run` as the process that a host starts."""

import json
import subprocess

from tests.cli.project import WAVE
from tests.guard.judging import Arena


def run(arena: Arena, *arguments: str, stdin: str | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WAVE, "guard", "run", *arguments],
        cwd=arena.project,
        env=arena.environment,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_denied_call_is_exit_two_with_the_reason_on_stderr_only(arena: Arena) -> None:
    arena.rules(deny=["Bash(git push:*)"])
    done = run(arena, "claude", "PreToolUse", stdin=json.dumps(arena.call("git push")))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Not run: denied by the permission rule Bash(git push:*). Do without it, or tell the user.\n"


def test_an_answer_in_json_is_all_there_is_on_stdout(arena: Arena) -> None:
    arena.rules(deny=["Bash(git push:*)"])
    payload = {**arena.call("git push"), "tool_name": "bash"}
    done = run(arena, "vibe", "pre_tool", stdin=json.dumps(payload))
    assert done.returncode == 0
    assert json.loads(done.stdout)["decision"] == "deny"


def test_no_event_at_all_is_a_deny(arena: Arena) -> None:
    done = run(arena, "claude", "PreToolUse", stdin=None)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the event is not JSON" in done.stderr


def test_an_event_that_never_ends_is_a_deny_in_time(arena: Arena) -> None:
    process = subprocess.Popen(
        [WAVE, "guard", "run", "kimi", "PreToolUse", "--timeout", "1"],
        cwd=arena.project,
        env=arena.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.wait(20) == 2
        assert process.stderr is not None
        assert b"did not answer within" in process.stderr.read()
    finally:
        process.kill()
        process.communicate()


def test_an_unknown_host_is_a_usage_error_and_so_a_deny_for_whoever_reads_exit_codes(arena: Arena) -> None:
    done = run(arena, "emacs", "PreToolUse", stdin="{}")
    assert done.returncode == 2
    assert "claude" in done.stderr
