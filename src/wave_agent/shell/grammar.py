"""The grammar of Bash: text in, syntax tree out."""

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 20_000
"""Characters of a line that is parsed. A longer one is cut into pieces by its characters alone."""
DEEPEST = 80
"""Levels of nesting that are followed."""


_LOPSIDED = 200
"""Brackets without a partner. The parser's time to recover grows with their square."""


@cache
def _language() -> Any:
    # lazy: the grammar takes 36 ms to load, and most processes judge no command
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def can_parse(text: str) -> bool:
    """Whether a tree is to be had, and in a moment."""
    lopsided = any(abs(text.count(opening) - text.count(closing)) > _LOPSIDED for opening, closing in ("()", "{}"))
    if len(text) > LONGEST or lopsided:
        return False
    try:
        _language()
    except (ImportError, OSError):  # no descriptor is left to load it: then the line is not understood
        return False
    return True


def parse(text: str) -> "Node":
    from tree_sitter import Parser  # lazy: see above

    return Parser(_language()).parse(text.encode(errors="replace")).root_node


def is_deep(root: "Node") -> bool:
    """Whether it is nested deeper than is followed."""
    level = [root]
    for _ in range(DEEPEST):
        level = [child for node in level for child in node.named_children]
    return bool(level)
