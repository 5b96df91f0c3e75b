"""What rg looks for in the bytes of a file is in every file whose text matches."""

import re
from itertools import product

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.tools.encoding import decode
from wave_agent.tools.search.byte_pattern import byte_pattern
from wave_agent.tools.search.matches import compile_pattern

ATOMS = st.sampled_from(
    ["a", "k", "s", "I", "é", "\u0130", "\u017f", ".", r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\b", r"\B", "^", "$",
     "[ab]", "[^a]", "[^é]", "[aé]", r"[\w.-]", r"[^\s]", r"[^\W]", r"[^\S]", r"[\S]", "[a-z]", "(a|b)", "(?:ab)?",
     "(?P<n>k)", " ", r"\.", r"\t", "_"]
)  # fmt: skip
PATTERNS = st.lists(
    st.tuples(ATOMS, st.sampled_from(["", "", "*", "+", "?", "{2}", "+?"])).map("".join), min_size=1, max_size=4
).map("".join)
CHARACTERS = "abkKsI é_0.\r\t\u0130\u0131\u017f\u212a\x1c\x85\xa0中\U0001d7d8"
TEXTS = ["".join(some) for length in (1, 2) for some in product(CHARACTERS, repeat=length)] + ["abkK", "kéé a", "a\r\r"]
LINES = [
    line
    for text in TEXTS
    for line in (
        text.encode(),
        text.encode() + b"\r",  # of a file with CRLF
        text.encode("latin-1", "ignore"),
        text[:1].encode() + b"\xe9\xff" + text[1:].encode(),
    )
]


@settings(deadline=None)
@given(pattern=PATTERNS, ignore_case=st.booleans())
def test_the_bytes_match_wherever_the_text_does(pattern: str, ignore_case: bool) -> None:
    try:
        expression = compile_pattern(pattern, ignore_case=ignore_case, multiline=False)
    except re.error:
        assume(False)
    wider = byte_pattern(pattern, ignore_case=ignore_case)
    assert wider is not None
    in_bytes = re.compile(wider.encode(), re.IGNORECASE if ignore_case else 0)
    for line in LINES:
        text = decode(line + b"\n")
        if text is not None and expression.search(text.content.replace("\r\n", "\n")[:-1]):
            assert in_bytes.search(line), line


@rows(
    ("pattern", "expected"),
    [
        ("needle_in_hay", "needle_in_hay"),  # a plain word stays one, which rg finds fastest
        (r"def \w+\(", r"def [\w\x80-\xff]+\("),
        (r"^import .*\bos\b", r"^import .*(?:)os(?:)"),
        ("end$", r"end\r?$"),
        ("[a-f]{2,3}|(?P<x>y)", "[a-f]{2,3}|(?:y)"),
        (r"(?<=t)wo", None),
        (r"\p{L}", None),
        ("[[:alpha:]]", None),
        (r"a\nb", None),
        ("a\0b", None),
    ],
)
def test_the_pattern_for_bytes(pattern: str, expected: str | None) -> None:
    assert byte_pattern(pattern, ignore_case=False) == expected


def test_letters_beyond_ascii_are_found_when_case_is_ignored() -> None:
    wider = byte_pattern("risk", ignore_case=True)
    assert wider is not None
    assert re.search(wider.encode(), "r\u0131\u017f\u212a".encode(), re.IGNORECASE)
