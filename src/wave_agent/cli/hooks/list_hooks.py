"""`wave hooks list`: every hook, where it is defined and how it is read."""

import json
import os
import shlex
from collections.abc import Iterator, Sequence

import click
from msgspec.structs import replace

from wave_agent.agent.options import locate_project
from wave_agent.cli.hooks.options import choice_of, with_settings
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.cli.tables import table
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.dialects import Dialect
from wave_agent.hooks.execution import HookKind
from wave_agent.text import one_line, strip_controls
from wave_agent.workshop.inventory import Inventory, hook_to_dict, place_of, survey


@click.command("list")
@click.option(
    "--dialect",
    type=click.Choice([dialect.value for dialect in Dialect]),
    help="Only hooks written for this agent.",
)
@cwd_option
@with_settings
@json_option
def list_hooks(dialect: str | None, cwd: str | None, settings: Sequence[str], as_json: bool) -> int:
    """List every hook, where it is defined and how it is read

    Lists all layers in the order in which the hooks would run: by event, rewriting hooks first. Nothing is run, so this
    is safe in a project you do not trust. Exit status 1 if a settings entry is invalid.
    """
    choice = choice_of(settings)
    project, home = locate_project(cwd, os.environ, choice)
    found = survey(home, project, choice)
    found = replace(found, hooks=tuple(hook for hook in found.hooks if dialect in (None, hook.dialect.value)))
    if as_json:
        click.echo(
            json.dumps({
                "project": project.directory,
                "hooks": [hook_to_dict(hook, found) for hook in found.hooks],
                "issues": [str(issue) for issue in (*found.issues, *found.agent_problems)],
                "managed_hooks_only": found.counted.managed_hooks_only,
            })
        )  # fmt: skip
    else:
        for line in _lines(found):
            click.echo(line)
    return 1 if found.broken else 0


def _lines(found: Inventory) -> Iterator[str]:
    if not found.hooks:
        yield strip_controls(f"There are no hooks in {found.project}.")
    else:
        yield from _table(found)
    if found.counted.managed_hooks_only:
        yield "Only managed hooks are shown: managed settings disable all others."
    for issue in found.other_issues():
        yield f"{'BROKEN' if issue.broken else 'note'}: {issue}"
    for problem in found.agent_problems:
        yield one_line(f"{'BROKEN' if problem.left_out else 'note'}: {problem}")


def _table(found: Inventory) -> Iterator[str]:
    head = ("event", "name", "matcher", "from")
    rows = [(hook.event.value, hook.name, _matcher(hook), place_of(hook, found.project)) for hook in found.hooks]
    heading, *lines = table([head, *rows])
    yield heading
    for hook, line in zip(found.hooks, lines, strict=True):
        yield line
        yield f"    {one_line(command_of(hook))}"
        yield f"    {', '.join(_facts(hook, found))}"
        for issue in found.problems(hook):
            yield f"    {'BROKEN' if issue.broken else 'note'}: {issue}"


def _matcher(hook: HookDefinition) -> str:
    return f"{hook.matcher.explain()}{f', if {hook.condition.text}' if hook.condition else ''}"


def command_of(hook: HookDefinition) -> str:
    return hook.shown_command if hook.args is None else shlex.join([hook.command, *hook.args])


def _facts(hook: HookDefinition, found: Inventory) -> Iterator[str]:
    why = found.distrust.get(hook.position)
    if not hook.enabled:
        yield "disabled"
    yield one_line("trusted" if why is None else f"NOT TRUSTED ({why})")
    if hook.agent:
        yield f"only in the subagent {hook.agent}"
    if hook.kind is not HookKind.COMMAND:
        yield f"type {hook.kind}"
    if hook.model:
        yield f"model {hook.model}"
    yield f"mode {hook.mode}" + ("" if hook.rollout is None else f", in {hook.rollout:.4g} of all sessions")
    yield f"onFailure {hook.on_failure}"
    yield f"timeout {hook.timeout:g} s"
    if hook.dialect is not Dialect.WAVE:
        yield f"dialect {hook.dialect}"
    if hook.phase is not None:
        yield f"phase {hook.phase}"
    if hook.sequential:
        yield "sequential"
    if hook.is_async:
        yield "asyncRewake" if hook.rewakes else "async"
