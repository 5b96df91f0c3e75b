"""What is compared in a situation, and which difference makes this agent looser, stricter or just different.

A facet is written `kind` or `kind: argument` in the list `observe` of a situation:

    ran                    the file `ran` exists: the guarded call had its effect
    called                 the model was asked at all
    goes on                how often the model was asked, where a hook is meant to keep the turn going
    ends                   how often the model was asked, where a hook is meant to end the turn
    told: WORD             WORD reached the model
    hidden: WORD           the same, where a hook is meant to keep WORD from the model
    fired: HOOK            how often HOOK ran
    not fired: HOOK        the same, where it is meant not to run
    file: NAME             what the file holds
    stdin: HOOK.a.b        a value that HOOK (its last run) got on stdin
    fields: HOOK.a         the names of the fields there; more of them than in the original are no difference
    variable: HOOK.NAME    a variable of HOOK's environment
    directory: HOOK        the directory HOOK ran in

Everything is compared after the arena's path has become `$ARENA` and ids that differ from run to run `ID`.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tests.claude.agents import Seen
from tests.claude.situations import Result, Situation

SEVERITY: tuple[Result, ...] = ("looser", "stricter", "different", "same")
IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

LONG = 160
"""Characters of a cell that is still easy to read."""

Facts = dict[str, Any]
"""The value of each facet."""


class Kind(msgspec.Struct, frozen=True):
    """How a facet is read from what happened, and judged: (there, here) → the result."""

    read: Callable[[Seen, str], Any]
    judge: Callable[[Any, Any], Result]


def _more_is(result: Result, otherwise: Result) -> Callable[[Any, Any], Result]:
    def judge(there: Any, here: Any) -> Result:
        return "same" if here == there else result if here > there else otherwise

    return judge


def _equal(there: Any, here: Any) -> Result:
    return "same" if here == there else "different"


def _all_there(there: Any, here: Any) -> Result:
    return "same" if set(there or []) <= set(here or []) else "different"


def _reached(seen: Seen, word: str) -> bool:
    return any(word in request for request in seen.requests)


def _runs(seen: Seen, hook: str) -> int:
    return len(seen.runs.get(hook, []))


def _stdin(seen: Seen, path: str) -> Any:
    hook, *keys = path.split(".")
    runs = seen.runs.get(hook)
    value: Any = runs[-1].stdin if runs else None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _fields(seen: Seen, path: str) -> list[str]:
    value = _stdin(seen, path)
    return sorted(value) if isinstance(value, dict) else []


def _variable(seen: Seen, path: str) -> str | None:
    hook, _, name = path.partition(".")
    runs = seen.runs.get(hook)
    return runs[-1].environment.get(name) if runs else None


def _directory(seen: Seen, hook: str) -> str | None:
    runs = seen.runs.get(hook)
    return runs[-1].directory if runs else None


KINDS: dict[str, Kind] = {
    "ran": Kind(lambda seen, _: "ran" in seen.files, _more_is("looser", "stricter")),
    "called": Kind(lambda seen, _: bool(seen.requests), _more_is("looser", "stricter")),
    "goes on": Kind(lambda seen, _: len(seen.requests), _more_is("stricter", "looser")),
    "ends": Kind(lambda seen, _: len(seen.requests), _more_is("looser", "stricter")),
    "told": Kind(_reached, _equal),
    "hidden": Kind(_reached, _more_is("looser", "stricter")),
    "fired": Kind(_runs, _more_is("stricter", "looser")),
    "not fired": Kind(_runs, _more_is("looser", "stricter")),
    "file": Kind(lambda seen, name: seen.files.get(name), _equal),
    "stdin": Kind(_stdin, _equal),
    "fields": Kind(_fields, _all_there),
    "variable": Kind(_variable, _equal),
    "directory": Kind(_directory, _equal),
}
WITHOUT_ARGUMENT = {"ran", "called", "goes on", "ends"}


def parts(facet: str) -> tuple[str, str]:
    """The kind and the argument of a facet."""
    kind, _, argument = facet.partition(": ")
    return kind, argument


def facts(situation: Situation, seen: Seen, arena: Path) -> Facts:
    """The values of all facets of a situation, in a form that can be compared and stored."""
    return {facet: _plain(KINDS[parts(facet)[0]].read(seen, parts(facet)[1]), arena) for facet in situation.observe}


def _plain(value: Any, arena: Path) -> Any:
    text = json.dumps(value).replace(str(arena), "$ARENA")
    return json.loads(IDS.sub("ID", text))


def judge(there: Facts, here: Facts) -> Result:
    """The most serious of what the facets say."""
    found = [KINDS[parts(facet)[0]].judge(value, here[facet]) for facet, value in there.items()]
    return next(result for result in SEVERITY if result in found or result == "same")


def in_words(values: Facts, other: Facts) -> str:
    """Facts as a cell of a table. Where that gets long, only what differs from the other agent's is shown."""
    phrases = {facet: _phrase(*parts(facet), value) for facet, value in values.items()}
    text = "; ".join(phrases.values())
    if len(text) > LONG and values != other:
        text = "; ".join(phrase for facet, phrase in phrases.items() if values[facet] != other[facet]) or text
    return text if len(text) <= 3 * LONG else f"{text[: 3 * LONG]}…"


def _phrase(kind: str, argument: str, value: Any) -> str:
    match kind:
        case "ran":
            return "ran" if value else "did not run"
        case "called":
            return "model asked" if value else "model not asked"
        case "goes on" | "ends":
            return f"{value} request{'s'[: value != 1]}"
        case "told" | "hidden":
            return f"model {'got' if value else 'did not get'} “{argument}”"
        case "fired" | "not fired":
            return f"{argument} ran {value}×"
        case "fields":
            return f"{argument}: {', '.join(value) or 'nothing'}"
        case _:
            return f"{argument} = {json.dumps(value, ensure_ascii=False)}"
