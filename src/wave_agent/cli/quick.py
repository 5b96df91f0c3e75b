"""The plainest command lines, run without the parser: its library takes longer to load than an interpreter starts.

`wave --version`, `wave --help`, and `wave -p PROMPT` with ordinary flags. Every other line is left to `cli/main`.
"""

from __future__ import annotations

import os
import sys

from wave_agent import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # what `typing` imports takes half as long as the interpreter's start
    from collections.abc import Mapping, Sequence
    from typing import Any

FAILED = 1
UNWRITTEN = "The output cannot be written"
HELP_FILE = os.path.join(os.path.dirname(__file__), "help.txt")
"""What `wave --help` prints in a terminal of at least `WIDE` columns; `make docs` writes it."""
WIDE = 80

DEFAULTS: Mapping[str, Any] = {
    "prompt": None,
    "output_format": "text",
    "model": None,
    "base_url": None,
    "api": None,
    "settings": (),
    "permission_mode": None,
    "allowed_tools": (),
    "disallowed_tools": (),
    "add_dirs": (),
    "max_turns": None,
    "max_cost": None,
    "max_output_tokens": None,
    "effort": None,
    "fallback_model": None,
    "append_system_prompt": "",
    "cwd": None,
    "trust": False,
    "trust_ref": None,
    "no_project_hooks": False,
    "no_hooks": False,
    "plugins": (),
    "mcp_config": (),
    "strict_mcp_config": False,
    "strict_hooks": False,
    "sandbox": False,
    "plain": False,
    "go_on": False,
    "resume": None,
    "debug_topics": (),
}
"""What the parser returns for a line without flags."""
_SWITCHES = {
    "--trust": "trust",
    "--no-project-hooks": "no_project_hooks",
    "--strict-hooks": "strict_hooks",
    "--sandbox": "sandbox",
    "--strict-mcp-config": "strict_mcp_config",
    "--plain": "plain",
    "-c": "go_on",
    "--continue": "go_on",
}
_TEXTS = {
    "--model": "model",
    "--base-url": "base_url",
    "--append-system-prompt": "append_system_prompt",
    "--cwd": "cwd",
    "--trust-ref": "trust_ref",
    "-r": "resume",
    "--resume": "resume",
}
_LISTS = {
    "--settings": "settings",
    "--allowed-tools": "allowed_tools",
    "--disallowed-tools": "disallowed_tools",
    "--plugin-dir": "plugins",
    "--mcp-config": "mcp_config",
}
_CHOICES = {
    "--output-format": ("output_format", ("text", "json", "stream-json")),
    "--permission-mode": ("permission_mode", ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")),
}


def flags_in(words: Sequence[str]) -> dict[str, Any] | None:
    """What the parser would return for this line; None unless it is plain: one prompt, known flags, usable values."""
    flags = dict(DEFAULTS)
    left = list(reversed(words))
    while left:
        word = left.pop()
        if word in _SWITCHES:
            flags[_SWITCHES[word]] = True
        elif not left or left[-1].startswith("-") or not _take(word, left.pop(), flags):
            return None
    is_ambiguous = flags["go_on"] and flags["resume"] is not None
    return None if is_ambiguous or not flags["prompt"] else flags


def _take(word: str, value: str, flags: dict[str, Any]) -> bool:
    """Sets the flag that this word names. False: the parser has to look at it."""
    if word in ("-p", "--print"):
        is_first = flags["prompt"] is None
        flags["prompt"] = value
        return is_first
    if word in _TEXTS:
        flags[_TEXTS[word]] = value
    elif word in _LISTS:
        flags[_LISTS[word]] = (*flags[_LISTS[word]], value)
    elif word in _CHOICES and value in _CHOICES[word][1]:
        flags[_CHOICES[word][0]] = value
    elif word == "--max-turns" and value.isascii() and value.isdigit() and int(value):
        flags["max_turns"] = int(value)
    else:
        return False
    return True


def text_for(words: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """What a line prints that asks for the version or the usage; None for any other."""
    if words == ["--version"]:
        return f"wave {__version__}\n"
    if words in (["--help"], ["-h"]) and is_wide(environment):
        with open(HELP_FILE, encoding="utf-8") as file:
            return file.read()
    return None


def is_wide(environment: Mapping[str, str]) -> bool:
    """Whether the usage is not wrapped more tightly than in its file."""
    try:
        return (int(environment.get("COLUMNS", "0")) or os.get_terminal_size(sys.stdout.fileno()).columns) >= WIDE
    except (AttributeError, OSError):  # stdout is not a terminal
        return True
    except ValueError:
        return False


def written(status: int, text: str = "") -> int:
    """Write `text`, flush stdout, and return the status. Otherwise Python flushes at exit and prints its own error."""
    stream: Any = sys.stdout  # None if the caller closed it
    if stream is None:
        return status
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(error, BrokenPipeError):
            return status
        if not status:  # otherwise an error was already reported
            complain(f"{UNWRITTEN}: {error.strerror}")
        return status or FAILED
    return status


def complain(text: str) -> None:
    """Write a line to stderr, unless it is closed."""
    stream: Any = sys.stderr  # None if the caller closed it
    if stream is None:
        return
    try:
        print(f"wave: {text}", file=stream, flush=True)
    except (OSError, ValueError):
        return
