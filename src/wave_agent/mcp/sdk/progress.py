"""How far a call has come, reported at a rate that a screen can show."""

import asyncio
from collections.abc import Callable

_INTERVAL = 0.1
"""Seconds between two reports."""

Report = Callable[[float, float | None, str], None]


class ProgressReports:
    """Reports the first progress at once, then the latest one at intervals. `finish` reports what is left, so that
    the last word of a server always arrives, before the result of its call."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._latest: tuple[float, float | None, str] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_finished = False
        self.last = ""
        """What was heard last, for a message."""

    async def hear(self, progress: float, total: float | None, message: str | None) -> None:
        if self._is_finished:
            return
        self._latest = (progress, total, message or "")
        self.last = f"{progress:g}{f' of {total:g}' if total else ''} {message or ''}".strip()
        if self._timer is None:
            self._report_latest()

    def finish(self) -> None:
        self._is_finished = True
        self._report_latest()

    def _report_latest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._latest is None:
            return
        self.report(*self._latest)
        self._latest = None
        if not self._is_finished:
            self._timer = asyncio.get_running_loop().call_later(_INTERVAL, self._report_latest)
