"""Progress of work that may take a while."""

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import click

_MANY = 500
"""Sessions that are read in about a second."""


def reading(paths: list[Path]) -> AbstractContextManager[Iterable[Path]]:
    """The same paths. If there are many, a bar on stderr shows how far they are used and how long the rest will take;
    where stderr is not a terminal, it is a single line."""
    if len(paths) < _MANY:
        return nullcontext(paths)
    return click.progressbar(paths, label=f"Reading {len(paths):,} sessions", file=sys.stderr, show_eta=True)
