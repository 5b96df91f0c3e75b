"""`wave models`: what can be used, from settings, the configured server and this machine."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.model_choice import (
    ModelWishes,
    client_of,
    endpoint_for,
    key_of,
    model_name_for,
    with_remembered_api,
)
from wave_agent.agent.model_windows import known_facts
from wave_agent.agent.options import locate_project
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.cli.tables import table
from wave_agent.errors import WaveError
from wave_agent.models.discovery import Listing, find_local_servers, list_models
from wave_agent.models.nearby import origin_of, server_at
from wave_agent.settings.layers import Settings
from wave_agent.settings.sources import SourceChoice, gather_settings
from wave_agent.system.credentials import public_url
from wave_agent.system.private_files import wave_home
from wave_agent.text import strip_controls

_SHOWN = 40
"""Models of one server in the table; JSON has them all."""


class UsableModel(Struct, frozen=True, kw_only=True):
    """One line of the list."""

    name: str
    base_url: str | None
    """None for facts in the settings about a model that no server lists."""
    server: str
    api: str | None
    context_window: int | None = None
    prices: Mapping[str, float] | None = None
    """US dollars per million tokens: `input` and `output`."""
    current: bool = False
    """The model that `wave` would use now."""
    source: str
    """`settings`, `server` (the configured one) or `local`."""


class ModelSource(Struct, frozen=True, kw_only=True):
    """A place that was asked."""

    name: str
    base_url: str | None
    models: int
    error: str | None = None


@click.command()
@cwd_option
@json_option
def models(cwd: str | None, as_json: bool) -> int:
    """List the models you can use

    Shows the models named in your settings, those that the configured server lists, and those of servers found on this
    machine (Ollama, LM Studio, llama.cpp, vLLM), each with its context window and its prices in US dollars per million
    tokens, if known. The model in use is marked with *. Contacts no service that is not configured.

    Exit status 1 if no model is found.
    """
    found, sources = asyncio.run(_find(cwd))
    if as_json:
        rows = {"models": [_as_dict(one) for one in found], "sources": [_as_dict(one) for one in sources]}
        click.echo(json.dumps(rows))
    else:
        _show(found, sources)
    return 0 if found else 1


def _as_dict(row: UsableModel | ModelSource) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__struct_fields__}


async def _find(cwd: str | None) -> tuple[list[UsableModel], list[ModelSource]]:
    """All models, the one in use first, and what each source said. The failure of one source hides no other."""
    problems: list[ModelSource] = []
    settings = Settings()
    try:
        # A project that is not trusted must not say where the key goes, and no hook runs here.
        choice = SourceChoice(project_hooks=False).in_environment(os.environ)
        place, home = locate_project(cwd, os.environ, choice)
        settings = gather_settings(home, place, choice).settings
    except WaveError as error:
        problems.append(ModelSource(name="settings", base_url=None, models=0, error=str(error)))
    configured, local = await asyncio.gather(_configured(settings, problems), _local(problems))
    return _merged(settings, configured, local, problems)


async def _configured(settings: Settings, problems: list[ModelSource]) -> Listing | None:
    name = model_name_for(None, settings, os.environ)
    try:
        endpoint = endpoint_for(ModelWishes(), settings, os.environ, model=name)
        if endpoint is None:
            return None
        endpoint = with_remembered_api(endpoint, wave_home(os.environ))
        endpoint = replace(endpoint, key=await key_of(endpoint, settings, os.environ))
        client = client_of(endpoint, settings, os.environ)
    except WaveError as error:
        problems.append(ModelSource(name="configured server", base_url=None, models=0, error=str(error)))
        return None
    server = replace(server_at(endpoint.url, os.environ), api=endpoint.api)
    asking = client.context_window(name) if name else _nothing()
    listing, window = await asyncio.gather(list_models(server, endpoint.key, bearer=endpoint.bearer), asking)
    if window is None:
        return listing
    # What the server runs the model with; its list may say what the model could do, or nothing.
    models = [replace(one, window=window.tokens) if one.name == name else one for one in listing.models]
    return replace(listing, models=tuple(models))


async def _nothing() -> None:
    return None


async def _local(problems: list[ModelSource]) -> list[Listing]:
    try:
        return await find_local_servers(os.environ)
    except WaveError as error:
        problems.append(ModelSource(name="this machine", base_url=None, models=0, error=str(error)))
        return []


def _merged(
    settings: Settings, configured: Listing | None, local: Sequence[Listing], problems: Sequence[ModelSource]
) -> tuple[list[UsableModel], list[ModelSource]]:
    used = model_name_for(None, settings, os.environ)
    here = "" if configured is None else origin_of(configured.server.base_url)
    listings = [(configured, "server")] if configured is not None else []
    listings += [(one, "local") for one in local if origin_of(one.server.base_url) != here]
    found: list[UsableModel] = []
    sources = [*problems]
    for listing, source in listings:
        rows = _rows(listing, source, settings, used if source == "server" else "")
        found += rows
        url = public_url(listing.server.base_url)
        name, error = listing.server.name or "server", listing.detail or None
        sources.append(ModelSource(name=name, base_url=url, models=len(rows), error=error))
    listed = {one.name for one in found}
    named = [name for name in dict.fromkeys((used, *settings.models)) if name and name not in listed]
    found += [_named(name, configured, settings, current=name == used) for name in named]
    return sorted(found, key=lambda one: not one.current), sources


def _rows(listing: Listing, source: str, settings: Settings, used: str) -> list[UsableModel]:
    return [
        UsableModel(
            name=one.name,
            base_url=public_url(listing.server.base_url),
            server=listing.server.name,
            api=_api(one.name, settings, listing.server.api),
            context_window=_window(one.name, settings, one.window),
            prices=_prices(one.name, settings, one.prices),
            current=one.name == used,
            source=source,
        )
        for one in listing.models
    ]


def _named(name: str, configured: Listing | None, settings: Settings, *, current: bool) -> UsableModel:
    """A model that only the settings, or the environment, know."""
    server = None if configured is None else configured.server
    return UsableModel(
        name=name,
        base_url=None if server is None else public_url(server.base_url),
        server="" if server is None else server.name,
        api=_api(name, settings, None if server is None else server.api),
        context_window=_window(name, settings, None),
        prices=_prices(name, settings, None),
        current=current,
        source="settings",
    )


# As in a session: the settings take precedence over the server, and the server over the built-in table.


def _window(name: str, settings: Settings, listed: int | None) -> int | None:
    facts = known_facts(name)
    return settings.models.get(name, {}).get("contextWindow") or listed or (facts and facts.window)


def _prices(name: str, settings: Settings, listed: Mapping[str, float] | None) -> Mapping[str, float] | None:
    if stated := settings.models.get(name, {}).get("prices") or listed:
        return stated
    facts = known_facts(name)
    return None if facts is None else {"input": facts.prices.input, "output": facts.prices.output}


def _api(name: str, settings: Settings, otherwise: str | None) -> str | None:
    return settings.models.get(name, {}).get("api") or otherwise


def _show(found: Sequence[UsableModel], sources: Sequence[ModelSource]) -> None:
    shown: list[UsableModel] = []
    for one in found:
        if sum(other.base_url == one.base_url for other in shown) < _SHOWN:
            shown.append(one)
    if shown:
        head = ("", "MODEL", "WINDOW", "PRICE", "API", "SERVER")
        rows = [
            ("*" if one.current else "", one.name, _tokens(one), _price(one), one.api or "–", _server(one))
            for one in shown
        ]
        for line in table([head, *rows], right=(2, 3)):
            click.echo(line)
    if len(found) > len(shown):
        click.echo(f"… and {len(found) - len(shown):,} more: wave models --json lists all.")
    for source in sources:
        if source.error:
            where = f" ({source.base_url})" if source.base_url else ""
            click.echo(strip_controls(f"{source.name}{where}: {source.error}"), err=True)
    if not found:
        click.echo("No models found. Choose one with wave setup; wave demo works without.", err=True)


def _tokens(model: UsableModel) -> str:
    return "–" if model.context_window is None else f"{model.context_window:,}"


def _price(model: UsableModel) -> str:
    if not model.prices:
        return "–"
    return " / ".join(f"${model.prices[kind]:g}" if kind in model.prices else "?" for kind in ("input", "output"))


def _server(model: UsableModel) -> str:
    return " ".join(part for part in (model.server, model.base_url) if part) or "–"
