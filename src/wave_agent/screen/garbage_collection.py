"""Collect garbage while the user is not typing.

A full collection visits every object and delays a key press by a third of a second. So permanent objects are frozen,
and old garbage, such as widgets that have left the conversation, is collected when idle.
"""

import gc

YOUNG = 50_000
"""New objects per collection of the youngest generation, which takes milliseconds."""
RARELY = 1000
WORTH_IT = 20_000
"""Collect when idle once there are this many new objects."""


def settle() -> None:
    """Call once, when everything is loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, RARELY, RARELY)


def tidy() -> None:
    """Call when idle."""
    young, older, _ = gc.get_count()
    if young + older * YOUNG > WORTH_IT:
        gc.collect()
