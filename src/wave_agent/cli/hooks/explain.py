"""`wave hooks explain`: which hooks an event would run, in which order, and why others would not run."""

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import click
from msgspec.structs import replace

from wave_agent.agent.foundation import mode_for, real_directories
from wave_agent.agent.options import locate_project
from wave_agent.cli.hooks.options import choice_of, in_dialect, json_object, read_as, with_mode, with_settings
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.effects.shown import call_summary, to_json
from wave_agent.effects.values import UNKNOWN_EFFECTS, Effects
from wave_agent.hooks.compatibility import differences
from wave_agent.hooks.definitions import HookDefinition, Mode
from wave_agent.hooks.dialects import DIALECTS, Dialect
from wave_agent.hooks.events import EVENTS, Flow
from wave_agent.hooks.plan import EventPlan, plan
from wave_agent.permissions.decision import Permission
from wave_agent.permissions.protected_paths import protected_paths
from wave_agent.rules.rule import Places
from wave_agent.text import one_line, strip_controls
from wave_agent.tools.base import Tool
from wave_agent.tools.registry import every_tool
from wave_agent.workshop.inventory import Inventory, hook_to_dict, place_of, survey
from wave_agent.workshop.sample_events import Subject, SubjectError, check_tool, event_named, subject
from wave_agent.workshop.trial import ProjectJudge, normalised, nothing_said


@click.command()
@click.argument("event")
@click.argument("tool", required=False)
@click.option("--input", "tool_input", metavar="JSON", help="The tool's input.")
@with_mode
@in_dialect
@cwd_option
@with_settings
@json_option
def explain(
    *,
    event: str,
    tool: str | None,
    tool_input: str | None,
    permission_mode: str | None,
    dialect: str | None,
    cwd: str | None,
    settings: Sequence[str],
    as_json: bool,
) -> int:
    """Show which hooks an event would run, and why

    Also shows why the others would not run, and what the permission rules and the mode decide about the call. Nothing
    is run, so this is safe in a project you do not trust. On events without a tool, TOOL is the value that matchers are
    compared with.

    \b
    wave hooks explain PreToolUse Bash --input '{"command": "git push"}'
    wave hooks explain SessionStart resume
    wave hooks explain Stop --dialect claude
    """
    choice = choice_of(settings)
    project, home = locate_project(cwd, os.environ, choice)
    found = survey(home, project, choice)
    found = replace(found, hooks=read_as(found.hooks, dialect))
    tools = {one.name: one for one in every_tool()}
    asked = _subject(event, tool, tool_input, found, tools)
    mode, _ = mode_for(permission_mode, found.counted)
    places = Places(project.directory, os.path.expanduser("~"), project.start)
    judge = ProjectJudge(
        places=places,
        rules=found.counted.rules,
        mode=mode,
        directories=real_directories(project.directory, (".", *found.counted.additional_directories)),
        protected=protected_paths(project.directory, home, found.hooks, start=project.start),
        environment=os.environ,
    )
    effects = _effects(asked, judge, tools, stated=tool_input is not None)
    hooks = sorted(found.hooks, key=lambda hook: hook.position)
    planned = plan(hooks, asked.event, asked.facts, places, None if effects is None else lambda: effects)
    dialects = sorted({Dialect(dialect)} if dialect else {hook.dialect for hook in planned.hooks})
    permission = _permission(asked, judge, tools, stated=tool_input is not None)
    if as_json:
        differs = {one.value: list(differences(one, EVENTS[asked.event])) for one in dialects}
        shown = None if effects is None else to_json(effects)
        answer = {**_to_dict(asked, planned, permission, found), "effects": shown, "dialects": differs}
        click.echo(json.dumps(answer))
        return 0
    does = ""
    if effects is not None and asked.row.shows_effects:
        tool = str(asked.facts.get("tool_name", ""))
        does = f"It {call_summary(tool, effects, project.directory, os.path.lexists)}."
    shown = (*_lines(asked, planned, found, does), *_permission_lines(permission), *_dialect_lines(dialects, asked))
    for line in shown:
        click.echo(line)
    return 0


def _subject(event: str, tool: str | None, tool_input: str | None, found: Inventory, tools: dict[str, Tool]) -> Subject:
    try:
        named = event_named(event)
        row = EVENTS[named]
        given: dict[str, Any] = {} if tool_input is None else {"input": json_object(tool_input, "--input")}
        if tool is not None and row.target is None:
            raise SubjectError(f"{named} has no value to compare a matcher with")
        if tool is not None and row.has_tool:
            check_tool(tool, tools, found.hooks)
        made = subject(named, given, {row.target: tool} if tool is not None and row.target else None)
    except SubjectError as error:
        raise click.UsageError(f"{error}.") from None
    return Subject(made.event, normalised(made, tools.get(made.tool or ""), found.start))


def _effects(asked: Subject, judge: ProjectJudge, tools: dict[str, Tool], *, stated: bool) -> Effects | None:
    """None if the event has no call, or if its input is not stated."""
    if asked.tool is None or not stated:
        return None
    tool = tools.get(asked.tool)
    return UNKNOWN_EFFECTS if tool is None else judge.effects(tool)(asked.facts["tool_input"])


def _permission(asked: Subject, judge: ProjectJudge, tools: dict[str, Tool], *, stated: bool) -> Permission | None:
    """Without an input, the decision for any call of the tool: a missing input must not be treated as invalid."""
    silent = nothing_said(asked)
    if silent.flow is not Flow.JUDGE:
        return None
    tool = tools.get(asked.tool or "")
    return judge.judge(tool, asked.tool or "", asked.facts["tool_input"], silent, checked=stated)


# --------------------------------------------------------------------------------------------------------------- output


def _lines(asked: Subject, planned: EventPlan, found: Inventory, does: str) -> Iterator[str]:
    shown = f" {json.dumps(asked.facts['tool_input'], ensure_ascii=False)}" if asked.tool else ""
    yield one_line(f"{asked.event}{f' {asked.tool}' if asked.tool else ''}{shown}")
    yield from filter(None, [does])
    if not planned.hooks:
        yield f"No hook runs{'' if found.hooks else ': there are none'}."
    steps = [step for step in _steps(planned) if step[1]]
    for number, (title, strands) in enumerate(steps, 1):
        yield f"{number}. {title}"
        for strand in strands:
            if len(strand) > 1:
                yield "   one after another, each on the input as changed by the previous ones:"
            for hook in strand:
                yield f"   {'   ' if len(strand) > 1 else ''}{_named(hook, found)}"
    if planned.second_look:
        again = "every guard that saw the old input runs again on the new one"
        yield f"{len(steps) + 1}. if one of these rewrites the input: {again}"
    if planned.left_out:
        yield "Not run:"
    for one in planned.left_out:
        yield f"   {_named(one.hook, found)}: {one_line(one.why)}"


def _steps(planned: EventPlan) -> tuple[tuple[str, Sequence[Sequence[HookDefinition]]], ...]:
    return (
        ("rewrite phase, one after another", [[hook] for hook in planned.first]),
        ("in parallel", planned.strands),
        ("in the background: decisions are ignored", [[hook] for hook in planned.background]),
    )


def _named(hook: HookDefinition, found: Inventory) -> str:
    why = found.distrust.get(hook.position)
    facts = [
        place_of(hook, found.project),
        *([f"only in the subagent {hook.agent}"] if hook.agent else []),
        *([] if hook.dialect is Dialect.WAVE else [f"dialect {hook.dialect}"]),
        *(["shadow: its decision is ignored"] if hook.mode is Mode.SHADOW else []),
        *([f"enforced in {hook.rollout:.4g} of all sessions"] if hook.rollout is not None else []),
        *([f"NOT TRUSTED: {why}"] if why else []),
    ]
    return one_line(f"{hook.name} ({', '.join(facts)})")


def _permission_lines(permission: Permission | None) -> Iterator[str]:
    if permission is not None:
        yield strip_controls(f"Permission, if no hook decides: {permission.answer} ({permission.by})")
        for text in filter(None, (permission.for_model, permission.for_user)):
            yield f"   {one_line(text)}"


def _dialect_lines(dialects: Sequence[Dialect], asked: Subject) -> Iterator[str]:
    """Differences from the documented hook behaviour."""
    for dialect in dialects:
        found = differences(dialect, EVENTS[asked.event])
        if found:
            yield f"Hooks written for {DIALECTS[dialect].agent} ({dialect}):"
        yield from (f"   {one}" for one in found)


def _to_dict(asked: Subject, planned: EventPlan, permission: Permission | None, found: Inventory) -> dict[str, Any]:
    def shown(hooks: Sequence[HookDefinition]) -> list[dict[str, Any]]:
        return [hook_to_dict(hook, found) for hook in hooks]

    return {
        "event": asked.event.value,
        "facts": asked.facts,
        "rewrite": shown(planned.first),
        "parallel": [shown(strand) for strand in planned.strands],
        "background": shown(planned.background),
        "second_look": planned.second_look,
        "not_run": [{"hook": hook_to_dict(one.hook, found), "why": one.why} for one in planned.left_out],
        "permission": None
        if permission is None
        else {
            "answer": permission.answer.value,
            "by": permission.by,
            "for_model": permission.for_model,
            "for_user": permission.for_user,
        },
    }
