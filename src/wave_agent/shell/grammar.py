"""The grammar of Bash: text in, syntax tree out.

The grammar's own scanner looks characters up in a table of 256, whatever they are: `{` and U+10FFFF after it end the
process. To Bash every character beyond ASCII is one like another, a part of a word, so that the parser is given signs
in their place that are in the table, and that no name of a variable can have in it.
"""

import re
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from wave_agent.shell.effort import TooMuchError, spend

if TYPE_CHECKING:
    from tree_sitter import LogType, Node, Point, Tree

LONGEST = 20_000
"""Characters of a line that is parsed. A longer one is cut into pieces by its characters alone."""
DEEPEST = 80
"""Levels of nesting that are followed."""


_LOPSIDED = 200
"""Brackets without a partner. The parser's time to recover grows with their square."""


_SHORT = 400
"""Bytes that are parsed without counting the parser's steps."""
_MOST_STEPS = 26_000
_CHUNK = 128
"""Bytes that the parser is given at a time."""
_NODE = 3
_RECOVERY = 40

_DIGITS = "¡¢£¤¥¦§©«¬®°±¶·»"
"""Sixteen signs that are neither letters nor blanks."""
_MARK = "¿"
_WIDTH = 6
_MISTAKEN = re.compile(r"[^\x00-\x7f]|[\r\v\f]")
"""What is beyond ASCII, and what the grammar takes for blanks but Bash does not."""
_STAND_IN = re.compile(f"{_MARK}([{_DIGITS}]{{{_WIDTH}}})")
_TO_SIGNS = str.maketrans("0123456789abcdef", _DIGITS)
_FROM_SIGNS = str.maketrans(_DIGITS, "0123456789abcdef")


@cache
def _language() -> Any:
    # lazy: the grammar takes 36 ms to load, and most processes judge no command
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def can_parse(text: str) -> bool:
    """Whether a tree is to be had, and in a moment."""
    lopsided = any(abs(text.count(opening) - text.count(closing)) > _LOPSIDED for opening, closing in ("()", "{}"))
    if len(text) > LONGEST or lopsided or "\0" in text:  # no line that Bash is given has a NUL in it
        return False
    try:
        _language()
    except (ImportError, OSError):  # no descriptor is left to load it: then the line is not understood
        return False
    return True


def parse(text: str, *, again: bool = False) -> "Node":
    """The root of its tree. What a node says is to be had from `spelling`. Raises `TooMuchError`.

    `again`: the budget has paid for this text already.
    """
    root, cost = _parsed(text)
    if root is None:
        raise TooMuchError
    spend(root.descendant_count * _NODE + (0 if again else cost))
    return root


@lru_cache(maxsize=8)  # a line is read more than once: by rules, and for what it writes
def _parsed(text: str) -> tuple["Node | None", int]:
    """The root, if it can be had, and what it cost."""
    data = _prepared(text)
    if len(data) <= _SHORT:
        root = parse_unwatched(text)
        return root, len(text) ** 2 // _RECOVERY if root.has_error else 0  # it went back and tried again
    watched = _WatchedParse(data)
    tree = watched.parse()
    # A line is read twice and parsed once.
    return None if watched.steps > _MOST_STEPS else tree.root_node, watched.steps // 2


def parse_unwatched(text: str) -> "Node":
    """The same for a text that nobody made to take long, such as a script of the user's own."""
    from tree_sitter import Parser  # lazy: see above

    return Parser(_language()).parse(_prepared(text)).root_node


def _prepared(text: str) -> bytes:
    sound = text.encode(errors="replace").decode()
    return _MISTAKEN.sub(_stand_in, sound).encode()


class _WatchedParse:
    """The parser's time grows with the square of a text that it cannot make sense of, and it cannot be interrupted. But
    it says what it does, step by step, and when there have been too many of them, the text ends for it."""

    def __init__(self, data: bytes) -> None:
        self.steps = 0
        self._data = data

    def parse(self) -> "Tree":
        from tree_sitter import Parser  # lazy: see above

        return Parser(_language(), logger=self._count).parse(self._read)

    def _count(self, _kind: "LogType", _message: str) -> None:
        self.steps += 1

    def _read(self, at: int, _point: "Point") -> bytes:
        if self.steps > _MOST_STEPS:
            return b""
        # Whole characters only: where one is cut and the text ends before the rest of it, the parser ends the process.
        end = at + _CHUNK
        while self._data[end : end + 1] and self._data[end] & 0xC0 == 0x80:
            end += 1
        return self._data[at:end]


def spelling(of_node: bytes | None) -> str:
    """A node's bytes, or some of them, as the text had them."""
    text = (of_node or b"").decode(errors="replace")
    return _STAND_IN.sub(_stood_for, text) if _MARK in text else text


def _stand_in(found: re.Match[str]) -> str:
    return _MARK + f"{ord(found[0]):0{_WIDTH}x}".translate(_TO_SIGNS)


def _stood_for(found: re.Match[str]) -> str:
    return chr(int(found[1].translate(_FROM_SIGNS), 16))


_GLUED = re.compile(rb"(?<!\\)(?:\\\\)*[ \t\n]")
"""A blank that no backslash keeps."""
_UNPARTED = frozenset(["word", "simple_expansion", "variable_name"])
_PARTS = frozenset([
    "command_name", "word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation",
    "variable_assignment", "simple_expansion", "expansion", "command_substitution",
])  # fmt: skip
"""What stands in a command with blanks between."""


def is_sound(root: "Node") -> bool:
    """Whether it has neither errors nor words that the grammar parts elsewhere than Bash does: `{ [[` is not one word,
    nor is `$⏎git`, and `$""\\git` is not two."""
    if root.has_error:
        return False
    level = [root]
    while level:
        if any(_is_glued(node) or _is_torn(node) for node in level):
            return False
        level = [child for node in level for child in node.named_children]
    return True


def _is_glued(node: "Node") -> bool:
    return node.type in _UNPARTED and _GLUED.search(node.text or b"") is not None


def _is_torn(node: "Node") -> bool:
    if node.type != "command":
        return False
    return any(
        one.end_byte == other.start_byte and one.type in _PARTS and other.type in _PARTS
        for one, other in pairwise(node.children)
    )


def is_deep(root: "Node") -> bool:
    """Whether it is nested deeper than is followed."""
    level = [root]
    for _ in range(DEEPEST):
        level = [child for node in level for child in node.named_children]
    return bool(level)
