"""A session of the built-in tools, on real files and processes."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.sandboxes import Confined, Make
from tests.tools.session import Session
from tests.tools.trees import needs_rg


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session]:
    project = tmp_path / "project"
    project.mkdir()
    session = Session(project, tmp_path / "outputs", {"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    yield session
    await session.close()


@pytest.fixture(params=[pytest.param(True, marks=needs_rg, id="rg"), pytest.param(False, id="no rg")])
def searcher(request: pytest.FixtureRequest, session: Session) -> Session:
    """A session with rg, and one without."""
    if not request.param:
        session.environment = {"PATH": "/nowhere"}
    return session


@pytest.fixture
async def make(tmp_path: Path) -> AsyncGenerator[Make]:
    """Creates sessions whose commands run in a sandbox."""
    made: list[Confined] = []

    def one(**more: Any) -> Confined:
        made.append(Confined(tmp_path, **more))
        return made[-1]

    yield one
    for confined in made:
        await confined.close()
