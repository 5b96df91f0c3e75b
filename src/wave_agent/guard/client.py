"""What a host starts for each event: passes it on to the resident guard, or judges it itself if there is none.

Run as a file, `python -I -S client.py HOST EVENT --timeout N`: nothing is imported that the interpreter has not loaded
already, but for sockets and signals. So this file must not import anything else of the package, nor `os`.

A request is the length of its head in four bytes, the head (words between NULs: version, host, event, timeout,
pass_allow, trust_ref, directory, then the environment), and the event. An answer is the status in one byte, then the
lengths and texts of stdout and stderr.
"""

# `_signal` has no stub, and `signal` would take a while to load.
# pyright: reportMissingImports=false, reportMissingModuleSource=false, reportUnknownMemberType=false

import _signal
import posix
import sys
from posix import _exit as leave  # pyright: ignore[reportPrivateUsage]  # `os` would take a while to load

VERSION = b"2"
NAME = b"socket"
_AGAIN = 255
"""The resident guard is about to be replaced: start a new one."""


def main(arguments: list[str]) -> None:
    """Does not return: answers, or becomes another program. If it can do neither, whoever started it has to deny."""
    try:
        _set_deadline(arguments)
        event = _read(0)
        answer = _ask(arguments, event)
        if answer is None:
            _judge_here(arguments, event)
        else:
            _write(2, answer[2])
            _write(1, answer[1])
            leave(answer[0])
    finally:
        leave(3)


def _set_deadline(arguments: list[str]) -> None:
    """An event that does not end, or a resident guard that does not answer, is a deny before the host gives up. The
    guard gives up a little earlier, with a better reason."""
    timeout = float(arguments[arguments.index("--timeout") + 1])

    def give_up(_: int, __: object) -> None:
        _write(2, b"wave guard: the guard did not answer within %g s\n" % timeout)
        leave(2)

    _signal.signal(_signal.SIGALRM, give_up)
    _signal.setitimer(_signal.ITIMER_REAL, max(0.5, timeout - max(1.0, timeout * 0.05)))


def _ask(arguments: list[str], event: bytes) -> tuple[int, bytes, bytes] | None:
    """The answer of the resident guard, or None."""
    try:
        host, name, given = _words(arguments)
        timeout = float(given["--timeout"])
        import _socket

        environment = posix.environ
        if environment.get(b"WAVE_GUARD_RESIDENT") == b"off":
            return None
        home = environment.get(b"WAVE_HOME") or environment[b"HOME"] + b"/.wave"
        directory = posix.open(home + b"/guard", posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW)
        facts = posix.fstat(directory)
        if facts.st_uid != posix.getuid() or facts.st_mode & 0o77:
            return None  # another user may have put a socket there
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.settimeout(timeout)
        connection.connect(b"/proc/self/fd/%d/%s" % (directory, NAME))
        peer = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        if int.from_bytes(peer[4:8], sys.byteorder) != posix.getuid():
            return None
        allow, commit = given["--pass-allow"].encode(), given["--trust-ref"].encode()
        words = [VERSION, host.encode(), name.encode(), b"%f" % timeout, allow, commit, posix.getcwdb()]
        head = b"\0".join(words + [b"%s=%s" % pair for pair in environment.items()])
        connection.sendall(len(head).to_bytes(4, "big") + head + event)
        connection.shutdown(_socket.SHUT_WR)
        parts: list[bytes] = []
        while part := connection.recv(1 << 16):
            parts.append(part)
        return _answer(b"".join(parts))
    except (OSError, KeyError, ValueError, IndexError, ImportError, AttributeError):
        return None


def _words(arguments: list[str]) -> tuple[str, str, dict[str, str]]:
    """Host, event and flags. Raises `ValueError` or `IndexError` for anything that only the whole program understands:
    a flag that got lost here might have been a restriction."""
    host, name, *rest = arguments
    given = {"--timeout": "", "--trust-ref": "", "--pass-allow": ""}
    while rest:
        flag = rest.pop(0)
        if flag not in given or rest[:1] == [""]:
            raise ValueError(flag)
        given[flag] = "1" if flag == "--pass-allow" else rest.pop(0)
    return host, name, given


def _answer(data: bytes) -> tuple[int, bytes, bytes] | None:
    """None unless it is whole."""
    size = int.from_bytes(data[1:5], "big")
    out, rest = data[5 : 5 + size], data[5 + size :]
    length = int.from_bytes(rest[:4], "big")
    err = rest[4 : 4 + length]
    whole = len(data) == 9 + len(out) + len(err) and len(out) == size and len(err) == length
    return (data[0], out, err) if whole and data[0] != _AGAIN else None


def _judge_here(arguments: list[str], event: bytes) -> None:
    """Becomes the whole program, with the event on its stdin."""
    reader, writer = posix.pipe()
    if posix.fork() == 0:
        posix.close(reader)
        try:
            _write(writer, event)
        finally:
            leave(0)
    _signal.setitimer(_signal.ITIMER_REAL, 0)  # the program has a deadline of its own
    posix.dup2(reader, 0)
    posix.close(reader)
    posix.close(writer)
    posix.execv(sys.executable, [sys.executable, "-I", "-m", "wave_agent", "guard", "run", *arguments, "--resident"])


def _read(descriptor: int) -> bytes:
    parts: list[bytes] = []
    while part := posix.read(descriptor, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def _write(descriptor: int, data: bytes) -> None:
    try:
        while data:
            data = data[posix.write(descriptor, data) :]
    except OSError:
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
