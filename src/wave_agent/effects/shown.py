"""Effects as hooks get them in stdin, and as one line for people."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from wave_agent.effects.calls import OF_SERVERS
from wave_agent.effects.values import ANY_HOST, Effects
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
    verbs: Mapping[str, Sequence[str]] = {
        "reads": effects.reads,
        "writes": effects.writes,
        "deletes": effects.deletes,
    }
    parts = [f"{verb} {_files(entries, directory)}" for verb, entries in verbs.items() if entries]
    parts += [f"reaches {_hosts(effects.hosts)}"] if effects.hosts else []
    if not effects.complete:
        return f"{', '.join(parts)} and may do more" if parts else "may do anything"
    if not parts and any(words[0] in _CHANGES_MORE for words in effects.runs):
        return "names no file and no host"
    return ", ".join(parts) or "touches no file and reaches no host"


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
