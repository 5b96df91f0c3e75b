"""Sends the transcripts that wait in the outbox. Runs in a process of its own, or for `wave sessions upload`.

Each transcript is masked, compressed, and stored under its session's id and the digest of its content. So sending it
twice changes nothing, and a session that was resumed is stored again, beside what it was.
"""

import base64
import fcntl
import gzip
import hashlib
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, responses
from importlib import import_module
from pathlib import Path
from threading import Timer
from typing import IO, Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import msgspec

from wave_agent.errors import WaveError
from wave_agent.sessions.masking import masked
from wave_agent.sessions.outbox import DIRECTORY, TOKEN, Waiting, queue, waiting
from wave_agent.system.credentials import without_userinfo
from wave_agent.system.extras import install_extra
from wave_agent.system.private_files import keep_private

PAUSES = (1.0, 4.0, 16.0)
"""Seconds between the tries of one run."""
_SECONDS = 60
_STORED_ALREADY = 412
"""The answer to `If-None-Match: *` where the same thing is stored."""
_NO_PARENT = 409
"""What WebDAV answers if the collection (a directory) does not exist. Others use it for writes that collide."""
_AGAIN = frozenset({408, _NO_PARENT, 425, 429, 500, 502, 503, 504})
_LATER, _LATEST = 60.0, 6 * 3600.0
"""Seconds until a third try, and four times as many until each one after it, up to the latter."""


class UploadError(WaveError):
    """A transcript was not stored."""

    def __init__(self, reason: str, *, again: bool = False, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.again = again
        """Worth another try soon: the fault is with the place, not with this transcript."""
        self.unreachable = unreachable
        """The place cannot be reached: there is no use in trying anything else now."""


class Destination(Protocol):
    """Where transcripts are stored."""

    def store(self, name: str, content: IO[bytes], size: int) -> None:
        """Store the content under this name, unless it is there. Raises `UploadError`."""
        ...


class UploadOutcome(msgspec.Struct, frozen=True):
    """What came of an entry."""

    session_id: str
    error: str = ""
    """Why it still waits; empty if it was stored."""
    stop: bool = False
    """Nothing else can be stored now either."""


def send_all(
    home: Path, url: str, *, pauses: tuple[float, ...] = PAUSES, token: str = "", due: bool = False
) -> Iterator[UploadOutcome]:
    """Send every session that waits, or that is `due`, the ones queued meanwhile included.

    Nothing if another process is at it. The run ends early if the place where they are stored cannot be reached, or has
    a fault that does not pass.

    Raises `UploadError` for a URL that cannot be used.
    """
    to = destination(url, token)
    failed: set[str] = set()
    again = _directory(home) / "again"
    while True:
        again.touch()  # before the lock is tried: whoever holds it looks for this after giving it back
        with _alone(home) as alone:
            if not alone:
                return
            again.unlink(missing_ok=True)
            while new := _next(home, failed, due=due):
                for session_id, entry in new:
                    tried = _send(home, to, session_id, entry, pauses)
                    failed |= {session_id} if tried.error else set()
                    yield tried
                    if tried.stop:
                        return
        if not again.exists():
            return


def note_everywhere(home: Path, error: str) -> None:
    """Note in every entry why it still waits."""
    with _alone(home) as alone:
        for entry in waiting(home).values() if alone else ():
            with suppress(OSError, ValueError):
                queue(home, home / "projects" / entry.transcript, entry.tries, error, entry.not_before)


def _directory(home: Path) -> Path:
    keep_private(home / DIRECTORY)
    return home / DIRECTORY


def _next(home: Path, failed: set[str], *, due: bool) -> list[tuple[str, Waiting]]:
    """What has been tried least comes first: what fails every time must not keep the rest waiting."""
    now = time.time()
    new = [one for one in waiting(home).items() if one[0] not in failed and not (due and _is_early(one[1], now))]
    return sorted(new, key=lambda one: one[1].tries)


def _is_early(entry: Waiting, now: float) -> bool:
    return now < entry.not_before <= now + _LATEST  # later than that, the clock was wrong


def _pause_after(tries: int) -> float:
    """The next session tries again at once; after that, it takes longer and longer."""
    return min(_LATEST, _LATER * 4.0 ** (min(tries, 20) - 2)) if tries > 1 else 0.0


def _send(home: Path, to: Destination, session_id: str, entry: Waiting, pauses: tuple[float, ...]) -> UploadOutcome:
    """Send one session. Its entry goes when everything of it is stored, and otherwise says why it is not."""
    transcript = home / "projects" / entry.transcript
    file = home / DIRECTORY / f"{session_id}.json"
    version = _version(file)
    if transcript.stem != session_id or transcript.suffix != ".jsonl" or ".." in transcript.parts:
        file.unlink(missing_ok=True)
        return UploadOutcome(session_id, "its entry does not name a transcript, and was removed")
    try:
        lines = transcript.open("rb")
    except FileNotFoundError:
        file.unlink(missing_ok=True)
        return UploadOutcome(session_id, "its transcript has been deleted")
    except OSError as error:
        failed = error
    else:
        with lines:
            failed = _failure(to, transcript, lines, pauses)
    if failed is None:
        if _version(file) == version:  # else it was resumed, and has ended again
            file.unlink(missing_ok=True)
        return UploadOutcome(session_id)
    tries = entry.tries + 1
    with suppress(OSError):  # the next run tries again in any case
        queue(home, transcript, tries, str(failed), time.time() + _pause_after(tries))
    stop = isinstance(failed, UploadError) and (failed.again or failed.unreachable)
    return UploadOutcome(session_id, str(failed), stop)


def _failure(
    to: Destination, transcript: Path, lines: IO[bytes], pauses: tuple[float, ...]
) -> UploadError | OSError | None:
    """Why a session could not be stored, after several tries if the fault may pass."""
    for pause in (*pauses, None):
        try:
            _store_session(to, transcript, lines)
        except UploadError as error:
            if pause is None or error.unreachable or not error.again:
                return error
            time.sleep(pause)
        except OSError as error:
            return error
        else:
            break
    return None


def _version(file: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        facts = file.stat()
        return facts.st_ino, facts.st_mtime_ns
    return None


def _store_session(to: Destination, transcript: Path, lines: IO[bytes]) -> None:
    """The transcript and those of the session's subagents."""
    name = transcript.stem
    _store(to, lines, name)
    for child in sorted((transcript.with_suffix("") / "subagents").glob("*.jsonl")):
        with child.open("rb") as more:
            _store(to, more, f"{name}/subagents/{child.stem}")


def _store(to: Destination, lines: IO[bytes], name: str) -> None:
    with tempfile.TemporaryFile() as packed:
        digest = _pack(lines, packed)
        size = packed.tell()
        packed.seek(0)
        to.store(f"{name}/{digest}.jsonl.gz", packed, size)


def _pack(lines: IO[bytes], into: IO[bytes]) -> str:
    """Write the masked lines, compressed, and return the digest of what was compressed. A last line that is not
    complete is left out: the session was resumed, and will be queued again."""
    digest = hashlib.sha256()
    lines.seek(0)
    with gzip.GzipFile(fileobj=into, mode="wb", filename="", mtime=0) as packed:
        for line in lines:
            if not line.endswith(b"\n"):
                break
            with suppress(ValueError, RecursionError):  # a damaged line may hold anything, and cannot be masked
                safe = msgspec.json.encode(masked(msgspec.json.decode(line))) + b"\n"
                digest.update(safe)
                packed.write(safe)
    return digest.hexdigest()


@contextmanager
def _alone(home: Path) -> Generator[bool]:
    """Whether no other process is sending."""
    descriptor = os.open(_directory(home) / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


# --------------------------------------------------------------------------------------------------------- destinations


def destination(url: str, token: str = "", *, seconds: float = _SECONDS) -> Destination:
    """`seconds` is how long to wait for a server. Raises `UploadError` for a URL that cannot be used here."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # must be a number
    except ValueError as error:
        raise UploadError(f'"{without_userinfo(url)}" is not a URL: {error}') from None
    if parts.scheme in ("http", "https") and parts.hostname:
        return _UploadServer(parts, token, seconds)
    if parts.scheme == "file" or (not parts.scheme and url.startswith("/")):
        return _SharedDirectory(Path(unquote(parts.path)))
    if parts.scheme and parts.netloc:
        return _ObjectStore(url)
    raise UploadError(
        f'"{without_userinfo(url)}" is not a URL; expected something like https://… or s3://bucket/prefix'
    )


class _NoRedirects(HTTPRedirectHandler):
    """A transcript goes where the settings say, and nowhere else."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:  # noqa: PLR0917
        return None


class _WholeAnswer(HTTPConnection):
    """The timeout is for the whole answer, not for each piece of it: while a server sends a byte now and then, no other
    transcript would be sent."""

    def getresponse(self) -> HTTPResponse:
        late = list[bool]()

        def give_up() -> None:
            late.append(True)
            with suppress(OSError, AttributeError):  # it has just been closed
                self.sock.shutdown(socket.SHUT_RDWR)

        timer = Timer(self.timeout or _SECONDS, give_up)
        timer.daemon = True
        timer.start()
        try:
            return super().getresponse()
        except (OSError, HTTPException, ValueError):
            if late:
                raise TimeoutError("it did not finish its answer in time") from None
            raise
        finally:
            timer.cancel()


class _SecureWholeAnswer(_WholeAnswer, HTTPSConnection):
    """The same over TLS."""


class _Http(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_WholeAnswer, req)


class _Https(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_SecureWholeAnswer, req)


class _UploadServer:
    """PUT to a server, one URL for each transcript."""

    def __init__(self, parts: SplitResult, token: str, seconds: float) -> None:
        self._seconds = seconds
        login, _, host = parts.netloc.rpartition("@")
        self._url = urlunsplit(parts._replace(netloc=host)).rstrip("/")
        basic = base64.b64encode(unquote(login).encode()).decode()
        self._login = {"Authorization": f"Bearer {token}" if token else f"Basic {basic}"} if token or login else {}
        self._opener = build_opener(_NoRedirects, _Http, _Https)

    def store(self, name: str, content: IO[bytes], size: int) -> None:
        headers = {"Content-Type": "application/gzip", "Content-Length": str(size), "If-None-Match": "*"}
        status = self._ask("PUT", name, headers, content)
        if status == _NO_PARENT:
            self._make_parents(name)
            content.seek(0)
            status = self._ask("PUT", name, headers, content)
        if not (200 <= status < 300 or status == _STORED_ALREADY):
            raise UploadError(
                f"the server answered {status} {responses.get(status, '')}".rstrip(), again=status in _AGAIN
            )

    def _make_parents(self, name: str) -> None:
        """The collections below the one in the settings. Whether that helped, the next PUT shows."""
        parts = name.split("/")
        for depth in range(1, len(parts)):
            self._ask("MKCOL", "/".join(parts[:depth]) + "/", {"Content-Length": "0"})

    def _ask(self, method: str, name: str, headers: dict[str, str], content: IO[bytes] | None = None) -> int:
        """The status that the server answers."""
        request = Request(f"{self._url}/{quote(name)}", content, headers | self._login, method=method)
        try:
            with self._opener.open(request, timeout=self._seconds) as answer:
                return answer.status
        except HTTPError as error:
            error.close()
            return error.code
        except (URLError, OSError, HTTPException) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
            raise UploadError(f"the server cannot be reached: {reason}", unreachable=True) from None


class _SharedDirectory:
    """A directory, perhaps one that many machines share. It has to exist: where a share is not mounted, a new directory
    would take everything, and nobody would ever look there."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        if not directory.is_dir():
            raise self._missing()

    def store(self, name: str, content: IO[bytes], size: int) -> None:
        file = self._directory / name
        if file.exists():
            return
        try:
            for parent in reversed(file.relative_to(self._directory).parents[:-1]):
                (self._directory / parent).mkdir(exist_ok=True)
        except FileNotFoundError:
            raise self._missing() from None
        new = file.with_name(f".{file.name}.{os.urandom(6).hex()}")
        try:
            with new.open("xb") as copy:
                while part := content.read(1 << 20):
                    copy.write(part)
                copy.flush()
                os.fsync(copy.fileno())
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)

    def _missing(self) -> UploadError:
        return UploadError(f"{self._directory} is not a directory; create it, or mount what it is in", unreachable=True)


class _ObjectStore:
    """Anything else that fsspec knows: S3 and what is like it, Google Cloud Storage …"""

    def __init__(self, url: str) -> None:
        scheme = urlsplit(url).scheme
        try:
            core: Any = import_module("fsspec.core")  # an extra, without types
        except ImportError:
            raise UploadError(f"{scheme}:// needs an extra: {install_extra('fleet')}") from None
        try:
            system, base = core.url_to_fs(url)
        except ImportError as error:
            raise UploadError(f"{scheme}:// needs another package: {error}") from None
        except Exception as error:  # an unknown protocol, or missing credentials: each store has its own
            raise UploadError(str(error) or type(error).__name__) from None
        self._system: Any = system
        self._base = str(base).rstrip("/")

    def store(self, name: str, content: IO[bytes], size: int) -> None:
        path = f"{self._base}/{name}"
        try:
            if not self._is_stored(path, size):
                with self._system.open(path, "wb") as copy:
                    while part := content.read(1 << 20):
                        copy.write(part)
        except Exception as error:  # each store has its own
            raise UploadError(f"{type(error).__name__}: {error}", again=True) from None

    def _is_stored(self, path: str, size: int) -> bool:
        """All of it: some stores show what a killed process had written so far."""
        return bool(self._system.exists(path)) and self._system.info(path).get("size") in (size, None)


def main(read: Callable[[], str] = sys.stdin.read) -> None:
    """Send what is due in the outbox that stdin names. What fails is noted in the outbox."""
    wanted = json.loads(read())
    home = Path(wanted["home"])
    with suppress(OSError):
        try:
            for _ in send_all(home, wanted["url"], token=os.environ.get(TOKEN, ""), due=True):
                pass
        except UploadError as error:
            note_everywhere(home, str(error))
