"""`wave sessions`: list, show, verify, export, upload and delete recorded sessions."""

import json
import os
import re
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from wave_agent.agent.options import find_places, locate_project
from wave_agent.agent.spending import shown
from wave_agent.cli.options import cwd_option, json_option, secrets_option
from wave_agent.cli.progress import Progress
from wave_agent.sessions.hash_chain import ChainFault, ChainReport, check
from wave_agent.sessions.index import (
    as_markdown,
    delete_session,
    find_session,
    latest_session,
    list_sessions,
    session_files,
)
from wave_agent.sessions.masking import mask, masked
from wave_agent.sessions.transcript import Used, load_session, read_lines, transcripts
from wave_agent.settings.sources import SourceChoice, gather_settings
from wave_agent.system.many import each
from wave_agent.text import clip, strip_controls

_HEAD = re.compile("[0-9a-f]{64}")
_LISTED = 50
"""Sessions in the list, unless more are wanted."""


_limit_option = click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=0),
    help=f"List at most N sessions; 0 for all.  [default: {_LISTED}, with --json all]",
)


@click.group(invoke_without_command=True)
@_limit_option
@cwd_option
@secrets_option
@json_option
@click.pass_context
def sessions(ctx: click.Context, limit: int | None, cwd: str | None, show_secrets: bool, as_json: bool) -> int:
    """List, show, verify, export and delete sessions

    Without a command, list this project's latest sessions. Any unique prefix of an id is accepted.
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = cwd
        return 0
    return _list(cwd, limit, show_secrets=show_secrets, as_json=as_json)


@sessions.command("list")
@_limit_option
@cwd_option
@secrets_option
@json_option
@click.pass_obj
def list_them(above: str | None, limit: int | None, cwd: str | None, show_secrets: bool, as_json: bool) -> int:
    """List sessions, as without a command."""
    return _list(cwd or above, limit, show_secrets=show_secrets, as_json=as_json)


def _list(cwd: str | None, limit: int | None, *, show_secrets: bool, as_json: bool) -> int:
    project, home = find_places(cwd, os.environ)
    most = (0 if as_json else _LISTED) if limit is None else limit
    found = list_sessions(home, project, most + 1 if most else None)  # one more shows whether there are more
    more, found = 0 < most < len(found), found[: most or None]
    found = found if show_secrets else [replace(one, first_prompt=mask(one.first_prompt)) for one in found]
    if as_json:
        click.echo(json.dumps([session.to_dict() for session in found]))
    elif not found:
        click.echo("There are no sessions in this project yet.")
    for session in [] if as_json else found:
        prompt = " ".join(strip_controls(clip(session.first_prompt, 200)).split()) or "(no prompt)"
        click.echo(f"{session.session_id}  {_ago(session.modified):>12}  {prompt[:70]}")
    if more and not as_json:
        click.echo("There are more: wave sessions --limit 0 lists all.", err=True)
    return 0


@sessions.command()
@click.argument("session_id", metavar="ID")
@secrets_option
@json_option
@click.pass_obj
def show(cwd: str | None, session_id: str, show_secrets: bool, as_json: bool) -> int:
    """Print the conversation."""
    path = _find(cwd, session_id)
    resumed = load_session(path)
    messages = resumed.messages if show_secrets else masked(resumed.messages)
    if as_json:
        click.echo(json.dumps([message.to_dict() for message in messages]))
    else:
        click.echo(strip_controls(as_markdown(messages, f"Session {path.stem}")), nl=False)
        if resumed.used.requests:
            click.echo(f"\n---\n{used_words(resumed.used)}")
    if resumed.skipped:
        click.echo(f"wave: {counted(resumed.skipped, 'line')} of the transcript could not be read", err=True)
    return 0


@sessions.command()
@click.argument("session_id", metavar="ID")
@click.option("-o", "--output", metavar="FILE", help="Write to a new file instead of stdout.")
@secrets_option
@click.pass_obj
def export(cwd: str | None, session_id: str, output: str | None, show_secrets: bool) -> int:
    """Write the conversation as Markdown."""
    path = _find(cwd, session_id)
    messages = load_session(path).messages
    text = strip_controls(as_markdown(messages if show_secrets else masked(messages), f"Session {path.stem}"))
    if output is None:
        click.echo(text, nl=False)
        return 0
    try:
        new = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(new, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise click.UsageError(f"{output} already exists and is not overwritten: choose another name.") from None
    except OSError as error:
        raise click.UsageError(f"{output} cannot be written: {error.strerror}") from None
    click.echo(f"Wrote {strip_controls(output)}")
    return 0


@sessions.command()
@json_option
@click.pass_obj
def upload(cwd: str | None, as_json: bool) -> int:
    """Upload the sessions that are still waiting.

    The background upload does the same when a session starts or ends; this waits for it and prints the result. The
    setting `sessions.upload` is the destination. Exit status: 0 all sent, 1 some still waiting, 2 usage.
    """
    from wave_agent.sessions.outbox import TOKEN, waiting  # lazy: few sessions are collected
    from wave_agent.sessions.uploads import UploadError, send_all

    choice = SourceChoice(project_hooks=False).in_environment(os.environ)
    place, home = locate_project(cwd, os.environ, choice)
    url = gather_settings(home, place, choice).settings.upload
    if url is None:
        raise click.UsageError("`sessions.upload` is set neither in your settings nor in managed ones.")
    tried: dict[str, str] = {}
    try:
        for sent in send_all(home, url, pauses=(), token=os.environ.get(TOKEN, "")):
            tried[sent.session_id] = sent.error
            if not as_json:
                click.echo(f"{sent.session_id}  {strip_controls(sent.error) or 'sent'}")
    except UploadError as error:
        raise click.UsageError(str(error)) from None
    left = waiting(home)
    if as_json:
        click.echo(json.dumps({"tried": tried, "waiting": sorted(left)}))
    elif left or not tried:
        click.echo(f"{counted(len(left), 'session')} waiting." if left else "Nothing waits to be uploaded.")
    return int(bool(left))


@sessions.command()
@click.argument("session_id", metavar="[ID]", required=False)
@click.option("--all", "everything", is_flag=True, help="Check all sessions of this project.")
@click.option("--head", metavar="HEX", help="Check that the chain contains this head, noted earlier.")
@json_option
@click.pass_obj
def verify(cwd: str | None, session_id: str | None, everything: bool, head: str | None, as_json: bool) -> int:
    """Check that the journal of hook runs is unchanged.

    Without an ID, check the latest session. Exit status: 0 intact, 1 problems found, 2 usage.
    """
    if everything and (session_id, head) != (None, None):
        raise click.UsageError("--all takes neither an ID nor --head.")
    if head is not None and not _HEAD.fullmatch(head):
        raise click.UsageError("--head expects a head as printed by this command: 64 hexadecimal digits.")
    project, home = find_places(cwd, os.environ)
    paths = list(session_files(transcripts(home, project))) if everything else []
    if not everything:
        paths = [find_session(home, project, latest_session(home, project) if session_id is None else session_id)]
    reports: list[dict[str, Any]] = []
    faulty = False
    with Progress("Verifying sessions") as progress:
        for done, (path, report) in enumerate(zip(paths, each(partial(_verified, head=head), paths), strict=True), 1):
            faulty = faulty or bool(report.findings)
            if as_json:
                reports.append(_report(path, report))
            else:
                _show(path, report)
            progress(done, len(paths))
    if as_json:
        click.echo(json.dumps(reports))
    return int(faulty)


def _show(path: Path, report: ChainReport) -> None:
    for finding in report.findings:
        click.echo(strip_controls(f"{path}:{finding.line}: {finding.kind}: {finding.message}"))
    found = counted(len(report.findings), "finding") if report.findings else "fine"
    click.echo(f"{path.stem}  {found}; {counted(report.head.run, 'hook run')}, head {report.head.chain}")


@sessions.command()
@click.argument("session_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.pass_obj
def delete(cwd: str | None, session_ids: tuple[str, ...], yes: bool) -> int:
    """Delete sessions permanently."""
    paths = [_find(cwd, session_id) for session_id in session_ids]
    for path in paths:
        if yes or _is_confirmed(f"Delete {path.stem}?"):
            delete_session(path)
            click.echo(f"Deleted {path.stem}.")
    return 0


def _is_confirmed(question: str) -> bool:
    try:
        return click.confirm(question)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo()  # ends the line of the question
        raise click.UsageError("Not interactive: rerun with --yes.") from None


def _verified(path: Path, head: str | None) -> ChainReport:
    lines = read_lines(path)
    report = check(lines, path.stem)
    if head is None or head in (report.head.chain, *report.chains):
        return replace(report, chains=frozenset())  # not needed any more, and there may be thousands
    gone = ChainFault(len(lines), "removed record", f"the chain does not contain {head}: it was truncated or rewritten")
    return replace(report, findings=(*report.findings, gone))


def _report(path: Path, report: ChainReport) -> dict[str, Any]:
    return {
        "session_id": path.stem,
        "transcript_path": str(path),
        "hook_runs": report.head.run,
        "head": report.head.chain,
        "findings": [
            {"line": finding.line, "kind": finding.kind, "message": finding.message} for finding in report.findings
        ],
    }


def _find(cwd: str | None, session_id: str) -> Path:
    project, home = find_places(cwd, os.environ)
    return find_session(home, project, session_id)


def used_words(used: Used) -> str:
    """What a session has used, in a line."""
    words = f"{counted(used.requests, 'request')}, {used.input_tokens:,} tokens in, {used.output_tokens:,} out"
    if used.cache_read_tokens:
        saved = f", which saved {shown(used.saved_usd)}" if used.saved_usd > 0 else ""
        words += f"; {used.cache_read_tokens:,} from the prompt cache{saved}"
    return f"{words}; {'cost unknown' if used.cost_usd is None else shown(used.cost_usd)}."


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _ago(when: datetime) -> str:
    seconds = (datetime.now(UTC) - when).total_seconds()
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {unit}{'s' if number > 1 else ''} ago"
    return "just now"
