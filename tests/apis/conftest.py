"""Agents that speak any of the APIs with a strict server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent
from wave_agent.models.apis import APIS, PROVIDERS
from wave_agent.testing.model_server import RecordingModelServer

Opening = Callable[..., Any]


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def open_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opening:
    """`await open_agent(server, api=…)`: an agent in an empty project, which asks that server."""
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    for name in [variable for one in PROVIDERS for variable in (*one.keys, one.url_variable)]:
        monkeypatch.delenv(name, raising=False)
    project = tmp_path / "project"
    project.mkdir()

    async def opened(server: RecordingModelServer, **options: Any) -> Agent:
        given: dict[str, Any] = {
            "model": "m",
            "permission_mode": "bypassPermissions",
            "api_key": "secret-key",
        } | options
        return await Agent.create(workdir=project, base_url=server.base_url, setting_sources=[], **given)

    return opened
