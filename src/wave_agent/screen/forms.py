"""What an MCP server asks the user: a form, one field at a time, or a page to open in the browser."""

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from msgspec import Struct

from wave_agent.mcp.values import Elicitation, ElicitationAnswer
from wave_agent.screen.dialogs import Choice, Dialog, Part
from wave_agent.text import one_line

ANSWER, DECLINE, CANCEL = "answer", "decline", "cancel"
SKIP = "skip"
VALUE = "value:"

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


Ask = Callable[[Dialog, FormField | None], Awaitable[str | None]]
"""Asks the user. A field without choices is answered with `value:TEXT`, or with `skip`; None cancels."""
OpenPage = Callable[[str], object]


async def fill_in(request: Elicitation, ask: Ask, open_page: OpenPage) -> ElicitationAnswer:
    """Asks the user. Whatever cannot be shown is declined."""
    if request.mode == "url":
        return await _page(request, ask, open_page)
    fields = fields_of(request.schema)
    if fields is None:
        return ElicitationAnswer(action=DECLINE)
    details = "\n".join(f"  {field.title}{'' if field.is_required else ' (optional)'}" for field in fields)
    choices = [Choice(DECLINE, "No", "n"), Choice(ANSWER, "Answer it" if fields else "Yes", "y")]
    answer = await ask(_request_dialog(request, details, choices), None)
    if answer != ANSWER:
        return ElicitationAnswer(action=answer or CANCEL)
    content: dict[str, Any] = {}
    for field in fields:
        given = await _value(request.server, field, ask)
        if given is None:
            return ElicitationAnswer(action=CANCEL)
        content |= given
    return ElicitationAnswer(action="accept", content=content)


def _request_dialog(request: Elicitation, details: str, choices: list[Choice]) -> Dialog:
    parts = [Part(request.message), Part(f"\n\n{details}" if details else "", "$muted")]
    return Dialog(f"The MCP server {one_line(request.server, 48)} asks", parts, choices)


def _field_dialog(server: str, field: FormField, problem: str) -> Dialog:
    needed = "" if field.is_required else "   (optional)"
    choices = [Choice(f"{VALUE}{label}", label) for label in field.choices]
    if field.choices and not field.is_required:
        choices.append(Choice(SKIP, "Leave it out"))
    parts = [Part(field.about), Part(f"\n{problem}" if problem else "", "$text-warning")]
    return Dialog(f"{one_line(server, 48)}: {field.title}{needed}", parts, choices)


async def _value(server: str, field: FormField, ask: Ask) -> dict[str, Any] | None:
    """The field with its value, nothing if it is left out, None if the user cancels."""
    problem = ""
    while True:
        answer = await ask(_field_dialog(server, field, problem), field)
        if answer is None:
            return None
        if answer == SKIP:
            return {}
        text = answer.removeprefix(VALUE)
        if field.choices:
            return {field.name: field.choices[text]}
        try:
            return {field.name: field.read(text)}
        except ValueError as error:
            problem = f"{one_line(text, 60)}: {error}."


async def _page(request: Elicitation, ask: Ask, open_page: OpenPage) -> ElicitationAnswer:
    try:
        parts = urlsplit(request.url)
        host = (parts.hostname or "").encode("idna").decode()
    except (ValueError, UnicodeError):
        return ElicitationAnswer(action=DECLINE)
    if parts.scheme not in ("https", "http") or not host:
        return ElicitationAnswer(action=DECLINE)
    details = f"It wants you to open a page of {host}:\n{request.url}"
    choices = [Choice(DECLINE, "No", "n"), Choice(ANSWER, f"Open it: {host}", "o")]
    answer = await ask(_request_dialog(request, details, choices), None)
    if answer != ANSWER:
        return ElicitationAnswer(action=answer or CANCEL)
    open_page(request.url)
    return ElicitationAnswer(action="accept")
