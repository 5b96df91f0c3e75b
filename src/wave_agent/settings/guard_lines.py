"""Entries through which other agents ask `wave guard`, in settings that this agent reads too. Pure."""

import re
from collections.abc import Mapping
from typing import Any, cast

from wave_agent.formats.strict_json import Document
from wave_agent.formats.strict_json import Path as Where

_PATH_TO = r"(?:'[^']*/{0}'|[^\s'|;&]*/{0}|{0})"
GUARD_LINE = re.compile(
    rf"(?:\[ -r (?P<client>{_PATH_TO.format('guard/client.py')}) \] && )?"
    rf"(?:{_PATH_TO.format('wave')} guard run|(?:'[^']*'|[^\s'|;&]+) -I -S "
    rf"(?(client)(?P=client)|{_PATH_TO.format('guard/client.py')}))"
    r" (?P<host>[a-z]+) (?P<event>[\w.]+) --timeout \d+(?: --pass-allow)?(?: --trust-ref [0-9a-f]{40,64})?"
    r"(?P<rest> \|\| (?:\{ \[ \$\? = 2 \] (?:\|\| echo '[^']*' >&2; exit 2|&& exit 2; exit 0); \}|echo '[^']*'|true))"
)
"""The whole of a line that `wave guard install` writes into the settings of other agents."""


def without_guard(document: Document) -> Document:
    """Without entries through which another agent asks `wave guard`: this agent judges its own calls."""
    hooks: Any = cast(Mapping[str, Any], document.value).get("hooks")
    if not isinstance(hooks, Mapping) or "guard" not in str(cast(object, hooks)):
        return document
    left: dict[str, Any] = {}
    moved: dict[Where, Where] = {}
    """The former place of what is left → its place now."""
    for event, groups in cast(Mapping[str, Any], hooks).items():
        left[event] = groups if not isinstance(groups, list) else []
        for number, group in enumerate(cast(list[Any], groups) if isinstance(groups, list) else ()):
            entries: Any = cast(Mapping[str, Any], group).get("hooks") if isinstance(group, Mapping) else None
            inner = cast(list[Any], entries) if isinstance(entries, list) else []
            kept = [at for at, entry in enumerate(inner) if not _asks_guard(entry)]
            if inner and not kept:
                continue
            now: Where = ("hooks", event, len(left[event]))
            moved[("hooks", event, number)] = now
            moved |= {("hooks", event, number, "hooks", at): (*now, "hooks", place) for place, at in enumerate(kept)}
            left[event].append({**group, "hooks": [inner[at] for at in kept]} if len(kept) < len(inner) else group)
    lines: dict[Where, int] = {}
    for place, line in document.lines.items():
        around = place[: 5 if place[3:4] == ("hooks",) and len(place) > 4 else 3]
        if len(place) < 3 or place[0] != "hooks":
            lines[place] = line
        elif around in moved:
            lines[(*moved[around], *place[len(around) :])] = line
    return Document({**document.value, "hooks": left}, lines)


def _asks_guard(entry: Any) -> bool:
    command: Any = cast(Mapping[str, Any], entry).get("command") if isinstance(entry, Mapping) else None
    return isinstance(command, str) and GUARD_LINE.fullmatch(command.strip()) is not None
