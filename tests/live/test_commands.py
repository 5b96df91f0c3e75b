"""Commands: what the model learns of them, and what becomes of what they start."""

import json
import signal
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import Any

import pytest

from tests.cli.project import Project, serving
from tests.tools.processes import PROC, is_alive
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import Events, delta

ALLOWED = ("--permission-mode", "bypassPermissions")


def until(condition: Callable[[], bool]) -> None:
    deadline = monotonic() + 30
    while not condition():
        assert monotonic() < deadline, "it never happened"
        sleep(0.01)


def bash(command: str, **more: Any) -> Reply:
    return Reply(tool_calls=[call("Bash", command=command, **more)])


def results(request: Any) -> list[str]:
    return [message["content"] for message in request.body["messages"] if message["role"] == "tool"]


def said(request: Any) -> list[str]:
    return [message["content"] for message in request.body["messages"] if message["role"] == "user"]


def lines(project: Project) -> list[dict[str, Any]]:
    (path,) = (project.home / "projects").rglob("*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def written(project: Project, name: str) -> int:
    """The number that a command writes into a file."""
    path = project.directory / name
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def test_a_progress_bar_fills_the_window_with_all_its_states_and_a_timeout_loses_them(project: Project) -> None:
    bar = r"for i in $(seq 1 3000); do printf '\rfetched %d of 3000' $i; done; "
    with serving(bash(f"{bar} echo"), bash(f"{bar} sleep 600", timeout=1500), "Done.") as server:
        ended = project.wave("-p", "Fetch.", *ALLOWED, server=server)
        assert ended.returncode == 0, ended.stderr
        first, second = results(server.requests[2])
    assert first == "fetched 3000 of 3000"
    assert second.startswith("fetched 3000 of 3000\n[Timed out after 1.5 s")


def test_an_interrupt_loses_what_the_command_had_printed(project: Project) -> None:
    hangs = "echo step one; printf '10%%\\r50%%'; echo $$ > pid; sleep 600; echo never"
    with serving(bash(hangs), "I see.") as server:
        wave = project.command("-p", "Go.", *ALLOWED, server=server)
        pid = written(project, "pid")
        wave.send_signal(signal.SIGINT)
        wave.communicate(timeout=60)
        resumed = project.wave("-c", "-p", "What happened?", server=server)
        (result,) = results(server.requests[1])
    assert result.startswith("step one\n50%\n[Interrupted by the user after ")
    assert not is_alive(pid)
    recorded = [line for line in lines(project) if line.get("error")]
    assert [line["error"] for line in recorded] == ["Interrupted by the user before it was done."]
    assert recorded[0]["message"]["content"][0]["content"] == result
    assert (wave.returncode, resumed.returncode) == (130, 0)


def test_an_interrupt_shows_the_model_a_secret_that_a_hook_would_have_taken_out(project: Project) -> None:
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": "touch ran-after"}]}
    project.settings({"hooks": {"PostToolUse": [hook]}})
    (project.directory / "secret").write_text("hunter2")
    with serving(bash("cat secret; echo $$ > pid; sleep 600"), "I see.") as server:
        wave = project.command("-p", "Go.", "--trust", *ALLOWED, server=server)
        written(project, "pid")
        wave.send_signal(signal.SIGINT)
        wave.communicate(timeout=60)
        project.wave("-c", "-p", "What happened?", "--trust", server=server)
        assert results(server.requests[1]) == ["Interrupted by the user before it was done."]
    assert not (project.directory / "ran-after").exists()
    assert [path for path in project.home.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()] == []


def test_a_look_at_a_background_command_cannot_wait_for_it(project: Project) -> None:
    server_command = "until [ -e gate ]; do sleep 0.01; done; echo listening; sleep 600"
    look = [call("Bash", command="touch gate"), call("BashOutput", bash_id="bash_1", wait_ms=60_000)]
    with serving(bash(server_command, run_in_background=True), Reply(tool_calls=look), "Done.") as server:
        project.wave("-p", "Start it.", *ALLOWED, server=server)
        assert results(server.requests[2])[-1] == "listening\n[bash_1: running]"


def test_the_model_never_learns_that_a_background_command_has_failed(project: Project) -> None:
    report = "[From Wave, not from the user] The background command bash_1 (make; exit 3) ended with exit code 3. "

    def replies() -> Iterator[Any]:
        yield bash("make; exit 3", run_in_background=True)
        for number in range(500):  # every call is another one: a repeated call gets a notice of its own
            yield lambda request, number=number: "Done." if report in said(request)[-1] else bash(f": {number}")

    with serving(*replies()) as server:
        ended = project.wave("-p", "Build.", *ALLOWED, server=server)
        assert ended.returncode == 0, ended.stderr
        asked = len(server.requests)
        assert said(server.requests[-1]) == ["Build.", f"{report}Read its output with BashOutput."]
    (line,) = [line for line in lines(project) if line.get("origins")]
    assert (line["source"], line["origins"]) == ("hook", [{"event": "harness", "hook": "wave"}])

    with serving("Still here.") as server:
        project.wave("-c", "-p", "Well?", *ALLOWED, server=server)
        assert said(server.requests[0]) == ["Build.", f"{report}Read its output with BashOutput.", "Well?"]
    assert asked < 500


def test_after_a_resume_the_model_takes_a_dead_server_for_a_living_one(project: Project) -> None:
    with serving(bash("echo hi; sleep 600", run_in_background=True), "It runs.") as server:
        project.wave("-p", "Start it.", *ALLOWED, server=server)
    calls = [call("BashOutput", bash_id="bash_1"), call("Bash", command="sleep 600", run_in_background=True)]
    with serving(Reply(tool_calls=calls), "It is gone.") as server:
        project.wave("-c", "-p", "Does it run?", *ALLOWED, server=server)
        gone = "The background command bash_1 (echo hi; sleep 600) ended with the earlier session."
        assert said(server.requests[0])[1:] == ["Does it run?", f"[From Wave, not from the user] {gone}"]
        _, looked, started = results(server.requests[1])
    assert looked.startswith("bash_1 (echo hi; sleep 600) ended with the earlier session, before this one was resumed.")
    assert "Start it again with Bash" in looked
    assert started.startswith("Started in the background as bash_2:")


@pytest.mark.skipif(not PROC, reason="processes are found through /proc")
@pytest.mark.parametrize("end", [None, signal.SIGINT, signal.SIGTERM], ids=["completed", "SIGINT", "SIGTERM"])
@pytest.mark.parametrize("detached", ["", "setsid "], ids=["with &", "with setsid"])
def test_what_a_command_leaves_running_burns_on_after_the_agent_has_ended(
    project: Project, end: signal.Signals | None, detached: str
) -> None:
    leaves = f"{detached}sh -c 'echo $$ > pid; exec sleep 600' >/dev/null 2>&1 & until [ -s pid ]; do sleep 0.01; done"
    hangs = "echo $$ > second; sleep 600"
    with serving(bash(leaves), bash(hangs) if end else "Done.") as server:
        wave = project.command("-p", "Go.", *ALLOWED, server=server)
        pid = written(project, "pid")
        if end:
            written(project, "second")
            wave.send_signal(end)
        _, told = wave.communicate(timeout=60)
        (result,) = results(server.requests[1])
    assert f"[Left running in the background: {pid} (sleep 600)." in result
    assert not is_alive(pid)
    assert f"wave: Ended 1 process left running by commands: {pid} (sleep 600)." in told
    notices = [line["content"] for line in lines(project) if line.get("subtype") == "notice"]
    assert f"Ended 1 process left running by commands: {pid} (sleep 600)." in notices
    assert wave.returncode == {None: 0, signal.SIGINT: 130, signal.SIGTERM: 143}[end]


@pytest.mark.skipif(not PROC, reason="processes are found through /proc")
@pytest.mark.parametrize("detached", ["", "setsid "], ids=["with &", "with setsid"])
def test_what_a_command_left_running_survives_an_agent_that_was_killed(project: Project, detached: str) -> None:
    leaves = f"{detached}sh -c 'echo $$ > pid; exec sleep 600' >/dev/null 2>&1 & until [ -s pid ]; do sleep 0.01; done"
    with serving(bash(leaves), bash("echo $$ > second; sleep 600"), "Hi.") as server:
        wave = project.command("-p", "Go.", *ALLOWED, server=server)
        written(project, "second")
        wave.kill()
        wave.communicate()
        pid = written(project, "pid")
        assert is_alive(pid)
        project.wave("-p", "Again.", server=server)
    assert not is_alive(pid)
    assert not is_alive(written(project, "second"))


def test_a_call_that_was_open_when_the_agent_was_killed_is_never_called_not_run(project: Project) -> None:
    with serving(Reply(tool_calls=[call("Bash", command="touch begun; exec sleep 600")]), "Later.", "Later.") as server:
        process = project.command("-p", "go", "--permission-mode", "bypassPermissions", server=server)
        until((project.directory / "begun").exists)
        process.kill()
        process.communicate()
        for _ in range(2):
            assert project.wave("-p", "on", "-c", server=server).returncode == 0
    told = [results(request) for request in server.requests]
    assert told[1] == told[2] == ["This call was interrupted and has no result. It may have run, wholly or in part."]


def test_a_surrogate_in_a_path_does_not_end_the_run(project: Project) -> None:
    write = {"name": "Write", "arguments": '{"file_path": "s\\ud800.txt", "content": "x"}'}
    broken = Events([delta(tool_calls=[{"index": 0, "id": "c", "function": write}]), delta("tool_calls")])
    with serving(broken, "Done.") as server:
        done = project.wave("-p", "go", "--output-format", "json", "--permission-mode", "acceptEdits", server=server)
    assert json.loads(done.stdout)["status"] == "completed"
    assert "half of a surrogate pair (U+D800)" in server.requests[1].body["messages"][-1]["content"]
