"""Servers that can be chosen: programs on this machine by their usual port, and the providers that people have keys
for."""

import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import ModelError, SettingsError
from wave_agent.http.routes import chat_endpoint
from wave_agent.models.apis import PROVIDERS

LOCAL_PORTS = "WAVE_LOCAL_PORTS"
"""Replaces the usual ports: `Ollama=11435,vLLM=8001`, or nothing to look for none."""
_LOCAL = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}


class ModelServer(Struct, frozen=True):
    """A server that may list models."""

    name: str
    """Empty if it is not known."""
    base_url: str
    api: str = "openai-chat"
    keys: tuple[str, ...] = ()
    """The environment variables that hold its key. None for a program on this machine."""


def hosted_servers() -> tuple[ModelServer, ...]:
    """Services on the internet."""
    return tuple(ModelServer(one.name, one.url, one.apis[0], one.keys) for one in PROVIDERS)


def local_servers(environment: Mapping[str, str]) -> tuple[ModelServer, ...]:
    """Programs on this machine, at their usual ports or at those in `WAVE_LOCAL_PORTS`. Raises `SettingsError`."""
    stated = environment.get(LOCAL_PORTS)
    ports = _LOCAL.items() if stated is None else [_port(entry) for entry in stated.split(",") if entry.strip()]
    return tuple(ModelServer(name, f"http://127.0.0.1:{port}/v1") for name, port in ports)


def _port(entry: str) -> tuple[str, int]:
    name, _, port = (part.strip() for part in entry.partition("="))
    if not name or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise SettingsError(f'{LOCAL_PORTS}: "{entry.strip()}" is not valid; expected something like Ollama=11434.')
    return next((known for known in _LOCAL if known.lower() == name.lower()), name), int(port)


def server_at(base_url: str, environment: Mapping[str, str]) -> ModelServer:
    """The server at this URL, judging by scheme, host and port. One without a name if it is not known."""
    for one in (*local_servers(environment), *hosted_servers()):
        if origin_of(one.base_url) == origin_of(base_url):
            return replace(one, base_url=base_url)
    return ModelServer("", base_url)


def origin_of(url: str) -> str:
    """Scheme, host and port as the model's client reads them: what a key is bound to. Empty if this is not a URL."""
    try:
        return chat_endpoint(url).place.origin
    except ModelError:
        return ""


def advice(environment: Mapping[str, str]) -> str:
    """Where to get a model: a local server if one listens on a usual port, otherwise the demo."""
    try:
        usual = local_servers(environment)
    except SettingsError as error:
        return str(error)
    for server in usual:
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", urlsplit(server.base_url).port)) == 0:
                return f"Something is listening on {server.name}'s usual port: wave setup finds out what."
    return "wave demo works without a model."
