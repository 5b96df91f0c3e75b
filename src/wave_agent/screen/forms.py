"""The form that an MCP server asks the user to fill in."""

import math
from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from wave_agent.text import one_line

_MOST_FIELDS = 20
"""A longer form is declined: no server needs it, and users cannot judge it."""


class FormField(Struct, frozen=True, kw_only=True):
    """One value that a server asks for."""

    name: str
    title: str
    about: str = ""
    kind: str
    """`string`, `number`, `integer`, `boolean`, or `choice`."""
    choices: Mapping[str, Any] = {}
    """Label → value."""
    is_required: bool = False
    default: Any = None
    least: float = -math.inf
    """Of a number, its value; of a text, its length."""
    most: float = math.inf

    def read(self, text: str) -> Any:
        """The value of what the user typed. Raises `ValueError` with what is wrong."""
        if self.kind == "string":
            if not self.least <= len(text) <= self.most:
                raise ValueError(f"expected {_range(self.least, self.most)} characters")
            return text
        try:
            number = int(text) if self.kind == "integer" else float(text)
        except ValueError:
            raise ValueError("expected a whole number" if self.kind == "integer" else "expected a number") from None
        if not (math.isfinite(number) and self.least <= number <= self.most):
            raise ValueError(f"expected {_range(self.least, self.most)}")
        return number


def fields_of(schema: Mapping[str, Any]) -> tuple[FormField, ...] | None:
    """None if this is no form that can be shown."""
    properties: Any = schema.get("properties", {})
    if not isinstance(properties, Mapping) or len(cast(Mapping[str, Any], properties)) > _MOST_FIELDS:
        return None
    given: Any = schema.get("required")
    required = cast(list[Any], given) if isinstance(given, list) else []
    made = [_field(name, one, name in required) for name, one in cast(Mapping[str, Any], properties).items()]
    return None if None in made else tuple(field for field in made if field is not None)


def _field(name: str, schema: Any, is_required: bool) -> FormField | None:
    if not isinstance(schema, Mapping):
        return None
    facts = cast(Mapping[str, Any], schema)
    kind, choices = facts.get("type", "string"), _choices(facts)
    if choices:
        kind = "choice"
    elif kind == "boolean":
        choices = {"Yes": True, "No": False}
    elif kind not in ("string", "number", "integer"):
        return None
    low, high = ("minLength", "maxLength") if kind == "string" else ("minimum", "maximum")
    return FormField(
        name=name,
        title=one_line(str(facts.get("title") or name), 60),
        about=str(facts.get("description") or ""),
        kind=str(kind),
        choices=choices,
        is_required=is_required,
        default=facts.get("default"),
        least=_number(facts.get(low), -math.inf),
        most=_number(facts.get(high), math.inf),
    )


def _choices(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """`enum` with `enumNames`, or `oneOf` with constants and titles."""
    values: Any = facts.get("enum")
    if isinstance(values, list):
        listed = cast(list[Any], values)
        given: Any = facts.get("enumNames")
        names = (
            cast(list[Any], given) if isinstance(given, list) and len(cast(list[Any], given)) == len(listed) else listed
        )
        return {one_line(str(name), 80): value for name, value in zip(names, listed, strict=True)}
    options: Any = facts.get("oneOf")
    if not isinstance(options, list):
        return {}
    constants = [cast(Mapping[str, Any], one) for one in cast(list[Any], options) if isinstance(one, Mapping)]
    return {one_line(str(one.get("title") or one["const"]), 80): one["const"] for one in constants if "const" in one}


def _number(value: Any, otherwise: float) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


def _range(least: float, most: float) -> str:
    if most == math.inf:
        return f"at least {least:g}"
    return f"at most {most:g}" if least == -math.inf else f"{least:g} to {most:g}"
