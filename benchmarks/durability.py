"""The cost of leaving nothing running after a kill, and of keeping what was recorded."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Claim, microseconds
from wave_agent.sessions.recorder import FileSessionStore
from wave_agent.system.orphans import Leftovers


def claims() -> list[Claim]:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "s.jsonl"
        leftovers = Leftovers(Path(directory), path)
        leftovers.open()
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        line = b"x" * 400 + b"\n"
        floor = microseconds(lambda: os.write(descriptor, line))
        noted = microseconds(lambda: note_one(leftovers))
        store = FileSessionStore(path)
        appended = microseconds(lambda: store.append({"type": "user", "message": "x" * 380}))
        os.close(descriptor)
        store.close()
        leftovers.close()
    return [
        Claim(name=name, value=value, unit="µs", limit=50, floor_name="one write", floor=floor)
        for name, value in (("recording one process for cleanup", noted), ("appending one record", appended))
    ]


def note_one(leftovers: Leftovers) -> None:
    with leftovers.entry() as note:
        note(1)
