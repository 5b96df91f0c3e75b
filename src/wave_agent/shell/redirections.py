"""Redirections: what is written to, what is read."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.patterns import as_written
from wave_agent.shell.values import ValueOrigin, Word
from wave_agent.shell.words import Variables, origin, output, searched, source, words

if TYPE_CHECKING:
    from tree_sitter import Node

WRITING = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>"})
READING = frozenset({"<", "<>"})
_BACKQUOTED = lazy_regex(r"`([^`]+)`")
DESCRIPTOR = lazy_regex(r"\d*-?")


REDIRECTIONS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})


def redirects(node: "Node") -> list["Node"]:
    """The redirections of a statement. The grammar does not name all of them."""
    return [child for child in node.named_children if child.type in REDIRECTIONS]


class Redirections(Struct, frozen=True):
    """Of one command."""

    written: tuple[Word, ...] = ()
    stdin: Word | None = None
    """The text of a here-document or here-string."""
    read: tuple[Word, ...] = ()
    """Files it reads."""
    words: tuple[Any, ...] = ()
    """Nodes after a redirection on its line that belong to the command."""
    substitutions: tuple[str, ...] = ()
    """Commands in backquotes in a here-document, which the grammar does not name."""

    @classmethod
    def of(cls, nodes: Iterable["Node"], variables: Variables) -> "Redirections":
        written: list[Word] = []
        read: list[Word] = []
        behind: list[Node] = []
        stdin: Word | None = None
        substitutions: list[str] = []
        waiting = list(nodes)
        while waiting:
            node = waiting.pop(0)
            if node.type == "file_redirect":
                targets = node.children_by_field_name("destination")
                behind += targets[1:]
                written += _named(node, targets[:1], variables, WRITING)
                read += _named(node, targets[:1], variables, READING)
                stdin = _substituted(targets[:1], variables) or stdin
            elif node.type == "herestring_redirect":
                stdin = _text(node.named_children[-1:], variables)
            else:
                behind += node.children_by_field_name("argument")
                # Redirections after `<<EOF` on its line are attached to it.
                waiting[:0] = node.children_by_field_name("redirect")
                stdin = _document(node)
                if not stdin.static:
                    substitutions += _BACKQUOTED.findall(stdin.text)
        return cls(tuple(written), stdin, tuple(read), tuple(behind), tuple(substitutions))


def _named(node: "Node", targets: list["Node"], variables: Variables, operators: frozenset[str]) -> list[Word]:
    operator = next((child.type for child in node.children if not child.is_named), "")
    if operator not in operators:
        return []
    found = [word for target in targets for fields in words(target, variables) for word in fields]
    found += [word for one in found if (word := as_written(one)) is not None]
    return [word for word in found if operator != ">&" or not DESCRIPTOR.fullmatch(word.text)]


def _substituted(targets: list["Node"], variables: Variables) -> Word | None:
    """`< <(…)`"""
    for node in targets:
        if node.type == "process_substitution":
            printed = output(node.named_children, variables)
            paths = searched(node.named_children, variables)
            made = origin(node.named_children)
            return Word(source(node), static=False, paths=paths, origin=made) if printed is None else Word(printed)
    return None


def _text(nodes: list["Node"], variables: Variables) -> Word | None:
    readings = [fields for node in nodes for fields in words(node, variables)]
    fields = readings[0] if readings else ()
    made = max((word.origin for word in fields), default=ValueOrigin.ENVIRONMENT)
    return Word(" ".join(word.text for word in fields), static=all(word.static for word in fields), origin=made)


def _document(node: "Node") -> Word:
    """A here-document. If it contains expansions, its text is unknown, unless its delimiter is quoted."""
    starts = [source(child) for child in node.named_children if child.type == "heredoc_start"]
    literal = any(character in start for start in starts for character in "'\"\\")
    text = "".join(source(child) for child in node.named_children if child.type == "heredoc_body")
    return Word(re.sub(r"(?m)^\t+", "", text), static=literal or ("$" not in text and "`" not in text))
