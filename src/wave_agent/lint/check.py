"""All findings in a project's hooks: settings first, then the scripts they run."""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.execution import HookKind
from wave_agent.hooks.kinds import THINKING
from wave_agent.hooks.named_files import named_files, target_file
from wave_agent.lint.checkers import checked_by_programs
from wave_agent.lint.effect_rules import narrow_guard, narrow_rules
from wave_agent.lint.findings import Finding, finding
from wave_agent.lint.interpreters import Which, interpreter_findings, line_ending_findings
from wave_agent.lint.invocations import invocation
from wave_agent.lint.places import SettingsFile, is_settings, place_named, places
from wave_agent.lint.python_rules import target_problem
from wave_agent.lint.script_rules import inline_hits, script_hits
from wave_agent.lint.scripts import LARGEST, Language, Script, language_of
from wave_agent.lint.settings_rules import (
    concerns,
    hook_findings,
    loader_finding,
    policy_findings,
    prompt_findings,
    resolved,
    variables_of,
)
from wave_agent.settings.layers import Settings, merge_settings
from wave_agent.system.project_files import NotReadError, read_project_file


class LintReport(Struct, frozen=True):
    """The files checked and the findings in them."""

    files: tuple[str, ...]
    findings: tuple[Finding, ...]


class _Wiring(Struct, frozen=True):
    """A hook and the file it is defined in."""

    place: SettingsFile
    hook: HookDefinition
    script: str | None
    """The script it runs, if there is exactly one."""
    files: tuple[str, ...]
    """Every file its command names."""


def check(
    project: str,
    home: Path | None,
    paths: Sequence[str] = (),
    *,
    levels: Sequence[str] = (),
    which: Which = shutil.which,
) -> LintReport:
    """Check a project and the user's settings; with `paths`, only these settings files, scripts and projects.

    `levels` are the project directories that have settings, if there is more than one. `which` finds programs on this
    machine.
    """
    found = list(_gather(levels or (project,), home, paths))
    settings = [(place, merge_settings([place.source])) for place in found if place.source is not None]
    variables = [name for _, merged in settings for name in merged.env]
    enabled = [(place, hook) for place, merged in settings for hook in merged.hooks.hooks if hook.enabled]
    wirings = [_wiring(place, hook, project) for place, hook in enabled if hook.kind is HookKind.COMMAND]
    scripts = _read_scripts(wirings, [path for path in paths if os.path.isfile(path) and not is_settings(path)])
    findings = [
        *(_unreadable(place) for place in found if place.problem),
        *_of_settings(settings, project),
        *_of_hooks(wirings, scripts, project, variables),
        *_of_interpreters(wirings, which),
        *_of_targets(enabled, project),
        *_of_scripts(scripts.values(), variables),
    ]
    looked_at = (*(place.file for place in found), *scripts)
    order = {file: number for number, file in enumerate(looked_at)}
    unique = {(one.code, one.file, one.line, one.reason): one for one in findings}.values()
    return LintReport(looked_at, tuple(sorted(unique, key=lambda one: (order.get(one.file, 0), one.line, one.code))))


def _gather(levels: Sequence[str], home: Path | None, paths: Sequence[str]) -> Iterator[SettingsFile]:
    for level in () if paths else levels:
        yield from places(level, home if level == levels[-1] else None)
    for path in paths:
        if os.path.isdir(path):
            yield from places(path, None)
        elif is_settings(path):
            yield place_named(path)


def _wiring(place: SettingsFile, hook: HookDefinition, project: str) -> _Wiring:
    root = place.plugin_root
    command = hook.command.replace("${CLAUDE_PLUGIN_ROOT}", root).replace("$CLAUDE_PLUGIN_ROOT", root)
    args = None if hook.args is None else [one.replace("${CLAUDE_PLUGIN_ROOT}", root) for one in hook.args]
    return _Wiring(
        place,
        hook,
        resolved(hook, project, variables_of(place, project)),
        tuple(file for file in named_files(command, args, project) if os.path.isfile(file)),
    )


def _unreadable(place: SettingsFile) -> Finding:
    """The message already includes file, line and column."""
    rest = place.problem.removeprefix(place.file).lstrip(":")
    line = rest.split(":", 1)[0]
    return finding("W100", place.file, int(line) if line.isdigit() else 1, place.problem)


def _of_settings(settings: Iterable[tuple[SettingsFile, Settings]], project: str) -> Iterator[Finding]:
    for place, merged in settings:
        yield from (loader_finding(place, issue) for issue in merged.issues if concerns(place, issue))
        yield from narrow_rules(place, project)


def _of_hooks(
    wirings: Sequence[_Wiring], scripts: dict[str, Script], project: str, variables: Sequence[str]
) -> Iterator[Finding]:
    for one in wirings:
        named = scripts.get(one.script) if one.script else None
        line = Script(one.place.file, one.hook.command, Language.BASH, [one.hook])
        script = named or (line if one.script is None else None)
        yield from hook_findings(one.place, one.hook, project, script)
        yield from narrow_guard(one.place, one.hook, script, project)
        if one.hook.args is None:
            for hit in inline_hits(line, variables):
                yield finding(hit.code, one.place.file, one.hook.line, hit.reason)


def _of_interpreters(wirings: Iterable[_Wiring], which: Which) -> Iterator[Finding]:
    for one in wirings:
        started = invocation(one.hook.command, one.hook.args)
        yield from interpreter_findings(one.place, one.hook, started, one.script, which)


def _of_targets(enabled: Iterable[tuple[SettingsFile, HookDefinition]], project: str) -> Iterator[Finding]:
    """Findings for hooks that are Python functions in files, services or prompts, without running anything."""
    for place, hook in enabled:
        if hook.kind is HookKind.PYTHON:
            yield from _of_target(place, hook, target_file(hook.command, project), project)
        elif hook.kind is HookKind.HTTP and not hook.is_async:  # an async answer is only reported
            yield from policy_findings(place, hook)
        elif hook.kind in THINKING:
            yield from prompt_findings(place, hook)


def _of_target(place: SettingsFile, hook: HookDefinition, file: str, project: str) -> Iterator[Finding]:
    shown = os.path.relpath(file, project)
    if not os.path.exists(file):
        yield finding("W110", place.file, hook.line, f"{shown} does not exist")
        return
    try:
        text = read_project_file(file, "/", LARGEST) or b""
    except NotReadError as error:
        yield finding("W114", place.file, hook.line, f"{shown}: it {error}")
        return
    if problem := target_problem(text, hook.command.rpartition(":")[2]):
        yield finding("W114", place.file, hook.line, f"{shown}: {problem}")
    if Script(file, text.decode(errors="replace"), Language.PYTHON, [hook]).can_block:
        yield from policy_findings(place, hook)


def _read_scripts(wirings: Iterable[_Wiring], alone: Sequence[str]) -> dict[str, Script]:
    """Each script once, with all the hooks that run it."""
    runs: dict[str, list[_Wiring]] = {file: [] for file in alone}
    for one in wirings:
        for file in dict.fromkeys((*one.files, *((one.script,) if one.script else ()))):
            runs.setdefault(file, []).append(one)
    found: dict[str, Script] = {}
    for file, users in runs.items():
        started = [invocation(one.hook.command, one.hook.args) for one in users]
        interpreter = next((one.interpreter for one in started if one and one.interpreter), "")
        if (script := _read(file, interpreter, [one.hook for one in users])) is not None:
            found[file] = script
    return found


def _read(file: str, interpreter: str, hooks: Sequence[HookDefinition]) -> Script | None:
    """None if the file is not a script or cannot be read."""
    try:
        content = read_project_file(file, "/", LARGEST)
        text = None if content is None else content.decode()
    except (NotReadError, UnicodeDecodeError):
        return None
    if text is None:
        return None
    language = language_of(file, text, interpreter)
    return None if language is None else Script(file, text, language, hooks)


def _of_scripts(scripts: Iterable[Script], variables: Sequence[str]) -> Iterator[Finding]:
    for script in scripts:
        own = (finding(hit.code, script.file, hit.line, hit.reason) for hit in script_hits(script, variables))
        for one in (*own, *line_ending_findings(script), *checked_by_programs(script)):
            if not script.ignores(one.code, one.line):
                yield one
