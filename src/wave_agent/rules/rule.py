"""Permission rules: `Tool` or `Tool(pattern)`, as written in settings and in a hook's `if`."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from importlib import import_module
from posixpath import join, normpath
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.formats.user_regex import compile_strictly, matching_glob
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.values import ParsedLine, ShellCommand, ValueOrigin, Word
from wave_agent.text import nearest

if TYPE_CHECKING:
    from wave_agent.effects.values import Effects, PathOrigin  # a session without path rules never needs it

PATH_FIELDS: Mapping[str, str] = {
    "Read": "file_path",
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
    "Glob": "path",
    "Grep": "path",
}
_PATH_FIELDS = {tool.casefold(): field for tool, field in PATH_FIELDS.items()}
"""File tools, and the input field with the path that a pattern is matched against."""
TASK = "task"
"""The tool that runs subagents: a pattern is matched against their type."""
SAME_TOOL: Mapping[str, str] = {"agent": TASK, TASK: "agent"}
"""In lower case. `Task` is the name here; other agents call it `Agent`, and settings may use either."""
SKILL = "skill"
"""The tool that loads skills: a pattern is matched against their name, or the name and the arguments."""
NET = "net"
"""The tool of rules about hosts. No tool has that name; any may reach a host."""
FETCH = "webfetch"
"""The tool that reads pages: its patterns are hosts, and allow rules about hosts mean it alone."""
_ABOUT_EFFECTS = frozenset({"read", "edit", "write", "multiedit", "notebookedit", NET})
"""The tools of rules that restrict whatever has the same effect."""


class RuleError(ValueError):
    """Why a rule cannot be used, and what to write instead."""


class Purpose(Enum):
    """What a match would do. It determines which way to err."""

    RESTRICT = "deny or ask"
    PERMIT = "allow"


class Places(Struct, frozen=True):
    """The base of relative patterns and `~/`. Absolute paths."""

    project: str
    home: str
    start: str = ""
    """The base of relative paths in a tool's input, if not the project."""


class Rule(Struct, frozen=True):
    """One parsed rule."""

    text: str
    tool: str
    pattern: str | None = None
    also: str | None = None
    """The same pattern, for the subdirectory whose settings contain the rule."""

    @property
    def spelt(self) -> tuple[str, ...]:
        """Equivalent rules that do not depend on a directory."""
        return (self.text,) if self.also is None else (self.text, f"{self.text.partition('(')[0]}({self.also})")

    def matches(
        self, tool: str, tool_input: Mapping[str, Any], places: Places, purpose: Purpose = Purpose.RESTRICT
    ) -> bool:
        """Whether the rule applies to this call."""
        name = tool.casefold()
        name = TASK if name in SAME_TOOL else name
        if self.tool == NET and purpose is Purpose.PERMIT:  # no command, and no tool of someone's own
            return name == FETCH and _matches_page(self.pattern, tool_input, purpose)
        if self.pattern is None:
            return self.names(tool)
        return name == self.tool and self._fits(self.pattern, tool_input, places, purpose)

    def names(self, tool: str) -> bool:
        """Whether the rule is about calls of this tool, whatever their input."""
        name = tool.casefold()
        name = TASK if name in SAME_TOOL else name
        if "*" in self.tool:
            return _compiled(self.tool, ".").fullmatch(name) is not None
        # `mcp__server` means every tool of that server; `mcp__server__tool` only that one.
        whole_server = self.tool.startswith("mcp__") and self.tool.count("__") == 1
        return name == self.tool or (whole_server and name.startswith(f"{self.tool}__"))

    def _fits(self, pattern: str, tool_input: Mapping[str, Any], places: Places, purpose: Purpose) -> bool:
        """Whether the pattern matches this call of its tool."""
        if self.tool == "bash":
            return _matches_command(pattern, str(tool_input.get("command", "")), purpose)
        if self.tool == FETCH:
            return _matches_page(pattern, tool_input, purpose)
        if self.tool == NET:
            return True  # someone's own tool
        if self.tool == TASK:
            kind = str(tool_input.get("subagent_type", "")).casefold()
            return _compiled(pattern.casefold(), ".").fullmatch(kind) is not None
        if self.tool == SKILL:
            return _matches_skill(pattern, tool_input)
        path = str(tool_input.get(_PATH_FIELDS[self.tool]) or ".")
        return any(_matches_path(one, path, places) for one in (pattern, self.also) if one is not None)

    def touched(self, effects: "Effects | None", places: Places) -> str | None:
        """What a call with these effects would do that the rule is about, such as `read .env`. None: nothing known.

        `Read(path)` is about whatever reads the path, `Edit(path)` and `Write(path)` about whatever writes or deletes
        it, `Net(host)` about whatever reaches the host. `effects` may be None: then they are not known.
        """
        if effects is None or not self.is_about_effects:
            return None
        from wave_agent.rules.touched import touched_host, touched_path  # lazy: few sessions have such rules

        if self.tool == NET:
            bare = () if self.pattern is None else effects.bare_hosts
            return touched_host(self.pattern, (*effects.hosts, *bare))
        return touched_path(self.tool, lambda path: self.covers(path, places), effects, places.project)

    def named(self, effects: "Effects | None", places: Places) -> "PathOrigin | None":
        """Which argument of a call of an MCP server's tool names what the rule is about."""
        if effects is None or not effects.origins or not self.is_about_effects or self.tool == NET:
            return None
        from wave_agent.rules.touched import origin  # lazy: see above

        return origin(self.tool, lambda path: self.covers(path, places), effects)

    def may_mean(self, hosts: Sequence[str]) -> bool:
        """Whether one of these hosts is not known, and may be one that the rule is about."""
        return self.tool == NET and "*" in hosts

    @property
    def is_about_effects(self) -> bool:
        """It restricts whatever has an effect, not only the tool that it names."""
        return self.tool == NET or (self.pattern is not None and self.tool in _ABOUT_EFFECTS)

    def covers(self, path: str, places: Places) -> bool:
        """Whether the pattern of a path rule matches this absolute, normalised path."""
        patterns = (one for one in (self.pattern, self.also) if one is not None)
        return any(_compiled_path(one, places).fullmatch(path) for one in patterns)


_SHAPE = lazy_regex(r"((?i:mcp__[\w*-]+)|[A-Za-z_][\w-]*)(?:\((.*)\))?", re.DOTALL)
"""Only the names of MCP servers and their tools may have wildcards."""


def parse_rule(text: str) -> Rule:
    """Raises `RuleError`."""
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None and text.casefold().startswith("mcp__"):
        raise RuleError(f'"{text}" is not a rule: in the name of an MCP tool, write _ for characters like . and spaces')
    if shape is None:
        raise RuleError(f'"{text}" is not a rule: write Tool or Tool(pattern), such as Bash(git push:*) or Read(.env)')
    tool, pattern = shape[1].casefold(), shape[2]
    tool = TASK if tool in SAME_TOOL else tool
    pattern = pattern and pattern.strip()
    if tool == NET:
        return Rule(text, tool, _host_pattern(text, pattern))
    if pattern is None or (pattern in ("*", ":*") and tool not in _PATH_FIELDS):
        return Rule(text, tool)
    if tool == FETCH:
        return Rule(text, tool, _host_pattern(text, pattern.removeprefix("domain:").strip(), shape[1]))
    if tool.startswith("mcp__"):
        server = "__".join(shape[1].split("__")[:2])
        raise RuleError(
            f'"{text}": rules for MCP tools take no pattern; write "{server}" for all tools of that server or '
            f'"{server}__TOOL" for one of them'
        )
    if tool not in _PATH_FIELDS and tool not in ("bash", TASK, SKILL):
        raise RuleError(_why_no_pattern(text, shape[1], pattern))
    if tool == "bash":
        import_module("wave_agent.shell.reader")  # when a command is judged, no file descriptor may be left
        import_module("wave_agent.shell.wrappers")
    if not _PREFIX.sub("", pattern):
        raise RuleError(f'"{text}": the pattern is empty; write "{shape[1]}" for every call of that tool')
    if tool in _PATH_FIELDS:
        _check_path_pattern(text, pattern)
    return Rule(text, tool, pattern)


_WITH_PATTERN = ("Bash", *PATH_FIELDS, "Task", "Agent", "Skill", "WebFetch", "Net")


def _why_no_pattern(text: str, tool: str, pattern: str) -> str:
    """A misspelt name would guard nothing, with or without its pattern."""
    if meant := nearest(tool, _WITH_PATTERN, likeness=0.75):  # Raed is Read, but WebSearch is not WebFetch
        return f'"{text}": {tool} takes no pattern; did you mean {meant}({pattern})?'
    return f'"{text}": only {", ".join(_WITH_PATTERN)} take a pattern; write "{tool}" for every call of that tool'


_HOST = lazy_regex(r"(?:\*\.)?[\w-]+(?:\.[\w-]+)*|[0-9a-f:.]*:[0-9a-f:.]*")


def _host_pattern(text: str, pattern: str | None, tool: str = "Net") -> str | None:
    """None: any host."""
    if pattern is None or pattern == "*":
        return None
    host = pattern.strip("[]").rstrip(".").lower()
    if _HOST.fullmatch(host) is None:
        raise RuleError(
            f'"{text}": write a host without scheme, port and path: {tool}(example.com), {tool}(*.example.com) or '
            f"{tool}(*)"
        )
    from wave_agent.effects.hosts import normal_host  # lazy: few sessions have such rules

    below = "*." if host.startswith("*.") else ""
    return f"{below}{normal_host(host.removeprefix('*.'))}"


def below(rule: Rule, directory: str) -> Rule:
    """A restrictive rule from the settings of a subdirectory: it may have been meant for that directory or for the
    project, so it applies to both."""
    if not directory or rule.pattern is None or rule.tool not in _PATH_FIELDS or rule.pattern.startswith(("//", "~/")):
        return rule
    escaped = re.sub(r"[*?\[]", r"[\g<0>]", directory)
    return replace(rule, also=f"{escaped}/{rule.pattern.removeprefix('./').removeprefix('/')}")


def _check_path_pattern(text: str, pattern: str) -> None:
    """A pattern that could never match would be a missing guard."""
    inner = pattern.removeprefix("//").removeprefix("~/").removeprefix("./").strip("/")
    if any(part in ("", ".", "..") for part in inner.split("/")):
        raise RuleError(f'"{text}": write the path without empty, "." and ".." parts; a leading // makes it absolute')
    try:
        compile_strictly(_glob(pattern))
    except ValueError as error:
        raise RuleError(f'"{text}": invalid pattern: {error}') from None


_KEPT = 8192
"""Cached expressions: more than there are rules, else each call would recompile all of them."""
_PREFIX = lazy_regex(r":\*$")
_OPEN_END = lazy_regex(r"(?::| )\*$")
# An allow rule's `*` must not extend into another command, a substitution or a redirection.
_ONE_COMMAND = r"[^;&|<>\n`$(){}]"


@lru_cache(maxsize=_KEPT)
def _compiled(pattern: str, anything: str) -> re.Pattern[str]:
    pieces = [re.escape(piece) for piece in _PREFIX.sub("", pattern).split("*")]
    if not _PREFIX.search(pattern):
        return re.compile(matching_glob(pieces, anything), re.DOTALL)
    pieces[-1] += r"(?=[ \t]|\Z)"
    return re.compile(matching_glob([*pieces, rf"(?:[ \t]{anything}*)?"], anything, glued=True), re.DOTALL)


def _matches_skill(pattern: str, tool_input: Mapping[str, Any]) -> bool:
    """`Skill(name)` is a skill whatever its arguments; `Skill(name *)` includes a call without any."""
    name = str(tool_input.get("skill", "")).strip().removeprefix("/").casefold()
    compiled = _compiled(pattern.removeprefix("/").casefold(), ".")
    return any(compiled.fullmatch(text) for text in (name, f"{name} {tool_input.get('args') or ''}".casefold()))


def _read_line(command: str) -> ParsedLine:
    from wave_agent.shell.reader import read_line  # lazy: only needed for Bash rules with a pattern

    return read_line(command)


def _matches_command(pattern: str, command: str, purpose: Purpose) -> bool:
    """Restrictions apply to the line and every command in it; allow rules must match the whole line."""
    if purpose is Purpose.RESTRICT:
        return _restricts(pattern, command)
    commands = _read_line(command).plain
    return _permits_line(pattern, command) or (bool(commands) and all(_permits(pattern, one) for one in commands))


def _restricts(pattern: str, command: str) -> bool:
    said = _said(command)
    line = said.line
    if line.anything:
        return True
    # Checking for the rule's first words first saves most rules the comparison with every command.
    bare = _PREFIX.sub("", pattern)
    if bare.partition("*")[0] in said.all_texts:
        compiled = _compiled(pattern, ".")
        if any(compiled.fullmatch(text) for text in said.texts):
            return True
    if _is_spelt_otherwise(pattern, said.line.commands):
        return True
    if said.unsure and any(_may_match(_compiled(pattern, "."), bare.split(), one) for one in said.unsure):
        return True
    if any(_may_begin(pattern, one) for one in said.unseen) or _is_mentioned(pattern, said.mentions):
        return True
    if _is_mentioned(pattern.replace(" ", "*"), said.handed):
        return True
    return bool(line.doubtful) and _could_run(pattern, line.doubtful)


def _is_spelt_otherwise(pattern: str, commands: Sequence[ShellCommand]) -> bool:
    """Whether one of the commands has the rule's options in a different order or form."""
    opened = _OPEN_END.sub("", pattern)
    rule = opened.split()
    if "*" in opened or not any(word.startswith("-") for word in rule):
        return False
    from wave_agent.shell.spellings import says_the_same  # lazy: see above

    whole = opened == pattern
    return any(says_the_same(rule, [word.text for word in one.words], whole=whole) for one in commands)


class _ComparedLine(Struct, frozen=True):
    """A line in the form that rules are compared with."""

    line: ParsedLine
    texts: tuple[str, ...]
    """The line, its statements and its commands."""
    all_texts: str
    unsure: tuple[ShellCommand, ...]
    """Commands with unknown words."""
    unseen: tuple[ShellCommand, ...]
    """Commands of which only the beginning is known."""
    mentions: tuple[str, ...]
    """The words of text in other languages."""
    handed: tuple[str, ...]
    """The words of text that runs programs, and of its data."""


@lru_cache(maxsize=16)
def _said(command: str) -> _ComparedLine:
    line = _read_line(command)
    texts = tuple(dict.fromkeys((command.strip(), *line.statements, *(one.text for one in line.commands))))
    return _ComparedLine(
        line,
        texts,
        "\n".join(texts),
        tuple(one for one in line.commands if one.words[0].glob is not None or not _is_static(one)),
        tuple(one for one in line.commands if any(word.anything for word in one.words)),
        tuple(_NO_WORD.sub(" ", text) for text in line.texts),
        tuple(_NO_WORD.sub(" ", text) for text in line.handed),
    )


def _is_static(command: ShellCommand) -> bool:
    return all(word.static for word in command.words)


def _may_begin(pattern: str, command: ShellCommand) -> bool:
    """Whether a command of which only the beginning is known may match the rule."""
    words = command.words
    unseen = next(at for at, word in enumerate(words) if word.anything)
    seen = "".join(f"{word.text} " for word in words[:unseen])
    pieces = _PREFIX.sub("*", pattern).split("*")
    if seen.startswith(pieces[0]) and len(pieces) > 1:
        return True  # a wildcard covers the rest, or it is unknown
    return pieces[0].startswith(seen)


def _is_mentioned(pattern: str, texts: Sequence[str]) -> bool:
    """Whether text in another language contains the rule's words, however quoted and split."""
    if not texts:
        return False
    groups = [_NO_WORD.sub(" ", piece).strip() for piece in _PREFIX.sub("", pattern).split("*")]
    possible = [text for text in texts if all(group in text for group in groups)]
    if not any(groups) or not possible:
        return False
    from wave_agent.shell.doubt import InOrder  # lazy: see above

    mentioned = InOrder(r"(?<!\S)", [*map(re.escape, groups)], r"(?!\S)", 400)
    return any(map(mentioned.search, possible))


_NO_WORD = lazy_regex(r"[^\w.@%+~-]+")


def _could_run(pattern: str, texts: Sequence[str]) -> bool:
    from wave_agent.shell.doubt import could_run  # lazy: see above

    return could_run(pattern, texts)


def _may_match(compiled: re.Pattern[str], rule: list[str], command: ShellCommand) -> bool:
    """Whether a command with unknown words would match if these were the rule's words.

    The known words must fit too: `$cmd push` may be `git push`, but not every `$cmd` is `rm`. Nor is every `$file` an
    option.
    """
    shared = list(zip(command.words, rule, strict=False))
    unknown = [not word.static or (at == 0 and word.glob is not None) for at, (word, _) in enumerate(shared)]
    if not any(unknown) or all(unknown):
        return False
    filled = [
        said if guess and (word.origin is ValueOrigin.MADE or not said.startswith("-")) else word.text
        for (word, said), guess in zip(shared, unknown, strict=True)
    ]
    rest = [word.text for word in command.words[len(shared) :]]
    return compiled.fullmatch(" ".join([*filled, *rest])) is not None


def _permits_line(pattern: str, command: str) -> bool:
    """The rule spells out the line: its structure, and any variables it sets."""
    if _compiled(pattern, _ONE_COMMAND).fullmatch(command.strip()) is None:
        return False
    line = _read_line(command)
    return line.parsed and all(f"{name}=" in pattern for name in line.assignments)


def _permits(pattern: str, command: ShellCommand) -> bool:
    from wave_agent.shell.wrappers import RUN_OTHERS  # lazy: see above

    # Quoted text is not syntax here, but may be for a command that passes its arguments to a shell.
    anything = _ONE_COMMAND if command.words[0].text.rsplit("/", 1)[-1] in RUN_OTHERS else "."
    return _compiled(pattern, anything).fullmatch(command.quoted) is not None


def permitting(
    rules: Sequence[Rule], tool: str, tool_input: Mapping[str, Any], places: Places, reading: Sequence[str] = ()
) -> tuple[Rule, ...]:
    """The rules that permit a call: the first that does so alone, or the first for each command of its line. Commands
    in `reading` need none: they only read by themselves."""
    alone = next((rule for rule in rules if rule.matches(tool, tool_input, places, Purpose.PERMIT)), None)
    if alone is not None:
        return (alone,)
    patterns = [(rule, rule.pattern) for rule in rules if rule.tool == "bash" and rule.pattern is not None]
    if tool.casefold() != "bash" or not patterns:
        return ()
    found: dict[Rule, None] = {}
    moved = False
    for one in _read_line(str(tool_input.get("command", ""))).plain:
        rule = next((rule for rule, text in patterns if _permits(text, one)), None)
        if one.quoted in reading and (rule is None or one.words[0].text == "cd"):
            moved |= one.words[0].text == "cd"
        elif rule is None or (moved and any(map(_depends_on_place, one.words))):
            return ()
        else:
            found[rule] = None
    return tuple(found)


def _depends_on_place(word: Word) -> bool:
    """A relative path means another file elsewhere, and a rule that names it may not mean that one."""
    return not word.text.startswith(("/", "-")) and ("/" in word.text or "." in word.text)


def plain_commands(tool_input: Mapping[str, Any]) -> tuple[str, ...]:
    """The commands of a Bash line, as `permitting` matches them against rules. Empty if the line is more complex."""
    return tuple(one.quoted for one in _read_line(str(tool_input.get("command", ""))).plain)


_SHOWN = 80
"""Characters of a command in a message."""


def uncovered(rules: Sequence[Rule], tool: str, tool_input: Mapping[str, Any], reading: Sequence[str] = ()) -> str:
    """The part of a Bash line that none of these rules permits, in a few words. Empty if no rules are about lines and
    the line has no parts that need none. Commands in `reading` need no rule."""
    patterns = [rule.pattern for rule in rules if rule.tool == "bash" and rule.pattern is not None]
    if tool.casefold() != "bash" or not (patterns or reading):
        return ""
    line = str(tool_input.get("command", ""))
    commands = _read_line(line).plain
    if not commands:
        from wave_agent.shell.plain import beyond_plain  # lazy: only needed to explain a refusal

        return f"a line with {beyond_plain(line) or 'more than a sequence of commands'}"
    needing = [one for one in commands if one.quoted not in reading] or commands
    missing = next((one for one in needing if not any(_permits(text, one) for text in patterns)), needing[0])
    shown = missing.quoted
    return f"`{shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}`"


def _matches_page(pattern: str | None, tool_input: Mapping[str, Any], purpose: Purpose) -> bool:
    from wave_agent.rules.pages import page_matches  # lazy: few sessions have such rules

    return page_matches(pattern, tool_input.get("url"), restricts=purpose is Purpose.RESTRICT)


def _matches_path(pattern: str, path: str, places: Places) -> bool:
    path = normpath(join(places.start or places.project, path))
    path = path.replace("//", "/", 1)  # POSIX keeps two leading slashes; they must not dodge a rule
    return _compiled_path(pattern, places).fullmatch(path) is not None


@lru_cache(maxsize=_KEPT)
def _compiled_path(pattern: str, places: Places) -> re.Pattern[str]:
    return re.compile(path_expression(pattern, places), re.DOTALL)


def path_expression(pattern: str, places: Places) -> str:
    """The regular expression of the absolute paths that a pattern matches.

    gitignore-style: a pattern without a slash matches at any depth, and a matched directory covers everything below it.
    """
    base, pattern = anchored(pattern, places)
    inside = _glob(pattern.strip("/"))
    base = normpath(base).replace("//", "/", 1).rstrip("/")
    # A pattern such as `**` also matches the base itself.
    itself = f"|{re.escape(base) or '/'}" if re.fullmatch(inside, "") else ""
    return rf"{re.escape(base)}/(?:{inside})(?:/.*)?{itself}"


def anchored(pattern: str, places: Places) -> tuple[str, str]:
    """The directory a pattern starts from, and the rest of it."""
    if pattern.startswith("//"):
        return "/", pattern[2:]
    if pattern.startswith("~/"):
        return places.home, pattern[2:]
    pattern = pattern.removeprefix("./")
    return places.project, pattern if "/" in pattern.rstrip("/") else f"**/{pattern}"


def _glob(pattern: str) -> str:
    """The regular expression of a gitignore-style glob. A match covers everything below it."""
    from wave_agent.rules.path_patterns import path_glob  # lazy: only needed for path rules

    return path_glob(pattern, ends=r"(?=/|\Z)", dots=True)
