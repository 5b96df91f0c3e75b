"""The resident guard: same answers, no state, nobody else's."""

import ast
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.project import WAVE
from tests.guard.judging import Arena, wait_until
from wave_agent.cli.guard.options import program_for
from wave_agent.guard import client, resident
from wave_agent.guard.lines import guard_line

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


def children_of(pid: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_copies_are_ready_before_an_event_and_end_with_it(served: Arena) -> None:
    served.rules(deny=["Bash(git push:*)"])
    pid = served.resident()
    assert pid is not None
    wait_until(lambda: len(children_of(pid)) == 2)
    before = children_of(pid)
    wait_until(lambda: ask(served, "git push").returncode == 2 and not before <= children_of(pid))
    wait_until(lambda: len(children_of(pid)) == 2)
    copies = children_of(pid)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, copies)))


def ready_copies(pid: int) -> set[int]:
    """Waits until both copies have judged their scratch call, and wait for an event: they no longer use any time."""
    looks: list[set[tuple[str, ...]]] = []

    def are_asleep() -> bool:
        with suppress(FileNotFoundError):
            fields = {child: Path(f"/proc/{child}/stat").read_text().split() for child in children_of(pid)}
            looks.append({(str(child), *stat[2:3], *stat[13:15]) for child, stat in fields.items()})
        last = looks[-30:]
        return len(last) == 30 and len(last[0]) == 2 and all(look == last[0] for look in last)

    wait_until(are_asleep)
    return children_of(pid)


@pytest.mark.parametrize("ready", [False, True])
def test_copies_that_were_killed_are_replaced(served: Arena, ready: bool) -> None:
    served.rules(deny=["Bash(git push:*)"])
    pid = served.resident()
    assert pid is not None
    wait_until(lambda: len(children_of(pid)) == 2)
    killed = ready_copies(pid) if ready else children_of(pid)
    for copy in killed:
        os.kill(copy, signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, killed)))  # on a busy machine, one may still be handed an event
    assert ask(served, "git push").returncode == 2
    assert not ready_copies(pid) & killed
    assert served.resident() == pid


def test_many_events_at_once_are_all_answered(served: Arena) -> None:
    served.rules(deny=["Bash(git push:*)"])
    with ThreadPoolExecutor(8) as threads:
        done = list(
            threads.map(lambda number: ask(served, f"{'git push' if number % 2 else 'ls'} {number}"), range(16))
        )
    assert [one.returncode for one in done] == [0, 2] * 8


class FakeResident:
    """Somebody else at the resident guard's place, who does with a connection what the test says."""

    def __init__(self, arena: Arena, act: Callable[[socket.socket], object]) -> None:
        directory = resident.directory_of(arena.home)
        directory.mkdir(mode=0o700, exist_ok=True)
        self._lock = (directory / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)  # so that no other one starts
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(directory / "socket"))
        self._listener.listen()
        self._act = act
        self.asked = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.asked += 1
            with connection:
                self._act(connection)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)
        self._lock.close()


def answer_with(data: bytes) -> Callable[[socket.socket], object]:
    def act(connection: socket.socket) -> None:
        while connection.recv(1 << 16):
            pass
        connection.sendall(data)

    return act


def run_line(arena: Arena, line: str) -> subprocess.CompletedProcess[str]:
    """As a host does."""
    words = ["sh", "-c", line]
    return subprocess.run(
        words, input="{}", env=arena.environment, capture_output=True, text=True, check=False, timeout=5
    )


LET_PASS = b"\0" * 9


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda connection: connection.close(), id="hangs up"),
        pytest.param(lambda connection: connection.recv(10), id="reads a part and hangs up"),
        pytest.param(answer_with(b""), id="says nothing"),
        pytest.param(answer_with(LET_PASS[:-1]), id="a truncated answer"),
        pytest.param(answer_with(LET_PASS + b"x"), id="too long an answer"),
        pytest.param(answer_with(b"HTTP/1.1 200 OK\r\n\r\n"), id="another protocol"),
        pytest.param(answer_with(b"\xff" * 9), id="is about to end"),
    ],
)
def test_an_answer_that_is_none_is_judged_by_the_client(arena: Arena, act: Callable[[socket.socket], object]) -> None:
    arena.rules(deny=["Bash(git push:*)"])
    fake = FakeResident(arena, act)
    try:
        assert "rule Bash(git push:*)" in ask(arena, "git push").stderr
        assert fake.asked == 1
    finally:
        fake.close()


def test_a_resident_guard_that_hangs_is_a_deny_before_the_host_gives_up(arena: Arena) -> None:
    gate = threading.Event()
    fake = FakeResident(arena, lambda _: gate.wait(30))
    line = guard_line("claude", "PreToolUse", program_for(for_user=True)).replace("--timeout 90", "--timeout 1")
    try:
        done = subprocess.run(
            ["sh", "-c", line],
            input="{}",
            env=arena.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=5,
        )
        assert (done.returncode, done.stdout, fake.asked) == (2, "", 1)
        assert "did not answer within 1 s" in done.stderr
    finally:
        gate.set()
        fake.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_not_used(arena: Arena) -> None:
    arena.rules(deny=["Bash(git push:*)"])
    fake = FakeResident(arena, answer_with(LET_PASS))
    try:
        assert ask(arena, "git push").returncode == 0, "the client believes its own user"
        os.chown(arena.home / "guard", 12345, 12345)
        assert ask(arena, "git push").returncode == 2
        assert fake.asked == 1
    finally:
        fake.close()


@pytest.mark.parametrize("gone", ["python", "client"])
def test_the_line_denies_a_call_when_a_part_of_it_is_gone_and_lets_a_host_stop(
    arena: Arena, tmp_path: Path, gone: str
) -> None:
    python, *flags, file = program_for(for_user=True)
    program = (
        (str(tmp_path / "python"), *flags, file) if gone == "python" else (python, *flags, str(tmp_path / "client.py"))
    )
    denied = run_line(arena, guard_line("claude", "PreToolUse", program))
    assert (denied.returncode, denied.stdout) == (2, "")
    assert "wave guard is not available" in denied.stderr
    assert run_line(arena, guard_line("claude", "Stop", program)).returncode == 0
    assert '"deny"' in run_line(arena, guard_line("vibe", "pre_tool", program)).stdout


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
        assert resident.Copies(listener, {__file__: 1}, -1).accept() is False
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
