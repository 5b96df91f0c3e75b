"""All files of a project that a program of it might load: everything but what is known to be data.

What a program really loads cannot be seen from outside: imports are computed, search paths are changed, other scripts
are started. So nothing is followed here.
"""

import os
import stat
from collections.abc import Iterator

from msgspec import Struct

from wave_agent.mcp.launchers import SCRIPTS, SYSTEM
from wave_agent.system.real_files import is_below

MOST_BYTES = 64 << 20
_MOST_NAMES = 20_000
"""Files of any kind that are looked at."""
INSTALLED = frozenset({"node_modules", ".venv", "venv", "site-packages", "vendor", "target", ".tox", ".nox"})
"""Directories with the packages of others, which are left out of a project that is too large."""
_NOT_ENTERED = frozenset({".git", ".hg", ".svn"})
_CACHES = frozenset({".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"})
"""What checkers write: only scripts count there."""
_DATA = frozenset({
    *(".md", ".markdown", ".rst", ".txt", ".adoc", ".pdf", ".doc", ".docx", ".xls", ".xlsx", ".ppt", ".pptx", ".odt"),
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".ico", ".svg", ".tif", ".tiff", ".heic", ".avif", ".psd"),
    *(".mp3", ".wav", ".ogg", ".flac", ".mp4", ".mov", ".avi", ".mkv", ".webm", ".woff", ".woff2", ".ttf", ".otf"),
    *(".eot", ".css", ".scss", ".less", ".html", ".htm", ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow"),
    *(".db", ".sqlite", ".sqlite3", ".log", ".pid", ".map", ".snap", ".po", ".pot", ".mo", ".orig", ".rej", ".swp"),
    *(".tmp", ".bak", ".diff", ".patch"),
    *(f"{stem}{end}" for stem in (".db", ".sqlite", ".sqlite3") for end in ("-wal", "-shm", "-journal")),
})  # fmt: skip
_DATA_NAMES = frozenset({
    *("license", "licence", "copying", "notice", "authors", "contributors", "changelog", "readme", "codeowners"),
    *(".gitignore", ".gitattributes", ".gitkeep", ".gitmodules", ".coverage", ".ds_store", ".editorconfig"),
    *("record", "metadata", "wheel", "installer", "requested", "py.typed"),
})  # fmt: skip
_SETTINGS = frozenset({"settings.json", "settings.local.json"})
"""In these directories, settings of agents: what they say about servers is bound by itself."""
_OF_AGENTS = frozenset({".wave", ".claude"})


class TooMuchCodeError(Exception):
    """Why not all of it can be watched: a phrase."""


class CodeFile(Struct, frozen=True):
    path: str
    facts: os.stat_result
    """Of the name itself, if it is a link."""


def code_below(root: str, *, most: int, installed: bool, without: str = "") -> tuple[CodeFile, ...]:
    """Every file that may be code, links among them, and what is below directories that they lead to. `installed`: with
    the packages of others. `without`: a directory that is left out. Raises `TooMuchCodeError`, also for more than
    `most` files."""
    found: list[CodeFile] = []
    size = 0
    for one in _below(root, _NOT_ENTERED if installed else _NOT_ENTERED | INSTALLED, without):
        found.append(one)
        size += one.facts.st_size
        if len(found) > most:
            raise TooMuchCodeError(f"the project has more than {most:,} files with code")
        if size > MOST_BYTES:
            raise TooMuchCodeError(f"the project has more than {MOST_BYTES >> 20} MiB of code")
    return tuple(found)


def _below(root: str, skipped: frozenset[str], without: str) -> Iterator[CodeFile]:
    waiting, names, linked = [(root, False)], 0, set[str]()
    while waiting:
        directory, is_cache = waiting.pop()
        of_agent = os.path.basename(directory) in _OF_AGENTS
        try:
            with os.scandir(directory) as entries:
                here = list(entries)
        except OSError:  # what cannot be read here cannot be read by the server either
            continue
        names += len(here)
        if names > _MOST_NAMES:
            raise TooMuchCodeError(f"the project has more than {_MOST_NAMES:,} files")
        for entry in here:
            name = entry.name
            if entry.is_dir(follow_symlinks=False):
                if name not in skipped and entry.path != without:
                    waiting.append((entry.path, is_cache or name in _CACHES))
                continue
            if name == ".mcp.json" or (of_agent and name in _SETTINGS):
                continue
            try:
                facts = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISLNK(facts.st_mode):
                real = os.path.realpath(entry.path)
                if real not in linked and _is_elsewhere(real, root):
                    linked.add(real)
                    waiting.append((entry.path, is_cache))
                yield CodeFile(entry.path, facts)
            elif may_be_code(name, facts.st_mode, is_cache=is_cache):
                yield CodeFile(entry.path, facts)


def _is_elsewhere(real: str, root: str) -> bool:
    """Whether this is a directory that is not looked at anyway. Those of the system are not the project's, and one
    above the project would contain everything."""
    if is_below(real, root):
        is_apart = not _NOT_ENTERED.isdisjoint(real[len(root) :].split("/"))
    else:
        is_apart = not real.startswith(SYSTEM) and not is_below(root, real)
    return is_apart and os.path.isdir(real)


def may_be_code(name: str, mode: int, *, is_cache: bool = False) -> bool:
    """Whether a file of this name may be code. `is_cache`: it is in a directory of a checker."""
    if not stat.S_ISREG(mode):
        return not stat.S_ISSOCK(mode)
    if mode & 0o111:
        return True
    lower = name.lower()
    suffix = os.path.splitext(lower)[1]
    return suffix in SCRIPTS if is_cache else suffix not in _DATA and lower not in _DATA_NAMES
