"""Servers, and one process that speaks to them for all tests of a file, since loading it takes most of a second."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.configuration import Place
from wave_agent.hooks.definitions import Layer
from wave_agent.mcp.host import SdkHost
from wave_agent.mcp.values import McpResult, Server, ServerEntry, ServerTransport

SERVERS = Path(__file__).parent / "servers"
ENVIRONMENT = {"PATH": os.environ["PATH"], "OF_ITS_OWN": "yes"}


def stdio(*arguments: str, name: str = "", directory: str = "/", timeout: float = 20) -> Server:
    """The hostile server, in an era and with faults."""
    entry = ServerEntry(
        transport=ServerTransport.STDIO,
        command=sys.executable,
        args=(str(SERVERS / "hostile.py"), *arguments),
        timeout=timeout,
    )
    return server(entry, name=name or "-".join(arguments), directory=directory)


def server(entry: ServerEntry, *, name: str = "remote", directory: str = "/") -> Server:
    return Server(
        name=name, entry=entry, layer=Layer.USER, source="settings.json", environment=ENVIRONMENT, directory=directory
    )


def text_of(result: McpResult) -> Any:
    return result.content[0]["text"]


def new_host(home: Path, **more: Any) -> SdkHost:
    environment = {**os.environ, "ANTHROPIC_API_KEY": "sk-secret"}
    return SdkHost(**{"home": home, "session_id": "s-1", "environment": environment, "roots": ["/work"], **more})


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SdkHost]:
    host = new_host(tmp_path_factory.mktemp("home"))
    host.begin()
    yield host
    asyncio.run(host.close())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[], Place]:
    """A new place for each row of a table."""
    numbers = count()
    return lambda: Place(tmp_path / f"row-{next(numbers)}")
