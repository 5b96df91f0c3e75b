"""What the tests of the two specifications share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.spec.world import World


@pytest.fixture
def world_without_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """An empty project, and an empty directory for what the agent keeps."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    monkeypatch.setenv("WAVE_HOME", str(home))
    return World(project.resolve(), home)


@pytest.fixture
async def world(world_without_loop: World) -> AsyncIterator[World]:
    """An empty project. Whatever agents a test makes are closed after it."""
    yield world_without_loop
    for agent in world_without_loop.agents:
        await agent.close()
