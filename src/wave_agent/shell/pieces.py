"""A line that no grammar understands, cut where a command may begin. Errs on the side of too many pieces."""

import re

_BETWEEN_COMMANDS = re.compile(r"\$\(|&&|\|\||[;&|\n(){}`]")
_REDIRECTION = re.compile(r"\d*(?:>>|>&|<&|&>|[<>])\s*[^\s;&|]*")
_WRITES_TO = re.compile(r"(?:>>|>\||&>|<>|>)\s*([^\s;&|<>()]+)")
_QUOTING = re.compile(r"[\\'\"]")
_BEFORE_A_COMMAND = re.compile(
    r"(?:(?:if|then|elif|else|while|until|do|time|exec|command|builtin|nohup|sudo|env|nice|setsid|eval|xargs|!)"
    r"(?:\s+-\S+)*|timeout(?:\s+-\S+)*\s+\S+|\w+=\S*)\s+"
)
_BRACES = re.compile(r"(?<![^\s;&|(])\{([^{}\s]+,[^{}\s]*)\}")
_DEEPEST = 32
"""Words in front of a command that are looked behind."""


def pieces(line: str) -> list[str]:
    """What may be a command in this line, as written and without what can stand in front of, behind or around one."""
    found: list[str] = []
    line = _BRACES.sub(lambda braces: braces[1].replace(",", " "), line.replace("\\\n", " "))
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


def redirected(line: str) -> list[str]:
    """What may be the target of a redirection."""
    return [_QUOTING.sub("", target) for target in _WRITES_TO.findall(line)]


def _without_directory(command: str) -> str:
    """`/usr/bin/git push` → `git push`."""
    program, blank, rest = command.partition(" ")
    return f"{program.rsplit('/', 1)[-1]}{blank}{rest}"
