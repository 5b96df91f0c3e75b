from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "project").mkdir()
    return tmp_path / "project"
