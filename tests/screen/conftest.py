"""What the tests of the screen share."""

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("WAVE_HOME", str(home))
    return home


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    project = (tmp_path / "project").resolve()
    project.mkdir()
    return project
