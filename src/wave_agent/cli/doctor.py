"""`wave doctor`: check that everything a session needs is in place."""

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from socket import gaierror
from typing import Any, NamedTuple, cast
from urllib.error import URLError

import click

from wave_agent.agent.options import endpoint_for, locate_project, model_for, model_name_for
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.errors import ModelError, SandboxError, SettingsError, WaveError
from wave_agent.lint.check import check
from wave_agent.models.base import Model, ModelRequest, Text, ToolCall, ToolSpec
from wave_agent.models.probe import Probe, advice
from wave_agent.permissions.sandbox import try_bubblewrap
from wave_agent.settings.layers import Settings
from wave_agent.settings.sources import SourceChoice, gather_settings
from wave_agent.system.credentials import without_userinfo
from wave_agent.system.private_files import make_private
from wave_agent.system.project import Project
from wave_agent.text import strip_controls
from wave_agent.workshop.inventory import untrusted

PATIENCE = 60.0
PING = ToolSpec(
    "ping",
    "Replies with pong. Call it when asked to ping.",
    {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)


_KEEPS_FROM_STARTING = frozenset({"W105", "W110", "W114", "W115", "W116"})
"""Lint findings that mean a hook cannot run at all."""


class CheckResult(NamedTuple):
    check: str
    status: str
    """`ok`, `warning`, `failed` or `skipped`."""
    detail: str


@click.command()
@cwd_option
@click.option("--model", metavar="NAME", help="The model to use (WAVE_MODEL).")
@click.option("--base-url", metavar="URL", help="The endpoint (WAVE_BASE_URL).")
@json_option
def doctor(cwd: str | None, model: str | None, base_url: str | None, as_json: bool) -> int:
    """Check settings, hooks, sandbox, endpoint and model

    Reads all settings, looks for problems that would keep hooks from starting, and sends the model two short prompts:
    one for an answer, one for a tool call. Exit status 1 if a check fails.
    """
    findings = asyncio.run(_examine(cwd, model, base_url, _silent if as_json else _show))
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in findings]))
    return 1 if any(finding.status == "failed" for finding in findings) else 0


def _show(finding: CheckResult) -> None:
    mark = {"ok": "ok", "warning": "!!", "failed": "NO", "skipped": "--"}[finding.status]
    click.echo(f"{mark}  {finding.check:<12} {strip_controls(finding.detail)}")


def _silent(_: CheckResult) -> None:
    pass


async def _examine(
    cwd: str | None, model: str | None, base_url: str | None, tell: Callable[[CheckResult], None]
) -> list[CheckResult]:
    findings: list[CheckResult] = []
    async for finding in _findings(cwd, model, base_url):
        findings.append(finding)
        tell(finding)
    return findings


async def _findings(cwd: str | None, model: str | None, base_url: str | None) -> AsyncIterator[CheckResult]:
    try:
        choice = SourceChoice(trust=True).in_environment(os.environ)
        place, home = locate_project(cwd, os.environ, choice)
        gathered = gather_settings(home, place, choice)
        settings = gathered.settings
    except SettingsError as error:
        yield CheckResult("settings", "failed", str(error))
        settings, home, place = Settings(), None, None
    else:
        yield CheckResult("settings", "ok", f"{len(gathered.sources)} read, project {place.directory}")
    if home is not None:
        yield await asyncio.to_thread(_home, home)
    for issue in settings.issues:
        yield CheckResult("settings", "failed" if issue.broken else "warning", str(issue))
    yield CheckResult("hooks", "ok", f"{len(settings.hooks.hooks)} defined")
    if home is not None and place is not None:
        for finding in _hook_problems(home, place):
            yield finding
        yield await asyncio.to_thread(_sandbox, place, settings)
    async for finding in _endpoint(model, base_url, settings):
        yield finding


def _home(home: Path) -> CheckResult:
    """Sessions and trust are stored there."""
    try:
        make_private(home)
        with tempfile.TemporaryFile(dir=home):
            return CheckResult("home", "ok", f"{home} can be written")
    except OSError as error:
        problem = f"{home} cannot be written: {error.strerror}. Set WAVE_HOME to a writable directory."
        return CheckResult("home", "failed", problem)


def _hook_problems(home: Path, project: Project) -> Iterator[CheckResult]:
    """Problems that keep hooks from starting, found without running them. `wave hooks lint` finds more."""
    for one in check(project.directory, home, levels=project.levels).findings:
        if one.code in _KEEPS_FROM_STARTING:
            yield CheckResult("hooks", "failed", f"{one.file}:{one.line}: {one.reason} ({one.code})")
    for hook, why in untrusted(home, project):
        place = f"{hook.source}:{hook.line}"
        yield CheckResult(
            "hooks", "warning", f"{place}: {hook.name} on {hook.event}: {why}. Review it: wave hooks trust"
        )


def _sandbox(project: Project, settings: Settings) -> CheckResult:
    """Whether `--sandbox` would work here, and what it would permit."""
    try:
        try_bubblewrap(os.environ, distrusted=(project.directory,))
    except SandboxError as error:
        return CheckResult("sandbox", "skipped", f"not available: {' '.join(str(error).split())}")
    network = settings.sandbox_network
    reach = ("on" if network else "off") if not isinstance(network, tuple) else f"only {', '.join(network) or 'none'}"
    return CheckResult("sandbox", "ok", f"--sandbox works here; network: {reach} (sandbox.network)")


async def _endpoint(model: str | None, base_url: str | None, settings: Settings) -> AsyncIterator[CheckResult]:
    endpoint = endpoint_for(base_url, None, settings, os.environ)
    name = model_name_for(model, settings, os.environ)
    if endpoint is None:
        yield CheckResult("endpoint", "failed", f"not set: set WAVE_BASE_URL and WAVE_MODEL. {advice()}")
        return
    shown = without_userinfo(endpoint.url)
    try:
        status, listing = await Probe(endpoint.key)("GET", f"{endpoint.url.rstrip('/')}/models", None, 10)
        names = [str(row["id"]) for row in cast(list[dict[str, Any]], listing["data"])]
        yield CheckResult("endpoint", "ok", f"{shown} answers {status}{_some(names)}")
    except (OSError, ValueError, TypeError, KeyError, HTTPException) as error:
        why = error.reason if isinstance(error, URLError) else error
        if isinstance(why, ConnectionError | TimeoutError | gaierror):
            yield CheckResult("endpoint", "warning", f"{shown} cannot be reached: {(why.strerror or str(why)).lower()}")
        else:
            yield CheckResult("endpoint", "warning", f"{shown} does not list its models: {error}")
    if not name:
        yield CheckResult("model", "failed", "not set: set WAVE_MODEL or use --model")
        return
    client = model_for(base_url, None, settings, os.environ)
    try:
        async with asyncio.timeout(PATIENCE):
            yield await _answers(client, name)
            yield await _calls(client, name)
    except TimeoutError:
        yield CheckResult("model", "failed", f"{name} did not answer within {PATIENCE:g} s")
    except (ModelError, WaveError) as error:
        yield CheckResult("model", "failed", str(error))
    finally:
        await client.close()


async def _answers(client: Model, name: str) -> CheckResult:
    request = ModelRequest(model=name, messages=[{"role": "user", "content": "Answer with the single word: ready"}])
    text = "".join([delta.text async for delta in client.stream(request) if isinstance(delta, Text)])
    return CheckResult("model", "ok", f"{name} says: {' '.join(text.split())[:60]}")


async def _calls(client: Model, name: str) -> CheckResult:
    asked = [{"role": "user", "content": "Use the tool ping with the word hello. Do not answer in words."}]
    request = ModelRequest(model=name, messages=asked, tools=[PING])
    calls = [delta async for delta in client.stream(request) if isinstance(delta, ToolCall)]
    if not calls:
        return CheckResult(
            "tools", "warning", f"{name} made no tool call when asked to: the agent may not work well with it"
        )
    return CheckResult("tools", "ok", f"{name} calls tools")


def _some(names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"; models: {', '.join(names[:4])}{more}"
