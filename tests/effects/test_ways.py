"""Ways to read a file, to change one and to reach a host: each is seen, or the effects say that they are not complete.

The ways are data, and the ways to read and to change are also run: each of them really does what it is listed for.
"""

import os
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.effects.arena import CANARY, effects, fill, surroundings
from tests.effects.matching import any_names
from tests.rows import rows

HERE = Path(__file__).parent


def read_ways(name: str) -> list[dict[str, Any]]:
    return tomllib.loads((HERE / f"{name}.toml").read_text())["way"]


READS, WRITES, HOSTS = read_ways("reads"), read_ways("writes"), read_ways("hosts")


def line_of(way: Any) -> str:
    return way["line"]


def lines(ways: list[dict[str, Any]]) -> pytest.MarkDecorator:
    """Each way is a test, in a project that it may change."""
    return pytest.mark.parametrize("way", ways, ids=line_of)


def test_there_are_many_ways() -> None:
    assert len(READS) >= 60
    assert len(WRITES) >= 60
    assert len(HOSTS) >= 40
    for table in (READS, WRITES, HOSTS):
        assert len({way["line"] for way in table}) == len(table)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = fill(tmp_path / "project")
    with tarfile.open(directory / "box.tar", "w") as archive:
        archive.add(directory / "other.txt", "victim.txt")
    return directory


@rows("way", READS, ids=line_of)
def test_a_read_is_seen(way: dict[str, Any], project: Path) -> None:
    found = effects(way["line"], surroundings(str(project)))
    seen = any_names(found.reads, f"{project}/secret.txt")
    assert seen is not way.get("unseen", False), found
    assert seen or not found.complete


@rows("way", WRITES, ids=line_of)
def test_a_write_is_seen(way: dict[str, Any], project: Path) -> None:
    found = effects(way["line"], surroundings(str(project)))
    name = "victim.txtaaaa" if way.get("prefix") else "victim.txt"
    seen = any_names((*found.writes, *found.deletes), f"{project}/{name}")
    assert seen is not way.get("unseen", False), found
    assert seen or not found.complete


@rows("way", HOSTS, ids=line_of)
def test_a_host_is_seen(way: dict[str, Any], project: Path) -> None:
    found = effects(way["line"], surroundings(str(project)))
    if way.get("unseen"):
        assert "*" in found.hosts or not found.complete
        assert "evil.example" not in found.hosts
    else:
        assert set(way.get("hosts", ["evil.example"])) <= set(found.hosts), found


def runnable(ways: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [way for way in ways if not way.get("git") and not way.get("not_run")]


def run(way: dict[str, Any], project: Path) -> str:
    first = way["line"].lstrip("<>{(: ").split()[0]
    for program in way.get("needs", []):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    home = project / "home"
    home.mkdir()
    done = subprocess.run(
        ["bash", "-c", way["line"]],
        cwd=project,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PWD": str(project), "TERM": "dumb"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    if b"command not found" in done.stderr and CANARY.encode() not in done.stderr:
        pytest.skip(f"a program is missing: {first}")
    return (done.stdout + done.stderr).decode(errors="replace")


@lines([way for way in runnable(READS) if not way.get("encoded")])
def test_the_way_reads(way: dict[str, Any], project: Path) -> None:
    assert CANARY in run(way, project)


@lines(runnable(WRITES))
def test_the_way_writes(way: dict[str, Any], project: Path) -> None:
    victim = project / "victim.txt"
    before = stamp(victim)
    output = run(way, project)
    assert stamp(victim) != before, output


def stamp(path: Path) -> tuple[object, ...] | None:
    if not path.exists():
        return None
    status = path.lstat()
    return path.read_text(errors="replace"), status.st_mtime_ns, status.st_mode, status.st_ino
