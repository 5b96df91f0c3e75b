"""What a hook's command starts: the script, its interpreter, and how variables are quoted."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

PATH_VARIABLES = ("CLAUDE_PROJECT_DIR", "WAVE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT")
_INTERPRETER = re.compile(r"(?:\S*/)?(python[\d.]*|node|bun|deno|bash|sh|dash|zsh|ruby|perl)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_OPERATOR = re.compile(r"[;&|()\n`]|\$\(")
_SCRIPT = re.compile(r"(?:\.{1,2}/)?[\w.@+-]+(?:/[\w.@+-]+)*\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl)")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


class Invocation(Struct, frozen=True):
    """A script as started by a command."""

    word: str
    """The script path as written."""
    interpreter: str = ""
    """Empty if it is run directly and must be executable."""
    program: str = ""
    """The interpreter as written, perhaps with a path."""


def invocation(command: str, args: Sequence[str] | None) -> Invocation | None:
    """The script this command runs; None if there is none, or if the command does more than one thing."""
    words = _words(command, args)
    if not words:
        return None
    found = _INTERPRETER.fullmatch(words[0])
    if found is None:
        return Invocation(words[0]) if "/" in words[0] else None
    for word in words[1:]:
        if word in ("-c", "-m", "-e", "--eval", "run"):
            return None  # what follows is a program or a module, not a file
        if not word.startswith("-"):
            return Invocation(word, found[1], words[0])
    return None


def program_of(command: str, args: Sequence[str] | None) -> str:
    """The program started by a simple command if it must be looked up on PATH; else empty."""
    words = _words(command, args)
    return words[0] if words and re.fullmatch(r"[\w.+-]+", words[0]) else ""


def _words(command: str, args: Sequence[str] | None) -> list[str]:
    """The words of a command that starts one program; empty if it does more than that."""
    if args is None and _OPERATOR.search(re.sub(r"[0-9]?>&[0-9-]|&>", "", command)):
        return []
    try:
        words = [command, *args] if args is not None else shlex.split(command)
    except ValueError:  # unclosed quote
        return []
    while args is None and words and (_ASSIGNMENT.fullmatch(words[0]) or words[0] in ("exec", "env", "/usr/bin/env")):
        words = words[1:]
    return words


def resolve(word: str, project: str, variables: Mapping[str, str]) -> str | None:
    """The absolute path of a word; None if it needs shell expansion."""
    path = _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), word)
    if any(character in path for character in "$*?[\0"):
        return None
    return os.path.normpath(os.path.join(project, os.path.expanduser(path)))


def relative_script(command: str, args: Sequence[str] | None) -> str | None:
    """A script whose path depends on the current directory."""
    if args is None and re.search(r"\bcd\s", command):
        return None
    found = invocation(command, args)
    if found is None or found.word.startswith(("/", "~", "$")):
        return None
    return found.word if _SCRIPT.fullmatch(found.word) or found.word.startswith(("./", "../", ".claude/")) else None


def unquoted(command: str) -> Iterator[tuple[int, int]]:
    """Spans of unquoted path variables, whose value would be split at a space."""
    quote, at = "", 0
    while at < len(command):
        character = command[at]
        if character == "\\" and quote != "'":
            at += 2
            continue
        if character == quote:
            quote = ""
        elif not quote and character in "'\"":
            quote = character
        elif not quote and (found := _VARIABLE.match(command, at)) and (found[1] or found[2]) in PATH_VARIABLES:
            if not _assigned(command, at):
                yield found.span()
            at = found.end()
            continue
        at += 1


def _assigned(command: str, at: int) -> bool:
    """Words are not split in `NAME=$VARIABLE`."""
    return re.search(r"(?:^|[\s;&|(])[A-Za-z_]\w*=[^\s;&|]*$", command[:at]) is not None
