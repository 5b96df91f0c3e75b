"""What the hooks after a tool change on disk, such as a formatter: the model sees it, and `/undo` takes it back."""

import os
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from wave_agent.text import strip_controls
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.diff import unified_diff
from wave_agent.tools.encoding import decode, kind_of_binary, printable
from wave_agent.tools.files import FileRefusedError, read_bytes

FILES = 100
"""Files that were only read and are watched while hooks run, the latest first."""
MEMORY = 4 << 20
"""Bytes of them altogether."""
SETTLED = 1_000_000_000
"""Nanoseconds after which a change of a file cannot have the same time as the one before it."""
SHOWN = 10_000
"""Characters of diff that the model is given for one call, more or less."""
NAMED = 20
"""Files that it is given by name."""


class HookEdit(Struct, frozen=True):
    """One file that was changed while hooks ran."""

    path: str
    before: bytes
    after: bytes | None
    """None: it is gone, or cannot be read."""
    problem: str = ""
    """Why it cannot be read."""


class WatchedFile(Struct, frozen=True):
    """A file as it was before hooks ran."""

    data: bytes
    signature: tuple[int, ...] | None
    """What every later change of the file changes as well; None where it is too fresh for that."""


def look(changes: FileChanges, before: Mapping[str, WatchedFile] | None = None) -> dict[str, WatchedFile]:
    """The files to watch while hooks run: what this turn has written, and what the model has read.

    With what the last look has found `before`, only what has changed since is read again.
    """
    seen = before or {}
    found = {path: file for path in changes.written() if (file := _watch(path, seen.get(path))) is not None}
    room = MEMORY
    for path in changes.known.latest()[:FILES]:
        if path not in found and (file := _watch(path, seen.get(path), room)) is not None:
            found[path] = file
            room -= len(file.data)
    return found


def _watch(path: str, seen: WatchedFile | None, limit: int | None = None) -> WatchedFile | None:
    try:
        facts = os.stat(path)
        if limit is not None and facts.st_size > limit:
            return None
        signature = _signature(facts)
        if seen is not None and seen.signature == signature:
            return seen
        # Two changes within a tick of the clock look the same, so that only an old one can be told from the next.
        old = time.time_ns() - facts.st_ctime_ns > SETTLED
        return WatchedFile(read_bytes(path), signature if old else None)
    except (FileRefusedError, OSError):
        return None  # somebody else has taken it away


def _signature(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def settle(changes: FileChanges, before: Mapping[str, WatchedFile], *, seen: bool) -> tuple[HookEdit, ...]:
    """What has become of the files since `look`. Counts as a change of this turn, and with `seen` as known.

    A file that did not hold what the model knows when the hooks began was changed by somebody else: it stays unknown.
    """
    edits: list[HookEdit] = []
    with changes.known.lock:
        for path, old in before.items():
            edit = _edit(path, old)
            if edit is None or not changes.known.holds(path, old.data):
                continue
            edits.append(edit)
            if not edit.problem:
                changes.note(path, old.data, edit.after)
            if edit.after is None or not seen:
                changes.known.forget(path)
            else:
                changes.known.note(path, edit.after)
    return tuple(edits)


def _edit(path: str, watched: WatchedFile) -> HookEdit | None:
    before = watched.data
    if not os.path.lexists(path):
        return HookEdit(path, before, None)
    if os.path.islink(path):  # whatever it leads to, it is another file now
        return HookEdit(path, before, None, f"{path} is a symbolic link now.")
    try:
        if watched.signature is not None and _signature(os.stat(path)) == watched.signature:
            return None
        after = read_bytes(path)
    except (FileRefusedError, OSError) as refusal:
        return HookEdit(path, before, None, str(refusal))
    return None if after == before else HookEdit(path, before, after)


def describe(edits: Sequence[HookEdit], hooks: Sequence[str], *, shown: bool = True) -> str:
    """For the model. Without `shown`, that files were changed, but nothing of what is in them."""
    names = ", ".join(strip_controls(name) for name in hooks)
    who = f"Hook {names}" if len(hooks) == 1 else f"One of the hooks {names}"
    room = SHOWN
    told: list[str] = []
    for edit in edits[:NAMED]:
        text = f"{who} then {_what(edit, shown=shown)}"
        if len(text) > room:
            whole_lines = text[:room].rpartition("\n")[0]
            text = f"{whole_lines or f'{who} then changed {edit.path}:'}\n{_CUT}"
        told.append(text)
        room = max(room - len(text), 0)
    if len(edits) > NAMED:
        told.append(f"{who} then changed {len(edits) - NAMED:,} more files that you have read.")
    return "\n\n".join(told)


_CUT = "[the rest of this diff is left out: Read the file before you change it again]"
_HIDDEN = "The diff is not shown: a hook replaces or withholds such results. Read the file before you change it again."


def _what(edit: HookEdit, *, shown: bool) -> str:
    path = edit.path
    if edit.after is None:
        return f"changed a file: {edit.problem}" if edit.problem else f"deleted {path}."
    if not shown:
        return f"changed {path}. {_HIDDEN}"
    old, new = decode(edit.before), decode(edit.after)
    if new is None:
        return f"changed {path}: it is {kind_of_binary(edit.after)} now ({len(edit.after):,} bytes)."
    diff = unified_diff("" if old is None else printable(old.content), printable(new.content))
    return f"changed {path}:\n{diff}" if diff else f"changed {path}, but only its line endings or its encoding."
