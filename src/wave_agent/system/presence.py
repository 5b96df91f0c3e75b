"""Whether a person gives a command, or something that an agent's session has left behind.

A process that has cut itself loose from its parents, and cleaned its environment, cannot be told from a person's by
looking upwards. But it began while a session of the project ran, and so did the group of processes that the system
calls a session: no process can join an older one. What a person starts belongs to a terminal, or to a service, that was
there before or came later.

Tamper-evident, not tamper-proof: whoever types into a person's terminal (`tmux send-keys`), or has itself started later
by somebody else (cron, a user's service manager), passes. So does whoever writes to the agent's own files directly once
the session has ended.
"""

import os
import sys
from pathlib import Path

from wave_agent.system.orphans import SessionSpan, birth_of, has_ended, live_processes, sessions_of

_STDIN = 0


def at_terminal(*descriptors: int) -> bool:
    """These are the terminal that controls this process, which runs in its foreground: keys that are typed reach it."""
    return all(map(_is_attended, descriptors or (_STDIN,)))


def _is_attended(descriptor: int) -> bool:
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # closed, no terminal, or not the one that controls this process
        return False


def doubt(home: Path, project: str, *, terminal: bool) -> str:
    """Why this command may be the work of a session of the project; empty if it cannot be.

    At a terminal only sessions count that nobody attends: whoever attends one has others open beside it.
    """
    if why := _is_covered(home, project):
        return why
    sessions = [one for one in sessions_of(home, project) if one.unattended or not terminal]
    if any(one.ended is None for one in sessions):
        return f"a session of this project {'runs unattended' if terminal else 'is running'}"
    if sessions and _may_be_of(sessions):
        where = "this terminal was opened" if terminal else "the process that it comes from began"
        return f"{where} while a session of this project ran"
    return ""


def began_in_session(home: Path, project: str) -> bool:
    """Whether this terminal, or whatever this process comes from, may have been opened by a session that nobody
    attended."""
    sessions = [one for one in sessions_of(home, project) if one.unattended]
    return bool(sessions) and _may_be_of(sessions)


def _may_be_of(sessions: list[SessionSpan]) -> bool:
    """What began in one of them may have been begun by it."""
    if not sys.platform.startswith("linux"):
        return False  # there is no telling
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
        return "the system's /proc cannot be read, and sessions of this project ran" if has_ended(home, project) else ""
    inside = os.path.join(os.path.realpath(home), "")
    found = next((place for place in places if place.startswith(inside)), None)
    return f"something is mounted on {found}" if found else ""


def _is_hidden() -> bool:
    """Births cannot be compared with the times of sessions: this process has another clock (a time namespace), or what
    is mounted on /proc is not the system's."""
    try:
        with open("/proc/self/timens_offsets", encoding="ascii") as offsets:
            return any(int(number) for line in offsets for number in line.split()[1:])
    except FileNotFoundError:  # a kernel without them
        return birth_of(os.getpid()) is None
    except (OSError, ValueError):
        return True


def _born() -> int | None:
    """Since when the group of processes is there that the system calls our session.

    Its leader tells. One that has ended, or that is out of sight outside a container, leaves the oldest of the others
    that can be seen: the group is at least as old.
    """
    group = os.getsid(0)
    if (leader := birth_of(group)) is not None:
        return leader
    return min((process.born for process in live_processes() if process.session == group), default=None)
