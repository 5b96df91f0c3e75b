"""What is on disk of a session, and what happens when something cannot be written."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any

from wave_agent.errors import SessionError
from wave_agent.events import HookRun
from wave_agent.messages import Change, Opening
from wave_agent.sessions.recorder import Recorder
from wave_agent.sessions.store import FileSessionStore
from wave_agent.sessions.transcript import Resumed
from wave_agent.system.fairness import fairness
from wave_agent.system.project import Project
from wave_agent.system.threads import Delivery, Mailbox, start_in_thread

_SLOW = 0.05
"""Seconds of a sync after which the next one does not keep the event loop waiting."""


class SessionLog:
    """The transcript of one agent. A failed write ends the turn, once; the store keeps the record for later."""

    def __init__(
        self,
        store: FileSessionStore,
        session_id: str,
        project: Project,
        before: Resumed,
        *,
        identity: Callable[[str], Mapping[str, str]] = lambda _: {},
    ) -> None:
        """`identity` tells who works where, of a directory: for the first line."""
        self._store = store
        self._identity = identity
        self._project = project.directory
        self._recorder = Recorder(
            store,
            session_id=session_id,
            project_dir=project.directory,
            start=project.start,
            last_uuid=before.last_uuid,
            link=before.link,
        )
        self.reported = ""
        """The failure that was already reported to the user."""
        self.failure: SessionError | None = None
        """Why something in this turn could not be written; the first caller to fail got this error."""
        self._is_slow = False
        """The last sync took long."""

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Around a turn: its records are on disk afterwards, or `failure` says why not."""
        self.failure = None
        try:
            yield
            await self._sync_aside()
        except SessionError as error:
            self.failure = error
        except asyncio.CancelledError:
            with suppress(SessionError):  # no one is left to report it to
                self._store.sync()
            raise

    # Each of these raises `SessionError` if it is the turn's first failed write.

    def start(self, **facts: str) -> None:
        """`facts` are part of the first line."""
        self._record(lambda: self._recorder.start(**{**self._identity(self._project), **facts}))

    def hook_run(self, run: HookRun) -> None:
        self._record(lambda: self._recorder.hook_run(run))

    def violation(self, facts: Mapping[str, Any]) -> None:
        self._record(lambda: self._recorder.violation(facts))

    def deferred_call(self, tool_id: str | None) -> None:
        self._record(lambda: self._recorder.deferred_call(tool_id))

    def opening(self, opening: Opening) -> None:
        self._record(lambda: self._recorder.opening(opening))

    def known(self, known: Mapping[str, str]) -> None:
        self._record(lambda: self._recorder.known(known))

    def usage(self, facts: Mapping[str, Any]) -> None:
        self._record(lambda: self._recorder.usage(facts))

    def change(self, change: Change) -> None:
        self._record(lambda: self._recorder.change(change))

    def sync(self) -> None:
        self._record(self._store.sync)

    # These also raise it if an earlier write of the turn failed, whichever caller got that error (possibly an async
    # hook). They are called before anything that must not go ahead in that case.

    def require_written(self) -> None:
        self._record(self._store.flush)
        self._require_all()

    async def require_on_disk(self) -> None:
        await self._sync_aside()
        self._require_all()

    async def _sync_aside(self) -> None:
        """Syncs in another thread if that takes long, or if other agents could work meanwhile. One that is alone has to
        wait anyway, and is woken less often without a thread."""
        if fairness().is_shared or self._is_slow:
            failed = await self._failure_in_thread()
        else:
            failed = self._failure_of_sync()
        if failed is not None:
            self._fail(failed)

    async def _failure_in_thread(self) -> SessionError | None:
        answer = Delivery[SessionError | None](asyncio.get_running_loop(), Mailbox())
        try:
            start_in_thread(lambda: answer.send(self._failure_of_sync()))
        except RuntimeError:  # out of threads
            return self._failure_of_sync()
        return await answer.wait()

    def _failure_of_sync(self) -> SessionError | None:
        started = monotonic()
        try:
            self._store.sync()
        except SessionError as error:
            return error
        finally:
            self._is_slow = monotonic() - started > _SLOW
        return None

    def close(self) -> None:
        """Raises `SessionError` if the last records cannot be written, but releases the session anyway."""
        self.failure = None
        try:
            self.sync()
        finally:
            used = self._store.is_open
            self._store.close()
            if used:
                from wave_agent.sessions.touched import note_closed  # lazy: not needed before the end

                note_closed(self._store.path)

    def _record(self, write: Callable[[], None]) -> None:
        try:
            write()
        except SessionError as error:
            self._fail(error)

    def _fail(self, error: SessionError) -> None:
        if self.failure is None:
            self.failure = error
            raise error

    def _require_all(self) -> None:
        if self.failure is not None:
            raise self.failure
