"""Which model is asked, where, through which API and with which key."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import ModelError, SettingsError
from wave_agent.models.apis import APIS, PROVIDERS, Provider, api_for, client_for
from wave_agent.models.base import Api, Delta, Model, ModelRequest
from wave_agent.models.limits import limits_in
from wave_agent.models.windows import Window
from wave_agent.settings.layers import Settings
from wave_agent.system.credentials import public_url
from wave_agent.system.private_files import STORED_KEYS, wave_home
from wave_agent.text import did_you_mean

if TYPE_CHECKING:  # loaded with the first client
    from wave_agent.models.client import ModelClient

_BY_END = {
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "/messages": "anthropic",
    "/anthropic": "anthropic",  # as several providers name the place where they speak it
}
_ASKED_SERVERS = "apis.json"
"""Which API servers were found to speak."""


class ModelWishes(Struct, frozen=True, kw_only=True):
    """What the caller asks for: flags, or arguments of `Agent.create`."""

    base_url: str | None = None
    api_key: str | None = None
    api: str | None = None


class ModelEndpoint(Struct, frozen=True):
    """Where a model is asked, and how."""

    url: str
    key: str | None
    api: str = "openai-chat"
    bearer: bool = False
    """The key is a token that every API sends in the same way."""
    key_name: str = "WAVE_API_KEY"
    """Where the key comes from."""
    hint: str = ""
    """About keys that are set, but belong elsewhere."""
    url_name: str = ""
    """Where the URL was set, for an error about it."""
    assumed: bool = False
    """Neither the user nor the URL says which API this is, so the server may be asked."""


def api_name(asked: str, where: str = "") -> str:
    """Raises `SettingsError` if there is no such API. `where` it was asked for is put before the message."""
    if asked not in APIS:
        expected = f"expected one of {', '.join(APIS)}"
        raise SettingsError(f'{where}"{asked}" is not an API{did_you_mean(asked, APIS)}; {expected}.')
    return asked


def model_name_for(asked: str | None, settings: Settings, environment: Mapping[str, str]) -> str:
    if "model" in settings.managed:
        return settings.model or ""
    return asked or environment.get("WAVE_MODEL") or settings.model or ""


def endpoint_for(
    wishes: ModelWishes, settings: Settings, environment: Mapping[str, str], *, model: str = ""
) -> ModelEndpoint | None:
    """The endpoint that flags, environment and settings name together. None: they name neither a URL nor a key.

    A provider's key goes only to that provider's own host, or to the one that its base-URL variable names, and a
    stored key only to the server it was stored for. Raises `SettingsError` if what they name does not fit together.
    """
    asked = _asked_api(wishes.api, settings, environment, model)
    own_key = wishes.api_key or environment.get("WAVE_API_KEY")
    has_key = bool(own_key or settings.api_key_helper)
    url, provider, url_name = _url(wishes, settings, environment, asked, has_key=has_key)
    if url is None:
        return None
    by_key = provider is not None
    provider = provider or next((one for one in PROVIDERS if _origin(one.url) == _origin(url)), None)
    api = asked or _api_of(url) or (provider.apis[0] if provider else "openai-chat")
    if provider is not None and _origin(provider.url) == _origin(url) and api not in provider.apis:
        host, spoken = urlsplit(provider.url).hostname, " and ".join(provider.apis)
        raise SettingsError(
            f'{host} does not speak the API "{api}", only {spoken}. Change --api (or WAVE_API, or the setting api), '
            "or the base URL."
        )
    known = asked or _api_of(url) or any(_origin(one.url) == _origin(url) for one in PROVIDERS)
    found = _with_key(url, api, own_key, settings, environment)
    key_name = provider.keys[0] if provider else "WAVE_API_KEY"
    found = found or ModelEndpoint(url, None, api, key_name=key_name, hint=_unused_keys(environment))
    hint = found.hint or (_other_keys(url, environment) if by_key else "")
    bearer = found.bearer or wants_tokens(url)
    return replace(found, assumed=not known, url_name=url_name, hint=hint, bearer=bearer)


def wants_tokens(url: str) -> bool:
    """Whether the provider at this URL wants its keys as tokens, whatever the API."""
    return any(one.bearer for one in PROVIDERS if _origin(one.url) == _origin(url))


def _with_key(
    url: str, api: str, own_key: str | None, settings: Settings, environment: Mapping[str, str]
) -> ModelEndpoint | None:
    """The endpoint with the key that belongs there; None if there is none."""
    if "api_key_helper" in settings.managed:
        return ModelEndpoint(url, None, api, key_name="the setting apiKeyHelper")
    if own_key:
        return ModelEndpoint(url, own_key, api)
    for one in PROVIDERS:
        variable = _key_variable(one, environment)
        if variable and _origin(environment.get(one.url_variable) or one.url) == _origin(url):
            is_token = one.bearer or variable.endswith("_TOKEN")
            return ModelEndpoint(url, environment[variable], api, bearer=is_token, key_name=variable)
    if settings.api_key_helper:
        return ModelEndpoint(url, None, api, key_name="the setting apiKeyHelper")
    if stored := _stored_key(url, environment):
        return ModelEndpoint(url, stored, api, key_name="keys.json (wave setup)")
    return None


def _stored_key(url: str, environment: Mapping[str, str]) -> str | None:
    home = wave_home(environment)
    if not os.path.exists(home / STORED_KEYS):
        return None
    from wave_agent.settings.stored_keys import stored_key  # lazy: few people have any

    return stored_key(home, url)


def _asked_api(asked: str | None, settings: Settings, environment: Mapping[str, str], model: str) -> str | None:
    if "api" in settings.managed:
        return settings.api
    if not asked and (stated := environment.get("WAVE_API")):
        return api_name(stated, "WAVE_API: ")
    found = asked or settings.models.get(model, {}).get("api") or settings.api
    return api_name(found) if found else None


def _url(
    wishes: ModelWishes,
    settings: Settings,
    environment: Mapping[str, str],
    api: str | None,
    *,
    has_key: bool,
) -> tuple[str | None, Provider | None, str]:
    """The base URL, the provider whose variables name it, and where it was set, unless the caller just named it."""
    if "base_url" in settings.managed:
        return settings.base_url, None, "The setting baseUrl"
    if wishes.base_url:
        return wishes.base_url, None, ""
    if stated := environment.get("WAVE_BASE_URL"):
        return stated, None, "WAVE_BASE_URL"
    able = sorted((one for one in PROVIDERS if api is None or api in one.apis), key=lambda one: one.apis[0] != api)
    known = [one for one in able if _key_variable(one, environment) or environment.get(one.url_variable)]
    if has_key:  # a key of another provider says nothing about where this one belongs
        known = [one for one in known if environment.get(one.url_variable)]
    if known and (named := environment.get(known[0].url_variable)):
        return named, known[0], known[0].url_variable
    if settings.base_url:
        return settings.base_url, None, "The setting baseUrl"
    if known:
        return known[0].url, known[0], ""
    usual = able[0] if api else next(one for one in PROVIDERS if one.name == "OpenAI")
    return usual.url if has_key else None, None, ""


def _key_variable(provider: Provider, environment: Mapping[str, str]) -> str | None:
    return next((name for name in provider.keys if environment.get(name)), None)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return url, None, None
    return parts.scheme, parts.hostname, port or {"http": 80, "https": 443}.get(parts.scheme)


def _api_of(url: str) -> str | None:
    """The API that the end of a URL names."""
    path = url.strip().partition("?")[0].rstrip("/")
    return next((api for end, api in _BY_END.items() if path.endswith(end)), None)


def _other_keys(url: str, environment: Mapping[str, str]) -> str:
    """How to use a second provider, if several keys are set: the model may be that one's."""
    for one in PROVIDERS:
        variable = _key_variable(one, environment)
        if variable and _origin(url) not in {_origin(one.url), _origin(environment.get(one.url_variable, ""))}:
            return f"{variable} is set, too: --base-url {one.url} uses it."
    return ""


def _unused_keys(environment: Mapping[str, str]) -> str:
    for one in PROVIDERS:
        if variable := _key_variable(one, environment):
            host = urlsplit(environment.get(one.url_variable) or one.url).hostname
            return (
                f"{variable} is set, but is sent only to {host}: to use it here, set {one.url_variable} to this URL, "
                "or put the key into WAVE_API_KEY."
            )
    return ""


def model_for(
    wishes: ModelWishes,
    settings: Settings,
    environment: Mapping[str, str],
    *,
    model: str = "",
    home: Path | None = None,
) -> Model:
    """A client for the models that flags, environment and settings describe. Raises `SettingsError`, `ModelError`.

    `home` remembers what the server says about its models; without it, the server is asked each time.
    """

    def client(name: str) -> Model:
        endpoint = endpoint_for(wishes, settings, environment, model=name)
        if endpoint is None:
            return _NoModel(_asked_api(wishes.api, settings, environment, name), environment)
        return client_of(endpoint, settings, environment, home)

    first = client(model)
    if any("api" in facts for facts in settings.models.values()):
        return _ByModel(model, first, client)
    return first


def client_of(
    endpoint: ModelEndpoint, settings: Settings, environment: Mapping[str, str], home: Path | None = None
) -> "ModelClient":
    from wave_agent.models.window_memory import WindowMemory  # lazy: an agent with its own model never needs it

    _require_url(endpoint)
    endpoint = with_remembered_api(endpoint, home)
    return client_for(
        endpoint.api,
        base_url=endpoint.url,
        api_key=endpoint.key,
        key_source=_key_source(settings, environment),
        bearer=endpoint.bearer,
        key_name=endpoint.key_name,
        hint=endpoint.hint,
        environment=environment,
        needs_name=True,
        limits={name: limits_in(facts) for name, facts in settings.models.items()},
        memory=None if home is None else WindowMemory(home / "windows.json"),
        other_api=partial(_other_api, endpoint, home) if endpoint.assumed else None,
    )


def _require_url(endpoint: ModelEndpoint) -> None:
    from wave_agent.http.routes import chat_endpoint  # lazy, like the client, which imports it too

    try:
        chat_endpoint(endpoint.url)
    except ModelError as error:
        raise ModelError(f"{endpoint.url_name}: {error}" if endpoint.url_name else str(error)) from None


def with_remembered_api(endpoint: ModelEndpoint, home: Path | None) -> ModelEndpoint:
    """The endpoint with the API that its server was found to speak, not long ago."""
    if not endpoint.assumed or home is None or not os.path.exists(home / _ASKED_SERVERS):
        return endpoint
    from wave_agent.models.api_memory import ApiMemory  # lazy: few servers need to be asked

    found = ApiMemory(home / _ASKED_SERVERS).recall(public_url(endpoint.url))
    return replace(endpoint, api=found) if found in APIS else endpoint


async def _other_api(endpoint: ModelEndpoint, home: Path | None, refused: str, key: str) -> Api | None:
    """What the server speaks instead of the API that it has refused; remembered. None if it does not say."""
    from wave_agent.models.api_memory import ApiMemory  # lazy, as the next one: few servers need to be asked
    from wave_agent.models.api_question import spoken_api

    found = await spoken_api(endpoint.url, key, bearer=endpoint.bearer)
    if found is None or found == refused:
        return None
    if home is not None:
        ApiMemory(home / _ASKED_SERVERS).keep(public_url(endpoint.url), found)
    return api_for(found, bearer=endpoint.bearer)


async def key_of(endpoint: ModelEndpoint, settings: Settings, environment: Mapping[str, str]) -> str | None:
    """The endpoint's key, or what the user's `apiKeyHelper` prints. Raises `ModelError` if that fails."""
    source = _key_source(settings, environment)
    return endpoint.key if endpoint.key or source is None else await source.key()


def _key_source(settings: Settings, environment: Mapping[str, str]) -> Any:
    if not settings.api_key_helper:
        return None
    from wave_agent.models.key_helper import KeyHelper  # lazy: few people have one

    return KeyHelper(settings.api_key_helper, environment)


class _ByModel:
    """The clients of models that speak different APIs, each made when its model is asked first."""

    def __init__(self, name: str, model: Model, client: Callable[[str], Model]) -> None:
        self._clients = {name: model}
        self._client = client
        self._first = name

    def _of(self, name: str) -> Any:
        if name not in self._clients:
            self._clients[name] = self._client(name)
        return self._clients[name]

    def __repr__(self) -> str:
        return repr(self._clients[self._first])

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        return self._of(request.model).stream(request)

    def why_not_ready(self, model: str) -> str:
        return self._of(model).why_not_ready(model)

    async def prepare(self) -> None:
        prepare: Any = getattr(self._clients[self._first], "prepare", None)
        if prepare is not None:
            await prepare()

    async def context_window(self, model: str) -> Window | None:
        ask = getattr(self._of(model), "context_window", None)
        return None if ask is None else await ask(model)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()


class _NoModel:
    """No endpoint is configured. Raised with the first request, since creating an agent does not need a model."""

    def __init__(self, api: str | None, environment: Mapping[str, str]) -> None:
        self._api = api
        self._environment = environment

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        from wave_agent.models.nearby import advice  # lazy: probes ports

        raise ModelError(f"{self.why_not_ready(request.model)} {await asyncio.to_thread(advice, self._environment)}")
        yield

    def why_not_ready(self, name: str = "") -> str:
        usual = next((one for one in PROVIDERS if one.apis[0] == (self._api or "openai-chat")), PROVIDERS[1])
        if name:
            return (
                f"No server is configured for the model {name}. Run wave setup, or set WAVE_BASE_URL, and WAVE_API_KEY "
                f"if the server needs a key; or the key of a provider, such as {usual.keys[0]}."
            )
        return (
            "No model is configured. Run wave setup, or set WAVE_BASE_URL and WAVE_MODEL, and WAVE_API_KEY if the "
            f"server needs a key; or WAVE_MODEL and the key of a provider, such as {usual.keys[0]}."
        )

    async def close(self) -> None:
        pass
