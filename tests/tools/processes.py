"""Looking at processes of this test, or of what it started."""

import os
from pathlib import Path

PROC = Path("/proc/self/stat").exists()


def is_alive(pid: int) -> bool:
    try:
        if PROC:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        os.kill(pid, 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return True


def children_of_ours() -> list[str]:
    """Zombies included."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == str(os.getpid()):
            found.append(path.parent.name)
    return found
