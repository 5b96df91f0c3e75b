"""Effects as hooks get them in stdin, and as one line for people."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from posixpath import normpath
from typing import Any

from wave_agent.effects.calls import OF_SERVERS
from wave_agent.effects.values import ANY_HOST, Effects
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.values import escape
from wave_agent.text import one_line

MOST_ENTRIES = 200
"""Entries of one list in stdin."""
MOST_CHARACTERS = 64 * 1024
"""Characters of one list in stdin, all its entries together."""

MEANINGS: Mapping[str, str] = {
    "reads": "files whose content it reads, as absolute paths with wildcards",
    "writes": "files it creates or changes",
    "deletes": "files it deletes",
    "runs": "the words of each command, including those inside other commands and the project's scripts",
    "hosts": "the hosts it reaches; * is one that the call does not name",
    "complete": "whether this is all; if false, it may do more",
    "truncated": "whether a list was cut; complete is then false",
}
"""The fields of `to_json`."""

_NAME_LIMIT = 60
_CHANGES_MORE = frozenset(
    {"git", "kill", "killall", "pkill", "fg", "bg", "disown", "sync", "stty", "shutdown", "reboot"}
)
"""Programs that change what is no file of the project: the repository, processes."""


_CODE_AFTER: Mapping[str, str] = {
    r"python[\d.]*|pypy[\d.]*": r"-[a-zA-Z]*c",
    r"perl[\d.]*": r"-[a-zA-Z]*[eE]",
    r"node|nodejs|bun": r"-e|-p|-pe|--eval|--print",
    r"ruby[\d.]*|lua[\d.]*|Rscript": r"-e",
    r"php[\d.]*": r"-r",
    r"deno": r"eval",
}
"""Interpreters, and the options before the code that they run."""
_IS_CODE = lazy_regex(r"[^\w./~-]")
"""A word that could as well be a plain path is named rather than left out."""
_RECURSIVE = lazy_regex(r"-[a-zA-Z]*[rR]|--r")


def to_json(effects: Effects) -> dict[str, Any]:
    """The `effects` of stdin. Lists that are too long are cut; then `truncated` is true and `complete` false."""
    lists: dict[str, list[Any]] = {
        "reads": list(_first(effects.reads)),
        "writes": list(_first(effects.writes)),
        "deletes": list(_first(effects.deletes)),
        "runs": [list(words) for words in _first(effects.runs)],
        "hosts": list(_first(effects.hosts)),
    }
    cut = any(len(kept) < len(getattr(effects, name)) for name, kept in lists.items())
    return {**lists, "complete": effects.complete and not cut, "truncated": cut}


def _first(entries: Sequence[Any]) -> Iterable[Any]:
    """The entries that fit."""
    left = MOST_CHARACTERS
    for entry in entries[:MOST_ENTRIES]:
        left -= len(entry) if isinstance(entry, str) else sum(map(len, entry))
        if left < 0:
            return
        yield entry


def summary(effects: Effects, directory: str) -> str:
    """What a call would do, such as `reads .env, writes 2 files, reaches api.example.com`, on one line.

    Names are relative to `directory`. The commands it runs are not listed: a call's input is shown with it.
    """
    code = () if effects.complete else tuple(_inline_code(effects.runs))
    verbs: Mapping[str, Sequence[str]] = {
        "reads": _without(effects.reads, code),
        "writes": _without(effects.writes, code),
        "deletes": _without(effects.deletes, tuple(f"{name}/**" for name in _single_files(effects.runs))),
    }
    parts = [f"{verb} {_files(entries, directory)}" for verb, entries in verbs.items() if entries]
    parts += [f"reaches {_hosts(effects.hosts)}"] if effects.hosts else []
    if not effects.complete:
        return f"{', '.join(parts)} and may do more" if parts else "may do anything"
    if not parts and any(words[0] in _CHANGES_MORE for words in effects.runs):
        return "names no file and no host"
    return ", ".join(parts) or "touches no file and reaches no host"


def _inline_code(runs: Iterable[Sequence[str]]) -> Iterator[str]:
    """The programs on command lines. Where it is not known what such code does, it is judged as if it named a file."""
    for words in runs:
        options = next((found for name, found in _CODE_AFTER.items() if re.fullmatch(name, words[0])), "")
        pairs = pairwise(words) if options else ()
        yield from (code for option, code in pairs if re.fullmatch(options, option) and _IS_CODE.search(code))


def _single_files(runs: Sequence[Sequence[str]]) -> Iterable[str]:
    """What `rm` removes without what is below it, and no other command names."""
    if any(words[0] == "rm" and any(map(_RECURSIVE.match, words)) for words in runs):
        return ()
    elsewhere = {word for words in runs if words[0] != "rm" for word in words}
    return [word for words in runs if words[0] == "rm" for word in words[1:] if word not in elsewhere]


def _without(entries: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    """The entries that are none of these, given as they were written, relative to any directory."""
    ends = tuple(f"/{normpath(name).lstrip('/')}" for name in names)
    return [entry for entry in entries if not _unquoted(entry).endswith(ends)] if ends else entries


def call_summary(tool: str, effects: Effects, directory: str, is_there: Callable[[str], bool]) -> str:
    """Like `summary`, for a call of this tool. Any word in the arguments of an MCP server's tool may be a path, so only
    those that exist are named, and nothing is said about what happens to them."""
    if not tool.startswith(OF_SERVERS):
        return summary(effects, directory)
    paths = dict.fromkeys(_unquoted(one.removesuffix("/**")) for one in (*effects.reads, *effects.writes))
    there = [path for path in paths if path and is_there(path)]
    named = [_files([escape(path) for path in there], directory)] if there else []
    named += [_hosts(effects.hosts)] if effects.hosts else []
    return f"may do anything; its arguments name {' and '.join(named)}" if named else "may do anything"


def _files(entries: Sequence[str], directory: str) -> str:
    whole = {entry.removesuffix("/**") for entry in entries if entry.endswith("/**")}
    both = whole.intersection(entries)
    # A directory is named once, not for itself and again for what is below it.
    left = [entry for entry in entries if entry not in both]
    if len(left) > 1:
        return f"{len(left)} files"
    above = left[0].removesuffix("/**")
    if above in whole:
        return "everything here" if above == directory else _whole(above, directory, itself=above in both)
    return _name(left[0], directory)


def _whole(above: str, directory: str, *, itself: bool) -> str:
    name = _name(above, directory)
    return f"{name}/" if itself else f"everything below {name or '/'}"


def _name(entry: str, directory: str) -> str:
    return one_line(_unquoted(entry).removeprefix(f"{directory.rstrip('/')}/"), _NAME_LIMIT)


def _unquoted(entry: str) -> str:
    return entry.replace("[*]", "*").replace("[?]", "?").replace("[[]", "[")


def _hosts(hosts: Sequence[str]) -> str:
    named = [one_line(host, _NAME_LIMIT) for host in hosts if host != ANY_HOST]
    other = len(named) < len(hosts)
    if len(named) > 2:
        return f"{len(named)} hosts{' and others' * other}"
    return " and ".join([*named, *(["other hosts" if named else "a host that is not named"] if other else [])])
