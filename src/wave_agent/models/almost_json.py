"""Reads call arguments that are almost JSON.

Ambiguous text is rejected: a wrong guess could run a command, or write a file, that no one asked for. So an unfinished
string is never closed, and quotes inside quotes are never guessed.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from wave_agent.formats.strict_json import MAX_DEPTH

Arguments = dict[str, Any]

_LAYERS = 3
"""How many levels of JSON inside a JSON string to unpack."""


class UnclearError(Exception):
    """The text cannot be read, or is ambiguous."""


def _unique(pairs: list[tuple[str, Any]]) -> Arguments:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UnclearError
    return found


def _refuse_constant(_name: str) -> float:
    raise UnclearError


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
_lenient_decoder = json.JSONDecoder(strict=False)

_ESCAPED_OBJECT = re.compile(r'\{(?:\s|\\n)*\\"')
_PAIRS = re.compile(r"""(?:"[^"\\\n]*"|'[^'\\\n]*')\s*:|[A-Za-z_][\w.-]*\s*=(?!=)""")
_FENCE_OPENS = re.compile(r"```[\w-]*\s")


def read_arguments(text: str, *, layers: int = _LAYERS, alone: bool = False) -> Arguments:
    """Read the arguments object in a text. With `alone`, there must be no prose around it."""
    text = text.lstrip("\ufeff").strip()
    if not text or not layers:
        raise UnclearError
    try:
        value = _decoder.decode(text)
    except ValueError:
        value = _almost_json(unfenced(text), alone)
    if isinstance(value, str):
        return read_arguments(value, layers=layers - 1, alone=alone)
    if not isinstance(value, dict):
        raise UnclearError
    return cast(Arguments, value)


def _almost_json(text: str, alone: bool) -> Arguments | str:
    if _ESCAPED_OBJECT.match(text):  # the inside of a JSON string, without its quotes
        return _decoded_string(text)
    if text.startswith("<"):
        return _tagged(text)
    reader = LenientReader(text)
    if _PAIRS.match(text):
        found = reader.members("")
        if len(found) == 1 and isinstance(next(iter(found.values())), dict):  # an argument, or a wrapper around all?
            raise UnclearError
        return found
    before, brace, _ = text.partition("{")
    if not brace or set(before) & set("[]()<>=}") or (alone and before):
        raise UnclearError
    reader.at = len(before) + 1
    found = reader.members("}")
    after = text[reader.at :].strip()
    if set(after) & set("{}") or (alone and after):
        raise UnclearError
    return found


def unfenced(text: str) -> str:
    if _FENCE_OPENS.match(text) and text.endswith("```"):
        return _FENCE_OPENS.sub("", text, count=1)[:-3].strip()
    return text


def _decoded_string(inside: str) -> str:
    try:
        return cast(str, _lenient_decoder.decode(f'"{inside}"'))
    except ValueError:
        raise UnclearError from None


# A comment must not contain a quote: it could be the rest of a string with a quote in it.
_SPACE = re.compile(r'(?:\s+|(?://|#)[^\n"]*(?=\n|\Z)|/\*[^"]*?\*/)*')
_KEY = re.compile(r"[A-Za-z_$][\w$-]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-])")
_WORD = re.compile(r"(true|True)\b|(false|False)\b|(?:null|None)\b")
_QUOTES = {'"""': '"""', "'''": "'''", '"': '"', "'": "'", "“": "”", "”": "”", "‘": "’"}  # noqa: RUF001
# An atomic group: possessive around a lookahead (`*+`) never matches in Python 3.11.2.
_STRINGS = {
    opening: re.compile(
        rf"{opening}((?>(?:[^\\{closing[0]}]++|\\.|{closing[0]}(?!{closing[1:]}))*)){closing}", re.DOTALL
    )
    for opening, closing in _QUOTES.items()
}
_ESCAPE_OR_QUOTE = re.compile(r'\\.|"', re.DOTALL)


class LenientReader:
    """Reads JSON and near-JSON from a position in a text."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0

    def space(self) -> str:
        """Skip white space and comments. Returns the next character, or an empty string at the end."""
        self.at = self.take(_SPACE).end()
        return self.text[self.at : self.at + 1]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise UnclearError
        self.at = match.end()
        return match

    def value(self) -> Any:
        first = self.space()
        if first in _QUOTES:
            return self.string()
        if first not in ("{", "["):
            return self.scalar()
        self.at += 1
        return self.members("}") if first == "{" else [self.value() for _ in self.entries("]")]

    def scalar(self) -> Any:
        if word := _WORD.match(self.text, self.at):
            self.at = word.end()
            return True if word[1] else False if word[2] else None
        number = self.take(_NUMBER)[0]
        if self.at == len(self.text) and self.depth:  # cut off: more digits may be missing
            raise UnclearError
        try:
            return json.loads(number)
        except ValueError:  # more digits than Python converts
            raise UnclearError from None

    def string(self) -> str:
        triple = self.text[self.at : self.at + 3]
        inside = self.take(_STRINGS[triple if triple in _STRINGS else triple[0]])[1]
        if "\\" not in inside:
            return inside

        def for_json(match: re.Match[str]) -> str:
            return {'"': '\\"', "\\'": "'"}.get(match[0], match[0])

        # JSON's escapes only: others mean different things in different languages.
        return _decoded_string(_ESCAPE_OR_QUOTE.sub(for_json, inside))

    def members(self, end: str) -> Arguments:
        """Keys and values up to `end` or, if that is empty, the end of the text."""
        found: Arguments = {}
        for _ in self.entries(end):
            key = self.string() if self.space() in _QUOTES else self.take(_KEY)[0]
            if key in found or self.space() not in (":", "="):
                raise UnclearError
            self.at += 1
            found[key] = self.value()
        return found

    def entries(self, end: str) -> Iterator[None]:
        """Yield once per entry of a list. Its closing bracket may be missing, unless a comma announces more."""
        self.depth += bool(end)
        if self.depth > MAX_DEPTH:
            raise UnclearError
        more, behind = True, self.at
        while following := self.space():
            if following == end:
                self.at += 1
                break
            if not more:
                raise UnclearError
            yield
            behind = self.at
            more = self.space() == ","
            self.at += more
            more = more or (not end and "\n" in self.text[behind : self.at])
        else:
            if more or self.text[behind:].strip():  # a comment may have hidden the rest
                raise UnclearError
        self.depth -= bool(end)


_TAG = re.compile(
    r"""\s*(?:<arg_key>\s*(?P<key1>[\w.-]+)\s*</arg_key>\s*<arg_value>(?P<value1>.*?)</arg_value>
    |<parameter=(?P<key2>[\w.-]+)>(?P<value2>.*?)</parameter>
    |<(?P<tag>(?:\w+:)?(?:arg|argument|param|parameter))\s+name=["'](?P<key3>[\w.-]+)["']>(?P<value3>.*?)</(?P=tag)>
    |<(?P<key4>[A-Za-z_][\w.-]*)>(?P<value4>.*?)</(?P=key4)>)\s*""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPED_XML = re.compile(r"&(?:lt|gt|amp|quot|apos|#\w+);|<!\[CDATA\[")
WRAPPERS = frozenset({"arguments", "parameters", "args", "params", "input"})


def _tagged(text: str) -> Arguments:
    reader = LenientReader(text)
    pairs: list[tuple[str, str]] = []
    while reader.at < len(text):
        match = reader.take(_TAG)
        key = next(key for key in match.group("key1", "key2", "key3", "key4") if key is not None)
        value = next(value for value in match.group("value1", "value2", "value3", "value4") if value is not None)
        if _ESCAPED_XML.search(value):  # XML escapes, or literal text?
            raise UnclearError
        framed = len(value) > 1 and value[0] == value[-1] == "\n"
        pairs.append((key, value[1:-1] if framed else value))
    found = _unique(pairs)
    if len(pairs) == 1 and pairs[0][0] in WRAPPERS and pairs[0][1].lstrip()[:1] in ("{", "<"):
        return read_arguments(pairs[0][1], layers=1, alone=True)
    return found
