"""The conversation: a list of entries. It scrolls with new entries until the user scrolls away.

Only the latest entries are widgets; earlier ones are created when the user scrolls up to them. So key presses are
handled as quickly in a long conversation as in a short one.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from wave_agent.screen.answer import AnswerText
from wave_agent.screen.entries import Entry
from wave_agent.screen.plain import plain

HEAVY = 140
"""Above this many lines, the oldest entries are removed while the end is in view: every new word lays out them all."""
LIGHT = 80
"""Lines kept then, and restored at once: more than a large terminal shows."""

Maker: TypeAlias = Callable[[], Widget]


class Earlier(Static):
    """Indicates that there are earlier entries."""

    def tell(self, count: int) -> None:
        self.display = count > 0
        self.update(plain(f"↑ {count:,} earlier entries; scroll up to see them", "$muted"))


class Conversation(VerticalScroll):
    can_focus = False

    def __init__(self) -> None:
        super().__init__(Earlier(markup=False))
        self._earlier: list[Maker] = []
        self._loading = False

    def on_mount(self) -> None:
        self.anchor()
        self._tell()

    # ---------------------------------------------------------------------------------------------------------- entries

    @property
    def shown(self) -> list[Widget]:
        """The entries that are widgets, in order."""
        return [child for child in self.children if isinstance(child, Entry | AnswerText)]

    @property
    def cards(self) -> list[Entry]:
        """The entries that can be opened."""
        return [child for child in self.children if isinstance(child, Entry) and child.foldable]

    async def fill(self, makers: Sequence[Maker]) -> None:
        """Show another conversation."""
        await self.remove_children(self.shown)
        self._earlier = list(makers)
        await self.mount_all(self._take_earlier())
        self._tell()
        self.follow()

    def _take_earlier(self) -> list[Widget]:
        """The latest hidden entries as widgets, one batch of them."""
        taken: list[Widget] = []
        while self._earlier and sum(map(_weight, taken)) < LIGHT:
            taken.insert(0, self._earlier.pop()())
        return taken

    async def add(self, entry: Widget, after: Widget | None = None) -> None:
        await self.mount(entry, after=after)
        if self.is_following:
            await self._trim()

    async def _trim(self) -> None:
        weights = [(entry, _weight(entry)) for entry in self.shown]
        left = sum(weight for _, weight in weights)
        leaving: list[Widget] = []
        for entry, weight in weights[:-1] if left > HEAVY else ():
            if left <= LIGHT:
                break
            left -= weight
            leaving.append(entry)
        if not leaving:
            return
        self._earlier += map(_maker, leaving)
        self._tell()
        await self.remove_children(leaving)

    def _tell(self) -> None:
        self.query_one(Earlier).tell(len(self._earlier))

    # -------------------------------------------------------------------------------------------------------- scrolling

    @property
    def is_following(self) -> bool:
        return self.max_scroll_y <= 0 or self.scroll_offset.y >= self.max_scroll_y - 1

    def follow(self) -> None:
        """Scroll to the end and follow new entries."""
        self.anchor()

    def page(self, step: int) -> None:
        self.release_anchor()
        self.scroll_relative(y=step * max(1, self.size.height - 2), animate=False)

    def to_start(self) -> None:
        self.release_anchor()
        self.scroll_home(animate=False)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if new_value < 1 <= old_value and self._earlier and not self._loading:
            self._loading = True
            self.run_worker(self._load_earlier(), exclusive=False)

    async def _load_earlier(self) -> None:
        """Insert a batch above the visible entries without moving them."""
        try:
            before, height = self.scroll_offset.y, self.virtual_size.height
            await self.mount_all(self._take_earlier(), after=0)
            self._tell()

            def stay() -> None:
                self.scroll_to(y=before + self.virtual_size.height - height, animate=False, force=True)

            self.call_after_refresh(stay)
        finally:
            self._loading = False

    # ------------------------------------------------------------------------------------------------------------ cards

    def at_hand(self) -> Entry | None:
        """The focused card, or else the latest."""
        cards = self.cards
        focused = next((card for card in cards if card.has_focus), None)
        return focused or (cards[-1] if cards else None)

    def walk(self, step: int) -> None:
        """Focus the next card."""
        cards = self.cards
        focused = next((at for at, card in enumerate(cards) if card.has_focus), None)
        if focused is not None and 0 <= focused + step < len(cards):
            cards[focused + step].focus()


def _maker(entry: Widget) -> Maker:
    """Keeps an entry's content, not the entry: an answer is a tree of many widgets."""
    if isinstance(entry, AnswerText):
        return partial(AnswerText, entry.text)
    assert isinstance(entry, Entry)
    return entry.again


def _weight(entry: Widget) -> int:
    return entry.weight if isinstance(entry, AnswerText) else 2
