"""What the model gets before the conversation: the system prompt and the tools, from a session's ground."""

import os
from collections.abc import Mapping, Sequence
from functools import partial

from wave_agent.agent.briefing import Briefing
from wave_agent.agent.ground import Ground
from wave_agent.agent.instructions import instructions
from wave_agent.agent.spending import requests_in_words
from wave_agent.agent.surroundings import ProjectSurroundings, look_around
from wave_agent.agent.system_prompt import (
    SUBAGENT,
    SUBAGENT_LIMIT,
    PromptFacts,
    SystemPrompt,
    change_words,
    mode_words,
    system_prompt,
)
from wave_agent.hooks.manager import HookManager
from wave_agent.messages import NOT_RUN
from wave_agent.models.base import ToolSpec
from wave_agent.models.profiles import Profile
from wave_agent.permissions.decision import INSTEAD, PermissionMode
from wave_agent.rules.rule import SAME_TOOL, Places
from wave_agent.tools.base import Tool, ToolInputError
from wave_agent.tools.bash import default_shell
from wave_agent.tools.task import Task


def tool_on_call(ground: Ground, hooks: HookManager, name: str) -> Tool | None:
    """A tool that is loaded when it is called. Not if a guard of Edit does not see it: it would be a way around. Raises
    `ToolInputError` for a server's tool, if it is known why there is none."""
    if ground.role is not None and name.casefold() in SAME_TOOL:
        raise ToolInputError(f"{NOT_RUN}a subagent cannot start others. Do the work yourself.")
    if ground.mcp is not None and name.startswith("mcp__"):
        from wave_agent.agent.server_parts import why_no_tool  # lazy: most sessions have no servers

        if why := why_no_tool(name, ground.mcp.servers()):
            raise ToolInputError(f'There is no tool "{name}". {why} {INSTEAD}')
    return None if hooks.overlooks(name, "Edit") else ground.on_call.find(name)


def briefing_for(ground: Ground, hooks: HookManager) -> Briefing:
    """A caller's own system prompt replaces ours. Plan mode and the sandbox are always mentioned. Instructions that are
    omitted are noted."""
    foundation, parts = ground.foundation, _PromptParts(ground, hooks)
    return Briefing(
        parts.compose,
        news=partial(change_words, parts.facts),
        look=partial(look_around, foundation.project, foundation.environment) if parts.own is None else None,
        messages=ground.messages,
        tools=parts.tools,
        profile=lambda: ground.windows.current.profile,
        opening=ground.before.opening,
        log=ground.log,
        servers=ground.mcp,
    )


class _PromptParts:
    """Where the system prompt and the tools of a session come from."""

    def __init__(self, ground: Ground, hooks: HookManager) -> None:
        options = ground.foundation.options
        self._ground = ground
        self._hooks = hooks
        self._specs = _Specs(ground.tools)
        self._has_notebooks = False
        self._instructions = {} if options.system_prompt is not None else _instructions(ground)
        self.facts = _facts(ground)
        self.own = options.system_prompt if ground.role is None else None
        """The caller's system prompt."""

    @property
    def _is_small(self) -> bool:
        return self._ground.windows.current.profile is Profile.SMALL

    def compose(self, mode: PermissionMode, around: ProjectSurroundings) -> SystemPrompt:
        self._has_notebooks = around.has_notebooks
        ground, sandbox = self._ground, self._ground.sandbox
        short, how = None, ""
        if self._is_small:
            from wave_agent.agent.small_models import INSTRUCTIONS, call_example  # lazy: only for such models

            short, how = INSTRUCTIONS, call_example(self.tools())
        if own_role := "\n\n".join(filter(None, ground.role or ())):
            short = own_role
        if self.own is None:
            first, plan = system_prompt(self.facts, mode, around, short), ""
        else:
            first = SystemPrompt(self.own, {"System prompt": self.own})
            plan = mode_words(self.facts, mode) if mode is PermissionMode.PLAN else ""
        skills = _listed_skills(ground)
        added = {
            "Additional instructions": ground.foundation.options.append_system_prompt,
            **_said_by_servers(ground),
        }
        around_us = {
            "Sandbox": sandbox.description if sandbox else "",
            "Subagent": "" if ground.role is None else _subagent_words(ground.count.limit),
        }
        headed = (f"{name}:\n\n{text}" for name, text in (*self._instructions.items(), *skills.items()))
        texts = (first.text, *headed, *added.values(), plan)
        parts = {**first.parts, **self._instructions, **skills, **_listed_subagents(ground), **added, **around_us}
        return SystemPrompt(
            "\n\n".join(filter(None, (*texts, *around_us.values(), how))),
            {name: text for name, text in parts.items() if text},
        )

    def tools(self) -> Sequence[ToolSpec]:
        tools = self._ground.tools
        if self._is_small:
            from wave_agent.agent.small_models import brief_specs  # lazy: only for such models

            return brief_specs(tools.values())
        missing = self._has_notebooks and _FOR_NOTEBOOKS not in tools
        late = tool_on_call(self._ground, self._hooks, _FOR_NOTEBOOKS) if missing else None
        return (*self._specs.current(), *(() if late is None else (self._specs.of(late),)))


def _facts(ground: Ground) -> PromptFacts:
    foundation, options = ground.foundation, ground.foundation.options
    start = foundation.place.start
    return PromptFacts(
        project_dir=foundation.project,
        working_dir="" if start == foundation.project else f"{start} (commands and relative paths start here)",
        shell=default_shell(),
        interactive=options.interactive if ground.role is None else None,
        asks=options.can_use_tool is not None,
        allowed=foundation.settings.rules.allow,
        subagent=ground.role is not None,
    )


def _instructions(ground: Ground) -> dict[str, str]:
    """The files of instructions that no rule denies."""
    foundation = ground.foundation

    def denied(real: str, facts: os.stat_result) -> str | None:
        from wave_agent.permissions.hard_links import why_unread  # lazy: not every project has instructions

        return why_unread(foundation.settings.rules, Places(foundation.project, os.path.expanduser("~")), real, facts)

    return instructions(
        foundation.place,
        foundation.home,
        foundation.claude_home,
        denied=denied,
        tell=ground.notices.append,
        loaded=ground.instructions.append,
    )


def _subagent_words(limit: int | None) -> str:
    limited = "" if limit is None else SUBAGENT_LIMIT.format(requests=requests_in_words(limit))
    return " ".join(filter(None, (SUBAGENT, limited)))


def _listed_skills(ground: Ground) -> dict[str, str]:
    if "Skill" not in ground.tools:
        return {}
    from wave_agent.agent.skills import listed_skills, model_skills  # lazy: many sessions have no skills

    skills = model_skills(ground.foundation.gathered.extensions)
    unloaded = [skill for name, skill in skills.items() if name not in ground.loaded_skills]
    listed = listed_skills(unloaded, ground.windows.current.known)
    return {"Skills": f"The tool Skill loads one of these.\n{listed}"} if listed else {}


def _listed_subagents(ground: Ground) -> dict[str, str]:
    """The description of Task lists them; when a session is resumed, there may be others."""
    task = ground.tools.get(Task.name)
    return {"Types of subagents": task.listed} if isinstance(task, Task) else {}


def _said_by_servers(ground: Ground) -> dict[str, str]:
    """Nothing for a subagent that has no tool of any server."""
    if ground.mcp is None or (ground.role is not None and not any(name.startswith("mcp__") for name in ground.tools)):
        return {}
    from wave_agent.agent.server_parts import server_parts  # lazy: most sessions have no servers

    return server_parts(ground.mcp.servers())


_FOR_NOTEBOOKS = "NotebookEdit"
"""Offered in projects that contain notebooks."""


class _Specs:
    """The tools as they are described to the model. Each is described once."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._described: dict[int, tuple[Tool, ToolSpec]] = {}

    def current(self) -> tuple[ToolSpec, ...]:
        return tuple(map(self.of, list(self._tools.values())))

    def of(self, tool: Tool) -> ToolSpec:
        if id(tool) not in self._described:
            self._described[id(tool)] = tool, ToolSpec(tool.name, tool.description, tool.schema())
        return self._described[id(tool)][1]
