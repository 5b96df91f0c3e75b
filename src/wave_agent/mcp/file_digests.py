"""Digests of files, remembered as long as a file is untouched, so that a start does not read the whole project."""

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from wave_agent.settings.trust import UNREADABLE, file_digest
from wave_agent.system.private_files import keep_private, write_private

_LARGEST = 8 << 20


class LookLimits(Struct, frozen=True, kw_only=True):
    """How much of a project is looked at, and what is worth remembering."""

    code_files: int = 5000
    """Files with code; in a project with more, some are not watched."""
    settled: int = 60 * 1_000_000_000
    """Nanoseconds since the last change of a file before its digest is remembered: clocks of file systems are coarse,
    and a page that is mapped and dirty can change once more without a new time."""
    worth_keeping: int = 200
    """Digests; fewer are not stored for the next session."""


LOOK_LIMITS = LookLimits()


class _StoredDigests(Struct, kw_only=True):
    version: int = 1
    digests: dict[str, str] = {}


class FileDigests:
    """A file is recognised by device, inode, size, and the times of its last change. The last one, `ctime`, is set by
    the system, and no program can set it back."""

    def __init__(self, home: Path | None = None, project: str = "", limits: LookLimits = LOOK_LIMITS) -> None:
        """With `home`, they are remembered there for the next session."""
        self.limits = limits
        self.home = "" if home is None else os.path.realpath(home)
        """The agent's own directory: never part of a project, even if it is below one."""
        name = hashlib.sha256(os.fsencode(project)).hexdigest()[:32]
        self._file = None if home is None else home / "mcp-cache" / f"{name}.digests.json"
        self._known: dict[str, str] | None = None
        self._used: dict[str, str] = {}
        self._read: dict[str, str] = {}
        """Those of `_used` that this process has computed itself."""
        self._fresh = 0
        self._real: dict[str, str] = {}

    def real_path(self, path: str) -> str:
        """Like `os.path.realpath`, which looks at every directory above. So it is remembered."""
        found = self._real.get(path)
        if found is None:
            found = self._real[path] = os.path.realpath(path)
        return found

    def read_here(self) -> "FileDigests":
        """The same without what earlier sessions have stored. Whatever runs as this user can change that file, so it
        must not decide whether a server starts."""
        found = FileDigests(limits=self.limits)
        found.home, found._used = self.home, self._read
        return found

    def of(self, path: str, facts: os.stat_result) -> str:
        """Like `settings.trust.file_digest`. `facts` are those of the real file."""
        key = _key(facts)
        found = self._used.get(key) or self._remembered().get(key)
        if found is None:
            found = file_digest(path)
            if found is None:
                return f"{UNREADABLE}it has just been removed"
            with suppress(OSError):
                # The file that was read must still be the one that was asked for.
                age = time.time_ns() - max(facts.st_ctime_ns, facts.st_mtime_ns)
                if _key(os.stat(path)) != key or age < self.limits.settled:
                    return found
            self._fresh += 1
            self._read[key] = found
        self._used[key] = found
        return found

    def keep(self) -> None:
        """Stores what was used, if that saves time. Never raises."""
        if self._file is None or not self._fresh or len(self._used) < self.limits.worth_keeping:
            return
        self._fresh = 0
        with suppress(OSError):
            keep_private(self._file.parent)
            write_private(self._file, msgspec.json.encode(_StoredDigests(digests=self._used)), sync=False)

    def _remembered(self) -> dict[str, str]:
        if self._known is None:
            self._known = {} if self._file is None else _load(self._file)
        return self._known


def _key(facts: os.stat_result) -> str:
    times = f"{facts.st_mtime_ns}:{facts.st_ctime_ns}"
    return f"{facts.st_dev}:{facts.st_ino}:{facts.st_mode}:{facts.st_size}:{times}"


def _load(file: Path) -> dict[str, str]:
    try:
        with file.open("rb") as opened:
            facts = os.fstat(opened.fileno())
            if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
                return {}
            found = msgspec.json.decode(opened.read(_LARGEST + 1), type=_StoredDigests)
    except (OSError, ValueError, RecursionError):
        return {}
    return found.digests if found.version == 1 else {}
