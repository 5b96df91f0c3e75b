"""The APIs by name, and the providers that people have keys for."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from wave_agent.models.base import Api
    from wave_agent.models.client import ModelClient

_CLIENTS: Mapping[str, tuple[str, str, str]] = {
    "openai-chat": ("wave_agent.models.openai_chat", "OpenAIChatModel", "OpenAIChat"),
    "openai-responses": ("wave_agent.models.openai_responses", "OpenAIResponsesModel", "OpenAIResponses"),
    "anthropic": ("wave_agent.models.anthropic", "AnthropicModel", "Anthropic"),
}
"""Modules, with the names of a client and of what it needs to know about the API."""
APIS = tuple(_CLIENTS)
"""The names that `--api` and the settings accept."""


def client_for(api: str, **options: Any) -> "ModelClient":
    """A client that speaks this API, with the options of `ModelClient`. No other API is imported."""
    module, name, _ = _CLIENTS[api]
    return getattr(import_module(module), name)(**options)


def api_for(name: str, *, bearer: bool = False) -> "Api":
    """How this API is written and read. `bearer`: the key is a token that every API sends in the same way."""
    module, _, found = _CLIENTS[name]
    api = getattr(import_module(module), found)
    return api(bearer=bearer) if name == "anthropic" else api()


class Provider(Struct, frozen=True):
    """A provider, and the environment variables that people set for it."""

    name: str
    keys: tuple[str, ...]
    url_variable: str
    """Names another server that gets the key instead."""
    url: str
    apis: tuple[str, ...]
    """The APIs that it speaks, the usual one first."""
    bearer: bool = False
    """It wants its keys as tokens, whatever the API."""


PROVIDERS = (
    Provider(
        "Anthropic",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        "ANTHROPIC_BASE_URL",
        "https://api.anthropic.com",
        ("anthropic", "openai-chat"),
    ),
    Provider(
        "OpenAI",
        ("OPENAI_API_KEY",),
        "OPENAI_BASE_URL",
        "https://api.openai.com/v1",
        ("openai-chat", "openai-responses"),
    ),
    Provider(
        "Gemini",
        ("GEMINI_API_KEY",),
        "GEMINI_BASE_URL",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("openai-chat",),
    ),
    Provider(
        "OpenRouter",
        ("OPENROUTER_API_KEY",),
        "OPENROUTER_BASE_URL",
        "https://openrouter.ai/api/v1",
        ("openai-chat", "openai-responses", "anthropic"),
        bearer=True,
    ),
    Provider("Mistral", ("MISTRAL_API_KEY",), "MISTRAL_BASE_URL", "https://api.mistral.ai/v1", ("openai-chat",)),
)
"""In the order in which their variables are looked at."""
