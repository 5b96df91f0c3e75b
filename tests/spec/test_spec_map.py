"""`docs/spec-map.md` with the pages below it, and the tests agree: every part of the specifications is in the map, the
tests that it names for a part are exactly those that cover it, and every name in it exists."""

import re
from collections.abc import Callable, Collection, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.rows import rows

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs"
MAP = "\n".join((DOCS / page).read_text() for page in ("spec-map.md", "spec-map/012.md", "spec-map/names.md"))
SPEC_011, SPEC_012 = MAP.split("\n## 012")[0], "## 012" + MAP.split("\n## 012")[1]
NAMES = sorted(set(re.findall(r"`(wave_agent[\w.]*)`", MAP)))
TEST = re.compile(r"`(?P<name>test_\w+)(?:\[(?P<row>[^`]+)\])?`")
ROW = re.compile(r"^\| (?P<key>[^|]+) \|.*\|$", re.MULTILINE)
KINDS = {"Requirements": "", "User stories": "", "Edge cases": "edge: ", "Success criteria": ""}
"""The tables whose rows have an id, and the part of the id before their first column."""
MEASURED = {"011 SC-001", "012 SC-003"}
"""Times, which the benchmarks measure."""


def existing() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every test of the two specifications."""
    for file in sorted(HERE.glob("test_*.py")):
        module = import_module(f"tests.spec.{file.stem}")
        yield from ((name, thing) for name, thing in vars(module).items() if name.startswith("test_"))


def marked() -> Iterator[tuple[str, Any]]:
    """Every test, and every row of a table of cases, with its marks. Rows are written `test_name[row]`."""
    for name, function in existing():
        marks = getattr(function, "pytestmark", ())
        yield name, marks
        for value in (value for mark in marks if mark.name == "parametrize" for value in mark.args[1]):
            if getattr(value, "marks", ()):
                yield f"{name}[{value.id}]", value.marks


def covered() -> dict[str, set[str]]:
    """The tests and rows that cover each id."""
    found: dict[str, set[str]] = {}
    for name, marks in marked():
        for one in (one for mark in marks if mark.name == "covers" for one in mark.args):
            found.setdefault(one, set()).add(name)
    return found


def lines(part: str, heading: str) -> list[tuple[str, str]]:
    """The first column and the whole line of each row of the table under this heading."""
    table = part.split(f"### {heading}\n")[1].partition("\n#")[0]
    return [(match["key"], match[0]) for match in ROW.finditer(table)][1:]


def keys(part: str, heading: str) -> list[str]:
    return [key for key, _ in lines(part, heading)]


def mapped() -> dict[str, str]:
    """The line of each id."""
    return {
        f"{spec} {before}{key}": line
        for spec, part in (("011", SPEC_011), ("012", SPEC_012))
        for heading, before in KINDS.items()
        for key, line in lines(part, heading)
    }


def named(line: str, tests: Collection[str]) -> set[str]:
    """The tests and rows that a line of the map names. `test_name[row …]`: every row of the test that begins so."""
    found = {match[0].strip("`") for match in TEST.finditer(line)}
    return {
        one
        for name in found
        for one in ([test for test in tests if test.startswith(name.removesuffix("…]"))] if "…]" in name else [name])
    }


def resolve(name: str) -> object:
    """The module, or the thing in one, that a dotted name leads to."""
    parts = name.split(".")
    found: object = import_module(parts[0])
    for number, part in enumerate(parts[1:], start=2):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = import_module(".".join(parts[:number]))
    return found


@pytest.mark.parametrize(
    ("part", "requirements", "stories", "edges", "criteria"),
    [(SPEC_011, 21, (3, 4, 2), 5, 6), (SPEC_012, 15, (3, 3, 4, 3, 3), 5, 5)],
    ids=["011", "012"],
)
def test_every_part_of_the_specifications_is_in_the_map(
    part: str, requirements: int, stories: tuple[int, ...], edges: int, criteria: int
) -> None:
    scenarios = [f"US{story}.{number}" for story, many in enumerate(stories, 1) for number in range(1, many + 1)]
    assert keys(part, "Requirements") == [f"FR-{number:03}" for number in range(1, requirements + 1)]
    assert keys(part, "User stories") == scenarios
    assert len(keys(part, "Edge cases")) == edges
    assert keys(part, "Success criteria") == [f"SC-{number:03}" for number in range(1, criteria + 1)]


def test_every_part_in_the_map_is_covered_by_a_test() -> None:
    assert set(mapped()) - set(covered()) == MEASURED


def test_every_part_that_a_test_covers_is_in_the_map() -> None:
    assert set(covered()) - set(mapped()) == set()


def test_the_map_names_exactly_the_tests_and_rows_that_cover_each_part() -> None:
    tests = [name for name, _ in marked()]
    found = covered()
    assert {one: named(line, tests) for one, line in mapped().items()} == {
        one: found.get(one, set()) for one in mapped()
    }


def test_every_test_that_the_map_names_exists() -> None:
    assert {match["name"] for match in TEST.finditer(MAP)} - {name for name, _ in existing()} == set()


def test_no_two_tests_have_the_same_name() -> None:
    """The map says no files."""
    names = [name for name, _ in existing()]
    assert sorted(names) == sorted(set(names))


@rows("name", NAMES)
def test_every_name_in_the_map_can_be_imported(name: str) -> None:
    assert resolve(name) is not None


@rows(
    "name",
    [
        "AIManager",
        "Agent.create",
        "ErrorBlock",
        "ExtendedHookExecutionContext",
        "HookExecutionResult",
        "HookManager",
        "MessageManager",
        "ToolBlock",
        "addErrorBlock",
        "addUserMessage",
        "agent.messages",
        "agent.sendMessage",
        "convertMessagesForAPI",
        "removeLastUserMessage",
        "updateToolBlock",
    ],
)
def test_every_name_of_the_specifications_has_its_counterpart(name: str) -> None:
    rows = [line for line in MAP.split("\n## Names")[1].splitlines() if line.startswith("| `")]
    assert any(f"`{name}`" in row.split(" | ")[0] for row in rows)
