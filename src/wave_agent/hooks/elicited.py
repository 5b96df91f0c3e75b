"""Whether a hook may accept what an MCP server asks the user, and whether its answer is what the server asked for."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from wave_agent.formats.strict_json import type_name
from wave_agent.hooks.events import ACCEPT, OnFailure
from wave_agent.hooks.semantics import same_json
from wave_agent.hooks.verdicts import AnswerServer, Approve, Block, Effect, Failure, FailureKind, Verdict

_PAGE = "url"
"""The mode of a question that is a page to open."""


def checked(verdict: Verdict, payload: Mapping[str, Any], *, name: str, on_failure: OnFailure) -> Verdict:
    """The verdict of a hook on the question in this payload. Pure; never raises.

    A hook cannot open a page, so its accept of one is a refusal, unless a person has accepted it before. Content that
    does not fit is a failure of the hook.
    """
    answer = verdict.answer
    if answer is None or answer.action != ACCEPT:
        return verdict
    rest: list[Effect] = [effect for effect in verdict.effects if not isinstance(effect, Approve | AnswerServer)]
    if payload.get("mode") == _PAGE:
        if payload.get("action") == ACCEPT:
            return Verdict((*rest, Approve(), AnswerServer(ACCEPT)))
        return Verdict((*rest, Block(f"hook {name} cannot accept a page that a person has to open: declined")))
    problem = why_unfit(payload.get("requested_schema"), answer.content)
    if not problem:
        return verdict
    message = f"Hook {name}: its content is not what the server asked for: {problem}"
    return Verdict((*rest, Failure(FailureKind.JSON, message, blocks=on_failure is OnFailure.BLOCK)))


def why_unfit(schema: object, content: Mapping[str, Any]) -> str:
    """What is wrong with this content at the top level of the schema: types, required fields and enums. Empty if
    nothing is. The server checks the rest."""
    known = _object(schema)
    required = known.get("required")
    for name in cast("list[Any]", required) if isinstance(required, list) else []:
        if name not in content:
            return f'the field "{name}" is missing'
    fields = _object(known.get("properties"))
    for name, value in content.items():
        if problem := _why_unfit_value(_object(fields.get(name)), value):
            return f'the field "{name}" {problem}'
    return ""


def _why_unfit_value(field: Mapping[str, Any], value: Any) -> str:
    kind = field.get("type")
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    if check is not None and not check(value):
        return f"must be of type {kind}, not {type_name(value)}"
    allowed = field.get("enum")
    if isinstance(allowed, list) and not any(same_json(one, value) for one in cast("list[Any]", allowed)):
        return "is none of the values that the server allows"
    return ""


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: not isinstance(value, bool) and (
        isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    ),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}  # fmt: skip


def _object(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}
