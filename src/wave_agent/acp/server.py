"""Serves one editor until it closes stdin, or a signal ends the process."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping

from acp.connection import Connection

from wave_agent.acp.client import Editor
from wave_agent.acp.requests import EditorRequests
from wave_agent.acp.stdio import StdioTransport, take_over_stdio
from wave_agent.agent.options import Options
from wave_agent.system.processes import kill_children

SIGNALS: Mapping[signal.Signals, int] = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
LAST_ANSWERS = 1.0
"""Seconds in which a client that closed stdin can still take answers."""
Note = Callable[[str], None]


def serve(options: Options, environment: Mapping[str, str], note: Note) -> int:
    """Returns the exit status. `note` writes a line for whoever reads stderr."""
    root = logging.getLogger()
    root.addHandler(_OneLine(note))  # or the SDK's own messages would be tracebacks
    source, target = take_over_stdio()
    return asyncio.run(_serve(source, target, EditorRequests(Editor(), options, environment, note)))


async def _serve(source: int, target: int, requests: EditorRequests) -> int:
    transport = StdioTransport(source, target)
    connection = Connection(requests.handle, transport, listening=False)
    requests.editor.connect(connection)
    listening = asyncio.create_task(connection.main_loop())
    ending = _Ending(listening)
    await asyncio.wait({listening})
    await requests.close()
    await transport.settle(LAST_ANSWERS)
    await connection.close()
    return ending.status


class _Ending:
    """A signal ends the connection as the editor would; a second one ends the process."""

    def __init__(self, listening: "asyncio.Task[None]") -> None:
        self.status = 0
        self._listening = listening
        loop = asyncio.get_running_loop()
        for number, status in SIGNALS.items():
            loop.add_signal_handler(number, self._signalled, status)

    def _signalled(self, status: int) -> None:
        if self.status:
            kill_children()
            os._exit(status)
        self.status = status
        self._listening.cancel()


class _OneLine(logging.Handler):
    """A problem that the SDK reports, on one line. That the editor has gone is none."""

    def __init__(self, note: Note) -> None:
        super().__init__(logging.WARNING)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, ConnectionError):
            said = f": {type(error).__name__}: {error}" if error is not None else ""
            self._note(f"{record.getMessage()}{said}")
