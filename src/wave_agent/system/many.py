"""The same work on many items, on all cores."""

import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from wave_agent.system.cores import cores

Item = TypeVar("Item")
Result = TypeVar("Result")

_WORTH = 200
"""Items below which starting processes takes longer than it saves."""
_CHUNK = 16
_AHEAD = 4
"""Chunks per process that are worked on before their results are wanted. More would only fill memory."""


def each(work: Callable[[Item], Result], items: Sequence[Item], *, jobs: int | None = None) -> Iterator[Result]:
    """The results, in order. `work` is a function of a module; it gets and returns what can be pickled."""
    jobs = min(cores() if jobs is None else jobs, len(items) // _WORTH)
    if jobs < 2:
        yield from map(work, items)
        return
    from concurrent.futures import ProcessPoolExecutor  # lazy: few runs have that many items
    from multiprocessing import get_context

    context = get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_leave_interrupts_to_the_parent)
    chunks = (items[at : at + _CHUNK] for at in range(0, len(items), _CHUNK))
    try:
        running = deque(pool.submit(_all, work, chunk) for chunk in islice(chunks, jobs * _AHEAD))
        while running:
            yield from running.popleft().result()
            running.extend(pool.submit(_all, work, chunk) for chunk in islice(chunks, 1))
    finally:
        pool.shutdown(cancel_futures=True)


def _all(work: Callable[[Item], Result], chunk: Sequence[Item]) -> list[Result]:
    return [work(item) for item in chunk]


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
