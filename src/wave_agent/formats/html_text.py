"""HTML as text that is easy to read, in a simple Markdown: headings, lists, links, code, rows of tables.

Takes time proportional to the length of the page, and no recursion: nesting may be as deep as it likes.
"""

from collections.abc import Callable, Mapping
from urllib.parse import urljoin

from msgspec import Struct

from wave_agent.formats.html_tokens import HtmlTag, html_tokens
from wave_agent.lazy_regex import lazy_regex

_LONGEST = 1_000_000
"""Characters of text. More than that is not read by anyone."""
_DEEPEST = 8
"""Levels of lists and quotes that are shown."""
_LONGEST_LINK = 2000
_BLANKS = lazy_regex(r"[ \t\n\r\f\xa0]+")
_UNSAFE = lazy_regex(r"[\x00-\x20\x7f()<>]")
_BLOCKS = frozenset(
    {
        *("address", "article", "aside", "body", "caption", "center", "details", "dd", "div", "dl", "dt", "fieldset"),
        *(
            "figcaption",
            "figure",
            "footer",
            "form",
            "header",
            "hgroup",
            "html",
            "legend",
            "main",
            "menu",
            "nav",
            "option",
        ),
        *("p", "section", "summary", "table", "tbody", "tfoot", "thead"),
    }
)
_DROPPED = frozenset(
    {
        *("audio", "canvas", "datalist", "head", "object", "picture", "select", "svg", "template", "video"),
    }
)
"""Elements without text for a reader. `title` in `head` is found all the same."""
_NEVER_SHOWN = frozenset({"iframe", "noembed", "noframes", "noscript", "script", "style"})
"""Their content is one text."""


class ReadablePage(Struct, frozen=True):
    """What a reader sees of a page."""

    title: str
    text: str
    is_whole: bool = True
    """False: the end is missing, because the page is very long."""


def readable_page(html: str, url: str = "") -> ReadablePage:
    """`url` is where the page is from: links become absolute."""
    return _PageWriter(url).read(html)


class _PageWriter:
    """One page, token by token."""

    def __init__(self, url: str) -> None:
        self._base = url
        self._title = ""
        self._pieces: list[str] = []
        self._length = 0
        self._breaks = 0
        """Line breaks to be written before the next text."""
        self._is_fresh = True
        """The line is still empty, or ends in a blank: no other blank follows."""
        self._lists: list[int] = []
        """For each list around this place, the number of its next item; below zero if they have none."""
        self._quotes = 0
        self._literal = 0
        """Depth of `pre`."""
        self._cells = 0
        """Cells of this row of a table."""
        self._heads = 0
        """Those of them that are headings."""
        self._dropped: tuple[str, int] | None = None
        """The element whose content is dropped, and how often it contains itself."""
        self._raw = ""
        """The element that the next text is the whole content of."""
        self._link: tuple[int, str] | None = None
        """Where its text starts, and what it leads to."""

    def read(self, html: str) -> ReadablePage:
        is_whole = True
        for token in html_tokens(html):
            if self._length > _LONGEST:
                is_whole = False
                break
            if isinstance(token, str):
                self._read_text(token)
            else:
                self._read_tag(token)
        self._end_link()
        if self._literal:
            self._write("\n```")
        return ReadablePage(self._title, "".join(self._pieces).strip("\n"), is_whole)

    # ------------------------------------------------------------------------------------------------------------ texts

    def _read_text(self, text: str) -> None:
        raw, self._raw = self._raw, ""
        if raw == "title" and not self._title:
            self._title = " ".join(text.split())[:_LONGEST_LINK]
        if raw == "title" or raw in _NEVER_SHOWN or self._dropped is not None:
            return
        if self._literal:
            self._write(text)
            return
        flat = _BLANKS.sub(" ", text)
        if self._is_fresh or self._breaks:
            flat = flat.removeprefix(" ")
        if flat:
            self._write(flat)

    def _write(self, text: str) -> None:
        if self._breaks and self._pieces:
            self._append("\n" * self._breaks)
        if self._breaks or not self._pieces:
            self._append("> " * min(self._quotes, _DEEPEST))
        self._breaks = 0
        self._append(text)
        self._is_fresh = text.endswith((" ", "\n"))

    def _append(self, piece: str) -> None:
        self._pieces.append(piece)
        self._length += len(piece)

    def _break(self, lines: int) -> None:
        """The next text starts a line, after an empty one if `lines` is 2."""
        if self._link is not None and self._link[0] == len(self._pieces):
            return  # a block inside of a link: it starts with the link
        self._breaks = max(self._breaks, lines)
        self._is_fresh = True

    # ------------------------------------------------------------------------------------------------------------- tags

    def _read_tag(self, tag: HtmlTag) -> None:
        self._raw = "" if tag.closes else tag.name
        if self._is_dropping(tag):
            return
        if tag.name in _BLOCKS:
            self._break(2 if tag.name == "p" else 1)
        elif (handle := _TAGS.get(tag.name)) is not None:
            handle(self, tag)

    def _is_dropping(self, tag: HtmlTag) -> bool:
        """Whether the tag belongs to something that is dropped."""
        if self._dropped is None:
            if tag.name not in _DROPPED or tag.closes or tag.is_empty:
                return False
            self._dropped = tag.name, 0
            return True
        name, depth = self._dropped
        if tag.name == "base" and not tag.closes:
            self.rebase(tag)
        if name == "head" and tag.name == "body":  # `head` may be left open
            self._dropped = None
            return False
        if tag.name == name and not tag.is_empty:
            depth += -1 if tag.closes else 1
            self._dropped = None if depth < 0 else (name, depth)
        return True

    def rebase(self, tag: HtmlTag) -> None:
        self._base = _joined(self._base, tag.attributes.get("href", "")) or self._base

    def heading(self, tag: HtmlTag) -> None:
        self._break(2)
        if not tag.closes:
            self._write(f"{'#' * int(tag.name[1])} ")

    def line_break(self, _: HtmlTag) -> None:
        if self._literal:
            self._write("\n")
        else:
            self._break(1)

    def rule(self, _: HtmlTag) -> None:
        self._break(2)
        self._write("---")
        self._break(2)

    def listing(self, tag: HtmlTag) -> None:
        self._break(1 if self._lists else 2)
        if not tag.closes:
            self._lists.append(1 if tag.name == "ol" else -1)
        elif self._lists:
            self._lists.pop()
            self._break(1 if self._lists else 2)

    def item(self, tag: HtmlTag) -> None:
        self._break(1)
        if tag.closes:
            return
        number = self._lists[-1] if self._lists else -1
        if number > 0:
            self._lists[-1] = number + 1
        indent = "  " * min(max(len(self._lists) - 1, 0), _DEEPEST)
        self._write(f"{indent}{f'{number}.' if number > 0 else '-'} ")

    def quote(self, tag: HtmlTag) -> None:
        self._break(2)
        self._quotes = max(0, self._quotes + (-1 if tag.closes else 1))

    def preformatted(self, tag: HtmlTag) -> None:
        if tag.closes:
            if self._literal == 1:
                self._write("```" if self._is_fresh else "\n```")
                self._break(2)
            self._literal = max(0, self._literal - 1)
            return
        if not self._literal:
            self._break(2)
            self._write("```\n")
        self._literal += 1

    def code(self, _: HtmlTag) -> None:
        if not self._literal:
            self._write("`")
            self._is_fresh = False

    def row(self, tag: HtmlTag) -> None:
        if tag.closes and self._cells:
            self._write(" |")
        self._break(1)
        if self._cells and self._cells == self._heads:
            self._write("|" + " --- |" * self._cells)
            self._break(1)
        self._cells = self._heads = 0

    def cell(self, tag: HtmlTag) -> None:
        if not tag.closes:
            self._write(" | " if self._cells and not self._breaks else "| ")
            self._cells += 1
            self._heads += tag.name == "th"

    def image(self, tag: HtmlTag) -> None:
        if (alt := " ".join(tag.attributes.get("alt", "").split())) and not tag.closes:
            self._write(f"[image: {alt}]")

    def anchor(self, tag: HtmlTag) -> None:
        self._end_link()
        target = "" if tag.closes else _joined(self._base, tag.attributes.get("href", ""))
        if target:
            self._write("[")
            self._is_fresh = True
            self._link = len(self._pieces), target

    def _end_link(self) -> None:
        if self._link is None:
            return
        start, target = self._link
        self._link = None
        if "".join(self._pieces[start:]).strip():
            self._pieces[-1] = self._pieces[-1].rstrip(" ")
            self._breaks = 0  # the end of a block inside belongs after the link
            self._write(f"]({target})")
        else:
            del self._pieces[start - 1 :]


_TAGS: Mapping[str, Callable[[_PageWriter, HtmlTag], None]] = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _PageWriter.heading),
    **dict.fromkeys(("ul", "ol"), _PageWriter.listing),
    **dict.fromkeys(("td", "th"), _PageWriter.cell),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), _PageWriter.code),
    "br": _PageWriter.line_break,
    "hr": _PageWriter.rule,
    "li": _PageWriter.item,
    "blockquote": _PageWriter.quote,
    "pre": _PageWriter.preformatted,
    "tr": _PageWriter.row,
    "img": _PageWriter.image,
    "a": _PageWriter.anchor,
    "base": _PageWriter.rebase,
}


def _joined(base: str, link: str) -> str:
    """The address that a link leads to; empty if it is no page or a place on the same page."""
    link = link.strip()
    if not link or link.startswith("#") or len(link) > _LONGEST_LINK:
        return ""
    try:
        target = urljoin(base, link)
    except ValueError:
        return ""
    if not target.lower().startswith(("http://", "https://", "mailto:")):
        return ""
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", target)
