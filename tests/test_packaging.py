"""What someone gets who installs the package or clones the repository."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import click
import pytest
from click.shell_completion import ShellComplete

import wave_agent
from wave_agent.cli.main import COMMANDS, CommandSource, LazyGroup, load, run
from wave_agent.errors import WaveError

ROOT = Path(__file__).resolve().parent.parent
WAVE = Path(sysconfig.get_path("scripts")) / "wave"
VERSION = wave_agent.__version__

REGISTRY_HOST = re.compile(r"\b(?:pypi|pythonhosted|npmjs|crates|rubygems)\.(?:org|com|io)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:work|root)/")


def run_process(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def run_unmeasured(code: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process that coverage stays out of, since coverage imports half of the standard library."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


# The repository


def repository_files() -> Sequence[Path]:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("only git knows which files belong to the repository")
    # A checkout that belongs to another user, as in a container, is none that this command has to fear.
    listing = run_process(
        *("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), cwd=ROOT
    )
    assert listing.returncode == 0, listing.stderr
    return [ROOT / name for name in listing.stdout.split("\0") if name]


@pytest.mark.parametrize("pattern", [REGISTRY_HOST, MACHINE_PATH], ids=["registry host", "path of one machine"])
def test_no_file_of_the_repository_names_a(pattern: re.Pattern[str]) -> None:
    found: list[str] = []
    for path in repository_files():
        if not path.is_file():
            continue
        for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    assert found == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (REGISTRY_HOST, "https://{}.org/simple".format("pypi")),
        (REGISTRY_HOST, "files.{}.org".format("pythonhosted")),
        (MACHINE_PATH, "cd /{}/main".format("work")),
        (MACHINE_PATH, "'/{}/.cache'".format("root")),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern: re.Pattern[str], text: str) -> None:
    assert pattern.search(text)


# The distributions


def test_the_wheel_holds_the_typed_package_and_the_sdist_the_conformance_cases_as_well(tmp_path: Path) -> None:
    built = run_process(sys.executable, "-m", "hatchling", "build", "-d", tmp_path, cwd=ROOT)
    assert built.returncode == 0, built.stderr

    with ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        in_wheel = set(wheel.namelist())
    own = f"wave_agent-{VERSION}"
    assert {name.split("/")[0] for name in in_wheel} == {"wave_agent", f"{own}.dist-info", f"{own}.data"}
    shared = {path.relative_to(ROOT / "share").as_posix() for path in (ROOT / "share").rglob("*") if path.is_file()}
    assert "man/man1/wave.1" in shared
    assert {name.removeprefix(f"{own}.data/data/share/") for name in in_wheel if "/data/share/" in name} == shared
    assert "wave_agent/py.typed" in in_wheel
    recipes = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/wave_agent/recipes").glob("*/*.*")}
    assert len(recipes) > 45
    assert {name for name in recipes if "__pycache__" not in name} <= in_wheel

    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as sdist:
        in_sdist = {name.partition("/")[2] for name in sdist.getnames()}
    cases = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests/conformance").rglob("*.json*")}
    assert {"LICENSE", "pyproject.toml", "src/wave_agent/__init__.py"} | cases <= in_sdist


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = {"asyncio", "click", "dataclasses", "httpcore", "msgspec", "rich", "textual"}
    process = run_unmeasured("import sys, wave_agent; print(*sys.modules)")
    assert process.returncode == 0, process.stderr
    assert heavy.isdisjoint(process.stdout.split())


# The command


def test_wave_version_names_the_version_of_the_distribution() -> None:
    process = run_process(WAVE, "--version")
    assert (process.returncode, process.stdout, process.stderr) == (0, f"wave {VERSION}\n", "")


def test_wave_version_loads_nothing_heavy() -> None:
    heavy = {"asyncio", "httpcore", "msgspec", "rich", "textual"}
    process = run_unmeasured(
        "import sys; from wave_agent.cli.main import run, wave; run(wave, ['--version']); print(*sys.modules)"
    )
    assert process.returncode == 0, process.stderr
    assert heavy.isdisjoint(process.stdout.split())


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]], ids=["--help", "-h"])
def test_wave_prints_its_usage_for(arguments: list[str]) -> None:
    process = run_process(WAVE, *arguments)
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("Usage: wave ")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ([], 'wave -p "PROMPT"'),
        (["-c"], "needs a terminal"),
        (["--output-format", "json"], "--output-format needs -p"),
    ],
    ids=["alone", "with -c", "with --output-format"],
)
def test_wave_without_a_terminal_says_what_to_do_instead(arguments: list[str], hint: str) -> None:
    process = run_process(WAVE, *arguments)
    assert (process.returncode, process.stdout) == (2, "")
    assert hint in process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["-p", "Hello."], []], ids=["--help", "-p", "alone"])
def test_the_library_of_the_screen_is_not_loaded_by_wave(arguments: list[str], tmp_path: Path) -> None:
    process = run_unmeasured(
        "import os, sys\n"
        f"os.environ |= {{'WAVE_HOME': {str(tmp_path)!r}, 'WAVE_BASE_URL': 'http://127.0.0.1:1/v1'}}\n"
        f"from wave_agent.cli.main import run, wave\nrun(wave, {arguments!r})\n"
        "print('loaded:', *sorted(sys.modules))"
    )
    loaded = process.stdout.partition("loaded: ")[2].split()
    assert "wave_agent.cli.main" in loaded, process.stderr
    assert [name for name in loaded if name.split(".")[0] in ("textual", "rich", "markdown_it", "pygments")] == []


def test_wave_with_an_unknown_command_is_a_usage_error() -> None:
    process = run_process(WAVE, "fly")
    assert process.returncode == 2
    assert "fly" in process.stderr
    assert "Traceback" not in process.stderr


def test_a_class_name_means_one_thing() -> None:
    classes: dict[str, list[str]] = {}
    for file in sorted(Path("src/wave_agent").rglob("*.py")):
        if "recipes" not in file.parts:  # each is copied and runs alone
            for name in re.findall(r"^ *class (\w+)\b[(:]", file.read_text(), re.MULTILINE):
                classes.setdefault(name, []).append(str(file))
    shared = {name: files for name, files in classes.items() if len(files) > 1}
    assert shared.keys() <= {"Input", "Arguments"}, shared


def test_the_list_of_commands_says_what_each_command_says_itself() -> None:
    listed = {name: source.summary for name, source in COMMANDS.items()}
    assert listed == {name: load(source).get_short_help_str(limit=1000) for name, source in COMMANDS.items()}


@click.command
@click.argument("ending")
def example(ending: str) -> int:
    """End as asked"""
    match ending:
        case "error":
            raise WaveError("the settings are missing; create them")
        case "interrupt":
            raise KeyboardInterrupt
        case _:
            return int(ending)


EXAMPLE = CommandSource(f"{__name__}:example", "End as asked")
ABSENT = CommandSource("wave_agent.cli.absent:command", "Cannot be imported")


@pytest.fixture
def group() -> LazyGroup:
    return LazyGroup(sources={"example": EXAMPLE, "absent": ABSENT})


@pytest.mark.parametrize(("ending", "status"), [("0", 0), ("3", 3), ("error", 1), ("interrupt", 130)])
def test_how_a_command_ended_becomes_the_exit_status(group: LazyGroup, ending: str, status: int) -> None:
    assert run(group, ["example", ending]) == status


def test_an_error_for_the_user_is_one_line_without_traceback(
    group: LazyGroup, capsys: pytest.CaptureFixture[str]
) -> None:
    run(group, ["example", "error"])
    assert capsys.readouterr() == ("", "wave: the settings are missing; create them\n")


def test_listing_commands_imports_none_of_them(group: LazyGroup, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(group, ["--help"]) == 0
    assert ABSENT.summary in capsys.readouterr().out


def test_completing_a_command_name_imports_none_of_them(group: LazyGroup) -> None:
    completions = ShellComplete(group, {}, "wave", "_WAVE_COMPLETE").get_completions([], "ab")
    assert [(item.value, item.help) for item in completions] == [("absent", ABSENT.summary)]


def test_a_command_source_has_to_lead_to_a_command() -> None:
    with pytest.raises(TypeError, match="ROOT is not a click command"):
        load(CommandSource(f"{__name__}:ROOT", ""))
