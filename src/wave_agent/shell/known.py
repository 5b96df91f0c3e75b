"""What a line says about the values of its variables, and about names it defines."""

import re
import string
from collections.abc import Mapping, Sequence
from posixpath import commonprefix
from typing import TYPE_CHECKING

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.carriers import variable_runs
from wave_agent.shell.effort import spend
from wave_agent.shell.options import OptionTable, read, value_of
from wave_agent.shell.printing import PRINTING, printed
from wave_agent.shell.runs import Inner
from wave_agent.shell.sources import REPORTING
from wave_agent.shell.values import ValueOrigin, Word, escape
from wave_agent.shell.words import ANYTHING, HOLDS_THE_LINE, MADE, Made, Pattern, Several, Split, known_words, source

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_VALUES = 16
_MOST_DEFINITIONS = 3000
_LONGEST_VALUE = 4000
_MOST_ADDED_TO = 4
_READ = OptionTable("adinNptu")


class Known:
    """What a line defines. If a variable may have several values, all of them are stored."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.values: dict[str, tuple[str, ...]] = {
            name: (value,) for name, value in variables.items() if name not in HOLDS_THE_LINE
        }
        self.assigned: set[str] = set()
        self.aliases: dict[str, tuple[Word, ...]] = {}
        self.copies: dict[str, list[Word]] = {}
        """What the line has copied, moved or linked to files of these names."""
        self.functions: set[str] = set()
        self.bodies: dict[str, list[Node]] = {}
        """Bodies of functions, by name."""
        self.runs: dict[Inner, None] = {}
        """What other programs run because of a value."""
        self._references: dict[tuple[str, str], None] = {}
        """Names that stand for other variables."""
        self.remade = False
        """A command was redefined in an unknown way."""
        self.complete = True
        """False: some values are not stored."""

    @property
    def size(self) -> int:
        return sum(map(len, self.values.values())) + len(self.aliases)

    def collect(self, root: "Node") -> None:
        """Every value assigned to a variable anywhere: a loop may use it before it is set."""
        waiting, found = [root], list["Node"]()
        while waiting:
            node = waiting.pop()
            found += [node] if node.type in _DEFINITIONS or _is_match(node) else []
            waiting += reversed(node.named_children)
        for node in found[:_MOST_DEFINITIONS]:
            if node.type == "binary_expression":
                self._match(node)
            names = [*node.children_by_field_name("variable"), *node.children_by_field_name("name")]
            for name in map(source, names):
                self._define(node, name)
        for name, other in (*self._references, *(pair[::-1] for pair in self._references)):
            for text in self.values.get(other, ()):
                self.learn(name, text)

    def _match(self, node: "Node") -> None:
        """`[[ text =~ expression ]]`: the match is the text, or a part of it."""
        for side in node.children_by_field_name("left"):
            for fields in known_words(side, self.values):
                self._give("BASH_REMATCH", fields, ())
        self.learn("BASH_REMATCH", MADE)

    def _define(self, node: "Node", name: str) -> None:
        spend(10)
        if node.type == "function_definition":
            self.define(name)
            self.bodies.setdefault(name, []).append(node)
            return
        array, bracket, _ = name.partition("[")
        self.remade |= array in ("BASH_ALIASES", "BASH_CMDS")
        if node.type == "variable_assignment":
            self.assigned.add(array)
        if _is_reference(node):
            self._refer(node, name)
            return
        adds = any(child.type == "+=" for child in node.children)
        for value in node.children_by_field_name("value"):
            before = self.values.get(f"{name}[@]" if value.type == "array" else name, ()) if adds else ()
            if node.type == "for_statement":
                self._each(name, value)
                continue
            self._assign(name, value, before[-_MOST_ADDED_TO:])
            if bracket:
                self._assign(array, value, ())
                self._assign(f"{array}[@]", value, tuple(f"{one} " for one in self.values.get(f"{array}[@]", ())))

    def _each(self, name: str, value: "Node") -> None:
        """`for name in value`: one word after another."""
        for fields in known_words(value, self.values):
            for word in fields:
                self._give(name, [word], ())

    def _refer(self, node: "Node", name: str) -> None:
        """`declare -n name=other`: the values of one are those of the other."""
        for value in node.children_by_field_name("value"):
            for fields in known_words(value, self.values):
                other = fields[0].text.partition("[")[0] if fields and fields[0].static else ""
                if _NAME.fullmatch(other):
                    self._references[name, other] = None
                else:
                    self.learn(name, MADE)

    def define(self, function: str) -> None:
        self.functions.add(function)
        self.remade |= function in PRINTING or function in REPORTING or function == "command_not_found_handle"

    def _assign(self, name: str, value: "Node", before: tuple[str, ...]) -> None:
        parts = value.named_children if value.type == "array" else [value]
        each = [known_words(part, self.values) for part in parts]
        keyed = value.type == "array" and any(_KEY.match(source(part)) for part in parts)
        for fields in (fields for readings in each for fields in readings):
            self._give(name, [_without_key(word) for word in fields] if keyed else fields, before)
        if value.type == "array" and not keyed:
            first = [word for readings in each for word in readings[0]]
            self.list_of(name, first)
            for one in before:
                self.learn(f"{name}[@]", " ".join((one, *(word.text for word in first))))

    def _give(self, name: str, fields: Sequence[Word], before: tuple[str, ...]) -> None:
        origin = max((word.origin for word in fields), default=ValueOrigin.ENVIRONMENT)
        text = value(Word(" ".join(word.text for word in fields), all(word.static for word in fields), origin=origin))
        for word in fields:
            if word.glob is not None:
                self.learn(name, pattern(word))
        # An assignment does not split what an argument would.
        whole = fields[0] if len(fields) == 1 else Word(text, not isinstance(text, Pattern), origin=origin)
        if (runs := variable_runs(name, whole)) is not None:
            self.runs[runs] = None
        if not (isinstance(text, Pattern) and len(fields) == 1 and fields[0].glob is not None):
            self.learn(name, text)
        if not isinstance(text, Pattern):
            for one in before:
                self.learn(name, ANYTHING if isinstance(one, Pattern) else one + text)

    def give(self, assignment: Word) -> None:
        """`name=value`, as an argument."""
        name, _, _ = assignment.text.partition("=")
        glob = assignment.glob and assignment.glob.partition("=")[2]
        value = Word(assignment.text[len(name) + 1 :], assignment.static, glob, origin=assignment.origin)
        self._give(name, [value], ())

    def list_of(self, name: str, words: Sequence[Word]) -> None:
        """The elements of an array."""
        for at, word in enumerate(words[:MOST_VALUES]):
            self.learn(f"{name}[{at}]", value(word))
        if all(word.static for word in words):
            self.learn(f"{name}[@]", " ".join(word.text for word in words))

    def learn(self, name: str, text: str) -> None:
        spend(4 + (len(text) >> 5))
        known = self.values.get(name, ())
        if len(text) > _LONGEST_VALUE:
            self.complete = False
        elif not any(text == one and type(text) is type(one) for one in known):
            known = (*known, text)
            self.values[name] = known if len(known) <= MOST_VALUES else (either(*known[:2]), *known[2:])
        if name == "BASH_ARGV0":
            self.learn("0", text)
        if name == "IFS":
            self.complete = False  # words are split at other characters than blanks

    def last_word(self, words: Sequence[Word]) -> None:
        """`$_` is the last word of the command before, which may be on the line before, or the end of a loop."""
        word = words[-1]
        self.learn("_", MADE if words[0].text in _SETS_LAST_WORD else value(word))
        if word.glob is not None:
            self.learn("_", pattern(word))

    def set_arguments(self, arguments: Sequence[Word]) -> None:
        """`$0`, `$1` and so on."""
        for at, word in enumerate(arguments[:10]):
            self.learn(str(at), value(word))
            if word.glob is not None:
                self.learn(str(at), pattern(word))
        made = any(word.origin is ValueOrigin.MADE for word in arguments[1:])
        for name in "@*":
            self.learn(name, MADE if made else " ".join(word.text for word in arguments[1:]))
            for word in arguments[1:]:
                if word.glob is not None:
                    self.learn(name, pattern(word))

    # ------------------------------------------------------------------------------------ commands that set something

    def follow(self, command: Sequence[Word], stdin: Word | None) -> None:
        """What a command says about later ones."""
        name = command[0].text
        if name == "set":
            self._set(command)
        elif name in ("read", "mapfile", "readarray"):
            self._read(command, stdin)
        elif name == "printf" and len(command) > 2 and command[1].text == "-v":
            text = printed((command[0], *command[3:]))
            self.learn(command[2].text, MADE if text is None else text)
        elif name == "alias":
            pairs = (word.text.partition("=") for word in command[1:])
            self.aliases |= {name: tuple(map(Word, text.split())) for name, equals, text in pairs if equals}
        elif name in ("hash", "enable"):
            self.remade |= any(re.match("-[a-z]*[pf]", word.text) or not word.static for word in command[1:])

    def _set(self, command: Sequence[Word]) -> None:
        rest = list(command[1:])
        while rest and rest[0].text[:1] in ("-", "+"):
            if rest.pop(0).text in ("--", "-"):
                break
        if rest:
            self.set_arguments([command[0], *rest])

    def _read(self, command: Sequence[Word], stdin: Word | None) -> None:
        options, operands = read(command, _READ if command[0].text == "read" else OptionTable("CcdnOsu"))
        names = [word.text for word in operands] or ["REPLY" if command[0].text == "read" else "MAPFILE"]
        array = value_of(options, "-a") if command[0].text == "read" else Word(names[0])
        if stdin is None or not stdin.static:
            unknown = MADE if stdin is not None and stdin.origin is ValueOrigin.MADE else ANYTHING
            paths = [unknown] if stdin is None else [unknown, *map(Split, stdin.paths)]
            for name in [*names, *([array.text, f"{array.text}[@]"] if array else [])]:
                for path in paths:
                    self.learn(name, path)
            return
        if array is not None:
            parts = stdin.text.split() if command[0].text == "read" else stdin.text.splitlines()
            self.list_of(array.text, [Word(text) for text in parts])
        for line in stdin.text.splitlines():
            for name, text in zip(names, line.split(maxsplit=len(names) - 1), strict=False):
                self.learn(name, text)


def either(one: str, other: str) -> Pattern:
    """One of two values, as a pattern: what stands for those that are too many to be stored."""
    patterns = [each if isinstance(each, Pattern) else escape(each) for each in (one, other)]
    if any(isinstance(each, Made) for each in (one, other)) or ".." in "".join(patterns):
        return MADE
    if ANYTHING in patterns or patterns[0][:1] != patterns[1][:1] == "/" or patterns[1][:1] != patterns[0][:1] == "/":
        return ANYTHING if ANYTHING in patterns else MADE
    start = _WILD.split(commonprefix(patterns), maxsplit=1)[0]
    rest = [each[len(start) :] for each in patterns]
    known = all(not isinstance(each, Pattern) or isinstance(each, Several) for each in (one, other))
    special = any(_SPECIAL.search(each) for each in (one, other) if not isinstance(each, Pattern))
    kind = Pattern if special or not known else Several
    if any("/" in each for each in rest):
        return kind(f"{start[: start.rfind('/') + 1]}**")
    ends = commonprefix([each[::-1] for each in rest])[::-1]
    return kind(f"{start}**{ends[len(ends.rstrip(_PLAIN_SIGNS)) :]}")


_WILD = lazy_regex(r"[*?\[]")
_SPECIAL = lazy_regex(r"^-|[^\w.,:/@%+-]")
"""In a value: it may become an option, or several words."""
_PLAIN_SIGNS = "".join({*string.printable} - {*"*?[]/"})
"""What may be at the end of a pattern without a meaning of its own."""
_SETS_LAST_WORD = frozenset({".", "source", "eval"})
"""They run commands that may not be in the line."""
_DEFINITIONS = ("variable_assignment", "for_statement", "function_definition")


def value(word: Word) -> str:
    """A word as the value of a variable."""
    return word.text if word.static else pattern(word)


def pattern(word: Word) -> Pattern:
    kind = Made if word.origin is ValueOrigin.MADE else Split if word.splits else Pattern
    return kind("*" if word.glob is None else word.glob)


def _is_match(node: "Node") -> bool:
    return node.type == "binary_expression" and any(child.type == "=~" for child in node.children)


_NAME = lazy_regex(r"[A-Za-z_]\w*")
_KEY = lazy_regex(r"^\[(?:\[\]|[^\]])*\]\+?=")


def _without_key(word: Word) -> Word:
    """`[key]=value`, as an element of an array."""
    glob = word.glob and _KEY.sub("", word.glob, count=1)
    return Word(_KEY.sub("", word.text, count=1), word.static, glob, origin=word.origin)


def _is_reference(node: "Node") -> bool:
    """`declare -n name=other`"""
    parent = node.parent
    return parent is not None and parent.type == "declaration_command" and _REFERS.search(source(parent)) is not None


_REFERS = lazy_regex(r" -[a-zA-Z]*n")
