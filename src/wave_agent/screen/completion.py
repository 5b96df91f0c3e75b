"""Completion at the cursor: commands after `/`, files and resources of MCP servers after `@`."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from wave_agent.screen.file_index import FileIndex

SHOWN = 8
_FILE = re.compile(r"(?:^|(?<=\s))@([^\s@]*)$")
_COMMAND = re.compile(r"/([\w:-]*)$")


class CompletionItem(NamedTuple):
    insert: str
    """The text that replaces the word at the cursor."""
    note: str = ""


class CompletionList(NamedTuple):
    """The matches, best first."""

    start: int
    """Where the word at the cursor starts."""
    candidates: Sequence[CompletionItem]
    submits: bool
    """Enter also sends the prompt."""


def complete(before: str, known: Sequence[CompletionItem], files: FileIndex) -> CompletionList | None:
    """`before` is the prompt up to the cursor. `known` are commands, and mentions that are not files."""
    if word := _COMMAND.fullmatch(before):
        fitting = [one for one in known if one.insert.startswith(f"/{word[1]}")]
        return CompletionList(0, fitting[:SHOWN], True) if fitting else None
    if word := _FILE.search(before):
        found = [one for one in known if word[1] and one.insert.startswith(f"@{word[1]}")]
        found += [CompletionItem(f"@{name} ") for name in files.matching(word[1], SHOWN)]
        return CompletionList(word.start(), found[:SHOWN], False) if found else None
    return None


def wants_files(before: str) -> bool:
    return _FILE.search(before) is not None
