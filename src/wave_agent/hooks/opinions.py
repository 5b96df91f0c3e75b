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
        raise OpinionError(f"it is not one JSON object: {error}") from None
    return opinion_of(found)


def opinion_of(answer: object) -> Opinion:
    """The opinion in a JSON object. Raises `OpinionError`."""
    if not isinstance(answer, Mapping):
        raise OpinionError(f"it is {type_name(answer)}, not an object")
    found = cast(Mapping[str, Any], answer)
    ok, reason, impossible = found.get("ok"), found.get("reason"), found.get("impossible")
    if not isinstance(ok, bool):
        raise OpinionError('"ok" is missing' if ok is None else f'"ok" must be true or false, not {json.dumps(ok)}')
    if reason is not None and not isinstance(reason, str):
        raise OpinionError(f'"reason" must be a string, not {type_name(reason)}', objects=not ok)
    if impossible is not None and not isinstance(impossible, bool):
        raise OpinionError(f'"impossible" must be true or false, not {type_name(impossible)}', objects=not ok)
    said = (reason or "").strip()[:_REASON_LIMIT]
    if not ok and not said:
        raise OpinionError('"ok" is false, but there is no "reason"', objects=True)
    return Opinion(ok, said, bool(impossible) and not ok)
