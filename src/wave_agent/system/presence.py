"""Whether a person runs a command, or something left behind by an agent's session.

A process that has detached from its parents and cleaned its environment cannot be distinguished from a person's by its
ancestry. But it started while a session of the project was running, and so did its process session: no process can join
an older one. Programs that a person starts belong to a terminal or a service that existed before or was started later.

Tamper-evident, not tamper-proof: a process that types into a person's terminal (`tmux send-keys`), or has itself
started later by cron or a user's service manager, passes. So does one that writes to the agent's own files directly
after the session has ended.
"""

import os
import sys
from pathlib import Path

from wave_agent.system.orphans import SessionSpan, birth_of, has_ended, live_processes, sessions_of

_STDIN = 0


def at_terminal(*descriptors: int) -> bool:
    """Whether these are this process's controlling terminal, and it is in the foreground: typed keys reach it."""
    return all(map(_is_attended, descriptors or (_STDIN,)))


def _is_attended(descriptor: int) -> bool:
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # closed, not a terminal, or not the controlling one
        return False


def doubt(home: Path, project: str, *, terminal: bool) -> str:
    """Why this command may come from a session of the project; empty if it cannot.

    At a terminal only unattended sessions matter: a user with an attended one has other terminals open as well.
    """
    if why := _is_covered(home, project):
        return why
    sessions = [one for one in sessions_of(home, project) if one.unattended or not terminal]
    if any(one.ended is None for one in sessions):
        return f"a session of this project {'runs unattended' if terminal else 'is running'}"
    if sessions and _may_be_of(sessions):
        where = "this terminal was opened" if terminal else "the process that it comes from was started"
        return f"{where} while a session of this project ran"
    return ""


def began_in_session(home: Path, project: str) -> bool:
    """Whether an unattended session may have opened this terminal, or started whatever this process comes from."""
    sessions = [one for one in sessions_of(home, project) if one.unattended]
    return bool(sessions) and _may_be_of(sessions)


def _may_be_of(sessions: list[SessionSpan]) -> bool:
    """Anything that started during one of them may have been started by it."""
    if not sys.platform.startswith("linux"):
        return False  # it cannot be determined
    if _is_hidden():
        return True
    born = _born()
    return born is None or any(one.begun <= born <= (one.ended or born) for one in sessions)


def _is_covered(home: Path, project: str) -> str:
    """Why the notes on sessions cannot be relied on: something is mounted over them, or over /proc."""
    if not sys.platform.startswith("linux"):
        return ""
    try:
        with open("/proc/self/mountinfo", "rb") as mounts:
            places = [line.split()[4].decode("unicode_escape", "replace") for line in mounts]
    except (OSError, IndexError):
        return "/proc cannot be read, and sessions of this project have run" if has_ended(home, project) else ""
    inside = os.path.join(os.path.realpath(home), "")
    found = next((place for place in places if place.startswith(inside)), None)
    return f"something is mounted on {found}" if found else ""


def _is_hidden() -> bool:
    """Whether start times cannot be compared with the times of sessions: this process has another clock (a time
    namespace), or /proc is not the system's."""
    try:
        with open("/proc/self/timens_offsets", encoding="ascii") as offsets:
            return any(int(number) for line in offsets for number in line.split()[1:])
    except FileNotFoundError:  # a kernel without time namespaces
        return birth_of(os.getpid()) is None
    except (OSError, ValueError):
        return True


def _born() -> int | None:
    """When our process session was created.

    Its leader's start time says so. If the leader has ended, or is not visible from a container, the oldest visible
    member is used: the session is at least as old.
    """
    group = os.getsid(0)
    if (leader := birth_of(group)) is not None:
        return leader
    return min((process.born for process in live_processes() if process.session == group), default=None)
