"""A hook that is being worked on: which file to edit, and whether it still works afterwards."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.foundation import Foundation
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.hooks.events import EVENTS
from wave_agent.hooks.execution import HookKind
from wave_agent.hooks.matcher import EVERYTHING, MatcherForm
from wave_agent.hooks.named_files import target_file
from wave_agent.hooks.runners.thinking import NoThinker
from wave_agent.lint.check import check
from wave_agent.lint.findings import Finding
from wave_agent.lint.invocations import invocation, resolve
from wave_agent.system.project import Project
from wave_agent.workshop.bench import bench_of
from wave_agent.workshop.cases import Case, CaseFileError, Difference, differences, read_cases, run_case
from wave_agent.workshop.sample_events import Subject, SubjectError, subject
from wave_agent.workshop.trial import Bench, Rehearsal

MANAGED = "It can only be read here, because managed settings define it; whoever manages this machine can change it"
IN_CODE = "It is a function of the program that runs this agent: there is no file to edit."
CASE_FILES = (".cases.json", ".cases.yaml", ".cases.yml")
"""How the file of a hook's cases ends, as `wave hooks new` writes it."""
_NOT_ASKED = "no model is asked in this test; wave hooks test EVENT --ask asks it"
_PEEK = 4096
_SAMPLES: Mapping[str, Mapping[str, Any]] = {
    "Bash": {"command": "echo hello"},
    "Write": {"file_path": "example.txt", "content": "hello\n"},
    "Edit": {"file_path": "example.txt", "old_string": "hello", "new_string": "bye"},
    "Read": {"file_path": "example.txt"},
    "Glob": {"pattern": "*"},
    "Grep": {"pattern": "hello"},
    "WebFetch": {"url": "https://example.com/", "prompt": "What is it?"},
    "Task": {"description": "look around", "prompt": "What is here?", "subagent_type": "explore"},
}
"""Harmless inputs, the likeliest tool first."""
_PATTERN_KEYS = {"Bash": "command", "Write": "file_path", "Edit": "file_path", "Read": "file_path"}


class EditTarget(Struct, frozen=True):
    """What to edit to change a hook."""

    file: str = ""
    line: int = 1
    is_script: bool = False
    """False: the settings that define the hook."""
    why_not: str = ""
    """Why it cannot be edited; empty if it can."""


def edit_target(hook: HookDefinition, project: str) -> EditTarget:
    """Its script if it runs exactly one, otherwise its entry in the settings. Looks at files."""
    if hook.layer is Layer.MANAGED:
        return EditTarget(why_not=f"{MANAGED}: {hook.source}.")
    if hook.function is not None or hook.layer is Layer.CODE:
        return EditTarget(why_not=IN_CODE)
    if (script := script_of(hook, project)) is not None:
        return EditTarget(script, is_script=True)
    if os.path.isfile(hook.source):
        return EditTarget(hook.source, hook.line or 1)
    return EditTarget(why_not=f"There is no file to edit: it is defined in {hook.source}.")


def script_of(hook: HookDefinition, project: str) -> str | None:
    """The script that the hook runs, if there is exactly one and it is text."""
    if hook.kind is HookKind.PYTHON:
        file: str | None = target_file(hook.command, project)
    elif hook.kind is HookKind.COMMAND and (found := invocation(hook.command, hook.args)) is not None:
        home, root = os.path.expanduser("~"), hook.plugin_root
        names = {"CLAUDE_PROJECT_DIR": project, "WAVE_PROJECT_DIR": project, "HOME": home, "CLAUDE_PLUGIN_ROOT": root}
        file = resolve(found.word, project, names)
    else:
        return None
    return file if file is not None and _is_text(file) else None


def _is_text(file: str) -> bool:
    if not os.path.isfile(file):
        return False
    try:
        with open(file, "rb") as opened:
            return b"\0" not in opened.read(_PEEK)
    except OSError:
        return False


def lint_of(file: str, hook: HookDefinition, project: Project, home: Path) -> tuple[Finding, ...]:
    """The findings in this file, and those in the settings at the hook's own line."""
    found = check(project.directory, home, levels=project.levels).findings
    return tuple(one for one in found if one.file == file or (one.file == hook.source and one.line == hook.line))


def same_hook(hook: HookDefinition, now: Sequence[HookDefinition]) -> HookDefinition | None:
    """The hook in settings that were read again: at the same place, or the only one there with its name."""
    here = [one for one in now if one.source == hook.source and one.event is hook.event]
    at_place = next((one for one in here if one.path == hook.path), None)
    named = [one for one in here if one.name == hook.name]
    if at_place is not None and (at_place.name == hook.name or len(named) != 1):
        return at_place
    return named[0] if len(named) == 1 else None


def is_same(hook: HookDefinition, now: HookDefinition) -> bool:
    """Whether it would do the same, wherever it stands in the file."""
    fixed: dict[str, Any] = {"position": 0, "group": 0, "line": None, "path": (), "matcher": EVERYTHING}
    return hook.matcher.text == now.matcher.text and replace(hook, **fixed) == replace(now, **fixed)


class CaseResult(Struct, frozen=True):
    case: Case
    differs: tuple[Difference, ...]


class Retest(Struct, frozen=True, kw_only=True):
    """What a hook did in a test."""

    sample: Rehearsal | None = None
    """On a sample event."""
    case_files: tuple[str, ...] = ()
    cases: tuple[CaseResult, ...] = ()
    problems: tuple[str, ...] = ()
    """Why something was not tested."""


async def retest(
    hook: HookDefinition,
    foundation: Foundation,
    why_refused: Callable[[HookDefinition], str | None] | None = None,
) -> Retest:
    """Run the hook on a sample event, and on its cases if it has some. `why_refused`: see `bench_of`."""
    bench = bench_of(foundation, open_thinker=lambda: NoThinker(_NOT_ASKED), why_refused=why_refused)
    bench = replace(bench, hooks=(replace(hook, enabled=True),))
    problems: list[str] = []
    sample = None
    try:
        made = sample_for(hook, list(bench.tools))
        sample = await run_case(Case(name="", place="", subject=made, hook=None, expect={}), bench)
    except SubjectError as error:
        problems.append(f"There is no sample event: {error}.")
    files = case_files(hook, foundation.project)
    results: list[CaseResult] = []
    for file in files:
        try:
            cases = read_cases(file, foundation.settings.hooks.hooks, list(bench.tools))
            results += [await _tried(case, bench) for case in cases if case.hook in (None, hook.name)]
        except (CaseFileError, SubjectError) as error:
            problems.append(str(error))
    return Retest(sample=sample, case_files=tuple(files), cases=tuple(results), problems=tuple(problems))


async def _tried(case: Case, bench: Bench) -> CaseResult:
    return CaseResult(case, differences(case.expect, await run_case(replace(case, hook=None), bench)))


def case_files(hook: HookDefinition, project: str) -> list[str]:
    """The files of its cases: beside its script, or in `.wave/hooks` with its name."""
    script = script_of(hook, project)
    stems = [os.path.join(project, ".wave", "hooks", hook.name)] if "/" not in hook.name else []
    if script is not None:
        stems.insert(0, os.path.splitext(script)[0])
    found = (f"{stem}{suffix}" for stem in dict.fromkeys(stems) for suffix in CASE_FILES)
    return [file for file in found if os.path.isfile(file)]


def sample_for(hook: HookDefinition, tools: Sequence[str]) -> Subject:
    """An ordinary event that the hook should hear. Raises `SubjectError`."""
    row = EVENTS[hook.event]
    names = [one.text for one in hook.matcher.alternatives if one.form is MatcherForm.NAME]
    if row.has_tool:
        tool = next((one for one in (*_SAMPLES, *tools, *names) if hook.may_apply_to(one)), "Bash")
        return subject(hook.event, {"tool": tool, "input": {**_SAMPLES.get(tool, {}), **_condition_met(hook, tool)}})
    payload = {row.target: names[0]} if row.target and names else {}
    given = {"prompt": "Hello."} if any(field.name == "prompt" for field in row.stdin) else {}
    return subject(hook.event, given, payload)


def _condition_met(hook: HookDefinition, tool: str) -> Mapping[str, Any]:
    """What the rule in its `if` names, as far as that is plain."""
    pattern = hook.condition.pattern if hook.condition else None
    key = _PATTERN_KEYS.get(tool)
    if pattern is None or key is None:
        return {}
    plain = pattern.removesuffix(":*").replace("**", "*").replace("*", "example")
    return {key: plain or "example"}
