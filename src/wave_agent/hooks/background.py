"""Hooks that nothing waits for: async hooks, and all hooks of events that do not wait."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from time import monotonic
from typing import Any

from wave_agent.errors import SessionError
from wave_agent.events import Event, ModelWoken, Notice
from wave_agent.hooks.deferred import DeferredContext
from wave_agent.hooks.long_texts import LongTexts
from wave_agent.hooks.verdicts import Outcome


class BackgroundHooks:
    """Runs hooks in the background: their context comes later, their messages become notices, and their decisions are
    ignored."""

    def __init__(
        self, deferred: DeferredContext, texts: LongTexts, emit: Callable[[Event], None], grace: float
    ) -> None:
        """`grace`: the seconds that running hooks get to finish when this is closed."""
        self._deferred = deferred
        self._texts = texts
        self._emit = emit
        self._grace = grace
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = False

    def start(self, work: Coroutine[Any, Any, Outcome], occasion: int) -> None:
        """Start hooks of this occasion."""
        self._start(self._finish(work, occasion))

    def start_in_turn(self, works: Iterable[tuple[Callable[[], Coroutine[Any, Any, Outcome]], int]]) -> None:
        """Start hooks of several occasions, one occasion after another."""

        async def each() -> None:
            for work, occasion in works:
                await self._finish(work(), occasion)

        self._start(each())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def is_running(self) -> bool:
        return bool(self._tasks)

    async def close(self) -> None:
        """Give the running hooks a moment to finish, then end them."""
        self._is_closing = True
        ends = monotonic() + self._grace
        while self._tasks and (left := ends - monotonic()) > 0:  # a task may start another as it ends
            await asyncio.wait(self._tasks, timeout=left)
        late = tuple(self._tasks)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        for said in (one.said for one in self._deferred.waiting if one.wakes):
            text = f"Hook {said.hook} finished after the last turn, so the model has not seen this: {said.text}"
            self._emit(Notice(content=text))

    async def _finish(self, work: Coroutine[Any, Any, Outcome], occasion: int) -> None:
        with suppress(SessionError):  # nothing awaits this task; a failure to record the run is reported elsewhere
            outcome = self._texts.shortened(await work)
            self._deferred.add(outcome, occasion)
            for note in outcome.to_user:
                self._emit(Notice(content=note.text, level=note.level))
            if outcome.wakes and not self._is_closing:
                for said in outcome.contexts:
                    self._emit(ModelWoken(event=outcome.event.value, hook=said.hook))
