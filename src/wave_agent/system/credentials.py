"""The agent's own credentials, which hooks, tools and messages must not see."""

from collections.abc import Mapping

AGENT_KEYS = ("WAVE_API_KEY", "OPENAI_API_KEY")
ENDPOINTS = ("WAVE_BASE_URL", "OPENAI_BASE_URL")
"""A URL may contain a user and a password."""


def without_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """The agent's environment in the form that hooks and tools get."""
    kept = {name: value for name, value in environment.items() if name not in AGENT_KEYS}
    return {**kept, **{name: without_userinfo(kept[name]) for name in ENDPOINTS if name in kept}}


def without_userinfo(url: str) -> str:
    """The URL without user and password. Also works for text that merely looks like a URL."""
    scheme, separator, rest = url.rpartition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"
