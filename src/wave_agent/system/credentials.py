"""The agent's own credentials, which hooks, tools and messages must not see."""

from collections.abc import Mapping

AGENT_KEYS = (
    "WAVE_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "MISTRAL_API_KEY",
    "WAVE_UPLOAD_TOKEN",
)
ENDPOINTS = (
    "WAVE_BASE_URL",
    "ANTHROPIC_BASE_URL",
    "OPENAI_BASE_URL",
    "GEMINI_BASE_URL",
    "OPENROUTER_BASE_URL",
    "MISTRAL_BASE_URL",
)
"""A URL may contain a user and a password, or a key in its query."""
_TELEMETRY = "OTEL_"
"""Begins the variables about telemetry. Some hold keys, and all of them are about this program, not about its tools."""


def is_own(name: str) -> bool:
    """Whether this variable is for the agent alone."""
    return name in AGENT_KEYS or name.startswith(_TELEMETRY)


def without_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """The agent's environment in the form that hooks and tools get."""
    kept = {name: value for name, value in environment.items() if not is_own(name)}
    return {**kept, **{name: public_url(kept[name]) for name in ENDPOINTS if name in kept}}


def public_url(url: str) -> str:
    """The URL without what may be secret: user, password and query."""
    return without_userinfo(url.partition("?")[0])


def query_values(url: str) -> list[str]:
    """What may be secret in the query of a URL, such as a key: as it is, and as it is written there."""
    query = url.partition("?")[2].partition("#")[0]
    if not query:
        return []
    from urllib.parse import unquote_plus  # lazy: few base URLs have a query

    written = [pair.partition("=")[2] for pair in query.split("&")]
    return [value for one in written if one for value in dict.fromkeys((one, unquote_plus(one)))]


def without_userinfo(url: str) -> str:
    """The URL without user and password. Also works for text that merely looks like a URL."""
    scheme, separator, rest = url.rpartition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"
