"""Sends the transcripts that wait in the outbox. Runs in a process of its own, or for `wave sessions upload`.

Each transcript is masked, compressed, and stored under its session's id and the digest of its content. So sending it
twice changes nothing, and a session that was resumed is stored again, beside what it was.
"""

import fcntl
import gzip
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec

from wave_agent.errors import WaveError
from wave_agent.sessions.masking import masked
from wave_agent.sessions.outbox import DIRECTORY, TOKEN, Waiting, queue, waiting
from wave_agent.system.credentials import without_userinfo
from wave_agent.system.private_files import keep_private

PAUSES = (1.0, 4.0, 16.0)
"""Seconds between the tries of one run."""
_SECONDS = 60
_STORED_ALREADY = (409, 412)
"""Statuses with which a server refuses to store the same thing again."""
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
EXTRA = "pip install 'wave-agent[fleet]'"


class UploadError(WaveError):
    """A transcript was not stored."""

    def __init__(self, reason: str, *, again: bool = False) -> None:
        super().__init__(reason)
        self.again = again
        """Worth another try soon."""


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


def send_all(home: Path, url: str, *, pauses: tuple[float, ...] = PAUSES, token: str = "") -> Iterator[UploadOutcome]:
    """Send every session that waits, the ones queued meanwhile included. Nothing if another process is at it."""
    directory = home / DIRECTORY
    keep_private(directory)
    again = directory / "again"
    to = destination(url, token)
    while True:
        with _alone(directory / "lock") as alone:
            if not alone:
                again.touch()  # whoever holds the lock looks once more
                return
            again.unlink(missing_ok=True)
            failed: set[str] = set()
            while new := [one for one in waiting(home).items() if one[0] not in failed]:
                for session_id, entry in new:
                    sent = _send(home, to, session_id, entry, pauses)
                    failed |= {session_id} if sent.error else set()
                    yield sent
        if not again.exists():
            return


def _send(home: Path, to: Destination, session_id: str, entry: Waiting, pauses: tuple[float, ...]) -> UploadOutcome:
    """Send one session. Its entry goes when everything of it is stored, and otherwise says why it is not."""
    transcript = home / "projects" / entry.transcript
    file = home / DIRECTORY / f"{session_id}.json"
    version = _version(file)
    if transcript.stem != session_id or transcript.suffix != ".jsonl" or ".." in transcript.parts:
        file.unlink(missing_ok=True)
        return UploadOutcome(session_id, "its entry does not name a transcript, and was removed")
    error = ""
    for pause in (*pauses, None):
        try:
            _store_session(to, transcript)
        except FileNotFoundError:
            file.unlink(missing_ok=True)
            return UploadOutcome(session_id, "its transcript has been deleted")
        except (UploadError, OSError) as problem:
            error = str(problem)
            if pause is None or not (isinstance(problem, UploadError) and problem.again):
                break
            time.sleep(pause)
        else:
            if _version(file) == version:  # else it was resumed, and has ended again
                file.unlink(missing_ok=True)
            return UploadOutcome(session_id)
    with suppress(OSError):  # the next run tries again in any case
        queue(home, transcript, entry.tries + 1, error)
    return UploadOutcome(session_id, error)


def _version(file: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        facts = file.stat()
        return facts.st_ino, facts.st_mtime_ns
    return None


def _store_session(to: Destination, transcript: Path) -> None:
    """The transcript and those of the session's subagents."""
    name = transcript.stem
    _store(to, transcript, name)
    for child in sorted((transcript.with_suffix("") / "subagents").glob("*.jsonl")):
        _store(to, child, f"{name}/subagents/{child.stem}")


def _store(to: Destination, transcript: Path, name: str) -> None:
    with tempfile.TemporaryFile() as packed:
        digest = _pack(transcript, packed)
        size = packed.tell()
        packed.seek(0)
        to.store(f"{name}/{digest}.jsonl.gz", packed, size)


def _pack(transcript: Path, into: IO[bytes]) -> str:
    """Write the masked lines, compressed, and return the digest of what was compressed. A last line that is not
    complete is left out: the session was resumed, and will be queued again."""
    digest = hashlib.sha256()
    with transcript.open("rb") as lines, gzip.GzipFile(fileobj=into, mode="wb", filename="", mtime=0) as packed:
        for line in lines:
            if not line.endswith(b"\n"):
                break
            with suppress(ValueError, RecursionError):  # a damaged line may hold anything, and cannot be masked
                safe = msgspec.json.encode(masked(msgspec.json.decode(line))) + b"\n"
                digest.update(safe)
                packed.write(safe)
    return digest.hexdigest()


@contextmanager
def _alone(lock: Path) -> Generator[bool]:
    """Whether no other process is sending."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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


def destination(url: str, token: str = "") -> Destination:
    """Raises `UploadError` for a URL that means nothing here."""
    parts = urlsplit(url)
    if parts.scheme in ("http", "https") and parts.netloc:
        return _UploadServer(url, token)
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


class _UploadServer:
    """PUT to a server, one URL for each transcript."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url.rstrip("/"), token
        self._opener = build_opener(_NoRedirects)

    def store(self, name: str, content: IO[bytes], size: int) -> None:
        content.seek(0)
        headers = {"Content-Type": "application/gzip", "Content-Length": str(size), "If-None-Match": "*"}
        headers |= {"Authorization": f"Bearer {self._token}"} if self._token else {}
        request = Request(f"{self._url}/{name}", content, headers, method="PUT")
        try:
            with self._opener.open(request, timeout=_SECONDS):
                pass
        except HTTPError as error:
            error.close()
            if error.code not in _STORED_ALREADY:
                again = error.code in _AGAIN
                raise UploadError(f"the server answered {error.code} {error.reason}", again=again) from None
        except (URLError, OSError) as error:
            raise UploadError(f"the server cannot be reached: {getattr(error, 'reason', error)}", again=True) from None


class _SharedDirectory:
    """A directory, perhaps one that many machines share."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def store(self, name: str, content: IO[bytes], size: int) -> None:
        file = self._directory / name
        if file.exists():
            return
        file.parent.mkdir(parents=True, exist_ok=True)
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


class _ObjectStore:
    """Anything else that fsspec knows: S3 and what is like it, Google Cloud Storage …"""

    def __init__(self, url: str) -> None:
        try:
            core: Any = import_module("fsspec.core")  # an extra, without types
            system, base = core.url_to_fs(url)
        except ImportError as error:
            raise UploadError(f"{urlsplit(url).scheme}:// needs more packages ({error.name}): {EXTRA}") from None
        except ValueError as error:
            raise UploadError(str(error)) from None
        self._system: Any = system
        self._base = str(base).rstrip("/")

    def store(self, name: str, content: IO[bytes], size: int) -> None:
        path = f"{self._base}/{name}"
        try:
            if not self._system.exists(path):
                with self._system.open(path, "wb") as copy:
                    while part := content.read(1 << 20):
                        copy.write(part)
        except Exception as error:  # each store has its own
            raise UploadError(f"{type(error).__name__}: {error}", again=True) from None


def main(read: Callable[[], str] = sys.stdin.read) -> None:
    """Send what waits in the outbox that stdin names. What fails is noted in the outbox."""
    wanted = json.loads(read())
    with suppress(UploadError, OSError):
        for _ in send_all(Path(wanted["home"]), wanted["url"], token=os.environ.get(TOKEN, "")):
            pass
