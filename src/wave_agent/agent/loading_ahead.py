"""Loads what a first command needs while the model works on its first answer, so that the command need not wait."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module

_AFTER_THE_REQUEST = 0.01
"""Seconds until the request is surely sent."""
_SAMPLE = 'cd a && cat "b" | grep -n c > d'
"""Reading any line loads the grammar, and compiles what the reader uses."""
_READERS = (
    ("wave_agent.http.connections", "wave_agent.http.chunks"),
    ("wave_agent.models.client", "wave_agent.http.sse"),
    ("wave_agent.models.openai_chat", "wave_agent.models.chat_stream"),
)
"""What a client needs to read the answer, if it is the one in use."""
_MODULES = (
    *(
        "wave_agent.permissions.protected_paths",
        "wave_agent.hooks.reader",
        "wave_agent.hooks.semantics",
        "wave_agent.agent.call_results",
    ),
    "wave_agent.agent.call_batches",
    *("wave_agent.agent.call_judge", "wave_agent.agent.tool_use", "wave_agent.agent.call_stages"),
    *("tree_sitter", "tree_sitter_bash", "wave_agent.shell.grammar", "wave_agent.shell.words"),
    *("wave_agent.shell.git_commands", "wave_agent.shell.carriers", "wave_agent.shell.wrappers"),
    *("wave_agent.shell.writes", "wave_agent.shell.git", "wave_agent.shell.doubt", "wave_agent.shell.reader"),
    *("wave_agent.rules.path_patterns", "wave_agent.permissions.existing_files"),
    *("wave_agent.permissions.command_surroundings", "wave_agent.effects.network", "wave_agent.effects.git"),
    *("wave_agent.effects.programs", "wave_agent.effects.lines", "wave_agent.effects.only_reading"),
    *("wave_agent.agent.call_effects", "ctypes", "wave_agent.tools.changes.git_index"),
    *("wave_agent.tools.changes.watcher", "wave_agent.agent.file_watch", "wave_agent.tools.changes.undo"),
    *("wave_agent.tools.process", "wave_agent.tools.output", "wave_agent.tools.stray_processes"),
    *("wave_agent.sessions.touched", "wave_agent.tools.terminal"),
)
"""In an order in which none loads many others: between two of them, the event loop reads what has arrived."""


def load_ahead(prepare: Callable[[], object] = lambda: None) -> Callable[[], None]:
    """Begins to load, a step at a time, whenever the event loop has nothing else to do. Returns a call that stops it.

    `prepare` is called at the end. Nothing is lost by stopping: what is missing is loaded when it is used.
    """
    return _nothing if _MODULES[-1] in sys.modules else _Ahead(_steps(prepare)).stop


def _nothing() -> None:
    pass


class _Ahead:
    def __init__(self, steps: Iterator[None]) -> None:
        self._steps = steps
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.Handle = self._loop.call_later(_AFTER_THE_REQUEST, self._step)

    def stop(self) -> None:
        self._next.cancel()

    def _step(self) -> None:
        for _ in self._steps:
            self._next = self._loop.call_soon(self._step)
            return


def _steps(prepare: Callable[[], object]) -> Iterator[None]:
    for name in (*(reader for client, reader in _READERS if client in sys.modules), *_MODULES):
        with suppress(ImportError):  # whoever needs it says so
            import_module(name)
        yield
    from wave_agent.shell.reader import read_placed  # lazy: that is what this module is about

    with suppress(Exception):
        read_placed(_SAMPLE, {}, "/")
    yield
    with suppress(Exception):
        prepare()
    yield
