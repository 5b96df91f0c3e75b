"""`wave guard doctor`: runs the installed lines and checks the answers."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from time import monotonic

import click

from wave_agent.agent.foundation import lay_foundation
from wave_agent.agent.options import Options, find_places
from wave_agent.cli.guard.options import any_host_argument
from wave_agent.cli.options import cwd_option
from wave_agent.errors import UntrustedHooksError, WaveError
from wave_agent.guard.hosts import HOSTS
from wave_agent.guard.lines import commit_of, programs_of
from wave_agent.guard.review import HostReview, InstalledGuard, review
from wave_agent.text import one_line, strip_controls

_OK, _BAD = "ok", "PROBLEM"
_PATIENCE = 120


@click.command()
@any_host_argument
@cwd_option
def doctor(host: str | None, cwd: str | None) -> int:
    """Check that the installed guard answers and denies

    Runs each installed line with an unreadable event, which must be denied, and with a harmless command,
    which must get an answer. Also checks that the project's settings can be read and its hooks are trusted.
    """
    project, _ = find_places(cwd, os.environ)
    found = [review(name, project, os.environ) for name in ([host] if host else HOSTS)]
    problems = 0
    for good, text in _checks([one for one in found if host or one.guards], project):
        first, *more = text.splitlines()
        click.echo(one_line(f"{_OK if good else _BAD:<8} {first}"))
        for line in more:
            click.echo(strip_controls(f"{'':<8} {line}"))
        problems += not good
    return int(problems > 0)


def _checks(found: list[HostReview], project: str) -> Iterator[tuple[bool, str]]:
    for commit in dict.fromkeys(commit_of(guard.line) for one in found for guard in one.guards) or [None]:
        trusted = f"as they are at {commit}" if commit else "trusted"
        try:
            lay_foundation(Options(workdir=project, interactive=False, trust_ref=commit), dict(os.environ))
            yield True, f"the settings of {project} can be read, and its hooks are {trusted}"
        except WaveError as error:
            why = error.offering() if isinstance(error, UntrustedHooksError) else error
            yield False, f"every call is denied in {project}: {why}"
    if not found:
        yield False, "the guard is not installed anywhere; run wave guard install HOST"
    for one in found:
        if not one.guards:
            yield False, f"{one.host}: not installed; run wave guard install {one.host}"
        for override in one.overrides:
            yield False, f"{one.host}: {override}"
        for problem in one.problems:
            yield False, f"{one.host}: {problem}"
        for guard in one.guards:
            yield from _tried(one, guard, project)


def _tried(found: HostReview, guard: InstalledGuard, project: str) -> Iterator[tuple[bool, str]]:
    where = f"{found.host}, {guard.file}"
    for needed in programs_of(guard.line):
        if os.path.isabs(needed) and not os.path.exists(needed):
            yield False, f"{where}: {needed} does not exist, so every call is denied"
            return
        if not os.path.isabs(needed) and shutil.which(needed) is None:
            yield False, f"{where}: {needed} is not on PATH, so every call is denied"
            return
    with tempfile.TemporaryDirectory(prefix="wave-guard-") as elsewhere:
        scratch = project if commit_of(guard.line) else elsewhere  # a commit is one of the project's
        unread, _ = _run(guard.line, "this is not JSON", scratch)
        yield _denies(unread), f"{where}: an event that cannot be read is denied"
        tool = next(iter(found.row.event_tools.values()), None) or next(iter(found.row.tools))
        keys = found.row.keys
        call = {"command": "true"} if tool not in ("read_file",) else {"file_path": os.path.join(scratch, "x")}
        event = {
            keys.get("tool_name", ("tool_name",))[0]: tool,
            keys.get("tool_input", ("tool_input",))[0]: call,
            "cwd": scratch,
            **call,
        }
        answered, took = _run(guard.line, json.dumps(event), scratch)
        said = "denied" if _denies(answered) else "passed"
        command = "a harmless command" if scratch == project else "a harmless command outside the project"
        yield answered.returncode in (0, 2), f"{where}: {command} is {said} in {took * 1000:.0f} ms"


def _run(line: str, stdin: str, directory: str) -> tuple[subprocess.CompletedProcess[str], float]:
    began = monotonic()
    done = subprocess.run(
        ["sh", "-c", line], input=stdin, cwd=directory, capture_output=True, text=True, timeout=_PATIENCE, check=False
    )
    return done, monotonic() - began


def _denies(done: subprocess.CompletedProcess[str]) -> bool:
    return (done.returncode == 2 and bool(done.stderr.strip())) or (done.returncode == 0 and '"deny"' in done.stdout)
