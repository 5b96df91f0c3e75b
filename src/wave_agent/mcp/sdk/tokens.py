"""OAuth tokens in a private file, one record for each server and its URL: no other server ever gets them."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from wave_agent.mcp.values import Server
from wave_agent.system.private_files import STORED_LOGINS, make_private, open_private, write_private


class _Tokens(Struct, kw_only=True):
    version: int = 1
    servers: dict[str, dict[str, Any]] = {}


class TokenFile:
    """`WAVE_HOME/mcp-tokens.json`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._file = home / STORED_LOGINS

    def read(self, server: Server) -> dict[str, Any]:
        """The record of a server; empty if there is none."""
        return self._records().get(_key(server), {})

    def update(self, server: Server, **changes: Any) -> None:
        with self._locked():
            records = self._records()
            records[_key(server)] = {**records.get(_key(server), {}), **changes}
            write_private(self._file, msgspec.json.encode(_Tokens(servers=records)))

    def _records(self) -> dict[str, dict[str, Any]]:
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(self._file.read_bytes(), type=_Tokens).servers
        return {}

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Sessions may refresh tokens at the same time."""
        make_private(self._home)
        descriptor = open_private(self._home / f".{STORED_LOGINS}.lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _key(server: Server) -> str:
    return f"{server.name} {server.entry.url}"
