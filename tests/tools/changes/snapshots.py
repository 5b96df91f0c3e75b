"""The files of a tree, compared in full: what a watch must report, found the slow way."""

import os
import stat
from pathlib import Path

from wave_agent.tools.changes.found import FoundChanges

Snapshot = dict[str, tuple[int, bytes]]
"""Path → mode, and content or target."""


def snapshot(root: Path) -> Snapshot:
    found: Snapshot = {}
    for directory, _, _ in os.walk(root):
        for entry in os.scandir(directory):
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                found[entry.path] = mode, os.fsencode(os.readlink(entry.path))
            elif stat.S_ISREG(mode):
                found[entry.path] = mode, Path(entry.path).read_bytes()
    return found


def difference(before: Snapshot, after: Snapshot) -> dict[str, str]:
    """Path → kind of change."""
    paths = sorted({*before, *after})
    kinds = {path: "created" if path not in before else "changed" if path in after else "deleted" for path in paths}
    return {path: kind for path, kind in kinds.items() if before.get(path) != after.get(path)}


def reported(found: FoundChanges) -> dict[str, str]:
    return {change.path: change.kind for change in found.changes}


def overflow(root: Path) -> None:
    """More events than the kernel's queue takes; the tree is the same afterwards."""
    limit = Path("/proc/sys/fs/inotify/max_queued_events")
    one, other = root / "x", root / "y"
    for path in (one, other):
        path.touch()
    for _ in range(int(limit.read_text()) // 2 + 1 if limit.exists() else 1):  # equal ones in a row are one event
        os.utime(one)
        os.utime(other)
    for path in (one, other):
        path.unlink()
