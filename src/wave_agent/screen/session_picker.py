"""`/resume`: choose one of all sessions of this project, by typing a part of what is known about it."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from wave_agent.screen.cost import shown
from wave_agent.screen.plain import plain
from wave_agent.sessions.catalogue import FoundSession, SessionTotals, catalogue, latest, matching, read, totals
from wave_agent.sessions.index import SUFFIX
from wave_agent.text import one_line

PAGE = 100
"""Sessions in the list; more are added when one goes on to its end."""
_BATCH = 256
"""Sessions to read at once, of those that the index does not know."""
_AROUND = 30
"""Sessions above and below the chosen one whose turns and cost are looked up."""
_NARROW = 64
"""Columns of a terminal that has no room for turns and cost."""


class SessionPicker(ModalScreen[str | None]):
    """Answers with the id of a session."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "turn_away", show=False)]

    def __init__(self, directory: Path, current: str) -> None:
        """`directory` has the transcripts; the `current` session is left out."""
        super().__init__()
        self._directory = directory
        self._current = current
        self._all: list[FoundSession] = []
        self._found: list[FoundSession] = []
        self._shown = 0
        self._totals: dict[str, SessionTotals | None] = {}
        self._left = -1
        """Sessions still to be read; -1: not known yet."""
        self._searched = ""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield Static(plain("Sessions of this project", "bold"), markup=False, classes="title")
            yield Input(placeholder="part of a prompt, branch, date or id", compact=True)
            listed = OptionList(markup=False)
            listed.can_focus = False
            yield listed
            yield Static("", markup=False, classes="details")

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self.run_worker(self._load, group="load", exit_on_error=False)

    # --------------------------------------------------------------------------------------------------------- loading

    async def _load(self) -> None:
        """The latest ones at once, then what the index knows, then what has to be read."""
        await self._take(await asyncio.to_thread(latest, self._directory, PAGE))
        found = await asyncio.to_thread(catalogue, self._directory)
        self._left = len(found.unread)
        already = {one.session_id for one in self._all}
        await self._take([one for one in found.known if one.session_id not in already])
        for at in range(0, len(found.unread), _BATCH):
            batch = found.unread[at : at + _BATCH]
            new = await asyncio.to_thread(read, self._directory, batch)
            self._left = len(found.unread) - at - len(batch)
            # Drawing all of it again takes longer than reading a batch.
            await self._take([one for one in new if one.session_id not in already], draw=at % (_BATCH * 16) == 0)
        await self._take([])

    async def _take(self, new: Sequence[FoundSession], *, draw: bool = True) -> None:
        self._all += [one for one in new if one.session_id != self._current]
        if draw:
            self._all = await asyncio.to_thread(sorted, self._all, reverse=True)
            self._search(keep=True)

    # -------------------------------------------------------------------------------------------------------- searching

    def on_input_changed(self) -> None:
        self._search(keep=False)

    def _search(self, *, keep: bool) -> None:
        self.run_worker(partial(self._match, keep=keep), group="search", exclusive=True, exit_on_error=False)

    async def _match(self, *, keep: bool) -> None:
        """`keep`: the chosen session stays chosen, as more are known now."""
        words = self.query_one(Input).value
        chosen = self._chosen() if keep else None
        found = await asyncio.to_thread(matching, self._all, words)
        at = next((at for at, one in enumerate(found[: self._shown]) if chosen and one[1] == chosen.session_id), 0)
        self._found, self._searched = found, words
        self._shown = min(len(found), max(PAGE, self._shown if keep else 0))
        listed = self.query_one(OptionList)
        listed.set_options(Option(self._line(one)) for one in found[: self._shown])
        listed.highlighted = at if found else None
        self._show_count()
        self._show_details()

    def _show_count(self) -> None:
        known, found = len(self._all), len(self._found)
        count = f"{found:,} of {known:,}" if self._searched.split() else f"{known:,}"
        reading = "" if self._left == 0 else "; reading …" if self._left < 0 else f"; reading {self._left:,} more …"
        self.query_one(".title", Static).update(plain(f"Sessions of this project: {count}{reading}", "bold"))

    def _chosen(self) -> FoundSession | None:
        at = self.query_one(OptionList).highlighted
        return self._found[at] if at is not None and at < len(self._found) else None

    # ---------------------------------------------------------------------------------------------------------- showing

    def _line(self, one: FoundSession) -> Content:
        parts = [plain(f"{age(one.used):>12}  ", "$muted")]
        if self.size.width >= _NARROW:
            known = self._totals.get(one.session_id)
            turns = "" if known is None else _turns(known.turns)
            cost = "" if known is None or known.dollars is None else shown(known.dollars)
            parts.append(plain(f"{turns:>9} {cost:>8}  ", "$muted"))
        prompt = one_line(one.head.prompt, 200)
        parts.append(plain(prompt) if prompt else plain("(no prompt)", "italic $muted"))
        return Content.assemble(*parts)

    def _show_details(self) -> None:
        one = self._chosen()
        if one is None:
            words = "No session matches." if self._all else "" if self._left else "There is no other session."
            self.query_one(".details", Static).update(plain(words, "$muted"))
            return
        known = self._totals.get(one.session_id)
        facts = [f"{one.used:%Y-%m-%d %H:%M}", one_line(one.head.branch, 60), one_line(one.head.host, 40)]
        if known is not None:
            facts += [_turns(known.turns), "" if known.dollars is None else shown(known.dollars)]
        facts.append(one.session_id)
        self.query_one(".details", Static).update(plain(" · ".join(filter(None, facts)), "$muted"))

    async def _look_up(self, at: int) -> None:
        """Turns and cost of the sessions around this row."""
        listed = self.query_one(OptionList)
        rows = range(max(0, at - _AROUND), min(self._shown, at + _AROUND + 1))
        wanted = [(row, self._found[row]) for row in sorted(rows, key=lambda row: abs(row - at))]
        for row, one in wanted:
            if one.session_id in self._totals:
                continue
            path = self._directory / f"{one.session_id}{SUFFIX}"
            self._totals[one.session_id] = await asyncio.to_thread(totals, path)
            if row < self._shown and self._found[row] is one:
                listed.replace_option_prompt_at_index(row, self._line(one))
                self._show_details()

    # ------------------------------------------------------------------------------------------------------------- keys

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._show_details()
        self.run_worker(partial(self._look_up, event.option_index), group="totals", exclusive=True, exit_on_error=False)

    def on_key(self, event: events.Key) -> None:
        listed = self.query_one(OptionList)
        moves = {
            "up": listed.action_cursor_up,
            "down": self._down,
            "pageup": listed.action_page_up,
            "pagedown": self._page_down,
        }
        if event.key in moves:
            event.stop()
            moves[event.key]()

    def _down(self) -> None:
        listed = self.query_one(OptionList)
        if listed.highlighted == self._shown - 1 and not self._more():
            return  # it would go to the first one
        listed.action_cursor_down()

    def _page_down(self) -> None:
        listed = self.query_one(OptionList)
        if (listed.highlighted or 0) + listed.size.height >= self._shown:
            self._more()
        listed.action_page_down()

    def _more(self) -> bool:
        """Another page, if there is one."""
        new = self._found[self._shown : self._shown + PAGE]
        self.query_one(OptionList).add_options(Option(self._line(one)) for one in new)
        self._shown += len(new)
        return bool(new)

    def on_resize(self) -> None:
        self._search(keep=True)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._found[event.option_index].session_id)

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value != self._searched:  # Enter was pressed before the list was updated for the last letters
            await self._match(keep=False)
        if (chosen := self._chosen()) is not None:
            self.dismiss(chosen.session_id)

    def action_turn_away(self) -> None:
        self.dismiss(None)


def _turns(count: int) -> str:
    return "1 turn" if count == 1 else f"{count:,} turns"


def age(used: datetime) -> str:
    """How long ago that was."""
    seconds = max(0.0, (datetime.now(used.tzinfo) - used).total_seconds())
    for size, unit in ((31_536_000, "year"), (86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            number = int(seconds // size)
            word = "min" if unit == "minute" else unit if number == 1 else f"{unit}s"
            return f"{number} {word} ago"
    return "just now"
