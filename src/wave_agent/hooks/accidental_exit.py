"""Detects an accidental exit code 2: interpreters and common tools use it for their own errors.

The block still applies, since we cannot be sure, but the user is warned that the hook itself looks broken.
"""

import re

from msgspec import Struct

_LINES = 3
"""How many of the last lines of stderr to check: a hook that continues after an error ends with its reason."""


class Sign(Struct, frozen=True):
    """A line that a program prints when it could not run at all."""

    line: re.Pattern[str]
    means: str


def _sign(pattern: str, means: str) -> Sign:
    return Sign(re.compile(pattern), means)


SIGNS = (
    _sign(r"[^:]*python[\d.]*[^:]*: can't open file ", "its script is missing"),
    _sign(r"[^:]+: (?:\d+: |line \d+: )?(?:cannot|Can't) open \S+", "its script is missing"),
    _sign(r"Can't open perl script ", "its script is missing"),
    _sign(r".*: line \d+: (?:syntax error|unexpected EOF|conditional binary operator)", "a syntax error"),
    _sign(r".*: \d+: (?:Syntax error|Bad substitution|set: Illegal option)", "a syntax error; is it written for bash?"),
    _sign(r".*: line \d+: (?:\[|\[\[|test|exit|set|read|local|declare|export|source|\.): ", "a builtin was misused"),
    _sign(r".*: \d+: (?:\[|test|exit|read|local|export|\.): ", "a builtin was misused"),
    _sign(r"(?:[efz]?grep|rg|sed|g?awk|jq|ls|diff|cmp|sort|tar): .*(?:No such file|[Ii]nvalid|[Uu]nmatched|[Uu]nknown"
          r"|[Uu]nrecognized|[Cc]annot |[Cc]ould not |parse error|Trailing backslash)", "a program in it failed"),
    _sign(r"(?i)usage: \S", "a program was called incorrectly"),
    _sign(r"error: (?:Failed to \w+|No interpreter found|Project directory `|TOML parse error|No `pyproject\.toml`"
          r"|Querying Python|Could not )", "uv could not run it"),
    _sign(r"error: (?:unexpected argument|unrecognized subcommand|the following required arguments"
          r"|a value is required|invalid value)", "a program was called incorrectly"),
    _sign(r"\S+: error: (?:unrecognized arguments|the following arguments|argument |invalid choice)",
          "a program was called incorrectly"),
)  # fmt: skip


_MAKE = re.compile(r"g?make(?:\[\d+\])?: (?:\*\*\* |Target .* not remade)")


def only_says_that_it_failed(stderr: str) -> bool:
    """Whether stderr ends with `make`'s own message, with exit code 2: the actual problem is on stdout, if anywhere."""
    return any(_MAKE.match(line.strip()) for line in stderr.strip().splitlines()[-1:])


def breakage(stderr: str) -> str | None:
    """Why the exit code looks accidental: the meaning, and the line that shows it. None if it looks intended."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    # A usage message may be long, and starts with that word.
    for line in dict.fromkeys([*lines[-_LINES:], *lines[:1]]):
        for sign in SIGNS:
            if sign.line.match(line):
                return f"{sign.means}: {line}"
    return None
