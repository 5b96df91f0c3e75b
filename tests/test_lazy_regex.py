"""Expressions that are compiled on first use: as good as compiled ones, and every one of ours can be compiled."""

import ast
import re
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import wave_agent
from wave_agent.lazy_regex import lazy_regex

PARSER: Any = import_module("re._parser")
PACKAGE = Path(wave_agent.__file__).parent
USERS = [
    ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
    for file in sorted(PACKAGE.rglob("*.py"))
    if "import lazy_regex" in file.read_text() and file.stem != "lazy_regex"
]


def test_it_does_what_a_compiled_expression_does() -> None:
    lazy, compiled = lazy_regex(r"(a)(b)?", re.IGNORECASE), re.compile(r"(a)(b)?", re.IGNORECASE)
    for text in ("ABab", "xA", ""):
        assert lazy.sub("_", text) == compiled.sub("_", text)
        assert lazy.findall(text) == compiled.findall(text)
        assert lazy.split(text) == compiled.split(text)
        assert [bool(way(text)) for way in (lazy.search, lazy.match, lazy.fullmatch)] == [
            bool(way(text)) for way in (compiled.search, compiled.match, compiled.fullmatch)
        ]
    assert (lazy.pattern, lazy.flags, lazy.groups) == (compiled.pattern, compiled.flags, compiled.groups)


def test_a_mistake_is_raised_on_first_use() -> None:
    broken = lazy_regex("(")
    with pytest.raises(re.error):
        broken.search("")


@pytest.mark.parametrize("name", USERS)
def test_every_expression_of_ours_is_valid(name: str) -> None:
    module = import_module(name)
    found = [value for value in vars(module).values() if type(value).__name__ == "_LazyRegex"]
    assert found
    for expression in found:
        assert expression.pattern is not None


def _texts(tree: ast.AST) -> Iterator[str]:
    """Every string of a module; what an f-string inserts is one letter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, PARSER.SubPattern):
        yield value
    elif type(value) in (list, tuple):
        for part in value:
            yield from _parts(part)


def _operations(items: Any) -> Iterator[tuple[str, Any]]:
    """All operations of a parsed expression, at every depth."""
    for operation, value in items:
        yield str(operation), value
        for part in _parts(value):
            yield from _operations(part)


def _possessive_around_a_look(text: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            parsed = PARSER.parse(text)
    except re.error:
        return False  # prose
    return any(
        name == "POSSESSIVE_REPEAT" and any(inner.startswith("ASSERT") for inner, _ in _operations(value[2]))
        for name, value in _operations(parsed)
    )


def test_no_possessive_repeat_of_ours_looks_ahead() -> None:
    """It may match nothing in Python before 3.11.5, which distributions still ship; an atomic group is right there."""
    assert _possessive_around_a_look(r"/((?:(?!/)[^\n]|\\.)*+)/")
    assert not _possessive_around_a_look(r"/((?>(?:(?!/)[^\n]|\\.)*))/")
    found = {
        f"{file.relative_to(PACKAGE)}: {text}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for text in _texts(ast.parse(file.read_text()))
        if "+" in text and _possessive_around_a_look(text)
    }
    assert not found
