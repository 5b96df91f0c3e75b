"""The grammar of Bash: text in, syntax tree out.

The grammar's scanner looks up any character in a table of 256 entries: `{` followed by U+10FFFF crashes the process. To
Bash, all characters beyond ASCII are the same, part of a word, so the parser gets substitutes that are in the table
and cannot occur in a variable name.
"""

import re
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.effort import TooMuchError, spend

if TYPE_CHECKING:
    from tree_sitter import LogType, Node, Point, Tree

LONGEST = 20_000
"""Maximum characters of a line to parse. A longer one is split by its characters alone."""
DEEPEST = 80
"""Maximum levels of nesting."""


_LOPSIDED = 200
"""Unbalanced brackets. The parser's recovery time grows with their square."""


_SHORT = 400
"""Bytes that are parsed without counting the parser's steps."""
_MOST_STEPS = 26_000
_CHUNK = 128
"""Bytes passed to the parser at a time."""
_NODE = 3
_RECOVERY = 40

_DIGITS = "¡¢£¤¥¦§©«¬®°±¶·»"
"""Sixteen characters that are neither letters nor blanks."""
_MARK = "¿"
_WIDTH = 6
_MISTAKEN = lazy_regex(r"[^\x00-\x7f]|[\r\v\f]")
"""Characters beyond ASCII, and those the grammar takes for blanks but Bash does not."""
_STAND_IN = lazy_regex(f"{_MARK}([{_DIGITS}]{{{_WIDTH}}})")
_TO_SIGNS = str.maketrans("0123456789abcdef", _DIGITS)
_FROM_SIGNS = str.maketrans(_DIGITS, "0123456789abcdef")


@cache
def bash_grammar() -> Any:
    # lazy: the grammar takes 36 ms to load, and most processes judge no command
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def can_parse(text: str) -> bool:
    """Whether the text can be parsed quickly."""
    lopsided = any(abs(text.count(opening) - text.count(closing)) > _LOPSIDED for opening, closing in ("()", "{}"))
    if len(text) > LONGEST or lopsided or "\0" in text:  # a line passed to Bash cannot contain a NUL
        return False
    try:
        bash_grammar()
    except (ImportError, OSError):  # no descriptor is left to load it: the line is then not understood
        return False
    return True


def parse(text: str, *, again: bool = False) -> "Node":
    """The root of its tree. Get a node's text with `spelling`. Raises `TooMuchError`.

    `again`: the budget has already paid for this text.
    """
    root, cost = _parsed(text)
    if root is None:
        raise TooMuchError
    spend(root.descendant_count * _NODE + (0 if again else cost))
    return root


@lru_cache(maxsize=8)  # a line is read more than once: for rules, and for its writes
def _parsed(text: str) -> tuple["Node | None", int]:
    """The root, if there is one, and its cost."""
    data = _prepared(text)
    if len(data) <= _SHORT:
        root = parse_unwatched(text)
        return root, len(text) ** 2 // _RECOVERY if root.has_error else 0  # it backtracked
    watched = _WatchedParse(data)
    tree = watched.parse()
    # A line is read twice and parsed once.
    return None if watched.steps > _MOST_STEPS else tree.root_node, watched.steps // 2


def parse_unwatched(text: str) -> "Node":
    """The same for text that is not hostile, such as the user's own script."""
    from tree_sitter import Parser  # lazy: see above

    return Parser(bash_grammar()).parse(_prepared(text)).root_node


def _prepared(text: str) -> bytes:
    sound = text.encode(errors="replace").decode()
    return _MISTAKEN.sub(_stand_in, sound).encode()


class _WatchedParse:
    """The parser's time grows with the square of a text it cannot parse, and it cannot be interrupted. But it logs its
    steps, and after too many of them the text is cut off."""

    def __init__(self, data: bytes) -> None:
        self.steps = 0
        self._data = data

    def parse(self) -> "Tree":
        from tree_sitter import Parser  # lazy: see above

        return Parser(bash_grammar(), logger=self._count).parse(self._read)

    def _count(self, _kind: "LogType", _message: str) -> None:
        self.steps += 1

    def _read(self, at: int, _point: "Point") -> bytes:
        if self.steps > _MOST_STEPS:
            return b""
        # Whole characters only: if the text ends in the middle of one, the parser crashes the process.
        end = at + _CHUNK
        while self._data[end : end + 1] and self._data[end] & 0xC0 == 0x80:
            end += 1
        return self._data[at:end]


def spelling(of_node: bytes | None) -> str:
    """The original text of a node's bytes, or of some of them."""
    text = (of_node or b"").decode(errors="replace")
    return _STAND_IN.sub(_stood_for, text) if _MARK in text else text


def _stand_in(found: re.Match[str]) -> str:
    return _MARK + f"{ord(found[0]):0{_WIDTH}x}".translate(_TO_SIGNS)


def _stood_for(found: re.Match[str]) -> str:
    return chr(int(found[1].translate(_FROM_SIGNS), 16))


_GLUED = lazy_regex(rb"(?<!\\)(?:\\\\)*[ \t\n]")
"""A blank not preceded by a backslash."""
_UNPARTED = frozenset(["word", "simple_expansion", "variable_name"])
_PARTS = frozenset([
    "command_name", "word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation",
    "variable_assignment", "simple_expansion", "expansion", "command_substitution",
])  # fmt: skip
"""Nodes that blanks separate in a command."""


def is_sound(root: "Node") -> bool:
    """Whether it has neither errors nor words that the grammar splits differently from Bash: `{ [[` is not one word,
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
    """Whether it is nested too deep."""
    level = [root]
    for _ in range(DEEPEST):
        level = [child for node in level for child in node.named_children]
    return bool(level)
