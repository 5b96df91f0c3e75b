"""Plays the recorded session of the screen in a terminal, or prints what it shows."""

import os
import sys
import termios
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from time import monotonic
from typing import Protocol

import click
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style

from wave_agent.cli.recording import Row, ScreenRecording, demo_recording, plain
from wave_agent.errors import WaveError

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"
_LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"
_SYSTEMS = {
    "standard": ColorSystem.STANDARD,
    "256": ColorSystem.EIGHT_BIT,
    "truecolor": ColorSystem.TRUECOLOR,
    "windows": ColorSystem.WINDOWS,
}

Sleep = Callable[[float], None]


class WritesText(Protocol):
    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...


def play_demo(size: tuple[int, int], sleep: Sleep) -> int:
    """Returns the exit status. Without a terminal that can move its cursor, the screen at the end of each scene is
    printed."""
    recording = demo_recording()
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        click.echo("\n".join(printed(recording)))
        return 0
    if size[0] < recording.width or size[1] < recording.height:
        wanted, here = f"{recording.width}×{recording.height}", f"{size[0]}×{size[1]}"
        raise WaveError(
            f"The recording needs a terminal of at least {wanted} characters, and this one has {here}: enlarge it, or "
            "read the recording: wave demo --screen | cat"
        )
    with _without_echo():
        play(recording, sys.stdout, sleep, _SYSTEMS.get(Console().color_system or ""))
    click.echo("That was a recording. The same hooks at work now, in the terminal's own text: wave demo")
    click.echo("Your own session: wave setup, then wave")
    return 0


@contextmanager
def _without_echo() -> Generator[None]:
    """Keys that are pressed meanwhile neither appear nor reach the shell afterwards. Ctrl-C still works."""
    keyboard = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
    if keyboard is None:
        yield
        return
    before = termios.tcgetattr(keyboard)
    quiet = [*before]
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(keyboard, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSAFLUSH, before)


def play(recording: ScreenRecording, terminal: WritesText, sleep: Sleep, colors: ColorSystem | None) -> None:
    """On the terminal's second screen, which is left whatever happens."""
    began = monotonic()
    terminal.write(_ENTER)
    try:
        for frame in recording.frames:
            terminal.flush()
            sleep(max(0.0, began + frame.at - monotonic()))
            for number, row in frame.rows.items():
                terminal.write(f"\x1b[{number + 1};1H{_styled(row, recording, colors)}")
    finally:
        terminal.write(_LEAVE)
        terminal.flush()


def printed(recording: ScreenRecording) -> Iterator[str]:
    """The screen at the end of each scene, as lines of text."""
    screens = list(recording.screens())
    for number, scene in enumerate(recording.scenes, 1):
        yield from ("" if number > 1 else "A recorded session of the screen.\n", f"{number}. {scene.title}", "")
        lines = [plain(row) for row in screens[scene.last]]
        first = next((at for at, line in enumerate(lines) if line), 0)
        yield from lines[first:]


def _styled(row: Row, recording: ScreenRecording, colors: ColorSystem | None) -> str:
    """Without a colour system, as with NO_COLOR, only the text."""
    return "".join(
        text if colors is None else _style(recording.styles[style]).render(text, color_system=colors)
        for style, text in row
    )


@cache
def _style(name: str) -> Style:
    return Style.parse(name)
