"""Splits HTML into texts and tags, in time proportional to its length whatever it contains.

`html.parser` takes the square of it for input such as `<a <a <a …` in versions of Python that are still in use: some
kilobytes would keep it busy for minutes.
"""

import re
from collections.abc import Iterator, Mapping
from html import unescape
from types import MappingProxyType

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex

_NAME = lazy_regex(r"[a-zA-Z][^ \t\n\r\f/>]*")
_GAP = lazy_regex(r"[ \t\n\r\f/]*")
_BLANKS = lazy_regex(r"[ \t\n\r\f]*")
_ATTRIBUTE = lazy_regex(r"=?[^ \t\n\r\f/>=]*")
_UNQUOTED = lazy_regex(r"[^ \t\n\r\f>]*")
_HUGE_NUMBER = lazy_regex(r"&#[0-9]{8,};?")
_LONGEST_VALUE = 4096
"""Characters of an attribute that are kept."""
_LONGEST_NAME = 64
_RAW = {
    name: lazy_regex(rf"</{name}(?=[ \t\n\r\f/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript")
}
"""Elements whose content is text, whatever it looks like, and what ends them."""


class HtmlTag(Struct, frozen=True):
    """A tag, as written."""

    name: str
    """In lower case."""
    attributes: Mapping[str, str] = MappingProxyType({})
    closes: bool = False
    """It is an end tag."""
    is_empty: bool = False
    """It ends with `/>`."""


def html_tokens(html: str) -> Iterator[str | HtmlTag]:
    """Texts, with character references resolved, and tags. What follows a tag or comment that never ends is dropped, as
    browsers do."""
    at = 0
    while (start := html.find("<", at)) >= 0:
        if start > at:
            yield decoded(html[at:start])
        after = html[start + 1 : start + 3]
        if after[:1].isascii() and after[:1].isalpha():
            tag, at = _tag(html, start + 1)
            if tag is None:
                return
            yield tag
            if tag.name in _RAW:
                end = _RAW[tag.name].search(html, at)
                yield decoded(html[at : end.start() if end else len(html)])
                at = end.start() if end else len(html)
        elif after[:1] == "/" and after[1:].isascii() and after[1:].isalpha():
            tag, at = _tag(html, start + 2)
            if tag is None:
                return
            yield HtmlTag(tag.name, closes=True)
        elif after[:1] in ("!", "?", "/") and after:
            end = html.find("-->", start + 2) + 2 if html.startswith("<!--", start) else html.find(">", start)
            if end < 2:
                return
            at = end + 1
        else:
            yield "<"
            at = start + 1
    if at < len(html):
        yield decoded(html[at:])


def decoded(text: str) -> str:
    """With character references such as `&amp;` resolved."""
    # A number with thousands of digits is refused by Python, which would be the end of the page.
    return unescape(_HUGE_NUMBER.sub("\ufffd", text)) if "&" in text else text


def _tag(html: str, at: int) -> tuple[HtmlTag | None, int]:
    """The tag whose name starts here, and where it ends. None: it does not end."""
    found = _NAME.match(html, at)
    assert found is not None  # the caller has seen a letter
    name, at, attributes = found[0][:_LONGEST_NAME].lower(), found.end(), dict[str, str]()
    while True:
        gap = _past(_GAP, html, at)
        if gap >= len(html):
            return None, gap
        if html[gap] == ">":
            return HtmlTag(name, attributes, is_empty=html[gap - 1] == "/"), gap + 1
        named = _past(_ATTRIBUTE, html, gap)
        key = html[gap : min(named, gap + _LONGEST_NAME)].lower()
        value, at = _value(html, named)
        if at < 0:
            return None, len(html)
        attributes.setdefault(key, decoded(value))


def _value(html: str, at: int) -> tuple[str, int]:
    """The value of the attribute whose name ends here, and where it ends; below zero if it does not."""
    start = _past(_BLANKS, html, at)
    if html[start : start + 1] != "=":
        return "", at
    start = _past(_BLANKS, html, start + 1)
    quote = html[start : start + 1]
    if quote not in ('"', "'") or not quote:
        end = _past(_UNQUOTED, html, start)
        return html[start : min(end, start + _LONGEST_VALUE)], end
    end = html.find(quote, start + 1)
    return html[start + 1 : min(end, start + 1 + _LONGEST_VALUE)], end + 1 if end >= 0 else -1


def _past(pattern: re.Pattern[str], html: str, at: int) -> int:
    """Where the text that matches here ends. The pattern matches the empty text too."""
    found = pattern.match(html, at)
    return at if found is None else found.end()
