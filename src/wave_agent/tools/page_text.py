"""The text of a page: its bytes decoded, HTML made readable."""

import codecs
import re

from msgspec import Struct

from wave_agent.formats.html_text import readable_page
from wave_agent.lazy_regex import lazy_regex
from wave_agent.text import strip_controls
from wave_agent.tools.encoding import kind_of_binary

_LONGEST_HTML = 3_000_000
"""Characters of HTML that are made readable."""
_HEAD = 2048
"""Bytes of a page in which it may name its encoding."""
_IN_TYPE = lazy_regex(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_IN_HEAD = lazy_regex(rb"""<meta[^>]{0,300}?charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_SAME_AS_WINDOWS = frozenset({"ascii", "us-ascii", "iso-8859-1", "latin1", "latin-1", "iso8859-1", "windows-1252"})
"""Browsers read all of these alike."""
_KNOWN = lazy_regex(
    r"utf-?8|utf-?16(?:-?[lb]e)?|(?:windows|cp)-?125[0-8]|windows-874|iso-?8859-\d{1,2}|koi8-[ru]|ibm866|macintosh|"
    r"x-mac-cyrillic|gb2312|gbk|gb18030|big5(?:-hkscs)?|euc-(?:jp|kr)|iso-2022-jp|shift[_-]jis|ks_c_5601-1987"
)
"""Encodings of the web. Python has others, some of which are not meant for text from strangers."""


class PageText(Struct, frozen=True):
    """What the model sees of a page."""

    text: str
    title: str = ""
    is_whole: bool = True
    binary: str = ""
    """What it is, if not text."""


def page_text(body: bytes, content_type: str, url: str) -> PageText:
    """`url`: where it is from."""
    encoding = _named_encoding(body, content_type)
    if encoding is None and (kind := kind_of_binary(body)):
        return PageText("", binary=kind)
    text = _decoded(body, encoding)
    if not _is_html(text, content_type):
        return PageText(strip_controls(text.replace("\r\n", "\n")))
    page = readable_page(text[:_LONGEST_HTML], url)
    is_whole = page.is_whole and len(text) <= _LONGEST_HTML
    return PageText(strip_controls(page.text), strip_controls(page.title), is_whole)


def _is_html(text: str, content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    if kind in ("text/html", "application/xhtml+xml"):
        return True
    return not kind and text.lstrip()[:15].lower().startswith(("<!doctype html", "<html"))


def _named_encoding(body: bytes, content_type: str) -> str | None:
    """The encoding that the page or its server names, if it is a known one."""
    for mark, encoding in _BOMS:
        if body.startswith(mark):
            return encoding
    if (in_type := _IN_TYPE.search(content_type)) and (known := _known(in_type[1])):
        return known
    if in_head := _IN_HEAD.search(body[:_HEAD]):
        known = _known(in_head[1].decode("ascii", "replace"))
        return "utf-8" if known and known.startswith("utf-16") else known  # or the tag could not have been read
    return None


def _known(name: str) -> str | None:
    name = name.lower()
    if name in _SAME_AS_WINDOWS:
        return "windows-1252"
    if _KNOWN.fullmatch(name) is None:
        return None
    try:
        return codecs.lookup({"shift-jis": "shift_jis", "windows-874": "cp874"}.get(name, name)).name
    except LookupError:
        return None


def _decoded(body: bytes, encoding: str | None) -> str:
    if encoding is not None:
        return body.decode(encoding, "replace").removeprefix("\ufeff")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        # The last character of a page that was cut may be incomplete. Any other stray byte is from an older encoding.
        is_cut = error.reason == "unexpected end of data"
        return body.decode("utf-8" if is_cut else "windows-1252", "replace")
