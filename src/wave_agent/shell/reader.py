"""Reads a line of Bash: every command in it, whether that is all of it, and what it visibly writes to.

The line is not run, and nothing is looked up: what a variable holds is known if the line itself or the caller says so.
Where a line may do one thing or another, both are taken.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from posixpath import join, normpath
from types import MappingProxyType
from typing import TYPE_CHECKING

from wave_agent.shell.grammar import DEEPEST, LONGEST, can_parse, is_deep, is_sound, parse
from wave_agent.shell.known import MOST_VALUES, Known
from wave_agent.shell.names import meant
from wave_agent.shell.pieces import pieces, redirected
from wave_agent.shell.plain import plain_commands
from wave_agent.shell.printing import printed
from wave_agent.shell.readers import named_in
from wave_agent.shell.redirections import Redirections
from wave_agent.shell.runs import Code, Inner, Script
from wave_agent.shell.searches import handed_on
from wave_agent.shell.targets import Target
from wave_agent.shell.values import Command, Line, Word, Write, escape
from wave_agent.shell.words import combinations, source
from wave_agent.shell.wrappers import inner
from wave_agent.shell.writes import targets

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_COMMANDS = 3000
_MOST_SCRIPTS = 120
_LONGEST_ALTOGETHER = 8 * LONGEST
_DEEPEST_WRAPPING = 24
_MOST_STEPS = 32
_BLANK = re.compile(r"\$IFS(?!\w)|\$\{IFS\}")
_CONTINUED = re.compile(r"(\\[^\n])|\\\n")
_COMMENT = re.compile(r"(?<![^\s;&|()])#[^\n]*")
_BACKSLASH_IN_FRONT = re.compile(r"(?<=\n)(?=\\(?!\n))")
_DESCRIPTOR = re.compile(r"[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\}")
_NOTHING: Mapping[str, str] = MappingProxyType({})


@lru_cache(maxsize=16)  # a call is judged by one rule after the other
def read_line(text: str) -> Line:
    """What the line says to somebody who knows no variable and no directory. Never fails, in bounded time."""
    return _read(text, _NOTHING, None)


def read_writes(text: str, variables: Mapping[str, str], directory: str) -> tuple[Write, ...]:
    """The paths that the line visibly writes to, when it is run with these variables in this directory."""
    return _read(text, variables, directory).writes


def _read(text: str, variables: Mapping[str, str], directory: str | None) -> Line:
    unix = text.replace("\r\n", "\n").rstrip("\r")
    reader = _Reader(variables, directory)
    forms = _forms(unix)
    for form in forms:
        reader.line(form)
    if not reader.understood:
        for form in forms:
            reader.cut(form)
    return Line(
        commands=tuple(dict.fromkeys(reader.commands)),
        statements=tuple(dict.fromkeys(reader.statements)),
        understood=reader.understood,
        parsed=reader.parsed,
        plain=plain_commands(text) if reader.understood else (),
        assignments=tuple(sorted(reader.known.assigned)),
        writes=tuple(dict.fromkeys(reader.writes)),
        texts=tuple(dict.fromkeys(reader.texts)),
    )


def _forms(text: str) -> list[str]:
    """The line as the grammar has to be given it to see what Bash sees. All of these readings count."""
    joined: tuple[str, ...] = ()
    if "\\\n" in text:
        # A backslash continues its line, unless there is another one before it, or the line ends in a comment.
        joined = (text.replace("\\\n", ""), _CONTINUED.sub(r"\1", text), _CONTINUED.sub(r"\1", _COMMENT.sub("", text)))
    return list(dict.fromkeys((text, *map(_parted, (text, *joined)))))


def _parted(text: str) -> str:
    """The grammar parts `a$IFS-b` elsewhere than Bash does, and glues the end of a line to a `\\x` after it."""
    return _BACKSLASH_IN_FRONT.sub(" ", _BLANK.sub(" ", text))


class _Reader:
    """Goes through the tree once, and collects."""

    def __init__(self, variables: Mapping[str, str], directory: str | None) -> None:
        self.commands: list[Command] = []
        self.statements: list[str] = []
        self.writes: list[Write] = []
        self.texts: list[str] = []
        self.understood = True
        self.parsed = True
        self.known = Known(variables)
        self._start: tuple[str, ...] = ("",) if directory is None else (directory,)
        self._directories = self._start
        self._entered: tuple[str, ...] | None = None
        """Where a `cd` led that has just been read."""
        self._scripts = self._length = self._known_at_first = 0
        self._depth = 0
        self._dotglob = False

    def line(self, text: str) -> None:
        """Twice, if on the way something was learned about values that were used before."""
        self.script(text)
        known = self.known.size
        for one in list(self.known.runs):
            self._run(one, None, 0)
        if known != self._known_at_first:
            self._directories = self._start
            self.script(text)
        self.understood &= self.known.complete

    def script(self, text: str, arguments: Sequence[Word] = ()) -> None:
        """A line, or a text that a command has a shell read."""
        self._scripts += 1
        self._length += len(text)
        too_much = self._scripts > _MOST_SCRIPTS or self._length > _LONGEST_ALTOGETHER or self._depth > DEEPEST
        if too_much or not can_parse(text):
            self.understood = self.parsed = False
            return
        root = parse(text)
        if is_deep(root):
            self.understood = self.parsed = False
            return
        if not is_sound(root):
            self.understood = self.parsed = False
        if arguments:
            self.known.set_arguments(arguments)
        self.known.collect(root)
        if self._depth == 0:
            self._known_at_first = self.known.size
        self._dotglob |= "dotglob" in text  # a star then stands for the dot in front as well
        self.understood &= "@P}" not in text  # a value that is expanded once more
        self._visit(root)

    def _nested(self, text: str, arguments: Sequence[Word] = ()) -> None:
        self._depth += 4
        self.script(text, arguments)
        self._depth -= 4

    def cut(self, text: str) -> None:
        """What the characters alone say, for a line that was not understood."""
        for piece in pieces(text):
            self.commands.append(Command((Word(piece),)))
            self._add_targets(tuple(map(Word, piece.split()[:_MOST_COMMANDS])))
        for path in redirected(text):
            self._write(Target(Word(path)))

    # ------------------------------------------------------------------------------------------------------- statements

    def _visit(self, node: "Node", stdin: Word | None = None, extra: Redirections | None = None) -> None:
        self._depth += 1
        if self._depth > DEEPEST or len(self.commands) > _MOST_COMMANDS:
            self.understood = False
        elif node.type == "command":
            self._command(node, stdin, extra or Redirections())
        elif node.type == "redirected_statement":
            self._redirected(node, stdin)
        elif node.type == "pipeline":
            self._pipeline(node, stdin, extra)
        elif node.type == "list":
            self._list(node, stdin, extra)
        else:
            self._other(node, stdin, extra or Redirections())
        self._depth -= 1

    def _other(self, node: "Node", stdin: Word | None, extra: Redirections) -> None:
        if node.type == "negated_command" and node.named_children:
            self._visit(node.named_children[-1], stdin, extra)
        elif node.type in ("subshell", "command_substitution", "process_substitution"):
            self._redirect(extra)
            self._elsewhere(node, stdin)
        else:
            self._redirect(extra)
            if node.type in ("word", "regex") and _HIDDEN.search(source(node)):
                self._nested(source(node))  # `${x:-`…`}`: the grammar does not look into it
            self._inside(node, stdin)

    def _inside(self, node: "Node", stdin: Word | None = None) -> None:
        for child in node.named_children:
            if child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                self._redirect(Redirections.of([child], self.known.values))
            self._visit(child, stdin)

    def _elsewhere(self, node: "Node", stdin: Word | None) -> None:
        """Another process: its directory is its own."""
        directories = self._directories
        if node.type == "command_substitution" and (node.text or b"").startswith(b"`") and b"\\" in (node.text or b""):
            inside = source(node)[1:-1]
            self._nested(inside.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\"))
        self._inside(node, stdin)
        self._directories = directories

    def _list(self, node: "Node", stdin: Word | None, extra: Redirections | None) -> None:
        """The grammar hangs the redirections of the last command on the whole list."""
        before = self._directories
        last = node.named_children[-1:]
        for child in node.children:
            if not child.is_named:
                if child.type == "&&" and self._entered is not None:
                    self._directories = self._entered
                continue
            self._entered = None
            self._visit(child, stdin, extra if [child] == last else None)
        self._directories = tuple(dict.fromkeys((*before, *self._directories)))

    def _pipeline(self, node: "Node", stdin: Word | None, extra: Redirections | None = None) -> None:
        self.statements.append(source(node))
        last = node.named_children[-1:]
        for stage in node.named_children:
            self._visit(stage, stdin, extra if [stage] == last else None)
            stdin = self._output(stage, stdin)

    def _output(self, node: "Node", stdin: Word | None = None) -> Word:
        """What a stage of a pipeline hands on."""
        if node.type == "redirected_statement":
            redirections = Redirections.of(node.children_by_field_name("redirect"), self.known.values)
            body = node.child_by_field_name("body") or node
            while body.type in ("list", "pipeline") and body.named_children:
                body = body.named_children[-1]
            if source(body).strip() == "cat" and redirections.stdin is not None:
                return redirections.stdin
            return Word(source(node), static=False) if body is node else self._output(body, stdin)
        if node.type == "command":
            lines, _ = combinations(_word_nodes(node), self.known.values)
            text = printed(lines[0]) if lines else None
            if text is not None:
                return Word(text)
            if lines and lines[0]:
                return handed_on(lines[0], stdin) or Word(source(node), static=False)
        inside = [child for child in node.named_children if child.type in ("command", "redirected_statement")]
        if node.type in ("subshell", "compound_statement") and inside:
            texts = [self._output(child) for child in inside]
            # Whether a line ends where an output ends, is left open.
            joined = "\n".join(between.join(text.text for text in texts) for between in ("\n", "")[: len(texts)])
            return Word(joined, static=all(text.static for text in texts))
        return Word(source(node), static=False)

    def _redirected(self, node: "Node", stdin: Word | None) -> None:
        self.statements.append(source(node))
        redirections = Redirections.of(node.children_by_field_name("redirect"), self.known.values)
        body = node.child_by_field_name("body")
        if body is None:
            self._redirect(redirections)
        else:
            self._visit(body, redirections.stdin or stdin, redirections)
        for redirect in node.children_by_field_name("redirect"):
            # What stands behind `<<EOF` on its line is found inside of it.
            piped = self._output(node) if redirect.type == "heredoc_redirect" else None
            for child in redirect.named_children:
                if child.type == "pipeline" and piped is not None:
                    self._pipeline(child, piped)
                else:
                    self._visit(child, piped)

    def _redirect(self, redirections: Redirections) -> None:
        for target in redirections.written:
            self._write(Target(target))
        for text in redirections.substitutions:
            self._nested(text)

    # --------------------------------------------------------------------------------------------------------- commands

    def _command(self, node: "Node", stdin: Word | None, outer: Redirections) -> None:
        self.statements.append(source(node))
        own = Redirections.of([child for child in node.children if child.type.endswith("redirect")], self.known.values)
        self._redirect(own)
        self._redirect(outer)
        lines, complete = combinations([*_word_nodes(node), *own.words, *outer.words], self.known.values)
        self.understood &= complete
        for line in lines:
            self._found(line, own.stdin or outer.stdin or stdin)
        for child in node.named_children:
            self._visit(child)

    def _found(self, found: tuple[Word, ...], stdin: Word | None, level: int = 0) -> None:
        if not found:
            return
        if level > _DEEPEST_WRAPPING or len(self.commands) > _MOST_COMMANDS:
            self.understood = False
            return
        self.commands.append(Command(found))
        self._add_targets(found)
        name = found[0]
        if not name.static or name.glob is not None:
            self.understood = False
            self._anything(found)
        for words in meant(found):
            self._found(words, stdin, level + 1)
        self._meaning(found, stdin, level)
        for one in inner(found, stdin):
            self._run(one, stdin, level)

    def _anything(self, found: tuple[Word, ...]) -> None:
        """What is not known in front may be nothing, or something that runs the rest."""
        for at in range(1, min(len(found), MOST_VALUES)):
            self.commands.append(Command(found[at:]))
            self._add_targets(found[at:])

    def _meaning(self, found: tuple[Word, ...], stdin: Word | None, level: int) -> None:
        """What the line itself says about this name, or this command about what follows."""
        name = found[0].text
        if name in ("cd", "pushd"):
            self._enter(found[1:])
        self.known.follow(found, stdin)
        if name in self.known.aliases:
            self._found((*self.known.aliases[name], *found[1:]), stdin, level + 1)
        if name in self.known.functions and found[1:]:
            self.known.set_arguments(found)
            for at in range(1, min(len(found), MOST_VALUES)):  # the function may run what it is given
                if not re.search(r"\s", found[at].text):
                    self._found(found[at:], stdin, level + 1)

    def _run(self, one: Inner, stdin: Word | None, level: int) -> None:
        if isinstance(one, Code):
            self.texts.append(one.text.text)
            for target in named_in(one.text.text):
                self._write(target)
            return
        if isinstance(one, Script):
            if one.text.static:
                self._nested(one.text.text, one.arguments)
            else:
                self.understood = False
            return
        directories = self._directories
        if one.directory is not None:
            self._directories = tuple(normpath(join(base, one.directory.text)) for base in directories)
        for assignment in one.assignments:
            self.known.give(assignment)
        self._found(one.words, stdin, level + 1)
        if one.directory is not None:
            self._directories = directories

    def _enter(self, arguments: Sequence[Word]) -> None:
        operands = [word for word in arguments if not word.text.startswith("-") or word.text == "-"]
        home = self.known.values.get("HOME", ())
        target = operands[0] if operands else Word(home[0]) if home else None
        if target is None or not target.static:
            return
        self.known.values["OLDPWD"] = self._directories
        self._entered = tuple(normpath(join(directory, target.text)) for directory in self._directories)
        self._directories = tuple(dict.fromkeys((*self._directories, *self._entered)))[-MOST_VALUES:]
        for directory in self._entered:
            self.known.learn("PWD", directory)

    # ----------------------------------------------------------------------------------------------------------- writes

    def _add_targets(self, found: Sequence[Word]) -> None:
        for target in targets(found):
            self._write(target)

    def _write(self, target: Target) -> None:
        word = target.word
        if (not word.static and word.glob is None) or not word.text or len(self.writes) > _MOST_COMMANDS:
            return
        pattern = word.pattern
        home = self.known.values.get("HOME", ())
        if pattern.startswith("~/") and home:
            pattern = escape(home[0]) + pattern[1:]
        pattern = _HERE.sub("./", pattern)
        if self._dotglob:
            pattern = _STAR.sub("**", pattern)
        for directory in self._directories:
            below = directory if target.below is None else join(directory, target.below.text)
            for place in _upwards(below) if target.upwards else (below,):
                self.writes.append(target.write(join(escape(place), pattern)))


_STAR = re.compile(r"(?<![^/])\*(?!\*)")
_HIDDEN = re.compile(r"`|\$\(")
_HERE = re.compile(r"^/proc/(?:self|thread-self|\$\$|\d+)/cwd/")


def _upwards(directory: str) -> list[str]:
    """The directory and those around it."""
    steps = normpath(directory).split("/")
    return ["/".join(steps[:end]) or "/" for end in range(len(steps), 0, -1)][:_MOST_STEPS]


def _word_nodes(node: "Node") -> list["Node"]:
    """The words of a command."""
    return [
        child
        for child in node.named_children
        if not child.type.endswith(("redirect", "assignment"))
        and child.type not in ("subshell", "comment")
        and not _is_descriptor(child)
    ]


def _is_descriptor(node: "Node") -> bool:
    """`bash 0<<< x`"""
    after = node.next_sibling
    touches = after is not None and after.type == "herestring_redirect" and after.start_byte == node.end_byte
    return touches and _DESCRIPTOR.fullmatch(source(node)) is not None
