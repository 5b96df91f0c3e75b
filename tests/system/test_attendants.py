"""Threads that sleep until something is readable."""

import os
import sys
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from tests.waiting import until
from wave_agent.system.attendants import Attendants

LONG = 60.0
"""More patience than a test has."""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, work begins at once")
def test_an_attendant_begins_when_a_descriptor_is_readable(pipe: tuple[int, int]):
    attendants, begun = Attendants(LONG), threading.Event()
    attendants.reserve().start(begun.set, when_readable=pipe[:1])
    assert not attendants.can_wait
    assert not begun.is_set()
    os.write(pipe[1], b"x")
    assert begun.wait(10)
    assert attendants.can_wait


def test_an_attendant_begins_at_the_latest_when_its_patience_ends(pipe: tuple[int, int]):
    begun = threading.Event()
    Attendants(0.01).reserve().start(begun.set, when_readable=pipe[:1])
    assert begun.wait(10)


def test_an_attendant_without_a_descriptor_begins_now():
    attendants = Attendants(LONG)
    for _ in range(20):  # the same thread, mostly
        begun = threading.Event()
        attendants.reserve().start(begun.set)
        assert begun.wait(10)


@pytest.mark.parametrize("patience", [0.0, LONG])
def test_no_work_of_an_attendant_is_lost(patience: float):
    """A descriptor may be readable at once, and its number is used again by the next work."""
    attendants, done = Attendants(patience), threading.Semaphore(0)

    def close_both(ends: tuple[int, int]) -> None:
        for end in ends:
            os.close(end)
        done.release()

    for _ in range(1000):
        ends = os.pipe()
        os.write(ends[1], b"x")
        attendants.reserve().start(partial(close_both, ends), when_readable=ends[:1])
        assert done.acquire(timeout=10)


async def test_an_idle_attendant_ends_and_leaves_no_descriptor_open():
    attendants, begun = Attendants(0.01), threading.Event()
    before, threads = set(os.listdir("/dev/fd")), threading.active_count()
    attendants.reserve().start(begun.set)
    assert begun.wait(10)
    await until(lambda: threading.active_count() <= threads)
    assert len(os.listdir("/dev/fd")) <= len(before)
