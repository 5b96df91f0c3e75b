"""`wave guard install` and `wave guard uninstall`: the guard in the settings of a host."""

import difflib
import os
import sys
from pathlib import Path

import click

from wave_agent.agent.options import find_places
from wave_agent.cli.guard.options import host_argument, program_for
from wave_agent.cli.options import cwd_option
from wave_agent.errors import SettingsError
from wave_agent.guard.hosts import HOSTS
from wave_agent.guard.lines import flags_for
from wave_agent.guard.places import project_file, user_file
from wave_agent.guard.review import changed_text, read_settings, review
from wave_agent.system.ancestry import require_no_agent
from wave_agent.text import strip_controls
from wave_agent.tools.files import FileRefusedError, replace

scope_option = click.option(
    "--user/--project", "for_user", default=True, help="Your settings for all projects (default), or this project's."
)
yes_option = click.option("--yes", is_flag=True, help="Skip the confirmation.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only show what would change.")


@click.command()
@host_argument
@scope_option
@click.option("--pass-allow", is_flag=True, help="Also pass on what your hooks and rules allow.")
@click.option("--trust-ref", metavar="REF", help="For CI: trust only hooks as they are at this git ref now.")
@dry_run_option
@yes_option
@cwd_option
def install(
    *,
    host: str,
    for_user: bool,
    pass_allow: bool,
    trust_ref: str | None,
    dry_run: bool,
    yes: bool,
    cwd: str | None,
) -> int:
    """Install the guard in another agent

    Adds wave guard run to the hooks in the settings of HOST, and shows the change first. Everything else in the file
    stays as it is. Running it again updates what an older version installed.

    From then on HOST asks before each tool call, and the hooks and rules in .wave/settings.json and
    ~/.wave/settings.json decide. If wave is missing or fails, the call is denied.

    \b
    wave guard install claude --dry-run     show what would change
    wave guard install claude               in your own settings, for all projects
    wave guard install codex --project      in this project's settings, for everyone who works on it
    wave guard install claude --project --trust-ref origin/main     for one run in CI
    """
    file = _file(host, for_user=for_user, cwd=cwd)
    before = read_settings(file)
    commit = "" if trust_ref is None else _commit(trust_ref, cwd)
    # Lines with a commit are for one run on this machine, so they need not look for wave on PATH.
    program = program_for(for_user=for_user or bool(commit))
    after = changed_text(host, file, before, program, flags_for(pass_allow=pass_allow, commit=commit))
    if after == before:
        click.echo(f"The guard is already installed in {file}.")
        return 0
    status = _change(file, before, after, "wave guard install", yes=yes, dry_run=dry_run)
    if status == 0 and not dry_run:
        row = HOSTS[host]
        click.echo(f"{row.title} now asks the guard. Check it with: wave guard doctor {host}")
        if row.experimental:
            click.echo(f"The guard for {row.title} is experimental: it was written from documentation.")
    return status


@click.command()
@host_argument
@scope_option
@dry_run_option
@yes_option
@cwd_option
def uninstall(*, host: str, for_user: bool, dry_run: bool, yes: bool, cwd: str | None) -> int:
    """Remove the guard from another agent

    Removes what wave guard install added, and nothing else.
    """
    file = _file(host, for_user=for_user, cwd=cwd)
    before = read_settings(file)
    after = changed_text(host, file, before, None)
    if after == before:
        click.echo(f"The guard is not installed in {file}.")
        for guard in review(host, find_places(cwd, os.environ)[0], os.environ).guards:
            click.echo(f"It is installed in {guard.file}: wave guard uninstall {host} --{guard.scope}")
        return 1
    return _change(file, before, after, "wave guard uninstall", yes=yes, dry_run=dry_run)


def _file(host: str, *, for_user: bool, cwd: str | None) -> Path:
    if for_user:
        return user_file(host, os.environ)
    project, _ = find_places(cwd, os.environ)
    file = project_file(host, project)
    if file is None:
        raise click.UsageError(f"{HOSTS[host].title} has no hooks for a project: use --user.")
    return file


def _commit(ref: str, cwd: str | None) -> str:
    from wave_agent.settings.git_refs import resolve_ref  # lazy: runs git

    project, _ = find_places(cwd, os.environ)
    return resolve_ref(ref, project)


def _change(file: Path, before: str, after: str, what: str, *, yes: bool, dry_run: bool) -> int:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for line in difflib.unified_diff(old, new, str(file), str(file)):
        click.echo(strip_controls(line.rstrip("\r\n")))
    if dry_run:
        return 0
    require_no_agent(os.environ, what)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Not interactive: review the change above and rerun with --yes.")
        if not click.confirm(f"Write this to {file}?"):
            click.echo("Nothing has changed.")
            return 1
    try:
        if after:
            replace(str(file), after.encode())
            click.echo(f"Wrote {file}.")
        else:
            file.unlink()
            click.echo(f"Removed {file}, which held nothing else.")
    except FileRefusedError as refusal:
        raise SettingsError(str(refusal)) from None
    return 0
