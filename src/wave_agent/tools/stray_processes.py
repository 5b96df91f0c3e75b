"""Processes that a command leaves behind: found when it ends, named in its result, and ended with the session.

`server &` stays in the group of its command; `setsid server &` and daemons leave it, but keep its environment, which
contains a unique id for each command. Processes that leave the group and clear or overwrite their environment are not
found, nor are those that another service starts on request (containers, systemd units). Without /proc, as on macOS,
only the group is known, not its processes.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from wave_agent.lazy_regex import lazy_regex
from wave_agent.system.orphans import LiveProcess, environment_of, live_processes
from wave_agent.system.processes import ENDING, GLANCE, end_groups, signal_group
from wave_agent.text import strip_controls
from wave_agent.tools.process import Orphan, named

MARK = "WAVE_COMMAND_ID"

_LINGER = 0.25
"""Seconds that a process may take to end after its command: the `tee` of a pipeline is not left behind."""
_WIDTH = 100
"""Characters of a command line that are shown."""

_USERS_OWN = lazy_regex(
    r"(?:\S*/)?(?:"
    r"tmux|screen|SCREEN|zellij"  # terminals, with whatever runs in them
    r"|ssh-agent|gpg-agent|keyboxd|dirmngr|dbus-daemon|dbus-launch"  # agents of the login
    r"|dockerd|containerd|conmon|adb|watchman"  # services
    r"|git\b.*\b(?:gc|maintenance|fsmonitor--daemon)"
    r"|bazel\S*|\S*java\b.*\b(?:GradleDaemon|KotlinCompileDaemon|SbtServer)"  # build daemons
    r"|(?:firefox|chrom\w+|google-chrome|code)\b(?!.*(?:--headless|--remote-debugging|-juggler|--type=))"  # windows
    r")(?:[\s:].*)?",
    re.DOTALL,
)
"""Command lines of programs that serve more than one session: they are left running, and the user is notified."""


class Orphans:
    """The processes that the commands of one session left behind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commands: set[str] = set()
        self._noted: set[tuple[int, int]] = set()
        self._groups: set[int] = set()
        """Used if there is no /proc."""
        self._releases: list[Callable[[], None]] = []
        self.strangers: set[int] = set()
        """Processes that existed before, or that no command started: they are not checked again after each command.
        Pids are reused, so the end of the session does not rely on this set."""

    def watch(self) -> "StrayWatch":
        """For one command, before it is started."""
        watch = StrayWatch(self, os.urandom(8).hex())
        with self._lock:
            if not self._commands:
                self.strangers |= _pids()
            self._commands.add(watch.number)
        return watch

    def note(self, orphans: Iterable[Orphan]) -> None:
        with self._lock:
            self._noted.update((orphan.pid, orphan.born) for orphan in orphans)

    def note_group(self, group: int) -> None:
        with self._lock:
            self._groups.add(group)

    def any_alive(self) -> bool:
        """Whether any that was found is still running."""
        with self._lock:
            noted, groups = tuple(self._noted), tuple(self._groups)
        return any(_lives(Orphan(pid, born, "")) for pid, born in noted) or any(
            signal_group(group, 0) for group in groups
        )

    def release_later(self, release: Callable[[], None]) -> None:
        with self._lock:
            self._releases.append(release)

    def close(self) -> str:
        """Ends them and waits for that. Returns a notice for the user, or nothing."""
        with self._lock:
            commands, noted, groups = set(self._commands), set(self._noted), set(self._groups)
            releases, self._releases = self._releases, []
        if not commands:
            return ""
        ended, kept = _end(lambda process: (process.pid, process.born) in noted or _command_of(process.pid) in commands)
        end_groups(groups, lambda: {group for group in groups if signal_group(group, 0)})
        for release in releases:
            release()
        notices: list[str] = []
        if ended:
            what = "1 process" if len(ended) == 1 else f"{len(ended)} processes"
            notices.append(f"Ended {what} left running by commands: {named(ended)}.")
        if kept:
            notices.append(f"Still running, since it may be in use outside this session: {named(kept)}.")
        return " ".join(notices)


class StrayWatch:
    """Finds what one command leaves behind: implements `Watch` of `process`."""

    def __init__(self, orphans: Orphans, number: str) -> None:
        self._orphans = orphans
        self.number = number
        self.environment = {MARK: number}
        """For the command."""

    def look(self, group: int, note: Callable[[int], object]) -> tuple[Orphan, ...]:
        end = time.monotonic() + _LINGER
        found = self._find(group)
        while found and time.monotonic() < end:
            time.sleep(GLANCE)
            found = [process for process in found if _lives(process)]
        ours, _ = _sort(found)
        for other in {process.group for process in ours} - {group}:
            note(other)
        orphans = tuple(map(_orphan, ours))
        if not found and not _has_proc() and signal_group(group, 0):
            self._orphans.note_group(group)
            orphans = (Orphan(group, 0, "its process group"),)
        self._orphans.note(orphans)
        return orphans

    def end_all(self) -> tuple[Orphan, ...]:
        ended, _ = _end(lambda process: _command_of(process.pid) == self.number)
        return tuple(orphan for orphan in ended if _lives(orphan))

    def release_later(self, release: Callable[[], None]) -> None:
        self._orphans.release_later(release)

    def _find(self, group: int) -> list[LiveProcess]:
        strangers = self._orphans.strangers
        pids = _pids()
        strangers &= pids
        mine = {pid for pid in pids if _is_in(pid, group) or (pid not in strangers and self._has_started(pid))}
        return [process for process in live_processes() if process.pid in mine] if mine else []

    def _has_started(self, pid: int) -> bool:
        command = _command_of(pid)
        if command is None:
            self._orphans.strangers.add(pid)
        return command == self.number


# --------------------------------------------------------------------------------------------------------------- /proc


def _has_proc() -> bool:
    """There may be none, or one with different pids than ours."""
    with suppress(OSError):
        return os.readlink("/proc/self") == str(os.getpid())
    return False


def _pids() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()} if _has_proc() else set()


def _command_of(pid: int) -> str | None:
    """The id of the command that started the process, directly or indirectly."""
    prefix = f"{MARK}=".encode()
    found = [variable for variable in environment_of(pid) if variable.startswith(prefix)]
    return found[0][len(prefix) :].decode(errors="replace") if found else None


def _is_in(pid: int, group: int) -> bool:
    try:
        return os.getpgid(pid) == group
    except OSError:  # It has ended by now.
        return False


def _lives(one: LiveProcess | Orphan) -> bool:
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{one.pid}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[0] not in (b"Z", b"X") and int(fields[19]) == one.born
    return False


def _orphan(process: LiveProcess) -> Orphan:
    command = _command_line(process.pid)
    return Orphan(process.pid, process.born, command if len(command) <= _WIDTH else f"{command[: _WIDTH - 1]}…")


def _command_line(pid: int) -> str:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        return strip_controls(" ".join(word.decode(errors="replace") for word in words))
    return ""


def _sort(found: Sequence[LiveProcess]) -> tuple[list[LiveProcess], list[LiveProcess]]:
    """Processes that end with the session, and the user's own, which do not. Children of the latter are in neither."""
    kept = [process for process in found if _USERS_OWN.fullmatch(_command_line(process.pid))]
    if not kept:
        return list(found), []
    below = {process.pid for process in kept}
    parents = {process.pid: process.parent for process in live_processes()}
    ours = [process for process in found if below.isdisjoint(_ancestry(process.pid, parents))]
    roots = [process for process in kept if below.isdisjoint(_ancestry(process.parent, parents))]
    return ours, roots


def _ancestry(pid: int, parents: dict[int, int]) -> list[int]:
    """The process and its ancestors."""
    line: list[int] = []
    while pid and pid not in line:
        line.append(pid)
        pid = parents.get(pid, 0)
    return line


def _end(is_meant: Callable[[LiveProcess], bool]) -> tuple[list[Orphan], list[Orphan]]:
    """SIGTERM, a grace period, SIGKILL. Returns the processes that were signalled, and those of the user."""
    ended: dict[int, Orphan] = {}
    kept: list[Orphan] = []
    for number, seconds in ENDING:
        # The second pass also finds processes started in the meantime.
        ours, theirs = _sort([process for process in live_processes() if is_meant(process)])
        kept = list(map(_orphan, theirs))
        for process in ours:
            ended.setdefault(process.pid, _orphan(process))
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)
        end = time.monotonic() + seconds
        while any(map(_lives, ours)) and time.monotonic() < end:
            time.sleep(GLANCE)
        if not ours:
            break
    return list(ended.values()), kept
