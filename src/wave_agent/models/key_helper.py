"""`apiKeyHelper`: a command of the user that prints the key."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping
from tempfile import TemporaryFile
from typing import BinaryIO

from wave_agent.errors import ModelError
from wave_agent.system.threads import Delivery, Mailbox, start_in_thread
from wave_agent.text import one_line

_SECONDS = 60.0
"""A helper may ask the user to log in."""
_LONGEST = 16 << 10
"""Bytes of a key."""


class KeyHelper:
    """Runs the command when a key is needed for the first time, and again when the server refuses that key."""

    def __init__(self, command: str, environment: Mapping[str, str], *, seconds: float = _SECONDS) -> None:
        self._command = command
        self._environment = environment
        self._seconds = seconds
        self._known = ""
        self._lock = asyncio.Lock()

    async def key(self, refused: str = "") -> str:
        async with self._lock:  # several requests at once ask once
            if not self._known or self._known == refused:
                self._known = await self._printed()
            return self._known

    async def _printed(self) -> str:
        # In a thread of its own: whatever the helper does, the program can be interrupted and ended.
        answer = Delivery[str | ModelError](asyncio.get_running_loop(), Mailbox())

        def ask() -> None:
            try:
                answer.send(self._run())
            except ModelError as error:
                answer.send(error)
            except Exception as error:
                answer.send(_failed(f"could not be run: {error}"))

        start_in_thread(ask)
        found = await answer.wait()
        if isinstance(found, ModelError):
            raise found
        return found

    def _run(self) -> str:
        # Files and not pipes: what the helper leaves running, such as an agent for keys, may keep them open for hours.
        with TemporaryFile() as out, TemporaryFile() as err:
            process = subprocess.Popen(
                self._command,
                shell=True,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            try:
                status = process.wait(self._seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise _failed(f"printed no key within {self._seconds:g} s") from None
            printed, said = _read(out), _read(err)
        if status != 0:
            # With `set -x`, a helper shows what it handles: the lines with a plus.
            said = one_line("\n".join(line for line in said.splitlines() if not line.startswith("+")), 300)
            raise _failed(f"ended with status {status}{said and f': {said}'}")
        key = printed.strip()
        if not key or len(key.split()) != 1 or len(printed) > _LONGEST:
            raise _failed("must print the key and nothing else")
        return key


def _read(file: BinaryIO) -> str:
    file.seek(0)
    return file.read(_LONGEST + 1).decode(errors="replace")


def _failed(how: str) -> ModelError:
    return ModelError(f"The command in the setting apiKeyHelper {how}.")
