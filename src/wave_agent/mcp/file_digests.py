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

_SETTLED = 60 * 1_000_000_000
"""Nanoseconds since the last change of a file before its digest is remembered: clocks of file systems are coarse, and
a page that is mapped and dirty can change once more without a new time."""
_WORTH_KEEPING = 200
_LARGEST = 8 << 20


class _StoredDigests(Struct, kw_only=True):
    version: int = 1
    digests: dict[str, str] = {}


class FileDigests:
    """A file is recognised by device, inode, size, and the times of its last change. The last one, `ctime`, is set by
    the system, and no program can set it back."""

    def __init__(self, home: Path | None = None, project: str = "") -> None:
        """With `home`, they are remembered there for the next session."""
        self.home = "" if home is None else os.path.realpath(home)
        """The agent's own directory: never part of a project, even if it is below one."""
        name = hashlib.sha256(os.fsencode(project)).hexdigest()[:32]
        self._file = None if home is None else home / "mcp-cache" / f"{name}.digests.json"
        self._known: dict[str, str] | None = None
        self._used: dict[str, str] = {}
        self._read: dict[str, str] = {}
        """Those of `_used` that this process has computed itself."""
        self._fresh = 0

    def read_here(self) -> "FileDigests":
        """The same without what earlier sessions have stored. Whatever runs as this user can change that file, so it
        must not decide whether a server starts."""
        found = FileDigests()
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
                if _key(os.stat(path)) != key or time.time_ns() - max(facts.st_ctime_ns, facts.st_mtime_ns) < _SETTLED:
                    return found
            self._fresh += 1
            self._read[key] = found
        self._used[key] = found
        return found

    def keep(self) -> None:
        """Stores what was used, if that saves time. Never raises."""
        if self._file is None or not self._fresh or len(self._used) < _WORTH_KEEPING:
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
