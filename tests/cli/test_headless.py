"""`wave -p` as a real process against a real HTTP server on loopback."""

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import WAVE, Project, serving
from wave_agent.models.base import ToolCall
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import Hang, Status


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_text_is_the_last_answer_alone(project: Project):
    with serving(Reply(text="Looking.", tool_calls=[call("Glob", pattern="*.py")]), "Nothing there.") as server:
        done = project.wave("-p", "What is here?", server=server)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Nothing there.\n", "")
    first = server.requests[0].body
    assert first["messages"][-1] == {"role": "user", "content": "What is here?"}
    assert first["model"] == "test"
    assert len(json.dumps(first)) < 16_000


def test_json_is_one_object_also_when_it_fails(project: Project):
    with serving("Hello.") as server:
        done = project.wave("-p", "hi", "--output-format", "json", server=server)
    result = json.loads(done.stdout)
    assert (done.returncode, result["type"], result["status"], result["result"]) == (0, "result", "completed", "Hello.")
    assert Path(result["transcript_path"]).exists()
    failed = project.wave("-p", "hi", "--output-format", "json")
    assert failed.returncode == 1
    assert "WAVE_BASE_URL" in json.loads(failed.stdout)["error"]
    project.settings({"hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}})
    untrusted = project.wave("-p", "hi", "--output-format", "json")
    assert untrusted.returncode == 1
    assert json.loads(untrusted.stdout)["session_id"] is None
    assert "not trusted" in json.loads(untrusted.stdout)["error"]


def test_stream_json_is_one_event_a_line_and_the_result_last(project: Project):
    project.settings({"hooks": {"PreToolUse": [{"hooks": [{"command": "true", "name": "look"}]}]}})
    with serving(Reply(tool_calls=[call("Glob", pattern="*")]), "Done.") as server:
        done = project.wave("-p", "go", "--output-format", "stream-json", "--trust", server=server)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["session_started", "turn_started"]
    assert kinds[-2:] == ["turn_ended", "result"]
    assert {"tool_started", "hook_started", "hook_finished", "tool_finished", "text_delta"} <= set(kinds)
    finished = next(event for event in events if event["type"] == "hook_finished")
    assert (finished["event"], finished["name"], finished["outcome"]) == ("PreToolUse", "look", "none")


@pytest.mark.parametrize(
    ("hooks", "status", "code"),
    [
        ({"UserPromptSubmit": ["echo refused >&2; exit 2"]}, "blocked", 3),
        ({"UserPromptSubmit": ["""echo '{"continue": false, "stopReason": "enough"}'"""]}, "stopped", 3),
        ({"Stop": ["echo again >&2; exit 2"]}, "stop_limit", 3),
    ],
)
def test_a_hook_that_ends_it_is_exit_status_3(project: Project, hooks: dict[str, Any], status: str, code: int):
    project.settings({"hooks": hooks, "maxStopBlocks": 1})
    with serving("one", "two", "three") as server:
        done = project.wave("-p", "hi", "--trust", "--output-format", "json", server=server)
    assert (json.loads(done.stdout)["status"], done.returncode) == (status, code)
    assert done.stderr.startswith("wave: ")


def test_max_turns_is_exit_status_4_and_its_results_are_kept(project: Project):
    with serving(Reply(tool_calls=[call("Glob", pattern="*")])) as server:
        done = project.wave("-p", "go", "--max-turns", "1", "--output-format", "json", server=server)
    result = json.loads(done.stdout)
    assert (done.returncode, result["status"], result["turns"]) == (4, "max_turns", 1)
    assert result["messages"][1]["blocks"][0]["success"] is True


def test_the_prompt_may_come_from_stdin_or_be_followed_by_it(project: Project):
    with serving("a", "b", "c") as server:
        project.wave("-p", server=server, piped="from stdin")
        project.wave("-p", "-", server=server, piped="dash")
        project.wave("-p", "Review", server=server, piped="the diff")
    sent = [request.body["messages"][-1]["content"] for request in server.requests]
    assert sent == ["from stdin", "dash", "Review\n\nthe diff"]


def test_the_prompt_may_stand_behind_other_options(project: Project):
    with serving("a", "b") as server:
        project.wave("-p", "--trust", "--allowed-tools", "Bash", "Run the tests", server=server)
        project.wave("-p", "--trust", "Review", server=server, piped="the diff")
    sent = [request.body["messages"][-1]["content"] for request in server.requests]
    assert sent == ["Run the tests", "Review\n\nthe diff"]
    split = project.wave("-p", "--trust", "Run", "the", "tests")
    assert (split.returncode, "put it in quotes" in split.stderr) == (2, True)
    assert project.wave("nonsense").returncode == 2


def test_behind_p_every_word_is_the_prompt_whatever_stands_around_it(project: Project):
    lines = [
        ["-p", "--trust", "two words", "--model", "toy"],
        ["-p", "--output-format", "json", "demo"],
        ["-p", "--trust", "--", "--help"],
        ["-pc", "hi"],
    ]
    with serving(*map(str, range(len(lines)))) as server:
        done = [project.wave(*line, server=server) for line in lines]
    assert [request.body["messages"][-1]["content"] for request in server.requests] == [
        "two words",
        "demo",
        "--help",
        "hi",
    ]
    assert [request.body["model"] for request in server.requests] == ["toy", "test", "test", "test"]
    assert len(server.requests[-1].body["messages"]) > 3  # -c: it goes on
    assert [one.returncode for one in done] == [0, 0, 0, 0]
    assert json.loads(done[1].stdout)["result"] == "1"
    for line in (["-p", "hi", "demo"], ["-p", "hi", "there", "--trust"]):
        refused = project.wave(*line)
        assert (refused.returncode, "Expected a single prompt" in refused.stderr) == (2, True)


ON_ITS_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Ctrl-C reaches what has the terminal as its own."""


@pytest.mark.parametrize(("keys", "status"), [(b"What is\nthis?\n\x04", 0), (b"\x03", 130)])
def test_on_a_terminal_the_prompt_is_typed_and_the_first_ctrl_c_ends_it(project: Project, keys: bytes, status: int):
    with serving("fine") as server:
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", ON_ITS_TERMINAL, WAVE, "-p"],
            cwd=project.directory,
            env=project.environment(server),
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        os.close(slave)
        assert process.stderr is not None
        assert process.stderr.readline() == "wave: Reading the prompt from the terminal; end it with Ctrl-D.\n"
        os.write(master, keys)
        out, err = process.communicate(timeout=30)
        os.close(master)
    sent = [request.body["messages"][-1]["content"] for request in server.requests]
    assert sent == ([] if status else ["What is\nthis?\n"])
    assert (process.returncode, out, err.strip()) == (status, "" if status else "fine\n", "")


def test_a_stdin_on_which_nothing_comes_is_not_waited_for(project: Project):
    with serving("fine") as server:
        process = project.command("-p", "hi", server=server, stdin=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.read() == "fine\n"
        assert process.stderr is not None
        assert "No input on stdin" in process.stderr.read()
        process.communicate(timeout=30)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_interrupts_and_leaves_a_session_that_goes_on(project: Project, number: signal.Signals, code: int):
    with serving(Reply(tool_calls=[call("Bash", command="touch started; exec sleep 600")]), "never", "again") as server:
        process = project.command(
            "-p", "go", "--permission-mode", "bypassPermissions", "--output-format", "json", server=server
        )
        wait_for(project.directory / "started")
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
        assert (process.returncode, json.loads(out)["status"]) == (code, "interrupted")
        more = project.wave("-c", "-p", "go on", "--permission-mode", "bypassPermissions", server=server)
    assert more.returncode == 0
    *_, result, news, prompt = server.requests[-1].body["messages"]
    assert (result["role"], prompt["content"]) == ("tool", "go on")
    assert news["content"].endswith("This has changed since you were last told:\nTop level: started")


@pytest.mark.parametrize("number", [None, signal.SIGINT, signal.SIGTERM])
def test_the_session_ends_for_hooks_however_the_command_does(project: Project, number: signal.Signals | None):
    project.settings({"hooks": {"SessionEnd": [{"hooks": ["cat > ended.json", "sleep 60"]}]}})
    sleep = Reply(tool_calls=[call("Bash", command="touch started; exec sleep 600")])
    with serving("done" if number is None else sleep) as server:
        process = project.command(
            "-p", "go", "--trust", "--permission-mode", "bypassPermissions", "--output-format", "json", server=server
        )
        if number is not None:
            wait_for(project.directory / "started")
            process.send_signal(number)
        out, _ = process.communicate(timeout=30)  # the other hook wants more than it gets
    assert json.loads(out)["status"] == ("completed" if number is None else "interrupted")
    ended = json.loads((project.directory / "ended.json").read_text())
    assert (ended["hook_event_name"], ended["reason"]) == ("SessionEnd", "other")


def test_a_second_ctrl_c_ends_at_once(project: Project):
    stubborn = 'trap "touch heard" TERM; trap "" INT; touch started; while :; do sleep 0.05; done'
    with serving(Reply(tool_calls=[call("Bash", command=stubborn)])) as server:
        process = project.command("-p", "go", "--permission-mode", "bypassPermissions", server=server)
        wait_for(project.directory / "started")
        process.send_signal(signal.SIGINT)
        wait_for(project.directory / "heard")  # two signals in one moment would be one
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
    assert process.returncode == 130


def test_a_closed_stdout_ends_quietly(project: Project):
    with serving("word " * 50_000) as server:
        process = project.command("-p", "go", "--output-format", "stream-json", server=server)
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        with process.stderr:
            assert "Traceback" not in process.stderr.read()
        process.wait(timeout=30)


@pytest.mark.parametrize(
    "line",
    [
        ["-p", "hi"],
        ["-p", "hi", "--output-format", "json"],
        ["-p", "hi", "--output-format", "stream-json"],
        ["sessions"],
        ["--help"],
        ["hooks", "recipes"],
    ],
)
def test_an_answer_that_cannot_be_written_is_an_error(project: Project, line: list[str]):
    with serving("fine") as server, Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [WAVE, *line],
            cwd=project.directory,
            env=project.environment(server),
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            text=True,
            timeout=60,
        )
    what = "answer" if "-p" in line else "output"
    assert done.stderr == f"wave: The {what} cannot be written: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Status(401, {"error": {"message": "bad key"}}), ["bad key", "WAVE_API_KEY"]),
        (Status(404, {"error": {"message": "no such model"}}), ["no such model"]),
    ],
)
def test_a_refusal_is_one_sentence_with_the_servers_own_words(project: Project, reply: Any, words: list[str]):
    with serving(reply) as server:
        done = project.wave("-p", "hi", server=server)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.strip().splitlines()) == 1
    assert all(word in done.stderr for word in words)


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_why_no_session_started_is_on_stderr_in_every_format(project: Project, tmp_path: Path, form: str):
    (tmp_path / "bin").mkdir()
    broken = tmp_path / "bin" / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2\nexit 1\n")
    broken.chmod(0o755)
    found = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    for arguments, environment, why in (
        (["--sandbox"], {"PATH": "/nonexistent"}, "--sandbox needs bwrap, which was not found"),
        (["--sandbox"], {"PATH": found}, "bubblewrap does not work here: bwrap: No permissions"),
        ([], {"WAVE_MODEL": ""}, "No model is set"),
    ):
        with serving("fine") as server:
            done = project.wave("-p", "hi", "--output-format", form, *arguments, server=server, **environment)
            assert server.requests == []
        assert done.returncode == 1
        assert done.stderr.startswith("wave: ")
        assert why in done.stderr
        assert done.stdout == "" if form == "text" else why in json.loads(done.stdout.splitlines()[-1])["error"]


def test_without_a_models_name_nothing_is_sent(project: Project):
    with serving("fine") as server:
        done = project.wave("-p", "hi", server=server, WAVE_MODEL="")
        assert server.requests == []
        assert project.wave("-p", "hi", "--model", "toy", server=server, WAVE_MODEL="").stdout == "fine\n"
    assert done.returncode == 1
    assert done.stderr == "wave: No model is set: run wave setup, set WAVE_MODEL or use --model.\n"


def test_429_then_success(project: Project):
    with serving(Status(429, {"error": {"message": "slow down"}}, headers={"Retry-After": "0"}), "there") as server:
        done = project.wave("-p", "hi", server=server)
    assert (done.returncode, done.stdout) == (0, "there\n")
    assert "slow down" in done.stderr


def test_four_parallel_calls_get_four_results_in_order_and_an_unknown_tool_is_explained(
    project: Project,
):
    calls = [call("Glob", pattern="a*"), call("Nope", x=1), call("Grep", pattern="["), call("Glob", pattern="b*")]
    with serving(Reply(tool_calls=calls), "done") as server:
        project.wave("-p", "go", server=server)
    results = [message for message in server.requests[1].body["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in results] == [one.id for one in calls]
    assert "There is no tool" in results[1]["content"]


def test_rules_on_the_command_line_count(project: Project):
    asked = Reply(tool_calls=[call("Bash", command="echo hi > made"), call("Bash", command="echo ho")])
    with serving(asked, "done") as server:
        project.wave("-p", "go", "--allowed-tools", "Bash", "--disallowed-tools", "Bash(echo ho)", server=server)
    results = [message["content"] for message in server.requests[1].body["messages"] if message["role"] == "tool"]
    assert (project.directory / "made").exists()
    assert "Not run: denied by the permission rule" in results[1]


def test_wrong_usage_is_exit_status_2(project: Project):
    for arguments in (["--nonsense"], ["-p", "x", "--max-turns", "0"], ["-p", "x", "--output-format", "yaml"], ["-p"]):
        done = project.wave(*arguments)
        assert done.returncode == 2, arguments
        assert "Traceback" not in done.stderr


def test_a_settings_file_that_is_not_json_stops_the_start_with_its_place(project: Project):
    (project.directory / "extra.json").write_text('{\n  "hooks": {},\n}')
    done = project.wave("-p", "hi", "--settings", "extra.json")
    assert done.returncode == 1
    assert "extra.json:2:" in done.stderr
    missing = project.wave("-p", "hi", "--settings", "missing.json")
    assert (missing.returncode, "missing.json" in missing.stderr) == (2, True)


def test_an_unknown_session_is_status_1(project: Project):
    for arguments in (["-r", "nope"], ["-c"], ["-r", "../../etc/passwd"]):
        done = project.wave(*arguments, "-p", "hi")
        assert done.returncode == 1
        assert "session" in done.stderr


def test_a_session_goes_on_by_the_short_id_that_lists_show(project: Project):
    with serving("One.", "Two.") as server:
        first = json.loads(project.wave("-p", "hi", "--output-format", "json", server=server).stdout)
        short = first["session_id"][:8]
        done = project.wave("-r", short, "-p", "more", "--output-format", "json", server=server)
        assert (done.returncode, json.loads(done.stdout)["session_id"]) == (0, first["session_id"])
        assert [one["content"] for one in server.requests[-1].body["messages"][1:]] == ["hi", "One.", "more"]
        path = Path(first["transcript_path"])
        twin = f"{short}-twin"
        (path.parent / f"{twin}.jsonl").write_bytes(path.read_bytes())
        refused = project.wave("-r", short, "-p", "which?", server=server)
    assert (refused.returncode, len(server.requests)) == (1, 2)
    assert twin in refused.stderr
    assert first["session_id"] in refused.stderr
    assert project.wave("-r", short[:7], "-p", "hi").returncode == 1


def test_project_instructions_are_in_the_system_prompt_once(project: Project):
    (project.directory / "AGENTS.md").write_text("Use tabs.")
    (project.directory / "CLAUDE.md").write_text("Use tabs.\n")
    with serving("ok") as server:
        project.wave("-p", "hi", "--append-system-prompt", "Be brief.", server=server)
    system = server.requests[0].body["messages"][0]["content"]
    assert system.count("Use tabs.") == 1
    assert system.endswith("Be brief.")


def test_debug_hooks_tells_every_run(project: Project):
    project.settings({"hooks": {"Stop": [{"hooks": [{"command": "true", "name": "calm"}]}]}})
    with serving("ok") as server:
        done = project.wave("-p", "hi", "--trust", "--debug", "hooks", server=server)
    assert "wave: hook Stop calm: none" in done.stderr


@pytest.mark.parametrize(
    ("event", "hook", "told"),
    [
        ("PreToolUse", {"command": "echo no jq >&2; exit 1"}, "failed and was let through: no jq"),
        (
            "PreToolUse",
            {"command": "echo no jq >&2; exit 1", "onFailure": "block"},
            "failed, so the call was not run: no jq",
        ),
        ("PreToolUse", {"command": "kill -9 $$"}, "was killed by signal 9 (SIGKILL) and was let through"),
        ("PreToolUse", {"command": "echo no jq >&2; exit 1", "mode": "shadow"}, "failed, which has no effect: no jq"),
        (
            "UserPromptSubmit",
            {"command": "echo no jq >&2; exit 1", "onFailure": "block"},
            "failed, so the prompt was not sent: no jq",
        ),
        ("Stop", {"command": "false"}, "failed with exit code 1 and was let through"),
        (
            "UserPromptSubmit",
            {"command": "echo '{garbage'", "onFailure": "block"},
            "failed, so the prompt was not sent: stdout looks like JSON but is not: line 1, column 2: ",
        ),
    ],
)
def test_a_hook_that_fails_is_named_once_with_what_came_of_it(
    project: Project, event: str, hook: dict[str, Any], told: str
):
    project.settings({"hooks": {event: [{"hooks": [{"name": "guard", **hook}]}]}})
    with serving(Reply(tool_calls=[call("Glob", pattern="*")]), "Done.") as server:
        done = project.wave("-p", "go", "--trust", server=server)
    [line] = done.stderr.splitlines()
    assert line.startswith(f'wave: Hook "guard" on {event} {told}')


def test_whoever_reads_stderr_learns_which_hook_refused_what_and_why(project: Project):
    def hook(command: str, name: str, **more: object) -> dict[str, Any]:
        return {"hooks": [{"command": command, "name": name, **more}]}

    deny = "echo rm is not allowed here >&2; exit 2"
    project.settings(
        {
            "hooks": {
                "UserPromptSubmit": [
                    {"matcher": "", **hook("grep -q secret && { echo no secrets >&2; exit 2; } || true", "one")},
                    hook("grep -q secret && exit 2 || true", "two"),
                ],
                "PreToolUse": [
                    {"matcher": "Bash", **hook(deny, "guard")},
                    {"matcher": "Bash", **hook(deny, "trial", mode="shadow")},
                ],
                "PostToolUse": [{"matcher": "Glob", **hook("echo look closer >&2; exit 2", "after")}],
                "Stop": [hook("""echo '{"continue": false, "stopReason": "enough"}'""", "end")],
            }
        }
    )
    calls = [call("Bash", command="rm -rf build"), call("Glob", pattern="*")]
    with serving(Reply(tool_calls=calls), "Done.") as server:
        done = project.wave("-p", "go", "--trust", server=server)
        refused = project.wave("-p", "a secret", "--trust", "--output-format", "json", server=server)
    assert done.stderr.splitlines() == [
        'wave: Hook "guard" denied Bash (rm -rf build): rm is not allowed here',
        'wave: Hook "after" objected to Glob (*): look closer',
        'wave: Hook "end" ended the turn: enough',
    ]
    assert refused.stderr.splitlines() == [
        'wave: Hook "one" blocked the prompt: no secrets',
        'wave: Hook "two" blocked the prompt',
    ]
    [said] = json.loads(refused.stdout)["messages"][-1]["blocks"]
    assert said == {"type": "error", "content": "no secrets\nBlocked by hook two"}


def test_messages_of_a_subagent_name_it_and_a_hook_that_ends_it_is_named_once(project: Project):
    stop = """grep -q '"Glob"' && exit 0; echo '{"continue": false, "stopReason": "Hands off."}'"""
    project.settings(
        {"hooks": {"PreToolUse": [{"matcher": "Glob|Grep", "hooks": [{"command": stop, "name": "guard"}]}]}}
    )
    agents = project.directory / ".wave" / "agents"
    agents.mkdir()
    (agents / "short.md").write_text("---\ndescription: d\nmaxTurns: 1\n---\nBe short.")
    short = call("Task", description="d", prompt="p", subagent_type="short")
    explore = call("Task", description="d", prompt="p", subagent_type="explore")
    looks, searches = Reply(tool_calls=[call("Glob", pattern="*")]), Reply(tool_calls=[call("Grep", pattern="x")])
    script = (Reply(tool_calls=[short]), looks, "Short.", Reply(tool_calls=[explore]), searches)
    with serving(*script) as server:
        done = project.wave("-p", "go", "--trust", "--output-format", "json", server=server)
    told = 'Hook "guard" ended the turn in the subagent explore: Hands off.'
    limit = "Subagent short: Stopped after 1 model request: the limit is reached."
    assert done.stderr.splitlines() == [f"wave: {limit}", f"wave: {told}"]
    result = json.loads(done.stdout)
    assert (result["status"], told in str(result["messages"])) == ("stopped", True)


def test_a_server_that_never_answers_can_be_interrupted(project: Project):
    with serving(Hang()) as server:
        process = project.command("-p", "hi", server=server)
        for _ in waiting():
            if server.requests:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 130


def waiting(seconds: float = 20) -> Iterator[None]:
    deadline = time.monotonic() + seconds
    while True:
        assert time.monotonic() < deadline, "it never happened"
        yield
        time.sleep(0.01)


def wait_for(file: Path) -> None:
    for _ in waiting():
        if file.exists():
            return


def test_a_small_models_calls_in_text_and_almost_json_arguments_are_run(project: Project):
    (project.directory / "a.py").touch()
    written = 'I will look.\n<tool_call>\n{"name": "Glob", "arguments": {"pattern": "*.py"}}\n</tool_call>'
    almost = Reply(tool_calls=[ToolCall("call_9", "Glob", "{'pattern': 'a.*',}")])
    with serving(written, almost, "done") as server:
        done = project.wave("-p", "go", server=server)
    assert done.stdout == "done\n"
    for request in server.requests[1:]:
        assert "a.py" in request.body["messages"][-1]["content"]


def test_a_result_of_2_mb_is_capped_for_the_model_and_kept_whole(project: Project):
    big = "head -c 2000000 /dev/zero | tr '\\0' x"
    with serving(Reply(tool_calls=[call("Bash", command=big)]), "done") as server:
        done = project.wave(
            "-p", "go", "--allowed-tools", "Bash", "--permission-mode", "bypassPermissions", server=server
        )
    assert done.stdout == "done\n"
    content = server.requests[1].body["messages"][-1]["content"]
    assert len(content) < 40_000
    [whole] = [file for file in project.home.rglob("*.txt") if str(file) in content]
    assert whole.read_text() == "x" * 2_000_000


def test_an_endless_stdin_is_cut_with_a_notice(project: Project):
    with serving("fine", "fine") as server:
        for arguments in (["-p", "Look"], ["-p"]):
            endless = subprocess.Popen(["yes", "größer"], stdout=subprocess.PIPE)
            process = project.command(*arguments, server=server, stdin=endless.stdout)
            assert endless.stdout is not None
            endless.stdout.close()
            out, err = process.communicate(timeout=60)
            assert (process.returncode, out) == (0, "fine\n")
            assert "wave: Stdin was truncated after 10 MB; the rest was not read." in err
            endless.wait(timeout=20)
    after, alone = [request.body["messages"][-1]["content"] for request in server.requests]
    assert after == f"Look\n\n{alone}"
    read, _, note = alone.rpartition("\n")
    assert note == "[Stdin was truncated here, after 10 MB.]"
    assert len(read.encode()) in (9_999_999, 10_000_000)
    assert "\ufffd" not in read


def test_a_stdin_that_is_no_text_is_read_nevertheless(project: Project):
    with serving("fine") as server:
        process = project.command("-p", "Look", server=server, stdin=subprocess.PIPE, errors="surrogateescape")
        _, err = process.communicate("a\r\n\udcffb", timeout=60)
    assert (process.returncode, err) == (0, "")
    assert server.requests[0].body["messages"][-1]["content"] == "Look\n\na\n\ufffdb"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-c", "-r", "12345678"], "cannot be combined"),
        (["--add-dir", "no/such"], "Directory 'no/such' does not exist"),
        (["--allowed-tools", "Bash("], '--allowed-tools: "Bash(" is not a rule'),
        (["--allowed-tools", "Bsh(x)"], "did you mean Bash(x)?\n"),
        (["--disallowed-tools", "Web(x)"], 'write "Web" for every call of that tool'),
    ],
    ids=["two sessions", "a directory that is missing", "a rule to allow", "a misspelt tool", "a rule to deny"],
)
def test_a_flag_that_makes_no_sense_is_wrong_usage(project: Project, arguments: list[str], said: str) -> None:
    with serving("Hi.") as server:
        done = project.wave("-p", "go", *arguments, server=server)
    assert server.requests == []
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_the_prompt_may_stand_before_the_flag(project: Project) -> None:
    with serving("Hi.") as server:
        done = project.wave("Say hi", "-p", "--model", "small", server=server)
    assert server.requests[0].body["messages"][-1]["content"] == "Say hi"
    assert (done.returncode, done.stdout) == (0, "Hi.\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--settings", "nowhere.json"), "wave: Settings file not found: "),
        (("--cwd", "nowhere"), "wave: There is no directory "),
        (("--plugin-dir", "nowhere", "--output-format", "json"), "wave: Plugin directory not found: "),
        (("--allowed-tools", "Bash("), "Usage: wave [OPTIONS]"),
    ],
)
def test_a_path_that_is_not_there_and_a_rule_that_is_none_are_wrong_usage(
    project: Project, arguments: tuple[str, ...], told: str
):
    done = project.wave("-p", *arguments, "hi")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(told)
    assert "wave prompt" not in done.stderr


def test_a_session_is_resumed_by_the_beginning_of_its_id(project: Project):
    with serving("one", "two") as server:
        first = json.loads(project.wave("-p", "hi", "--output-format", "json", server=server).stdout)
        again = project.wave("-p", "again", "-r", first["session_id"][:4], "--output-format", "json", server=server)
    assert json.loads(again.stdout)["session_id"] == first["session_id"]


def test_resuming_without_an_id_says_where_the_ids_are(project: Project):
    done = project.wave("-r")
    assert done.returncode == 2
    assert "Option '-r' requires an argument. wave sessions lists the ids" in done.stderr


def test_a_home_that_cannot_be_written_is_told_once_with_what_to_do(project: Project):
    home = "/proc/home"
    with serving("never") as server:
        done = project.wave("-p", "hi", server=server, WAVE_HOME=home)
        checked = project.wave("doctor", server=server, WAVE_HOME=home)
    [line] = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.endswith(
        "cannot be written: No such file or directory. Set WAVE_HOME to a directory that you can write to."
    )
    assert (checked.returncode, f"NO  home         {home} cannot be written" in checked.stdout) == (1, True)
    project.settings({"hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}})
    trusted = project.wave("hooks", "trust", "--yes", WAVE_HOME=home)
    assert trusted.returncode == 1
    assert trusted.stderr.endswith(". Set WAVE_HOME to a directory that you can write to.\n")


def test_a_full_disk_is_a_problem_for_the_doctor(project: Project):
    project.home.mkdir()
    done = subprocess.run(
        ["/bin/sh", "-c", f"ulimit -f 0; exec {shlex.join([WAVE, 'doctor'])}"],
        cwd=project.directory,
        env=project.environment(None, PYTHONDONTWRITEBYTECODE="1"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert f"NO  home         {project.home} cannot be written: File too large\n" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_that_comes_twice_at_once_does_not_lose_the_result(project: Project, number: int, code: int) -> None:
    """As `timeout` sends it, while the agent waits for a server that is busy."""
    with serving(Status(429, {"error": {"message": "slow down"}}, headers={"Retry-After": "60"})) as server:
        process = project.command("-p", "hi", "--output-format", "json", server=server)
        assert process.stderr is not None
        assert "trying again" in process.stderr.readline()
        process.send_signal(number)
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
    assert (process.returncode, json.loads(out)["status"]) == (code, "interrupted")
