"""`/doctor`: what `wave doctor` checks, with problems first. The checks go on while the view is open."""

from collections.abc import AsyncIterator, Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from wave_agent.screen.plain import plain
from wave_agent.text import one_line
from wave_agent.workshop.doctor import CheckResult

Examination = Callable[[Callable[[str], None]], AsyncIterator[CheckResult]]
"""The results of all checks. The argument is called with what is checked next."""
LOOKS = {
    "failed": ("✗", "$text-error"),
    "warning": ("!", "$text-warning"),
    "ok": ("✓", "$text-success"),
    "skipped": ("–", "$muted"),
}
"""By status, the most urgent first."""
_ORDER = tuple(LOOKS)
_KEYS = "r checks again, Esc closes"


class DoctorView(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", show=False),
        Binding("r", "again", show=False),
        Binding("pageup", "body(-1)", show=False),
        Binding("pagedown", "body(1)", show=False),
    ]

    def __init__(self, examine: Examination) -> None:
        super().__init__()
        self._examine = examine
        self._found: list[CheckResult] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield Static(plain("Checking …", "bold"), markup=False, classes="title")
            yield OptionList(markup=False)
            with VerticalScroll(classes="body", can_focus=False):
                yield Static("", markup=False, classes="details")

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self.action_again()

    def action_again(self) -> None:
        self._found = []
        self._draw()
        self.run_worker(self._check, group="checks", exclusive=True, exit_on_error=False)

    async def _check(self) -> None:
        try:
            async for one in self._examine(self._begin):
                self._found.append(one)
                self._found.sort(key=lambda found: _ORDER.index(found.status))
                self._draw()
        except Exception as error:  # a bug of ours must not end the conversation
            self._found.insert(0, CheckResult("doctor", "failed", f"Internal error: {type(error).__name__}: {error}"))
            self._draw()
        self._head(f"{summary(self._found)} {_KEYS}")

    def _begin(self, check: str) -> None:
        self._head(f"Checking: {check} … Esc closes")

    def _head(self, text: str) -> None:
        self.query_one(".title", Static).update(plain(text, "bold"))

    def _draw(self) -> None:
        """A choice of the user's own stays; otherwise the first row is chosen, which has the worst news."""
        listed = self.query_one(OptionList)
        before = listed.highlighted
        listed.set_options(Option(_line(one)) for one in self._found)
        listed.highlighted = None if not self._found else min(before or 0, len(self._found) - 1)
        self._show_details()

    def on_option_list_option_highlighted(self) -> None:
        self._show_details()

    def _show_details(self) -> None:
        at = self.query_one(OptionList).highlighted
        details = Content("") if at is None or at >= len(self._found) else _details(self._found[at])
        self.query_one(".details", Static).update(details)

    def action_body(self, step: int) -> None:
        body = self.query_one(".body", VerticalScroll)
        body.scroll_relative(y=step * max(1, body.size.height - 1), animate=False)

    def action_close(self) -> None:
        self.dismiss(None)


def _line(one: CheckResult) -> Content:
    mark, style = LOOKS[one.status]
    return Content.assemble(plain(f"{mark} {one.check:<11} ", style), plain(one_line(one.detail, 200)))


def _details(one: CheckResult) -> Content:
    lines = [plain(one.detail)]
    if one.fix:
        lines.append(Content.assemble(plain("What to do: ", "bold"), plain(one.fix)))
    return Content("\n").join(lines)


def summary(found: list[CheckResult]) -> str:
    """How many there are of each kind, the most urgent first."""
    words = {"failed": "failed", "warning": "to look at", "ok": "fine", "skipped": "skipped"}
    counts = [(sum(one.status == status for one in found), word) for status, word in words.items()]
    return f"{', '.join(f'{count} {word}' for count, word in counts if count)}."
