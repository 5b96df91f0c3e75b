"""One run of the process that speaks the protocol, as the agent sees it: a socket, and an end for everything below it.

Servers may leave their process group (`setsid`) or detach twice like daemons. The process is the subreaper of whatever
it starts, so all of that stays below it; and every server carries a variable that only this run has, by which the rest
is found if the process itself was killed.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from wave_agent.system.orphans import LiveProcess, live_processes, was_given
from wave_agent.system.processes import DEATH, GLANCE, Ledger, end_groups, signal_group

MARK = "WAVE_MCP_ID"
PATIENCE = 2.0
"""Seconds to end in an orderly way."""
_SHOWN = 2000
"""Bytes of the process's own last words that are shown."""


class HostProcess:
    """Started by its construction. Raises `OSError` if that fails."""

    def __init__(self, environment: Mapping[str, str], *, session_id: str, ledger: Ledger) -> None:
        self.marks = {"WAVE_SESSION_ID": session_id, MARK: os.urandom(8).hex()}
        self._mark = f"{MARK}={self.marks[MARK]}"
        self._groups: list[int] = []
        self._stderr = _scratch_file()
        self._entry = ledger()
        self._ended = False
        self._said = ""
        self.socket, theirs = socket.socketpair()
        self._note = self._entry.__enter__()
        try:
            self._popen = subprocess.Popen(
                # -P: a directory `mcp` of the project must not be taken for the SDK.
                [sys.executable, "-P", "-m", "wave_agent.mcp.host_program", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                cwd="/",
                env={**_absolute(environment), **self.marks},
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
        except BaseException:
            self._entry.__exit__(None, None, None)
            self.socket.close()
            os.close(self._stderr)
            raise
        finally:
            theirs.close()
        self.note_group(self._popen.pid)

    def note_group(self, group: int) -> None:
        """A group that has to end with this process."""
        self._groups.append(group)
        self._note(group)

    def last_words(self) -> str:
        """What it wrote to stderr: a traceback, if it could not even be loaded."""
        if self._ended:
            return self._said
        with suppress(OSError):
            size = os.fstat(self._stderr).st_size
            return os.pread(self._stderr, _SHOWN, max(0, size - _SHOWN)).decode(errors="replace").strip()
        return ""

    def end(self, patience: float = PATIENCE) -> None:
        """Waits for its end, and after `patience` kills it; in any case with everything that it has started. Blocks.
        Never raises."""
        if self._ended:
            return
        self._said = self.last_words()
        self._ended = True
        limit = time.monotonic() + patience
        while self._lives() and time.monotonic() < limit:
            time.sleep(GLANCE)
        self._kill_everything()
        self._entry.__exit__(None, None, None)
        self.socket.close()
        os.close(self._stderr)

    def _lives(self) -> bool:
        return self._popen.poll() is None

    def _kill_everything(self) -> None:
        limit = time.monotonic() + DEATH
        while family := self._family():
            # The descendants first: while it lives, none of them can get away to another parent.
            for process in sorted(family, key=lambda one: one.pid == self._popen.pid):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process.pid, signal.SIGKILL)
            self._lives()  # Collects its status.
            if time.monotonic() > limit:
                break
            time.sleep(GLANCE)
        if self._lives():  # Without /proc, nothing was found above.
            groups = list(self._groups)
            end_groups(groups, lambda: {group for group in groups if signal_group(group, 0)})
            self._popen.kill()
            self._popen.wait()

    def _family(self) -> list[LiveProcess]:
        """The process, if it lives, its descendants, and whatever has its mark."""
        processes = list(live_processes())
        below = _descendants(self._popen.pid, processes) if self._lives() else set[int]()
        return [process for process in processes if process.pid in below or was_given(process.pid, self._mark)]


def kill_descendants() -> None:
    """Kills everything below this process. For one that is about to exit."""
    limit = time.monotonic() + DEATH
    own = os.getpid()
    while (found := _descendants(own, live_processes()) - {own}) and time.monotonic() < limit:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(GLANCE)


def _descendants(root: int, processes: Iterable[LiveProcess]) -> set[int]:
    children: dict[int, list[int]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    left = [root]
    while left:
        pid = left.pop()
        if pid not in found:
            found.add(pid)
            left += children.get(pid, ())
    return found


def _absolute(environment: Mapping[str, str]) -> dict[str, str]:
    """The process starts in another directory, and has to find the same modules."""
    paths = environment.get("PYTHONPATH", "")
    absolute = os.pathsep.join(os.path.abspath(path) for path in paths.split(os.pathsep) if path)
    return {**environment, "PYTHONPATH": absolute} if absolute else dict(environment)


def _scratch_file() -> int:
    """A descriptor for a few bytes. `tempfile` takes longer to import than anything else here."""
    if hasattr(os, "memfd_create"):
        with suppress(OSError):
            return os.memfd_create("wave-mcp", os.MFD_CLOEXEC)
    return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
