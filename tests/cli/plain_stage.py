"""`wave --plain` in the process of a test, on a real terminal: what a user types, and the lines that come."""

import asyncio
import fcntl
import json
import os
import pty
import re
import struct
import termios
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until
from wave_agent.agent.options import Options
from wave_agent.cli.plain.session import PlainSession
from wave_agent.cli.plain.terminal import Teletype
from wave_agent.screen.agents import Agents
from wave_agent.settings.trust import TrustStore
from wave_agent.system.project import Project
from wave_agent.testing import RecordingModelServer

NOT_PLAIN = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u2500-\u259f\u2800-\u28ff]")
"""Whatever moves the cursor, colours, draws boxes or spins. The terminal itself writes each newline with a `\\r`."""


def hook(command: str, **more: Any) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, **more}]}


GUARD = {
    **hook("grep -q '\"rm ' && { echo no rm here >&2; exit 2; } || exit 0", name="guard.sh"),
    "matcher": "Bash",
}


def open_terminal() -> tuple[int, int]:
    """The end at which the user is, and the end at which the program is."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    return master, slave


def write_settings(directory: Path, settings: Mapping[str, Any]) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "settings.json").write_text(json.dumps(settings))


class Lines:
    """A session, and everything that came to its terminal."""

    def __init__(self, session: PlainSession, master: int) -> None:
        self._session, self._master = session, master
        self._run: asyncio.Task[int] | None = None
        self._seen = 0
        self.shown = ""

    def start(self) -> None:
        asyncio.get_running_loop().add_reader(self._master, self._read)
        self._session.prepare()
        self._run = asyncio.create_task(self._session.run())

    async def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)
        if self._run is not None:
            self._run.cancel()
            await asyncio.wait({self._run})
        await self._session.shut_down()

    async def sees(self, text: str) -> None:
        """Waits until this text has come after what was last waited for."""
        try:
            await until(lambda: self._find(text) >= 0, 40)
        except AssertionError:
            raise AssertionError(f"{text!r} never came:\n{self.shown}") from None
        self._seen = self._find(text) + len(text)

    async def ends(self) -> int:
        """The exit status."""
        assert self._run is not None
        return await asyncio.wait_for(asyncio.shield(self._run), 40)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def enter(self, text: str) -> None:
        self.type(f"{text}\n")

    def end_of_input(self) -> None:
        """Ctrl-D."""
        self.type("\x04")

    def interrupt(self) -> None:
        """Ctrl-C: what the handler of its signal calls."""
        self._session.interrupt()

    def _find(self, text: str) -> int:
        return self.shown.find(text, self._seen)

    def _read(self) -> None:
        with suppress(OSError):  # that is how a terminal ends
            self.shown += os.read(self._master, 1 << 16).decode().replace("\r\n", "\n")


class Stage:
    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project, self.home = (root / "project").resolve(), root / "home"
        self.project.mkdir()
        self.requests: list[Any] = []
        monkeypatch.setenv("WAVE_HOME", str(self.home))

    def settings(self, settings: Mapping[str, Any], home: bool = True) -> None:
        write_settings(self.home if home else self.project / ".wave", settings)

    @asynccontextmanager
    async def session(
        self, replies: Sequence[Any], *, allowed: Sequence[str] = (), **options: Any
    ) -> AsyncIterator[Lines]:
        overlays = [{"permissions": {"allow": list(allowed)}}]
        master, slave = open_terminal()
        with RecordingModelServer.in_thread(replies) as server, os.fdopen(slave, "w", encoding="utf-8") as output:
            chosen = Options(
                workdir=self.project, base_url=server.base_url, model="small", overlays=overlays, **options
            )
            session = PlainSession(
                Agents(chosen, Project.at(str(self.project)), self.home),
                Teletype(slave, output),
                remember=partial(TrustStore(self.home).remember_rule, str(self.project)),
                environment=dict(os.environ),
            )
            lines = Lines(session, master)
            try:
                lines.start()
                yield lines
            finally:
                await lines.close()
                os.close(master)
                self.requests = server.requests
