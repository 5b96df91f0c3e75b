"""Keys and passwords in the entry of a server: hidden wherever the entry is shown, or the server's own words are."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import parse_qsl

from wave_agent.lazy_regex import lazy_regex
from wave_agent.mcp.values import Server, ServerEntry

HIDDEN = "[hidden]"
_SECRET = lazy_regex(r"key|token|secret|passw|pwd|auth|credential|bearer|cookie|session", re.IGNORECASE)
_SHORTEST = 6
"""Characters of a secret: a shorter one would hide parts of ordinary words."""


def is_secret_name(name: str) -> bool:
    """Whether a variable, an option or a parameter of this name usually holds a secret."""
    return _SECRET.search(name) is not None


def shown_words(words: Sequence[str]) -> list[str]:
    """A command without the values of options such as `--token`."""
    shown: list[str] = []
    hides = False
    for word in words:
        name, equals, _ = word.partition("=")
        is_option = name.startswith("-") and is_secret_name(name)
        is_variable = bool(equals) and name.isidentifier() and is_secret_name(name)
        if hides and not word.startswith("-"):
            shown.append(HIDDEN)
        else:
            shown.append(f"{name}={HIDDEN}" if equals and (is_option or is_variable) else word)
        hides = is_option and not equals
    return shown


def shown_url(url: str) -> str:
    """A URL without user, password, and the values of its query."""
    place, mark, query = url.partition("?")
    scheme, separator, rest = place.rpartition("://")
    authority, slash, path = rest.partition("/")
    names = "&".join(f"{part.partition('=')[0]}={HIDDEN}" for part in query.split("&"))
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}{mark}{names if mark else ''}"


def unfilled(text: str, server: Server, environment: Mapping[str, str] | None = None) -> str:
    """The text with secrets from the environment as the entry has them: `${TOKEN}`."""
    values = os.environ if environment is None else environment
    for name in server.variables:
        value = values.get(name, "")
        if is_secret_name(name) and len(value) >= _SHORTEST:
            text = text.replace(value, f"${{{name}}}")
    return text


def target_of(server: Server) -> str:
    """What runs, or where the server is, for a person."""
    import shlex  # lazy: few commands print one

    from wave_agent.sessions.masking import mask

    entry = server.entry
    shown = shown_url(entry.url) if entry.url else shlex.join([entry.command, *shown_words(entry.args)])
    return mask(unfilled(shown.replace(f"'{HIDDEN}'", HIDDEN), server))


def without_secrets(text: str, entry: ServerEntry) -> str:
    """What a server or its transport says, without the secrets that it was given."""
    for secret in sorted(_secrets(entry), key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text


def _secrets(entry: ServerEntry) -> Iterator[str]:
    yield from (value for name, value in entry.env.items() if is_secret_name(name))
    for value in entry.headers.values():
        yield value
        yield value.rpartition(" ")[2]  # after `Bearer`
    place, _, query = entry.url.partition("?")
    yield from (value for _, value in parse_qsl(query))
    yield place.rpartition("://")[2].partition("/")[0].rpartition("@")[0].partition(":")[2]
    words = list(entry.args)
    yield from (
        now.partition("=")[2] or now
        for now, shown in zip(words, shown_words(words), strict=True)
        if shown != now
    )  # fmt: skip
