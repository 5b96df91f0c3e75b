"""Names of existing files that become several words."""

import re
from pathlib import Path

import pytest

from tests.rows import rows
from wave_agent.permissions.command_surroundings import splits
from wave_agent.permissions.split_names import names_that_split

BLANKS = r"\s"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name in ("a b/key", "a b/other", "deep/er/c d", "deep/-x", "-r", ".git/e f", "plain"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "way").symlink_to("deep/er")
    (tmp_path / "deep" / "back").symlink_to("..")
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    return tmp_path


@rows(
    ("pattern", "found"),
    [
        ("**", ["-r", ".git/e f", "a b", "a b/key", "a b/other", "deep/er/c d"]),
        ("**/key", ["a b/key"]),
        ("*", ["-r", "a b"]),
        ("*/*", ["a b/key", "a b/other"]),
        ("[!.]*/**/c d", ["deep/er/c d"]),
        ("deep/**", ["deep/-x", "deep/er/c d"]),
        ("way/*", ["way/c d"]),
        ("plain", []),
        ("-r", ["-r"]),
        ("nowhere/**", []),
        ("[z-a]", []),
    ],
)
def test_names_below_a_directory(pattern: str, found: list[str], directory: Path) -> None:
    names = names_that_split([f"{directory}/{pattern}"], BLANKS) or []
    own = [one for one in names if pattern.startswith("way") or not re.search("/way/|/back/", one)]
    assert sorted(own) == [f"{directory}/{one}" for one in found]


def test_several_patterns_are_looked_for_together(directory: Path) -> None:
    patterns = [f"{directory}/a*/key", f"{directory}/deep/**", f"{directory}/*/other"]
    found = names_that_split(patterns, BLANKS) or []
    assert {one.rpartition("/")[2] for one in found} >= {"key", "other", "c d", "-x"}


def test_too_many_entries_or_names_are_not_looked_at(directory: Path) -> None:
    assert names_that_split([f"{directory}/**"], BLANKS, most=3) is None
    for at in range(60):
        (directory / f"x {at}").touch()
    assert names_that_split([f"{directory}/**"], BLANKS) is None
    assert splits([f"{directory}/**"], BLANKS) is None


def test_whether_there_is_any(directory: Path) -> None:
    assert splits([f"{directory}/**/key"], BLANKS) is True
    assert splits([f"{directory}/**/none"], BLANKS) is False
