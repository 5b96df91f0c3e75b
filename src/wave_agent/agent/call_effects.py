"""What a call would do: its effects, the files behind them, and whether it only reads."""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from wave_agent.agent.authority import Authority
from wave_agent.effects.calls import effects_of
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import Effects
from wave_agent.lazy_regex import lazy_regex
from wave_agent.permissions.command_surroundings import CommandSurroundings
from wave_agent.permissions.decision import JudgedCall, PermissionMode, ToolKind
from wave_agent.permissions.existing_files import leads_outside, on_disk
from wave_agent.rules.touched import literal
from wave_agent.shell.plain import goes_on_only_after_success
from wave_agent.shell.values import ShellCommand, Word, escape
from wave_agent.system.real_files import resolve_or_keep
from wave_agent.system.trusted_git import find_git
from wave_agent.tools.base import Tool, ToolContext

_MANY = 200
"""Paths that are looked up without leaving the event loop."""
_SEARCHES = ("Grep", "Glob")
"""Tools that leave out what they must not read."""


class EffectsFinder:
    """Finds out what calls of one session would do."""

    def __init__(self, context: ToolContext, search_path: str) -> None:
        """`search_path` is where git is looked up."""
        self._context = context
        self._search_path = search_path

    @cached_property
    def _commands(self) -> CommandSurroundings:
        project = str(self._context.project_dir)
        return CommandSurroundings(project, find_git(self._search_path, project))

    def at(self, directory: str, variables: Mapping[str, str]) -> Surroundings:
        """Where a call would run that starts in this directory."""
        return self._commands.at(directory, variables)

    def surroundings(self, tool: Tool) -> Surroundings:
        """Where a call of this tool would run now."""
        return self.at(*tool.place(self._context))

    def of(self, tool: Tool, tool_input: Mapping[str, Any]) -> Effects:
        """The effects of a call, if it ran now. As written: links are not followed."""
        return effects_of(tool.name, tool_input, self.surroundings(tool), tool.bases())

    def only_reads(self, tool: Tool, tool_input: Mapping[str, Any], effects: Effects | None = None) -> bool:
        """Whether a command only reads, in the foreground. Git may be asked for its settings. A tool of someone else
        may be named Bash, and do anything."""
        line = tool_input.get("command")
        if not tool.runs_bash or not isinstance(line, str) or tool_input.get("run_in_background"):
            return False
        # lazy: only commands need it
        from wave_agent.effects.only_reading import HARMLESS, only_reads

        surroundings = self.surroundings(tool)
        found = effects_of(tool.name, tool_input, surroundings) if effects is None else effects
        if not all(run[0] == "git" or run[0] in HARMLESS for run in found.runs):
            return False  # the usual case, without reading the line once more
        return only_reads(line, found, surroundings)

    def may_run_beside(self, tool: Tool, tool_input: Mapping[str, Any]) -> bool:
        """Whether a command only reads, and leaves the directory as it is for those after it."""
        if not tool.runs_bash or not isinstance(line := tool_input.get("command"), str):
            return False
        from wave_agent.effects.only_reading import reading_commands  # lazy: see above

        return not any(one.words[0].text == "cd" for one in reading_commands(line)) and self.only_reads(
            tool, tool_input
        )

    async def examined(self, tool: Tool, subject: JudgedCall, authority: Authority) -> JudgedCall:
        """The call, with what rules and modes need to know of its effects."""
        effects = self.of(tool, subject.tool_input)
        rules = any(rule.is_about_effects for rule in (*authority.rules.deny, *authority.rules.ask))
        if _needs_time(effects, rules=rules):
            return await asyncio.to_thread(self.examined_now, tool, subject, effects, authority)
        return self.examined_now(tool, subject, effects, authority)

    def examined_now(self, tool: Tool, subject: JudgedCall, effects: Effects, authority: Authority) -> JudgedCall:
        """The same, given the effects. Blocks while files are looked for, or git is asked."""
        rules = [rule for rule in (*authority.rules.deny, *authority.rules.ask) if rule.is_about_effects]
        if tool.name in _SEARCHES:
            effects = replace(effects, reads=tuple(path for path in effects.reads if literal(path) is not None))
        if tool.runs_bash and _runs_git(effects) and any(rule.tool == "read" for rule in rules):
            around = self._commands.for_rules(self.surroundings(tool), rules, authority.places)
            effects = effects_of(tool.name, subject.tool_input, around)
        if self.only_reads(tool, subject.tool_input, effects):
            subject = replace(subject, kind=ToolKind.READS)
            if authority.mode is not PermissionMode.BYPASS:
                line = str(subject.tool_input["command"])
                outside = self._outside(tool, line, effects.reads, authority.directories)
                subject = replace(subject, inside=outside is None, outside=outside)
        if tool.runs_bash and _may_need_parts(effects, authority):
            subject = replace(subject, reading=self._reading(tool, subject, authority.directories))
        found = on_disk(effects, rules, authority.places)
        return replace(subject, effects=found.effects, unsearched=found.unsure)

    def _reading(self, tool: Tool, subject: JudgedCall, directories: Sequence[str]) -> tuple[str, ...]:
        """The commands of the line that only read by themselves, inside these directories."""
        from wave_agent.effects.only_reading import reading_parts  # lazy: see above

        line = str(subject.tool_input.get("command"))
        parts = reading_parts(line, self.surroundings(tool))
        inside = [
            one for one in parts if self._outside(tool, line, one.reads, directories, only=one.command.words) is None
        ]
        return tuple(one.command.quoted for one in inside)

    def _outside(
        self,
        tool: Tool,
        line: str,
        reads: Sequence[str],
        directories: Sequence[str],
        only: Sequence[Word] | None = None,
    ) -> str | None:
        """A path outside these directories that a command which only reads would look at. `only`: of a line, the words
        of this command."""
        from wave_agent.effects.only_reading import reading_commands  # lazy: see above

        directory, variables = tool.place(self._context)
        places, named = [directory], list[str]()
        commands = list(reading_commands(line))
        for one in commands:
            moved = list[str]()
            for word in _looked_at(one, variables):
                paths = [os.path.normpath(os.path.join(place, word.text)) for place in places]
                moved += paths if one.words[0].text == "cd" else []
                if only is not None and one.words != only:
                    continue
                if _TILDE.fullmatch(word.text) or (word.glob is not None and "/.." in word.text):
                    return word.text  # where that is, only the shell knows
                # To the system, `link/..` is the directory that contains the link's target.
                followed = [resolve_or_keep(os.path.join(place, word.text)) for place in places]
                named += [escape(path) for path in followed if ".." in word.text and os.path.lexists(path)]
                if word.glob is not None:
                    named += [os.path.normpath(os.path.join(place, word.glob)) for place in places]
                else:
                    named += [escape(path) for path in paths if os.path.lexists(path)]
            if _follows_links(one) and (only is None or one.words == only):
                named += [f"{path}/**" for path in (*named, *map(escape, places))]
            if moved:
                places = moved if goes_on_only_after_success(line) else [*places, *moved]
        # Whoever goes back to the project looks at nothing outside.
        start = () if [one.words[0].text for one in commands] == ["cd"] else (escape(directory),)
        return leads_outside((*start, *named, *reads), directories)


def _looked_at(one: ShellCommand, variables: Mapping[str, str]) -> Sequence[Word]:
    """The words of a command that may be paths, with `~` resolved as far as it is known."""
    words = one.words[1:]
    if one.words[0].text == "cd":
        words = words or (Word("~"),)
        words = tuple(Word("~-") if word.text == "-" else word for word in words)
    return [_without_tilde(word, variables) for word in words]


def _without_tilde(word: Word, variables: Mapping[str, str]) -> Word:
    sign, slash, rest = word.text.partition("/")
    if not sign.startswith("~") or word.glob is not None:
        return word
    known = {"~": variables.get("HOME"), "~+": variables.get("PWD"), "~-": variables.get("OLDPWD")}
    place = known.get(sign) or (os.path.expanduser(sign) if sign not in known else None)
    return word if place is None else Word(f"{place}{slash}{rest}")


_TILDE = lazy_regex(r"~[-+]?\d*(?:/.*)?", re.DOTALL)
_FOLLOWING = {
    "ls": lazy_regex(r"-\w*[LH]\w*|--dereference.*"),
    "find": lazy_regex(r"-L|-H|-follow"),
    "du": lazy_regex(r"-\w*[LHD]\w*|--dereference.*"),
    "tree": lazy_regex(r"-\w*l\w*"),
}
"""Options with which programs that list names go through links."""


def _follows_links(one: ShellCommand) -> bool:
    option = _FOLLOWING.get(one.words[0].text)
    return option is not None and any(option.fullmatch(word.text) for word in one.words[1:])


def _may_need_parts(effects: Effects, authority: Authority) -> bool:
    """Whether the line has several commands, of which rules may permit some."""
    if len(effects.runs) < 2:
        return False
    return any(rule.tool == "bash" and rule.pattern is not None for rule in authority.rules.allow)


def _needs_time(effects: Effects, *, rules: bool) -> bool:
    """Files may have to be searched for, or git asked."""
    acts = bool(effects.writes or effects.deletes or effects.hosts)
    if not rules and acts:
        return False
    return (
        _runs_git(effects)
        or len(effects.writes) > _MANY
        or any(literal(path) is None for path in (*effects.reads, *effects.writes, *effects.deletes))
    )


def _runs_git(effects: Effects) -> bool:
    return any(run[0].rpartition("/")[2] == "git" for run in effects.runs)
