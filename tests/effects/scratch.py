"""Runs lines in a scratch project, and finds what they did: from the files themselves, and from system calls if
`strace` is there."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.effects.arena import fill

STRACE = shutil.which("strace")
_CALL = re.compile(r"^\d+\s+(\w+)\((.*)$")
_PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
_AT = re.compile(r"^(?:AT_FDCWD|\d+)<([^>]*)>")
_WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND")
CHANGING = {
    *("unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "link", "linkat"),
    *("symlink", "symlinkat", "truncate", "chmod", "fchmodat", "chown", "fchownat", "utimensat", "mknod", "mknodat"),
    *("connect", "bind", "sendto", "kill", "tkill"),
}


class Scratch:
    """A project that is a git repository, with a home next to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "project"
        self.home = root / "home"
        self._pristine = root / "pristine"
        fill(self._pristine)
        (self._pristine / "empty").mkdir()
        (self._pristine / "a b.txt").write_text("blank\n")
        self.home.mkdir()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "first"]):
            identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
            subprocess.run(["git", *identity, *words], cwd=self._pristine, env=self.environment, check=True)
        (self._pristine / "other.txt").write_text("changed\n")
        self.reset()

    def reset(self) -> None:
        shutil.rmtree(self.project, ignore_errors=True)
        shutil.copytree(self._pristine, self.project, symlinks=True)

    def files(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for start in (self.project, self.home):
            for directory, _, names in os.walk(start):
                found[directory] = os.lstat(directory).st_mode, os.lstat(directory).st_mtime_ns
                for name in names:
                    path = os.path.join(directory, name)
                    status = os.lstat(path)
                    content = os.readlink(path) if os.path.islink(path) else Path(path).read_bytes()
                    found[path] = status.st_mode, status.st_mtime_ns, status.st_ino, content
        return found

    def run(self, line: str, more: Mapping[str, str], *, traced: bool = False) -> list[tuple[str, str]]:
        """Runs it, and returns the system calls that are traced."""
        log = self.root / "calls.log"
        names = f"trace=execve,openat,open,creat,{','.join(sorted(CHANGING))}"
        trace = [STRACE, "-f", "-qq", "-y", "-s", "4096", "-e", names, "-o", str(log)] if STRACE and traced else []
        subprocess.run(
            [*trace, "bash", "-c", line],
            cwd=self.project,
            env={**self.environment, "PWD": str(self.project), **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        if not trace:
            return []
        calls = map(_CALL.match, log.read_text(errors="replace").splitlines())
        return [(call[1], call[2]) for call in calls if call]


def acts(name: str, arguments: str) -> bool:
    """Whether this system call changes or reaches something."""
    if name in CHANGING:
        # Looking up a user asks a daemon that is not there.
        return "nscd" not in arguments
    opens = name in ("open", "openat", "creat") and " = -1 " not in arguments
    return opens and _WRITING.search(arguments) is not None and "/dev/" not in arguments


def opened(name: str, arguments: str, directory: str) -> str | None:
    """The path of a regular file that this call opens for reading."""
    found = _PATH.search(arguments)
    if name != "openat" or found is None or " = -1 " in arguments or "O_DIRECTORY" in arguments:
        return None
    if "O_WRONLY" in arguments or "O_PATH" in arguments:
        return None
    base = _AT.match(arguments)
    return os.path.normpath(os.path.join(base[1] if base else directory, found[1]))
