"""Explains what is wrong with a tool's input, so that the model can fix it."""

import re
from collections.abc import Mapping
from typing import Any, cast

from wave_agent.lazy_regex import lazy_regex
from wave_agent.text import did_you_mean

_PLACE = lazy_regex(r" - at `(?:key in )?\$(.*)`$")
_STEP = lazy_regex(r"\.([^.\[]+)|\[(?:\.\.\.|\d+)\]")
_UNKNOWN = lazy_regex(r"unknown field `(.*?)`")
_MISSING = lazy_regex(r"missing required field `")
_VALUE = lazy_regex(r"^Invalid enum value '?(.*?)'?(?= - at|$)", re.DOTALL)


def explained(problem: str, schema: Mapping[str, Any]) -> str:
    """The msgspec message, with the fields or values that are possible instead."""
    place = _PLACE.search(problem)
    at = _at(schema, place[1] if place else "")
    if unknown := _UNKNOWN.search(problem):
        fields = [*at.get("properties", {})]
        return f"{problem}{did_you_mean(unknown[1], fields)}. The fields are {', '.join(fields)}"
    if _MISSING.search(problem):
        return f"{problem}. Required fields: {', '.join(at.get('required', ()))}"
    values = at.get("enum")
    if values and (value := _VALUE.search(problem)):
        listed = [str(one) for one in values]
        return f"{problem}{did_you_mean(value[1], listed)}. The values are {', '.join(listed)}"
    return problem


def _at(schema: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The part of a schema that a path such as `.todos[...].status` points to; empty if it points nowhere."""
    for step in _STEP.finditer(path):
        options = [schema, *schema.get("anyOf", ())]
        field = step[1]
        if field is not None:
            found = [one["properties"][field] for one in options if field in one.get("properties", {})]
        else:
            below = [one.get(key) for one in options for key in ("items", "additionalProperties")]
            found = [cast(dict[str, Any], one) for one in below if isinstance(one, dict)]
        schema = found[0] if found else {}
    return next((one for one in schema.get("anyOf", ()) if "enum" in one or "properties" in one), schema)
