"""The first minute: systems that cannot run Wave, and starts that need something first. Each says what to do."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wave_agent.cli.requirements import missing_requirement
from wave_agent.permissions.root_user import root_caution
from wave_agent.settings.layers import Settings
from wave_agent.workshop.doctor import user_checks

ROOT = Path(__file__).parent.parent.parent
SOURCES = ROOT / "src"
POSIX_ONLY = ("fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
WITHOUT_POSIX = f"""
import sys
for name in {POSIX_ONLY!r}:
    sys.modules[name] = None  # how Python says that there is no such module
from wave_agent.__main__ import main
sys.argv = ["wave", *sys.argv[1:]]
sys.exit(main(platform="win32"))
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WAVE_", "COV"))}
    return subprocess.run(
        command, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("words", [(), ("--version",), ("-p", "Hello."), ("guard", "run", "--timeout", "5")], ids=str)
def test_on_windows_every_command_says_how_to_use_wsl(words: tuple[str, ...], tmp_path: Path) -> None:
    ran = run(sys.executable, "-c", WITHOUT_POSIX, *words, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "not on Windows itself" in ran.stderr
    assert "wsl --install" in ran.stderr
    assert "Traceback" not in ran.stderr


def old_pythons() -> list[str]:
    """Interpreters on this machine that are too old, wherever they are installed."""
    places = [*os.environ.get("PATH", "").split(os.pathsep), *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    found = {f"python3.{minor}": shutil.which(f"python3.{minor}", path=":".join(places[::-1])) for minor in (7, 9, 10)}
    return [path for path in found.values() if path and _starts(path)]


def _starts(python: str) -> bool:
    """A version manager may offer a version that is not installed."""
    return subprocess.run([python, "-c", "pass"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not old_pythons(), reason="needs a Python older than 3.11")
def test_a_python_that_is_too_old_says_which_one_is_needed(tmp_path: Path) -> None:
    for python in old_pythons():
        for words in ((), ("--version",), ("-p", "Hello.")):
            ran = run(python, "-B", "-m", "wave_agent", *words, cwd=tmp_path, PYTHONPATH=str(SOURCES))
            assert (ran.returncode, ran.stdout) == (1, ""), python
            assert ran.stderr.startswith("wave: Wave needs Python 3.11 or newer, and this is Python 3."), ran.stderr
            assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("name", ["__init__", "__main__", "cli/__init__", "cli/requirements"])
def test_what_runs_before_the_check_has_the_syntax_of_old_pythons(name: str) -> None:
    source = (SOURCES / "wave_agent" / f"{name}.py").read_text()
    ast.parse(source, feature_version=(3, 7))


def test_the_oldest_python_is_that_of_the_package() -> None:
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text()
    assert "3.11 or newer" in missing_requirement("linux", (3, 10, 13))
    assert "Python 3.10.13" in missing_requirement("linux", (3, 10, 13))


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 1), (3, 14, 0)])
def test_nothing_is_missing_on(platform: str, version: tuple[int, ...]) -> None:
    assert missing_requirement(platform, version) == ""


def test_root_is_warned_if_nothing_would_ask() -> None:
    assert "--sandbox" in root_caution(0, "bypassPermissions", sandbox=False)
    assert root_caution(0, "bypassPermissions", sandbox=True) == ""
    assert root_caution(0, "default", sandbox=False) == ""
    assert root_caution(1000, "bypassPermissions", sandbox=False) == ""


def test_the_doctor_warns_root() -> None:
    (check,) = user_checks(0, Settings())
    assert (check.check, check.status) == ("user", "warning")
    assert "you are root" in check.detail
    assert list(user_checks(1000, Settings())) == []


@pytest.mark.parametrize("words", [(), ("-c",)], ids=["wave", "wave -c"])
def test_without_a_terminal_wave_names_the_command_that_needs_none(words: tuple[str, ...], tmp_path: Path) -> None:
    ran = run(sys.executable, "-m", "wave_agent", *words, cwd=tmp_path, WAVE_HOME=str(tmp_path / "home"))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert 'wave -p "PROMPT"' in ran.stderr


def test_without_a_model_a_prompt_names_the_command_that_chooses_one(tmp_path: Path) -> None:
    home = {"WAVE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "WAVE_LOCAL_PORTS": ""}
    ran = run(sys.executable, "-m", "wave_agent", "-p", "Hello.", cwd=tmp_path, **home)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "wave setup" in ran.stderr
    assert "Traceback" not in ran.stderr
