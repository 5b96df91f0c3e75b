"""How fast the screen responds to a key while an answer streams into a long conversation.

The baseline is the same key in an empty conversation, in the same run.
"""

import asyncio
import os
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from textual import events

from benchmarks.measure import Claim, in_floors
from wave_agent.agent.options import Options
from wave_agent.messages import Message, MessageAdded, PromptAccepted, PromptAdded, TextBlock, ToolBlock, ToolUpdated
from wave_agent.screen import garbage_collection
from wave_agent.screen.agents import Agents
from wave_agent.screen.app import WaveApp
from wave_agent.screen.prompt import PromptInput
from wave_agent.sessions.recorder import FileSessionStore, Recorder, transcript_file
from wave_agent.system.project import Project
from wave_agent.testing import ScriptedModel

MESSAGES = 500
MANY_MESSAGES = 10_000
FIRST_DRAW = 5.0
"""The first draw of the long session, as a multiple of that of an empty one: its transcript has to be read."""
TOKENS = 20_000
KEYS = 60
LIMIT = 100_000.0
"""Microseconds: what a person perceives as immediate."""
PARAGRAPH = (
    "Some words about **the parser**, which reads `tokens` one by one and keeps\nwhat it has seen.\n\n"
    "- one thing\n- another thing\n\n```python\ndef parse(text):\n    return text.split()\n```\n\n"
)


def long_answer() -> str:
    """About `TOKENS` tokens, if a word is one."""
    return PARAGRAPH * (TOKENS // len(PARAGRAPH.split()))


def long_session(home: Path, project: str, messages: int = MESSAGES) -> str:
    """A transcript with so many messages, including calls."""
    store = FileSessionStore(transcript_file(home, project, "long"))
    recorder = Recorder(store, session_id="long", project_dir=project)
    recorder.start()
    for number in range(messages // 2):
        recorder.change(PromptAdded(f"Question {number}"))
        recorder.change(PromptAccepted(f"Question {number}"))
        call = ToolBlock(f"call-{number}", "Bash", {"command": "make test"}, "ok\n" * 5, True)
        recorder.change(MessageAdded(Message("assistant", (TextBlock(PARAGRAPH * 2, "model"), call))))
        recorder.change(ToolUpdated(call))
    store.close()
    return "long"


def waited_for_a_core() -> float:
    """Seconds in which this thread was ready but another process had the core: not the screen's fault.

    Only Linux reports this; on other systems the machine should be idle.
    """
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


async def key(app: WaveApp, field: PromptInput) -> float:
    """Seconds from a key press, as reported by a terminal, until the letter is drawn."""
    before = len(field.text)
    drawn = asyncio.Event()
    started = perf_counter() - waited_for_a_core()
    app.post_message(events.Key("x", "x"))
    while len(field.text) == before:  # noqa: ASYNC110 - there is no event for it, and waiting must cost nothing
        await asyncio.sleep(0.0005)
    field.call_after_refresh(drawn.set)
    await drawn.wait()
    return perf_counter() - waited_for_a_core() - started


async def measure(directory: Path) -> tuple[list[float], list[float]]:
    """The keys in an empty conversation, and those in the long one while it grows."""
    home, project = _places(directory)
    quiet: list[float] = []
    busy: list[float] = []
    for resume, answer, times in ((None, "", quiet), (long_session(home, project), long_answer(), busy)):
        app = _app(home, project, resume, answer)
        async with app.run_test(size=(120, 40)) as pilot:
            field = app.query_one(PromptInput)
            if answer:
                field.text = "Go."
                await pilot.press("enter")
            while len(times) < KEYS or app.busy:
                times.append(await key(app, field))
                await asyncio.sleep(0.02)
        await app.shut_down()
    return quiet, busy


async def resume(directory: Path) -> tuple[list[float], list[float], list[float]]:
    """Until an empty session is drawn, until one of 10,000 messages is, and the keys between scrolls there."""
    home, project = _places(directory)
    session = long_session(home, project, MANY_MESSAGES)
    empty: list[float] = []
    long: list[float] = []
    keys: list[float] = []
    for _ in range(3):
        for name, times in ((None, empty), (session, long)):
            started = perf_counter() - waited_for_a_core()
            app = _app(home, project, name, "")
            async with app.run_test(size=(120, 40)) as pilot:
                drawn = asyncio.Event()
                app.call_after_refresh(drawn.set)
                await drawn.wait()
                times.append(perf_counter() - waited_for_a_core() - started)
                field = app.query_one(PromptInput)
                for press in range(KEYS if name else 0):
                    await pilot.press("ctrl+home" if press == KEYS // 2 else "pageup")
                    keys.append(await key(app, field))
            await app.shut_down()
    return empty, long, keys


def _places(directory: Path) -> tuple[Path, str]:
    home, project = directory / "home", str((directory / "project").resolve())
    os.makedirs(project)
    os.environ["WAVE_HOME"] = str(home)
    return home, project


def _app(home: Path, project: str, resume: str | None, answer: str) -> WaveApp:
    options = Options(workdir=project, model_client=ScriptedModel([answer]), trust=True, resume=resume)
    app = WaveApp(
        Agents(options, Project.at(project), home),
        remember=lambda _: None,
        environment=dict(os.environ),
        idle=garbage_collection.tidy,
    )
    app.prepare()
    garbage_collection.settle()
    return app


def _worst(times: list[float]) -> float:
    """The 99th percentile, in microseconds."""
    return sorted(times)[int(len(times) * 0.99)] * 1e6


def claims() -> list[Claim]:
    with tempfile.TemporaryDirectory() as directory:
        quiet, busy = asyncio.run(measure(Path(directory)))
    with tempfile.TemporaryDirectory() as directory:
        empty, long, keys = asyncio.run(resume(Path(directory)))
    floor = median(quiet) * 1e6
    limits = {"unit": "µs", "limit": LIMIT, "floor_name": "a key in an empty screen", "floor": floor}
    streaming = f"key press while {TOKENS:,} tokens stream, 99th percentile"
    scrolling = f"key press in {MANY_MESSAGES:,} messages, 99th percentile"
    return [
        Claim(name=streaming, value=_worst(busy), **limits),
        Claim(name=scrolling, value=_worst(keys), **limits),
        in_floors(
            f"first draw of {MANY_MESSAGES:,} messages",
            [one * 1e3 for one in long],
            [one * 1e3 for one in empty],
            FIRST_DRAW,
            floor_name="of an empty session",
        ),
    ]
