"""What an MCP server asks the user, as questions of the screen."""

from collections.abc import Awaitable, Callable

from textual.app import ComposeResult
from textual.widgets import Input, OptionList

from wave_agent.mcp.values import Elicitation, ElicitationAnswer
from wave_agent.screen.dialogs import Dialog
from wave_agent.screen.forms import SKIP, VALUE, FormField, OpenPage, fill_in
from wave_agent.screen.question import Question, content_of


class ElicitationQuestion(Question):
    """Whether to answer at all."""

    def __init__(self, dialog: Dialog) -> None:
        super().__init__(dialog.title, content_of(dialog), dialog.choices)


class FieldQuestion(Question):
    """One field. Answers `value:TEXT`, or `skip`; None cancels."""

    def __init__(self, dialog: Dialog, field: FormField) -> None:
        self._field = field
        super().__init__(dialog.title, content_of(dialog), dialog.choices)

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
        self.give(SKIP if is_left_out else f"{VALUE}{event.value}")


async def elicit(
    request: Elicitation, ask: Callable[[Question], Awaitable[str | None]], open_page: OpenPage
) -> ElicitationAnswer:
    """Asks the user. Whatever cannot be shown is declined."""

    async def shown(dialog: Dialog, field: FormField | None) -> str | None:
        return await ask(ElicitationQuestion(dialog) if field is None else FieldQuestion(dialog, field))

    return await fill_in(request, shown, open_page)
