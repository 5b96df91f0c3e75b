"""Changes made on disk by hooks after a tool, such as a formatter: the model sees them, and `/undo` reverts them."""

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
"""Maximum number of files watched while hooks run that were only read, latest first."""
MEMORY = 4 << 20
"""Maximum size of these files together, in bytes."""
SETTLED = 1_000_000_000
"""Nanoseconds after which a change to a file cannot have the same time as the one before it."""
SHOWN = 10_000
"""Characters of diff shown to the model for one call, approximately."""
NAMED = 20
"""Maximum number of files named to the model."""


class HookEdit(Struct, frozen=True):
    """One file that changed while hooks ran."""

    path: str
    before: bytes
    after: bytes | None
    """None: it is missing, or cannot be read."""
    problem: str = ""
    """Why it cannot be read."""


class WatchedFile(Struct, frozen=True):
    """A file as it was before hooks ran."""

    data: bytes
    signature: tuple[int, ...] | None
    """Values that differ after any later change of the file; None if the file is too fresh for that."""


def look(changes: FileChanges, before: Mapping[str, WatchedFile] | None = None) -> dict[str, WatchedFile]:
    """The files to watch while hooks run: those this turn has written, and those the model has read.

    With the result of the last call as `before`, only files that have changed since are read again.
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
        # Two changes within one clock tick look the same, so only an older change can be told from the next one.
        old = time.time_ns() - facts.st_ctime_ns > SETTLED
        return WatchedFile(read_bytes(path), signature if old else None)
    except (FileRefusedError, OSError):
        return None  # removed by something else


def _signature(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def settle(changes: FileChanges, before: Mapping[str, WatchedFile], *, seen: bool) -> tuple[HookEdit, ...]:
    """What happened to the files since `look`. Noted as changes of this turn and, with `seen`, as known to the model.

    If a file was not as the model knows it when the hooks started, something else changed it: it stays unknown.
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
    if os.path.islink(path):  # whatever it points to, it is another file now
        return HookEdit(path, before, None, f"{path} is a symbolic link now.")
    try:
        if watched.signature is not None and _signature(os.stat(path)) == watched.signature:
            return None
        after = read_bytes(path)
    except (FileRefusedError, OSError) as refusal:
        return HookEdit(path, before, None, str(refusal))
    return None if after == before else HookEdit(path, before, after)


def describe(edits: Sequence[HookEdit], hooks: Sequence[str], *, shown: bool = True) -> str:
    """For the model. Without `shown`, says which files changed, but not how."""
    names = ", ".join(strip_controls(name) for name in hooks)
    who = f"Hook {names}" if len(hooks) == 1 else f"One of the hooks {names}"
    room = SHOWN
    notes: list[str] = []
    for edit in edits[:NAMED]:
        text = f"{who} then {_what(edit, shown=shown)}"
        if len(text) > room:
            whole_lines = text[:room].rpartition("\n")[0]
            text = f"{whole_lines or f'{who} then changed {edit.path}:'}\n{_CUT}"
        notes.append(text)
        room = max(room - len(text), 0)
    if len(edits) > NAMED:
        notes.append(f"{who} then changed {len(edits) - NAMED:,} more files that you have read.")
    return "\n\n".join(notes)


_CUT = "[the rest of this diff is omitted: Read the file before you change it again]"
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
