"""Splits a line that cannot be parsed wherever a command may start. Errs on the side of too many pieces."""

import re
from collections.abc import Iterator

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.effort import spend

_BETWEEN_COMMANDS = lazy_regex(r"\$\(|&&|\|\||[;&|\n(){}`]")
_BETWEEN_LINES = lazy_regex(r"&&|\|\||[;&|\n]")
"""The same, with braces and brackets as parts of words."""
_REDIRECTION = lazy_regex(r"(?:(?<!\d)\d++)?(?:<<<|<<-?|&>>?|>>|>&|>\||<&|<>|[<>])\s*[^\s;&|<>]*")
_EXPANSION = lazy_regex(r"\$(?:(\w+)|\{(\w+)\})")
_WRITES_TO = lazy_regex(r"(?:>>|>\||&>|<>|>)\s*([^\s;&|<>()]+)")
_QUOTING = lazy_regex(r"\$(?=['\"])|[\\'\"]")
_ASSIGNMENT = lazy_regex(r"(?<![^\s;&|(){}])(\w+)=([^\s;&|(){}]*)")
_BEFORE_A_COMMAND = lazy_regex(
    r"(?:(?:if|then|elif|else|while|until|do|time|exec|command|builtin|nohup|sudo|env|nice|setsid|eval|xargs|coproc|!)"
    r"(?:\s+-\S+)*|timeout(?:\s+-\S+)*\s+\S+|\w+=\S*)\s+"
)
_BRACES = lazy_regex(r"(?<![^\s;&|(])\{([^{}\s,]*+,[^{}\s]*+)\}([^\s;&|{}]*+)")
_TAKES_TEXT = lazy_regex(
    r"(?<![\w.-])(?:(?:ba|da|z|k|a|mk|ya|rba|fi|c|tc)?sh|eval|source|read|mapfile|readarray|make)(?![\w.-])|(?:^|[;&|({\n])\s*\.\s"
)
_AT_QUOTES = lazy_regex(rf"{_BETWEEN_COMMANDS.pattern}|['\"]")
_MOST_WORDS = 24
_DEEPEST = 32
"""Words before a command that are skipped."""


def pieces(line: str) -> list[str]:
    """Possible commands in this line, as written and without anything that can come before, after or around one."""
    spend(len(line) >> 4)
    found: list[str] = []
    line = _BRACES.sub(_expanded, line.replace("\\\n", " "))
    if _TAKES_TEXT.search(line):
        found += _suffixes(line)
    values = dict(_ASSIGNMENT.findall(line))
    # A redirection may contain a character that otherwise separates commands; a variable may hold text, or nothing.
    for form in dict.fromkeys((line, _REDIRECTION.sub(" ", line))):
        for piece in dict.fromkeys((*_BETWEEN_COMMANDS.split(form), *_BETWEEN_LINES.split(form))):
            found.append(piece.strip())
            held = _EXPANSION.sub(lambda found: values.get(found[1] or found[2], ""), piece)
            for one in dict.fromkeys((piece, held, _EXPANSION.sub("", piece))):
                found += _behind(_REDIRECTION.sub(" ", one))
                found += _behind(one)
    return list(dict.fromkeys(piece for piece in found if piece))


def _behind(piece: str) -> Iterator[str]:
    """The command, and the rest of it without leading words."""
    spend(4 + (len(piece) >> 4))
    plain = " ".join(_QUOTING.sub("", piece).split())
    yield plain
    for _ in range(_DEEPEST):
        yield _without_directory(plain)
        in_front = _BEFORE_A_COMMAND.match(plain)
        if in_front is None:
            return
        spend(2 + (len(plain) >> 6))
        plain = plain[in_front.end() :]
        yield plain


def _expanded(braces: re.Match[str]) -> str:
    return " ".join(f"{choice}{braces[2]}" for choice in braces[1].split(","))


def _suffixes(line: str) -> Iterator[str]:
    """If text may become a command, one may start at every word, even inside quotes."""
    for piece in _AT_QUOTES.split(line):
        given = piece.split(maxsplit=_MOST_WORDS)[:_MOST_WORDS]
        spend(len(given))
        yield from (" ".join(given[at:]) for at in range(len(given)))


def redirected(line: str) -> list[str]:
    """Possible targets of redirections."""
    return [_QUOTING.sub("", target) for target in _WRITES_TO.findall(line)]


def _without_directory(command: str) -> str:
    """`/usr/bin/git push` → `git push`."""
    program, blank, rest = command.partition(" ")
    return f"{program.rsplit('/', 1)[-1]}{blank}{rest}"
