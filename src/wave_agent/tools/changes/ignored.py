"""Which files of the project git ignores, by its `.gitignore` files."""

import os
from collections.abc import Sequence

from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.tools.search.gitignore import IgnoreFile

_LARGEST = 1 << 20

Layers = tuple[tuple[int, IgnoreFile], ...]
"""Ignore files, outermost first, each with the length of the path that its patterns are relative to."""


def layers_above(root: str) -> Layers:
    """Of the directories above the project, up to the top of its repository."""
    above: list[str] = []
    directory = root
    while not os.path.lexists(os.path.join(directory, ".git")):
        directory = os.path.dirname(directory)
        if directory == "/":
            return ()
        above.append(directory)
    layers: Layers = ()
    for directory in reversed(above):
        layers = layers_in(directory, layers)
    return layers


def layers_in(directory: str, above: Layers) -> Layers:
    """Those for the entries of a directory. A symlinked ignore file is not followed."""
    try:
        data = read_project_file(os.path.join(directory, ".gitignore"), directory, _LARGEST)
    except NotReadError:
        return above
    if data is None:
        return above
    start = len(directory.rstrip("/")) + 1
    return (*above, (start, IgnoreFile(data.decode(errors="surrogateescape"))))


def is_ignored(path: str, layers: Sequence[tuple[int, IgnoreFile]], *, is_directory: bool) -> bool:
    """The nearest ignore file with a matching rule decides."""
    for start, file in reversed(layers):
        verdict = file.ignores(path[start:], is_directory=is_directory)
        if verdict is not None:
            return verdict
    return False
