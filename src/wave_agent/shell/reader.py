"""Reads a line of Bash: every command in it, whether it was understood completely, and what it visibly writes to.

The line is not run, and nothing is looked up: a variable's value is known if the line or the caller says so. If a line
may do one thing or another, both are included.
"""

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from posixpath import join, normpath
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

from msgspec.structs import replace

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.carriers import LANGUAGES, RUNS_PROGRAMS
from wave_agent.shell.directories import ANYWHERE, as_pattern, below, possible
from wave_agent.shell.doubt import forms, may_make
from wave_agent.shell.effort import MOST, MOST_UNPARSED, TooMuchError, limited, spend
from wave_agent.shell.git import changes_work_tree
from wave_agent.shell.grammar import DEEPEST, LONGEST, can_parse, is_deep, is_sound, parse
from wave_agent.shell.known import MOST_VALUES, Known
from wave_agent.shell.listed_names import NOWHERE
from wave_agent.shell.names import meant
from wave_agent.shell.options import OptionTable, has, read
from wave_agent.shell.pieces import pieces, redirected
from wave_agent.shell.plain import plain_commands
from wave_agent.shell.printing import printed
from wave_agent.shell.readers import named_in, runs_files
from wave_agent.shell.redirections import DESCRIPTOR, READING, REDIRECTIONS, WRITING, Redirections, redirects
from wave_agent.shell.runs import ForeignCode, Inner, ShellText, Tail
from wave_agent.shell.searches import handed_on
from wave_agent.shell.simple import DECLARING, TESTING, SimpleCommand, SimpleReading
from wave_agent.shell.targets import Target
from wave_agent.shell.values import (
    UNSEEN,
    ParsedLine,
    Placed,
    Reach,
    ShellCommand,
    Splitting,
    ValueOrigin,
    Word,
    WriteTarget,
    escape,
)
from wave_agent.shell.words import AT_FIRST, Pattern, combinations, expand_braces, literal, origin, source
from wave_agent.shell.wrappers import SHELLS, inner
from wave_agent.shell.writes import PATCHING, file_variable, patched, targets

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_COMMANDS = 3000
_MOST_WORDS = 100_000
_ANYWHERE = WriteTarget("/", Reach.TREE)
"""For a line with too many writes to follow."""
_TOO_MUCH = ParsedLine(
    commands=(ShellCommand((UNSEEN,)),),
    understood=False,
    writes=(_ANYWHERE,),
    git=(Placed((Word("git"), UNSEEN), ("/",)),),
    anything=True,
    too_much=True,
)
"""A line that takes too much work: it may run anything, and write anywhere."""
_MOST_SCRIPTS = 120
_LONGEST_ALTOGETHER = 8 * LONGEST
_DEEPEST_WRAPPING = 24
_MOST_STEPS = 32
_LONGEST_WORD = 2000
_MOST_FILES = 4
_BLANK = lazy_regex(r"\$IFS(?!\w)|\$\{IFS\}")
_CONTINUED = lazy_regex(r"(\\[^\n])|\\\n")
_COMMENT = lazy_regex(r"(?<![^\s;&|()])#[^\n]*")
_BACKSLASH_IN_FRONT = lazy_regex(r"(?<=\n)(?=\\(?!\n))")
_DESCRIPTOR = lazy_regex(r"[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\}")
_NOTHING: Mapping[str, str] = MappingProxyType({})


@lru_cache(maxsize=16)  # a call is judged by one rule after another
def read_line(text: str) -> ParsedLine:
    """Reads the line without knowing any variable or directory. Never fails, in bounded time."""
    return _read(text, _NOTHING, None)


def read_writes(text: str, variables: Mapping[str, str], directory: str) -> tuple[WriteTarget, ...]:
    """The paths that the line visibly writes to, if it is run with these variables in this directory."""
    return _read(text, variables, directory).writes


def read_placed(text: str, variables: Mapping[str, str], directory: str) -> ParsedLine:
    """The line, if it is run with these variables in this directory. Hooks, rules and the tool ask for the same line,
    one after another, and an agent tests again and again: the last ones are kept."""
    for kept_text, kept_directory, kept_variables, line in reversed(tuple(_PLACED)):
        if text == kept_text and directory == kept_directory and variables == kept_variables:
            return line
    line = _read(text, variables, directory)
    _PLACED.append((text, directory, dict(variables), line))
    if sum(len(one[0]) for one in tuple(_PLACED)) > _LONGEST_KEPT:
        while len(_PLACED) > _LEAST_KEPT:
            _PLACED.popleft()
    return line


_LEAST_KEPT = 4
_LONGEST_KEPT = 1 << 16
"""Characters of all lines that are kept, unless they are very few."""
_PLACED: deque[tuple[str, str, Mapping[str, str], ParsedLine]] = deque(maxlen=64)
"""Recent lines. A call is read for its effects, for what it writes to and for its git commands."""


_GIVEN_UP: deque[str] = deque(maxlen=16)
"""Recent lines that took too much work. A line is read for its paths and for its commands, but given up only once."""


def _read(text: str, variables: Mapping[str, str], directory: str | None) -> ParsedLine:
    if text in _GIVEN_UP:
        return _TOO_MUCH
    try:
        with limited(MOST if len(text) <= LONGEST else MOST_UNPARSED):
            return _read_within(text, variables, directory)
    except TooMuchError:
        _GIVEN_UP.append(text)
        return _TOO_MUCH


def forget() -> None:
    """Clears the cache."""
    read_line.cache_clear()
    _PLACED.clear()
    _GIVEN_UP.clear()


def _read_within(text: str, variables: Mapping[str, str], directory: str | None) -> ParsedLine:
    unix = text.replace("\r\n", "\n").rstrip("\r")
    reader = _TreeReader(variables, directory)
    if len(unix) > LONGEST:
        reader.long(unix)
    else:
        reader.forms(unix)
    if reader.known.remade or reader.anything:
        reader.anything, reader.understood = True, False
    reader.variables()
    if not reader.understood and directory is not None:
        reader.cut(unix)
    if any(write.splits is not None for write in reader.writes):
        reader.split_names()
    return ParsedLine(
        commands=tuple(dict.fromkeys(reader.commands)),
        statements=tuple(dict.fromkeys(reader.statements)),
        understood=reader.understood,
        parsed=reader.parsed,
        plain=plain_commands(text) if reader.understood and directory is None else (),
        assignments=tuple(sorted(reader.known.assigned)),
        writes=tuple(reader.writes),
        git=tuple(dict.fromkeys(reader.git)),
        placed=tuple(reader.placed),
        redirected_from=tuple(reader.redirected_from),
        redirected_to=tuple(reader.redirected_to),
        functions=tuple(sorted(reader.known.functions)),
        kept=tuple(reader.kept.items()),
        unresolved=reader.unresolved,
        texts=tuple(dict.fromkeys(reader.texts)),
        handed=tuple(dict.fromkeys(reader.handed)),
        anything=reader.anything,
        doubtful=() if reader.understood or reader.anything or directory is not None else tuple(reader.doubtful()),
    )


def _forms(text: str) -> list[str]:
    """The line in the forms the grammar needs to see what Bash sees. All of these readings are used."""
    joined: tuple[str, ...] = ()
    if "\\\n" in text:
        # A backslash continues its line, unless another one precedes it, or the line ends in a comment.
        joined = (text.replace("\\\n", ""), _CONTINUED.sub(r"\1", text), _CONTINUED.sub(r"\1", _COMMENT.sub("", text)))
    return list(dict.fromkeys((text, *map(_parted, (text, *joined)))))


def _parted(text: str) -> str:
    """The grammar splits `a$IFS-b` differently from Bash, and joins the end of a line with a `\\x` after it."""
    return _BACKSLASH_IN_FRONT.sub(" ", _BLANK.sub(" ", text))


class _TreeReader:
    """Walks the tree once, and collects."""

    def __init__(self, variables: Mapping[str, str], directory: str | None) -> None:
        self.commands: list[ShellCommand] = []
        self.statements: list[str] = []
        self.writes: dict[WriteTarget, None] = {}
        self.git: list[Placed] = []
        self.placed: dict[Placed, None] = {}
        self.redirected_from: dict[str, None] = {}
        self.redirected_to: dict[str, None] = {}
        self.unresolved = False
        self._placing = directory is not None
        self.kept: dict[str, str] = {}
        self.texts: list[str] = []
        self.handed: list[str] = []
        self.understood = True
        self.parsed = True
        self.anything = False
        self.known = Known(variables)
        self._given = variables
        self._start: tuple[str, ...] = ("",) if directory is None else (directory,)
        self._directories: tuple[str, ...] = self._start
        self._entered: tuple[str, ...] | None = None
        """The target of the `cd` that was just read."""
        self._visited: dict[str, None] = {}
        """The targets of any `cd`: another one may lead back."""
        self._scripts = self._length = self._known_at_first = self._words = self._depth = 0
        self._dotglob = self._by_name = self._last_words = False
        self._texts: dict[str, None] = {}
        """All text that a shell reads."""
        self._signature: list[tuple[str | None, ...]] = []
        """What was found in the current text, to compare the two readers."""
        self._agreed = True
        self._from_elsewhere = False
        """The current text is another program's report."""
        self._files: dict[str, Word] = {}
        """What the line has written to files, by name: it may run them."""
        self._started: set[str] = set()
        """Names of files that a shell was given before the line wrote to them."""
        self._fed: set[tuple[str, Word]] = set()
        """Functions, and what they were given to read."""
        self._guessing = False
        """The command may start at any of several words."""

    def forms(self, text: str) -> None:
        """The line in the forms the grammar needs to see what Bash sees. All of these readings are used, and one of
        them must match what the simple reader finds."""
        reading = SimpleReading(text)
        agreed = False
        for form in _forms(text):
            self.line(form, reading)
            agreed |= self._agreed
        self._agree(text, reading, agreed=agreed)

    def long(self, text: str) -> None:
        """A line that is too long for the grammar is read only by the simple reader."""
        self.parsed = False
        self._texts[text] = None
        reading = SimpleReading(text)
        if not reading.exact:
            raise TooMuchError
        self.anything |= any(found.words and not found.words[0].static for found in reading.commands)
        # Input of functions is not followed here.
        self.anything |= bool(reading.functions) and any(map(_reads_commands, reading.commands))
        self.understood &= not _is_expanded_again(text)
        self._found_simply(reading)

    def _found_simply(self, reading: SimpleReading) -> None:
        """What the simple reader has found, if it knows the words."""
        handed_on = made = Word("", static=False, origin=ValueOrigin.MADE)
        for function in reading.functions:
            self.known.define(function)
        for found in reading.commands:
            for assignment in found.assignments:
                self.anything |= _REMAKES.search(assignment.text) is not None
                self.known.assigned.add(assignment.text.partition("=")[0])
                self.known.give(self._resolved(assignment))
            for operator, word in found.redirections:
                if operator in WRITING:
                    self._write(Target(self._resolved(word)))
                if operator != ">&" or not DESCRIPTOR.fullmatch(word.text):
                    self._note_files([self._resolved(word)], operator in READING, operator in WRITING)
            stdin = made if found.fed else found.stdin or (handed_on if found.piped else None)
            spend(4 * len(found.words))
            words = tuple(map(self._resolved, found.words))
            text = printed(words)
            handed_on = made if text is None else Word(text)
            self._found(words, stdin)
            if any("{" in word.text and len(word.text) > _LONGEST_WORD for word in words):
                self._give_up()
            elif any("{" in word.text for word in words):
                self._found(tuple(Word(text) for word in words for text in expand_braces(word.text)), stdin)
        self._run_values()

    def _run_values(self) -> None:
        """Values of variables that another program runs as a command."""
        runs, self.known.runs = self.known.runs, {}
        for one in runs:
            self._run(one, None, 0)

    def _resolved(self, word: Word) -> Word:
        """The word with its variables replaced by their values, if nothing else in it is unknown."""
        if word.static:
            return word
        missing = False

        def value(found: re.Match[str]) -> str:
            nonlocal missing
            name = found[1] or found[2] or ""
            known = self.known.values.get(name) or AT_FIRST.get(name, ())
            missing |= not known
            return known[-1] if known else ""

        text = _SIMPLE_VARIABLE.sub(value, word.text)
        if missing or re.search(r"[$`'\"\\]", text):
            return word
        return Word(text, glob=text if re.search(r"[*?\[]", text) else None)

    def variables(self) -> None:
        """Files and directories that programs write to because a variable names them."""
        for name, values in tuple(self.known.values.items()):
            reach = file_variable(name)
            if reach is None:
                continue
            for text in values:
                if text == self._given.get(name) or (name.startswith("GIT_TRACE") and not text.startswith(_PLACES)):
                    continue
                known = not isinstance(text, Pattern)
                origin = text.origin if isinstance(text, Pattern) else ValueOrigin.ENVIRONMENT
                word = Word(text, static=known, glob=None if known or text == "*" else text, origin=origin)
                if reach is Reach.TREE and not any(map(changes_work_tree, self.git)):
                    continue
                self._write(Target(word, reach))
                if name.startswith("GIT_TRACE2"):  # in a directory, it makes a file
                    self._write(Target(word, Reach.INSIDE))
                if known and reach is not Reach.FILE:
                    below = f"{escape(text)}/{'**' if reach is Reach.TREE else 'tmp.*'}"  # `mktemp` makes one there
                    word = Word(below, glob=below)
                self._note_files([word], name.endswith("HISTFILE"), True)

    def split_names(self) -> None:
        """Names that are split, and that the line itself makes: each word of them may be written."""
        made = [write.pattern for write in self.writes if write.splits is None]
        if any(map(_QUOTES.search, made)):
            self.writes[_ANYWHERE] = None
        for pattern in filter(_BLANKS.search, made):
            for word in _BLANKS.split(pattern)[1:]:
                for directory in self._start:
                    self._add_write(WriteTarget(join(as_pattern(directory), word), Reach.TREE), wild=True)

    def doubtful(self) -> list[str]:
        return list(dict.fromkeys(form for text in self._texts for form in forms(text)))

    def line(self, text: str, reading: SimpleReading) -> None:
        """Twice, if the first pass learned something about values that were used before."""
        self.script(text, reading)
        known = self.known.size
        self._run_values()
        if known != self._known_at_first:
            self._directories = self._start
            self._fed.clear()
            self.script(text, reading)
        self.understood &= self.known.complete

    def script(
        self, text: str, reading: SimpleReading, arguments: Sequence[Word] = (), stdin: Word | None = None
    ) -> None:
        """A line, or text that a command passes to a shell."""
        self._scripts += 1
        spend(100 + (len(text) >> 2))
        again = text in self._texts
        self._texts[text] = None
        self._length += len(text)
        too_much = self._scripts > _MOST_SCRIPTS or self._length > _LONGEST_ALTOGETHER or self._depth > DEEPEST
        if too_much:
            self._give_up()
        if not can_parse(text):
            self.understood = self.parsed = self._agreed = False
            return
        root = parse(text, again=again)
        if is_deep(root):
            self._give_up()
        if not is_sound(root):
            self.understood = self.parsed = False
        if arguments:
            self.known.set_arguments(arguments)
        self.known.collect(root)
        if self._depth == 0:
            self._known_at_first = self.known.size
        self._dotglob |= "dotglob" in text  # a star then also matches a leading dot
        self._by_name |= "cdable_vars" in text
        self._last_words |= "$_" in text or "{_" in text
        self.understood &= not _is_expanded_again(text)
        outer, self._signature = self._signature, []
        self._visit(root, stdin)
        self._agreed = reading.exact and Counter(self._signature) == Counter(map(_unordered, reading.signature()))
        self._signature = outer

    def _nested(self, text: str, arguments: Sequence[Word] = (), stdin: Word | None = None) -> None:
        self._depth += 4
        reading = SimpleReading(text)
        self.script(text, reading, arguments, stdin)
        self._agree(text, reading, agreed=self._agreed)
        self._depth -= 4

    def _agree(self, text: str, reading: SimpleReading, *, agreed: bool) -> None:
        """If the readers find different commands, either may be right, and the line itself may build one of these
        commands."""
        if not agreed:
            self.understood = False
            self.anything |= may_make(text)
            self._found_simply(reading)
            for word in [word for found in reading.commands for word in found.words[1:]]:
                if word.static and " " in word.text and word.text not in self._texts:
                    self._nested(word.text)  # whichever command it belongs to may pass it to a shell

    def _give_up(self) -> NoReturn:
        """There is too much of it to follow."""
        raise TooMuchError

    def cut(self, text: str) -> None:
        """What the characters alone say about paths, for a line that was not understood."""
        for piece in pieces(text):
            self._add_targets(tuple(map(Word, piece.split()[:_MOST_COMMANDS])))
        for path in redirected(text):
            self._write(Target(Word(path)))

    # ------------------------------------------------------------------------------------------------------- statements

    def _visit(self, node: "Node", stdin: Word | None = None, extra: Redirections | None = None) -> None:
        self._depth += 1
        spend(3)
        if self._depth > DEEPEST or len(self.commands) > _MOST_COMMANDS:
            self._give_up()
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
                self._nested(source(node))  # `${x:-`…`}`: the grammar does not parse it
            if node.type in REDIRECTIONS:
                self._note_redirection(node)
            if self._last_words and node.type in _ALSO_SET_LAST_WORD:
                for fields in combinations(node.named_children[-1:], self.known.values)[0]:
                    self.known.last_word(fields or (UNSEEN,))
            if node.type == "function_definition":
                stdin = self._read_from(Redirections.of(redirects(node), self.known.values)) or stdin
            self._inside(node, stdin)

    def _note_redirection(self, node: "Node") -> None:
        targets = node.children_by_field_name("destination") or node.named_children[-1:]
        if node.type == "heredoc_redirect":
            starts = [source(child) for child in node.named_children if child.type == "heredoc_start"]
            self._signature.append(("<<", *starts))
            return
        operator = next((child.type for child in node.children if not child.is_named), "")
        if operator.endswith("&-"):
            self._signature.append((operator[:-1], "-"))
        else:
            self._signature.append((operator, literal(targets[0]) if targets else None))

    def _inside(self, node: "Node", stdin: Word | None = None) -> None:
        for child in node.named_children:
            if child.type in REDIRECTIONS:
                self._redirect(Redirections.of([child], self.known.values))
            self._visit(child, stdin)

    def _elsewhere(self, node: "Node", stdin: Word | None) -> None:
        """Another process: it has its own directory."""
        directories = self._directories
        if node.type == "command_substitution" and (node.text or b"").startswith(b"`") and b"\\" in (node.text or b""):
            inside = source(node)[1:-1]
            self._nested(inside.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\"))
        self._inside(node, stdin)
        self._directories = directories

    def _list(self, node: "Node", stdin: Word | None, extra: Redirections | None) -> None:
        """The grammar attaches the redirections of the last command to the whole list."""
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
        """What a stage of a pipeline passes on."""
        if node.type == "redirected_statement":
            redirections = Redirections.of(redirects(node), self.known.values)
            body = node.child_by_field_name("body") or node
            while body.type in ("list", "pipeline") and body.named_children:
                body = body.named_children[-1]
            if source(body).strip() == "cat" and redirections.stdin is not None:
                return redirections.stdin
            return (
                Word(source(node), static=False, origin=origin([node])) if body is node else self._output(body, stdin)
            )
        if node.type == "negated_command" and node.named_children:
            return self._output(node.named_children[-1], stdin)
        if node.type == "command":
            lines, _ = combinations(_word_nodes(node), self.known.values)
            lines = [_untimed(line) for line in lines]
            text = printed(lines[0]) if lines else None
            if text is not None:
                return Word(text)
            if lines and lines[0]:
                return handed_on(lines[0], stdin) or Word(source(node), static=False, origin=origin([node]))
        inside = [child for child in node.named_children if child.type in ("command", "redirected_statement")]
        if node.type in ("subshell", "compound_statement") and inside:
            texts = [self._output(child) for child in inside]
            # Whether a line ends at the end of an output is left open.
            joined = "\n".join(between.join(text.text for text in texts) for between in ("\n", "")[: len(texts)])
            return Word(joined, static=all(text.static for text in texts))
        return Word(source(node), static=False, origin=origin([node]))

    def _redirected(self, node: "Node", stdin: Word | None) -> None:
        self.statements.append(source(node))
        redirections = Redirections.of(redirects(node), self.known.values)
        body = node.child_by_field_name("body")
        if body is None:
            self._redirect(redirections)
        else:
            for target in (word for word in redirections.written if word.static):
                self._keep(target.text.rsplit("/", 1)[-1], self._output(node, stdin))
            self._visit(body, self._read_from(redirections) or stdin, redirections)
        for redirect in redirects(node):
            self._note_redirection(redirect)
            # Whatever follows `<<EOF` on its line is found inside it.
            piped = self._output(node) if redirect.type == "heredoc_redirect" else None
            for child in redirect.named_children:
                if child.type == "pipeline" and piped is not None:
                    self._pipeline(child, piped)
                elif child.type == "process_substitution" and body is not None:
                    self._visit(child, self._output(body, stdin))
                else:
                    self._visit(child, piped)

    def _redirect(self, redirections: Redirections) -> None:
        for target in redirections.written:
            self._write(Target(target))
        self._note_files(redirections.read, True, False)
        self._note_files(redirections.written, False, True)
        for text in redirections.substitutions:
            self._nested(text)

    def _note_files(self, words: Sequence[Word], read: bool, written: bool) -> None:
        for word in words if self._placing and (read or written) else ():
            if not word.static and not word.text.startswith(("<(", ">(")):
                self.unresolved = True
                if socket := _SOCKET.match(word.text):  # Bash connects to it
                    self.redirected_to[f"/dev/{socket[1]}/*/0"] = None
            elif word.static and word.text:
                spend(10 + (len(word.text) >> 4))
                pattern = self._pattern(word)
                found = dict.fromkeys(join(as_pattern(directory), pattern) for directory in self._directories)
                self.redirected_from |= found if read else {}
                self.redirected_to |= found if written else {}

    # --------------------------------------------------------------------------------------------------------- commands

    def _command(self, node: "Node", stdin: Word | None, outer: Redirections) -> None:
        self.statements.append(source(node))
        own = Redirections.of([child for child in node.children if child.type.endswith("redirect")], self.known.values)
        self._redirect(own)
        self._redirect(outer)
        nodes = [*_word_nodes(node), *own.words, *outer.words]
        spelt = tuple(map(literal, nodes))
        if spelt and spelt[0] not in DECLARING and spelt[0] not in TESTING:
            self._signature.append(_unordered(spelt))
        lines, complete = combinations(nodes, self.known.values)
        self.understood &= complete
        stdin = self._read_from(own) or self._read_from(outer) or stdin
        for line in lines:
            self._found(line, stdin)
        printed = None
        for child in node.named_children:
            if source(child).startswith(">(") and printed is None:
                printed = self._output(node, stdin)
            self._visit(child, printed if child.type in ("process_substitution", "file_redirect") else None)

    def _found(
        self,
        found: tuple[Word, ...],
        stdin: Word | None,
        level: int = 0,
        *,
        shortened: bool = False,
        guessed: bool = False,
    ) -> None:
        if not found:
            return
        spend(20 + 2 * len(found))
        self._words += len(found)  # aliases and functions can make a command longer every time
        if level > _DEEPEST_WRAPPING or len(self.commands) > _MOST_COMMANDS or self._words > _MOST_WORDS:
            self._give_up()
        name = found[0]
        numbered = _BY_NUMBER.fullmatch(name.text) is not None
        if not name.static and name.base is not None and name.origin is not ValueOrigin.MADE and not numbered:
            found = (Word(name.base), *found[1:])
            name = found[0]
        self.commands.append(ShellCommand(found))
        if self._placing:
            self.placed[Placed(found, self._directories, stdin, shortened, guessed or self._guessing)] = None
        self._add_targets(found)
        if not name.static or name.glob is not None or numbered:
            self.understood = False
            self._unknown(found, stdin, level)
        if any(_REMAKES.search(word.text) for word in found) or _repeats(found):
            self.anything = True
        for words in meant(found):
            self._found(words, stdin, level + 1)
        self._meaning(found, stdin, level)
        run = list(inner(found, stdin))
        outer = self._guessing
        self._guessing |= len({one.words[:1] for one in run if isinstance(one, Tail)}) > 1
        for one in run:
            self._run(one, stdin, level)
        self._guessing = outer

    def _unknown(self, found: tuple[Word, ...], stdin: Word | None, level: int) -> None:
        """Leading unknown words may be nothing, something that runs the rest, or a shell."""
        name = found[0]
        if not name.static and name.origin is not ValueOrigin.ENVIRONMENT and name.glob is None:
            self.anything |= name.origin is ValueOrigin.MADE or not (self._from_elsewhere or self._guessing)
        for at in range(1, min(len(found), MOST_VALUES)):
            self.commands.append(ShellCommand(found[at:]))
            self._add_targets(found[at:])
        if _BY_NUMBER.fullmatch(name.text):
            self.commands.append(ShellCommand((Word(name.text, static=False), *found[1:])))
        for one in inner((Word("bash"), *found[1:]), stdin):
            self._run(one, stdin, level)
        if any(" " in word.text for word in found[1:]):
            self._run(
                ShellText(Word(" ".join(word.text for word in found[1:]), all(w.static for w in found[1:]))),
                None,
                level,
            )

    def _meaning(self, found: tuple[Word, ...], stdin: Word | None, level: int) -> None:
        """What the line itself says about this name, or this command about later ones."""
        name = found[0].text
        if name in ("cd", "pushd", "popd"):
            self._enter(name, found[1:])
        if name == "time":
            for word in found[1:]:
                if _ASSIGNS.match(word.text):
                    self.known.give(word)
        if name == "exec" and len(found) == 1 and stdin is not None:
            self._script(ShellText(stdin), None)  # from now on, anything that reads stdin reads this
        self._run_files(found, stdin)
        self._run_copy(found, stdin, level)
        self._learn(found, stdin)
        if name in self.known.aliases:
            aliases = self.known.aliases
            rest = found[1:]
            self._found((*aliases[name], *rest), stdin, level + 1)
            if any(word.text in aliases for word in rest):  # `alias g='git '`: the next word is looked up as well
                self._found(
                    (*aliases[name], *(w for word in rest for w in aliases.get(word.text, (word,)))), stdin, level + 1
                )
        if name in self.known.bodies and stdin is not None and (name, stdin) not in self._fed:
            self._fed.add((name, stdin))
            for body in self.known.bodies[name][:_MOST_FILES]:
                self._again(body, stdin)
        if name in self.known.functions and found[1:]:
            self.known.set_arguments(found)
            for at in range(1, min(len(found), MOST_VALUES)):  # the function may run its arguments
                if not re.search(r"\s", found[at].text):
                    self._found(found[at:], stdin, level + 1, guessed=True)

    def _learn(self, found: tuple[Word, ...], stdin: Word | None) -> None:
        self.known.follow(found, stdin)
        if self._last_words:
            self.known.last_word(found)
        if found[0].text in PATCHING:
            for target in patched(found, self._patch_of(found, stdin)):
                self._write(target)

    def _patch_of(self, found: tuple[Word, ...], stdin: Word | None) -> Word | None:
        """What it reads, if the line says so: its input, or a file that the line has written."""
        names = (word.text.rsplit("/", 1)[-1] for word in found[1:])
        return next((self._files[name] for name in names if name in self._files), stdin)

    def _again(self, function: "Node", stdin: Word) -> None:
        """A function, with the input it is given."""
        signature = self._signature
        self._signature = []
        self._inside(function, stdin)
        self._signature = signature

    def _run_files(self, found: tuple[Word, ...], stdin: Word | None) -> None:
        """Files written by the line may be run, and a FIFO even before: `bash f & echo x > f`."""
        name = found[0].text
        names = [word.text.rsplit("/", 1)[-1] for word in found]
        for one in self._may_run(found):
            self._started.add(one)
            if (text := self._files.pop(one, None)) is not None:
                self._script(ShellText(text), None)
        if name in _COPYING:
            kept = [self._files[one] for one in names[1:] if one in self._files][:1]
            for one in names[1:] if kept else ():
                self._keep(one, kept[0])
        if name in _KEEPING and stdin is not None:
            for target in targets(found):
                self._keep(target.word.text.rsplit("/", 1)[-1], stdin)
        if name in LANGUAGES or runs_files(name):
            for one in (*names[1 : 1 + _MOST_FILES], *_BY_ITSELF.get(name, ())):
                if one in self._files:
                    self._run(ForeignCode(self._files[one]), None, 0)

    def _may_run(self, found: tuple[Word, ...]) -> list[str]:
        """Names of files that this command runs: as they are written, those of files the line has made that a wildcard
        matches, and for a shell what its user may have put into certain files."""
        shell = found[0].text in SHELLS or found[0].text in (".", "source")
        words = found[:_MOST_FILES] if shell else found[:1]
        names = [word.text.rsplit("/", 1)[-1] for word in words]
        for word in words if self._files else ():
            if word.glob is not None:
                last = word.glob.rsplit("/", 1)[-1]
                names += [name for name in self._files if fnmatchcase(name, last)]
            elif shell and not word.static and ("$" in word.text or "`" in word.text):
                names += [name for name, text in self._files.items() if text.static]
        return [*names, *(_START_UP if found[0].text in SHELLS else ())]

    def _run_copy(self, found: tuple[Word, ...], stdin: Word | None, level: int) -> None:
        """A program that the line has copied, moved or linked is still that program: `cp /usr/bin/git x; ./x push`."""
        name = found[0].text
        if name in _COPYING:
            operands = [word for word in found[1:] if not word.text.startswith("-")]
            known = self.known.copies.setdefault(operands[-1].text.rsplit("/", 1)[-1], []) if operands else []
            known += [word for word in operands[:-1] if word not in known][: _MOST_FILES - len(known)]
        called = name.rsplit("/", 1)[-1]
        sources = self.known.copies.pop(called, [])  # meanwhile none: two copies may have been exchanged
        for one in sources:
            self._found((one, *found[1:]), stdin, level + 1)
        if sources:
            self.known.copies[called] = sources

    def _keep(self, name: str, text: Word) -> None:
        if name in self._started:
            self._started.discard(name)
            self._script(ShellText(text), None)
        else:
            self._files[name] = text
            if text.static:
                self.kept[name] = text.text

    def _read_from(self, redirections: Redirections) -> Word | None:
        """What the line says about the input."""
        kept = (self._files.get(word.text.rsplit("/", 1)[-1]) for word in redirections.read)
        return redirections.stdin or next((text for text in kept if text is not None), None)

    def _run(self, one: Inner, stdin: Word | None, level: int) -> None:
        if isinstance(one, ForeignCode):
            self._code(one)
            return
        if isinstance(one, ShellText):
            self._script(one, stdin)
            return
        directories = self._directories
        if one.directory is not None:
            self._directories = tuple(place for base in directories for place in possible(base, one.directory))
        for assignment in one.assignments:
            self.known.give(assignment)
        self._found(one.words, stdin, level + 1, shortened=one.shortened)
        if one.directory is not None:
            self._directories = directories

    def _code(self, code: ForeignCode) -> None:
        text = code.text.text
        self.texts.append(text)
        given = "" if code.data is None else code.data.text
        if _WORKS_ON.search(text) is not None:
            values = (value for name in sorted(self.known.assigned) for value in self.known.values.get(name, ()))
            given = " ".join((given, *(value for value in values if not isinstance(value, Pattern))))[:_LONGEST_DATA]
            text = f"{text} {given}"
        if RUNS_PROGRAMS.search(code.text.text):
            # What it runs may start in the code and end in its data, or the other way round.
            self.handed.append(f"{text} {code.text.text}")
        for target in named_in(text):
            self._write(target)

    def _script(self, script: ShellText, stdin: Word | None) -> None:
        """Text for a shell. Anything expanded before the shell reads it may be any text."""
        text = script.text
        if text.static:
            self._nested(text.text, script.arguments, stdin)
            return
        self.understood = False
        self.anything |= text.origin is ValueOrigin.MADE
        outer, self._from_elsewhere = self._from_elsewhere, True
        self._nested(text.text, script.arguments, stdin)
        self._from_elsewhere = outer

    def _enter(self, name: str, arguments: Sequence[Word]) -> None:
        self.known.values["OLDPWD"] = self._directories
        spend(sum(8 + (len(directory) >> 4) for directory in self._directories))
        # One `cd` may be read in several ways: `cd $X` may have an argument, or none.
        before = self._entered or ()
        self._entered = tuple(dict.fromkeys((*before, *self._destinations(name, arguments))))[:MOST_VALUES]
        self._visited |= dict.fromkeys((*self._directories, *self._entered))
        after = tuple(dict.fromkeys((*self._directories, *self._entered)))
        # A `cd` that fails changes nothing: with too many places, the actual one may not be stored.
        self._directories = after if len(after) <= MOST_VALUES else (*after[1 - MOST_VALUES :], ANYWHERE)
        for directory in self._entered:
            self.known.learn("PWD", directory)

    def _destinations(self, name: str, arguments: Sequence[Word]) -> Iterator[str]:
        """Where a `cd` may lead. The target may also be a pattern, or unknown."""
        operands = [word for word in arguments if not word.text.startswith("-") or word.text == "-"]
        home = self.known.values.get("HOME", ())
        if name == "popd" or (name == "pushd" and not operands) or any(_BACK.fullmatch(one.text) for one in arguments):
            yield from (*self._directories, *self._visited)
        physical = any(word.text.startswith("-") and "P" in word.text for word in arguments)
        if physical and any(".." in word.text for word in operands):
            yield ANYWHERE  # where the system finds it: see `possible`
        for target in operands or [Word(home[0])] if name == "cd" and home else operands:
            starts = [start for value in self.known.values.get("CDPATH", ()) for start in value.split(":")]
            for directory in self._directories:
                yield below(directory, target)
                yield from (below(below(directory, Word(start)), target) for start in starts)
            if self._by_name:  # `shopt -s cdable_vars; cd name`
                yield from (join(one, each) for each in self.known.values.get(target.text, ()) for one in self._start)

    # ----------------------------------------------------------------------------------------------------------- writes

    def _add_targets(self, found: Sequence[Word]) -> None:
        spend(5 + 4 * len(found))
        # Not what an alias may be: the code that asks git about the line knows the aliases.
        if found and found[0].text.rsplit("/", 1)[-1] == "git" and not any(word.anything for word in found):
            known = [one for one in self._directories if not isinstance(one, Pattern)]
            known = known or [one for one in (*self._start, *self._visited) if not isinstance(one, Pattern)]
            self.git.append(Placed(tuple(found), tuple(dict.fromkeys(known))))
        for target in targets(found):
            self._write(target)

    def _write(self, target: Target) -> None:
        word = target.word
        if not word.static and word.glob is None and word.origin is ValueOrigin.MADE and not target.guessed:
            word = Word(word.text, static=False, glob=ANYWHERE)  # the line builds the name
        if (not word.static and word.glob is None) or not word.text:
            return
        spend(6 + (len(word.text) >> 4))
        pattern = self._pattern(word)
        for directory in self._directories:
            if target.guessed and directory == ANYWHERE:
                continue
            spend(8 + (len(directory) >> 5))
            place = directory if target.below is None else below(directory, target.below)
            wild = word.glob is not None or isinstance(place, Pattern)
            for one in _upwards(place) if target.upwards and not isinstance(place, Pattern) else (place,):
                write = target.write(join(as_pattern(one), pattern))
                if word.splits not in ("", NOWHERE):
                    write = replace(write, splits=Splitting(word.splits, one))
                self._add_write(write, wild=wild)

    def _pattern(self, word: Word) -> str:
        """A word that names a file, as a pattern."""
        pattern = word.pattern
        home = self.known.values.get("HOME", ())
        if pattern.startswith("~/") and home:
            pattern = escape(home[0]) + pattern[1:]
        pattern = _HERE.sub("./", pattern)
        return _STAR.sub("**", pattern) if self._dotglob else pattern

    def _add_write(self, write: WriteTarget, *, wild: bool) -> None:
        if write not in self.writes:
            # It will be compared with protected paths, by name and by existing files.
            spend(300 + len(write.pattern) if wild else 40 + (len(write.pattern) >> 3))
            self.writes[write] = None


_SOCKET = lazy_regex(r"/dev/(tcp|udp)/")
_BLANKS, _QUOTES = lazy_regex(r"\s+"), lazy_regex(r"['\"\\]")
_PLACES = ("/", "~", "*")
_ALSO_SET_LAST_WORD = ("declaration_command", "unset_command", "test_command")
_INDEX = lazy_regex(r"(?>.*?\w\[).*(?:\$\(|`)", re.DOTALL)
"""Contains a substitution. Only the first bracket is checked, so that the time does not grow quadratically."""
_INDEX_ENDS = lazy_regex(r"[\]\n]")
_BY_NUMBER = lazy_regex(r"/proc/[^/]+/(?:exe|fd/\d+)|/dev/fd/\d+|/dev/stdin")
"""Names that do not identify a program."""
_SIMPLE_VARIABLE = lazy_regex(r"\$(?:\{(\w+)\}|(\w+))")
_REMAKES = lazy_regex(r"(?:^|=)(?:BASH_ALIASES|BASH_CMDS|BASH_FUNC_|command_not_found_handle|expand_aliases$)")
"""These redefine a command."""
_WORKS_ON = lazy_regex(rf"{RUNS_PROGRAMS.pattern}|open|write|[>|]|unlink|rename|remove|shutil|Path|File", re.IGNORECASE)
"""In code: it may do something with its input other than showing it."""
_LONGEST_DATA = 4000
_KEEPING = frozenset({"dd", "sponge", "tee"})
"""Commands that write their input to a file."""
_BY_ITSELF: Mapping[str, tuple[str, ...]] = {
    "cmake": ("CMakeLists.txt",),
    "make": ("GNUmakefile", "Makefile", "makefile"),
    "rake": ("Rakefile",),
}
"""Files that a program runs without being given their names."""
_COPYING = frozenset({"cp", "install", "ln", "mv"})
_BACK = lazy_regex(r"-|[+-]\d+")
_ASSIGNS = lazy_regex(r"[A-Za-z_]\w*\+?=")
_STAR = lazy_regex(r"(?<![^/])\*(?!\*)")
_HIDDEN = lazy_regex(r"`|\$\(")
_HERE = lazy_regex(r"^/proc/(?:self|thread-self|\$\$|\d+)/cwd/")


def _repeats(found: Sequence[Word]) -> bool:
    """`fc` runs a command of the history again; `set -H` makes `!!` one."""
    texts = [word.text for word in found]
    if texts[0] == "fc":
        options, _ = read(found, OptionTable("e"))
        return not has(options, "-l")
    return texts[0] == "set" and ("histexpand" in texts or any(map(_HISTORY.fullmatch, texts)))


_HISTORY = lazy_regex(r"-[a-zA-Z]*H[a-zA-Z]*")
_START_UP = (
    *(
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".profile",
        ".bash_logout",
        ".zshenv",
        ".zshrc",
        ".zprofile",
        ".zlogin",
    ),
    *(".zlogout", ".kshrc", ".mkshrc", ".shrc", ".yashrc", ".cshrc", ".tcshrc", ".login", "config.fish"),
)


def _reads_commands(found: SimpleCommand) -> bool:
    words = [word.text.rsplit("/", 1)[-1] for word in found.words]
    return bool(words) and (words[0] in SHELLS or words[0] in (".", "source")) and "-c" not in words


def _is_expanded_again(text: str) -> bool:
    """Whether it contains a value or an index that is expanded again when it is used."""
    if "@P}" in text:
        return True
    return "[" in text and ("$(" in text or "`" in text) and any(map(_INDEX.match, _INDEX_ENDS.split(text)))


def _upwards(directory: str) -> list[str]:
    """The directory and its parents."""
    steps = normpath(directory).split("/")
    return ["/".join(steps[:end]) or "/" for end in range(len(steps), 0, -1)][:_MOST_STEPS]


def _untimed(words: tuple[Word, ...]) -> tuple[Word, ...]:
    start = 1 if words and words[0].text == "time" else 0
    return words[start + (start and words[1:2] == (Word("-p"),)) :]


def _unordered(words: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """The grammar attaches words to redirections before them, and loses the dash of `python3 - <<E`."""
    return (words[0], *sorted((word for word in words[1:] if word != "-"), key=str))


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
