"""The resident guard: one process per user that has everything loaded, and judges each event in a copy of itself.

It keeps no settings, no trust and no session: each event is judged by a new process that reads them again, with the
directory and the environment that came with the event. So nothing can go stale but the program, and when a file of the
program changes, the resident guard ends. It also ends when it has nothing to do for a while.

Copies for the next events are made ahead. Each judges a scratch call first, so that the memory it writes to is already
its own: to copy that takes longer than to judge an event.

It listens on a socket in a directory that only its user can open, and both ends check who the other one is.
"""

import fcntl
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
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
_SETTLE = 0.05
"""Seconds for which the next copy waits for the last one to answer: the host is waiting for that."""
_KEPT = 2
"""Copies that are kept ready: events come in pairs, before and after a tool."""
_READY, _ENDED = b"r", b""
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
        copies = Copies(listener, program, lock)
        while monotonic() - quiet < idle and _is(path, own):
            copies.prepare()
            if (served := copies.accept()) is None:
                continue
            if not served:
                break
            quiet = monotonic()
        if _is(path, own):
            path.unlink()


def _is(path: Path, inode: int) -> bool:
    """Whether the socket is still ours: without it, we cannot be reached."""
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


class Copies:
    """Copies of this process, each for one event. Some are kept ready."""

    def __init__(self, listener: socket.socket, program: Mapping[str, int], lock: int) -> None:
        """`program` has the files that must not have changed; `lock` is not for copies to hold."""
        self._listener = listener
        self._program = program
        self._lock = lock
        self._kept: list[socket.socket] = []
        """Channels to copies that wait for an event, or are about to."""
        self._busy: socket.socket | None = None
        """The channel to the copy that got the last event; it ends with the answer."""

    def prepare(self) -> None:
        """Makes copies until there are enough, or there is an event. The host's answer to the last one goes first."""
        self._kept = [copy for copy in self._kept if _state(copy) != _ENDED]
        while len(self._kept) < _KEPT:
            waiting = [self._listener, *([self._busy] if self._busy else [])]
            if self._listener in select.select(waiting, [], [], _SETTLE if self._busy else 0)[0]:
                return
            self._busy = None
            self._kept.append(self._copy(warm=True))

    def accept(self) -> bool | None:
        """Takes one event. None: there is none. False: the program has changed, so it is time to end."""
        try:
            connection, _ = self._listener.accept()
        except TimeoutError:
            return None
        with connection:
            if any(_changed(file) != changed for file, changed in self._program.items()):
                with suppress(OSError):
                    connection.sendall(_AGAIN)
                return False
            copy = next((copy for copy in self._kept if _state(copy) == _READY), None)
            if copy is not None:
                self._kept.remove(copy)
                copy.recv(1)  # from here on, the channel is silent until the answer
            if copy is None or not _hand_over(connection, copy):
                copy = self._copy(warm=False)
                _hand_over(connection, copy)  # if that fails too, the client judges the event itself
            self._busy = copy
        return True

    def _copy(self, *, warm: bool) -> socket.socket:
        """Makes a copy that waits for an event. It ends when this process does."""
        ours, theirs = socket.socketpair()
        if os.fork() != 0:
            theirs.close()
            return ours
        status = 1
        gc.disable()  # it would touch, and so copy, every page that is shared
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (ours, self._listener, *self._kept, *([self._busy] if self._busy else [])):
                other.close()
            os.close(self._lock)
            if warm:
                _warm_up()
                theirs.sendall(_READY)
            _, descriptors, _, _ = socket.recv_fds(theirs, 1, 1, socket.MSG_CMSG_CLOEXEC)  # hooks do not get it
            if descriptors:
                _serve(socket.socket(fileno=descriptors[0]), theirs.close)
            status = 0
        finally:
            os._exit(status)


def _state(copy: socket.socket) -> bytes | None:
    """`_READY`, `_ENDED`, or None if it is not ready yet. One that was killed has ended, whatever it said before."""
    looking = select.poll()
    looking.register(copy, 0)
    if looking.poll(0):  # it has hung up: nothing else was asked for
        return _ENDED
    try:
        return copy.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
    except BlockingIOError:
        return None
    except OSError:
        return _ENDED


def _hand_over(connection: socket.socket, copy: socket.socket) -> bool:
    try:
        socket.send_fds(copy, [b"e"], [connection.fileno()])
    except OSError:
        return False
    return True


def _serve(connection: socket.socket, answered: Callable[[], None]) -> None:
    """In a process of its own. If it ends without an answer, the client judges the event itself."""
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
        answered()

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
    version, host, name, timeout, allow, commit, directory, *environment = data[4 : 4 + size].split(b"\0")
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
        trust_ref=commit.decode() or None,
    )
    return asked, data[4 + size :]


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
