"""Opens the files of a search, except those that rules keep back. Has only fast imports."""

import os
import re
import stat
from typing import Any

from wave_agent.system.real_files import open_file, read_at_most
from wave_agent.tools.search.walk import FileRun

LARGEST = 64 << 20
"""Maximum size of a file that is searched, in bytes."""


class KeptBackError(OSError):
    """A rule forbids reading this file."""


class FileReader:
    def __init__(self, request: dict[str, Any]) -> None:
        self._real: str = request["real"]
        together = "|".join(f"(?:{expression})" for expression in request["unread"])
        self._unread = re.compile(together, re.DOTALL) if together else None
        self.kept_back = 0
        """Files left out of `allowed`, `allowed_run` and `read` because of a rule."""

    def allowed(self, paths: list[str]) -> list[str]:
        """The paths that no rule keeps back."""
        left = [path for path in paths if not self._is_kept_back(path, linked=False)]
        self.kept_back += len(paths) - len(left)
        return left

    def allowed_run(self, run: FileRun) -> FileRun:
        """Without the files that rules keep back, and without those that have other names, which a rule may mean.

        To be called before anything reads the files: whether one is kept back must not depend on what is in it.
        """
        if self._unread is None:
            return run
        names = [name for name in run.names if not self._is_kept_back(run.directory + name, linked=True)]
        self.kept_back += len(run.names) - len(names)
        return FileRun(run.directory, names, run.is_whole and len(names) == len(run.names))

    def _is_kept_back(self, path: str, *, linked: bool) -> bool:
        if self._unread is None:
            return False
        real = self._real_path(path)
        if self._unread.fullmatch(real):
            return True
        try:
            facts = os.lstat(real)
        except OSError:
            return False  # whoever opens it finds out
        return linked and facts.st_nlink > 1 and stat.S_ISREG(facts.st_mode)

    def _real_path(self, path: str) -> str:
        return os.path.join(self._real, path) if path else self._real

    def read(self, path: str) -> bytes | None:
        """The content of a file below the search root, or of the root itself if the path is empty. None: do not search.
        Raises `KeptBackError`."""
        real = self._real_path(path)
        if self._unread is not None and self._unread.fullmatch(real):
            raise self._kept_back()
        try:
            descriptor = open_file(real)
        except OSError:
            return None
        try:
            facts = os.fstat(descriptor)
            if self._unread is not None and facts.st_nlink > 1:
                raise self._kept_back()  # a rule may apply to another of its names
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST:
                return None
            return _content(descriptor)
        finally:
            os.close(descriptor)

    def _kept_back(self) -> KeptBackError:
        self.kept_back += 1
        return KeptBackError()


def _content(descriptor: int) -> bytes | None:
    try:
        head, complete = read_at_most(descriptor, 8192)
        # Read completely only if it may be text. A byte order mark explains the zeros of UTF-16.
        if complete or (b"\0" in head and head[:1] not in (b"\xff", b"\xfe", b"\0")):
            return head
        os.lseek(descriptor, 0, os.SEEK_SET)
        data, complete = read_at_most(descriptor, LARGEST)
    except OSError:
        return None
    return data if complete else None
