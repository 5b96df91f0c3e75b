"""`wave guard log`: what guards decided in other agents."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import click

from wave_agent.agent.options import find_places
from wave_agent.cli.options import cwd_option, json_option, secrets_option
from wave_agent.guard.hosts import HOSTS
from wave_agent.sessions.masking import masked
from wave_agent.sessions.transcript import transcripts
from wave_agent.text import strip_controls

_SHOWN = (
    *("timestamp", "host", "sessionId", "event", "tool", "tool_use_id", "call", "verdict", "rewrote", "by", "reason"),
    "duration_ms",
)
"""The fields of one line of JSON."""
_PAUSE = 0.3
"""Seconds between two looks at the journals."""


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Keep waiting for more, until Ctrl-C.")
@click.option(
    "-n", "--lines", "count", type=click.IntRange(min=0), default=20, show_default=True, help="Show the last N."
)
@click.option("--all", "everything", is_flag=True, help="Also show events without any objection.")
@secrets_option
@cwd_option
@json_option
def log(*, follow: bool, count: int, everything: bool, show_secrets: bool, cwd: str | None, as_json: bool) -> int:
    """Show what the guard decided in other agents

    One line for each event of this project: when, in which agent and session, which call, the decision, and the hook
    or rule behind it. wave hooks trace shows one session in full.

    \b
    wave guard log -f           follow live
    wave guard log --all        with everything that was let through
    """
    project, home = find_places(cwd, os.environ)
    directory = transcripts(home, project)
    read: dict[Path, int] = {}
    first = sorted(_new(directory, read), key=lambda record: str(record.get("timestamp", "")))
    wanted = [record for record in first if everything or _matters(record)]
    _show(wanted[len(wanted) - count if count < len(wanted) else 0 :], show_secrets=show_secrets, as_json=as_json)
    if not (first or follow or as_json):
        click.echo("No event of another agent has been judged in this project yet.", err=True)
    while follow:
        time.sleep(_PAUSE)
        found = [record for record in _new(directory, read) if everything or _matters(record)]
        _show(found, show_secrets=show_secrets, as_json=as_json)
    return 0


def _matters(record: dict[str, Any]) -> bool:
    return record.get("verdict") != "none" or bool(record.get("rewrote"))


def _new(directory: Path, read: dict[Path, int]) -> Iterator[dict[str, Any]]:
    """Verdicts that were written since the last time. `read` has how far each file has been read."""
    for file in (path for host in HOSTS for path in directory.glob(f"{host}-*.jsonl")):
        try:
            with file.open("rb") as journal:
                journal.seek(read.get(file, 0))
                text = journal.read()
        except OSError:
            continue
        whole = text[: text.rfind(b"\n") + 1]
        read[file] = read.get(file, 0) + len(whole)
        calls: dict[str, str] = {}
        for line in whole.splitlines():
            record = _record(line)
            _note_calls(record, calls)
            if record.get("subtype") == "guard_verdict":
                yield {**record, "call": calls.get(str(record.get("tool_use_id")), "")}


def _record(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def _note_calls(record: dict[str, Any], calls: dict[str, str]) -> None:
    if record.get("type") != "assistant":
        return
    for part in record.get("message", {}).get("content", []):
        if part.get("type") == "tool_use":
            shown = next((str(value) for value in part["input"].values()), "")
            calls[str(part["id"]).partition(".")[0]] = f"{part['name']}({shown})"


def _show(records: list[dict[str, Any]], *, show_secrets: bool, as_json: bool) -> None:
    for record in records:
        shown = record if show_secrets else masked(record)
        if as_json:
            click.echo(json.dumps({key: shown.get(key) for key in _SHOWN}))
            continue
        what = shown["call"] or shown.get("tool") or ""
        verdict = "rewritten" if shown["verdict"] == "none" and shown.get("rewrote") else shown["verdict"]
        by = f" by {shown['by']}" if shown.get("by") else ""
        head = f"{shown['timestamp']}  {shown['sessionId']:<20.20}  {shown['event']:<16} {verdict:<9}"
        click.echo(strip_controls(f"{head} {what}{by}"))
