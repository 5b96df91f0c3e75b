"""`wave` in a real terminal: typed into, read from, resized and left, inside tmux."""

import os
import shlex
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.screen.stage import project_settings
from tests.screen.terminal import Terminal
from tests.spec.world import is_gone
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import RecordingModelServer

WAVE = Path(sysconfig.get_path("scripts")) / "wave"

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    found = Terminal(tmp_path)
    yield found
    found.tmux("kill-server")


def test_a_session_in_a_real_terminal(terminal: Terminal, project: Path, home: Path) -> None:
    guard = {
        "type": "command",
        "command": "grep -q '\"rm ' && { echo no rm here >&2; exit 2; } || exit 0",
        "name": "guard",
    }
    project_settings(project, {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [guard]}]}})
    sleeper = call("Bash", command="echo $$ > pid; sleep 600")
    replies = [
        Reply("I will try.", tool_calls=[call("Bash", command="rm x"), call("Bash", command="touch made")]),
        "That is **done**.",
        Reply("Now I wait.", tool_calls=[sleeper]),
    ]
    with RecordingModelServer.in_thread(replies) as server:
        environment = {
            "WAVE_HOME": str(home),
            "WAVE_BASE_URL": server.base_url,
            "WAVE_MODEL": "any",
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "COLUMNS": "60",
        }
        terminal.start(shlex.quote(str(WAVE)), project, environment)
        terminal.sees("Do you trust this project?")
        terminal.sees("PreToolUse: grep -q")
        assert len(max(terminal.screen.splitlines(), key=len)) == 100  # whatever COLUMNS says
        terminal.type("t")
        terminal.sees("Say what to do.")
        terminal.type("Make it, please.")
        terminal.keys("Enter")
        terminal.sees("May Bash run?")
        terminal.sees("no rm here")
        terminal.type("y")
        terminal.sees("That is done.")
        assert (project / "made").exists()
        terminal.tmux("resize-window", "-x", "80", "-y", "24")
        terminal.type("/cost")
        terminal.keys("Enter")
        terminal.sees("tokens in")
        terminal.type("Wait.")
        terminal.keys("Enter")
        terminal.sees("May Bash run?")  # the card shows the command before the question is there
        terminal.type("y")
        deadline = monotonic() + 60
        while not ((project / "pid").exists() and (project / "pid").read_text().endswith("\n")):
            assert monotonic() < deadline, terminal.screen
            sleep(0.05)
        terminal.keys("Escape")
        terminal.sees("Interrupted.")
        assert is_gone(int((project / "pid").read_text()))
        terminal.keys("C-c")
        terminal.sees("Press Ctrl-C again to quit.")
        terminal.keys("C-c")
        terminal.sees("status 0")
        terminal.sees("resumes this session")
        assert server.requests[0].body["messages"][-1]["content"] == "Make it, please."


def test_a_session_is_taken_up_again_with_its_conversation(terminal: Terminal, project: Path, home: Path) -> None:
    with RecordingModelServer.in_thread(["The answer is forty-two."]) as server:
        environment = {"WAVE_HOME": str(home), "WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "any"}
        first = subprocess.run(
            [WAVE, "-p", "What is it?"],
            cwd=project,
            env={**os.environ, **environment},
            capture_output=True,
            check=False,
        )
        assert first.returncode == 0, first.stderr
        command = f"{shlex.quote(str(WAVE))} -c --permission-mode plan"
        terminal.start(command, project, {**environment, "PATH": os.environ["PATH"]})
        terminal.sees("The answer is forty-two.")
        terminal.sees("> What is it?")
        terminal.sees("any · plan")
        terminal.keys("C-d")
        terminal.sees("status 0")


def test_a_signal_closes_it_and_gives_the_terminal_back(terminal: Terminal, project: Path, home: Path) -> None:
    command = f"sh -c {shlex.quote(f'echo $$ > pid; exec {shlex.quote(str(WAVE))} --no-project-hooks')}"
    model = {"WAVE_BASE_URL": "http://127.0.0.1:9/v1", "WAVE_MODEL": "any"}  # it is never asked
    terminal.start(command, project, {"WAVE_HOME": str(home), "PATH": os.environ["PATH"], **model})
    terminal.sees("Say what to do.")
    os.kill(int((project / "pid").read_text()), signal.SIGTERM)
    terminal.sees("status 143")
    assert "Traceback" not in terminal.screen
    assert "Say what to do." not in terminal.screen


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [("-r nonsense", 1, 'There is no session "nonsense"'), ("--settings nowhere.json", 2, "Settings file not found:")],
)
def test_what_is_wrong_is_told_in_the_plain_terminal(
    terminal: Terminal, project: Path, home: Path, arguments: str, status: int, message: str
) -> None:
    terminal.start(
        f"{shlex.quote(str(WAVE))} {arguments}", project, {"WAVE_HOME": str(home), "PATH": os.environ["PATH"]}
    )
    terminal.sees(f"status {status}")
    assert f"wave: {message}" in terminal.screen
    assert "Traceback" not in terminal.screen


def test_that_hooks_are_off_is_on_the_screen_all_the_time(terminal: Terminal, project: Path, home: Path) -> None:
    guard = {"type": "command", "command": "exit 2", "name": "guard"}
    project_settings(project, {"hooks": {"UserPromptSubmit": [{"hooks": [guard]}]}})
    with RecordingModelServer.in_thread(["The answer is forty-two."]) as server:
        environment = {"WAVE_HOME": str(home), "WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "any"}
        terminal.start(f"{shlex.quote(str(WAVE))} --no-hooks", project, {**environment, "PATH": os.environ["PATH"]})
        terminal.sees("NO HOOKS · any")
        terminal.type("What is it?")
        terminal.keys("Enter")
        terminal.sees("The answer is forty-two.")
        terminal.sees("--no-hooks: hooks do not run in this session")
        terminal.tmux("resize-window", "-x", "20", "-y", "24")
        terminal.sees("NO HOOKS")
        terminal.tmux("resize-window", "-x", "100", "-y", "30")
        terminal.type("/clear")
        terminal.keys("Enter")
        terminal.sees("NO HOOKS · any")
        terminal.keys("C-d")
        terminal.sees("status 0")


@pytest.mark.skipif(os.geteuid() != 0, reason="only for root")
@pytest.mark.parametrize(("mode", "warned"), [("bypassPermissions", True), ("default", False)])
def test_root_is_warned_on_the_screen_if_nothing_would_ask(
    terminal: Terminal, project: Path, home: Path, mode: str, warned: bool
) -> None:
    environment = {"WAVE_HOME": str(home), "WAVE_MODEL": "any", "WAVE_BASE_URL": "http://127.0.0.1:9/v1"}
    terminal.start(
        shlex.join([str(WAVE), "--permission-mode", mode]),
        project,
        {**environment, "PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8"},
    )
    terminal.sees("Say what to do.")
    terminal.sees(f"any · {mode}")
    assert ("You are root" in terminal.screen) is warned


def test_the_editor_of_a_hook_gets_the_terminal_and_gives_it_back(
    terminal: Terminal, project: Path, home: Path, tmp_path: Path
) -> None:
    (project / "guard.sh").write_text("exit 0\n")
    project_settings(project, {"hooks": {"PreToolUse": ["sh ./guard.sh"]}})
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "a line for %s: " "$1"; read line; echo "# $line" >> "$1"\n')
    editor.chmod(0o755)
    environment = {"WAVE_HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    # The shell gets the Ctrl-C too, and must stay to tell the status.
    terminal.start(f"trap : INT; {shlex.quote(str(WAVE))}", project, {**environment, "EDITOR": str(editor)})
    terminal.sees("Do you trust this project?")
    terminal.type("t")
    terminal.sees("Say what to do.")
    terminal.type("/hooks")
    terminal.keys("Enter")
    terminal.sees("e edits, t tests")
    terminal.type("e")
    terminal.sees("a line for")
    assert "e edits" not in terminal.screen
    terminal.keys("C-c")  # ends the editor, not the conversation
    terminal.sees("The editor ended by signal 2.")
    terminal.type("e")
    terminal.sees("a line for")
    terminal.type("better")
    terminal.keys("Enter")
    terminal.sees("A hook has changed")
    terminal.type("y")
    terminal.sees("Sample: PreToolUse")
    assert (project / "guard.sh").read_text() == "exit 0\n# better\n"
    terminal.keys("C-q")
    terminal.sees("status 0")
