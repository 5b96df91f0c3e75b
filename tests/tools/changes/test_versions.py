"""Versions of files: what they contained, where that is known."""

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.rows import rows
from wave_agent.tools.changes.found import FileChange, FoundChanges
from wave_agent.tools.changes.signatures import inode_in, mode_in, packed_facts, signature, size_in
from wave_agent.tools.changes.versions import (
    BlobContent,
    Content,
    ContentDigest,
    FileVersion,
    HeldContent,
    LostContent,
    NotKeptError,
    read_all,
    same_content,
)


class Objects:
    """Objects of git, and how often they were asked for."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.asked: list[Sequence[str]] = []

    def __call__(self, names: Sequence[str], /) -> Mapping[str, bytes]:
        self.asked.append(names)
        return {name: self.stored[name] for name in names if name in self.stored}

    def blob(self, data: bytes, *, length: int | None = None, stored: bool = True) -> BlobContent:
        name = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest()
        if stored:
            self.stored[name.hex()] = data
        return BlobContent(self, name, len(data) if length is None else length)


def test_a_content_is_read_or_says_why_not() -> None:
    git = Objects()
    assert HeldContent(b"x").read() == b"x"
    assert git.blob(b"x").read() == b"x"
    for content, why in [
        (ContentDigest(b"x"), "was not kept"),
        (LostContent("was too long"), "was too long"),
        (git.blob(b"y", stored=False), "cannot be read from git"),
        (git.blob(b"z", length=9), "is stored differently in git"),
    ]:
        with pytest.raises(NotKeptError, match=why):
            content.read()


def test_many_contents_are_read_with_few_runs_of_git() -> None:
    git = Objects()
    contents: list[Content] = [git.blob(b"%d" % number) for number in range(250)]
    found = [*read_all([*contents, HeldContent(b"x"), LostContent("was too long")])]
    assert found[:251] == [*(b"%d" % number for number in range(250)), b"x"]
    assert str(found[251]) == "was too long"
    assert [len(names) for names in git.asked] == [200, 50]


GIT = Objects()
BLOB, HELD = GIT.blob(b"x"), HeldContent(b"x")


@rows(
    ("one", "other", "same"),
    [
        (HELD, HELD, True),
        (HELD, HeldContent(b"x"), True),
        (HELD, HeldContent(b"y"), False),
        (BLOB, GIT.blob(b"x"), True),
        (BLOB, GIT.blob(b"y"), False),
        (BLOB, HELD, True),
        (HELD, BLOB, True),
        (ContentDigest(b"x"), HELD, True),
        (ContentDigest(b"x"), HeldContent(b"y"), False),
        (ContentDigest(b"x"), ContentDigest(b"x"), None),
        (LostContent("was too long"), BLOB, None),
        (LostContent("was too long"), HELD, None),
    ],
)
def test_contents_are_compared_without_running_git(one: Content, other: Content, same: bool | None) -> None:
    assert same_content(one, other) is same
    assert GIT.asked == []


def test_only_what_is_held_in_memory_takes_memory() -> None:
    assert [content.size for content in (HELD, BLOB, ContentDigest(b"x"), LostContent("was too long"))] == [1, 0, 0, 0]


@rows(("mode", "link"), [(stat.S_IFLNK | 0o777, True), (stat.S_IFREG | 0o644, False), (None, False)])
def test_a_version_says_whether_it_is_a_link(mode: int | None, link: bool) -> None:
    assert FileVersion(mode, HELD).is_link is link


def test_changes_to_paths_that_a_rule_denies_are_violations() -> None:
    version = FileVersion(None, HELD)
    changes = (
        FileChange(path="/p/a", kind="created", before=None, after=version),
        FileChange(path="/p/b", kind="deleted", before=version, after=None, denied=True),
    )
    found = FoundChanges(changes=changes)
    assert found.paths == ("/p/a", "/p/b")
    assert found.violations == changes[1:]


def test_a_signature_holds_what_the_index_of_git_holds(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("hello")
    facts = os.stat(path)
    packed = signature(facts)
    assert (mode_in(packed), size_in(packed)) == (facts.st_mode, 5)
    inode = facts.st_ino & 0xFFFFFFFF
    assert packed.startswith(packed_facts(facts.st_mtime_ns, facts.st_ctime_ns, inode, 5))
    assert inode_in(packed) == inode.to_bytes(4, "little")
