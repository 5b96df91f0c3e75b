"""What commands print, if that is obvious."""

import re

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.values import Word

PRINTING = frozenset({"which", "type", "command", "echo", "yes", "printf", "builtin"})


def printed(command: tuple[Word, ...]) -> str | None:
    """What a simple command prints, if that is obvious. Of a wildcard, it prints the names that match."""
    if not command or not all(word.static and word.glob is None for word in command):
        return None
    name, *arguments = (word.text for word in command)
    if name in ("which", "type") or (name == "command" and arguments[:1] in (["-v"], ["-V"])):
        return arguments[-1] if arguments else None
    escapes = False
    while name == "echo" and arguments and re.fullmatch("-[neE]+", arguments[0]):
        escapes |= "e" in arguments.pop(0)
    if name in ("echo", "yes"):
        text = " ".join(arguments)
        # The meaning of backslashes depends on the shell and its settings.
        return decode(text) if escapes or "\\" not in text else f"{text}\n{decode(text)}"
    return _formatted(arguments) if name == "printf" else None


def _formatted(arguments: list[str]) -> str | None:
    if arguments[:1] == ["--"]:
        arguments = arguments[1:]
    if not arguments:
        return None
    form, values = decode(arguments[0]), arguments[1:]
    fields = re.findall("%[sbq]", form)
    if "%" in re.sub("%[sbq%]", "", form) or len(values) > _MOST_VALUES:
        return None
    filled: list[str] = []
    while not filled or (fields and values):
        filled.append(re.sub("%[sbq%]", lambda field: _field(field[0], values), form))
    return "".join(filled)


_MOST_VALUES = 200


def _field(form: str, values: list[str]) -> str:
    if form == "%%":
        return "%"
    value = values.pop(0) if values else ""
    return decode(value) if form == "%b" else value


_ESCAPE = lazy_regex(
    r"\\(?:x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<short>[0-9a-fA-F]{1,4})|U(?P<long>[0-9a-fA-F]{1,8})"
    r"|0?(?P<octal>[0-7]{1,3})|c(?P<control>.)|(?P<one>.))",
    re.DOTALL,
)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}


def decode(text: str) -> str:
    """Decodes backslashes like `$'…'`, `echo -e` and `printf`."""
    return _ESCAPE.sub(_decoded, text)


def _decoded(found: re.Match[str]) -> str:
    if digits := found["hex"] or found["short"] or found["long"]:
        return chr(min(int(digits, 16), 0x10FFFF))
    if found["octal"]:
        return chr(int(found["octal"], 8) & 0xFF)
    if found["control"]:
        return chr(ord(found["control"]) & 0x1F)
    return _NAMED.get(found["one"], found["one"])
