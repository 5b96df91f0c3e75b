"""Regular expressions in settings: what can take forever is refused when it is loaded, and what is left is quick."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.formats.user_regex import compile_strictly, matching_glob, why_slow

PIECES = st.lists(st.text("ab", max_size=2), min_size=1, max_size=4)


@rows(
    "pattern",
    [
        "(a+)+", "(a*)*b", "([a-z]+)*1", "(x+x+)+y", "(a?a?)+b", "(a{1,2})+x", "(.*a){20,}", "(.*a){20}", "(a?){40}b",
        "((ab)*)*c", "((?:a|b)*?c?)+d", r"(a)(b|\1)+c", "(?=(a+)+)b", "(?!(a+)+)b", "(?<=b)(a+)+", "(a)(?(1)(b+)+|c)d",
        "(a)((?(1)b|c))+",
    ],
)  # fmt: skip
def test_a_repeat_inside_a_repeat_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"nested repeats.*write the inner part|alternatives with a common beginning"):
        compile_strictly(pattern)


@rows(
    "pattern",
    ["(ab|ab)+c", "(a|ab)+c", "(abx|a[b-c]x)+d", "(.|ab)+x", r"(\w+?x|ab)?(\wx|ab)+y",
     "(ab|(?:ac|b))+(ab|(?:ac|bd)|b)+x",
     "(|a)+b", "(^|a)+b", "([^a]x|bc)+y", r"(\Dx|ab)+y", "(é|éa)+b", "([à-ü]x|éa)+b", "(a{2}b|ab)+c", "(É1|é2)+x",
     "((?=a)b|c)+d", "(é1|[à-ü]2|x)+y", "([éa]1|[èb]2)+x", "([^ab]x|cd)+y"],
)  # fmt: skip
def test_alternatives_that_begin_alike_in_a_repeat_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="alternatives with a common beginning inside a repeat"):
        compile_strictly(pattern)


@rows(
    "pattern",
    [
        "mcp__.*", "^Notebook", "mcp__x__(a|b)", "mcp__.*__(get|list|read).*", "^mcp__[a-z0-9_]+__.+$",
        "mcp__.*__.*_.*",
        "(Edit|Write|MultiEdit).*", "^(?!mcp__a).*$", "(mcp__a__|x)+y", "[A-Z][a-z]+[A-Z][a-z]+", r"(?>a+)+", "(a+)++",
        r"(\d|[a-c])+x", "(?:ab){3}", "(ab{2})+c", r"(?:\s\S|\d\w)+", "(?:[^aAbB]x|ab)+", r"(?:ax|[\d_]y)+",
    ],
)  # fmt: skip
def test_what_people_write_is_taken(pattern: str) -> None:
    assert compile_strictly(pattern).pattern == pattern
    assert why_slow(pattern) is None


@pytest.mark.parametrize("pattern", ["(", "[[a]", "a{99999999999999}", "(?P<a>b)(?P<a>c)"])
def test_what_is_no_expression_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compile_strictly(pattern)


@pytest.mark.parametrize("pattern", [".*.*.*.*x", "^.*.*.*.*.*x", "(?:a?b?){8}" * 2, "(?:.*|a.*){3}b"])
def test_too_many_choices_are_slow(pattern: str) -> None:
    compile_strictly(pattern)
    assert "can take forever" in str(why_slow(pattern))


@pytest.mark.parametrize("pattern", ["a*a*a*b", "^a*a*a*a*b", "(?:a|b)*(?:a|c)*(?:a|d)*1", ".*a.*a.*b"])
def test_the_slowest_that_is_taken_is_done_in_a_moment(pattern: str) -> None:
    assert why_slow(pattern) is None
    began = time.process_time()
    compile_strictly(pattern).search("a" * 128)
    assert time.process_time() - began < 5


@given(PIECES, st.text("ab;", max_size=8))
def test_a_glob_matches_what_it_would_if_it_tried_everything(pieces: list[str], text: str) -> None:
    tried = re.fullmatch(".*".join(pieces), text) is not None
    assert (re.fullmatch(matching_glob(pieces), text) is not None) is tried


def test_a_glob_takes_no_longer_for_more_stars() -> None:
    began = time.process_time()
    assert re.fullmatch(matching_glob(["a"] * 40 + ["b"]), "a" * 100_000) is None
    assert time.process_time() - began < 5
