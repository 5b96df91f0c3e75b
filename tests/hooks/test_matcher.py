"""Matchers: which tools they name, and which texts are not matchers."""

import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.hooks.events import EVENTS, HookEvent
from wave_agent.hooks.matcher import (
    EVERYTHING,
    KNOWN_TOOLS,
    MatcherError,
    MatcherForm,
    parse_file_matcher,
    parse_matcher,
)

EXPRESSION_CHARACTERS = ".^$()[]{}+\\"
NEARLY_MATCHERS = st.text(alphabet=st.sampled_from("aBz_09-*?|, " + EXPRESSION_CHARACTERS), max_size=12)
NAMES = st.from_regex(r"[A-Za-z0-9_-]+", fullmatch=True)


# --------------------------------------------------------------------------------------------------------- what matches


@pytest.mark.parametrize("text", ["", "*", " ", " * "])
def test_an_empty_matcher_and_a_star_match_everything(text: str) -> None:
    matcher = parse_matcher(text)
    assert matcher.matches("Bash")
    assert matcher.matches("")
    assert matcher.explain() == "everything"
    assert matcher.text == text


@rows(
    ("text", "matching", "others"),
    [
        # names: whole and whatever the case
        ("Bash", ["Bash", "bash", "BASH"], ["BashOutput", "MyBash", "Bas", "", "Bash\n"]),
        ("bash", ["Bash"], ["BashOutput"]),
        ("my-tool_2", ["My-Tool_2"], ["my-tool_22"]),
        ("mcp__files__read", ["mcp__files__read", "MCP__Files__Read"], ["mcp__files__read_all", "mcp__files"]),
        # alternatives
        ("Bash|Edit", ["Bash", "edit"], ["Bash|Edit", "Read"]),
        ("Write, Edit", ["Write", "Edit"], ["Read", ", Edit"]),
        (" Bash | Edit,Write ", ["Bash", "Edit", "Write"], ["Read"]),
        ("Bash|mcp__.*|Not*", ["bash", "mcp__x__y", "notebookedit"], ["MCP__x", "BashOutput"]),
        # globs: whole and whatever the case
        ("bash*", ["Bash", "BashOutput"], ["MyBash"]),
        ("*Edit", ["Edit", "MultiEdit", "multiedit"], ["Editor"]),
        ("mcp__*__read", ["mcp__files__read", "mcp__a__b__read"], ["mcp__files__write", "mcp__files__read2"]),
        ("?ash", ["Bash", "hash"], ["ash", "slash"]),
        ("B?s*", ["Bash", "BusStop"], ["Bs", "ABash"]),
        ("**", ["", "Bash"], []),
        ("*|Bash", ["Read", "Bash"], []),
        # expressions: searched, and the case counts
        ("mcp__.*", ["mcp__files__read", "xmcp__y"], ["MCP__files", "mcp_files"]),
        ("^Notebook", ["NotebookEdit"], ["notebookedit", "MyNotebook"]),
        ("^Bash$", ["Bash"], ["bash", "BashOutput"]),
        ("mcp__x__(a|b)", ["mcp__x__a", "mcp__x__b"], ["mcp__x__c"]),
        ("(Write|Edit)$", ["Write", "MultiEdit"], ["Editor"]),
        ("[BR]ash|Edit", ["Bash", "Rash", "Edit"], ["Hash"]),
        ("x[|,]y", ["x|y", "x,y"], ["x", "y", "xy"]),
        ("x[]|]y|Bash", ["x]y", "x|y", "Bash"], ["xy"]),
        (r"x[\]|]y", ["x]y", "x|y"], ["xy"]),
        ("a{1,2}b", ["ab", "aab"], ["b"]),
        (r"a\|b", ["a|b"], ["a", "b"]),
        ("(?i)^bash$", ["BASH"], ["BashOutput"]),
        (".*", ["", "Bash"], []),
        ("Web.+", ["WebFetch"], ["Web"]),
        ("Bashful(ly)?", ["Bashful", "Bashfully"], ["Bash"]),
    ],
)
def test_a_matcher_matches_exactly_these(text: str, matching: list[str], others: list[str]) -> None:
    matcher = parse_matcher(text)
    assert [name for name in matching if not matcher.matches(name)] == []
    assert [name for name in others if matcher.matches(name)] == []


@rows(
    ("text", "forms"),
    [
        ("Bash", [MatcherForm.NAME]),
        ("Bash*", [MatcherForm.GLOB]),
        ("Bash.*", [MatcherForm.EXPRESSION]),
        ("Bash|Ed?t, ^mcp", [MatcherForm.NAME, MatcherForm.GLOB, MatcherForm.EXPRESSION]),
        *((f"a{character}", [MatcherForm.EXPRESSION]) for character in ".^$+"),
        ("a*b?", [MatcherForm.GLOB]),
        ("*.x", None),
    ],
)
def test_each_alternative_is_read_for_itself(text: str, forms: list[MatcherForm] | None) -> None:
    if forms is None:
        with pytest.raises(MatcherError):
            parse_matcher(text)
    else:
        assert [alternative.form for alternative in parse_matcher(text).alternatives] == forms


def test_a_matcher_explains_how_it_was_read() -> None:
    explained = parse_matcher("Bash|mcp__*|^Edit$").explain()
    assert explained == 'name "Bash" or glob "mcp__*" or regular expression "^Edit$"'
    assert EVERYTHING.explain() == "everything"


@settings(deadline=None)
@given(name=NAMES, other=NAMES)
def test_a_plain_name_matches_itself_and_nothing_else(name: str, other: str) -> None:
    matcher = parse_matcher(name)
    assert matcher.matches(name.swapcase())
    assert matcher.matches(other) == (name.lower() == other.lower())


@settings(deadline=None)
@given(names=st.lists(NAMES, min_size=1, max_size=5), separator=st.sampled_from(["|", ",", " | ", ", "]), other=NAMES)
def test_alternatives_match_what_one_of_them_matches(names: list[str], separator: str, other: str) -> None:
    matcher = parse_matcher(separator.join(names))
    assert all(matcher.matches(name) for name in names)
    assert matcher.matches(other) == any(parse_matcher(name).matches(other) for name in names)


# --------------------------------------------------------------------------------------------- what cannot be a matcher


@rows("tool", KNOWN_TOOLS)
def test_a_tool_with_an_argument_is_refused_with_the_advice_to_use_if(tool: str) -> None:
    with pytest.raises(MatcherError) as refused:
        parse_matcher(f"Foo|{tool}(git push*)")
    assert str(refused.value) == (
        f'a matcher contains only tool names: write "{tool}" and put "if": "{tool}(git push*)" on the hook'
    )


@pytest.mark.parametrize("text", ["Bash(rm:*)", "bash(rm)", "Read(.env)", "Edit|Bash(git push)", "Bash()"])
def test_a_tool_with_an_argument_is_refused_in_any_case_and_place(text: str) -> None:
    with pytest.raises(MatcherError, match='"if"'):
        parse_matcher(text)


@rows(
    "text",
    ["mcp__(", "[a", "(a", "a)", "*.md", "+", "a{2,1}", "(?P<x", "\\", "Bash|(", "[z-a]", "(?z)", "a**b.", "a)|(b"],
)
def test_a_broken_expression_is_refused_and_named(text: str) -> None:
    with pytest.raises(MatcherError, match="is not a valid regular expression"):
        parse_matcher(text)


@pytest.mark.parametrize(
    "text", ["a{99999999999999999999}", "(" * 3000 + ")" * 3000], ids=["a large number", "deeply nested"]
)
def test_an_expression_too_large_to_compile_is_refused(text: str) -> None:
    with pytest.raises(MatcherError, match="is not a valid regular expression"):
        parse_matcher(text)


@pytest.mark.parametrize("text", ["Bash|", "|Bash", "Bash||bash", "Bash, ,Bash", " , Bash"])
def test_an_empty_alternative_is_left_out(text: str) -> None:
    matcher = parse_matcher(text)
    assert matcher.matches("Bash")
    assert not matcher.matches("Write")
    assert not matcher.matches("")


@pytest.mark.parametrize("text", ["|", ",", " , ", "|| ,"])
def test_a_matcher_of_separators_alone_is_refused(text: str) -> None:
    with pytest.raises(MatcherError, match="it is empty"):
        parse_matcher(text)


@rows(
    "text",
    ["Bash Edit", "Bash;Edit", "Bash/Edit", "!Bash", "Bash & Edit", "tool == Bash", "Bash\nEdit", "'Bash'", "Bash: *"],
)
def test_characters_that_belong_to_no_form_are_refused(text: str) -> None:
    with pytest.raises(MatcherError, match="is neither a tool name"):
        parse_matcher(text)


@pytest.mark.parametrize(
    "text",
    [
        'tool == "Bash" && tool_input.command matches "git push"',
        'tool_name == "Write" && tool_input.file_path =~ "\\.env$"',
        "Bash (git push)",
    ],
)
def test_a_condition_language_is_refused_although_it_could_be_read_as_an_expression(text: str) -> None:
    with pytest.raises(MatcherError):
        parse_matcher(text)


@given(text=NEARLY_MATCHERS | st.text())
@example("[[a]")
@example("[a--z]")
@example("a{" + "9" * 5000 + "}")
@example("(?(1)a|b)")
@example(r"\N{NO SUCH NAME}")
def test_any_text_is_a_matcher_that_works_or_a_matcher_error(text: str) -> None:
    try:
        matcher = parse_matcher(text)
    except MatcherError:
        return
    assert matcher.matches("Bash") in (True, False)
    assert matcher.explain()


@given(text=NEARLY_MATCHERS)
def test_no_text_with_a_broken_expression_becomes_a_matcher(text: str) -> None:
    whole = text.strip()
    assume(not set(whole) & set("|,"))
    assume(set(whole) & set(EXPRESSION_CHARACTERS))
    assume("[[" not in whole)
    assume("--" not in whole)
    try:
        re.compile(whole)
    except re.error:
        with pytest.raises(MatcherError):
            parse_matcher(text)
        return
    with suppress(MatcherError):  # sound, but with characters that no tool's name has
        matcher = parse_matcher(text)
        assert [alternative.form for alternative in matcher.alternatives] == [MatcherForm.EXPRESSION]


def test_what_is_longer_than_a_name_is_not_compared_and_the_hooks_run():
    assert parse_matcher("Bash").matches("x" * 129)
    assert not parse_matcher("Bash").matches("x" * 128)


def test_an_expression_with_too_many_choices_is_refused():
    with pytest.raises(MatcherError, match="this many repeats"):
        parse_matcher("mcp__.*.*.*.*x")


def test_a_glob_with_many_stars_is_quick():
    assert not parse_matcher("*a" * 40 + "b").matches("a" * 128)
    assert parse_matcher("*a?*b*").matches("xAcxBx")


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        (".env|package.json", [".env", "package.json"], ["xenv", ".env.local", "PACKAGE.JSON"]),
        ("*.lock | a?c", ["poetry.lock", ".lock", "abc"], ["lock", "abbc"]),
        ("[id].tsx|$page.ts|a+b", ["[id].tsx", "$page.ts", "a+b"], ["i.tsx", "aab"]),
        (".*", ["anything"], []),
        ("*", ["anything"], []),
        ("", ["anything"], []),
        ("|.env|", [".env"], [""]),
    ],
)
def test_a_matcher_of_files_holds_their_names(text: str, matching: list[str], others: list[str]):
    matcher = parse_file_matcher(text)
    assert [name for name in (*matching, *others) if matcher.matches(name)] == matching


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("^\\.env$", "is not a file name"),
        (".env$", "is not a file name"),
        ("src/.env", "without directories"),
        (" | ", "it is empty"),
    ],
)
def test_a_matcher_of_files_that_could_never_match_is_refused(text: str, why: str):
    with pytest.raises(MatcherError, match=why):
        parse_file_matcher(text)


@rows(
    ("payload", "targets"),
    [
        ({"tool_name": "Bash"}, ("Bash",)),
        (
            {"tool_name": "mcp__s__a_1", "mcp": {"server": "s", "tool": "a.b"}},
            ("mcp__s__a_1", "mcp__s__a.b", "mcp__s__a_b"),
        ),
        # Every matcher matches a name that is too long, also that of a hook which allows something else.
        ({"tool_name": "mcp__s__x", "mcp": {"server": "s", "tool": "x" * 200}}, ("mcp__s__x",)),
    ],
)
def test_a_servers_tool_has_a_name_for_models_and_one_of_its_own(payload: Any, targets: tuple[str, ...]) -> None:
    assert EVENTS[HookEvent.PRE_TOOL_USE].targets_in(payload) == targets
