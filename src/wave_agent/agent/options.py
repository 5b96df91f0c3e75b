"""What was asked of an agent, `Options`, and where it works."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wave_agent.agent.model_choice import ModelWishes
from wave_agent.agent.result import Callbacks
from wave_agent.errors import MissingPathError, SettingsError
from wave_agent.formats.readable import readable_text
from wave_agent.hooks.execution import HookRunner
from wave_agent.models.base import Model
from wave_agent.permissions.decision import Approver, RestoreApprover
from wave_agent.settings.other_agents import claude_home
from wave_agent.settings.sources import SourceChoice, locate
from wave_agent.system.private_files import wave_home
from wave_agent.system.project import Project
from wave_agent.tools.base import Tool

if TYPE_CHECKING:
    from wave_agent.mcp.values import Elicit, McpHost
    from wave_agent.settings.agent_definitions import AgentDefinition


class Options(SourceChoice, frozen=True, kw_only=True):
    """All options for creating an agent."""

    workdir: str | os.PathLike[str] | None = None
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = None
    api: str | None = None
    """How the model's server is spoken to: one of `models.apis.APIS`. None: as the environment, the settings or the
    URL say."""
    tools: Sequence[Tool] = ()
    agents: "Mapping[str, AgentDefinition] | None" = None
    """Types of subagents, besides those that are built in or found in files."""
    system_prompt: str | None = None
    append_system_prompt: str = ""
    permission_mode: str | None = None
    can_use_tool: Approver | None = None
    may_restore: RestoreApprover | None = None
    """Asked before a file is restored that a rule protects. None: it is restored unasked, if that is certain to be
    right."""
    callbacks: Callbacks = Callbacks()
    sandbox: bool = False
    """Run commands in a sandbox. Raises `SandboxError` if none is available."""
    interactive: bool | None = None
    """Whether a user follows the session and can answer. None: unknown, and the model learns nothing about it."""
    max_turns: int | None = None
    max_cost: float | None = None
    """US dollars."""
    max_output_tokens: int | None = None
    """For one answer."""
    effort: str | None = None
    """How hard the model should think: one of `EFFORTS` in `models.base`."""
    fallback_model: str | None = None
    """Takes over if the model is overloaded."""
    resume: str | None = None
    source: str = "startup"
    """How a new session starts, for SessionStart hooks."""
    model_client: Model | None = None
    hook_runner: HookRunner | None = None
    mcp_host: "McpHost | None" = None
    """What speaks to MCP servers. None: the official SDK, in a process of its own."""
    mcp_patience: float = 5.0
    """Seconds that the first request waits for MCP servers whose tools are not known yet."""
    elicit: "Elicit | None" = None
    """Answers what MCP servers ask the user. None: it is declined."""

    @property
    def wishes(self) -> ModelWishes:
        return ModelWishes(base_url=self.base_url, api_key=self.api_key, api=self.api)


def find_places(workdir: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> tuple[str, Path]:
    """The project's real path, and the directory for the agent's own state."""
    project, home = locate_project(workdir, environment)
    return project.directory, home


def locate_project(
    workdir: str | os.PathLike[str] | None, environment: Mapping[str, str], choice: SourceChoice | None = None
) -> tuple[Project, Path]:
    """The project around a directory (default: the current one), and the directory for the agent's own state."""
    start, home = start_of(workdir), wave_home(environment)
    return locate(start, home, choice or SourceChoice(claude_home=claude_home(environment))), home


def locate_for(options: Options, environment: Mapping[str, str]) -> tuple[Project, Path]:
    """The project that an agent with these options would work in, and the directory for its state."""
    return locate_project(options.workdir, environment, options.in_environment(environment))


def start_of(workdir: str | os.PathLike[str] | None) -> str:
    try:
        start = str(workdir or os.getcwd())
        start = start if "\0" in start else os.path.realpath(start)
    except FileNotFoundError:
        raise SettingsError("The current directory no longer exists.") from None
    if readable_text(start) != start:  # a hook named by this path would not be found, or a different one would be
        shown = start.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
        raise SettingsError(
            f"The path {shown} is not valid UTF-8, so it cannot be passed to hooks. Rename the directory."
        )
    if not os.path.isdir(start):
        raise MissingPathError(f"There is no directory {start} to work in.")
    return start
