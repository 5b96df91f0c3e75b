"""The command lines that hosts run, and how to recognise them. Pure.

A line denies by itself when the program is gone, or ends in a way that is not an answer: before a tool nothing runs
unjudged. On other events such a failure is let through, since a host could not go on otherwise.
"""

import shlex
from collections.abc import Sequence

from wave_agent.guard.answers import failed
from wave_agent.guard.hosts import HOSTS, Form
from wave_agent.hooks.events import EVENTS
from wave_agent.settings.guard_lines import GUARD_LINE

LONGEST = 600
"""Seconds; some hosts refuse a longer timeout."""
SPARE = 30
"""Seconds that a host waits longer than a hook may take by default."""
PROGRAM = ("wave", "guard", "run")
_GONE = "wave guard is not available; see: wave guard doctor"
_BY_EXIT_CODE = (Form.EXIT_TWO, Form.GEMINI)


def timeout_for(host: str, name: str) -> int:
    """The timeout to install for one of the host's events, in seconds."""
    return int(min(LONGEST, EVENTS[HOSTS[host].events[name]].timeout + SPARE))


def flags_for(*, pass_allow: bool = False, commit: str = "") -> tuple[str, ...]:
    """The last words of a line. `commit`: trust exactly what it contains."""
    return (*(["--pass-allow"] * pass_allow), *(["--trust-ref", commit] if commit else []))


def guard_line(host: str, name: str, program: Sequence[str] = PROGRAM, flags: Sequence[str] = ()) -> str:
    """What the host runs for one of its events. `program` are the first words of the command, `flags` the last ones."""
    words = [*program, host, name, "--timeout", str(timeout_for(host, name)), *flags]
    # An interpreter that does not find the file ends like a deny, with 2: a host could never stop then.
    found = f"[ -r {shlex.quote(program[-1])} ] && " if program[-1].endswith(".py") else ""
    return found + shlex.join(words) + _otherwise(host, name)


def _otherwise(host: str, name: str) -> str:
    row = HOSTS[host]
    before_tool = EVENTS[row.events[name]].has_rewrites
    if row.form in _BY_EXIT_CODE:
        if before_tool:
            return f" || {{ [ $? = 2 ] || echo {shlex.quote(_GONE)} >&2; exit 2; }}"
        return " || { [ $? = 2 ] && exit 2; exit 0; }"
    return f" || echo {shlex.quote(failed(host, name, _GONE).stdout.strip())}" if before_tool else " || true"


def programs_of(line: str) -> tuple[str, ...]:
    """The program that a line starts, and the file that this program runs."""
    words = shlex.split(line)
    return (words[words.index("&&") + 1], words[2]) if words[0] == "[" else (words[0],)


def commit_of(line: str) -> str | None:
    """The commit whose hooks a line trusts; None: those that the user has trusted."""
    words = shlex.split(line)
    return words[words.index("--trust-ref") + 1] if "--trust-ref" in words else None


def is_guard_line(text: str) -> bool:
    """Whether a line is one that `wave guard install` writes, and nothing else."""
    found = GUARD_LINE.fullmatch(text.strip())
    if found is None or found["host"] not in HOSTS or found["event"] not in HOSTS[found["host"]].events:
        return False
    return found["rest"] == _otherwise(found["host"], found["event"])
