"""What is on disk of a session, and what happens when something cannot be written."""

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from wave_agent.errors import SessionError
from wave_agent.events import HookRun
from wave_agent.messages import Change, Opening
from wave_agent.sessions.recorder import Recorder
from wave_agent.sessions.store import FileSessionStore
from wave_agent.sessions.transcript import Resumed
from wave_agent.system.project import Project


class SessionLog:
    """The transcript of one agent. A failed write ends the turn, once; the store keeps the record for later."""

    def __init__(self, store: FileSessionStore, session_id: str, project: Project, before: Resumed) -> None:
        self._store = store
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

    @contextmanager
    def turn(self) -> Generator[None]:
        """Around a turn: its records are on disk afterwards, or `failure` says why not."""
        self.failure = None
        try:
            yield
            self.sync()
        except SessionError as error:
            self.failure = error
        except asyncio.CancelledError:
            with suppress(SessionError):  # no one is left to report it to
                self._store.sync()
            raise

    # Each of these raises `SessionError` if it is the turn's first failed write.

    def start(self) -> None:
        self._record(self._recorder.start)

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

    def require_on_disk(self) -> None:
        self._record(self._store.sync)
        self._require_all()

    def close(self) -> None:
        """Raises `SessionError` if the last records cannot be written, but releases the session anyway."""
        self.failure = None
        try:
            self.sync()
        finally:
            self._store.close()

    def _record(self, write: Callable[[], None]) -> None:
        try:
            write()
        except SessionError as error:
            if self.failure is None:
                self.failure = error
                raise

    def _require_all(self) -> None:
        if self.failure is not None:
            raise self.failure
