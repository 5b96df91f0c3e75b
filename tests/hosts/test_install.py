"""Installing hosts. Nothing is downloaded here."""

from pathlib import Path

import pytest

from tests.hosts.install import install, packages, platform_name


def test_a_host_that_cannot_be_installed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    for name, needed in (("codex", "npm"), ("kimi", "Python 3.12 or newer")):
        found = install(name, tmp_path / "cache")
        assert found.program == ()
        assert found.trouble == f"{needed} is needed to install it"


def test_what_is_there_is_used_as_it_is(tmp_path: Path) -> None:
    version = packages()["claude"].version
    program = tmp_path / f"claude-{version}/node_modules/@anthropic-ai/claude-code-{platform_name()}/claude"
    (tmp_path / f"claude-{version}").mkdir()
    assert "has no node_modules" in install("claude", tmp_path).trouble
    program.parent.mkdir(parents=True)
    program.touch()
    assert install("claude", tmp_path).program == (str(program),)
