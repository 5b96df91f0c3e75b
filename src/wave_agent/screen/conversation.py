"""The conversation: a list of entries. It scrolls with new entries until the user scrolls away.

Only the entries around the visible ones are widgets; the others are created when the user scrolls to them. So key
presses are handled as quickly in a long conversation as in a short one, wherever the user is reading.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from wave_agent.screen.answer import AnswerText
from wave_agent.screen.entries import Entry
from wave_agent.screen.plain import plain

HEAVY = 140
"""Above this many lines, the oldest entries are removed while the end is in view: every new word lays out them all.
While it is not, new entries are not drawn."""
LIGHT = 80
"""Lines kept then, and restored at once: more than a large terminal shows."""
MANY = 4 * LIGHT
"""Above this many lines, entries far from the visible ones are removed while the user scrolls."""

Maker: TypeAlias = Callable[[], Widget]
Shown = TypeVar("Shown", bound=Widget)


class Hidden(Static):
    """Indicates that there are entries that are not shown."""

    def __init__(self, words: str) -> None:
        super().__init__(markup=False)
        self._words = words

    def tell(self, count: int) -> None:
        self.display = count > 0
        self.update(plain(self._words.format(count), "$muted"))


class Conversation(VerticalScroll):
    can_focus = False

    def __init__(self) -> None:
        self._top = Hidden("↑ {:,} earlier entries; scroll up to see them")
        self._bottom = Hidden("↓ {:,} later entries; scroll down to see them")
        super().__init__(self._top, self._bottom)
        self._earlier: list[Maker] = []
        self._later: list[Maker] = []
        self._copies: WeakKeyDictionary[Widget, Widget] = WeakKeyDictionary()
        """Entries that were removed and created again, and their successors."""
        self._changing = asyncio.Lock()
        """Held while entries are added or removed: each takes several steps, in which keys are handled."""
        self._loading = False
        self._jumps = 0

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

    @property
    def weight(self) -> int:
        """Approximate layout cost of the entries that are widgets, in lines."""
        return _weight_of(self.shown)

    def latest(self, entry: Shown) -> Shown:
        """The entry that is shown in place of this one, if it was removed and created again. Whoever has news for an
        entry has them for this one."""
        while copy := self._copies.get(entry):
            assert isinstance(copy, type(entry))
            entry = copy
        return entry

    async def fill(self, makers: Sequence[Maker]) -> None:
        """Show another conversation."""
        async with self._changing:
            await self.remove_children(self.shown)
            self._earlier, self._later = list(makers), []
            await self.mount_all(_take_last(self._earlier), before=self._bottom)
            self._tell()
        self.follow()

    async def add(self, entry: Widget) -> None:
        async with self._changing:
            if self._later or (not self.is_at_end and self.weight > HEAVY):
                self._later.append(self._maker(entry))
                self._tell()
                return
            await self.mount(entry, before=self._bottom)
            if self.is_at_end:
                await self._trim()

    async def add_texts(self, texts: Sequence[str]) -> None:
        """Several segments of an answer. If the end is in view, only as many are drawn as fill the screen."""
        async with self._changing:
            following = self.is_following
            self._later += (partial(AnswerText, text) for text in texts)
            if following:
                await self._draw_end()
            self._tell()

    async def _trim(self) -> None:
        entries = self.shown
        if _weight_of(entries) > HEAVY:
            await self._hide_above(_surplus(entries[:-1], LIGHT - _weight(entries[-1])))

    async def _hide_above(self, leaving: Sequence[Widget]) -> None:
        self._earlier += map(self._maker, leaving)
        self._tell()
        await self.remove_children(leaving)

    async def _hide_below(self, leaving: Sequence[Widget]) -> None:
        self._later[:0] = map(self._maker, leaving)
        self._tell()
        await self.remove_children(leaving)

    def _maker(self, entry: Widget) -> Maker:
        """Keeps an entry's content if that is final, and not the entry: an answer is a tree of many widgets."""
        if isinstance(entry, AnswerText) and not entry.is_growing:
            return partial(AnswerText, entry.text)
        return partial(self._again, entry)

    def _again(self, entry: Widget) -> Widget:
        assert isinstance(entry, Entry | AnswerText)
        copy = self._copies[entry] = entry.again()
        return copy

    def _tell(self) -> None:
        self._top.tell(len(self._earlier))
        self._bottom.tell(len(self._later))

    # -------------------------------------------------------------------------------------------------------- scrolling

    @property
    def is_at_end(self) -> bool:
        """The last entry that is drawn is in view."""
        return self.max_scroll_y <= 0 or self.scroll_offset.y >= self.max_scroll_y - 1

    @property
    def is_following(self) -> bool:
        return not self._later and self.is_at_end

    def follow(self) -> None:
        """Scroll to the end and follow new entries."""
        if self._later:
            self._load(self._jump_to_end)
        else:
            self.anchor()

    def page(self, step: int) -> None:
        self.release_anchor()
        self.scroll_relative(y=step * max(1, self.size.height - 2), animate=False)

    def to_start(self) -> None:
        self.release_anchor()
        if self._earlier:
            self.run_worker(self._jump_to_start(), exclusive=False)
        else:
            self.scroll_home(animate=False)

    async def _jump_to_end(self) -> None:
        await self._draw_end()
        self._tell()
        self._jumps += 1
        self.anchor()

    async def _draw_end(self) -> None:
        """Draw the last entries in place of those that are drawn now, and hide those between them."""
        drawn = self.shown
        between, self._later = self._later, []
        for entry in _take_last(between):  # one at a time: keys are handled meanwhile
            await self.mount(entry, before=self._bottom)
        if between:
            await self._hide_above(drawn)
            self._earlier += between

    async def _jump_to_start(self) -> None:
        async with self._changing:
            self._loading = True  # what scrolls until it is home is not the user
            drawn = self.shown
            between, self._earlier = self._earlier, []
            first = _take_first(between)
            if between:
                await self._hide_below(drawn)
                self._later[:0] = between
            await self.mount_all(first, after=self._top)
            self._tell()
            self._jumps += 1
        self.call_after_refresh(self._go_home)

    def _go_home(self) -> None:
        self.scroll_home(animate=False, force=True)
        self._loading = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._loading:
            return
        if new_value < 1 <= old_value and self._earlier:
            self._load(self._load_earlier)
        elif new_value > old_value and self._later and self.is_at_end:
            self._load(self._load_later)

    def _load(self, load: Callable[[], Coroutine[None, None, None]]) -> None:
        async def work() -> None:
            try:
                async with self._changing:
                    await load()
            finally:
                self._loading = False

        self._loading = True
        self.run_worker(work(), exclusive=False)

    async def _load_earlier(self) -> None:
        """Insert a batch above the visible entries without moving them."""
        put_back = self._place_of(self.shown[0])
        await self.mount_all(_take_last(self._earlier), after=self._top)
        await self._hide_below(_surplus(self.shown[::-1], MANY)[::-1])
        self.call_after_refresh(put_back)

    async def _load_later(self) -> None:
        """Append a batch below the visible entries without moving them."""
        self.release_anchor()  # whoever has reached what is drawn has not reached the end
        put_back = self._place_of(self.shown[-1])
        await self.mount_all(_take_first(self._later), before=self._bottom)
        await self._hide_above(_surplus(self.shown, MANY))
        self.call_after_refresh(put_back)

    def _place_of(self, entry: Widget) -> Callable[[], None]:
        """Puts this entry back to where it is on the screen now, when others have come and gone."""
        offset, jumps = entry.virtual_region.y - self.scroll_offset.y, self._jumps

        def put_back() -> None:
            if self._jumps == jumps:  # else the user has gone to the start or the end meanwhile
                self.scroll_to(y=entry.virtual_region.y - offset, animate=False, force=True)

        return put_back

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


def _weight(entry: Widget) -> int:
    return entry.weight if isinstance(entry, AnswerText) else 2


def _weight_of(entries: Iterable[Widget]) -> int:
    return sum(map(_weight, entries))


def _surplus(entries: Sequence[Widget], most: int) -> list[Widget]:
    """The first entries, without which the others weigh no more than this."""
    left = _weight_of(entries)
    surplus: list[Widget] = []
    for entry in entries:
        if left <= most:
            break
        left -= _weight(entry)
        surplus.append(entry)
    return surplus


def _take_last(makers: list[Maker]) -> list[Widget]:
    """Takes as many from the end as fill a screen, and makes them."""
    taken: list[Widget] = []
    while makers and _weight_of(taken) < LIGHT:
        taken.insert(0, makers.pop()())
    return taken


def _take_first(makers: list[Maker]) -> list[Widget]:
    """Takes as many from the start as fill a screen, and makes them."""
    taken: list[Widget] = []
    while len(taken) < len(makers) and _weight_of(taken) < LIGHT:
        taken.append(makers[len(taken)]())
    del makers[: len(taken)]
    return taken
