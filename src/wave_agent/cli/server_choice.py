"""The questions of `wave setup`: which server, with which key, and which model."""

import asyncio
import os
import sys
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.model_choice import ModelWishes, endpoint_for, key_of
from wave_agent.cli.choices import ask, choose_name, choose_row
from wave_agent.cli.tables import table
from wave_agent.errors import ModelError
from wave_agent.http.routes import chat_endpoint, proxy_for
from wave_agent.models.discovery import ListedModel, Listing, find_local_servers, list_models
from wave_agent.models.nearby import ModelServer, hosted_servers, local_servers, origin_of, server_at
from wave_agent.models.probe import is_near
from wave_agent.settings.layers import Settings
from wave_agent.settings.stored_keys import key_problem
from wave_agent.settings.user_settings import UserSettings
from wave_agent.system.credentials import AGENT_KEYS
from wave_agent.text import strip_controls

_ATTEMPTS = 3
"""How often a key is asked for."""


class FoundKey(Struct, frozen=True):
    """A key, and where it comes from."""

    key: str
    variable: str = ""
    """The environment variable that holds it."""
    typed: bool = False
    """The user has just entered it, so it is to be stored."""
    bearer: bool = False
    """It is a token that every API sends in the same way."""

    def __repr__(self) -> str:
        return f"FoundKey(variable={self.variable!r})"


class SetupChoice(Struct, frozen=True):
    """What was chosen."""

    server: ModelServer
    model: str
    key: FoundKey | None = None
    api: str | None = None
    """Only if it was named, or found out."""
    assumed: bool = False
    """Nothing says which API the server speaks."""

    def changes(self) -> dict[str, Any]:
        """For the settings file. A named API belongs to the server it was named for."""
        return {"baseUrl": self.server.base_url, "model": self.model, "api": self.api}


class SetupFlags(Struct, frozen=True):
    """What the command line has already answered."""

    base_url: str | None = None
    model: str | None = None
    api: str | None = None
    key: FoundKey | None = None
    check: bool = True
    yes: bool = False


def choose(flags: SetupFlags, settings: UserSettings) -> SetupChoice:
    if flags.base_url is not None:
        server, listing = _server_for(flags.base_url), None
    else:
        server, listing = _choose_server(settings)
    server, key, assumed = _as_a_session(server, flags, settings)
    if flags.model is None:
        server, key, listing = _list(server, key, listing)
        model = _choose_model(listing, settings)
    else:
        model = flags.model.strip()
    _warn(server, key)
    return SetupChoice(server, model, key, flags.api, assumed)


def _server_for(url: str) -> ModelServer:
    """Raises `click.UsageError` if this is not a URL that can be stored."""
    try:
        place = chat_endpoint(url).place
    except ModelError as error:
        raise click.UsageError(f"--base-url: {error}") from None
    secret = "a user and password" if place.password is not None else "a query" if "?" in url else ""
    if secret:
        raise click.UsageError(
            f"--base-url contains {secret}, which would be readable in settings.json. Set WAVE_BASE_URL instead, or "
            "use a key."
        )
    return server_at(url.strip(), os.environ)


def _choose_server(settings: UserSettings) -> tuple[ModelServer, Listing | None]:
    """A server, and the models it listed if it is on this machine."""
    ports = ", ".join(f"{one.name} ({origin_of(one.base_url).rpartition(':')[2]})" for one in local_servers(os.environ))
    click.echo(f"Looking for servers on this machine: {ports or 'none'} …")
    found = asyncio.run(find_local_servers(os.environ))
    for odd in (one for one in found if one.problem in ("strange", "refused", "silent")):
        say(f"Something listens on {odd.server.name}'s port, but {odd.detail}.")
    usable = [one for one in found if one.problem in ("", "key")]
    if not usable and not any(map(_has_key, hosted_servers())):
        say(
            "No server found, and no key in the environment. To use a model on this machine, start one of these "
            "servers and run wave setup again. To use a hosted one, have its key ready and choose it. Ctrl-C leaves."
        )
    rows: list[tuple[ModelServer, Listing | None, str]] = [(one.server, one, _described(one)) for one in usable]
    rows += [(one, None, _key_described(one)) for one in hosted_servers()]
    present = settings.values.get("baseUrl")
    origins = [origin_of(one.base_url) for one, _, _ in rows]
    at = None
    if isinstance(present, str) and origin_of(present):
        if origin_of(present) not in origins:
            rows.insert(0, (server_at(present, os.environ), None, "the present choice"))
        at = origins.index(origin_of(present)) if origin_of(present) in origins else 0
        rows[at] = (replace(rows[at][0], base_url=present), *rows[at][1:])
    shown = table([(one.name or "Server", one.base_url, words) for one, _, words in rows])
    known = next((number for number, (one, _, _) in enumerate(rows) if _has_key(one)), None)
    default = at if at is not None else 0 if usable else known
    chosen = choose_row("Which server?", [*shown, "Another server, by its URL"], default)
    return (_ask_url(), None) if chosen == len(rows) else rows[chosen][:2]


def _described(listing: Listing) -> str:
    if listing.needs_key:
        return "needs a key"
    count = len(listing.models) + listing.more
    return f"{count:,} model{'' if count == 1 else 's'}"


def _has_key(server: ModelServer) -> bool:
    return any(os.environ.get(name) for name in server.keys)


def _key_described(server: ModelServer) -> str:
    return next((f"key in {name}" for name in server.keys if os.environ.get(name)), "needs a key")


def _ask_url() -> ModelServer:
    while True:
        try:
            return _server_for(ask("Its base URL, such as http://127.0.0.1:8080/v1"))
        except click.UsageError as error:
            click.echo(error.message.removeprefix("--base-url: "))


def _as_a_session(
    server: ModelServer, flags: SetupFlags, settings: UserSettings
) -> tuple[ModelServer, FoundKey | None, bool]:
    """The API and the key that a session would use with this server: a key from the environment, else a stored one.
    Also whether the API is only assumed."""
    environment = dict(os.environ)
    elsewhere = environment.get("WAVE_BASE_URL")
    if elsewhere and origin_of(elsewhere) != origin_of(server.base_url):
        environment.pop("WAVE_API_KEY", None)  # it belongs to that server
    helper = settings.values.get("apiKeyHelper")
    own = Settings(api_key_helper=helper if isinstance(helper, str) else None)
    endpoint = endpoint_for(ModelWishes(base_url=server.base_url, api=flags.api), own, environment)
    assert endpoint is not None  # it has a URL
    server = replace(server, api=endpoint.api)
    if flags.key is not None:
        return server, flags.key, endpoint.assumed
    key = asyncio.run(key_of(endpoint, own, environment))
    if key is None:
        return server, None, endpoint.assumed
    variable = next((name for name in AGENT_KEYS if environment.get(name) == key), "")
    return server, FoundKey(key, variable, bearer=endpoint.bearer), endpoint.assumed


def _list(
    server: ModelServer, key: FoundKey | None, listing: Listing | None
) -> tuple[ModelServer, FoundKey | None, Listing]:
    """The models of a server. Asks for a key if it wants one."""
    if server.keys and key is None:
        key = _ask_key(server)
    for left in reversed(range(_ATTEMPTS)):
        if listing is None or listing.problem:
            say(f"Asking {server.base_url} for its models …")
            listing = asyncio.run(_settled(server, key))
        if not listing.needs_key or not left:
            break
        say(f"{server.name or 'The server'} {'refused the key' if key else 'needs a key'}: {listing.detail}.")
        key = _ask_key(server)
    assert listing is not None
    return listing.server, key, listing


async def _settled(server: ModelServer, key: FoundKey | None) -> Listing:
    """What the server lists; if that is nothing, what it lists below `/v1`, which is easily forgotten."""
    listing = await list_models(server, key and key.key, bearer=bool(key and key.bearer))
    if listing.problem not in ("refused", "strange") or server.base_url.rstrip("/").endswith("/v1"):
        return listing
    below = replace(server, base_url=f"{server.base_url.rstrip('/')}/v1")
    other = await list_models(below, key and key.key, bearer=bool(key and key.bearer))
    return listing if other.problem else other


def _ask_key(server: ModelServer | None) -> FoundKey:
    whose = f" for {server.name or origin_of(server.base_url)}" if server else ""
    while True:
        key = ask(f"API key{whose} (not shown)", hidden=True)
        if not (problem := key_problem(key)):
            return FoundKey(key, typed=True)
        click.echo(problem)


def _choose_model(listing: Listing, settings: UserSettings) -> str:
    by_name = {model.name: model for model in listing.models}
    if listing.problem:
        say(f"{listing.server.base_url} does not list its models: {listing.detail}.")
    elif not by_name:
        say(f"{listing.server.base_url} lists no models; download or load one first, or name one.")
    present = settings.values.get("model")
    default = present if isinstance(present, str) and present in by_name else None
    if default is None and len(by_name) == 1:
        (default,) = by_name
    names = [*by_name]
    if not names:
        return ask("Which model?")
    question = "Which model? A number, a name or a part of one"
    return choose_name(question, names, default, lambda name: _model_described(by_name[name]))


def _model_described(model: ListedModel) -> str:
    return model.name if model.window is None else f"{model.name}  ({model.window:,} tokens)"


def _warn(server: ModelServer, key: FoundKey | None) -> None:
    """About a choice that would not work, or not safely."""
    place = chat_endpoint(server.base_url).place
    if key is not None and place.scheme == "http" and not is_near(place.host):
        say(f"Careful: {place.origin} is not https, so the key is sent unencrypted.")
    try:
        if place.host in ("127.0.0.1", "localhost", "::1") and proxy_for(place, os.environ) is not None:
            say(f"A proxy is set in the environment, and would get requests for {place.host}: add it to NO_PROXY.")
    except ModelError as error:
        say(str(error))


def key_from_stdin() -> FoundKey:
    stdin: Any = sys.stdin  # None if the caller closed it
    if stdin is None:
        raise click.UsageError("--api-key-stdin: stdin is closed.")
    if sys.stdin.isatty():
        return _ask_key(None)
    key = sys.stdin.readline(1 << 16).strip()
    if problem := key_problem(key):
        raise click.UsageError(f"--api-key-stdin: {problem}")
    return FoundKey(key, typed=True)


def say(text: str, *, err: bool = False) -> None:
    click.echo(strip_controls(text), err=err)
