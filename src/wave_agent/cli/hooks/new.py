"""`wave hooks new`: create a working hook to adapt."""

import os
import re
import shutil
import sys

import click

from wave_agent.agent.options import find_places
from wave_agent.cli.hooks.recipes import recipe_named
from wave_agent.cli.options import cwd_option
from wave_agent.hooks.events import EVENTS, HookEvent
from wave_agent.hooks.matcher import MatcherError, parse_matcher
from wave_agent.lazy_regex import lazy_regex
from wave_agent.lint.repairs import diff
from wave_agent.recipes import LANGUAGES, Recipe
from wave_agent.system.ancestry import require_no_agent
from wave_agent.text import did_you_mean, strip_controls
from wave_agent.workshop.scaffold import NAME, NewFile, Wish, new_hook, write

_NEEDS_JQ = lazy_regex(r"^(?:if ! )?command -v jq", re.MULTILINE)


@click.command()
@click.argument("name")
@click.option("--event", metavar="EVENT", help="The event to run on, such as PreToolUse. A recipe sets its own.")
@click.option("--lang", "language", type=click.Choice(list(LANGUAGES)), help="The language of the script.")
@click.option("--recipe", metavar="RECIPE", help="Start from this recipe (wave hooks recipes).")
@click.option("--matcher", metavar="MATCHER", help="The tools to match, such as 'Write|Edit'.")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
@cwd_option
def new(
    name: str,
    event: str | None,
    language: str | None,
    recipe: str | None,
    matcher: str | None,
    *,
    yes: bool,
    dry_run: bool,
    cwd: str | None,
) -> int:
    """Create a hook: script, cases and settings

    Creates .wave/hooks/NAME.sh (or .py, .js), NAME.cases.json next to it, and an entry in .wave/settings.json. The
    changes are shown first. Existing files are never overwritten.

    Exit status: 0 written, 1 declined or not writable, 2 usage.

    \b
    wave hooks new no-todo --event PreToolUse --matcher 'Write|Edit' --lang python
    wave hooks new secrets --recipe protect-secrets
    """
    if not NAME.fullmatch(name):
        raise click.UsageError("NAME may contain letters, digits, - _ and ., and must start with a letter or digit.")
    project, _ = find_places(cwd, os.environ)
    wish = _wish(name, event, recipe_named(recipe) if recipe else None, language=language, matcher=matcher)
    files = new_hook(wish, project)
    for file in files:
        if file.before is None and os.path.lexists(os.path.join(project, file.name)):
            raise click.UsageError(f"{file.name} already exists and is not overwritten: choose another name.")
    _show(files)
    if needed := _missing(wish, files[0].after):
        click.echo(needed)
    if dry_run:
        return 0
    require_no_agent(os.environ, "wave hooks new")
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Not interactive: review the files above and rerun with --yes.")
        if not click.confirm("Write this?"):
            click.echo("Nothing has changed.")
            return 1
    write(files, project)
    # A project hook goes to the project's root, even when created from a subdirectory.
    click.echo(_next_steps([file.name if cwd else os.path.relpath(os.path.join(project, file.name)) for file in files]))
    return 0


def _wish(name: str, event: str | None, recipe: Recipe | None, *, language: str | None, matcher: str | None) -> Wish:
    """Raises a usage error for invalid combinations."""
    if event is None and recipe is None:
        raise click.UsageError("Either --event or --recipe is required.")
    if event and recipe and event != recipe.event:
        raise click.UsageError(f"The recipe {recipe.name} is for {recipe.event}, not for {event}.")
    wanted = recipe.event if recipe else event or ""
    known = [one.value for one in EVENTS]
    if wanted not in known:
        raise click.UsageError(
            f'There is no event "{wanted}"{did_you_mean(wanted, known)}; available: {", ".join(known)}.'
        )
    languages = _languages(recipe)
    if language is not None and language not in languages:
        raise click.UsageError(f"{recipe.name if recipe else name} is available in {', '.join(languages)}.")
    if matcher is not None:
        _check_matcher(matcher, HookEvent(wanted))
    return Wish(name=name, event=HookEvent(wanted), language=language or languages[0], matcher=matcher, recipe=recipe)


def _languages(recipe: Recipe | None) -> list[str]:
    return list(recipe.scripts) if recipe else list(LANGUAGES)


def _check_matcher(matcher: str, event: HookEvent) -> None:
    if EVENTS[event].target is None:
        raise click.UsageError(f"{event} has no value to compare a matcher with.")
    try:
        parse_matcher(matcher)
    except MatcherError as error:
        raise click.UsageError(f"--matcher: {error}") from None


def _missing(wish: Wish, script: str) -> str:
    """What to do if the script needs a program that is not here; empty if it does not."""
    if not _NEEDS_JQ.search(script) or shutil.which("jq") is not None:
        return ""
    until = "it blocks everything" if "|| block" in script else "it does nothing"
    others = [one for one in _languages(wish.recipe) if one != "bash"]
    instead = f", or use --lang {others[0]}" if others else ""
    return f"The script needs jq, which is not on PATH: {until} until jq is installed. Install it{instead}."


def _show(files: list[NewFile]) -> None:
    for file in files:
        for line in diff(file.before or "", file.after, file.name):
            click.echo(strip_controls(line))
        click.echo()


def _next_steps(files: list[str]) -> str:
    script, cases = files[0], files[1]
    return (
        f"Written. Next, edit {script} and run:\n"
        f"  wave hooks lint             find mistakes\n"
        f"  wave hooks trust            trust the project's hooks, so that they can run\n"
        f"  wave hooks test {cases}"
    )
