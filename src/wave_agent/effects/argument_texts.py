"""Every text in the input of a tool that is not known: values and keys at any depth, JSON in texts included."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex

SHORT = 256
"""Up to this length, a text may be a single name, and any of its words a file's; in longer ones, only words that look
like one."""
_LONGEST_JSON = 1 << 16
_MOST_JSON = 64
_MOST_TEXTS = 20_000
_MOST_CHARACTERS = 1 << 20
_MOST_PARTS = 16
_DECODED = 3
"""How often a text may be encoded: percent signs, JSON in JSON."""
_FIELD = lazy_regex(r"[A-Za-z][A-Za-z0-9_-]*")
_JSON = lazy_regex(r"\s*[\[{\"]")
_ESCAPED = lazy_regex(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|u\{([0-9A-Fa-f]{1,6})\})")


class ArgumentText(Struct, frozen=True):
    """A text, and the names of the fields that lead to it, without positions in lists."""

    text: str
    fields: tuple[str, ...] = ()
    is_key: bool = False
    """It is the plain name of a field itself, in an inner object."""
    is_joined: bool = False
    """It was put together from the parts of a list."""

    @property
    def field(self) -> str:
        return self.fields[-1] if self.fields else ""

    @property
    def may_be_name(self) -> bool:
        """All of it may be the name of one file or directory."""
        return 0 < len(self.text) <= SHORT and "\n" not in self.text.strip()


class Texts(Struct, frozen=True):
    """The texts of an input, each once."""

    texts: tuple[ArgumentText, ...]
    complete: bool
    """False: there are more than can be looked at."""


def texts_in(tool_input: Any) -> Texts:
    """Total and bounded: any input has texts."""
    found: dict[ArgumentText, None] = {}
    length = 0
    for text in _Walk().all(tool_input):
        for form in decoded(text.text):
            one = ArgumentText(form, text.fields, text.is_key, text.is_joined)
            if one in found:
                continue
            length += len(form)
            if len(found) >= _MOST_TEXTS or length > _MOST_CHARACTERS:
                return Texts(tuple(found), complete=False)
            found[one] = None
    return Texts(tuple(found), complete=True)


def decoded(text: str) -> Iterator[str]:
    """The text, and what it is after each round of decoding `%2e` and `\\u002e`."""
    yield text
    for _ in range(_DECODED):
        plain = unquote(text) if "%" in text else text
        plain = _ESCAPED.sub(_character, plain) if "\\" in plain else plain
        if plain == text:
            return
        yield plain
        text = plain


def _character(found: re.Match[str]) -> str:
    code = int(found[1] or found[2] or found[3], 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"


class _Walk:
    """Through one input."""

    def __init__(self) -> None:
        self._parsed = 0

    def all(self, value: Any) -> Iterator[ArgumentText]:
        waiting: list[tuple[Any, tuple[str, ...], int]] = [(value, (), 0)]
        while waiting:
            one, fields, nested = waiting.pop()
            if isinstance(one, str):
                yield ArgumentText(one, fields)
                if nested < _DECODED and (inner := self._json(one)) is not None:
                    waiting.append((inner, (*fields, ""), nested + 1))
            elif isinstance(one, Mapping):
                for key, inner in cast(Mapping[Any, Any], one).items():
                    name = str(key)
                    # Plain names at the top are the tool's own words for its parameters.
                    if fields or not _FIELD.fullmatch(name):
                        yield ArgumentText(name, fields, _FIELD.fullmatch(name) is not None)
                    waiting.append((inner, (*fields[:_MOST_PARTS], name), nested))
            elif isinstance(one, list | tuple):
                parts = cast("Sequence[Any]", one)
                yield from _assembled(parts, fields)
                waiting += [(inner, fields or ("",), nested) for inner in reversed(parts)]

    def _json(self, text: str) -> Any:
        """What a text contains as JSON, if that is more than the text shows itself."""
        if len(text) > _LONGEST_JSON or self._parsed >= _MOST_JSON or not _JSON.match(text):
            return None
        self._parsed += 1
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None


def _assembled(parts: Sequence[Any], fields: tuple[str, ...]) -> Iterator[ArgumentText]:
    """`["locked", "a.txt"]` may be the steps of a path."""
    if 1 < len(parts) <= _MOST_PARTS and all(isinstance(one, str) and 0 < len(one) <= SHORT for one in parts):
        yield ArgumentText("/".join(parts), fields, is_joined=True)
        yield ArgumentText("".join(parts), fields, is_joined=True)
