"""`wave hooks test`: run hooks for real, on one event or on case files."""

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.foundation import Foundation, lay_foundation
from wave_agent.agent.options import Options, locate_project
from wave_agent.cli.hooks.options import in_dialect, json_object, object_in_file, read_as, with_mode, with_settings
from wave_agent.cli.hooks.report import case_lines, difference_lines, no_hooks, rehearsal_lines, rehearsal_to_dict
from wave_agent.cli.hooks.servers import HookServers
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.errors import UntrustedHooksError
from wave_agent.hooks.runners.thinking import NoThinker, Thinker
from wave_agent.settings.sources import SourceChoice, gather_settings
from wave_agent.system.credentials import without_credentials
from wave_agent.text import strip_controls
from wave_agent.tools.registry import every_tool
from wave_agent.workshop.bench import bench_of
from wave_agent.workshop.cases import (
    SUFFIXES,
    WORDS,
    Case,
    CaseFileError,
    Difference,
    differences,
    read_cases,
    run_case,
)
from wave_agent.workshop.sample_events import Subject, SubjectError, check_tool, event_named, hooks_named, subject
from wave_agent.workshop.trial import Bench, Rehearsal


class TestOptions(Struct, frozen=True, kw_only=True):
    """The command-line options besides the event."""

    tool: str | None = None
    input: str | None = None
    response: str | None = None
    prompt: str | None = None
    payload: str | None = None
    hook: str | None = None
    answer: str | None = None
    expect: str | None = None

    @property
    def anything(self) -> bool:
        return any(getattr(self, field) is not None for field in self.__struct_fields__)


@click.command()
@click.argument("what", nargs=-1, required=True, metavar="EVENT | CASES...")
@click.option("--tool", metavar="NAME", help="The tool being called.")
@click.option("--input", metavar="JSON", help="The tool's input.")
@click.option("--response", metavar="JSON", help="The tool's response, for PostToolUse.")
@click.option("--prompt", metavar="TEXT", help="The user's prompt.")
@click.option("--payload", metavar="FILE", help="Read the hook's stdin fields from a JSON file; - is stdin.")
@click.option("--hook", metavar="NAME", help="Run only the hook with this name.")
@click.option("--answer", metavar="JSON", help='Use this as the answer to prompt hooks: {"ok": false, "reason": "…"}.')
@click.option("--ask", is_flag=True, help="Let prompt hooks ask their model. It costs tokens.")
@click.option("--expect", type=click.Choice(WORDS), help="Exit with status 1 on any other outcome.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, metavar="N", help="Run up to N cases in parallel.")
@click.option("--trust", is_flag=True, help="Trust the project's hooks for this run. Nothing is stored.")
@click.option("--no-project-hooks", is_flag=True, help="Skip the project's own hooks.")
@with_mode
@in_dialect
@cwd_option
@with_settings
@json_option
def test(
    *,
    what: Sequence[str],
    ask: bool,
    jobs: int,
    trust: bool,
    no_project_hooks: bool,
    permission_mode: str | None,
    dialect: str | None,
    cwd: str | None,
    settings: Sequence[str],
    as_json: bool,
    **asked: str | None,
) -> int:
    """Run hooks on an event and see what they do

    Runs the hooks as an agent would, in the project, with a separate transcript. No tool runs, and no model is called:
    hooks that ask one get the --answer, or that of their case, unless you --ask. A hook
    that asks an MCP server starts it, if a session would.
    Shows how each hook ended, what it printed and how that was read, followed by the combined outcome.

    \b
    wave hooks test PreToolUse --tool Bash --input '{"command": "rm -rf /"}' --expect block
    wave hooks test UserPromptSubmit --prompt "deploy it"
    wave hooks test cases.yaml
    wave hooks test PreToolUse --tool Bash --dialect claude

    Case files (YAML or JSON) are for CI: each case is an event and its expected outcome. A hook failure that is let
    through never meets an expectation, unless the case expects that failure.

    Exit status: 0 success, 1 an expectation was not met, a hook failed unexpectedly, or the project's hooks are not
    trusted, 2 usage.
    """
    flags = TestOptions(**asked)
    are_files = _are_files(what)
    if are_files and flags.anything:
        raise click.UsageError("Case files define their own events and expectations.")
    options = Options(
        workdir=cwd,
        overlays=settings,
        trust=trust,
        project_hooks=not no_project_hooks,
        permission_mode=permission_mode,
    )
    try:
        if not are_files:
            event_named(what[0])  # reports an unknown event before checking trust
        try:
            foundation = lay_foundation(options, os.environ)
        except UntrustedHooksError:
            if are_files:  # a mistake there is reported before checking trust, too
                _check_files(what, SourceChoice(overlays=settings, trust=True), cwd)
            raise
        for notice in foundation.notices:
            click.echo(strip_controls(f"note: {notice}"), err=True)
        with tempfile.TemporaryDirectory(prefix="wave-hooks-") as outputs:
            servers = HookServers(foundation)
            bench = bench_of(
                foundation,
                ask_server=servers.ask,
                open_thinker=lambda: _thinker(foundation, Path(outputs)) if ask else NoThinker(_NOT_ASKED),
            )
            bench = replace(bench, hooks=read_as(bench.hooks, dialect))
            if are_files:
                return servers.run(lambda: _test_files(what, bench, jobs, as_json=as_json))
            return servers.run(lambda: _test_event(what[0], flags, bench, as_json=as_json))
    except SubjectError as error:
        raise click.UsageError(f"{error}.") from None
    except CaseFileError as error:
        raise click.UsageError(str(error)) from None


def _are_files(what: Sequence[str]) -> bool:
    """Whether these are files of cases, or one event."""
    endings = ", ".join(SUFFIXES)
    for one in what:
        if not one.endswith(SUFFIXES) and (os.path.exists(one) or "/" in one):
            if os.path.isdir(one):
                raise click.UsageError(f"{one} is a directory; name the files of cases in it, which end in {endings}.")
            raise click.UsageError(f"{one} is not a file of cases; these end in {endings}.")
    files = [one for one in what if one.endswith(SUFFIXES)]
    if len(what) > 1 and len(files) < len(what):
        raise click.UsageError(f"Expected one event, or files ending in {endings}.")
    return bool(files)


_NOT_ASKED = 'no model is asked here; give an answer (--answer, or "answer" in a case), or use --ask'


def _thinker(foundation: Foundation, outputs: Path) -> Thinker:
    from wave_agent.agent.hook_questions import ReadingPlace  # lazy, as the next one: few hooks ask a model
    from wave_agent.agent.hook_thinking import thinker_for

    return thinker_for(foundation, ReadingPlace(outputs=outputs, environment=without_credentials(os.environ)))


# ------------------------------------------------------------------------------------------------------------ one event


async def _test_event(event: str, flags: TestOptions, bench: Bench, *, as_json: bool) -> int:
    tried = _subject(event, flags, bench)
    if flags.hook is not None and bench.hooks:
        hooks_named(flags.hook, tried.event, bench.hooks)
    hook = flags.hook if bench.hooks else None
    expect = {} if flags.expect is None else {"outcome": flags.expect}
    case = Case(name=event, place="the command line", subject=tried, hook=hook, answer=_answer(flags), expect=expect)
    found = await run_case(case, bench)
    differs = differences(expect, found) if expect else ()
    if as_json:
        click.echo(json.dumps(_to_dict(case, found, differs)))
    else:
        for line in (*rehearsal_lines(found, bench), *difference_lines(expect, differs)):
            click.echo(line)
    is_broken = not expect and any(tried.run.outcome == "failure" for tried in found.runs)
    return 1 if differs or is_broken else 0


def _answer(flags: TestOptions) -> Any:
    """JSON, or text as a model might have written it."""
    if flags.answer is None:
        return None
    try:
        return json.loads(flags.answer)
    except ValueError:
        return flags.answer


def _subject(event: str, flags: TestOptions, bench: Bench) -> Subject:
    given: dict[str, Any] = {
        key: value for key, value in (("tool", flags.tool), ("prompt", flags.prompt)) if value is not None
    }
    for key, text in (("input", flags.input), ("response", flags.response)):
        if text is not None:
            given[key] = json_object(text, f"--{key}")
    named = event_named(event)
    made = subject(named, given, None if flags.payload is None else object_in_file(flags.payload))
    if made.tool is not None:
        check_tool(made.tool, bench.tools, bench.hooks)
    return made


# ---------------------------------------------------------------------------------------------------------- case files


class _CaseResult(Struct, frozen=True):
    case: Case
    found: Rehearsal
    differs: tuple[Difference, ...]


def _check_files(files: Sequence[str], choice: SourceChoice, cwd: str | None) -> None:
    """Raises `CaseFileError`. Runs nothing."""
    place, home = locate_project(cwd, os.environ, choice)
    hooks = gather_settings(home, place, choice.in_environment(os.environ)).settings.hooks.hooks
    for file in files:
        read_cases(file, hooks, [tool.name for tool in every_tool()])


async def _test_files(files: Sequence[str], bench: Bench, jobs: int, *, as_json: bool) -> int:
    cases = [case for file in files for case in read_cases(file, bench.hooks, list(bench.tools))]
    results = await _run_all(cases, bench, jobs, shown=not as_json)
    failed = sum(1 for one in results if one.differs)
    if as_json:
        click.echo(json.dumps([_to_dict(one.case, one.found, one.differs) for one in results]))
    else:
        if not bench.hooks:
            click.echo(no_hooks(bench))
        click.echo(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


async def _run_all(cases: Sequence[Case], bench: Bench, jobs: int, *, shown: bool) -> list[_CaseResult]:
    """Each result is printed as soon as it is known, in file order."""
    places = asyncio.Semaphore(jobs)

    async def one(case: Case) -> _CaseResult:
        async with places:
            found = await run_case(case, bench)
            return _CaseResult(case, found, differences(case.expect, found))

    results: list[_CaseResult] = []
    async with asyncio.TaskGroup() as group:
        for task in [group.create_task(one(case)) for case in cases]:
            result = await task
            results.append(result)
            for line in case_lines(result.case, result.found, result.differs) if shown else ():
                click.echo(line)
    return results


def _to_dict(case: Case, found: Rehearsal, differs: Sequence[Difference]) -> Mapping[str, Any]:
    return {
        "name": case.name,
        "place": case.place,
        "passed": not differs,
        "differences": [
            {"what": one.what, "how": one.how, "expected": one.expected, "actual": one.actual} for one in differs
        ],
        **rehearsal_to_dict(found),
    }
