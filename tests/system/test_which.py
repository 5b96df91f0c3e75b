"""Programs are found where `shutil.which` finds them."""

import os
import shutil
from pathlib import Path

import pytest

from wave_agent.system.which import which


@pytest.mark.parametrize("name", ["here", "there", "both", "unusable", "directory", "missing", "", "one/here", "./one"])
@pytest.mark.parametrize("path", ["one:two", "two:one", "two::one", "", ":", "one:one", "missing", None])
def test_it_finds_what_shutil_finds(
    name: str, path: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, names in (("one", ("here", "both")), ("two", ("there", "both"))):
        (tmp_path / place).mkdir()
        for one in names:
            (tmp_path / place / one).touch(0o755)
    (tmp_path / "one" / "unusable").touch(0o644)
    (tmp_path / "two" / "directory").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"two{os.pathsep}one")
    assert which(name, path=path) == shutil.which(name, path=path)
    monkeypatch.delenv("PATH")
    assert which("sh") == shutil.which("sh")
