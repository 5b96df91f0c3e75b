"""Waiting for what another process does: a condition and a deadline, never a guess at how long it takes."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, "it never happened"
        await asyncio.sleep(0.005)


async def number_in(file: Path) -> int:
    """The number that a hook writes into this file, once it is there whole."""
    await until(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())
