"""`/hooks`: the session's hooks, or their runs in order. Enter shows details."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from wave_agent.events import HookRun
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.screen.plain import plain
from wave_agent.screen.verdicts import headline, story
from wave_agent.text import one_line


class HookRow(NamedTuple):
    line: Content
    details: Content


def defined(hook: HookDefinition) -> HookRow:
    """Event, matcher, command, source and mode."""
    off = "" if hook.enabled else " · off"
    line = Content.assemble(
        plain(f"{hook.event:<17}", "bold"),
        plain(f"{one_line(hook.matcher.explain(), 24):<25}", "$text-accent"),
        plain(f"{one_line(hook.shown_command, 60)}  "),
        plain(f"{_place(hook)} · {hook.mode}{off}", "$muted"),
    )
    facts = {
        "name": hook.name,
        "event": hook.event.value,
        "matcher": hook.matcher.explain(),
        "condition": "" if hook.condition is None else hook.condition.text,
        "command": " ".join([hook.shown_command, *(hook.args or ())]),
        "from": f"{hook.layer} ({_place(hook)})",
        "mode": hook.mode.value,
        "rollout": "" if hook.rollout is None else f"enforced in {hook.rollout:.4g} of all sessions",
        "on failure": hook.on_failure.value,
        "timeout": f"{hook.timeout:g} s",
        "runs": "in the background" if hook.is_async else "one after another" if hook.sequential else "in parallel",
        "phase": hook.phase.value if hook.phase else "",
        "status": hook.status_message,
        "enabled": "" if hook.enabled else "no",
    }
    lines = [Content.assemble(plain(f"{name:>10}  ", "$muted"), plain(text)) for name, text in facts.items() if text]
    return HookRow(line, Content("\n").join(lines))


def _place(hook: HookDefinition) -> str:
    return hook.source if hook.line is None else f"{hook.source}:{hook.line}"


def happened(when: float | None, run: HookRun) -> HookRow:
    time = "   before" if when is None else f"{when:7.1f} s"
    return HookRow(Content.assemble(plain(f"{time}  ", "$muted"), headline(run)), story(run))


class HooksView(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "close", show=False)]

    def __init__(self, title: str, rows: Sequence[HookRow], empty: str = "No hooks.") -> None:
        super().__init__()
        self._title = title
        self._rows = rows
        self._empty = empty

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield Static(plain(self._title, "bold"), classes="title")
            if self._rows:
                yield OptionList(*(Option(row.line) for row in self._rows), markup=False)
            with VerticalScroll(classes="body", can_focus=False):
                yield Static(plain("" if self._rows else self._empty), markup=False, classes="details")

    def on_mount(self) -> None:
        if self._rows:
            self.query_one(OptionList).focus()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_list is self.query_one(OptionList):
            self.show(event.option_index)

    def show(self, at: int) -> None:
        """The details of a row."""
        self.query_one(".details", Static).update(self._rows[at].details)

    def action_close(self) -> None:
        self.dismiss(None)
