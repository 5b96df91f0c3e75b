"""Words: quotes, backslashes, braces and known variables resolved."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, product
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from wave_agent.shell.values import Word, escape

if TYPE_CHECKING:
    from tree_sitter import Node

Variables: TypeAlias = Mapping[str, tuple[str, ...]]
"""The values that a variable may have, as far as they are known."""

ENVIRONMENT = ""
"""A name that is among the variables if all of the environment is: one that is not may then be empty as well."""
MOST_READINGS = 16
"""Of one word or command. Beyond, only the first ones are looked at, and the line does not count as understood."""
_MOST_BRACES = 64


class Segment(Struct, frozen=True):
    """A part of a word that was treated alike."""

    text: str
    quoted: bool = False
    static: bool = True
    split: bool = False
    """It came out of an expansion without quotes: blanks in it part words."""
    prints: str | None = None


Reading: TypeAlias = tuple[Segment, ...]


def source(node: "Node") -> str:
    return (node.text or b"").decode(errors="replace")


def words(node: "Node", variables: Variables) -> list[tuple[Word, ...]]:
    """What a node may be expanded to: for every reading the words that come of it."""
    return [_fields(reading, variables) for reading in _readings(node, variables)]


def combinations(nodes: Iterable["Node"], variables: Variables) -> tuple[list[tuple[Word, ...]], bool]:
    """Whole commands, and whether these are all that it may be."""
    each = [words(node, variables) for node in nodes]
    found = list(islice(product(*each), MOST_READINGS + 1))
    lines = [tuple(word for part in one for word in part) for one in found[:MOST_READINGS]]
    return lines, len(found) <= MOST_READINGS


# ------------------------------------------------------------------------------------------------------------- readings


def _readings(node: "Node", variables: Variables, *, in_string: bool = False) -> list[Reading]:
    reader = _READERS.get(node.type)
    found = _literal(node) if reader is None else reader(node, variables)
    if in_string:
        found = [
            tuple(Segment(part.text, quoted=True, static=part.static, prints=part.prints) for part in reading)
            for reading in found
        ]
    return found


def _literal(node: "Node") -> list[Reading]:
    return [tuple(_unescape(source(node)))]


def _unescape(text: str) -> Iterator[Segment]:
    for plain, escaped in re.findall(r"([^\\]+)|\\(.|\n|$)", text, re.DOTALL):
        yield Segment(plain) if plain else Segment("" if escaped == "\n" else escaped, quoted=True)


def _raw(node: "Node", _: Variables) -> list[Reading]:
    return [(Segment(source(node)[1:-1], quoted=True),)]


def _ansi(node: "Node", _: Variables) -> list[Reading]:
    return [(Segment(decode(source(node)[2:-1]), quoted=True),)]


def _string(node: "Node", variables: Variables) -> list[Reading]:
    """Its text stands between the expansions; the tree does not name every blank."""
    if node.text == b'"$@"':
        return _variable(node.named_children[0], variables)  # the one expansion that quotes do not keep together
    whole, start = node.text or b"", node.start_byte
    inner = [child for child in node.named_children if child.type != "string_content"]
    opening = 2 if whole.startswith(b"$") else 1
    parts: list[list[Reading]] = []
    at = opening
    for child in inner:
        parts += [[_quoted_text(whole[at : child.start_byte - start])], _readings(child, variables, in_string=True)]
        at = child.end_byte - start
    return _joined([*parts, [_quoted_text(whole[at : max(len(whole) - 1, at)])]])


def _quoted_text(text: bytes) -> Reading:
    plain = re.sub(r'\\([$`"\\\n])', lambda found: found[1].strip("\n"), text.decode(errors="replace"))
    return (Segment(plain, quoted=True),)


def _concatenation(node: "Node", variables: Variables) -> list[Reading]:
    return _joined([_readings(child, variables) for child in node.children])


def _joined(parts: list[list[Reading]]) -> list[Reading]:
    return [tuple(segment for reading in one for segment in reading) for one in islice(product(*parts), MOST_READINGS)]


def _variable(node: "Node", variables: Variables) -> list[Reading]:
    return _values(source(node).strip("${}"), node, variables)


def _values(name: str, node: "Node", variables: Variables) -> list[Reading]:
    known = variables.get(name, ())
    found: list[Reading] = [(Segment(value, split=True),) for value in known[:MOST_READINGS]]
    unset: list[Reading] = [(Segment("", split=True),)] if ENVIRONMENT in variables else []
    return found or [_unknown(node), *unset]


def _unknown(node: "Node") -> Reading:
    return (Segment(source(node), quoted=True, static=False),)


_DEFAULTING = frozenset({":-", "-", ":=", "=", ":+", "+"})


def _expansion(node: "Node", variables: Variables) -> list[Reading]:
    names = [child for child in node.named_children if child.type in ("variable_name", "special_variable_name")]
    operators = [child.type for child in node.children if not child.is_named and child.type not in ("${", "}")]
    if len(names) != 1 or not (not operators or operators[0] in _DEFAULTING):
        return [_unknown(node)]
    found = _values(source(names[0]), node, variables)
    rest = [child for child in node.named_children if child != names[0]]
    if not rest:
        return found
    default = _joined([_readings(child, variables) for child in rest])
    spread = [tuple(Segment(part.text, static=part.static, split=True) for part in reading) for reading in default]
    return [*(reading for reading in found if reading[0].static), *spread]


def _substitution(node: "Node", variables: Variables) -> list[Reading]:
    printed = output(node.named_children, variables)
    return [_unknown(node)] if printed is None else [(Segment(printed.rstrip("\n"), split=True),)]


def _process(node: "Node", variables: Variables) -> list[Reading]:
    printed = output(node.named_children, variables)
    return [(Segment(source(node), quoted=True, static=False, prints=printed),)]


def _translated(node: "Node", variables: Variables) -> list[Reading]:
    return _joined([_readings(child, variables) for child in node.named_children])


def _arithmetic(node: "Node", _: Variables) -> list[Reading]:
    return [_unknown(node)]


_READERS: Mapping[str, Callable[["Node", Variables], list[Reading]]] = {
    "raw_string": _raw,
    "ansi_c_string": _ansi,
    "string": _string,
    "concatenation": _concatenation,
    "command_name": _concatenation,
    "simple_expansion": _variable,
    "expansion": _expansion,
    "command_substitution": _substitution,
    "process_substitution": _process,
    "translated_string": _translated,
    "arithmetic_expansion": _arithmetic,
}


# --------------------------------------------------------------------------------------------------------- known output


def output(statements: list["Node"], variables: Variables) -> str | None:
    """What these statements print, if that is plain to see."""
    if len(statements) != 1 or statements[0].type != "command":
        return None
    parts = statements[0].named_children
    if any(part.type.endswith(("redirect", "assignment")) for part in parts):
        return None
    lines, _ = combinations(parts, variables)
    return printed(lines[0]) if lines else None


def printed(command: tuple[Word, ...]) -> str | None:
    """What a simple command prints, if that is plain to see."""
    if not command or not all(word.static for word in command):
        return None
    name, *arguments = (word.text for word in command)
    if name in ("which", "type") or (name == "command" and arguments[:1] in (["-v"], ["-V"])):
        return arguments[-1] if arguments else None
    while name == "echo" and arguments and re.fullmatch("-[neE]+", arguments[0]):
        arguments.pop(0)
    if name in ("echo", "yes"):
        return decode(" ".join(arguments))
    return _formatted(arguments) if name == "printf" else None


def _formatted(arguments: list[str]) -> str | None:
    if arguments[:1] == ["--"]:
        arguments = arguments[1:]
    if not arguments:
        return None
    form, values = decode(arguments[0]), iter(arguments[1:])
    filled = re.sub(r"%[sbq]", lambda _: decode(next(values, "")), form)
    return " ".join([filled, *values])


_ESCAPE = re.compile(
    r"\\(?:x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<short>[0-9a-fA-F]{1,4})|U(?P<long>[0-9a-fA-F]{1,8})"
    r"|0?(?P<octal>[0-7]{1,3})|c(?P<control>.)|(?P<one>.))",
    re.DOTALL,
)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}


def decode(text: str) -> str:
    """Backslashes as `$'…'`, `echo -e` and `printf` read them."""
    return _ESCAPE.sub(_decoded, text)


def _decoded(found: re.Match[str]) -> str:
    if digits := found["hex"] or found["short"] or found["long"]:
        return chr(min(int(digits, 16), 0x10FFFF))
    if found["octal"]:
        return chr(int(found["octal"], 8) & 0xFF)
    if found["control"]:
        return chr(ord(found["control"]) & 0x1F)
    return _NAMED.get(found["one"], found["one"])


# --------------------------------------------------------------------------------------------------------------- fields

# While braces are expanded, every segment that is not literal text is one character of the private use area.
_FIRST, _LAST = 0xE000, 0xF8F0
_OPEN, _CLOSE = chr(_LAST + 1), chr(_LAST + 2)
_PRIVATE = re.compile(f"[{chr(_FIRST)}-{_CLOSE}]")
_BRACES = re.compile(r"\{([^{}]*)\}")
_SEQUENCE = re.compile(r"(-?\d{1,4}|[A-Za-z])\.\.(-?\d{1,4}|[A-Za-z])")


def _fields(reading: Reading, variables: Variables) -> tuple[Word, ...]:
    held: list[Segment] = []
    encoded = ""
    for segment in reading:
        if segment.quoted or segment.split or not segment.static or _PRIVATE.search(segment.text):
            encoded += chr(_FIRST + len(held))
            held.append(segment)
        else:
            encoded += segment.text
    if len(held) > _LAST - _FIRST:
        return (Word("".join(segment.text for segment in reading), static=False),)
    separators = "".join((" \t\n", *variables.get("IFS", ())))
    blanks = re.compile(f"[{re.escape(separators)}]+")
    found = (word for text in _expand_braces(encoded) for word in _split(text, held, blanks))
    return tuple(_word(parts, variables) for parts in found)


def _expand_braces(text: str) -> list[str]:
    done: list[str] = []
    waiting = [text]
    while waiting:
        text = waiting.pop(0)
        braces = _BRACES.search(text) if len(done) + len(waiting) < _MOST_BRACES else None
        if braces is None:
            done.append(text.replace(_OPEN, "{").replace(_CLOSE, "}"))
            continue
        before, after = text[: braces.start()], text[braces.end() :]
        choices = _choices(braces[1])
        waiting = [f"{before}{choice}{after}" for choice in choices] + waiting
    return done


def _choices(inside: str) -> list[str]:
    if "," in inside:
        return inside.split(",")
    sequence = _SEQUENCE.fullmatch(inside)
    if sequence is None:
        return [f"{_OPEN}{inside}{_CLOSE}"]
    first, last = sequence.groups()
    if first.isalpha() and last.isalpha():
        return [chr(code) for code in _range(ord(first), ord(last))]
    if first.isalpha() or last.isalpha():
        return [f"{_OPEN}{inside}{_CLOSE}"]
    return [str(number) for number in _range(int(first), int(last))]


def _range(first: int, last: int) -> list[int]:
    return list(range(first, last + 1) if first <= last else range(first, last - 1, -1))[:_MOST_BRACES]


def _split(text: str, held: list[Segment], blanks: re.Pattern[str]) -> Iterator[list[Segment]]:
    """Words, each of segments: at blanks in what was expanded without quotes."""
    word: list[Segment] = []
    for piece in re.split(f"({_PRIVATE.pattern})", text):
        segment = held[ord(piece) - _FIRST] if _PRIVATE.fullmatch(piece) else Segment(piece)
        if not segment.split:
            word += [segment] if segment.text or segment.quoted else []
            continue
        parts = blanks.split(segment.text)
        for at, part in enumerate(parts):
            if at and word:
                yield word
                word = []
            word += [Segment(part)] if part else []
    if word:
        yield word


_WILDCARD = re.compile(r"[*?\[]")


def _word(parts: list[Segment], variables: Variables) -> Word:
    home = variables.get("HOME", ())
    if home and not parts[0].quoted and re.match("~(?:/|$)", parts[0].text) and (parts[0].text != "~" or not parts[1:]):
        parts = [Segment(home[0], quoted=True), Segment(parts[0].text[1:]), *parts[1:]]
    # What is unknown may be anything; in front it says nothing about the place.
    wild = any(not part.static or (not part.quoted and _WILDCARD.search(part.text)) for part in parts)
    pattern = "".join("*" if not part.static else escape(part.text) if part.quoted else part.text for part in parts)
    return Word(
        "".join(part.text for part in parts),
        static=all(part.static for part in parts),
        glob=pattern if wild and parts[0].static else None,
        prints=parts[0].prints,
    )
