"""Where options end and operands start, command by command."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.values import Word


class OptionTable(Struct, frozen=True):
    """The options of a command: which of them take the next word."""

    values: str = ""
    """Letters of short options that take a value. All other letters are flags."""
    longs: tuple[str, ...] = ()
    """Long options whose value may be the next word."""
    attached: str = ""
    """Letters of short options whose optional value follows in the same word: `-i.bak`."""


class Option(Struct, frozen=True):
    name: str
    value: Word | None = None


def read(words: Sequence[Word], options: OptionTable, *, mixed: bool = False) -> tuple[list[Option], list[Word]]:
    """Options and operands after the name. `mixed`: options may also come after operands."""
    found: list[Option] = []
    operands: list[Word] = []
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        text = word.text
        if text == "--":
            return found, operands + rest
        if len(text) < 2 or text[0] != "-":
            operands.append(word)
            if not mixed:
                return found, operands + rest
        elif text.startswith("--"):
            found.append(_long(word, options, rest))
        else:
            found += _short(word, options, rest)
    return found, operands


def _long(word: Word, options: OptionTable, rest: list[Word]) -> Option:
    name, equals, value = word.text.partition("=")
    if equals:
        return Option(name, Word(value, word.static, word.glob and word.glob.partition("=")[2]))
    takes = any(long.startswith(name) for long in options.longs)
    return Option(name, rest.pop(0) if takes and rest else None)


def _short(word: Word, options: OptionTable, rest: list[Word]) -> Iterator[Option]:
    for at, letter in enumerate(word.text[1:], 2):
        attached = word.text[at:]
        if letter in options.attached:
            yield Option(f"-{letter}", Word(attached, word.static) if attached else None)
            return
        if letter not in options.values:
            yield Option(f"-{letter}")
            continue
        yield Option(f"-{letter}", Word(attached, word.static) if attached else rest.pop(0) if rest else None)
        return


def several(operands: Sequence[Word]) -> list[Word]:
    """The operands, with every pattern twice: it may become more than one of them."""
    return [word for one in operands for word in ((one, one) if one.glob is not None else (one,))]


_ASSIGNMENT = lazy_regex(r"[A-Za-z_]\w*\+?=|-$")


def without_assignments(words: Sequence[Word]) -> list[Word]:
    """Also without the `-` of `env - A=1 COMMAND`."""
    at = 0
    while at < len(words) and _ASSIGNMENT.match(words[at].text):
        at += 1
    return list(words[at:])


def value_of(options: Sequence[Option], *names: str) -> Word | None:
    return next(iter(values_of(options, *names)), None)


def values_of(options: Sequence[Option], *names: str) -> list[Word]:
    """The values of these options. Long ones may be abbreviated."""
    return [option.value for option in options if option.value is not None and _is_one_of(option.name, names)]


def has(options: Sequence[Option], *names: str) -> bool:
    """Whether one of these may be given. Long ones may be abbreviated: programs accept unambiguous prefixes, and do
    nothing with ambiguous ones."""
    return any(_is_one_of(option.name, names) for option in options)


def says(options: Sequence[Option], *names: str) -> bool:
    """Whether one of these is spelled out: for options that make a command do less."""
    return any(option.name in names for option in options)


def _is_one_of(given: str, names: Sequence[str]) -> bool:
    return given in names or (len(given) > 2 and given.startswith("--") and any(one.startswith(given) for one in names))
