"""The resident guard: one process per user that has everything loaded, and judges each event in a copy of itself.

It keeps no settings, no trust and no session: each event is judged by a new process that reads them again, with the
directory and the environment that came with the event. So nothing can go stale but the program, and when a file of the
program changes, the resident guard ends. It also ends when it has nothing to do for a while.

It listens on a socket in a directory that only its user can open, and both ends check who the other one is.
"""

import fcntl
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from time import monotonic

from wave_agent.guard.answers import HostReply
from wave_agent.guard.client import NAME, VERSION
from wave_agent.guard.hosts import HOSTS
from wave_agent.guard.run import Asked, Watchdog, answer_event
from wave_agent.system.ancestry import CLIENT_VARIABLE
from wave_agent.system.private_files import keep_private

IDLE = 900.0
"""Seconds without an event after which it ends."""
_LOOK = 30.0
"""Seconds between two looks at whether anybody can still reach it."""
_AGAIN = b"\xff" + b"\0" * 8
_LONGEST_HEAD = 4 << 20
_LOADED = (
    *(
        "concurrent.futures.thread",
        "wave_agent.agent.call_effects",
        "wave_agent.agent.hook_effects",
        "wave_agent.effects.shown",
    ),
    *("wave_agent.hooks.engine", "wave_agent.hooks.python_guard", "wave_agent.hooks.named_files"),
    *("wave_agent.hooks.runners.command", "wave_agent.hooks.runners.http", "wave_agent.hooks.runners.worker_pool"),
    *("wave_agent.permissions.git.effects", "wave_agent.permissions.hard_links", "wave_agent.effects.only_reading"),
)
"""What judging loads when it needs it."""


def directory_of(home: Path) -> Path:
    return home / "guard"


def can_be_resident() -> bool:
    """The client finds the socket and its owner through what only Linux has."""
    return sys.platform == "linux" and hasattr(socket, "SO_PEERCRED")


def start(home: Path) -> "subprocess.Popen[bytes] | None":
    """Starts the resident guard, detached from everything around. If there is one already, the new one ends at once."""
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "LANG") if name in os.environ}
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-m", "wave_agent.guard.resident", str(home)],
            cwd="/",
            env=kept,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None


def serve(home: Path, *, idle: float = IDLE) -> None:
    """Judges events until it is idle for too long, or the program changes."""
    directory = directory_of(home)
    keep_private(directory)
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # there is one already
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    for module in _LOADED:
        import_module(module)
    _warm_up()
    program = _program()
    path = directory / NAME.decode()
    with suppress(FileNotFoundError):
        path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        os.chdir(directory)
        listener.bind(NAME.decode())  # relative: the whole path may be too long
        path.chmod(0o600)
        listener.listen(64)
        listener.settimeout(min(idle, _LOOK))
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        gc.freeze()
        own, quiet = path.stat().st_ino, monotonic()
        while monotonic() - quiet < idle and _is(path, own):
            if (served := _accept(listener, program)) is None:
                continue
            if not served:
                break
            quiet = monotonic()
        if _is(path, own):
            path.unlink()


def _is(path: Path, inode: int) -> bool:
    """Whether the socket is still ours: without it, nobody can reach us."""
    try:
        return path.stat().st_ino == inode
    except OSError:
        return False


def _warm_up() -> None:
    """Judges a call in a scratch project: whatever that loads, compiles and caches, every copy has from the start."""
    with tempfile.TemporaryDirectory(prefix="wave-guard-") as scratch:
        environment = {**os.environ, "WAVE_HOME": os.path.join(scratch, "home")}
        asked = Asked(host="claude", name="PreToolUse", directory=scratch, environment=environment)
        call = {"tool_name": "Bash", "tool_input": {"command": "git status && ls | head > x"}, "session_id": "warm-up"}
        answer_event(asked, json.dumps(call).encode(), lambda _: None)


def _program() -> dict[str, int]:
    """The files of this program that are loaded, and when they were changed."""
    found: dict[str, int] = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] == "wave_agent" and isinstance(file, str):
            found[file] = _changed(file)
    return found


def _changed(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return 0


def _accept(listener: socket.socket, program: Mapping[str, int]) -> bool | None:
    """Takes one event. None: there is none. False: the program has changed, so it is time to end."""
    try:
        connection, _ = listener.accept()
    except TimeoutError:
        return None
    with connection:
        stale = any(_changed(file) != changed for file, changed in program.items())
        if stale:
            with suppress(OSError):
                connection.sendall(_AGAIN)
            return False
        if os.fork() == 0:
            status = 1
            gc.disable()  # it would touch, and so copy, every page that is shared
            try:
                listener.close()
                _serve(connection)
                status = 0
            finally:
                os._exit(status)
    return True


def _serve(connection: socket.socket) -> None:
    """In a process of its own. If it ends without an answer, the client judges the event itself."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    pid, uid, _ = _peer(connection)
    if uid != os.getuid():
        return
    asked, event = _request(connection, pid)
    os.environ.clear()
    os.environ.update(asked.environment)
    os.chdir(asked.directory)

    def send(answer: HostReply) -> None:
        out, err = answer.stdout.encode(errors="replace"), answer.stderr.encode(errors="replace")
        sizes = [len(text).to_bytes(4, "big") for text in (out, err)]
        with suppress(OSError):
            connection.sendall(bytes([answer.status]) + sizes[0] + out + sizes[1] + err)
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()

    with Watchdog(asked, send) as guarded:
        answer_event(asked, event, guarded)


def _peer(connection: socket.socket) -> tuple[int, int, int]:
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, uid, gid = (int.from_bytes(data[at : at + 4], sys.byteorder) for at in (0, 4, 8))
    return pid, uid, gid


def _request(connection: socket.socket, pid: int) -> tuple[Asked, bytes]:
    """Raises `ValueError` if it is not one."""
    connection.settimeout(10)
    parts: list[bytes] = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    connection.settimeout(None)
    data = b"".join(parts)
    size = int.from_bytes(data[:4], "big")
    if size > _LONGEST_HEAD or len(data) < 4 + size:
        raise ValueError("a request that is not whole")
    version, host, name, timeout, allow, directory, *environment = data[4 : 4 + size].split(b"\0")
    if version != VERSION or host.decode() not in HOSTS:
        raise ValueError("a request of another version")
    pairs = (entry.partition(b"=") for entry in environment)
    given = {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}
    asked = Asked(
        host=host.decode(),
        name=name.decode(),
        directory=os.fsdecode(directory),
        # Whether an agent is above is a question about the client's parents, not about ours.
        environment={**given, CLIENT_VARIABLE: str(pid)},
        timeout=float(timeout),
        pass_allow=bool(allow),
    )
    return asked, data[4 + size :]


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
