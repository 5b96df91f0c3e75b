"""A terminal used as a teletype: whole lines go out, whole lines come in, and nothing moves the cursor.

The terminal itself echoes and edits the line being typed, so a screen reader hears what it always hears.
"""

import asyncio
import os
import termios
from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TextIO

from wave_agent.text import strip_controls

TOGETHER = 0.05
"""Seconds. Lines that arrive within this time of each other were pasted: nobody types that fast."""
LONGEST = 4095
"""Bytes of a line that a terminal passes on; it drops what follows."""

OnLines = Callable[[Sequence[str]], None]


class Teletype(NamedTuple):
    keyboard: int
    """A descriptor."""
    output: TextIO


class LineTerminal:
    """`on_lines` gets the lines that were entered together, `on_end` is called for Ctrl-D, `on_gone` when nobody is
    there any more."""

    def __init__(
        self, teletype: Teletype, *, on_lines: OnLines, on_end: Callable[[], None], on_gone: Callable[[], None]
    ) -> None:
        self._keyboard, self._output = teletype
        self._on_lines, self._on_end, self._on_gone = on_lines, on_end, on_gone
        self._encoding = self._output.encoding or "utf-8"
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._lines: list[str] = []
        self._line = ""
        self._timer: asyncio.TimerHandle | None = None
        self._prompt = ""
        self._is_gone = False

    def open(self) -> None:
        asyncio.get_running_loop().add_reader(self._keyboard, self._readable)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._keyboard)
        if self._timer is not None:
            self._timer.cancel()
        if self._prompt:
            self._write("\n")

    # ----------------------------------------------------------------------------------------------------------- output

    def say(self, text: str) -> None:
        """Writes whole lines. What the user was asked for is asked for again after them."""
        prompt = self._prompt
        self._write(("\n" if prompt else "") + f"{strip_controls(text)}\n")
        if prompt:
            self.ask_for(prompt)

    def ask_for(self, prompt: str) -> None:
        """Writes what stands in front of the user's input."""
        self._prompt = prompt
        self._write(prompt)

    def end_prompt(self) -> None:
        """Ctrl-C has ended the line that was being typed."""
        if self._prompt:
            self._prompt = ""
            self._write("\n")

    def _write(self, text: str) -> None:
        if self._is_gone:
            return
        try:
            self._output.write(text.encode(self._encoding, "replace").decode(self._encoding))
            self._output.flush()
        except (OSError, ValueError):
            self._gone()

    # ------------------------------------------------------------------------------------------------------------ input

    def forget_typed(self) -> None:
        """Drops the line being typed: it was meant for something else."""
        with suppress(termios.error):
            termios.tcflush(self._keyboard, termios.TCIFLUSH)

    def _readable(self) -> None:
        try:
            data = os.read(self._keyboard, 1 << 16)
        except BlockingIOError:
            return
        except OSError:  # the terminal was closed
            self._gone()
            return
        self._prompt = ""
        if not data:
            self._deliver()
            self._on_end()
            return
        self._line += self._decoder.decode(data)
        *complete, self._line = self._line.split("\n")
        self._lines += complete
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(TOGETHER, self._deliver)

    def _deliver(self) -> None:
        self._timer = None
        lines, self._lines = self._lines, []
        if lines:
            self._on_lines([strip_controls(line) for line in lines])

    def _gone(self) -> None:
        if not self._is_gone:
            self._is_gone = True
            asyncio.get_running_loop().remove_reader(self._keyboard)
            self._on_gone()
