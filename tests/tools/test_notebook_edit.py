"""NotebookEdit's promises."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.session import Session
from wave_agent.formats.notebook_edits import (
    NotebookError,
    delete_cell,
    insert_cell,
    read_notebook,
    replace_cell,
)
from wave_agent.tools.base import ToolInputError, ToolResult
from wave_agent.tools.registry import every_tool

CODE: dict[str, Any] = {
    "cell_type": "code",
    "execution_count": 3,
    "id": "a1",
    "metadata": {"x": 1.50},
    "outputs": [{"output_type": "stream", "name": "stdout", "text": ["1\n"]}],
    "source": ["print(1)\n", "x"],
}
TEXT: dict[str, Any] = {"cell_type": "markdown", "id": "b2", "metadata": {}, "source": "# Title"}


def notebook(*cells: dict[str, Any], minor: int = 5) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": {"kernelspec": {"language": "R"}}, "nbformat": 4, "nbformat_minor": minor}


def written(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


@pytest.fixture(autouse=True)
def all_tools(session: Session) -> None:
    session.tools = every_tool()


async def edit(session: Session, text: str, **call: Any) -> tuple[str, ToolResult]:
    path = session.file("n.ipynb", text)
    await session.call("Read", file_path="n.ipynb")
    result = await session.call("NotebookEdit", notebook_path="n.ipynb", **call)
    return path.read_text(), result


async def test_one_cell_is_replaced_and_its_outputs_are_removed(session: Session) -> None:
    after, result = await edit(session, written(notebook(CODE, TEXT)), cell_id="a1", new_source="y = 2\nz")
    assert after == written(
        notebook({**CODE, "execution_count": None, "outputs": [], "source": ["y = 2\n", "z"]}, TEXT)
    )
    path = f"{session.project}/n.ipynb"
    assert result.content == f"Replaced cell a1 of {path}.\n@@ -1,2 +1,2 @@\n-print(1)\n-x\n+y = 2\n+z"
    assert {key: value for key, value in result.response.items() if key != "diff"} == {
        "notebook_path": path,
        "filePath": path,
        "success": True,
        "cell_id": "a1",
        "cell_type": "code",
        "language": "R",
        "edit_mode": "replace",
        "new_source": "y = 2\nz",
    }
    assert result.original == written(notebook(CODE, TEXT))


async def test_a_source_that_is_one_text_stays_one(session: Session) -> None:
    after, _ = await edit(session, written(notebook(CODE, TEXT)), cell_id="b2", new_source="# a\nb")
    assert after == written(notebook(CODE, {**TEXT, "source": "# a\nb"}))


async def test_a_cell_is_inserted_after_another_or_at_the_start(session: Session) -> None:
    after, result = await edit(
        session, written(notebook(CODE, TEXT)), cell_id="a1", new_source="i", cell_type="code", edit_mode="insert"
    )
    new = {"cell_type": "code", "execution_count": None, "id": result.response["cell_id"], "metadata": {}}
    assert after == written(notebook(CODE, {**new, "outputs": [], "source": ["i"]}, TEXT))
    after, result = await edit(
        session, written(notebook(CODE, minor=4)), new_source="", cell_type="markdown", edit_mode="insert"
    )
    assert after == written(notebook({"cell_type": "markdown", "metadata": {}, "source": []}, CODE, minor=4))
    assert result.response["cell_id"] == "cell-0"


@pytest.mark.parametrize(("cell", "left"), [("a1", [TEXT]), ("b2", [CODE]), ("cell-1", [CODE])])
async def test_a_cell_is_deleted(session: Session, cell: str, left: list[Any]) -> None:
    after, result = await edit(session, written(notebook(CODE, TEXT)), cell_id=cell, edit_mode="delete")
    assert after == written(notebook(*left))
    assert result.content.startswith("Deleted cell ")


async def test_another_type_is_another_form(session: Session) -> None:
    after, _ = await edit(session, written(notebook(CODE)), cell_id="a1", new_source="t", cell_type="markdown")
    (cell,) = json.loads(after)["cells"]
    assert cell == {"cell_type": "markdown", "id": "a1", "metadata": {"x": 1.5}, "source": ["t"]}


@pytest.mark.parametrize(
    ("text", "call", "why"),
    [
        (written(notebook(CODE)), {"cell_id": "zz", "new_source": ""}, 'there is no cell "zz"; the cells are a1.'),
        (written(notebook()), {"cell_id": "zz", "new_source": ""}, "the cells are none"),
        (written(notebook(CODE, CODE)), {"cell_id": "a1", "new_source": ""}, '2 cells have the id "a1"'),
        ("[]", {"cell_id": "a1", "new_source": ""}, "not a notebook"),
        ('{"cells": 1}', {"cell_id": "a1", "new_source": ""}, "not a notebook"),
        ('{"cells": [1]}', {"cell_id": "a1", "new_source": ""}, "not a notebook"),
        ('{"cells": [], "cells": []}', {"cell_id": "a1", "new_source": ""}, "not a notebook"),
        ('{"cells": [}', {"cell_id": "a1", "new_source": ""}, "not a notebook"),
        ('{"cells" []}', {"cell_id": "a1", "new_source": ""}, "not a notebook"),
        ("[" * 5000, {"cell_id": "a1", "new_source": ""}, "not a notebook"),
    ],
)
async def test_what_cannot_be_done_changes_nothing(session: Session, text: str, call: dict[str, Any], why: str) -> None:
    after, result = await edit(session, text, **call)
    assert after == text
    assert why in result.content
    assert not result.ran


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ({"new_source": "x"}, "say its cell_id"),
        ({"edit_mode": "delete"}, "say its cell_id"),
        ({"edit_mode": "insert", "new_source": "x"}, "say its cell_type"),
        ({"cell_id": "a"}, "new_source is missing"),
        ({"cell_id": "a", "new_source": "\ud800"}, "lone surrogate"),
        ({"cell_id": "a", "new_source": "x", "edit_mode": "swap"}, "edit_mode"),
    ],
)
async def test_wrong_input_says_what_is_missing(session: Session, call: dict[str, Any], why: str) -> None:
    with pytest.raises(ToolInputError, match=why):
        await session.call("NotebookEdit", notebook_path="n.ipynb", **call)


async def test_a_notebook_must_have_been_read_and_be_unchanged_since(session: Session) -> None:
    path = session.file("n.ipynb", written(notebook(CODE)))
    call = {"notebook_path": "n.ipynb", "cell_id": "a1", "new_source": "x"}
    assert "has not been read" in (await session.call("NotebookEdit", **call)).content
    await session.call("Read", file_path="n.ipynb")
    path.write_text(written(notebook(CODE, TEXT)))
    assert "has changed since it was read" in (await session.call("NotebookEdit", **call)).content
    assert json.loads(path.read_text())["cells"] == [CODE, TEXT]
    missing = await session.call("NotebookEdit", **{**call, "notebook_path": "m.ipynb"})
    assert "does not exist" in missing.content
    other = await session.call("NotebookEdit", **{**call, "notebook_path": "n.json"})
    assert "is not a notebook (.ipynb). Use Edit." in other.content


CELLS = st.builds(
    lambda code, source, at, name: {
        "cell_type": "code" if code else "raw",
        **({"id": f"{name}{at}"} if name else {}),
        **({"outputs": [{"data": [float(at)]}], "execution_count": at} if code else {}),
        "source": source if at % 2 else source.splitlines(keepends=True),
    },
    st.booleans(),
    st.text(max_size=12),
    st.integers(0, 9),
    st.sampled_from(["", "k"]),
)


@given(st.lists(CELLS, min_size=1, max_size=4), st.text(max_size=12), st.sampled_from([None, 1, 2, "\t"]), st.data())
def test_any_edit_leaves_the_other_cells_as_they_are(cells: list[Any], source: str, indent: Any, data: Any) -> None:
    text = json.dumps(notebook(*cells), indent=indent, ensure_ascii=False)
    found = read_notebook(text)
    at = data.draw(st.integers(0, len(cells) - 1))
    replaced = json.loads(replace_cell(found, at, source))["cells"]
    assert replaced[:at] + replaced[at + 1 :] == cells[:at] + cells[at + 1 :]
    assert read_notebook(replace_cell(found, at, source)).cells[at].source == source
    place = data.draw(st.integers(0, len(cells)))
    inserted = json.loads(insert_cell(found, place, source, "markdown", "new"))["cells"]
    assert inserted[:place] + inserted[place + 1 :] == cells
    assert json.loads(delete_cell(found, at))["cells"] == cells[:at] + cells[at + 1 :]


def test_values_that_other_readers_refuse_stay_as_they_are() -> None:
    text = '{"cells": [{"cell_type": "code", "outputs": [NaN, 1e999]}, {"source": ""}], "nbformat": 4}'
    found = read_notebook(text)
    assert replace_cell(found, 1, "x") == text.replace('{"source": ""}', '{"source": "x"}')
    assert json.loads(replace_cell(found, 0, "x"))["cells"][0]["source"] == ["x"]
    with pytest.raises(NotebookError):
        read_notebook('{"cells": {}}')


def test_a_cell_is_found_by_its_id_or_its_place() -> None:
    found = read_notebook(written(notebook(CODE, TEXT, {"source": []}, minor=4)))
    assert [found.find(name) for name in ("a1", "b2", "cell-2", "cell-0")] == [0, 1, 2, 0]
    for wrong in ("cell-3", "c"):
        with pytest.raises(NotebookError, match="the cells are a1, b2, cell-2"):
            found.find(wrong)
    with pytest.raises(NotebookError, match="2 cells have the id"):
        read_notebook(written(notebook(CODE, CODE))).find("a1")
    with pytest.raises(NotebookError, match=r"cell-19, …$"):
        read_notebook(written(notebook(*[{"source": ""}] * 21))).find("x")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"cells": [1]}', '{"cells": [{}}', '{"cells": [], "cells": []}', "[" * 9999]
)
def test_what_is_no_notebook_is_an_error(text: str) -> None:
    with pytest.raises(NotebookError, match="not a notebook"):
        read_notebook(text)


@pytest.mark.parametrize(
    "text", [written(notebook()), json.dumps(notebook()), written(notebook()).replace("\n", "\r\n")]
)
def test_an_empty_notebook_gets_its_first_cell_and_loses_its_last(text: str) -> None:
    filled = insert_cell(read_notebook(text), 0, "a\nb", "code", "k")
    (cell,) = read_notebook(filled).cells
    assert (cell.source, cell.cell_type, cell.value["id"]) == ("a\nb", "code", "k")
    assert delete_cell(read_notebook(filled), 0) == text
    if text == written(notebook()):
        assert filled == written(json.loads(filled))


@pytest.mark.parametrize("kind", ["code", "markdown"])
def test_a_cell_without_a_source_or_of_another_type_is_written_anew(kind: Any) -> None:
    text = written(notebook({"cell_type": "markdown", "metadata": {}}, TEXT))
    found = read_notebook(text)
    assert read_notebook(replace_cell(found, 0, "x", kind)).cells[0].source == "x"
    other = json.loads(replace_cell(found, 1, "y = 1", "code"))["cells"][1]
    assert other == {**TEXT, "cell_type": "code", "execution_count": None, "outputs": [], "source": ["y = 1"]}
