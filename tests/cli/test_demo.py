"""`wave demo` as a user runs it: a real process, real hooks, nothing left behind."""

import json
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

import pytest

from wave_agent.cli.demo_project import FAKE_KEY, HOOKS

WAVE = Path(sysconfig.get_path("scripts")) / "wave"
SCENES = (
    "1. A prompt is blocked",
    "2. A dangerous command is blocked",
    "3. An input is rewritten",
    "4. Feedback after an edit",
    "5. A stop is blocked until the tests pass",
)
PROOFS = (
    "the key is not in the transcript, and the model was not called",
    "build/result.txt is still there",
    "server.log has 5,000 lines; the model got the two it needed",
    "greeting.py parses",
    "the tests pass",
)
PROGRAMS = ("sh", "grep", "tail", "head", "cat", "rm")


class Place:
    """Directories of its own for everything that a program could write to."""

    def __init__(self, root: Path) -> None:
        self.cwd, self.home, self.wave_home, self.temporary = (
            root / name for name in ("cwd", "home", "wave-home", "tmp")
        )
        for directory in (self.cwd, self.home, self.temporary):
            directory.mkdir()
        self.environment = {
            **os.environ,
            "HOME": str(self.home),
            "WAVE_HOME": str(self.wave_home),
            "TMPDIR": str(self.temporary),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        for name in ("NO_COLOR", "FORCE_COLOR", "WAVE_BASE_URL", "WAVE_MODEL", "WAVE_API_KEY", "OPENAI_API_KEY"):
            self.environment.pop(name, None)

    def demo(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return self.run([str(WAVE), "demo", *arguments], more)

    def run(self, command: list[str], more: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **more}
        return subprocess.run(
            command, cwd=self.cwd, env=environment, capture_output=True, text=True, timeout=30, check=False
        )

    def left_behind(self) -> list[str]:
        places = (self.cwd, self.home, self.wave_home, self.temporary)
        return [str(path) for place in places if place.exists() for path in place.rglob("*")]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def flat(text: str) -> str:
    """Without the wrapping of lines."""
    return " ".join(text.split())


def test_the_demo_shows_five_scenes_and_proves_each(place: Place) -> None:
    started = monotonic()
    ran = place.demo()
    assert monotonic() - started < 30
    assert (ran.returncode, ran.stderr) == (0, "")
    shown = flat(ran.stdout)
    at = [shown.index(scene) for scene in SCENES]
    assert at == sorted(at)
    for proof in PROOFS:
        assert f"so {proof}" in shown
    for name in HOOKS:
        assert name in shown


def test_the_demo_leaves_nothing_behind(place: Place) -> None:
    assert place.demo().returncode == 0
    assert place.left_behind() == []


def test_the_demo_needs_no_key_and_no_network_and_does_not_show_the_key_it_makes_up(place: Place) -> None:
    nowhere = "http://127.0.0.1:9"
    ran = place.demo(HTTP_PROXY=nowhere, HTTPS_PROXY=nowhere, WAVE_BASE_URL=nowhere)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert FAKE_KEY not in ran.stdout


def test_the_first_guard_that_the_demo_names_fails_closed_and_passes_its_cases(place: Place) -> None:
    (command,) = re.findall(r"wave (hooks new .*?)  ", place.demo().stdout)
    made = place.run([str(WAVE), *command.split(), "--yes"], {})
    assert made.returncode == 0, made.stderr
    settings = json.loads((place.cwd / ".wave" / "settings.json").read_text())
    (group,) = settings["hooks"]["PreToolUse"]
    assert [hook["onFailure"] for hook in group["hooks"]] == ["block"]
    tested = place.run([str(WAVE), "hooks", "test", "--trust", ".wave/hooks/my-guard.cases.json"], {})
    assert tested.returncode == 0, tested.stdout


def test_settings_of_the_user_have_no_part_in_the_demo(place: Place) -> None:
    place.wave_home.mkdir()
    settings = place.wave_home / "settings.json"
    settings.write_text('{"hooks": {"Stop": [{"hooks": [{"command": "echo mine >&2; exit 2"}]}]}}')
    ran = place.demo()
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "mine" not in ran.stdout
    assert place.left_behind() == [str(settings)]


def test_with_keep_the_project_stays_and_its_place_is_told(place: Place) -> None:
    ran = place.demo("--keep")
    assert ran.returncode == 0
    told = re.search(r"^The project is in (.+)$", ran.stdout, re.MULTILINE)
    assert told is not None
    project = Path(told[1])
    assert project.is_relative_to(place.temporary)
    assert {path.name for path in (project / ".wave" / "hooks").iterdir()} == set(HOOKS)
    assert all(os.access(path, os.X_OK) for path in (project / ".wave" / "hooks").iterdir())
    assert (project / ".wave" / "settings.json").is_file()
    assert (project / "greeting.py").is_file()
    assert [path for path in place.left_behind() if not path.startswith(str(place.temporary))] == []
    traced = place.run(["sh", "-c", ran.stdout.splitlines()[-1]], {"PATH": f"{WAVE.parent}:{os.environ['PATH']}"})
    assert (traced.returncode, "block" in traced.stdout) == (0, True), traced.stderr


@pytest.mark.parametrize("more", [{}, {"NO_COLOR": "1"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}], ids=str)
def test_output_that_is_no_terminal_or_wants_no_colour_has_none(place: Place, more: dict[str, str]) -> None:
    assert "\x1b" not in place.demo(**more).stdout


@pytest.mark.skipif(shutil.which("script") is None, reason="needs script(1) for a terminal")
@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)], ids=["colour", "NO_COLOR"])
def test_a_terminal_gets_bold_titles_unless_it_wants_none(place: Place, more: dict[str, str], coloured: bool) -> None:
    ran = place.run(["script", "-qec", f"'{WAVE}' demo", "/dev/null"], {"TERM": "xterm", **more})
    assert SCENES[4] in ran.stdout
    assert ("\x1b[1m" in ran.stdout) is coloured


@pytest.mark.parametrize("reader", ["head -n 1", "true"])
def test_a_reader_that_goes_away_ends_the_demo_quietly(place: Place, reader: str) -> None:
    ran = place.run(["sh", "-c", f"'{WAVE}' demo | {reader}"], {})
    assert ran.stderr == ""
    assert "Traceback" not in ran.stdout
    assert place.left_behind() == []


def test_a_closed_stdout_ends_the_demo_quietly(place: Place) -> None:
    ran = place.run(["sh", "-c", f"'{WAVE}' demo >&-"], {})
    assert "Traceback" not in ran.stderr
    assert place.left_behind() == []


def test_a_disk_that_takes_nothing_is_told_without_a_traceback(place: Place) -> None:
    place.environment = {name: value for name, value in place.environment.items() if not name.startswith("COV")}
    ran = place.run(["sh", "-c", f"ulimit -f 0; '{WAVE}' demo"], {})
    assert "Traceback" not in ran.stderr
    assert ran.stderr.startswith("wave: ")
    assert ran.returncode == 1


def test_the_demo_works_where_there_is_sh_and_no_bash(place: Place, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    ran = place.demo(PATH=str(programs))
    assert (ran.returncode, ran.stderr) == (0, "")
    for scene, proof in zip(SCENES, PROOFS, strict=True):
        assert scene in ran.stdout
        assert f"so {proof}" in flat(ran.stdout)
    assert place.left_behind() == []


def test_the_help_says_what_the_demo_does(place: Place) -> None:
    ran = place.demo("--help")
    assert ran.returncode == 0
    assert "--keep" in ran.stdout
    assert "without a key or a network" in ran.stdout


def test_an_unknown_option_is_a_usage_error(place: Place) -> None:
    ran = place.demo("--fast")
    assert ran.returncode == 2
    assert "--fast" in ran.stderr
    assert place.left_behind() == []
