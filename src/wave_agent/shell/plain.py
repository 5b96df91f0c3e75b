"""Lines that are just a sequence of commands: only these can be permitted piece by piece.

Two independent parsers must agree on the words, the grammar and the standard library's `shlex`: a permission must not
depend on the mistake of one of them.
"""

import re
import shlex
from typing import TYPE_CHECKING

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.grammar import can_parse, parse
from wave_agent.shell.values import ShellCommand, Word
from wave_agent.shell.words import combinations, source

if TYPE_CHECKING:
    from tree_sitter import Node

# Expansions, escaped line ends, comments and characters that parsers might read differently.
_NEVER = lazy_regex(r"(?<![^\s;&|()<>])#|[`\r\x00-\x08\x0b-\x1f\x7f]|\\\n|[^\x00-\x7f]\s|\\$")
_BETWEEN = frozenset({"&&", "||", "|", "|&", ";", "\n"})
_AROUND = frozenset({"(", ")"})
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


def plain_commands(text: str, *, reading: bool = False) -> tuple[ShellCommand, ...]:
    """The commands of the line, or none if it is anything but a sequence of them. `reading`: also with what commands
    that only read may have: input from a file, parentheses, `[ … ]`."""
    if _STATUS not in text:
        return _sequence(text, reading=reading)
    # The status of the last command is a number. It may only be told, not used.
    one, other = (_sequence(text.replace(_STATUS, number), reading=reading) for number in ("0", "1"))
    told = len(one) == len(other) and all(
        first == second or first.words[0].text in _TELL for first, second in zip(one, other, strict=True)
    )
    return one if told else ()


_STATUS = "$?"
_TELL = ("echo", "test")


def beyond_plain(text: str) -> str:
    """What makes a line more than a sequence of commands, in words; empty if it is not known."""
    if not can_parse(text):
        return ""
    waiting = [parse(text)]
    while waiting:
        node = waiting.pop()
        if node.type in _BEYOND and not _harmless(node, reading=False):
            return _BEYOND[node.type]
        waiting += reversed(node.children)
    return ""


_BEYOND = {
    "command_substitution": "a command substitution",
    "process_substitution": "a process substitution",
    "heredoc_redirect": "a here-document",
    "herestring_redirect": "a here-string",
    "file_redirect": "a redirection to or from a file",
    "variable_assignment": "an assignment",
    "simple_expansion": "a variable",
    "expansion": "a variable",
    "for_statement": "a loop",
    "c_style_for_statement": "a loop",
    "while_statement": "a loop",
    "if_statement": "an if",
    "case_statement": "a case",
    "function_definition": "a function",
    "subshell": "parentheses",
    "compound_statement": "braces",
    "comment": "a comment",
    "&": "a command in the background",
}


def goes_on_only_after_success(text: str) -> bool:
    """Whether every command of a line of plain commands runs only if those before it succeeded."""
    operators = [token for token in _tokens(text) if token and all(sign in "<>&|;()" for sign in token)]
    return "\n" not in text and all(one == "&&" or "<" in one or ">" in one for one in operators)


def _sequence(text: str, *, reading: bool) -> tuple[ShellCommand, ...]:
    if not can_parse(text) or _NEVER.search(text):
        return ()
    other = _other_reading(text)
    root = parse(text)
    nodes = None if root.has_error else _row(root, reading=reading)
    if not nodes:
        return ()
    commands = tuple(command for node in nodes for command in [_command(node)] if command is not None)
    if len(commands) != len(nodes) or other != [word.text for one in commands for word in one.words]:
        return ()
    changes = len(commands) > 1 and any(one.words[0].text in _CHANGE_WHAT_FOLLOWS for one in commands)
    return () if changes else commands


def _row(node: "Node", *, reading: bool) -> list["Node"] | None:
    """The simple commands, if only operators join them."""
    found: list[Node] = []
    for child in node.children:
        inside: list[Node] | None = []
        if child.type == "command" or (reading and child.type == "test_command"):
            inside = [child]
        elif child.type in ("list", "pipeline") or (reading and child.type == "subshell"):
            inside = _row(child, reading=reading)
        elif child.type == "redirected_statement" and all(
            _harmless(one, reading=reading) for one in child.children[1:]
        ):
            first = child.children[0]
            inside = [first] if first.type == "command" else _row(first, reading=reading)
        elif child.is_named or not (child.type in _BETWEEN or (reading and child.type in _AROUND)):
            inside = None
        if inside is None:
            return None
        found += inside
    return found


_HARMLESS = lazy_regex(r"(?:\d*|&)>>?\s*/dev/null|\d*>&\d|\d*<\s*/dev/null")


_INPUT = lazy_regex(r"<\s*(?!/dev/)[\w./][\w./-]*")


def _harmless(redirect: "Node", reading: bool) -> bool:
    if redirect.type != "file_redirect":
        return False
    text = source(redirect)
    return _HARMLESS.fullmatch(text) is not None or (reading and _INPUT.fullmatch(text) is not None)


_CONDITION = lazy_regex(r"\[( (?:[\w./=-]+|!|!=))+ \]")


def _command(node: "Node") -> ShellCommand | None:
    if node.type == "test_command":
        text = source(node)
        return ShellCommand(tuple(map(Word, text.split()))) if _CONDITION.fullmatch(text) else None
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
