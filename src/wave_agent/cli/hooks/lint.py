"""`wave hooks lint`: find mistakes in hooks before they matter."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from wave_agent.agent.options import locate_project
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.lint.check import LintReport, check
from wave_agent.lint.codes import Level
from wave_agent.lint.findings import Finding, finding
from wave_agent.lint.places import unreadable
from wave_agent.lint.repairs import repair
from wave_agent.system.project import Project
from wave_agent.text import strip_controls
from wave_agent.workshop.inventory import untrusted


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--fix", is_flag=True, help="Apply safe fixes and show the changes.")
@cwd_option
@json_option
def lint(paths: Sequence[str], fix: bool, cwd: str | None, as_json: bool) -> int:
    """Find mistakes in hooks and their scripts

    Checks the project's settings (.wave, .claude, .codex, a plugin's hooks/hooks.json), your own settings, and the
    scripts they run; with PATH, only these settings files, scripts or projects. Each finding has a code. The comment
    "# wave: ignore W123" in a script disables that code for its line or, on a line by itself, for the file. Uses
    shellcheck if it is installed.

    \b
    wave hooks lint                      check this project
    wave hooks lint --fix                also apply safe fixes
    wave hooks lint hooks/hooks.json     check a plugin's hooks

    Exit status: 0 no findings or only advice, 1 findings, 2 usage.
    """
    place, home = locate_project(cwd, os.environ)
    project = place.directory
    if missing := unreadable(paths):
        raise click.UsageError(f"Not found: {', '.join(missing)}.")
    report = check(project, home, paths, levels=place.levels)
    if not report.files and (files := [path for path in paths if os.path.isfile(path)]):
        raise click.UsageError(f"{', '.join(files)}: not a settings file, script or project.")
    done: list[str] = []
    if fix:
        done = repair(report.findings)
        report = check(project, home, paths, levels=place.levels) if done else report
    if not paths:
        report = replace(report, findings=(*report.findings, *_not_trusted(home, place)))
    if as_json:
        shown = {"files": report.files, "findings": [one.to_dict() for one in report.findings], "fixed": done}
        click.echo(json.dumps(shown))
    else:
        for line in _lines(report, done, project):
            click.echo(strip_controls(line))
    return 1 if any(one.level is not Level.ADVICE for one in report.findings) else 0


def _not_trusted(home: Path, project: Project) -> Iterator[Finding]:
    for hook, why in untrusted(home, project):
        yield finding("W117", hook.source, hook.line, f"{hook.name} on {hook.event}: {why}")


def _lines(report: LintReport, done: Sequence[str], project: str) -> Iterator[str]:
    yield from done
    if done:
        yield ""
    if not report.files:
        yield f"{project} and your own settings have no hooks."
        return
    for one in report.findings:
        yield from _finding(one, project)
    files = f"{len(report.files)} file{'s' if len(report.files) != 1 else ''}"
    counts = [(level, sum(one.level is level for one in report.findings)) for level in Level]
    found = ", ".join(f"{count} {_plural(level, count)}" for level, count in counts if count)
    fixable = sum(one.repair is not None for one in report.findings)
    hint = f"; {fixable} fixable with --fix" if fixable else ""
    yield f"{files} checked: {found or 'no findings'}{hint}."


def _plural(level: Level, count: int) -> str:
    return level.value if count == 1 or level is Level.ADVICE else f"{level.value}s"


def _finding(one: Finding, project: str) -> Iterator[str]:
    name = os.path.relpath(one.file, project) if one.file.startswith(f"{project}/") else one.file
    yield f"{name}:{one.line}: {one.code} {one.level}: {one.reason}"
    yield f"    {one.fix}"
