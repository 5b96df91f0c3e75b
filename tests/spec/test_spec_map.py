"""`docs/spec-map.md` leads somewhere: every requirement is in it, and every name in it exists."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.rows import rows

HERE = Path(__file__).parent
MAP = (HERE.parent.parent / "docs" / "spec-map.md").read_text()
SPEC_011, SPEC_012 = MAP.split("\n## 012")[0], "## 012" + MAP.split("\n## 012")[1]
NAMES = sorted(set(re.findall(r"`(wave_agent[\w.]*)`", MAP)))
TESTS = re.findall(r"`(test_\w+)`", MAP)
ROW = re.compile(r"^\| (?P<key>[^|]+) \|.*\|$", re.MULTILINE)


def existing() -> Iterator[str]:
    """Every test of the two specifications."""
    for file in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield node.name


def keys(part: str, heading: str) -> list[str]:
    """The first column of the table under this heading."""
    table = part.split(f"### {heading}\n")[1].partition("\n#")[0]
    return [match["key"] for match in ROW.finditer(table)][1:]


def resolve(name: str) -> object:
    """The module, or whatever stands in one, that a dotted name leads to."""
    parts = name.split(".")
    found: object = import_module(parts[0])
    for number, part in enumerate(parts[1:], start=2):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = import_module(".".join(parts[:number]))
    return found


@pytest.mark.parametrize(("part", "count"), [(SPEC_011, 21), (SPEC_012, 15)], ids=["011", "012"])
def test_every_requirement_is_in_the_map(part: str, count: int) -> None:
    assert keys(part, "Requirements") == [f"FR-{number:03}" for number in range(1, count + 1)]


@pytest.mark.parametrize(
    ("part", "scenarios", "edges", "criteria"), [(SPEC_011, (3, 4, 2), 5, 6), (SPEC_012, (3, 3, 4, 3, 3), 5, 5)]
)
def test_every_scenario_edge_case_and_criterion_is_in_the_map(
    part: str, scenarios: tuple[int, ...], edges: int, criteria: int
) -> None:
    wanted = [f"{story}.{number}" for story, many in enumerate(scenarios, 1) for number in range(1, many + 1)]
    assert keys(part, "User stories") == wanted
    assert len(keys(part, "Edge cases")) == edges
    assert keys(part, "Success criteria") == [f"SC-{number:03}" for number in range(1, criteria + 1)]


@pytest.mark.parametrize(("spec", "part", "count"), [("011", SPEC_011, 21), ("012", SPEC_012, 15)], ids=["011", "012"])
def test_every_requirement_has_a_test_of_its_name(spec: str, part: str, count: int) -> None:
    for number in range(1, count + 1):
        row = next(line for line in part.splitlines() if line.startswith(f"| FR-{number:03} |"))
        assert f"`test_{spec}_fr_{number:03}_" in row


def test_every_test_that_the_map_names_exists() -> None:
    assert set(TESTS) - set(existing()) == set()


def test_every_test_of_a_requirement_is_in_the_map() -> None:
    assert {name for name in existing() if name.startswith(("test_011_", "test_012_"))} - set(TESTS) == set()


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
