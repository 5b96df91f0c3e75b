"""All hooks of a project, trusted or not. Reads files and runs nothing."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SettingsError, UntrustedHooksError
from wave_agent.formats.strict_json import show_path
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.plan import in_order
from wave_agent.settings.agent_definitions import DefinitionProblem
from wave_agent.settings.definition_hooks import definition_candidates
from wave_agent.settings.extensions import why_untrusted
from wave_agent.settings.hook_entries import Issue
from wave_agent.settings.layers import Settings
from wave_agent.settings.places import OF_THE_PROJECT
from wave_agent.settings.session_agents import session_agents
from wave_agent.settings.sources import Gathered, SourceChoice, gather_settings, project_extensions
from wave_agent.settings.trust import Record, TrustStore, candidates, file_digest
from wave_agent.system.project import Project


class Inventory(Struct, frozen=True, kw_only=True):
    """All hooks and settings, and which of them are in effect."""

    project: str
    start: str
    """The directory an agent would start in, at or below the project directory."""
    hooks: tuple[HookDefinition, ...]
    """In the order in which they would run."""
    distrust: Mapping[int, str]
    """Position of an untrusted hook → reason."""
    issues: tuple[Issue, ...]
    agent_problems: tuple[DefinitionProblem, ...] = ()
    """With definitions of subagents."""
    counted: Settings
    """The settings in effect, without untrusted parts. Without the project's hooks if the project is not trusted."""
    notices: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        return any(issue.broken for issue in self.issues) or any(one.left_out for one in self.agent_problems)

    def problems(self, hook: HookDefinition) -> tuple[Issue, ...]:
        """The issues within this hook's entry."""
        return tuple(issue for issue in self.issues if issue.source == hook.source and _is_inside(issue, hook))

    def other_issues(self) -> tuple[Issue, ...]:
        """The issues that belong to none of the listed hooks."""
        listed = [issue for hook in self.hooks for issue in self.problems(hook)]
        return tuple(issue for issue in self.issues if issue not in listed)


def survey(home: Path, project: Project, choice: SourceChoice | None = None) -> Inventory:
    """Read every layer. Raises `SettingsError` for a file that cannot be read."""
    choice = choice or SourceChoice()
    everything = gather_settings(home, project, replace(choice, trust=True))
    settings, agents = everything.settings, session_agents(everything)
    hooks = (*settings.hooks.hooks, *(hook for one in agents.definitions.values() for hook in one.hooks))
    counted = _counted(home, project, choice)
    return Inventory(
        project=project.directory,
        start=project.start,
        hooks=tuple(in_order(hooks)),
        distrust=_distrust(home, project, everything, hooks),
        issues=settings.issues,
        agent_problems=agents.problems,
        counted=counted.settings,
        notices=counted.notices,
    )


def untrusted(home: Path, project: Project) -> list[tuple[HookDefinition, str]]:
    """The project's untrusted hooks and the reasons; empty if the settings cannot be read."""
    try:
        found = survey(home, project)
    except SettingsError:
        return []
    return [(hook, found.distrust[hook.position]) for hook in found.hooks if hook.position in found.distrust]


def _counted(home: Path, project: Project, choice: SourceChoice) -> Gathered:
    try:
        return gather_settings(home, project, choice)
    except UntrustedHooksError as error:
        found = gather_settings(home, project, replace(choice, project_hooks=False))
        return replace(found, notices=(*error.alarms, *found.notices))


def _distrust(home: Path, project: Project, found: Gathered, hooks: Sequence[HookDefinition]) -> dict[int, str]:
    record = TrustStore(home).read(project.directory)
    theirs = [source for source in found.sources if source.layer in OF_THE_PROJECT]
    looked_at = candidates(theirs, project.directory, file_digest)
    judged = {(one.hook.source, one.hook.path): record.why_not(one) for one in looked_at}
    judged |= _distrust_in_definitions(home, project, record)
    return {hook.position: why for hook in hooks if (why := judged.get((hook.source, hook.path))) is not None}


def _distrust_in_definitions(
    home: Path, project: Project, record: Record
) -> dict[tuple[str, tuple[str | int, ...]], str | None]:
    """About the hooks of subagents: source and path → why not; None if it is trusted."""
    texts = project_extensions(home, project)
    looked_at = definition_candidates(texts, project.directory, file_digest)
    why_not = why_untrusted(record, project.directory)
    of_texts = {one.path: why_not(one) for one in texts}
    return {(one.hook.source, one.hook.path): record.why_not(one) or of_texts[one.hook.source] for one in looked_at}


def _is_inside(issue: Issue, hook: HookDefinition) -> bool:
    """Includes issues of the group that contains the hook."""
    group = hook.path[:3]
    return issue.path[: len(hook.path)] == hook.path or (
        issue.path[:3] == group and issue.path[3:4] != ("hooks",) and len(issue.path) > 3
    )


def place_of(hook: HookDefinition, project: str) -> str:
    """File and line, relative for files in the project; the entry's path if the line is unknown."""
    inside = hook.source.startswith(f"{project}/")
    name = os.path.relpath(hook.source, project) if inside else hook.source
    return f"{name}:{hook.line}" if hook.line is not None else f"{name} {show_path(hook.path)}"


def hook_to_dict(hook: HookDefinition, found: Inventory) -> dict[str, Any]:
    """As JSON."""
    return {
        "event": hook.event.value,
        "name": hook.name,
        "matcher": hook.matcher.text,
        "matcher_read_as": hook.matcher.explain(),
        "if": hook.condition.text if hook.condition else None,
        "type": hook.kind.value,
        "command": hook.command,
        "args": hook.args,
        "layer": hook.layer.value,
        "source": hook.source,
        "line": hook.line,
        "path": show_path(hook.path),
        "position": hook.position,
        "agent": hook.agent or None,
        "trusted": hook.position not in found.distrust,
        "why_not_trusted": found.distrust.get(hook.position),
        "dialect": hook.dialect.value,
        "mode": hook.mode.value,
        "rollout": hook.rollout,
        "onFailure": hook.on_failure.value,
        "timeout": hook.timeout,
        "model": hook.model or None,
        "async": hook.is_async,
        "enabled": hook.enabled,
        "phase": hook.phase.value if hook.phase else None,
        "sequential": hook.sequential,
        "problems": [str(issue) for issue in found.problems(hook)],
    }
