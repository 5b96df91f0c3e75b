"""Exit code 2 that nobody meant: interpreters and common tools use it for their own errors.

The block stands, since nobody can know. But the user is told that the hook itself looks broken.
"""

import re

from msgspec import Struct

_LINES = 3
"""How many of the last lines of stderr are looked at: a hook that goes on after an error ends with a reason."""


class Sign(Struct, frozen=True):
    """A line by which a program says that it could not do its work at all."""

    line: re.Pattern[str]
    means: str


def _sign(pattern: str, means: str) -> Sign:
    return Sign(re.compile(pattern), means)


SIGNS = (
    _sign(r"[^:]*python[\d.]*[^:]*: can't open file ", "its script is not there"),
    _sign(r"[^:]+: (?:\d+: |line \d+: )?(?:cannot|Can't) open \S+", "its script is not there"),
    _sign(r"Can't open perl script ", "its script is not there"),
    _sign(r".*: line \d+: (?:syntax error|unexpected EOF|conditional binary operator)", "a syntax error"),
    _sign(r".*: \d+: (?:Syntax error|Bad substitution|set: Illegal option)", "a syntax error; is it written for bash?"),
    _sign(r".*: line \d+: (?:\[|\[\[|test|exit|set|read|local|declare|export|source|\.): ", "a builtin used wrongly"),
    _sign(r".*: \d+: (?:\[|test|exit|read|local|export|\.): ", "a builtin used wrongly"),
    _sign(r"(?:[efz]?grep|rg|sed|g?awk|jq|ls|diff|cmp|sort|tar): .*(?:No such file|[Ii]nvalid|[Uu]nmatched|[Uu]nknown"
          r"|[Uu]nrecognized|[Cc]annot |[Cc]ould not |parse error|Trailing backslash)", "a program in it failed"),
    _sign(r"(?i)usage: \S", "a program was called wrongly"),
    _sign(r"error: (?:Failed to \w+|No interpreter found|Project directory `|TOML parse error|No `pyproject\.toml`"
          r"|Querying Python|Could not )", "uv could not run it"),
    _sign(r"error: (?:unexpected argument|unrecognized subcommand|the following required arguments"
          r"|a value is required|invalid value)", "a program was called wrongly"),
    _sign(r"\S+: error: (?:unrecognized arguments|the following arguments|argument |invalid choice)",
          "a program was called wrongly"),
)  # fmt: skip


_MAKE = re.compile(r"g?make(?:\[\d+\])?: (?:\*\*\* |Target .* not remade)")


def only_says_that_it_failed(stderr: str) -> bool:
    """Whether stderr ends with the words of `make`, which exits with 2: what is wrong is on stdout, if anywhere."""
    return any(_MAKE.match(line.strip()) for line in stderr.strip().splitlines()[-1:])


def breakage(stderr: str) -> str | None:
    """What suggests that the hook did not mean its exit code: the meaning, and the line. None: nothing does."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    # A usage message may be long, and begins with the word.
    for line in dict.fromkeys([*lines[-_LINES:], *lines[:1]]):
        for sign in SIGNS:
            if sign.line.match(line):
                return f"{sign.means}: {line}"
    return None
