"""Text on its way to a reader."""

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.text import TEXT_LIMIT, clip, did_you_mean, nearest, strip_controls

TERMINAL_TEXT = st.lists(
    st.sampled_from(["\x1b", "[", "]", "P", "\\", "\x07", "\x9b", "\x9d", "31", ";", "m", "\r", "\n", "\t", "x", "é"])
    | st.characters(),
    max_size=20,
).map("".join)


@given(text=TERMINAL_TEXT | st.text())
@example("\r\x00\n")
@example("\x1b\x1b[[31mm")
@example("\x1b[\x9b31m")
@example("\x1b]0;\x1b[31mtitle\x07")
def test_no_control_character_but_newline_and_tab_survives_and_once_is_enough(text: str) -> None:
    stripped = strip_controls(text)
    assert not [
        character for character in stripped if unicodedata.category(character) == "Cc" and character not in "\n\t"
    ]
    assert strip_controls(stripped) == stripped


@settings(deadline=None)
@given(text=st.text(alphabet=st.characters(exclude_categories=["C"]) | st.sampled_from("\n\t")))
def test_text_without_control_characters_is_left_alone(text: str) -> None:
    assert strip_controls(text) == text


@rows(
    ("text", "stripped"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;2;1;2;3mcolour\x1b[m", "colour"),
        ("\x9b31mred", "red"),
        ("a\x1b[2Jb\x1b[1;1Hc", "abc"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;Y2xpcGJvYXJk\x07text", "text"),
        ("\x1bP1$r0m\x1b\\text", "text"),
        ("\x1b(Btext", "text"),
        ("\x1bctext", "text"),
        ("over\rwritten", "overwritten"),
        ("back\x08space", "backspace"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\tb\nc", "a\tb\nc"),
        ("nul\x00 del\x7f nel\x85", "nul del nel"),
        ("\u202egnp.exe\u202c", "gnp.exe"),
        ("\u2066hidden\u2069\u200e\u200f", "hidden"),
        ("\x1b", ""),
        ("", ""),
        ("日本語 👍🏽", "日本語 👍🏽"),
    ],
)
def test_terminal_escapes_and_direction_overrides_are_removed(text: str, stripped: str) -> None:
    assert strip_controls(text) == stripped


def test_text_up_to_the_limit_is_not_cut() -> None:
    assert TEXT_LIMIT == 10_000
    assert clip("x" * 10_000) == "x" * 10_000
    assert clip("") == ""


def test_longer_text_is_cut_with_a_note_that_names_where_the_whole_is() -> None:
    cut = clip("x" * 12_345, whole="/outputs/hook-1.txt")
    assert cut == "x" * 10_000 + "\n[cut here: 10,000 of 12,345 characters; the whole is in /outputs/hook-1.txt]"


def test_the_note_names_no_file_where_there_is_none() -> None:
    assert clip("abcdef", 3) == "abc\n[cut here: 3 of 6 characters]"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("PreToolUse", "PreToolUse"),
        ("pretooluse", "PreToolUse"),
        ("PreTolUse", "PreToolUse"),
        ("preToolsUse", "PreToolUse"),
        ("Stopp", "Stop"),
        ("Banana", None),
        ("", None),
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest_known_one(word: str, meant: str | None) -> None:
    known = ["PreToolUse", "PostToolUse", "Stop"]
    assert nearest(word, known) == meant
    assert did_you_mean(word, known) == (f' (did you mean "{meant}"?)' if meant else "")
