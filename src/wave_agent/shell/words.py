"""Words: quotes, backslashes, braces and known variables resolved."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, product
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.effort import spend
from wave_agent.shell.grammar import spelling
from wave_agent.shell.patterns import glob_pattern
from wave_agent.shell.printing import decode, printed
from wave_agent.shell.searches import MADE_SOMEWHERE, handed_on
from wave_agent.shell.sources import reports
from wave_agent.shell.values import ValueOrigin, Word

if TYPE_CHECKING:
    from tree_sitter import Node


class Pattern(str):
    """A value of which only a pattern is known."""

    __slots__ = ()
    origin = ValueOrigin.ELSEWHERE


class Made(Pattern):
    """The same, for a value that the line builds itself."""

    __slots__ = ()
    origin = ValueOrigin.MADE


class Split(Pattern):
    """The same, for names of files that were split into words."""

    __slots__ = ()


class Several(Pattern):
    """The same, for values that are all known: one of them, in one word."""

    __slots__ = ()
    origin = ValueOrigin.ENVIRONMENT


ANYTHING = Pattern("*")
MADE = Made("*")
Variables: TypeAlias = Mapping[str, tuple[str, ...]]
"""The known possible values of a variable."""

_EMPTY = ""
"""A name that is among the variables if unknown parts are taken to be empty."""
AT_FIRST: Variables = {"IFS": (" ",), "SHELL": ("/bin/bash",), "BASH": ("/bin/bash",), "0": ("bash",)}
HOLDS_THE_LINE = frozenset(
    {"_", "BASH_COMMAND", "BASH_EXECUTION_STRING", "BASH_ARGV", "BASH_ARGV0", "BASH_REMATCH", "FUNCNAME"}
)
"""Variables that Bash sets to words of the line."""
_STILL = frozenset({"0", "BASH", "SHELL"})
"""Variables that may keep their first value, though the line assigns another."""
MOST_READINGS = 16
"""Per word or command. Beyond this limit only the first ones are checked, and the line is not treated as understood."""
_MOST_BRACES = 64


class Segment(Struct, frozen=True):
    """A uniform part of a word."""

    text: str
    quoted: bool = False
    static: bool = True
    split: bool = False
    """It is the result of an unquoted expansion: blanks in it separate words."""
    prints: str | None = None
    glob: str = "*"
    """The pattern of the part that is not static."""
    origin: ValueOrigin = ValueOrigin.ENVIRONMENT
    exact: bool = False
    """A part that is not static is something that `glob` matches."""
    splits: str = ""
    """As in a word."""


Reading: TypeAlias = tuple[Segment, ...]


def source(node: "Node") -> str:
    text = spelling(node.text)
    spend(2 + (len(text) >> 6))
    return text


def literal(node: "Node") -> str | None:
    """A word without its quotes, if nothing in it is expanded except wildcards and braces."""
    kind = node.type
    if kind in ("word", "number", "raw_string", "ansi_c_string"):
        text = source(node)
        if kind == "ansi_c_string":
            return decode(text[2:-1])
        return (
            text[1:-1]
            if kind == "raw_string"
            else "".join(part.text for part in _unescape(text))
            if "\\" in text
            else text
        )
    if kind == "string" and all(child.type == "string_content" for child in node.named_children):
        return _quoted_text((node.text or b"")[1:-1])[0].text
    if kind in ("concatenation", "command_name"):
        parts = [literal(child) for child in node.children]
        return None if None in parts else "".join(part or "" for part in parts)
    if kind == "translated_string":
        return literal(node.named_children[0])
    return None if node.is_named else source(node)


def words(node: "Node", variables: Variables) -> list[tuple[Word, ...]]:
    """Possible expansions of a node: the resulting words of every reading. The first keeps unknown parts."""
    kept = known_words(node, variables)
    return kept if _all_static(kept) else [*kept, *known_words(node, {**variables, _EMPTY: ()})]


def known_words(node: "Node", variables: Variables) -> list[tuple[Word, ...]]:
    if node.type == "command_name" and node.child_count == 1:
        node = node.children[0]
    if node.type in ("word", "number") and node.child_count == 0 and _ORDINARY.fullmatch(text := source(node)):
        return [(Word(text, base=text.rpartition("/")[2] or None if "/" in text else None),)]
    return [_fields(reading, variables) for reading in _readings(node, variables)]


_ORDINARY = lazy_regex(r"[\w./:=@%+,-]++")
"""A word without expansions and quotes, like most."""


def _all_static(readings: list[tuple[Word, ...]]) -> bool:
    return all(word.static for fields in readings for word in fields)


def combinations(nodes: Iterable["Node"], variables: Variables) -> tuple[list[tuple[Word, ...]], bool]:
    """Whole commands, and whether these are all possibilities. Unknown parts are kept, and also taken as empty."""
    nodes = list(nodes)
    spend(4 + 2 * len(nodes))
    each = [known_words(node, variables) for node in nodes]
    lines, complete = _product(each)
    if all(map(_all_static, each)):
        return lines, complete
    nothing = {**variables, _EMPTY: ()}
    empty, _ = _product([known_words(node, nothing) for node in nodes])
    return [*lines, *(line for line in empty if line)], complete


def _product(each: list[list[tuple[Word, ...]]]) -> tuple[list[tuple[Word, ...]], bool]:
    found = list(islice(product(*each), MOST_READINGS + 1))
    return [tuple(word for part in one for word in part) for one in found[:MOST_READINGS]], len(found) <= MOST_READINGS


# ------------------------------------------------------------------------------------------------------------- readings


def _readings(node: "Node", variables: Variables, *, in_string: bool = False) -> list[Reading]:
    spend(3)
    reader = _READERS.get(node.type)
    found = _literal(node) if reader is None else reader(node, variables)
    if in_string:
        found = [tuple(replace(part, quoted=True, split=False) for part in reading) for reading in found]
    return found


def _literal(node: "Node") -> list[Reading]:
    text = source(node)
    return [tuple(_unescape("" if text == "``" else text))]


def _unescape(text: str) -> Iterator[Segment]:
    for plain, escaped in re.findall(r"([^\\]+)|\\(.|\n|$)", text, re.DOTALL):
        yield Segment(plain) if plain else Segment("" if escaped == "\n" else escaped, quoted=True)


def _raw(node: "Node", _: Variables) -> list[Reading]:
    return [(Segment(source(node)[1:-1], quoted=True),)]


def _ansi(node: "Node", _: Variables) -> list[Reading]:
    return [(Segment(decode(source(node)[2:-1]), quoted=True),)]


def _string(node: "Node", variables: Variables) -> list[Reading]:
    """Its text is between the expansions; the tree does not name every blank."""
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
    plain = re.sub(r'\\([$`"\\\n])', lambda found: found[1].strip("\n"), spelling(text))
    return (Segment(plain, quoted=True),)


def _concatenation(node: "Node", variables: Variables) -> list[Reading]:
    return _joined([_readings(child, variables) for child in node.children])


def _joined(parts: list[list[Reading]]) -> list[Reading]:
    return [tuple(segment for reading in one for segment in reading) for one in islice(product(*parts), MOST_READINGS)]


def _variable(node: "Node", variables: Variables) -> list[Reading]:
    name = source(node).strip("${}")
    return _values(name, node, variables, starred=name == "*")


def _values(name: str, node: "Node", variables: Variables, *, starred: bool = False) -> list[Reading]:
    known = variables.get(name, ())
    if not known or name in _STILL:
        known = tuple(dict.fromkeys((*known, *AT_FIRST.get(name, ()))))
    if starred:  # `"${a[*]}"` is joined by the first character of IFS
        signs = dict.fromkeys(ifs[:1] for ifs in variables.get("IFS", ()) if not isinstance(ifs, Pattern))
        joins = [value.replace(" ", sign) for sign in signs for value in known if not isinstance(value, Pattern)]
        known = tuple(dict.fromkeys((*joins, *known)))
    found = [_value(value, node, variables) for value in known[:MOST_READINGS]]
    return found or [_unknown(node, variables, origin=_MADE if name in HOLDS_THE_LINE else ValueOrigin.ENVIRONMENT)]


def _value(value: str, node: "Node", variables: Variables) -> Reading:
    if isinstance(value, Pattern):
        unknown = _unknown(node, variables, value, value.origin)
        splits = _AT_BLANKS if isinstance(value, Split) else ""
        return tuple(replace(part, exact=isinstance(value, Several), splits=splits) for part in unknown)
    return (Segment(value, split=True),)


_MADE = ValueOrigin.MADE
_AT_BLANKS = r"\s"


def _unknown(
    node: "Node", variables: Variables, glob: str = "*", origin: ValueOrigin = ValueOrigin.ENVIRONMENT
) -> Reading:
    if _EMPTY in variables and glob == "*":
        return (Segment("", split=True),)
    return (Segment(source(node), quoted=True, static=False, glob=glob, origin=origin),)


_DEFAULTING = frozenset({":-", "-", ":=", "=", ":+", "+"})
_CHANGING: Mapping[str, Callable[[str, str, str], str]] = {
    "#": lambda value, pattern, _: value.removeprefix(pattern),
    "##": lambda value, pattern, _: value.removeprefix(pattern),
    "%": lambda value, pattern, _: value.removesuffix(pattern),
    "%%": lambda value, pattern, _: value.removesuffix(pattern),
    "/": lambda value, pattern, by: value.replace(pattern, by, 1),
    "//": lambda value, pattern, by: value.replace(pattern, by),
    "^^": lambda value, _pattern, _: value.upper(),
    ",,": lambda value, _pattern, _: value.lower(),
}
"""The effect of operators on a value, for a pattern without wildcards."""


def _expansion(node: "Node", variables: Variables) -> list[Reading]:
    names = [child for child in node.named_children if child.type in _NAMES]
    operators = [child.type for child in node.children if not child.is_named and child.type not in ("${", "}")]
    if len(names) != 1 or operators[:1] == ["!"]:
        return [_unknown(node, variables, origin=_MADE)]
    if sliced := _SLICE.fullmatch(source(node)):
        return [_cut(reading, sliced, node, variables) for reading in _values(sliced[1], node, variables)]
    starred = source(names[0]).endswith("*") or source(names[0]).endswith("[*]")
    found = _values(_element(names[0], variables), node, variables, starred=starred)
    rest = [child for child in node.named_children if child != names[0]]
    if operators and operators[0] in (":?", "?"):
        return found
    if operators and operators[0] not in _DEFAULTING:
        return [_changed(reading, operators[0], rest, node, variables) for reading in found]
    if not rest:
        return found
    default = _joined([_readings(child, variables) for child in rest])
    spread = [
        tuple(Segment(part.text, static=part.static, split=True, origin=part.origin) for part in reading)
        for reading in default
    ]
    return [*(reading for reading in found if reading[0].static), *spread]


_NAMES = ("variable_name", "special_variable_name", "subscript")


def _element(name: "Node", variables: Variables) -> str:
    """The name its values are stored under. An unknown element may be any of the array."""
    text = source(name).replace("[*]", "[@]")
    return text if text in variables else text.partition("[")[0]


def _changed(reading: Reading, operator: str, rest: list["Node"], node: "Node", variables: Variables) -> Reading:
    pattern, by = (*map(source, rest), "", "")[:2]
    change = _CHANGING.get(operator)
    if change is None or not reading[0].static or re.search(r"[*?\[\\$`'\"]", pattern + by):
        # A value that only loses something at its ends is no more than it was.
        kept = operator in _SHORTENING and not reading[0].static
        return _unknown(node, variables, origin=reading[0].origin if kept else _MADE)
    return (Segment(change(reading[0].text, pattern, by), split=True),)


_SLICE = lazy_regex(r"\$\{(\w+):\s*(\d+|\s-\d+|\(-\d+\))(?::\s*(-?\d+))?\}")


def _cut(reading: Reading, sliced: re.Match[str], node: "Node", variables: Variables) -> Reading:
    """`${name:start:length}`"""
    if not reading[0].static:
        return _unknown(node, variables, origin=_MADE)
    start = int(sliced[2].strip(" ()"))
    text = reading[0].text[start:] if start >= 0 or -start <= len(reading[0].text) else ""
    length = None if sliced[3] is None else int(sliced[3])
    return (Segment(text[:length], split=True),)


_SHORTENING = frozenset({"#", "##", "%", "%%"})


def _substitution(node: "Node", variables: Variables) -> list[Reading]:
    if source(node).strip("$()` ") == "pwd":
        return _values("PWD", node, variables)
    printed = output(node.named_children, variables)
    if printed is None and (paths := searched(node.named_children, variables)):
        return [_listed(node, variables, path) for path in paths]
    if printed is None:
        return [_unknown(node, variables, origin=origin(node.named_children))]
    return [(Segment(printed.rstrip("\n"), split=True),)]


def _listed(node: "Node", variables: Variables, path: str) -> Reading:
    """One of the names that a search prints."""
    splits = "" if path == MADE_SOMEWHERE else _AT_BLANKS
    return tuple(replace(part, splits=splits) for part in _unknown(node, variables, path, ValueOrigin.ELSEWHERE))


def _process(node: "Node", variables: Variables) -> list[Reading]:
    printed = output(node.named_children, variables)
    return [(Segment(source(node), quoted=True, static=False, prints=printed, origin=origin(node.named_children)),)]


def _translated(node: "Node", variables: Variables) -> list[Reading]:
    return _joined([_readings(child, variables) for child in node.named_children])


def _arithmetic(node: "Node", _: Variables) -> list[Reading]:
    return [(Segment(source(node), quoted=True, static=False),)]


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
    """What these statements print, if that is obvious."""
    if len(statements) != 1 or statements[0].type != "command":
        return None
    parts = statements[0].named_children
    if any(part.type.endswith(("redirect", "assignment")) for part in parts):
        return None
    lines, _ = combinations(parts, variables)
    return printed(lines[0]) if lines else None


def searched(statements: list["Node"], variables: Variables) -> tuple[str, ...]:
    """The patterns of the paths that these statements print, if they start with a search."""
    found: list[str] = []
    waiting = list(statements)
    while waiting:
        node = waiting.pop(0)
        if node.type in ("pipeline", "redirected_statement"):
            # Another stage may turn the paths into anything.
            passed_on = node.type != "pipeline" or all(_reports(one, first=False) for one in node.named_children[1:])
            waiting[:0] = node.named_children[:1] if passed_on else []
        elif node.type in ("list", "compound_statement", "subshell"):
            waiting[:0] = node.named_children
        elif node.type == "command":
            parts = [part for part in node.named_children if not part.type.endswith(("redirect", "assignment"))]
            lines, _ = combinations(parts, variables)
            paths = handed_on(lines[0], None) if lines and lines[0] else None
            found += () if paths is None else paths.paths
    return tuple(dict.fromkeys(found))


def origin(statements: list["Node"]) -> ValueOrigin:
    """Where the output of these statements comes from."""
    spend(4)
    if len(statements) != 1:
        return _MADE
    stages = statements[0].named_children if statements[0].type == "pipeline" else statements
    return ValueOrigin.ELSEWHERE if all(_reports(one, first=at == 0) for at, one in enumerate(stages)) else _MADE


def _reports(node: "Node", *, first: bool) -> bool:
    if node.type == "redirected_statement":
        redirects = [child for child in node.named_children if child.type.endswith("_redirect")]
        body = node.child_by_field_name("body")
        if any(one.type != "file_redirect" or b"(" in (one.text or b"") for one in redirects):
            return False
        return body is None or _reports(body, first=first)
    if node.type == "file_redirect":
        return b"(" not in (node.text or b"")  # `$(<file)`
    if node.type != "command":
        return False
    words = [source(part) for part in node.named_children if not part.type.endswith("redirect")]
    return bool(words) and reports(words, first=first)


# --------------------------------------------------------------------------------------------------------------- fields

# While braces are expanded, every segment that is not literal text is one character of the private use area.
_FIRST, _LAST = 0xE000, 0xF8F0
_OPEN, _CLOSE = chr(_LAST + 1), chr(_LAST + 2)
_PRIVATE = lazy_regex(f"[{chr(_FIRST)}-{_CLOSE}]")
_BRACES = lazy_regex(r"\{([^{}]*)\}")
_SEQUENCE = lazy_regex(r"(-?\d{1,4}|[A-Za-z])\.\.(-?\d{1,4}|[A-Za-z])")


def _fields(reading: Reading, variables: Variables) -> tuple[Word, ...]:
    spend(14 + 4 * len(reading))
    held: list[Segment] = []
    encoded = ""
    for segment in reading:
        if segment.quoted or segment.split or not segment.static or _PRIVATE.search(segment.text):
            encoded += chr(_FIRST + len(held))
            held.append(segment)
        else:
            encoded += segment.text
    if len(held) > _LAST - _FIRST:
        return (Word("".join(segment.text for segment in reading), static=False, origin=_MADE),)
    separators = "".join((" \t\n", *variables.get("IFS", ())))
    blanks = re.compile(f"[{re.escape(separators)}]+")
    found = (word for text in expand_braces(encoded) for word in _split(text, held, blanks))
    return tuple(_word(parts, variables) for parts in found)


def expand_braces(text: str) -> list[str]:
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
    """Words, each a list of segments: split at blanks in unquoted expansions."""
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


_WILDCARD = lazy_regex(r"[*?\[]")
_TILDE = lazy_regex(r"~([+-]?)(?=/|$)")
_TILDES = {"": "HOME", "+": "PWD", "-": "OLDPWD"}


def _word(parts: list[Segment], variables: Variables) -> Word:
    spend(8)  # `"$@"` may be thousands of words
    tilde = None if parts[0].quoted else _TILDE.match(parts[0].text)
    place = variables.get(_TILDES[tilde[1]], ()) if tilde else ()
    if tilde and place and (tilde.end() < len(parts[0].text) or not parts[1:]):
        parts = [Segment(place[0], quoted=True), Segment(parts[0].text[tilde.end() :]), *parts[1:]]
    # Unknown parts may be anything; at the start they say nothing about the location.
    first = next((part for part in parts if part.text), parts[0])
    wild = any(not part.static or (not part.quoted and _WILDCARD.search(part.text)) for part in parts)
    pattern = glob_pattern((part.text if part.static else part.glob, part.quoted, part.static) for part in parts)
    return Word(
        "".join(part.text for part in parts),
        static=all(part.static for part in parts),
        glob=pattern if wild and (first.static or first.glob != "*") else None,
        prints=parts[0].prints,
        origin=max(part.origin for part in parts),
        base=_base(parts),
        splits=next((part.splits for part in parts if part.splits), ""),
        exact=any(part.exact for part in parts) and all(part.static or part.exact for part in parts),
    )


def _base(parts: list[Segment]) -> str | None:
    end = ""
    for part in reversed(parts):
        if not part.static:
            return None
        _, slash, name = part.text.rpartition("/")
        end = name + end
        if slash:
            return end or None
    return None
