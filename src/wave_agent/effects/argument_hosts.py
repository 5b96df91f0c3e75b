"""The hosts that the arguments of a tool name, which is not known itself."""

import re
from collections.abc import Iterator

from wave_agent.effects.argument_texts import Texts
from wave_agent.effects.hosts import normal_host
from wave_agent.effects.values import ANY_HOST
from wave_agent.lazy_regex import lazy_regex

_MOST = 1000
_LONGEST = 4096
_LONGEST_ADDRESS = 64
_MOST_WORDS = 4000
_LONGEST_NAME = 3 * 253
"""Characters of a host's name, percent-encoded."""
_SEPARATORS = lazy_regex(r"[\s,;|<>()\[\]{}\"'`\u2018-\u201f]+")
_AROUND_NAMES = lazy_regex(r"[\s,;|<>()\[\]{}\"'`\u2018-\u201f=/\\:@?#&!+$^~]+")
"""What no name of a host contains."""
_AFTER_SLASHES = lazy_regex(r"(?<![/\\])[/\\]{2,}+([^/\\?#\s\"'<>`]+)")
_WITH_BACKSLASHES = lazy_regex(r"(?<!/)/{2,}+([^/?#\s\"'<>`]+)")
"""To browsers, a backslash ends the host in `http://a\\@b/`. To other programs, it is part of what precedes the `@`."""
_WITHOUT_SLASHES = lazy_regex(r"(?<![A-Za-z0-9+.-])(?:https?|wss?|ftp):[/\\]*+([^/\\?#\s\"'<>`]+)", re.IGNORECASE)
"""To browsers, `https:example.com` has a host."""
_BROKEN = lazy_regex(r"[\t\r\n]+")
"""URLs are read without these."""
_AUTHORITY = lazy_regex(r"(?:.*@)?(\[[0-9A-Fa-f:.%]+\]|[^:@]+)(?::\d*)?", re.DOTALL)
_HOST_AND_PORT = lazy_regex(r"(\[[0-9A-Fa-f:.%]+\]|[^\s/:@]+):\d{1,5}(?:[/?#].*)?", re.DOTALL)
_AT_HOST = lazy_regex(r"[^\s/@:]+(?::[^\s/@]*)?@(\[[0-9A-Fa-f:.%]+\]|[^\s/@:]+)(?:[:/].*)?", re.DOTALL)
_ADDRESS = lazy_regex(r"\d{1,3}(?:\.\d{1,3}){3}|\[?[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]?")
_HOST_FIELD = lazy_regex(
    r"(?:.*(?:host|domain|url|uri|server|endpoint|address|site|origin|remote|proxy|registry|webhook))s?", re.IGNORECASE
)
"""Names of fields whose text may be a bare host."""


def hosts_in(texts: Texts) -> tuple[str, ...]:
    """Every host that a text names: in a URL, as `host:port`, `user@host` or an address, and alone in fields such as
    `host` or `url`. If there are too many, also `ANY_HOST`."""
    found: dict[str, None] = {}
    for one in texts.texts:
        for name in _authorities(one.text):
            _add(found, name)
        text = one.text.strip()
        if _HOST_FIELD.fullmatch(one.field[:_LONGEST]) and "://" not in text and not text.startswith(("/", ".", "~")):
            _add(found, re.split(r"[/?#]", text, maxsplit=1)[0])
        if len(found) > _MOST:
            break
    if len(found) > _MOST or not texts.complete:
        found[ANY_HOST] = None
    return tuple(found)


def bare_hosts_in(texts: Texts) -> tuple[str, ...]:
    """The words with a dot in them that would be hosts to a tool that takes them for such. If there are too many, also
    `ANY_HOST`."""
    found: dict[str, None] = {}
    for one in texts.texts:
        for word in _AROUND_NAMES.split(one.text):
            name = word.strip(".*_-")
            if ("." in name or name.casefold() == "localhost") and len(name) <= _LONGEST_NAME:
                host = normal_host(name)
                found |= {host: None} if host != ANY_HOST else {}
            if len(found) > _MOST_WORDS:
                return (*found, ANY_HOST)
    return tuple(found)


def _authorities(text: str) -> Iterator[str]:
    whole = _BROKEN.sub("", text) if len(text) <= _LONGEST else text
    for form in dict.fromkeys((text, whole)):
        for shape in (_AFTER_SLASHES, _WITH_BACKSLASHES, _WITHOUT_SLASHES):
            for authority in dict.fromkeys(shape.findall(form)):
                yield from dict.fromkeys((authority, _SEPARATORS.split(authority)[0]))
    for word in dict.fromkeys(_SEPARATORS.split(text)):
        if len(word) > _LONGEST:
            continue
        if shape := _HOST_AND_PORT.fullmatch(word) or _AT_HOST.fullmatch(word):
            yield shape[1]
        elif len(word) <= _LONGEST_ADDRESS and _ADDRESS.fullmatch(word):
            yield word if "]" in word or ":" not in word else f"[{word}]"


def _add(found: dict[str, None], authority: str) -> None:
    if len(authority) > _LONGEST:
        return
    shape = _AUTHORITY.fullmatch(authority)
    host = normal_host(shape[1]) if shape else ANY_HOST
    if host != ANY_HOST and host:
        found[host] = None
