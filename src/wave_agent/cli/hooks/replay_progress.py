"""How far a backtest is, on stderr: a bar on a terminal, otherwise a line every two seconds."""

import shutil
import sys
from threading import Event, Lock, Thread
from time import monotonic
from typing import TextIO

_BAR_SECONDS, _LINE_SECONDS = 0.2, 2.0
_BAR_WIDTH = 24


class ReplayProgress:
    """Use it as a context manager. Its methods may be called from any thread."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream.isatty()
        self._lock = Lock()
        self._ended = Event()
        self._thread = Thread(target=self._show_again, daemon=True)
        self._phase = "Looking for sessions"
        self._began: float | None = None
        """When the replay began."""
        self._size = self._earlier = self._done = self._events = 0
        self._running: dict[int, tuple[int, int]] = {}
        """By unit: events and bytes."""

    def __enter__(self) -> "ReplayProgress":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._is_terminal and self._began is not None:
            self.say("Replayed")
            self._draw()
            self._stream.write("\n")
            self._stream.flush()

    def say(self, text: str) -> None:
        self._phase = text

    def begin(self, size: int, finished: int) -> None:
        with self._lock:
            self._size, self._earlier, self._done = size, finished, finished
            self._began = monotonic()
            self._phase = "Replaying"

    def tick(self, unit: int, events: int, size: int) -> None:
        with self._lock:
            self._running[unit] = events, size

    def finish(self, unit: int, events: int, size: int) -> None:
        with self._lock:
            self._running.pop(unit, None)
            self._done += size
            self._events += events

    def _show_again(self) -> None:
        while not self._ended.wait(_BAR_SECONDS if self._is_terminal else _LINE_SECONDS):
            try:
                self._draw() if self._is_terminal else self._stream.write(f"wave: {self._state()}\n")
                self._stream.flush()
            except (OSError, ValueError):  # nobody reads it
                return

    def _draw(self) -> None:
        share = self._share()
        filled = round(_BAR_WIDTH * share)
        bar = "" if self._began is None else f"  [{'#' * filled}{'-' * (_BAR_WIDTH - filled)}]"
        width = shutil.get_terminal_size().columns - 1
        head, _, rest = self._state().partition(":")
        self._stream.write(f"\r\033[K{f'{head}{bar}{rest}'[:width]}")
        self._stream.flush()

    def _share(self) -> float:
        with self._lock:
            done = self._done + sum(size for _, size in self._running.values())
        return min(1.0, done / self._size) if self._size else 1.0

    def _state(self) -> str:
        if self._began is None:
            return f"{self._phase} …"
        share = self._share()
        with self._lock:
            events = self._events + sum(events for events, _ in self._running.values())
        seconds = max(monotonic() - self._began, 1e-3)
        earlier = self._earlier / self._size if self._size else 0.0
        left = (1 - share) * seconds / (share - earlier) if share > earlier else None
        eta = "" if share == 1 else ", time left unknown" if left is None else f", {_duration(left)} left"
        return f"{self._phase}: {share:.0%}, {events:,} events, {events / seconds:,.0f}/s{eta}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
