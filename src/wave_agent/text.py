"""Text on its way to a reader: control characters removed, cut to a length, with hints for misspelt words."""

from collections.abc import Iterable

from wave_agent.lazy_regex import lazy_regex

TEXT_LIMIT = 10_000
"""Maximum length of one hook text that the model or the user is shown, in characters."""
NAME_LIMIT = 128
"""Maximum length of a tool's name. Matchers never see a longer one, so no expression takes long."""

# Order matters: a whole escape sequence is removed before its introducer alone. An unterminated string loses only
# its introducer: the text after it may be the reason of a deny.
_ESCAPES = lazy_regex(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # operating system command: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # device control and other strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # control sequence: colours, cursor
    r"|\x1b[ -/]*[0-~]?"  # any other escape
)
# Control characters except tab and newline, and invisible ones that reorder or hide text.
_CONTROLS = lazy_regex(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)


def strip_controls(text: str) -> str:
    """The text without terminal escapes, control characters and direction overrides. `\\r\\n` becomes a newline."""
    if text.isprintable():
        return text
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, limit: int = 0) -> str:
    """The text on one line, without control characters. `limit` cuts it, with an ellipsis."""
    flat = " ".join(strip_controls(text[: limit * 4] if limit else text).split())
    return flat if not limit or len(flat) <= limit else f"{flat[: limit - 1]}…"


_LONG_BLANK = lazy_regex(r"[ \u00a0\u2000-\u200a\u3000]{8,}")


def reveal(text: str) -> str:
    """The text for a person who has to judge it: nothing is omitted, and invisible characters are spelt out."""
    if text.isprintable() and not _LONG_BLANK.search(text):
        return text
    spelt = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
    return _LONG_BLANK.sub(lambda blanks: f" [{len(blanks[0])} blanks] ", spelt)


def clip(text: str, limit: int = TEXT_LIMIT, *, whole: str | None = None) -> str:
    """At most `limit` characters, followed by a note that says so and where the `whole` text is stored."""
    if len(text) <= limit:
        return text
    where = f"; the whole is in {whole}" if whole else ""
    return f"{text[:limit]}\n[cut here: {limit:,} of {len(text):,} characters{where}]"


def nearest(word: str, known: Iterable[str], *, likeness: float = 0.7) -> str | None:
    """The known word that `word` was probably meant to be. `likeness`: how much of them must agree."""
    from difflib import get_close_matches  # lazy: only wrong input needs it, and it is not free to import

    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=likeness)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`" (did you mean X?)"`, or an empty string."""
    name = nearest(word, known)
    return f' (did you mean "{name}"?)' if name else ""
