"""The input of a tool: its schema for the model, and what is wrong with an input, in words that help to mend it."""

import re
from collections.abc import Mapping
from typing import Any, cast

from wave_agent.text import did_you_mean

_PLACE = re.compile(r" - at `(?:key in )?\$(.*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(?:\.\.\.|\d+)\]")
_UNKNOWN = re.compile(r"unknown field `(.*?)`")
_MISSING = re.compile(r"missing required field `")
_VALUE = re.compile(r"^Invalid enum value '?(.*?)'?(?= - at|$)", re.DOTALL)


def inlined(schema: Any, components: Mapping[str, Any], inside: tuple[str, ...] = ()) -> dict[str, Any]:
    """The schema without references: many servers and small models do not follow them.

    A type that holds itself becomes any object at the place where it would begin again.
    """
    return cast(dict[str, Any], _inlined(schema, components, inside))


def _inlined(schema: Any, components: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(schema, list):
        return [_inlined(one, components, inside) for one in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    found = cast(dict[str, Any], schema)
    name = found.get("$ref")
    if not isinstance(name, str):
        return {key: _inlined(value, components, inside) for key, value in found.items()}
    if name in inside:
        return {"type": "object"}
    target = {key: value for key, value in components[name].items() if key != "title"}
    rest = {key: value for key, value in found.items() if key != "$ref"}
    return {**_inlined(target, components, (*inside, name)), **rest}


def explained(problem: str, schema: Mapping[str, Any]) -> str:
    """What msgspec says, with what there is instead: fields, or values."""
    place = _PLACE.search(problem)
    at = _at(schema, place[1] if place else "")
    if unknown := _UNKNOWN.search(problem):
        fields = [*at.get("properties", {})]
        return f"{problem}{did_you_mean(unknown[1], fields)}. The fields are {', '.join(fields)}"
    if _MISSING.search(problem):
        return f"{problem}. Required are {', '.join(at.get('required', ()))}"
    values = at.get("enum")
    if values and (value := _VALUE.search(problem)):
        listed = [str(one) for one in values]
        return f"{problem}{did_you_mean(value[1], listed)}. The values are {', '.join(listed)}"
    return problem


def _at(schema: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The part of a schema that a path such as `.todos[...].status` leads to; empty if it leads nowhere."""
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
