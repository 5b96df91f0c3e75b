"""A server asks the user for something: a form, one field at a time, or a page to open in the browser."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, OptionList

from wave_agent.mcp.values import Elicitation, ElicitationAnswer
from wave_agent.screen.forms import FormField, fields_of
from wave_agent.screen.plain import plain
from wave_agent.screen.question import Choice, Question
from wave_agent.text import one_line

Ask = Callable[[Question], Awaitable[str | None]]
OpenPage = Callable[[str], object]

ANSWER, DECLINE, CANCEL = "answer", "decline", "cancel"
_SKIP = "skip"
_VALUE = "value:"


class ElicitationQuestion(Question):
    """Whether to answer at all."""

    def __init__(self, server: str, message: str, details: str, choices: Sequence[Choice]) -> None:
        body = Content.assemble(plain(message), plain(f"\n\n{details}" if details else "", "$muted"))
        super().__init__(f"The MCP server {one_line(server, 48)} asks", body, choices)


class FieldQuestion(Question):
    """One field. Answers `value:TEXT`, or `skip`; None cancels."""

    def __init__(self, server: str, field: FormField, problem: str = "") -> None:
        self._field = field
        needed = "" if field.is_required else "   (optional)"
        wrong = plain(f"\n{problem}" if problem else "", "$text-warning")
        choices = [Choice(f"{_VALUE}{label}", label) for label in field.choices]
        if field.choices and not field.is_required:
            choices.append(Choice(_SKIP, "Leave it out"))
        super().__init__(
            f"{one_line(server, 48)}: {field.title}{needed}", Content.assemble(plain(field.about), wrong), choices
        )

    def compose(self) -> ComposeResult:
        yield from super().compose()
        if not self._field.choices:
            shown = "" if self._field.default is None else str(self._field.default)
            yield Input(value=shown, placeholder="Enter sends it, Esc cancels", compact=True)

    def on_mount(self) -> None:
        self.query_one(OptionList).display = bool(self._field.choices)

    def take_keyboard(self) -> None:
        self.query_one(OptionList if self._field.choices else Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        is_left_out = not event.value.strip() and not self._field.is_required
        self.give(_SKIP if is_left_out else f"{_VALUE}{event.value}")


async def elicit(request: Elicitation, ask: Ask, open_page: OpenPage) -> ElicitationAnswer:
    """Asks the user. Whatever cannot be shown is declined."""
    if request.mode == "url":
        return await _page(request, ask, open_page)
    fields = fields_of(request.schema)
    if fields is None:
        return ElicitationAnswer(action=DECLINE)
    details = "\n".join(f"  {field.title}{'' if field.is_required else ' (optional)'}" for field in fields)
    choices = [Choice(DECLINE, "No", "n"), Choice(ANSWER, "Answer it" if fields else "Yes", "y")]
    answer = await ask(ElicitationQuestion(request.server, request.message, details, choices))
    if answer != ANSWER:
        return ElicitationAnswer(action=answer or CANCEL)
    content: dict[str, Any] = {}
    for field in fields:
        given = await _value(request.server, field, ask)
        if given is None:
            return ElicitationAnswer(action=CANCEL)
        content |= given
    return ElicitationAnswer(action="accept", content=content)


async def _value(server: str, field: FormField, ask: Ask) -> dict[str, Any] | None:
    """The field with its value, nothing if it is left out, None if the user cancels."""
    problem = ""
    while True:
        answer = await ask(FieldQuestion(server, field, problem))
        if answer is None:
            return None
        if answer == _SKIP:
            return {}
        text = answer.removeprefix(_VALUE)
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
    answer = await ask(ElicitationQuestion(request.server, request.message, details, choices))
    if answer != ANSWER:
        return ElicitationAnswer(action=answer or CANCEL)
    open_page(request.url)
    return ElicitationAnswer(action="accept")
