"""How many processors there are for us."""

import os


def cores() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on this system
        return os.cpu_count() or 1
