"""MultiEdit's promises: those of Edit, for several edits at once."""

from typing import Any

import pytest

from tests.tools.session import Session
from wave_agent.tools.base import ToolInputError, ToolResult
from wave_agent.tools.registry import every_tool


@pytest.fixture(autouse=True)
def all_tools(session: Session) -> None:
    session.tools = every_tool()


async def edit(session: Session, content: str, *edits: tuple[str, str], **rest: Any) -> tuple[bytes, ToolResult]:
    path = session.file("a.txt", content)
    await session.call("Read", file_path="a.txt")
    steps = [{"old_string": old, "new_string": new, **rest} for old, new in edits]
    result = await session.call("MultiEdit", file_path="a.txt", edits=steps)
    return path.read_bytes(), result


async def test_edits_are_made_in_order_each_on_the_result_of_the_last(session: Session) -> None:
    after, result = await edit(session, "one\r\ntwo\r\n", ("one", "two\nthree"), ("three\ntwo", "done"))
    assert after == b"two\r\ndone\r\n"
    assert result.content.startswith(f"Made 2 edits in {session.project}/a.txt.\n@@ ")
    assert result.response["edits"][0] == {"old_string": "one", "new_string": "two\nthree", "replace_all": False}
    assert result.response["replacements"] == [1, 1]
    assert result.original == "one\r\ntwo\r\n"


async def test_if_one_edit_fails_none_is_made(session: Session) -> None:
    after, result = await edit(session, "one\ntwo\n", ("one", "1"), ("three", "3"))
    assert after == b"one\ntwo\n"
    assert result.content.startswith("Edit 2 of 2: old_string does not occur in ")
    assert result.content.endswith("None of the edits was made.")
    assert not result.ran


async def test_replace_all_is_an_edits_own(session: Session) -> None:
    after, result = await edit(session, "x y x", ("x", "z"), replace_all=True)
    assert (after, result.response["replacements"]) == (b"z y z", [2])
    assert "Made 1 edit in" in result.content


async def test_the_file_must_have_been_read_and_be_unchanged_since(session: Session) -> None:
    path = session.file("a.txt", "one")
    call: dict[str, Any] = {"file_path": "a.txt", "edits": [{"old_string": "one", "new_string": "1"}]}
    assert "has not been read" in (await session.call("MultiEdit", **call)).content
    await session.call("Read", file_path="a.txt")
    path.write_text("one!")
    assert "has changed since it was read" in (await session.call("MultiEdit", **call)).content
    assert path.read_text() == "one!"


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ([], "edits"),
        ([{"old_string": "", "new_string": "x"}], "old_string"),
        ([{"old_string": "a", "new_string": "b"}, {"old_string": "x", "new_string": "x"}], "edit 2 of 2: .*identical"),
        ([{"old_string": "a", "new_string": "\ud800"}], "edit 1 of 1: .*lone surrogate"),
    ],
)
async def test_wrong_input_names_the_edit(session: Session, edits: list[Any], why: str) -> None:
    session.file("a.txt", "a")
    with pytest.raises(ToolInputError, match=why):
        await session.call("MultiEdit", file_path="a.txt", edits=edits)
