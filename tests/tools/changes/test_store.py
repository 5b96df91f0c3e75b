"""Former contents in an unnamed file."""

import gc
from pathlib import Path

import pytest

from wave_agent.tools.changes.store import ContentStore, StoredContent
from wave_agent.tools.changes.tree import KnownTree
from wave_agent.tools.changes.versions import HeldContent, LostContent, NotKeptError, read_all, same_content


def added(store: ContentStore, data: bytes) -> StoredContent:
    content = store.add(data)
    assert content is not None
    return content


def test_room_is_free_again_once_nothing_refers_to_a_content(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "private", limit=1000)
    kept = [added(store, bytes([number]) * 100) for number in range(5)]
    for number in range(200):  # far more than fits, one after the other
        data = number.to_bytes(2, "big") * 200
        assert added(store, data).read() == data
    assert [content.read() for content in kept] == [bytes([number]) * 100 for number in range(5)]
    gc.collect()
    assert store.add(b"x" * 501) is None
    assert added(store, b"x" * 500).read() == b"x" * 500


def test_equal_contents_are_stored_once(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "private", limit=100)
    assert added(store, b"x" * 80) is store.add(b"x" * 80)


def test_after_closing_nothing_can_be_read(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "private", limit=100)
    content = added(store, b"x")
    store.close()
    with pytest.raises(NotKeptError):
        content.read()


def test_each_content_is_read_or_its_reason_told(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "private", limit=100)
    read = list(read_all([HeldContent(b"1"), LostContent("was not kept"), added(store, b"2")]))
    assert (read[0], str(read[1]), read[2]) == (b"1", "was not kept", b"2")


def test_contents_are_compared_as_far_as_they_are_known(tmp_path: Path) -> None:
    stored, lost = added(ContentStore(tmp_path / "private", limit=100), b"1"), LostContent("was not kept")
    assert same_content(stored, HeldContent(b"1")) is True
    assert same_content(HeldContent(b"2"), stored) is False
    assert same_content(stored, lost) is None
    assert same_content(lost, stored) is None


def test_a_file_that_was_just_written_may_change_without_a_sign(tmp_path: Path) -> None:
    """Its times could stay the same within a tick of the clock, on a file system that stores them coarsely."""
    tree = KnownTree(str(tmp_path), lambda _: False, (), lambda _: -1, 100)
    (tmp_path / "file").touch()
    tree.walk(str(tmp_path), None)
    assert tree.fresh == {str(tmp_path / "file")}
