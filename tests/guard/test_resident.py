"""The resident guard: same answers, no state, nobody else's."""

import ast
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.project import WAVE
from tests.guard.judging import Arena, wait_until
from wave_agent.guard import client, resident

pytestmark = pytest.mark.skipif(not resident.can_be_resident(), reason="the resident guard needs Linux")


def ask(arena: Arena, command: str, *, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", str(client.__file__), "claude", "PreToolUse", "--timeout", "60"],
        input=json.dumps({**arena.call(command), "cwd": str(cwd or arena.project)}),
        cwd=cwd or arena.project,
        env={**arena.environment, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def served(arena: Arena) -> Iterator[Arena]:
    process = resident.start(arena.home)
    assert process is not None
    wait_until(lambda: arena.resident() is not None)
    yield arena
    process.kill()
    process.wait()


def test_the_first_call_answers_by_itself_and_starts_it(arena: Arena) -> None:
    arena.rules(deny=["Bash(git push:*)"])
    assert ask(arena, "git push").returncode == 2
    wait_until(lambda: arena.resident() is not None)
    assert ask(arena, "git push").returncode == 2
    assert ask(arena, "ls").returncode == 0
    assert len([line for line in arena.journal() if line.get("subtype") == "guard_verdict"]) == 3


def test_it_answers_like_the_program_itself_and_forgets_nothing_new(served: Arena) -> None:
    assert (ask(served, "git push").returncode, ask(served, "git push").stdout) == (0, "")
    served.rules(deny=["Bash(git push:*)"])  # read again for each event
    done = ask(served, "git push")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Not run: denied by the permission rule")
    served.rules(ask=["Bash(git push:*)"])
    assert '"permissionDecision": "ask"' in ask(served, "git push").stdout


def test_the_line_of_a_project_is_answered_by_it_too(served: Arena) -> None:
    served.rules(deny=["Bash(git push:*)"])
    for _ in range(2):
        words = [WAVE, "guard", "run", "claude", "PreToolUse", "--timeout", "60"]
        stdin = json.dumps(served.call("git push"))
        done = subprocess.run(
            words, input=stdin, cwd=served.project, env=served.environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert "rule Bash(git push:*)" in done.stderr


def test_directory_and_environment_are_those_of_the_client(served: Arena, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".wave").mkdir(parents=True)
    (other / ".wave" / "settings.json").write_text('{"permissions": {"deny": ["Bash(ls:*)"]}}')
    served.hook("PreToolUse", 'test -z "$LET_PASS" && exit 2; exit 0')
    assert ask(served, "ls").returncode == 2
    assert ask(served, "ls", LET_PASS="1").returncode == 0
    assert "rule Bash(ls:*)" in ask(served, "ls", cwd=other, LET_PASS="1", CLAUDE_PROJECT_DIR=str(other)).stderr


def test_the_limits_of_an_agent_above_the_client_hold(served: Arena) -> None:
    done = ask(served, "ls", WAVE_PARENT="not readable")
    assert done.returncode == 2, "what an agent handed down cannot be read, so nothing runs"


def test_a_hook_that_hangs_does_not_keep_other_calls_waiting(served: Arena) -> None:
    gate, reached = served.home / "gate", served.home / "reached"
    script = f"grep -q slow && {{ touch {reached}; until [ -e {gate} ]; do sleep 0.02; done; }}; exit 0"
    served.hook("PreToolUse", script, timeout=90)
    slow = threading.Thread(target=ask, args=(served, "echo slow"))
    slow.start()
    try:
        wait_until(reached.exists)
        assert ask(served, "ls").returncode == 0
    finally:
        gate.touch()
        slow.join()


def test_when_it_dies_the_next_call_answers_by_itself(served: Arena) -> None:
    served.rules(deny=["Bash(git push:*)"])
    pid = served.resident()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert ask(served, "git push").returncode == 2
    wait_until(lambda: served.resident() not in (None, pid))


def test_a_directory_that_others_can_open_is_not_used(served: Arena) -> None:
    served.rules(deny=["Bash(git push:*)"])
    listening = served.resident()
    (served.home / "guard").chmod(0o755)
    assert ask(served, "git push").returncode == 2, "it answers by itself"
    assert listening == served.resident()


def test_it_ends_when_the_program_changes(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as asking:
        listener.bind(path)
        listener.listen()
        asking.connect(path)
        assert resident._accept(listener, {__file__: 1}) is False
        assert client._answer(asking.recv(100)) is None


def test_it_ends_when_it_is_idle_and_only_one_serves(arena: Arena) -> None:
    program = (
        "import pathlib, sys; from wave_agent.guard.resident import serve; serve(pathlib.Path(sys.argv[1]), idle=0.01)"
    )
    subprocess.run([sys.executable, "-c", program, str(arena.home)], check=True, timeout=60)
    assert not (arena.home / "guard" / "socket").exists()
    assert (arena.home / "guard").stat().st_mode & 0o77 == 0
    (arena.home / "guard" / "lock").unlink()


def test_answers_that_are_not_whole_are_no_answers() -> None:
    whole = b"\x02" + (1).to_bytes(4, "big") + b"o" + (2).to_bytes(4, "big") + b"er"
    assert client._answer(whole) == (2, b"o", b"er")
    for broken in (b"", whole[:-1], whole + b"x", whole[:3], b"\xff" + whole[1:]):
        assert client._answer(broken) is None


def test_the_client_imports_next_to_nothing() -> None:
    tree = ast.parse(Path(str(client.__file__)).read_text())
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"posix", "sys", "_signal", "_socket"}
