"""The existing files that deny rules name."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from wave_agent.errors import SandboxError
from wave_agent.permissions.denied_files import DeniedFiles
from wave_agent.rules.rule import Places, below, parse_rule


class Tree:
    def __init__(self, root: Path) -> None:
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir()
        self.home.mkdir()

    def put(self, *names: str) -> None:
        for name in names:
            file = self.project / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()

    def files(self, *rules: str, **limits: Any) -> DeniedFiles:
        places = Places(str(self.project), str(self.home))
        return DeniedFiles([parse_rule(text) for text in rules], places, kept=[str(self.project)], **limits)

    def found(self, *rules: str, **limits: Any) -> list[str]:
        """Relative to the project."""
        return [os.path.relpath(path, self.project) for path in self.files(*rules, **limits).find().paths]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("Read(.env)", [".env", "a/.env", "a/.hidden/.env"]),
        ("Read(./.env)", [".env", "a/.env", "a/.hidden/.env"]),
        ("Read(/.env)", [".env"]),
        ("Read(a/.env)", ["a/.env"]),
        ("Read(a/*.key)", ["a/1.key", "a/2.key"]),
        ("Read(a/**)", ["a"]),
        ("Read(a/*)", ["a"]),
        ("Read(a/)", ["a", "b/a"]),
        ("Read(a)", ["a", "b/a"]),
        ("Read(**/a/**)", ["a", "b/a"]),
        ("Read(**)", ["."]),
        ("Read(*)", ["."]),
        ("Read(*.key)", ["a/1.key", "a/2.key", "b/a/3.key"]),
        ("Read(~/key)", ["../home/key"]),
        ("Read(~/**)", ["../home"]),
        ("Read(missing)", []),
        ("Read(missing/**)", []),
        ("Read(a/?.key)", ["a/1.key", "a/2.key"]),
        ("Read([.]env)", [".env", "a/.env", "a/.hidden/.env"]),
        ("Read", []),
    ],
)
def test_what_a_rule_names(tree: Tree, rule: str, found: list[str]) -> None:
    tree.put(".env", "a/.env", "a/.hidden/.env", "a/1.key", "a/2.key", "b/a/3.key", "b/other", "../home/key")
    assert tree.found(rule) == found


def test_a_directory_stands_for_what_is_below_it(tree: Tree) -> None:
    tree.put("a/.env", "a/b/.env", ".env")
    assert tree.found("Read(.env)", "Read(a/**)") == [".env", "a"]


def test_a_rule_of_a_subdirectory_means_both_places(tree: Tree) -> None:
    tree.put("sub/secret/key", "secret/key", "other/secret/key")
    rule = below(parse_rule("Read(secret/key)"), "sub")
    files = DeniedFiles([rule], Places(str(tree.project), str(tree.home)), kept=[str(tree.project)])
    assert [os.path.relpath(path, tree.project) for path in files.find().paths] == ["secret/key", "sub/secret/key"]


def test_where_the_project_is_a_link(tree: Tree, tmp_path: Path) -> None:
    tree.put("a/key")
    (tmp_path / "link").symlink_to(tree.project)
    files = DeniedFiles([parse_rule("Read(a/key)")], Places(str(tmp_path / "link"), "/nowhere"), kept=[])
    assert files.find().paths == (str(tree.project / "a" / "key"),)


class TestLinks:
    def test_a_link_stands_for_its_target(self, tree: Tree) -> None:
        tree.put("target", "../outside")
        (tree.project / ".env").symlink_to("target")
        (tree.project / "x.key").symlink_to("../outside")
        assert tree.found("Read(.env)", "Read(*.key)") == ["../outside", "target"]

    def test_links_to_directories_are_followed(self, tree: Tree) -> None:
        tree.put("../outside/deep/.env")
        (tree.project / "link").symlink_to("../outside")
        assert tree.found("Read(.env)") == ["../outside/deep/.env"]

    @pytest.mark.parametrize("target", [".", "..", "loop", "missing", "/"])
    def test_loops_and_long_ways_end(self, tree: Tree, target: str) -> None:
        tree.put("a/.env")
        (tree.project / "a" / "loop").symlink_to(target)
        assert "a/.env" in tree.found("Read(.env)")

    def test_a_link_around_the_project_is_not_denied_as_a_whole(self, tree: Tree) -> None:
        tree.put("file")
        (tree.project / "current").symlink_to(".")
        found = tree.files("Read(current)").find()
        assert found.paths == ()
        assert "which a link leads to" in found.notes[0]

    def test_other_names_of_a_file_are_denied_too(self, tree: Tree) -> None:
        tree.put(".env", "keys/a", "other/x")
        os.link(tree.project / ".env", tree.project / "other" / "innocent")
        os.link(tree.project / "keys" / "a", tree.project / "copy")
        os.link(tree.project / "other" / "x", tree.project / "unrelated")
        assert tree.found("Read(.env)", "Read(keys/**)") == [".env", "copy", "keys", "other/innocent"]


def later() -> int:
    """A time at which what has just happened is long ago, so that it is remembered."""
    return time.time_ns() + 10**12


class TestMemory:
    def change(self, tree: Tree, name: str) -> None:
        """Creates a file, at a time that differs from the directory's last change on clocks of any resolution."""
        file = tree.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        before = os.stat(file.parent).st_ctime_ns
        while os.stat(file.parent).st_ctime_ns == before:
            file.touch()
            file.unlink()
        file.touch()

    def test_what_is_new_or_gone_is_noticed(self, tree: Tree) -> None:
        tree.put("a/b/c/.env", "a/b/d/file")
        files = tree.files("Read(.env)", now=later)
        assert len(files.find().paths) == 1
        self.change(tree, "a/b/d/.env")
        self.change(tree, "a/new/.env")
        assert len(files.find().paths) == 3
        (tree.project / "a/b/c/.env").unlink()
        self.change(tree, "a/b/c/other")
        assert len(files.find().paths) == 2
        (tree.project / "a/b").rename(tree.project / "moved")
        self.change(tree, "other")
        assert str(tree.project / "moved/d/.env") in files.find().paths

    def test_a_forged_time_hides_nothing(self, tree: Tree) -> None:
        tree.put("a/file")
        files = tree.files("Read(.env)", now=later)
        files.find()
        before = os.stat(tree.project / "a")
        self.change(tree, "a/.env")
        os.utime(tree.project / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert len(files.find().paths) == 1

    def test_a_directory_that_has_just_changed_is_read_again(self, tree: Tree) -> None:
        """It may have changed a second time within one tick of the clock."""
        tree.put("a/file")
        files = tree.files("Read(.env)")
        for number in range(20):
            tree.put(f"a/{number}/.env")
            assert len(files.find().paths) == number + 1


class TestLimits:
    def test_crowded_directories_are_denied_as_a_whole(self, tree: Tree) -> None:
        tree.put(*(f"many/{n}.key" for n in range(9)), "few/1.key", "2.key", "many/readme")
        found = tree.files("Read(*.key)", most_paths=4).find()
        assert [os.path.relpath(path, tree.project) for path in found.paths] == ["2.key", "few/1.key", "many"]
        assert "cover 11 files, more than can be restricted one by one (the limit is 4)" in found.notes[0]

    def test_so_are_those_around_many_directories_with_one_file_each(self, tree: Tree) -> None:
        tree.put(*(f"around/{n}/.env" for n in range(9)), ".env")
        assert tree.found("Read(.env)", most_paths=3) == [".env", "around"]

    def test_the_project_never_is(self, tree: Tree) -> None:
        tree.put(*(f"{n}.key" for n in range(9)))
        with pytest.raises(SandboxError, match=r"cannot restrict 9 files .* name directories in Read\(\*\.key\)"):
            tree.found("Read(*.key)", most_paths=4)

    def test_what_is_left_when_there_is_too_much_to_search_is_denied_as_a_whole(self, tree: Tree) -> None:
        tree.put(*(f"big/{n}/{m}" for n in range(5) for m in range(5)), ".env", "small/.env")
        found = tree.files("Read(.env)", most_entries=10).find()
        assert str(tree.project / ".env") in found.paths
        assert any(path.startswith(str(tree.project / "big")) for path in found.paths)
        assert "more files than can be searched for (the limit is 10)" in found.notes[0]
        assert len(tree.files("Read(.env)", most_entries=1000).find().paths) == 2

    def test_outside_the_project_and_the_home_it_is_an_error(self, tree: Tree) -> None:
        with pytest.raises(SandboxError, match="narrow these rules"):
            tree.found("Read(//usr/**/no-such-file)", most_entries=10)
