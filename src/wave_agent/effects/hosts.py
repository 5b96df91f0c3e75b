"""One spelling for each host: `localhos%74`, full-width letters, `127.1` and `0x7f000001` name what programs reach."""

import re
from urllib.parse import unquote_to_bytes

from wave_agent.effects.values import ANY_HOST
from wave_agent.lazy_regex import lazy_regex

_PLAIN = lazy_regex(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_NUMBER = lazy_regex(r"0x[0-9a-f]*|[0-9]+")
_ESCAPED = lazy_regex(r"(?:%[0-9a-fA-F]{2}|[^%])*")


def normal_host(name: str) -> str:
    """The name or address in its usual form: lower case, percent-decoded, in ASCII. `*` if it has none."""
    bare = name.strip("[]")
    if ":" in bare:
        return _address(bare.partition("%")[0])  # without the name of an interface
    if not _ESCAPED.fullmatch(bare):
        return ANY_HOST
    try:
        text = unquote_to_bytes(bare).decode()
        if not text.isascii():
            text = _in_ascii(text)
    except UnicodeError:
        return ANY_HOST
    text = text.rstrip(".").lower()
    if not _PLAIN.fullmatch(text):
        return ANY_HOST
    return _dotted(text) or text


def _in_ascii(text: str) -> str:
    """As resolvers send it. Raises `UnicodeError`."""
    from unicodedata import normalize  # lazy: such names are rare

    text = re.sub("[\u3002\uff0e\uff61]", ".", normalize("NFKC", text))
    return text if text.isascii() else text.rstrip(".").encode("idna").decode()


def _dotted(text: str) -> str | None:
    """An IPv4 address as `inet_aton` reads it: one to four numbers, in decimal, octal or hexadecimal."""
    parts = text.split(".")
    if len(parts) > 4 or not all(map(_NUMBER.fullmatch, parts)):
        return None
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:
        return None
    *first, last = numbers
    if any(number > 255 for number in first) or last >= 256 ** (4 - len(first)):
        return None
    value = sum(number << (24 - 8 * at) for at, number in enumerate(first)) + last
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))


def _number(text: str) -> int:
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") else 10)


def _address(text: str) -> str:
    from ipaddress import IPv6Address  # lazy: such addresses are rare

    try:
        found = IPv6Address(text)
    except ValueError:
        return ANY_HOST
    return str(found.ipv4_mapped or found)
