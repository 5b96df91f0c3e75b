"""Expressions that are compiled on first use: as good as compiled ones, and every one of ours can be compiled."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import wave_agent
from wave_agent.lazy_regex import lazy_regex

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
