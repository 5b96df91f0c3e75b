"""The open files of this process."""

import os
from contextlib import suppress

_OF_IDLE_THREADS = ("anon_inode:[eventpoll]", "anon_inode:[eventfd]")
"""A thread that waits for its next command has one of each, and closes them after a while: at any moment of a test."""


def open_descriptors() -> set[str]:
    """Without those of idle threads, as far as the system tells what a descriptor is."""
    try:
        names = os.listdir("/proc/self/fd")
    except FileNotFoundError:  # not Linux: no thread has any there
        return set(os.listdir("/dev/fd"))
    found: set[str] = set()
    for name in names:
        with suppress(FileNotFoundError):  # the one that listed them
            if os.readlink(f"/proc/self/fd/{name}") not in _OF_IDLE_THREADS:
                found.add(name)
    return found
