"""Daemon threads that are kept for the next work, and the way of their results."""

import asyncio
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial

import pytest

from tests.waiting import until
from wave_agent.system.threads import DaemonThreads, Delivery, Mailbox

LONG = 60.0
"""More patience than a test has."""


def thread_of(threads: DaemonThreads, work: Callable[[], object] = lambda: None) -> threading.Thread:
    """The thread that did the work, when it has."""
    found: list[threading.Thread] = []
    done = threading.Event()

    def note() -> None:
        work()
        found.append(threading.current_thread())
        done.set()

    threads.start(note)
    assert done.wait(10)
    return found[0]


async def reused(threads: DaemonThreads, before: threading.Thread) -> None:
    """A thread is idle a moment after its work says that it is done."""
    await until(lambda: thread_of(threads) is before)


async def test_the_next_work_gets_the_same_thread_and_it_is_a_daemon():
    threads = DaemonThreads(LONG)
    first = thread_of(threads)
    assert first.daemon
    await reused(threads, first)


def test_work_that_runs_at_the_same_time_gets_threads_of_its_own():
    threads, together = DaemonThreads(LONG), threading.Barrier(5, timeout=10)
    found: set[int] = set()
    done = threading.Semaphore(0)

    def work() -> None:
        together.wait()
        found.add(threading.get_ident())
        done.release()

    for _ in range(5):
        threads.start(work)
    assert all(done.acquire(timeout=10) for _ in range(5))
    assert len(found) == 5


async def test_a_thread_that_gets_no_more_work_ends():
    thread = thread_of(DaemonThreads(0.01))
    await until(lambda: not thread.is_alive())


def test_no_work_is_lost_when_threads_are_just_about_to_end():
    threads, done = DaemonThreads(0.0), threading.Semaphore(0)
    for _ in range(2000):
        threads.start(done.release)
        assert done.acquire(timeout=10)


async def test_an_idle_thread_holds_nothing_of_its_last_work():
    class Held:
        pass

    threads, held = DaemonThreads(LONG), Held()
    gone = weakref.ref(held)
    first = thread_of(threads, partial(id, held))
    del held
    await reused(threads, first)
    assert gone() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_starts_threads_of_its_own():
    code = (
        "import os, threading\n"
        "from wave_agent.system.threads import start_in_thread\n"
        "def once():\n"
        "    done = threading.Event()\n"
        "    start_in_thread(lambda: (used.append(threading.get_ident()), done.set()))\n"
        "    return done.wait(10)\n"
        "used = []\n"
        "while len(set(used)) == len(used): assert once()\n"  # until one was idle and was used again
        "child = os.fork()\n"
        "if child == 0: os._exit(0 if once() else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "0\n"


def test_an_idle_or_a_hanging_thread_does_not_hold_up_the_exit():
    code = (
        "import threading\n"
        "from wave_agent.system.threads import start_in_thread\n"
        "started = threading.Event()\n"
        "start_in_thread(lambda: None)\n"
        "start_in_thread(lambda: (started.set(), threading.Event().wait()))\n"
        "started.wait()\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], timeout=60, check=True)


async def test_a_result_that_was_there_first_is_not_waited_for():
    delivery = Delivery[int](asyncio.get_running_loop(), Mailbox())
    delivery.send(3)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await delivery.wait() == 3


async def test_every_result_arrives_however_they_come_together():
    loop, mailbox, threads = asyncio.get_running_loop(), Mailbox(), DaemonThreads(LONG)
    for _ in range(50):
        deliveries = [Delivery[int](loop, mailbox) for _ in range(20)]
        for number, delivery in enumerate(deliveries):
            threads.start(partial(delivery.send, number))
        assert await asyncio.gather(*(delivery.wait() for delivery in deliveries)) == list(range(20))


async def test_a_cancelled_wait_loses_nothing_and_can_be_waited_out():
    delivery = Delivery[int](asyncio.get_running_loop(), Mailbox())
    waits = asyncio.create_task(delivery.wait())
    await asyncio.sleep(0)
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    out = asyncio.create_task(delivery.wait_out())
    for _ in range(3):
        await asyncio.sleep(0)
        out.cancel()
    delivery.send(3)
    await out
    assert await delivery.wait() == 3


def test_a_result_for_a_closed_loop_is_dropped():
    loop = asyncio.new_event_loop()
    loop.close()
    Delivery[int](loop, Mailbox()).send(3)
