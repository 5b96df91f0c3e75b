"""Lines that are just a sequence of commands: only these can be permitted piece by piece.

Two independent parsers must agree on the words, the grammar and the standard library's `shlex`: a permission must not
depend on the mistake of one of them.
"""

import re
import shlex
from typing import TYPE_CHECKING

from wave_agent.shell.grammar import can_parse, parse
from wave_agent.shell.values import ShellCommand
from wave_agent.shell.words import combinations, source

if TYPE_CHECKING:
    from tree_sitter import Node

# Expansions, escaped line ends, comments and characters that parsers might read differently.
_NEVER = re.compile(r"[`#\r\x00-\x08\x0b-\x1f\x7f]|\\\n|[^\x00-\x7f]\s|\\$")
_BETWEEN = frozenset({"&&", "||", "|", "|&", ";", "\n"})
_WORDS = frozenset({"word", "raw_string", "string", "concatenation", "number", "command_name", "string_content"})
_KEYWORDS = frozenset(
    [
        "!",
        "{",
        "}",
        "[",
        "[[",
        "]]",
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "select",
        "function",
        "time",
        "coproc",
        "in",
    ]
)
_CHANGE_WHAT_FOLLOWS = frozenset(
    [
        ".",
        "source",
        "eval",
        "alias",
        "unalias",
        "export",
        "declare",
        "typeset",
        "local",
        "readonly",
        "set",
        "shopt",
        "enable",
        "hash",
        "trap",
        "exec",
        "builtin",
        "unset",
        "read",
        "mapfile",
        "readarray",
        "printf",
        "getopts",
        "bind",
        "complete",
    ]
)
"""Commands after which another one may not be what its name says."""


def plain_commands(text: str) -> tuple[ShellCommand, ...]:
    """The commands of the line, or none if it is anything but a sequence of them."""
    if _STATUS not in text:
        return _sequence(text)
    # The status of the last command is a number. It may only be told, not used.
    one, other = _sequence(text.replace(_STATUS, "0")), _sequence(text.replace(_STATUS, "1"))
    told = len(one) == len(other) and all(
        first == second or first.words[0].text in _TELL for first, second in zip(one, other, strict=True)
    )
    return one if told else ()


_STATUS = "$?"
_TELL = ("echo", "test")


def goes_on_only_after_success(text: str) -> bool:
    """Whether every command of a line of plain commands runs only if those before it succeeded."""
    operators = [token for token in _tokens(text) if token and all(sign in "<>&|;()" for sign in token)]
    return "\n" not in text and all(one == "&&" or "<" in one or ">" in one for one in operators)


def _sequence(text: str) -> tuple[ShellCommand, ...]:
    if not can_parse(text) or _NEVER.search(text):
        return ()
    other = _other_reading(text)
    root = parse(text)
    nodes = None if root.has_error else _row(root)
    if not nodes:
        return ()
    commands = tuple(command for node in nodes for command in [_command(node)] if command is not None)
    if len(commands) != len(nodes) or other != [word.text for one in commands for word in one.words]:
        return ()
    changes = len(commands) > 1 and any(one.words[0].text in _CHANGE_WHAT_FOLLOWS for one in commands)
    return () if changes else commands


def _row(node: "Node") -> list["Node"] | None:
    """The simple commands, if only operators join them."""
    found: list[Node] = []
    for child in node.children:
        if child.type == "command":
            found.append(child)
        elif child.type in ("list", "pipeline"):
            inside = _row(child)
            if inside is None:
                return None
            found += inside
        elif child.type == "redirected_statement" and all(map(_harmless, child.children[1:])):
            inside = [child.children[0]] if child.children[0].type == "command" else _row(child.children[0])
            if inside is None:
                return None
            found += inside
        elif child.is_named or child.type not in _BETWEEN:
            return None
    return found


_HARMLESS = re.compile(r"(?:\d*|&)>>?\s*/dev/null|\d*>&\d|\d*<\s*/dev/null")


def _harmless(redirect: "Node") -> bool:
    return redirect.type == "file_redirect" and _HARMLESS.fullmatch(source(redirect)) is not None


def _command(node: "Node") -> ShellCommand | None:
    if any(child.type not in _WORDS for child in node.children) or not _is_literal(node):
        return None
    lines, _ = combinations(node.children, {})
    command = ShellCommand(lines[0])
    name = command.words[0]
    return None if name.glob is not None or name.text in _KEYWORDS or "=" in name.text else command


def _is_literal(node: "Node") -> bool:
    """No expansion except of wildcards."""
    return all(
        (
            child.type in _WORDS
            and _is_literal(child)
            and not (child.type == "word" and re.search("[{}$]", source(child)))
        )
        or not child.is_named
        for child in node.children
    )


def _tokens(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.commenters = ""
    lexer.wordchars += "~!@%^*+=[]:?,./\\-_{}$"
    try:
        return list(lexer)
    except ValueError:
        return []


def _other_reading(text: str) -> list[str]:
    """The words without operators, redirections and their targets."""
    found: list[str] = []
    skip = False
    for token in _tokens(text):
        if skip:
            skip = False
        elif token and all(character in "<>&|;()" for character in token):
            skip = ">" in token or "<" in token
            if skip and found and found[-1].isdigit():
                found.pop()
        else:
            found.append(token)
    return found
