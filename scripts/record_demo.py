"""Records a session of the real screen: the project and the hooks of `wave demo`, and its scripted model."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic

from rich.style import Style
from textual.strip import Strip

from tests.screen.stage import Stage, stage
from wave_agent.cli.demo_project import scenes, write_project
from wave_agent.cli.recording import Frame, Piece, RecordedScene, Row, ScreenRecording
from wave_agent.models.base import Delta, ModelRequest, Text
from wave_agent.models.scripted import ScriptedModel

SIZE = (80, 24)
SHOWN = (1, 3, 4)
"""The scenes of the demo that are recorded: a command is blocked, feedback after an edit, a stop is blocked."""
KEY = 0.05
"""Seconds between two key presses."""
WORD = 0.04
THINKING = 0.6
READING = 3.0
"""Seconds after each scene."""
LONGEST = 1.2
"""Seconds that nothing changes, at most, except after a scene."""


class Paced(ScriptedModel):
    """Streams at the speed of a real model."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        await asyncio.sleep(THINKING)
        async for delta in super().stream(request):
            if isinstance(delta, Text):
                await asyncio.sleep(WORD)
            yield delta


class Recorder:
    """Looks at the screen again and again, and keeps what has changed."""

    def __init__(self, on: Stage) -> None:
        self._on = on
        self._session = on.agent.session_id[:8]  # differs between runs
        self._styles: dict[str, int] = {}
        self._last: list[Row] = [()] * SIZE[1]
        self._clock = 0.0
        self._looked = monotonic()
        self.frames: list[Frame] = []
        self.scenes: list[RecordedScene] = []

    def look(self) -> None:
        now = monotonic()
        rows = [self._row(strip) for strip in self._on.app.screen._compositor.render_strips()]
        changed = {number: row for number, row in enumerate(rows) if row != self._last[number]}
        if changed:
            self._clock += min(now - self._looked, LONGEST) if self.frames else 0.0
            self._looked = now
            self._last = list(rows)
            self.frames.append(Frame(round(self._clock, 3), changed))

    async def watch(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(0.03)

    def end_scene(self, title: str) -> None:
        self.look()
        self.scenes.append(RecordedScene(title, len(self.frames) - 1))
        self._clock += READING
        self._looked = monotonic()

    def recording(self) -> ScreenRecording:
        last = Frame(round(self._clock, 3), {})  # the last scene is shown as long as the others
        return ScreenRecording(*SIZE, list(self._styles), [*self.frames, last], self.scenes)

    def _row(self, strip: Strip) -> Row:
        pieces: list[Piece] = []
        for segment in strip.simplify():
            if segment.control:
                continue
            name = str(_visible(segment.style or Style.null()))
            text = segment.text.replace(self._session, "1f0c2d3e")
            pieces.append((self._styles.setdefault(name, len(self._styles)), text))
        return tuple(pieces)


def _visible(style: Style) -> Style:
    """Without links and what only the program knows."""
    return Style(
        color=style.color,
        bgcolor=style.bgcolor,
        bold=style.bold,
        dim=style.dim,
        italic=style.italic,
        underline=style.underline,
        strike=style.strike,
        reverse=style.reverse,
    )


async def record(project: Path) -> ScreenRecording:
    write_project(project)
    shown = [scenes(project)[number] for number in SHOWN]
    model = Paced([reply for scene in shown for reply in scene.script])
    settings = {"models": {"scripted": {"contextWindow": 65536}}}
    options = {"model_client": model, "model": "scripted", "permission_mode": "acceptEdits"}
    async with stage(project, size=SIZE, overlays=(settings,), **options) as on:
        recorder = Recorder(on)
        watching = asyncio.create_task(recorder.watch())
        await asyncio.sleep(THINKING)
        for scene in shown:
            for character in scene.prompt:
                await on.type(character)
                await asyncio.sleep(KEY)
            await on.press("enter")
            await on.idle()
            recorder.end_scene(scene.title)
        watching.cancel()
        return recorder.recording()
