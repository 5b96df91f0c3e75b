"""Runs command lines that need no shell: plain words, started the way Bash would, but without Bash.

Most hooks are like `.wave/hooks/guard.sh`, `python3 guard.py --strict` or
`"$CLAUDE_PROJECT_DIR"/.claude/hooks/check.py`, and a shell would take half of their time. The program must not notice
any difference: it gets the words and the environment that Bash 5 would have passed. If that is not certain, the result
is None, and a shell is used.
"""

import os
import re
import signal
from collections.abc import Mapping
from functools import lru_cache, partial

from msgspec import Struct

from wave_agent.system.processes import find_program

_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"
_VARIABLE = rf"\$(?:{_NAME}|\{{{_NAME}\}})"
_UNQUOTED = r"[A-Za-z0-9_@%+=:,./-]"
_IN_DOUBLE_QUOTES = rf'[^"\\$`!\x00-\x1f\x7f]|{_VARIABLE}'
_WORD = rf"""(?:{_UNQUOTED}|'[^'\x00-\x1f\x7f]*'|"(?:{_IN_DOUBLE_QUOTES})*"|{_VARIABLE})+"""
_WORDS = re.compile(_WORD)
_LINE = re.compile(rf"[ \t]*{_WORD}(?:[ \t]+{_WORD})*[ \t]*")
_PARTS = re.compile(rf"'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<variable>{_VARIABLE})|[^'\"$]+")
_VARIABLES = re.compile(_VARIABLE)
_SAFE = re.compile(f"{_UNQUOTED}+")

BUILTINS = frozenset([
    "!", ".", ":", "[", "[[", "]]", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command",
    "compgen", "complete", "compopt", "continue", "coproc", "declare", "dirs", "disown", "do", "done", "echo",
    "elif", "else", "enable", "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi", "for",
    "function", "getopts", "hash", "help", "history", "if", "in", "jobs", "kill", "let", "local", "logout",
    "mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray", "readonly", "return", "select", "set",
    "shift", "shopt", "source", "suspend", "test", "then", "time", "times", "trap", "true", "type", "typeset",
    "ulimit", "umask", "unalias", "unset", "until", "wait", "while", "{", "}",
])  # fmt: skip
"""Words that Bash handles itself, even if there is a program with that name."""

_ITS_OWN = frozenset([
    "COLUMNS", "COMP_WORDBREAKS", "DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "EUID", "EXECIGNORE", "FUNCNAME",
    "GROUPS", "HISTCMD", "IFS", "LINENO", "LINES", "OPTERR", "OPTIND", "PIPESTATUS", "POSIXLY_CORRECT", "PPID",
    "PS4", "RANDOM", "SECONDS", "SHELLOPTS", "SRANDOM", "UID",
])  # fmt: skip
"""Variables that Bash sets, changes, drops or obeys, besides those that start with BASH."""
_PROMPTS = ("PS1", "PS2")
"""Dropped by a non-interactive shell."""
_REDONE = ("PWD", "OLDPWD", "SHLVL", "_", *_PROMPTS)
"""Not passed on unchanged."""
_KNOWN_LOCALES = ("", "C", "POSIX")
"""Bash warns about an LC_ALL that the system does not have; every system has these."""
_LEVEL = re.compile(r"[0-9]{1,3}")
_HIGHEST_LEVEL = 998
_OF_SSH = frozenset(["SSH_CLIENT", "SSH2_CLIENT"])
"""On some systems, a top-level shell with one of these set reads the user's start-up file."""


class DirectStart(Struct, frozen=True):
    """A program to start instead of a shell."""

    program: str
    words: tuple[str, ...]
    environment: Mapping[str, str]


class _NeedsShellError(Exception):
    pass


def without_shell(command: str, environment: Mapping[str, str], directory: str) -> DirectStart | None:
    """The program `bash -c COMMAND` would start in this environment and directory. None if Bash is needed."""
    spelled = _spelled_words(command)
    if not spelled or not _is_left_alone(environment) or _is_child_masked():
        return None
    try:
        words = tuple(_expanded(word, environment) for word in spelled)
        program = _program(words[0], environment)
        return DirectStart(program, words, _as_bash_leaves(environment, program, directory))
    except (_NeedsShellError, OSError):
        return None


@lru_cache
def _spelled_words(command: str) -> tuple[str, ...]:
    """The words as written; empty if the line contains anything else. Bash reads a leading `-` as an option."""
    return tuple(_WORDS.findall(command)) if _LINE.fullmatch(command) and command[0] not in "-+" else ()


def _is_left_alone(environment: Mapping[str, str]) -> bool:
    """Whether Bash would pass this environment on unchanged, apart from the variables we reproduce."""
    return (
        _ITS_OWN.isdisjoint(environment)
        and environment.get("LC_ALL", "") in _KNOWN_LOCALES
        and not any(name.startswith("BASH") for name in environment)
    )


def _is_child_masked() -> bool:
    """Whether SIGCHLD is blocked. Bash unblocks it for the programs it starts."""
    return signal.SIGCHLD in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def _expanded(word: str, environment: Mapping[str, str]) -> str:
    return word if _SAFE.fullmatch(word) else _PARTS.sub(partial(_part, environment), word)


def _part(environment: Mapping[str, str], part: re.Match[str]) -> str:
    if part["single"] is not None:
        return part["single"]
    if part["double"] is not None:
        return _VARIABLES.sub(lambda found: _value(found[0], environment), part["double"])
    if part["variable"] is None:
        return part[0]
    value = _value(part["variable"], environment)
    if not _SAFE.fullmatch(value):  # Bash would split it at blanks and expand patterns in it.
        raise _NeedsShellError
    return value


def _value(variable: str, environment: Mapping[str, str]) -> str:
    name = variable.strip("${}")
    if name in _REDONE or name not in environment:  # Bash sets some variables itself.
        raise _NeedsShellError
    return environment[name]


def _program(name: str, environment: Mapping[str, str]) -> str:
    """The path of the program, as Bash would put it in `_`."""
    if "=" in name or name[:1] == "%":  # an assignment, a job
        raise _NeedsShellError
    if "/" in name:
        return name
    directories = environment.get("PATH", "").split(os.pathsep)
    if not _SAFE.fullmatch(name) or name in BUILTINS:
        raise _NeedsShellError
    if not all(directory.startswith("/") for directory in directories):
        raise _NeedsShellError
    return find_program(name, environment, "/")


def _as_bash_leaves(environment: Mapping[str, str], program: str, directory: str) -> dict[str, str]:
    left = {name: value for name, value in environment.items() if name not in _REDONE}
    left |= {"PWD": _working_directory(environment, directory), "SHLVL": _level(environment), "_": program}
    before = environment.get("OLDPWD", "")
    if before and os.path.isdir(os.path.join(directory, before)):
        left["OLDPWD"] = before
    return left


def _working_directory(environment: Mapping[str, str], directory: str) -> str:
    """PWD if it names this directory, since it may contain symlinks; else the real path."""
    given = environment.get("PWD", "")
    is_it = given.startswith("/") and (given == directory or _same(given, directory))
    return given if is_it else os.path.realpath(directory, strict=True)


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _level(environment: Mapping[str, str]) -> str:
    """SHLVL unchanged: Bash increments it, and decrements it when it execs another program."""
    level = environment.get("SHLVL", "0")
    if not _LEVEL.fullmatch(level) or int(level) > _HIGHEST_LEVEL:
        raise _NeedsShellError
    if int(level) == 0 and not _OF_SSH.isdisjoint(environment):
        raise _NeedsShellError
    return str(int(level))
