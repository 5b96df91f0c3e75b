"""What the agent is doing now: the model, and every running hook with its status message."""

from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from wave_agent.events import HookRun, HookStarted
from wave_agent.screen.plain import plain
from wave_agent.screen.sizes import elapsed
from wave_agent.text import one_line

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TICK = 0.2


class _Running(NamedTuple):
    hook: HookStarted
    since: float


class Activity(Static):
    """Hidden while idle."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(markup=False)
        self._clock = clock
        self._since: float | None = None
        self._what = ""
        self._hooks: list[_Running] = []
        self._ticks = 0
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        self._timer = self.set_interval(TICK, self._tick, pause=True)
        self._draw()

    @property
    def working(self) -> bool:
        return self._since is not None

    def begin(self, what: str) -> None:
        self._since, self._what = self._clock(), what
        self._draw()

    def tell(self, what: str) -> None:
        """Rename the current activity."""
        self._what = what
        self._draw()

    def end(self) -> None:
        self._since = None
        self._draw()

    def hook_started(self, hook: HookStarted) -> None:
        self._hooks.append(_Running(hook, self._clock()))
        self._draw()

    def hook_finished(self, run: HookRun) -> None:
        """Ends the oldest matching run: two runs of one hook cannot be told apart."""
        key = (run.event, run.name, run.tool_use_id)
        for at, running in enumerate(self._hooks):
            if (running.hook.event, running.hook.name, running.hook.tool_use_id) == key:
                del self._hooks[at]
                break
        self._draw()

    def forget_hooks(self) -> None:
        self._hooks.clear()
        self._draw()

    def _tick(self) -> None:
        self._ticks += 1
        self._draw()

    def _draw(self) -> None:
        busy = self._since is not None or bool(self._hooks)
        self.display = busy
        if self._timer is not None:
            self._timer.resume() if busy else self._timer.pause()
        if busy:
            self.update(Content("\n").join([*self._work(), *map(self._hook, self._hooks)]))

    def _work(self) -> list[Content]:
        if self._since is None:
            return []
        glyph = SPINNER[self._ticks % len(SPINNER)]
        time = elapsed(self._clock() - self._since)
        what = plain(f"{glyph} {one_line(self._what, 60)} ", "$text-accent")
        return [Content.assemble(what, plain(f"{time} · Esc interrupts", "$muted"))]

    def _hook(self, running: _Running) -> Content:
        hook = running.hook
        said = f": {one_line(hook.status_message, 80)}" if hook.status_message else ""
        time = elapsed(self._clock() - running.since)
        return Content.assemble(
            plain("  ↪ hook ", "$muted"),
            plain(one_line(hook.name, 50), "bold"),
            plain(f" on {hook.event}{said}"),
            plain(f"  {time}", "$muted"),
        )
