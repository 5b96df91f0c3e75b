"""`wave hooks schema`: JSON Schemas for editors and for checking hooks."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from wave_agent.agent.options import find_places
from wave_agent.cli.options import cwd_option
from wave_agent.hooks.events import HookEvent
from wave_agent.lint.repairs import diff
from wave_agent.settings.schema_file import NAME, REFERENCE
from wave_agent.system.ancestry import require_no_agent
from wave_agent.text import strip_controls
from wave_agent.workshop.sample_events import SubjectError, event_named
from wave_agent.workshop.schema_install import EditedFile, plan_schema, write_changes
from wave_agent.workshop.schemas import input_schema, output_schema, settings_schema

OF_AN_EVENT: Mapping[str, Callable[[HookEvent], dict[str, Any]]] = {"input": input_schema, "output": output_schema}


@click.command()
@click.argument("what", type=click.Choice(["settings", *OF_AN_EVENT]), default="settings")
@click.argument("event", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print compact JSON on one line.")
@click.option("--install", is_flag=True, help="Write the schema next to the project's settings, for editors.")
@click.option("--user", is_flag=True, help="With --install: next to your own settings, in WAVE_HOME.")
@click.option("--dry-run", is_flag=True, help="With --install: only show what would change.")
@click.option("--yes", is_flag=True, help="With --install: skip the confirmation.")
@cwd_option
def schema(what: str, event: str | None, *, as_json: bool, install: bool, cwd: str | None, **given: bool) -> int:
    """Print or install the JSON Schema of settings or hook JSON

    Draft 2020-12. With --install, editors complete and check settings: the schema is written to settings.schema.json
    next to them, and they refer to it as "$schema". If the project has a .vscode directory, its settings name the
    schema too, for settings files that are created later. The changes are shown first.

    \b
    wave hooks schema --install              for this project's settings
    wave hooks schema --install --user       for your own
    wave hooks schema > schema.json          print it
    wave hooks schema input PreToolUse       what a hook reads from stdin
    wave hooks schema output PreToolUse      what it may print
    """
    if install:
        if what != "settings" or event is not None or as_json:
            raise click.UsageError("--install is for the schema of settings, and prints no schema.")
        return _install(cwd, **given)
    if cwd is not None or any(given.values()):
        raise click.UsageError("--user, --dry-run, --yes and --cwd need --install.")
    click.echo(json.dumps(_schema(what, event), indent=None if as_json else 2))
    return 0


def _schema(what: str, event: str | None) -> dict[str, Any]:
    make = OF_AN_EVENT.get(what)
    if make is None:
        if event is not None:
            raise click.UsageError("The settings are the same for all events.")
        return settings_schema()
    if event is None:
        raise click.UsageError(f"Name the event, such as: wave hooks schema {what} PreToolUse")
    try:
        return make(event_named(event))
    except SubjectError as error:
        raise click.UsageError(f"{error}.") from None


def _install(cwd: str | None, *, user: bool, dry_run: bool, yes: bool) -> int:
    project, home = find_places(cwd, os.environ)
    plan = plan_schema(home, None) if user else plan_schema(Path(project, ".wave"), Path(project))
    for change in plan.changes:
        _show(change, home if user else Path(project))
    if not plan.changes:
        click.echo("The schema is installed already.")
    elif not dry_run:
        require_no_agent(os.environ, "wave hooks schema --install")
        if not yes and not _confirmed():
            click.echo("Nothing has changed.")
            return 1
        write_changes(plan.changes)
        click.echo("Written.")
    _tell_other_editors(plan.by_hand, in_project=not user)
    return 0


def _show(change: EditedFile, root: Path) -> None:
    name = os.path.relpath(change.file, root)
    if change.file.name == NAME:  # a hundred kilobytes that nobody wrote
        click.echo(f"{'update' if change.before else 'create'} {name} ({len(change.after) // 1000} kB)")
        return
    for line in diff(change.before, change.after, name):
        click.echo(strip_controls(line))


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("Not interactive: review the changes above and rerun with --yes.")
    return click.confirm("Write this?")


def _tell_other_editors(by_hand: str, *, in_project: bool) -> None:
    if by_hand:
        click.echo(f"\n.vscode/settings.json has comments or errors. Add this to it by hand:\n{by_hand}")
    whose = "the project's" if in_project else "your"
    click.echo(
        f'\nEditors with a JSON language server follow "$schema": "{REFERENCE}" in {whose} settings:\n'
        f"VS Code, JetBrains, Zed, Neovim, Helix. In any other, associate {NAME} with the settings next to it."
    )
