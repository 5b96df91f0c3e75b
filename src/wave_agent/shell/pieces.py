"""A line that no grammar understands, cut where a command may begin. Errs on the side of too many pieces."""

import re
from collections.abc import Iterator

_BETWEEN_COMMANDS = re.compile(r"\$\(|&&|\|\||[;&|\n(){}`]")
_REDIRECTION = re.compile(r"\d*(?:>>|>&|<&|&>|[<>])\s*[^\s;&|]*")
_WRITES_TO = re.compile(r"(?:>>|>\||&>|<>|>)\s*([^\s;&|<>()]+)")
_QUOTING = re.compile(r"[\\'\"]")
_BEFORE_A_COMMAND = re.compile(
    r"(?:(?:if|then|elif|else|while|until|do|time|exec|command|builtin|nohup|sudo|env|nice|setsid|eval|xargs|!)"
    r"(?:\s+-\S+)*|timeout(?:\s+-\S+)*\s+\S+|\w+=\S*)\s+"
)
_BRACES = re.compile(r"(?<![^\s;&|(])\{([^{}\s]*,[^{}\s]*)\}([^\s;&|{}]*)")
_TAKES_TEXT = re.compile(
    r"(?<![\w.-])(?:(?:ba|da|z|k|a|mk|ya|rba|fi|c|tc)?sh|eval|source|read|mapfile|readarray|make)(?![\w.-])|(?:^|[;&|({\n])\s*\.\s"
)
_AT_QUOTES = re.compile(rf"{_BETWEEN_COMMANDS.pattern}|['\"]")
_MOST_WORDS = 24
_DEEPEST = 32
"""Words in front of a command that are looked behind."""


def pieces(line: str) -> list[str]:
    """What may be a command in this line, as written and without what can stand in front of, behind or around one."""
    found: list[str] = []
    line = _BRACES.sub(_expanded, line.replace("\\\n", " "))
    if _TAKES_TEXT.search(line):
        found += _suffixes(line)
    for piece in _BETWEEN_COMMANDS.split(line):
        plain = " ".join(_QUOTING.sub("", _REDIRECTION.sub(" ", piece)).split())
        found += [piece.strip(), plain]
        for _ in range(_DEEPEST):
            found.append(_without_directory(plain))
            in_front = _BEFORE_A_COMMAND.match(plain)
            if in_front is None:
                break
            plain = plain[in_front.end() :]
            found.append(plain)
    return list(dict.fromkeys(piece for piece in found if piece))


def _expanded(braces: re.Match[str]) -> str:
    return " ".join(f"{choice}{braces[2]}" for choice in braces[1].split(","))


def _suffixes(line: str) -> Iterator[str]:
    """Where text may become a command, one may begin at every word, also between quotes."""
    for piece in _AT_QUOTES.split(line):
        given = piece.split(maxsplit=_MOST_WORDS)[:_MOST_WORDS]
        yield from (" ".join(given[at:]) for at in range(len(given)))


def redirected(line: str) -> list[str]:
    """What may be the target of a redirection."""
    return [_QUOTING.sub("", target) for target in _WRITES_TO.findall(line)]


def _without_directory(command: str) -> str:
    """`/usr/bin/git push` → `git push`."""
    program, blank, rest = command.partition(" ")
    return f"{program.rsplit('/', 1)[-1]}{blank}{rest}"
