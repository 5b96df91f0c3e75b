"""Finished sessions that wait to be uploaded, for a team that collects transcripts in one place.

A session that ends leaves an entry in `WAVE_HOME/outbox`. A process of its own then sends what waits there, without
anybody waiting for it: see `uploads`. What cannot be sent stays, and is tried again when a session starts or ends.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread

import msgspec
from msgspec import Struct

from wave_agent.system.credentials import without_credentials
from wave_agent.system.private_files import keep_private, write_private

DIRECTORY = "outbox"
TOKEN = "WAVE_UPLOAD_TOKEN"
"""The variable with the token that is sent as `Authorization: Bearer …`."""
_SUFFIX = ".json"
_START = "from wave_agent.sessions.uploads import main; main()"


class Waiting(Struct, frozen=True):
    """An entry: a session whose transcript has yet to be sent."""

    transcript: str
    """Relative to the directory of all transcripts."""
    tries: int = 0
    error: str = ""
    """Why the last try failed."""
    not_before: float = 0.0
    """When the next try is due, in seconds since 1970."""


def queue(home: Path, transcript: Path, tries: int = 0, error: str = "", not_before: float = 0.0) -> None:
    """Leave an entry for this session; it replaces one that is there already. Raises `OSError`."""
    keep_private(home / DIRECTORY)
    entry = Waiting(str(transcript.relative_to(home / "projects")), tries, error, not_before)
    write_private(home / DIRECTORY / f"{transcript.stem}.json", msgspec.json.encode(entry))


def is_waiting(home: Path) -> bool:
    """Whether anything waits."""
    return bool(waiting_ids(home))


def waiting_ids(home: Path) -> set[str]:
    """The sessions that wait, without a look into their entries."""
    with suppress(OSError):
        return {name.removesuffix(_SUFFIX) for name in os.listdir(home / DIRECTORY) if name.endswith(_SUFFIX)}
    return set()


def waiting(home: Path) -> dict[str, Waiting]:
    """The entries by session id. One that cannot be read is left out."""
    found: dict[str, Waiting] = {}
    with suppress(OSError):
        for file in sorted((home / DIRECTORY).glob("*.json")):
            with suppress(OSError, msgspec.MsgspecError):
                found[file.stem] = msgspec.json.decode(file.read_bytes(), type=Waiting)
    return found


def start_sending(home: Path, url: str, environment: Mapping[str, str]) -> None:
    """Start a process that sends what waits, and leave it alone. A failure to start it is the next session's problem.

    The URL goes through a pipe: it may hold a password, and a command line is public.
    """
    with suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**without_credentials(environment), **_token(environment)},
            start_new_session=True,
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps({"home": str(home), "url": url}).encode())
            process.stdin.close()
        Thread(target=process.wait, daemon=True).start()  # in a program that lives on, it must not remain a zombie


def _token(environment: Mapping[str, str]) -> dict[str, str]:
    return {TOKEN: environment[TOKEN]} if TOKEN in environment else {}
