"""Rules for settings entries, in addition to what the loader reports."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from wave_agent.formats.strict_json import Path, show_path
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.events import EVENTS, OnFailure
from wave_agent.hooks.matcher import EVERYTHING
from wave_agent.lint.findings import Finding, RunBit, TextEdit, finding
from wave_agent.lint.invocations import invocation, relative_script, resolve, unquoted
from wave_agent.lint.places import FileOwner, SettingsFile
from wave_agent.lint.scripts import Script, can_block_at, decides_before
from wave_agent.settings.hook_entries import MILLISECONDS_FROM, Issue

_HOME_PATH = re.compile(r"(?:/home/|/Users/(?!Shared/))[\w.-]+/|[A-Za-z]:[\\/]+Users[\\/]+[\w.-]+")


# ------------------------------------------------------------------------------------------------ the loader's findings


_KINDS: tuple[tuple[Callable[[Issue], bool], str], ...] = (
    (lambda issue: issue.message.startswith("unknown event"), "W108"),
    (lambda issue: issue.message.startswith(("unknown key", "unknown setting")), "W109"),
    (lambda issue: issue.path[-1:] == ("timeout",) and "milliseconds" in issue.message, "W103"),
    (lambda issue: issue.path[-1:] == ("matcher",) and issue.broken, "W106"),
    (lambda issue: "never lets" in issue.message, "W106"),
    (lambda issue: issue.broken, "W107"),
)
"""The code for each loader issue: the first that matches, W113 for the rest."""


def concerns(place: SettingsFile, issue: Issue) -> bool:
    """False for another agent's event in a file that agent also reads; a misspelt name is always a mistake."""
    ours = place.kind in (FileOwner.WAVE, FileOwner.USER)
    names_an_event = len(issue.path) == 2 and issue.path[0] == "hooks"
    return ours or not names_an_event or "did you mean" in issue.message


def loader_finding(place: SettingsFile, issue: Issue) -> Finding:
    code = next((code for fits, code in _KINDS if fits(issue)), "W113")
    repair = _seconds(place, issue.path) if code == "W103" else None
    return finding(code, place.file, issue.line, f"{show_path(issue.path)}: {issue.message}", repair)


def _seconds(place: SettingsFile, path: Path) -> TextEdit | None:
    """The timeout in seconds, if that is a sensible number."""
    value = _value(place, path)
    span = place.source.document.spans.get(path) if place.source else None
    if not isinstance(value, int | float) or value < MILLISECONDS_FROM or span is None:
        return None
    return TextEdit(place.file, span, f"{value / 1000:g}")


def _value(place: SettingsFile, path: Path) -> Any:
    found: Any = place.source.document.value if place.source else None
    for step in path:
        found = found[step]
    return found


# ----------------------------------------------------------------------------------------------------- our own findings


def hook_findings(place: SettingsFile, hook: HookDefinition, project: str, script: Script | None) -> Iterator[Finding]:
    """`script` is the script the hook runs, if it could be read; for a command without one, the command line itself."""
    variables = variables_of(place, project)
    yield from _quoting(place, hook)
    yield from _paths(place, hook)
    yield from _file(place, hook, resolved(hook, project, variables))
    if script is not None:
        yield from _guard(place, hook, script)


def variables_of(place: SettingsFile, project: str) -> Mapping[str, str]:
    """The variables a path in a command may start with."""
    found = {"CLAUDE_PROJECT_DIR": project, "WAVE_PROJECT_DIR": project, "HOME": os.path.expanduser("~")}
    return {**found, "CLAUDE_PLUGIN_ROOT": place.plugin_root} if place.kind is FileOwner.PLUGIN else found


def resolved(hook: HookDefinition, project: str, variables: Mapping[str, str]) -> str | None:
    """The script the hook runs, if it is unambiguous."""
    found = invocation(hook.command, hook.args)
    return resolve(found.word, project, variables) if found else None


def _command_path(place: SettingsFile, hook: HookDefinition) -> Path:
    return hook.path if isinstance(_value(place, hook.path), str) else (*hook.path, "command")


def _quoting(place: SettingsFile, hook: HookDefinition) -> Iterator[Finding]:
    if hook.args is not None or place.source is None:
        return
    path = _command_path(place, hook)
    command = _value(place, path)
    spots = list(unquoted(command))
    if not spots:
        return
    names = ", ".join(dict.fromkeys(command[start:end] for start, end in spots))
    span = place.source.document.spans.get(path)
    text = place.text.removeprefix("\ufeff")
    edit = None if span is None else TextEdit(place.file, span, _quoted(text[span[0] : span[1]], spots))
    yield finding("W101", place.file, place.source.document.line(path), f"{names} is not quoted in: {command}", edit)


def _quoted(literal: str, spots: list[tuple[int, int]]) -> str:
    """The JSON string with quotes added around these spans of its value; all other characters are unchanged."""
    raw = _raw_places(literal)
    for start, end in reversed(spots):
        literal = f'{literal[: raw[start]]}\\"{literal[raw[start] : raw[end]]}\\"{literal[raw[end] :]}'
    return literal


def _raw_places(literal: str) -> list[int]:
    """The offset of each character of a string's value in the JSON literal, and where the value ends."""
    found: list[int] = []
    at = 1
    while at < len(literal) - 1:
        found.append(at)
        escape = re.compile(r"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|\\u\w{4}|\\.|.", re.DOTALL).match(literal, at)
        at = escape.end() if escape else at + 1
    return [*found, at]


def _paths(place: SettingsFile, hook: HookDefinition) -> Iterator[Finding]:
    words = " ".join((hook.command, *(hook.args or ())))
    if place.shared and (found := _HOME_PATH.search(words)):
        yield finding("W104", place.file, hook.line, f"{found[0]} exists on one machine only")
    # A hook in .wave/settings.json always runs in the project directory.
    if place.kind is not FileOwner.WAVE and (script := relative_script(hook.command, hook.args)):
        yield finding("W102", place.file, hook.line, f"{script} depends on the agent's current directory")


def _file(place: SettingsFile, hook: HookDefinition, file: str | None) -> Iterator[Finding]:
    found = invocation(hook.command, hook.args)
    if file is None or found is None:
        return
    elsewhere = place.kind is FileOwner.USER and not found.word.startswith(("/", "~", "$HOME"))
    if not os.path.exists(file) and not elsewhere:
        yield finding("W110", place.file, hook.line, f"{found.word} does not exist")
    elif os.path.isfile(file) and not found.interpreter and not os.stat(file).st_mode & 0o111:
        yield finding("W105", place.file, hook.line, f"{found.word} is not executable", RunBit(file))


def _guard(place: SettingsFile, hook: HookDefinition, script: Script) -> Iterator[Finding]:
    if script.can_block:
        yield from policy_findings(place, hook)


_PLACEHOLDER = re.compile(r"\$\{(?!ARGUMENTS\})[\w.]+\}|\{\{.*?\}\}|\$(?:tool|prompt|hook|session)\w*")


def prompt_findings(place: SettingsFile, hook: HookDefinition) -> Iterator[Finding]:
    """Findings for hooks that ask a model."""
    yield from policy_findings(place, hook)
    if found := _PLACEHOLDER.search(hook.command):
        yield finding("W120", place.file, hook.line, f"{found[0]} in the prompt of {hook.name} is not filled in")
    if (
        hook.matcher.alternatives == EVERYTHING.alternatives
        and hook.condition is None
        and EVENTS[hook.event].has_tool
        and not hook.is_async
    ):
        yield finding("W121", place.file, hook.line, f"{hook.name} asks a model on every {hook.event}")


def policy_findings(place: SettingsFile, hook: HookDefinition) -> Iterator[Finding]:
    """Findings for hooks that can block."""
    row = EVENTS[hook.event]
    if hook.is_async and not hook.rewakes and can_block_at(row):
        yield finding(
            "W111", place.file, hook.line, f"{hook.name} can block on {hook.event}, but async decisions are ignored"
        )
    elif place.kind is FileOwner.WAVE and decides_before(row) and hook.on_failure is OnFailure.CONTINUE:
        yield finding("W112", place.file, hook.line, f"if {hook.name} fails, the action it guards goes ahead")
