"""The program a hook needs to start: the one in its command or in its script's first line."""

import os
import re
import shlex
from collections.abc import Callable, Iterator

from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.runners.without_shell import BUILTINS
from wave_agent.lint.findings import Finding, LineEndings, finding
from wave_agent.lint.invocations import Invocation, program_of
from wave_agent.lint.places import SettingsFile
from wave_agent.lint.scripts import ENDINGS, SHELLS, Script
from wave_agent.system.project_files import NO_FILE, NotReadError, read_project_file

Which = Callable[[str], str | None]
"""Returns the path of a program or None, like `shutil.which`."""

_ENV = re.compile(r"(?:/usr)?/bin/env")
_LOOKED_AT = 4096


def interpreter_findings(
    place: SettingsFile, hook: HookDefinition, found: Invocation | None, file: str | None, which: Which
) -> Iterator[Finding]:
    """`file` is the script the hook runs, if any."""
    program = found.program if found and found.interpreter else program_of(hook.command, hook.args)
    if program and program not in BUILTINS and which(os.path.expanduser(program)) is None:
        yield finding("W115", place.file, hook.line, f"{program} was not found on this machine")
    elif found and not found.interpreter and file is not None and (problem := _first_line_problem(file, which)):
        yield finding("W115", place.file, hook.line, f"{found.word}: {problem}")


def line_ending_findings(script: Script) -> Iterator[Finding]:
    """CR LF that keeps the script from running: in the first line, or anywhere in a shell script."""
    first = script.text.partition("\n")[0]
    shell = script.language in SHELLS
    if (first.startswith("#!") and first.endswith("\r")) or (shell and "\r\n" in script.text):
        yield finding("W116", script.file, 1, "it has CR LF line endings", LineEndings(script.file))


def _first_line_problem(file: str, which: Which) -> str:
    try:
        head = read_project_file(file, "/", _LOOKED_AT, whole=False) or b""
    except NotReadError as error:
        return "it is not a regular file" if str(error) == NO_FILE else ""
    if not head.startswith(b"#!"):
        language = ENDINGS.get(os.path.splitext(file)[1])
        # A shell runs a text file without that line as a shell script.
        wrong = language is not None and language not in SHELLS and b"\0" not in head
        return "its first line names no interpreter, so a shell would run it" if wrong else ""
    line = head.partition(b"\n")[0][2:].decode(errors="replace").strip()
    program = _program_in(line)
    if not program:
        return "its first line names no interpreter"
    return "" if which(program) else f"its first line names {program}, which was not found on this machine"


def _program_in(line: str) -> str:
    """The program a first line runs: python3 for `/usr/bin/env -S A=1 python3 -I`."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    if words and _ENV.fullmatch(words[0]):
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else ""
