"""`wave hooks import`: copy hooks written for other agents into the project's settings."""

import difflib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from wave_agent.agent.options import find_places
from wave_agent.cli.options import cwd_option
from wave_agent.errors import SettingsError
from wave_agent.settings.hook_import import ImportPlan, find_importable, plan_import
from wave_agent.settings.places import LARGEST_FILE
from wave_agent.settings.trust import TrustStore
from wave_agent.system.ancestry import require_no_agent
from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.text import strip_controls
from wave_agent.tools.files import FileRefusedError, replace

LOCAL = "settings.local.json"


@click.command("import")
@click.option("--from", "origin", metavar="PATH", help="A settings file, project or plugin. Default: this project.")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@cwd_option
def import_hooks(origin: str | None, yes: bool, dry_run: bool, cwd: str | None) -> int:
    """Copy hooks written for other agents

    Copies the hooks and the deny and ask rules from .claude/settings.json and .codex/hooks.json to .wave/settings.json.
    Existing entries are not changed, and nothing is added twice. The hooks' scripts stay where they are.
    A file named settings.local.json is copied to .wave/settings.local.json.

    \b
    wave hooks import --dry-run                              show what would change
    wave hooks import                                        review, then confirm
    wave hooks import --from .claude/settings.local.json     your personal hooks, not shared with others
    """
    if yes and dry_run:
        raise click.UsageError("--yes and --dry-run are mutually exclusive.")
    project, home = find_places(cwd, os.environ)
    place = Path(project if origin is None else os.path.abspath(origin))
    if not place.exists():
        raise click.UsageError(f"{place} does not exist.")
    files = find_importable(place, any_kind=origin is not None)
    if not files:
        click.echo(f"{place} has no hooks for other agents.")
        return 1
    target = Path(project) / ".wave" / (LOCAL if files[0].name == LOCAL else "settings.json")
    before = _read(target)
    plan = plan_import(files, before, str(target))
    _show(plan, before, os.path.relpath(target, project))
    if origin is None and (Path(project) / ".claude" / LOCAL).is_file():
        click.echo(f"not read  .claude/{LOCAL}: it is personal; use --from .claude/{LOCAL} to copy it")
    if not plan.added:
        click.echo("There is nothing to copy.")
        return 0
    if dry_run:
        return 0
    return _decide(plan, target, home, project, yes=yes)


def _decide(plan: ImportPlan, target: Path, home: Path, project: str, *, yes: bool) -> int:
    require_no_agent(os.environ, "wave hooks import")
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Not interactive: review the change above and rerun with --yes.")
        if not click.confirm(f"Write this to {target}?"):
            click.echo("Nothing has changed.")
            return 1
    try:
        replace(str(target), plan.text.encode())
    except FileRefusedError as refusal:
        raise SettingsError(str(refusal)) from None
    TrustStore(home).remember_notice(project)
    click.echo(f"Wrote {target}. The hooks run once you trust them: wave hooks trust")
    click.echo('With {"compat": {"claude": true}} they run twice, once from each file.')
    return 0


def _read(target: Path) -> str:
    try:
        return (read_project_file(str(target), "/", LARGEST_FILE) or b"").decode().removeprefix("\ufeff")
    except NotReadError as error:
        raise SettingsError(f"{target} {error}.") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{target} cannot be read: {error}") from None


def _show(plan: ImportPlan, before: str, name: str) -> None:
    for mark, lines in (("add", plan.added), ("changed", plan.notes), ("skipped", plan.left_out)):
        _tell(f"{mark:<9} {line}" for line in lines)
    old, new = before.splitlines(keepends=True), plan.text.splitlines(keepends=True)
    if plan.added:
        _tell(line.rstrip("\r\n") for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"))


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(strip_controls(line))
