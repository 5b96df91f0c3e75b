"""Whether an entry of the effects and the pattern of a rule can name the same path."""

from hypothesis import given
from hypothesis import strategies as st

from tests.effects.matching import names
from tests.rows import rows
from wave_agent.effects.overlap import may_meet


@rows(
    ("entry", "pattern", "expected"),
    [
        ("/p/.env", "/p/.env", True),
        ("/p/.env", "/p/**/.env", True),
        ("/p/a/.env", "/p/**/.env", True),
        ("/p/a", "/p/b", False),
        ("/p/**", "/p/vendor/**", True),
        ("/p/src/**", "/p/vendor/**", False),
        ("/p/*", "/p/vendor/x", False),
        ("/p/**/[!.]*", "/p/**/.env", False),
        ("/p/**/[!.]*", "/p/secrets/*", True),
        ("/p/*.txt", "/p/a*", True),
        ("/p/*.txt", "/p/*.md", False),
        ("/p/?", "/p/ab", False),
        ("/p/?", "/p/a", True),
        ("/p/a[*]b", "/p/a*b", True),
        ("/p/a[*]b", "/p/axb", False),
        ("/p/[ab]", "/p/[bc]", True),
        ("/p/[ab]", "/p/[!ab]", False),
        ("/p/[!a]", "/p/[!b]", True),
        ("/p/[a-c]", "/p/x", True),
        ("/p/[^.]*", "/p/.x", False),
        ("/p/[]", "/p/[]", True),
        ("/", "/p", False),
        ("", "", True),
        ("/**/a/**/b/**/c/**/d/**/e", "/x/a/b/c/d/e", True),
        ("/**/a/**/b/**/c/**/d/**/e", "/x/a/b/c/d/f", False),
        ("/" + "*a" * 400, "/" + "*b" * 400, True),
    ],
)
def test_patterns(entry: str, pattern: str, expected: bool) -> None:
    assert may_meet(entry, pattern) is expected
    assert may_meet(pattern, entry) is expected


PARTS = st.lists(st.sampled_from(["a", "b", ".", "*", "?", "/", "/**/", "**", "[ab]", "[!.]"]), max_size=7)
PATHS = st.lists(st.sampled_from(["a", "b", ".", "/"]), max_size=6).map(lambda parts: "/" + "".join(parts))


@given(PARTS.map(lambda parts: "/" + "".join(parts)), PARTS.map(lambda parts: "/" + "".join(parts)), PATHS)
def test_a_path_that_both_name_is_never_missed(one: str, other: str, path: str) -> None:
    if names(one, path) and names(other, path):
        assert may_meet(one, other)
    if names(one, path):
        assert may_meet(one, path)
        assert may_meet(path, one)
