"""What hooks and permissions need to know about a call: its paths, other names of its files, what git would change."""

import asyncio
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from wave_agent.agent.authority import Authority
from wave_agent.hooks.stage import EffectsOf, ToolFacts, unknown_effects
from wave_agent.permissions.decision import JudgedCall, Rules
from wave_agent.permissions.protected_paths import ProtectedPaths
from wave_agent.system.real_files import Seen, is_below, look, resolve_or_keep
from wave_agent.tools.base import Tool, ToolContext, ToolInputError

if TYPE_CHECKING:
    from wave_agent.agent.call_effects import EffectsFinder
    from wave_agent.effects.values import Effects


SAMPLE = {"command": 'cat "a" | grep -n b'}
"""Only reads, so that all of it is looked at."""


class CallExaminer:
    """Finds out what a call would touch."""

    def __init__(self, authority: Authority, context: ToolContext, search_path: str) -> None:
        """`search_path` is where git is looked up."""
        self._authority = authority
        self._context = context
        self._search_path = search_path

    def prepare(self, tools: Iterable[Tool]) -> None:
        """Finds the protected paths, and examines a sample: that compiles most of what the first command needs."""
        directories, protected = self._authority.directories, self._authority.protected
        for tool in tools:
            if tool.runs_bash:
                subject_of(tool, SAMPLE, self._context, directories, protected)
                self.may_run_beside(tool, SAMPLE)
                tool.git_runs(SAMPLE, self._context)

    @cached_property
    def effects(self) -> "EffectsFinder":
        """Finds out what calls would do."""
        from wave_agent.agent.call_effects import EffectsFinder  # lazy: for commands, and rules about effects

        return EffectsFinder(self._context, self._search_path)

    def effects_here(self, tool: Tool) -> EffectsOf:
        """What a call of this tool would do if it ran where the session is now, for hooks. The place is remembered:
        after the call, the session may be somewhere else."""
        place = tool.place(self._context)

        def effects(tool_input: Mapping[str, Any]) -> "Effects":
            from wave_agent.agent.hook_effects import hook_effects  # lazy: only if a hook wants to know

            try:
                return hook_effects(tool.name, tool_input, self.effects.at(*place), tool.bases())
            except Exception:  # no hook may be left out for it: then the call may do anything
                return unknown_effects(tool_input)

        return effects

    def may_run_beside(self, tool: Tool, tool_input: Mapping[str, Any]) -> bool:
        """Whether it is a command that only reads, and leaves the directory as it is for those after it."""
        try:
            return tool.runs_bash and self.effects.may_run_beside(tool, tool_input)
        except Exception:  # it is judged, and denied, alone
            return False

    async def examine(self, tool: Tool, tool_input: Mapping[str, Any], seen: Mapping[str, Seen]) -> JudgedCall:
        """What permission is decided on. `seen`: what the paths of the call point to."""
        authority = self._authority
        subject = subject_of(tool, tool_input, self._context, authority.directories, authority.protected, seen=seen)
        subject = await self._with_other_names(tool, subject, seen)
        if needs_effects(tool, authority.rules):
            subject = await self.effects.examined(tool, subject, authority)
        if subject.protected is None:
            subject = replace(subject, protected=await self._changed_by_git(tool, tool_input), by_git=True)
        return subject

    async def _with_other_names(self, tool: Tool, subject: JudgedCall, seen: Mapping[str, Seen]) -> JudgedCall:
        """The call with other names of its file (hard links), if the patterns of rules could match them."""
        name, rules = tool.name.casefold(), self._authority.rules
        matching = [rule for rule in (*rules.deny, *rules.ask) if rule.pattern is not None and rule.tool == name]
        if not matching:
            return subject
        linked = [(path, facts) for path, one in seen.items() if (facts := _linked(one)) is not None]
        if not linked:
            return subject
        from wave_agent.permissions.hard_links import other_names, places_of  # lazy: few files have two names

        where = places_of(matching, self._authority.places)
        for path, facts in linked:
            found = await asyncio.to_thread(other_names, facts, where)
            fields = [field for field in tool.path_fields if subject.tool_input.get(field) == path]
            others = tuple({**subject.tool_input, **dict.fromkeys(fields, other)} for other in found.names)
            subject = replace(
                subject,
                other_inputs=(*subject.other_inputs, *others),
                unsure=subject.unsure if found.complete else path,
            )
        return subject

    async def _changed_by_git(self, tool: Tool, tool_input: Mapping[str, Any]) -> str | None:
        """A git command names no files: asks git what it would change, in a thread."""
        runs, assigned = tool.git_runs(tool_input, self._context)
        if not runs:
            return None
        from wave_agent.permissions.git.effects import (  # lazy: a session may never use git
            GitLine,
            changed_by_git,
            meddles,
        )
        from wave_agent.system.trusted_git import find_git  # lazy, for the same reason

        protected = self._authority.protected
        return await asyncio.to_thread(
            changed_by_git,
            GitLine(
                runs=runs,
                assigned=tuple(assigned),
                meddles=meddles(tool.written_paths(tool_input, self._context)),
            ),
            protected.files,
            protected.directories,
            beside=protected.beside,
            program=find_git(self._search_path, self._authority.places.project),
            environment=dict(self._context.environment),
        )


def needs_effects(tool: Tool, rules: Rules) -> bool:
    """Whether permission depends on the effects of a call of this tool."""
    return tool.name == "Bash" or any(rule.is_about_effects for rule in (*rules.deny, *rules.ask))


def tool_facts(tool: Tool, start: str, effects: EffectsOf) -> ToolFacts:
    """What hooks need to know about a tool. `start` is where relative paths start."""
    return ToolFacts(
        effects=effects,
        nullable=tool.nullable(),
        normalise=lambda tool_input: tool.normalise(tool_input, start),
        why_invalid=lambda tool_input: _why_invalid(tool, tool.normalise(tool_input, start)),
    )


def _why_invalid(tool: Tool, tool_input: Mapping[str, Any]) -> str:
    try:
        tool.parse(tool_input)
    except ToolInputError as error:
        return str(error)
    return ""


def seen_by(tool: Tool, tool_input: Mapping[str, Any]) -> dict[str, Seen]:
    """What the paths of a call point to. Text that cannot be a path points nowhere: the tool refuses it. Raises
    `OSError` if the system cannot say."""
    return {path: look(path) for path in tool.paths(tool_input) if "\0" not in path}


def first_look(tool: Tool, tool_input: Mapping[str, Any]) -> dict[str, Seen]:
    """The same, before hooks run. Hooks see every call; paths that cannot be examined are refused after them."""
    try:
        return seen_by(tool, tool_input)
    except OSError:
        return {}


def subject_of(
    tool: Tool,
    tool_input: Mapping[str, Any],
    context: ToolContext,
    directories: Sequence[str],
    protected: ProtectedPaths,
    *,
    seen: Mapping[str, Seen] | None = None,
) -> JudgedCall:
    """What permission is decided on. `directories` are those considered inside the project, as real paths. `seen` is
    what the paths point to, if that is already known."""
    seen = seen_by(tool, tool_input) if seen is None else seen
    outside = [one.real for one in seen.values() if not any(is_below(one.real, base) for base in directories)]
    if tool.claims_to_read():
        named = (resolve_or_keep(path) for path in tool.may_name(tool_input, context) if os.path.lexists(path))
        outside += [one for one in named if one != "/" and not any(is_below(one, base) for base in directories)]
    guards = map(protected.touched, tool.written_paths(tool_input, context))
    resolved = {field: seen[path].real for field in tool.path_fields if (path := str(tool_input.get(field))) in seen}
    touched = next((path for path in guards if path is not None), None)
    return JudgedCall(
        tool=tool.name,
        tool_input=tool_input,
        kind=tool.kind,
        inside=not outside,
        outside=next(iter(outside), None),
        protected=touched,
        unread_words=0 if touched is None else tool.unread_words(tool_input, context),
        real_input={**tool_input, **resolved},
        own=tool.own,
        other_names=tool.other_names(),
        claims_to_read=tool.claims_to_read(),
    )


def _linked(seen: Seen) -> os.stat_result | None:
    """The stat of a file that has other names."""
    try:
        facts = os.lstat(seen.real)
    except OSError:
        return None
    return facts if facts.st_nlink > 1 and stat.S_ISREG(facts.st_mode) else None
