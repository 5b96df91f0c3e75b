"""The screen on a stage: a real app without a terminal, a scripted model or a real server, and what one reads on it."""

import html
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widget import Widget

from tests.waiting import until
from wave_agent import Agent
from wave_agent.agent.options import Options
from wave_agent.models.scripted import Script
from wave_agent.screen.agents import Agents
from wave_agent.screen.app import WaveApp
from wave_agent.screen.conversation import Conversation
from wave_agent.screen.entries import Entry
from wave_agent.screen.prompt import PromptBox
from wave_agent.screen.question import Question
from wave_agent.screen.status import StatusLine
from wave_agent.settings.trust import TrustStore
from wave_agent.system.project import Project
from wave_agent.testing import ScriptedModel

_TEXT = re.compile(r'<text(?![^>]*-title")[^>]*\bx="([\d.]+)"[^>]*\by="([\d.]+)"[^>]*>(.*?)</text>', re.DOTALL)
_CELL = 12.2
"""Width of a character in the library's pictures."""


def text_of(svg: str) -> str:
    """What a picture of the screen says, line by line, without fonts and colours."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in _TEXT.findall(svg):
        rows.setdefault(float(y), []).append((float(x), html.unescape(text)))
    lines: list[str] = []
    for _, row in sorted(rows.items()):
        line = ""
        for x, text in sorted(row):
            line = line.ljust(round(x / _CELL)) + text
        lines.append(line.replace("\xa0", " ").rstrip())
    return "\n".join(lines)


class Stage:
    def __init__(self, app: WaveApp, pilot: Pilot[Any], model: ScriptedModel) -> None:
        self.app = app
        self.pilot = pilot
        self.model = model

    @property
    def agent(self) -> Agent:
        return self.app.agent

    @property
    def box(self) -> PromptBox:
        return self.app.query_one(PromptBox)

    @property
    def conversation(self) -> Conversation:
        return self.app.query_one(Conversation)

    @property
    def entries(self) -> list[Widget]:
        return self.conversation.shown

    def entry(self, kind: type[Widget]) -> Any:
        """The latest of this kind."""
        return [entry for entry in self.entries if isinstance(entry, kind)][-1]

    def asks(self, kind: type[Question]) -> Question | None:
        """The question that stands there and has the keyboard."""
        return next((question for question in self.app.query(kind) if question.has_focus_within), None)

    @property
    def kinds(self) -> list[str]:
        return [type(entry).__name__ for entry in self.entries]

    def said(self, kind: type[Entry]) -> list[str]:
        return [str(entry.visual) for entry in self.entries if isinstance(entry, kind)]

    @property
    def status(self) -> str:
        return str(self.app.query_one(StatusLine).visual)

    @property
    def screen(self) -> str:
        """All that one can read at this moment."""
        return text_of(self.app.export_screenshot())

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(condition, 40)
        await self.pilot.pause()

    async def sees(self, text: str) -> None:
        """Waits until the text is on the screen."""
        try:
            await until(lambda: text in self.screen, 40)
        except AssertionError:
            raise AssertionError(f"{text!r} never came; the screen shows\n{self.screen}") from None

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        """Key by key."""
        await self.pilot.press(*(_KEYS.get(character, character) for character in text))

    async def send(self, text: str) -> None:
        """Puts a prompt there and sends it; returns at once."""
        self.box.put(text)
        await self.pilot.press("enter")

    async def idle(self) -> None:
        """Waits until the agent has nothing to do."""
        await self.until(lambda: not self.app.busy and not self.box.queued)

    async def say(self, text: str) -> None:
        await self.send(text)
        await self.idle()


_KEYS = {" ": "space", "/": "slash", "@": "at", "!": "exclamation_mark", "\n": "ctrl+j", ".": "full_stop"}


def project_settings(project: Path, settings: Mapping[str, Any]) -> None:
    file = project / ".wave" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(settings))


@asynccontextmanager
async def stage(
    project: Path,
    replies: Iterable[Script] = (),
    *,
    size: tuple[int, int] = (100, 30),
    every_hook: bool = False,
    environment: Mapping[str, str] | None = None,
    wait_for_agent: bool = True,
    **options: Any,
) -> AsyncIterator[Stage]:
    """The screen of a project. `options` are those of the agent; without `base_url` the model says `replies`."""
    home = Path(os.environ["WAVE_HOME"])
    model = ScriptedModel(replies)
    client = None if "base_url" in options else model
    remember = partial(TrustStore(home).remember_rule, str(project))
    chosen: dict[str, Any] = {"trust": True, "model_client": client, **options}
    agents = Agents(Options(workdir=project, **chosen), Project.at(str(project)), home)
    told = dict(os.environ) if environment is None else dict(environment)
    app = WaveApp(agents, remember=remember, environment=told, every_hook=every_hook)
    app.prepare()
    try:
        async with app.run_test(size=size) as pilot:
            played = Stage(app, pilot, model)
            if wait_for_agent:
                await until(lambda: app.open_agent is not None and app._running)
            await pilot.pause()
            yield played
    finally:
        await app.shut_down()


def hooks(event: str, *listed: Any, matcher: str = "") -> dict[str, Sequence[Any]]:
    return {event: [{"matcher": matcher, "hooks": list(listed)}]}
