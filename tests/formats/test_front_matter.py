"""The block of YAML at the top of skills, commands and agents."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.formats.front_matter import LONGEST, FrontMatterError, parse_front_matter


def test_values_body_and_lines_are_found() -> None:
    found = parse_front_matter("---\nname: fix\nallowed-tools:\n  - Read\n---\n\n# Fix\n\nDo it.\n")
    assert found.values == {"name": "fix", "allowed-tools": ["Read"]}
    assert found.body == "# Fix\n\nDo it."
    assert (found.line("name"), found.line("allowed-tools", 0), found.line("missing")) == (2, 4, 2)


@rows(
    "text, body", [("Do it.", "Do it."), ("", ""), ("# A\n---\nb: c\n---", "# A\n---\nb: c\n---"), ("---\n---\nx", "x")]
)
def test_without_a_block_everything_is_body(text: str, body: str) -> None:
    found = parse_front_matter(text)
    assert (found.values, found.body) == ({}, body)


def test_windows_lines_and_a_byte_order_mark_change_nothing() -> None:
    assert parse_front_matter("\ufeff---\r\nname: a\r\n---\r\nDo\r\nit.").body == "Do\nit."


@rows(
    "text, message",
    [
        ("---\nname: a\nDo it.", "line 1: the block that starts with --- has no second line ---"),
        ("---\n- a\n---\nx", "line 2: expected lines such as `name: value`, not a list"),
        ("---\na: 1\nb: [c\n---\nx", "line 3: expected ',' or ']', but got '<stream end>'"),
        ("---\na: 1\na: 2\n---\nx", 'line 3: duplicate key "a"'),
        ("---\na: !!python/object:os.system {}\n---\nx", "line 2: "),
        (
            f"---\na: {'x' * LONGEST}\n---\nx",
            "line 1: the block between the lines --- is longer than 16,000 characters",
        ),
        (f"---\na: {'[' * 7000}\n---\nx", "line 2: nested deeper than 64"),
    ],
)
def test_what_cannot_be_read_is_explained_with_its_line(text: str, message: str) -> None:
    with pytest.raises(FrontMatterError) as told:
        parse_front_matter(text)
    assert str(told.value).startswith(message)


def test_what_other_agents_accept_is_accepted_for_their_files() -> None:
    text = (
        "---\nargument-hint: [file] [line]\ndescription: Use when: it's late\nkeep: 'as: is'\nflag: false\n---\nDo it."
    )
    with pytest.raises(FrontMatterError):
        parse_front_matter(text)
    assert parse_front_matter(text, forgiving=True).values == {
        "argument-hint": "[file] [line]",
        "description": "Use when: it's late",
        "keep": "as: is",
        "flag": False,
    }
    assert parse_front_matter("---\nno end", forgiving=True).body == "---\nno end"
    with pytest.raises(FrontMatterError, match="line 2"):
        parse_front_matter("---\n  [: x\n---\n", forgiving=True)


@given(st.text(), st.booleans())
def test_any_text_is_read_or_explained(text: str, forgiving: bool) -> None:
    for one in (text, f"---\n{text}\n---\n{text}"):
        problem = None
        try:
            found = parse_front_matter(one, forgiving=forgiving)
            json.dumps(found.values)
            assert found.body in one.replace("\r\n", "\n")
        except FrontMatterError as error:
            problem = error
        assert problem is None or (problem.problem and problem.line >= 1)


values = st.dictionaries(
    st.from_regex(r"[a-z][a-z-]{0,9}", fullmatch=True),
    st.recursive(st.text() | st.booleans() | st.integers(), lambda inner: st.lists(inner, max_size=3), max_leaves=5),
    max_size=5,
)


@given(values, st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])))
def test_what_was_written_is_read_back(written: dict[str, object], body: str) -> None:
    lines = "\n".join(f"{name}: {json.dumps(value)}" for name, value in written.items())
    found = parse_front_matter(f"---\n{lines}\n---\n{body}")
    assert json.dumps(found.values) == json.dumps(written)
    assert found.body == body.strip()
