"""A new result has the shape of the old one."""

from typing import Any

from tests.rows import rows
from wave_agent.guard.replacements import in_shape

SHAPES: list[tuple[Any, Any]] = [
    (None, "new"),
    ("old", "new"),
    (5, "new"),
    ({"count": 5}, "new"),
    ({"stdout": "old", "stderr": "old", "interrupted": False}, {"stdout": "new", "stderr": "", "interrupted": False}),
    (
        {"type": "text", "file": {"filePath": "/a", "content": "old", "numLines": 1}},
        {"type": "text", "file": {"filePath": "/a", "content": "new", "numLines": 1}},
    ),
    ({"content": "old", "stdout": "old"}, {"content": "", "stdout": "new"}),
    ([{"type": "text", "text": "old"}, {"type": "text", "text": "old"}], [
        {"type": "text", "text": "new"},
        {"type": "text", "text": ""},
    ]),
    (
        {"mode": "content", "filenames": ["old"], "content": "old"},
        {"mode": "content", "filenames": [], "content": "new"},
    ),
]  # fmt: skip


@rows("old, new", SHAPES)
def test_the_new_text_takes_the_place_of_the_old_one(old: Any, new: Any) -> None:
    assert in_shape(old, "new") == new
