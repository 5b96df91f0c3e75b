"""Garbage is collected while nobody types.

A full collection looks at every object there is and holds up a key for a third of a second. So what is there for good
is taken out of its sight, and old garbage, the widgets that have left the conversation, waits for a pause.
"""

import gc

YOUNG = 50_000
"""New objects that are looked at together: a matter of milliseconds."""
RARELY = 1000
WORTH_IT = 20_000
"""New objects since the last time, from which on a pause is used."""


def settle() -> None:
    """Once, when everything is loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, RARELY, RARELY)


def tidy() -> None:
    """In a pause."""
    young, older, _ = gc.get_count()
    if young + older * YOUNG > WORTH_IT:
        gc.collect()
