"""The answer of a model that a `prompt` or `agent` hook asks. It may be wrong in many ways, so it is read strictly."""

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from wave_agent.formats.strict_json import StrictJSONError, parse_object, type_name
from wave_agent.hooks.execution import Opinion
from wave_agent.lazy_regex import lazy_regex

_FENCED = lazy_regex(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)
_REASON_LIMIT = 10_000
_TRUE = frozenset(
    {"true", "yes", "ok", "okay", "allow", "allowed", "approve", "approved", "pass", "passed", "1", "none"}
)
_QUOTE = r"[\\\s\"'“”*`<>/]{0,20}"
_IS = rf"{_QUOTE}[:=>]{_QUOTE}"
_AGAINST = (
    r"(?:(?:den(?:y|ied|ies)|block(?:ed|s)?|reject(?:ed|s)?|refuse[ds]?|object(?:s|ion)?|fail(?:ed|s)?|forbid(?:den|s)?"
    r"|f(?:a(?:l(?:se?)?)?)?|not\ (?:ok|okay|allowed|permitted))(?![A-Za-z0-9])"
    r"|(?:no|not|0)\s*(?:$|[^\s\w]))"
)
_OBJECTS = lazy_regex(
    rf"""
    (?<![a-z0-9])(?:ok|okay|allow(?:ed)?|approved?|permit(?:ted)?|pass(?:ed)?|valid|accept(?:ed|able)?
        |verdict|decision|permission_?decision|behavior|result|answer|outcome){_IS}{_AGAINST}
    | (?<![a-z0-9])(?:block(?:ed)?|den(?:y|ied)|reject(?:ed)?|refused?|objects?|objection){_IS}(?:true|yes|1)\b
    | ^[^a-z0-9\n]*(?:not\ (?:ok|okay|allowed)|den(?:y|ied)|block(?:ed)?|reject(?:ed)?|refused?|i\ object|false|no)
        [^a-z0-9\n]*$
    | ^[^a-z0-9\n"'{{]*(?:not\ (?:ok|okay|allowed)|denied|blocked|rejected|refused|i\ object)\b[ ]*[^\w\s]
    | ^[^a-z0-9\n"'{{]*i\ (?:deny|block|reject|refuse|object\ to)\ (?:this|that|it|the)\b
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
"""An objection in an answer that is not valid: cut off, in a text, or in words of its own."""
OPINION_SCHEMA: Mapping[str, Any] = MappingProxyType({
    "type": "object",
    "properties": {
        "ok": {"type": "boolean", "description": "true if the policy has no objection"},
        "reason": {"type": "string", "description": "Required if ok is false: what is wrong, and what to do instead"},
        "impossible": {
            "type": "boolean",
            "description": "Only if ok is false: true if no further work could satisfy the policy",
        },
    },
    "required": ["ok"],
})  # fmt: skip


_FIELDS = frozenset(OPINION_SCHEMA["properties"])
OBJECTION = Opinion(ok=False)
"""An objection whose reason is unknown."""


class OpinionError(Exception):
    """The answer is not valid. The message says why, in words for whoever gave it."""

    def __init__(self, problem: str, *, objects: bool = False) -> None:
        """`objects`: what is wrong with it, it does object, and that must not be lost."""
        super().__init__(problem)
        self.objects = objects


def opinion_in(text: str) -> Opinion:
    """The opinion in an answer that is one JSON object, alone or in a code fence. Raises `OpinionError`."""
    text = text.strip()
    fenced = _FENCED.fullmatch(text)
    try:
        found = parse_object(fenced[1].strip() if fenced else text)
    except StrictJSONError as error:
        objects = _OBJECTS.search(text) is not None
        raise OpinionError(f"it is not one JSON object: {error}", objects=objects) from None
    return opinion_of(found)


def opinion_of(answer: object) -> Opinion:
    """The opinion in a JSON object. Raises `OpinionError`."""
    if not isinstance(answer, Mapping):
        raise OpinionError(f"it is {type_name(answer)}, not an object", objects=_states_objection(answer))
    found = cast(Mapping[str, Any], answer)
    ok, reason, impossible = found.get("ok"), found.get("reason"), found.get("impossible")
    if not isinstance(ok, bool):
        objects = _states_objection(found) or (bool(reason or impossible) if ok is None else not _reads_as_true(ok))
        problem = '"ok" is missing' if ok is None else f'"ok" must be true or false, not {json.dumps(ok)}'
        raise OpinionError(problem, objects=objects)
    if reason is not None and not isinstance(reason, str):
        raise OpinionError(f'"reason" must be a string, not {type_name(reason)}', objects=not ok)
    if impossible is not None and not isinstance(impossible, bool):
        raise OpinionError(f'"impossible" must be true or false, not {type_name(impossible)}', objects=not ok)
    if ok and _states_objection({key: value for key, value in found.items() if key not in _FIELDS}):
        raise OpinionError('"ok" is true, but another field objects', objects=True)
    said = (reason or "").strip()[:_REASON_LIMIT]
    if not ok and not said:
        raise OpinionError('"ok" is false, but there is no "reason"', objects=True)
    return Opinion(ok, said, bool(impossible) and not ok)


def objects_in(text: str) -> bool:
    """Whether an answer objects, be it valid or not."""
    try:
        return not opinion_in(text).ok
    except OpinionError as error:
        return error.objects


def _states_objection(answer: object) -> bool:
    return _OBJECTS.search(json.dumps(answer)) is not None


def _reads_as_true(value: object) -> bool:
    """Of what is neither true nor false: anything else may have been meant as an objection."""
    return str(value).strip(" .!\"'").lower() in _TRUE
