"""External checkers, used if installed: Bash and Python for syntax, shellcheck for much more."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from wave_agent.lint.codes import Level
from wave_agent.lint.findings import Finding, finding
from wave_agent.lint.scripts import SHELLS, Language, Script

_LEVELS: Mapping[str, Level] = {"error": Level.ERROR, "warning": Level.WARNING}
_LONGEST = 20
"""Timeout in seconds for one checker on one script."""


def checked_by_programs(script: Script) -> Iterator[Finding]:
    """Findings of the checkers on this machine; none from those that are missing or fail."""
    if script.language in SHELLS:
        yield from _bash_syntax(script)
        yield from _shellcheck(script)
    elif script.language is Language.PYTHON and not script.runs_elsewhere:
        yield from _python_syntax(script)


def _run(*command: str, text: str) -> subprocess.CompletedProcess[str] | None:
    if shutil.which(command[0]) is None:
        return None
    try:
        return subprocess.run(
            command, input=text, capture_output=True, text=True, errors="replace", timeout=_LONGEST, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _bash_syntax(script: Script) -> Iterator[Finding]:
    """Uses Bash for sh scripts too: no sh can parse what Bash cannot."""
    ran = _run("bash", "-n", "/dev/stdin", text=script.text)  # named, so that messages have the line
    if ran is None:
        return
    # Of some errors, such as an unfinished [[, Bash only says something, and exits with 0.
    lines = [line for line in ran.stderr.splitlines() if ": warning: " not in line]
    if ran.returncode == 0 and not lines:
        return
    said = (lines or ["it cannot be parsed"])[0]
    head, _, reason = said.partition(": ")[2].partition(": ")
    line = head.removeprefix("line ")
    yield finding("W214", script.file, int(line) if line.isdigit() else 1, reason or said)


_PARSE = """\
import ast, sys
try:
    ast.parse(sys.stdin.buffer.read())
except (SyntaxError, ValueError) as error:
    print(getattr(error, "lineno", None) or 1, getattr(error, "msg", None) or error)
"""


def _python_syntax(script: Script) -> Iterator[Finding]:
    """Uses the python3 that would run it, which may be newer than the one running this program."""
    ran = _run("python3", "-I", "-c", _PARSE, text=script.text)
    if ran is not None and ran.returncode == 0 and ran.stdout.strip():
        line, _, reason = ran.stdout.strip().partition(" ")
        yield finding("W214", script.file, int(line), f"python3 cannot parse it: {reason}")


def _shellcheck(script: Script) -> Iterator[Finding]:
    dialect = "bash" if script.language is Language.BASH else "sh"
    ran = _run("shellcheck", "--format=json", "--severity=warning", f"--shell={dialect}", "-", text=script.text)
    try:
        comments: Any = json.loads(ran.stdout) if ran is not None else []
    except ValueError:
        return
    for comment in comments:
        yield Finding(
            code=f"SC{comment['code']}",
            file=script.file,
            line=comment["line"],
            reason=comment["message"],
            level=_LEVELS.get(comment["level"], Level.WARNING),
            fix="See shellcheck.",
        )
