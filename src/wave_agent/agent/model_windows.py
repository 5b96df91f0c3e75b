"""What is known about the models in use: context window, images and prices."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING

from wave_agent.models.base import Model
from wave_agent.models.prices import Prices, prices_in
from wave_agent.models.profiles import Profile, profile_of
from wave_agent.models.windows import Window
from wave_agent.settings.layers import Settings

if TYPE_CHECKING:
    from wave_agent.models.facts import ModelFacts


def known_prices(settings: Settings, name: str) -> Prices | None:
    """The prices of a model according to the settings, or else to the built-in table."""
    if given := settings.models.get(name, {}).get("prices"):
        return prices_in(given)
    facts = known_facts(name)
    return None if facts is None else facts.prices


FAMILIES = ("claude", "deepseek", "devstral", "gemini", "gpt", "grok", "mistral")
"""How the names in the built-in table begin."""


def known_facts(name: str) -> "ModelFacts | None":
    """What the built-in table says about a model."""
    if not name.rpartition("/")[2].startswith(FAMILIES):
        return None
    from wave_agent.models.facts import facts_for  # lazy: many models are not in it

    return facts_for(name)


_AFTER_THE_REQUEST = 0.01
"""Seconds until the first request is surely sent. Asking takes work that would delay it."""


_LAST_MOMENT = 0.1
"""Seconds that a session waits at its end for an answer, which later sessions then need not ask for."""


class WindowFinder:
    """The model's context window and image support, from the settings or else from its server.

    The server is asked once, while the model works on the first request. Only callers with an image to send wait for
    the answer.
    """

    def __init__(self, model: Model, name: str, settings: Settings, tell: Callable[[str], None]) -> None:
        facts = settings.models.get(name, {})
        self._known: int | None = facts.get("contextWindow")
        self._images: bool | None = facts.get("images")
        self._prices = prices_in(given) if (given := facts.get("prices")) else None
        self._stated: str | None = facts.get("profile")
        self._parameters: int | None = None
        self._ask: Callable[[str], Awaitable[Window | None]] | None = getattr(model, "context_window", None)
        self.name = name
        self._tell = tell
        self._asking: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None

    def __call__(self) -> int | None:
        if self._known is None and self._ask is not None and self._later is None:
            self._later = asyncio.get_running_loop().call_later(_AFTER_THE_REQUEST, self._start)
        return self.known

    @cached_property
    def _assumed(self) -> "ModelFacts | None":
        """Used where neither the settings nor the server say anything."""
        return known_facts(self.name)

    async def takes_images(self) -> bool:
        """False if unknown."""
        if self._images is None and (asking := self._start()) is not None:
            await asyncio.wait({asking})
        if self._images is None and self._assumed is not None:
            return self._assumed.images
        return bool(self._images)

    def refuse_images(self) -> None:
        """The server has refused an image, whatever it or the settings claim."""
        self._images = False

    def _start(self) -> asyncio.Task[None] | None:
        """Asks the server, unless already asked."""
        if self._asking is None and self._ask is not None:
            self._asking = asyncio.ensure_future(self._find(self._ask))
        return self._asking

    @property
    def known(self) -> int | None:
        """What is known so far, without asking."""
        return self._known if self._known is not None or self._assumed is None else self._assumed.window

    @property
    def prices(self) -> Prices | None:
        """What is known so far."""
        return self._prices if self._prices is not None or self._assumed is None else self._assumed.prices

    @property
    def profile(self) -> Profile:
        """By what is known so far. No request waits for it."""
        return profile_of(self._stated, self.name, self._known, self._parameters)

    async def close(self) -> None:
        if self._later is not None:
            self._later.cancel()
        if self._asking is not None:
            await asyncio.wait({self._asking}, timeout=_LAST_MOMENT)
            self._asking.cancel()
            await asyncio.wait({self._asking})

    async def _find(self, ask: Callable[[str], Awaitable[Window | None]]) -> None:
        found = await ask(self.name)
        if found is None:
            return
        self._parameters = found.parameters
        if self._images is None:
            self._images = found.images
        self._prices = self._prices or found.prices
        if self._known is None:
            self._known = found.tokens
            if found.warning:
                self._tell(found.warning)


class Windows:
    """The windows of the models that a session uses, one after another."""

    def __init__(self, model: Model, name: str, settings: Settings, tell: Callable[[str], None]) -> None:
        self._find: Callable[[str], WindowFinder] = lambda name: WindowFinder(model, name, settings, tell)
        self._found = [self._find(name)]

    @property
    def current(self) -> WindowFinder:
        return self._found[-1]

    def change(self, name: str) -> WindowFinder:
        """The window of another model. A turn that already runs keeps the one it started with."""
        self._found.append(self._find(name))
        return self.current

    def prices(self, name: str) -> Prices | None:
        """What is known so far about the prices of a model."""
        return next((window.prices for window in reversed(self._found) if window.name == name), None)

    async def takes_images(self) -> bool:
        """Whether the current model does; False if unknown."""
        return await self.current.takes_images()

    async def close(self) -> None:
        for window in self._found:
            await window.close()
