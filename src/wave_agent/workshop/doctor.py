"""What a session needs, checked: for `wave doctor`, and `/doctor` on the screen.

Whatever takes time is done in threads, so that the screen can show what is found while it is used.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from http.client import HTTPException
from pathlib import Path
from socket import gaierror
from typing import NamedTuple, TypeVar
from urllib.error import URLError

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.model_choice import ModelWishes, client_of, endpoint_for, model_name_for, with_remembered_api
from wave_agent.agent.options import locate_project
from wave_agent.errors import ModelError, SandboxError, SettingsError, WaveError
from wave_agent.lint.check import check
from wave_agent.models.base import Model, ModelRequest, Text, ToolCall
from wave_agent.models.nearby import advice
from wave_agent.models.tool_call_trial import tool_call_request
from wave_agent.permissions.root_user import root_caution
from wave_agent.permissions.sandbox import try_bubblewrap
from wave_agent.sessions.outbox import waiting
from wave_agent.settings.layers import Settings
from wave_agent.settings.mcp_sources import has_servers
from wave_agent.settings.places import ExtensionKind
from wave_agent.settings.sources import SourceChoice, gather_settings
from wave_agent.system.credentials import public_url
from wave_agent.system.extras import install_extra
from wave_agent.system.private_files import STORED_LOGINS, make_private, unwritten, wave_home
from wave_agent.system.project import Project
from wave_agent.workshop.inventory import untrusted

PATIENCE = 60.0


_KEEPS_FROM_STARTING = frozenset({"W105", "W110", "W114", "W115", "W116"})
"""Lint findings that mean a hook cannot run at all."""


class CheckResult(NamedTuple):
    check: str
    status: str
    """`ok`, `warning`, `failed` or `skipped`."""
    detail: str
    fix: str = ""
    """What to do about it, if the detail does not say it."""


class CheckedSession(Struct, frozen=True, kw_only=True):
    """What is examined: what a session started like this would find."""

    cwd: str | os.PathLike[str] | None = None
    model: str | None = None
    wishes: ModelWishes = ModelWishes()
    choice: SourceChoice = SourceChoice()
    """Which settings are read. Its trust is ignored."""


async def examine(session: CheckedSession, begin: Callable[[str], None] = lambda _: None) -> AsyncIterator[CheckResult]:
    """The results in the order of the checks. `begin` is called with what is checked next."""
    begin("settings")
    base = session.choice.in_environment(os.environ)
    try:
        choice = replace(base, trust=True)
        place, home = locate_project(session.cwd, os.environ, choice)
        gathered = await asyncio.to_thread(gather_settings, home, place, choice)
        settings = gathered.settings
    except SettingsError as error:
        yield CheckResult("settings", "failed", str(error))
        settings, home, place, with_servers = Settings(), None, None, False
    else:
        with_servers = has_servers(gathered, place, home, choice)
        yield CheckResult("settings", "ok", f"{len(gathered.sources)} read, project {place.directory}")
    for finding in user_checks(os.geteuid(), settings):
        yield finding
    if home is not None:
        yield await asyncio.to_thread(_home, home)
        if settings.upload is not None:
            yield await asyncio.to_thread(_uploads, home, settings.upload)
    for issue in settings.issues:
        yield CheckResult("settings", "failed" if issue.broken else "warning", str(issue))
    yield CheckResult("hooks", "ok", f"{len(settings.hooks.hooks)} defined")
    if home is not None and place is not None:
        begin("hooks")
        for finding in await _in_thread(_extensions(home, place, base)):
            yield finding
        for finding in await _in_thread(_hook_problems(home, place)):
            yield finding
        begin("sandbox")
        yield await asyncio.to_thread(_sandbox, place, settings)
        # Above, the project's hooks are examined as if it were trusted; where a key goes, only a trusted one says.
        trusted = replace(base, trust=False, project_hooks=False)
        for finding in await _in_thread(_servers(session.cwd, home, trusted)) if with_servers else ():
            yield finding
        settings = (await asyncio.to_thread(gather_settings, home, place, trusted)).settings
    begin("telemetry")
    yield await _telemetry(settings)
    begin("endpoint")
    async for finding in _endpoint(session, settings, begin):
        yield finding


_Found = TypeVar("_Found")


async def _in_thread(findings: Iterable[_Found]) -> list[_Found]:
    return await asyncio.to_thread(list, findings)


def user_checks(uid: int, settings: Settings) -> Iterator[CheckResult]:
    """What the agent's commands may do depends on the user who starts it."""
    if uid == 0:
        danger = root_caution(uid, settings.default_mode, sandbox=False)
        words = "you are root: the agent's commands can change the whole machine. Use another user or --sandbox."
        yield CheckResult("user", "warning", danger or words)


def _uploads(home: Path, url: str) -> CheckResult:
    from wave_agent.sessions.uploads import UploadError, destination  # lazy: few sessions are collected

    left = waiting(home)
    where = f"finished sessions go to {public_url(url)}" + (f"; waiting: {len(left)}" if left else "")
    try:
        destination(url)
    except UploadError as error:
        return CheckResult("uploads", "failed", f"{where}: {error}")
    if error := next((one.error for one in left.values() if one.error), ""):
        return CheckResult("uploads", "warning", f"{where} ({error})")
    return CheckResult("uploads", "ok", where)


async def _telemetry(settings: Settings) -> CheckResult:
    from wave_agent.workshop.telemetry_check import check_telemetry  # lazy: loads what telemetry needs

    return CheckResult("telemetry", *await check_telemetry(settings))


def _home(home: Path) -> CheckResult:
    """Sessions and trust are stored there."""
    try:
        make_private(home)
        with tempfile.TemporaryFile(dir=home) as file:
            file.write(bytes(4096))  # on a full disk, an empty file can still be made
            file.flush()
        return CheckResult("home", "ok", f"{home} can be written")
    except OSError as error:
        return CheckResult("home", "failed", unwritten(home, error))


def _extensions(home: Path, project: Project, base: SourceChoice) -> Iterator[CheckResult]:
    """How many agents, skills and commands a session would have, and what keeps others from being used."""
    try:
        gathered = gather_settings(home, project, replace(base, trust=_trusts_hooks))
    except SettingsError:  # reported above
        return
    if (found := gathered.extensions) is None:
        return
    from wave_agent.settings.session_agents import session_agents  # lazy: many projects have none

    agents = session_agents(gathered)
    numbers = {kind: len(found.of(kind)) for kind in ExtensionKind} | {ExtensionKind.AGENTS: len(agents.definitions)}
    counts = [f"{number} {_kind(kind, number)}" for kind, number in numbers.items() if number]
    yield CheckResult("extensions", "ok", ", ".join(counts) or "none can be used")
    for notice in (*found.notices, *agents.notices):
        yield CheckResult("extensions", "warning", notice)


def _kind(kind: ExtensionKind, number: int) -> str:
    return kind.value.removesuffix("s") if number == 1 else kind.value


def _trusts_hooks(_hooks: object, _alarms: object) -> bool:
    """Only to see what else is not trusted."""
    return True


def _hook_problems(home: Path, project: Project) -> Iterator[CheckResult]:
    """Problems that keep hooks from starting, found without running them. `wave hooks lint` finds more."""
    for one in check(project.directory, home, levels=project.levels).findings:
        if one.code in _KEEPS_FROM_STARTING:
            yield CheckResult("hooks", "failed", f"{one.file}:{one.line}: {one.reason} ({one.code})", one.fix)
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


def _servers(cwd: str | os.PathLike[str] | None, home: Path, choice: SourceChoice) -> Iterator[CheckResult]:
    """MCP servers: what keeps one from starting, found without starting any."""
    from wave_agent.workshop.server_overview import counted, has_extra, overview  # lazy: most projects have none

    try:
        found = overview(cwd, choice)
    except SettingsError as error:
        yield CheckResult("mcp", "failed", str(error))
        return
    ready = [row.name for row in found.rows if row.may_start]
    if ready and has_extra():
        yield CheckResult("mcp", "ok", f"{counted(len(ready), 'server')} may start: {', '.join(ready)}")
    elif found.rows and not has_extra():
        yield CheckResult("mcp", "failed", f"MCP servers need an extra: {install_extra('mcp')}")
    for issue in found.configured.issues:
        yield CheckResult("mcp", "failed" if issue.broken else "warning", str(issue))
    for row in found.rows:
        if row.detail and row.state != "extra missing":
            yield CheckResult("mcp", "warning", f"{row.name}: {row.detail}")
    tokens = home / STORED_LOGINS
    if tokens.exists() and tokens.stat().st_mode & 0o077:
        yield CheckResult("mcp", "failed", f"{tokens} can be read by others: chmod 600 {tokens}")


async def _endpoint(
    session: CheckedSession, settings: Settings, begin: Callable[[str], None]
) -> AsyncIterator[CheckResult]:
    name = model_name_for(session.model, settings, os.environ)
    try:
        endpoint = endpoint_for(session.wishes, settings, os.environ, model=name)
    except SettingsError as error:
        yield CheckResult("endpoint", "failed", str(error))
        return
    if endpoint is None:
        nearby = advice(os.environ)
        yield CheckResult(
            "endpoint", "failed", f"not set: run wave setup, or set WAVE_BASE_URL and WAVE_MODEL. {nearby}"
        )
        return
    shown = public_url(endpoint.url)
    endpoint = with_remembered_api(endpoint, wave_home(os.environ))
    client = client_of(endpoint, settings, os.environ)
    try:
        yield CheckResult("endpoint", "ok", f"{shown} ({endpoint.api}) answers 200{_some(await client.models())}")
    except (OSError, ValueError, HTTPException, ModelError) as error:
        why = error.reason if isinstance(error, URLError) else error
        if isinstance(why, ConnectionError | TimeoutError | gaierror):
            yield CheckResult("endpoint", "warning", f"{shown} cannot be reached: {(why.strerror or str(why)).lower()}")
        else:
            yield CheckResult("endpoint", "warning", f"{shown} does not list its models: {error}")
    if not name:
        yield CheckResult("model", "failed", "not set: run wave setup, set WAVE_MODEL or use --model")
        return
    try:
        async with asyncio.timeout(PATIENCE):
            begin("model")
            yield await _answers(client, name)
            begin("tools")
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
    words = " ".join(text.split())[:60]
    return CheckResult("model", "ok", f"{name} says: {words}" if words else f"{name} answers, though with no text")


async def _calls(client: Model, name: str) -> CheckResult:
    calls = [delta async for delta in client.stream(tool_call_request(name)) if isinstance(delta, ToolCall)]
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
