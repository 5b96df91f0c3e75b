"""Edits of single cells of a notebook (.ipynb) that leave all other bytes unchanged.

The places of cells are found with Python's own scanner: notebooks contain `NaN`, and more values than a document that
people write.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, cast

from msgspec import Struct

from wave_agent.formats.json_edits import indent_at, laid_out
from wave_agent.lazy_regex import lazy_regex

CellType = Literal["code", "markdown", "raw"]
Span = tuple[int, int]
_BLANKS = lazy_regex(r"[ \t\r\n]*")
_INDEX = lazy_regex(r"cell-([0-9]{1,6})")
_DECODER = json.JSONDecoder()
_WITH_IDS = (4, 5)
"""The first version of the format in which cells have ids."""


class NotebookError(ValueError):
    """Why this cannot be edited as a notebook."""


class NotebookCell(Struct, frozen=True):
    """A cell, and where its parts are in the text."""

    span: Span
    value: Mapping[str, Any]
    fields: Mapping[str, Span]

    @property
    def source(self) -> str:
        """A text, or a list of lines: the format allows both."""
        found: Any = self.value.get("source")
        return "".join(map(str, cast(list[Any], found))) if isinstance(found, list) else str(found or "")

    @property
    def cell_type(self) -> str:
        return str(self.value.get("cell_type", "code"))


class Notebook(Struct, frozen=True):
    """A notebook, and where its cells are in the text."""

    text: str
    around: Span
    """The list of cells, with its brackets."""
    cells: tuple[NotebookCell, ...]
    version: tuple[int, int]
    language: str

    def find(self, cell_id: str) -> int:
        """The index of the cell with this id, or at this position: `cell-0` is the first. Raises `NotebookError`."""
        named = [at for at, cell in enumerate(self.cells) if cell.value.get("id") == cell_id]
        if len(named) > 1:
            raise NotebookError(f'{len(named)} cells have the id "{cell_id}"')
        if named:
            return named[0]
        place = _INDEX.fullmatch(cell_id)
        if place is not None and int(place[1]) < len(self.cells):
            return int(place[1])
        known = ", ".join(cell_name(at, cell.value) for at, cell in enumerate(self.cells[:20]))
        more = ", …" if len(self.cells) > 20 else ""
        raise NotebookError(f'there is no cell "{cell_id}"; the cells are {known or "none"}{more}')


def cell_name(at: int, cell: Mapping[str, Any]) -> str:
    """The id of a cell, or its position if it has none."""
    name = cell.get("id")
    return name if isinstance(name, str) and name else f"cell-{at}"


def read_notebook(text: str) -> Notebook:
    """Raises `NotebookError`."""
    try:
        fields = _members(text, _skip(text, 0))
        value = cast(dict[str, Any], json.loads(text))
        around = fields["cells"]
        cells = tuple(_cell(text, start, end) for start, end in _items(text, around[0]))
    except (ValueError, KeyError, RecursionError, TypeError) as error:
        raise NotebookError("not a notebook: it has no list of cells") from error
    version = [found if isinstance(found := value.get(key), int) else 0 for key in ("nbformat", "nbformat_minor")]
    metadata = _object(value.get("metadata"))
    language = _object(metadata.get("kernelspec")).get("language") or _object(metadata.get("language_info")).get("name")
    return Notebook(text, around, cells, (version[0], version[1]), str(language or "python"))


def replace_cell(notebook: Notebook, at: int, source: str, cell_type: CellType | None = None) -> str:
    """The text with another source in this cell. Outputs of code that is no longer there are removed."""
    cell, text = notebook.cells[at], notebook.text
    if cell_type is not None and cell_type != cell.cell_type:
        kept = {key: value for key, value in cell.value.items() if key not in _OF_CODE}
        new = {**kept, "cell_type": cell_type, **_of_type(cell_type), "source": _lines(source)}
        return _put(text, cell.span, new)
    as_text = isinstance(cell.value.get("source"), str)
    changed: dict[str, Any] = {"source": source if as_text else _lines(source)}
    if cell.cell_type == "code":
        changed |= {key: value for key, value in _OF_CODE.items() if cell.value.get(key) != value}
    if "source" not in cell.fields:
        return _put(text, cell.span, {**cell.value, **changed})
    for key in sorted((key for key in changed if key in cell.fields), key=lambda key: -cell.fields[key][0]):
        text = _put(text, cell.fields[key], changed[key])
    return text


def insert_cell(notebook: Notebook, at: int, source: str, cell_type: CellType, cell_id: str) -> str:
    """The text with a new cell at this position. `cell_id` is its id, if cells of this notebook have ids."""
    named = {"id": cell_id} if notebook.version >= _WITH_IDS else {}
    code = _of_type(cell_type)
    count = {key: code[key] for key in ("execution_count",) if key in code}
    outputs = {key: code[key] for key in ("outputs",) if key in code}
    cell: dict[str, Any] = {
        "cell_type": cell_type,
        **count,
        **named,
        "metadata": {},
        **outputs,
        "source": _lines(source),
    }
    text, (start, end), cells = notebook.text, notebook.around, notebook.cells
    newline = "\r\n" if "\r\n" in text else "\n"
    if not cells:
        own = indent_at(text, start)
        inner = own + (indent_at(text, start) or " ")
        shown = _shown(text, cell, inner)
        around = f"{newline}{inner}{shown}{newline}{own}" if "\n" in text else shown
        return f"{text[:start]}[{around}]{text[end:]}"
    near = cells[min(at, len(cells) - 1)].span
    indent = indent_at(text, near[0])
    between = f",{newline}{indent}" if "\n" in text[start:end] else ", "
    shown = _shown(text, cell, indent)
    if at < len(cells):
        return f"{text[: near[0]]}{shown}{between}{text[near[0] :]}"
    return f"{text[: near[1]]}{between}{shown}{text[near[1] :]}"


def delete_cell(notebook: Notebook, at: int) -> str:
    """The text without this cell, and without the comma it needs no more."""
    text, cells = notebook.text, notebook.cells
    start, end = cells[at].span
    if at > 0:
        start = cells[at - 1].span[1]
    elif len(cells) > 1:
        end = cells[1].span[0]
    else:
        start, end = notebook.around[0] + 1, notebook.around[1] - 1
    return text[:start] + text[end:]


# --------------------------------------------------------------------------------------------------------------- values

_OF_CODE: Mapping[str, Any] = {"execution_count": None, "outputs": []}


def _of_type(cell_type: str) -> dict[str, Any]:
    return dict(_OF_CODE) if cell_type == "code" else {}


def _lines(source: str) -> list[str]:
    """As notebooks store a text: each line with its end."""
    lines = source.split("\n")
    kept = [f"{line}\n" for line in lines[:-1]]
    return [*kept, lines[-1]] if lines[-1] else kept


def _object(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


# --------------------------------------------------------------------------------------------------------------- places


def _put(text: str, span: Span, value: Any) -> str:
    return f"{text[: span[0]]}{_shown(text, value, indent_at(text, span[0]))}{text[span[1] :]}"


def _shown(text: str, value: Any, indent: str) -> str:
    """As the rest of the text is written: on one line, or on several."""
    return laid_out(text, value, indent) if "\n" in text else json.dumps(value, ensure_ascii=False)


def _cell(text: str, start: int, end: int) -> NotebookCell:
    value: Any = json.loads(text[start:end])
    if not isinstance(value, dict):
        raise TypeError
    return NotebookCell((start, end), cast(dict[str, Any], value), _members(text, start))


def _members(text: str, start: int) -> dict[str, Span]:
    """The values of the object that starts here, by their keys. Raises `ValueError`."""
    found: dict[str, Span] = {}
    at = _skip(text, _expected(text, start, "{"))
    while text[at : at + 1] != "}":
        key, at = _DECODER.raw_decode(text, at)
        begins = _skip(text, _expected(text, _skip(text, at), ":"))
        _, ends = _DECODER.raw_decode(text, begins)
        if key in found:
            raise ValueError(key)  # which of them applies depends on the reader
        found[key] = begins, ends
        at = _next(text, ends, "}")
    return found


def _items(text: str, start: int) -> list[Span]:
    """The values of the list that starts here. Raises `ValueError`."""
    found: list[Span] = []
    at = _skip(text, _expected(text, start, "["))
    while text[at : at + 1] != "]":
        _, ends = _DECODER.raw_decode(text, at)
        found.append((at, ends))
        at = _next(text, ends, "]")
    return found


def _next(text: str, at: int, closing: str) -> int:
    """Where the next value starts, or the container ends."""
    at = _skip(text, at)
    return at if text[at : at + 1] == closing else _skip(text, _expected(text, at, ","))


def _expected(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise ValueError(sign)
    return at + 1


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()
