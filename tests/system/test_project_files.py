"""The door to what is read from a project unasked."""

import os
import socket
from pathlib import Path

import pytest

from wave_agent.permissions.decision import Rules
from wave_agent.permissions.hard_links import MOST, OtherNames, other_names, places_of, why_unread
from wave_agent.rules.rule import Places, parse_rule
from wave_agent.system.project_files import NotReadError, read_project_file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key").write_text("secret")
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def read(root: Path, name: str, limit: int = 100) -> bytes | None:
    return read_project_file(str(root / name), str(root), limit)


def test_a_link_inside_the_project_is_followed_and_one_that_leads_out_is_not(root: Path) -> None:
    (root / "CLAUDE.md").write_text("Use tabs.")
    (root / "AGENTS.md").symlink_to("CLAUDE.md")
    assert read(root, "AGENTS.md") == b"Use tabs."
    for name, target in {"a": "../outside/key", "b": str(root.parent / "outside" / "key"), "c": "/dev/zero"}.items():
        (root / name).symlink_to(target)
        with pytest.raises(NotReadError, match="leads out of the project"):
            read(root, name)
    (root / "directory").symlink_to("../outside")
    with pytest.raises(NotReadError, match="leads out of the project"):
        read(root, "directory/key")


def test_only_regular_files_are_read(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(root / "socket"))
    (root / "loop").symlink_to("loop")
    (root / "directory").mkdir()
    for name in ("pipe", "socket", "loop", "directory"):
        with pytest.raises(NotReadError, match=r"not a regular file|cannot be read"):
            read(root, name)
    assert read(root, "none") is None
    (root / "dangling").symlink_to("none")
    assert read(root, "dangling") is None


def test_what_is_too_large_is_refused_or_cut(root: Path) -> None:
    (root / "big").write_bytes(b"x" * 3000)
    with pytest.raises(NotReadError, match="is larger than 2 KiB"):
        read(root, "big", 2048)
    assert read_project_file(str(root / "big"), str(root), 2048, whole=False) == b"x" * 2048


def rules(*texts: str) -> Rules:
    return Rules(deny=tuple(map(parse_rule, texts)))


@pytest.mark.parametrize("rule", ["Read(.env)", "Read(secrets/**)", "Read(//SECRETS/key)", "Read(**/key)"])
def test_a_rule_keeps_a_file_from_being_read_by_any_of_its_names(root: Path, rule: str) -> None:
    places = Places(str(root), "/nobody")
    rule = rule.replace("/SECRETS", str(root / "secrets"))
    (root / "secrets").mkdir()
    denied = root / (".env" if ".env" in rule else "secrets/key")
    denied.write_text("secret")
    os.link(denied, root / "AGENTS.md")
    (root / "CLAUDE.md").write_text("fine")
    os.link(root / "CLAUDE.md", root / "copy.md")
    for name, told in {"AGENTS.md": f"permission rule {rule}", "CLAUDE.md": None}.items():
        why = why_unread(rules(rule), places, str(root / name), (root / name).stat())
        assert (why or "").endswith(told or "")
        assert (why is None) is (told is None)


def test_a_rule_for_all_of_read_is_about_the_tool(root: Path) -> None:
    (root / "AGENTS.md").write_text("x")
    places = Places(str(root), "/nobody")
    assert why_unread(rules("Read"), places, str(root / "AGENTS.md"), (root / "AGENTS.md").stat()) is None


def test_the_search_for_other_names_is_bounded_and_says_so(root: Path) -> None:
    (root / "x").write_text("x")
    os.link(root / "x", root.parent / "y")
    for number in range(20):
        (root / str(number)).touch()
    facts = (root / "x").stat()
    assert other_names(facts, [str(root)]) == OtherNames((str(root / "x"),))
    assert other_names(facts, [str(root)], most=10).complete is False
    assert other_names(facts, [str(root), str(root.parent)], most=MOST).complete
    assert set(other_names(facts, [str(root.parent)]).names) == {str(root / "x"), str(root.parent / "y")}
    assert other_names((root / "1").stat(), [str(root)]) == OtherNames()
    places = Places(str(root), "/nobody")
    big = "Read(//**/id_rsa)"
    assert places_of([parse_rule(big)], places) == ("/",)
