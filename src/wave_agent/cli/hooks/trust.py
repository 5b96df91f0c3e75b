"""`wave hooks trust`: review and trust what a project's settings run."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct, to_builtins

from wave_agent.agent.extension_review import review
from wave_agent.agent.options import locate_project
from wave_agent.cli.options import cwd_option
from wave_agent.errors import SettingsError
from wave_agent.permissions.decision import PermissionMode
from wave_agent.settings.definition_hooks import definition_candidates
from wave_agent.settings.extension_files import FoundExtension
from wave_agent.settings.extensions import trusted_record, why_untrusted
from wave_agent.settings.hook_entries import SettingsSource
from wave_agent.settings.layers import merge_settings, only_restrictions, why_never
from wave_agent.settings.sources import alarms_of, describe, project_extensions, project_settings
from wave_agent.settings.trust import (
    RUNS,
    UNREADABLE,
    Record,
    TrustCandidate,
    TrustStore,
    candidates,
    file_digest,
    record_of,
    restrictions_of,
)
from wave_agent.settings.user_guards import confirm_user, user_alarms
from wave_agent.system.ancestry import require_no_agent
from wave_agent.system.presence import at_terminal, doubt
from wave_agent.system.project import Project
from wave_agent.text import reveal


class TrustRow(Struct, frozen=True):
    """One hook and whether it may run."""

    candidate: TrustCandidate
    why_not: str | None

    def to_dict(self) -> dict[str, Any]:
        hook = self.candidate.hook
        return {
            "event": hook.event.value,
            "matcher": hook.matcher.text,
            "name": hook.name,
            "type": hook.kind.value,
            "command": hook.command,
            "args": hook.args,
            "model": hook.model or None,
            "source": hook.source,
            "line": hook.line,
            "agent": hook.agent or None,
            "files": self.candidate.files,
            "programs": self.candidate.programs.found,
            "trusted": self.why_not is None,
            "why_not": self.why_not,
        }


@click.command()
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option("--list", "only_list", is_flag=True, help="Only show what is trusted. Exit status 1 if anything is not.")
@click.option("--revoke", is_flag=True, help="Withdraw all trust from this project, including its always-allow rules.")
@cwd_option
@click.option("--json", "as_json", is_flag=True, help="With --list: print JSON.")
def trust(yes: bool, only_list: bool, revoke: bool, cwd: str | None, as_json: bool) -> int:
    """Review a project's hooks and trust them

    A project's hooks run with your permissions, so they only run once you have approved them. Trust is bound to each
    hook's definition and to the project files its command names: when one of them changes, you are asked again. It also
    covers the project's other settings (env, allow rules, model, endpoint), and its agents, skills and commands, each
    bound to the content of its files. It is stored in your own directory (WAVE_HOME), never in the project.

    Anything you trusted that was removed, including deny and ask rules, is listed as an ALARM: nothing starts until you
    approve the removal or restore it. Approvals are stored per branch.

    Inside an agent's process this command changes nothing. Without a terminal, --yes only works while no session of the
    project is running. Trust given at a terminal while a session runs unattended must be confirmed later.

    \b
    wave hooks trust             review, then confirm
    wave hooks trust --list      show what is trusted and what has changed
    wave hooks trust --revoke    withdraw trust
    """
    if only_list + revoke + yes > 1:
        raise click.UsageError("--yes, --list and --revoke are mutually exclusive.")
    if as_json and not only_list:
        raise click.UsageError("--json needs --list.")
    if not only_list:
        require_no_agent(os.environ, "wave hooks trust")
    place, home = locate_project(cwd, os.environ)
    project = place.directory
    store = TrustStore(home)
    if revoke:
        _require_person(home, project, "revoked")
        click.echo("Nothing in this project is trusted any more." if store.revoke(project) else "Nothing was trusted.")
        return 0
    sources = project_settings(home, place)
    record = store.read(project)
    texts = project_extensions(home, place)
    looked_at = (*candidates(sources, project, file_digest), *definition_candidates(texts, project, file_digest))
    wanted = record_of(sources, project, looked_at, record, extensions=trusted_record(texts, project))
    found = [TrustRow(one, record.why_not(one)) for one in looked_at]
    uncovered = [source for source in sources if not record.covers(source, project)]
    alarms = [*user_alarms(home, project), *alarms_of(record, wanted, place, store)]
    extensions = list(_extension_rows(texts, project, record))
    if only_list and as_json:
        listed = {
            "project": project,
            "hooks": [one.to_dict() for one in found],
            "extensions": [to_builtins(one) for one in extensions],
            "alarms": alarms,
        }
        click.echo(json.dumps(listed))
    else:
        _show(project, found, sources, record, extensions, *alarms)
    pending = (
        bool(alarms)
        or any(one.why_not for one in found)
        or any(_others(source) for source in uncovered)
        or any(not one.trusted and not one.left_out for one in extensions)
    )
    if only_list:
        return 1 if pending else 0
    unknown = wanted.guards - record.guards  # restrictive rules need no trust, but their removal would go unnoticed
    return _decide(store, place, wanted, yes=yes) if pending or unknown else 0


def _require_person(home: Path, project: str, what: str) -> str:
    """Why trust given now must be confirmed again later; empty if it need not be.

    Raises `SettingsError` if this cannot come from a person. While a session runs unattended, nothing can be revoked.
    """
    terminal = at_terminal()
    why = doubt(home, project, terminal=terminal)
    if why and (not terminal or what == "revoked"):
        raise SettingsError(
            f"Trust was not {what}: {why}, and an agent must not change its own guards. Run this in a terminal "
            "once no session runs. Scripts and CI can use --trust or --trust-ref."
        )
    return why


def _decide(store: TrustStore, project: Project, wanted: Record, *, yes: bool) -> int:
    why = _require_person(store.file.parent, project.directory, "given")
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Not interactive: review the list above and rerun with --yes.")
        if not click.confirm("Trust this, as it is now?"):
            click.echo("Nothing has changed.")
            return 1
    store.trust(project.directory, wanted, project.inner, doubt=why and f"trust was given while {why}")
    if not why:
        confirm_user(store.file.parent, project.directory)
    click.echo(f"Trusted. Stored in {store.file}; wave hooks trust --revoke withdraws it.")
    if why:
        click.echo(f"But {why}. The next start asks for confirmation: run this again then, in a new terminal.")
    return 0


def _show(
    project: str,
    found: Sequence[TrustRow],
    sources: Sequence[SettingsSource],
    record: Record,
    extensions: Sequence["ExtensionRow"],
    *alarms: str,
) -> None:
    lines = [
        *_lines(project, found, sources, record, extensions),
        *_confirmed(sources, project, record, alarms),
    ]
    for line in lines:
        click.echo(reveal(line))


class ExtensionRow(Struct, frozen=True, kw_only=True):
    """An agent, a skill or a command of the project, and whether it may be used."""

    kind: str
    path: str
    description: str
    may: tuple[str, ...] = ()
    """What it may do."""
    files: tuple[str, ...]
    """The other files of a skill, relative to it."""
    trusted: bool
    why_not: str | None
    left_out: str | None = None
    """Why it is not used, whether or not it is trusted."""

    def lines(self) -> Iterator[str]:
        state = "left out" if self.left_out else "trusted" if self.trusted else "NOT TRUSTED"
        yield f"{state}  {self.kind}: {self.path}"
        if self.left_out:
            yield f"    {self.left_out}"
            return
        told = (self.description, self.why_not, *self.may, *(f"file {name}" for name in self.files))
        yield from (f"    {line}" for line in told if line)


def _extension_rows(texts: Sequence[FoundExtension], project: str, record: Record) -> Iterator[ExtensionRow]:
    why_not, found = why_untrusted(record, project), review(texts, project)
    for one in texts:
        why, about = why_not(one), found[one.path]
        yield ExtensionRow(
            kind=one.place.kind.value,
            path=one.shown(project),
            description=about.description,
            may=about.may,
            files=tuple(os.path.relpath(path, one.whole) for path in one.others),
            trusted=why is None,
            why_not=why,
            left_out=about.left_out,
        )


def _confirmed(sources: Sequence[SettingsSource], project: str, record: Record, alarms: Sequence[str]) -> Iterator[str]:
    """What else trust covers: restrictive rules, always-allow rules and alarms."""
    for level, rules in restrictions_of(sources, project).items():
        where = f" (in {level})" if level else ""
        yield from (f"rule     {rule}{where}" for rule in rules)
    yield from (f"always   allow {rule}" for rule in record.allow)
    yield from (f"ALARM    {alarm}" for alarm in alarms)


def _lines(
    project: str,
    found: Sequence[TrustRow],
    sources: Sequence[SettingsSource],
    record: Record,
    extensions: Sequence[ExtensionRow],
) -> Iterator[str]:
    if not found and not extensions and not any(map(_others, sources)):
        yield f"{project} has no hooks, and no settings that need trust."
    for one in found:
        hook = one.candidate.hook
        yield f"{'trusted' if one.why_not is None else 'NOT TRUSTED'}  {describe(hook)}"
        if hook.matcher.text not in ("", "*"):
            yield f"    for {hook.matcher.text}"
        if one.why_not is not None:
            yield f"    {one.why_not}"
        files = one.candidate.files
        there = {name: digest for name, digest in files.items() if digest is not None}
        yield from (f"    {name}: {_short(digest)}" for name, digest in there.items())
        # System programs are expected and not listed.
        own = {name: where for name, where in one.candidate.programs.found.items() if not os.path.isabs(where)}
        yield from (f"    runs {name}: {_place(where)}" for name, where in own.items())
        if files and not there:
            yield f"    {next(iter(files))}: not found"
    for source in sources:
        if others := _others(source):
            state = "trusted" if record.covers(source, project) else "NOT TRUSTED"
            yield f"{state}  {source.name}:"
            yield from (f"    {other}" for other in others)
    for extension in extensions:
        yield from extension.lines()
    for issue in merge_settings(sources).issues:
        yield f"note: {issue}"


def _place(where: str) -> str:
    """A program in the project, with its digest."""
    path, _, digest = where.rpartition(" ")
    return f"{path}, {_short(digest)}"


def _short(digest: str) -> str:
    if digest.startswith(UNREADABLE):
        return digest
    runs = ", executable" if digest.endswith(RUNS) else ""
    return f"sha256 {digest[:16]}{runs}"


def _others(source: SettingsSource) -> list[str]:
    """The settings besides hooks that trust would enable, with their values."""
    shown: list[str] = []
    for name in only_restrictions(source, keep_hooks=True)[1]:
        value: Any = source.document.value
        for step in name.split("."):
            value = value[step]
        is_ignored = value == PermissionMode.BYPASS or why_never(source, name) != ""
        never = "  (ignored: a project cannot set this)" if is_ignored else ""
        shown.append(f"{name}: {json.dumps(value, ensure_ascii=False)}{never}")
    return shown
