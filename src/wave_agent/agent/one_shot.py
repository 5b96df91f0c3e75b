"""Runs one prompt synchronously."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from wave_agent.agent.agent import Agent
from wave_agent.agent.result import Callbacks, Result
from wave_agent.hooks.events import HookEventName
from wave_agent.hooks.execution import HookRunner
from wave_agent.models.base import ApiName, Effort, Model
from wave_agent.permissions.decision import Approver, ModeName, PermissionMode
from wave_agent.settings.places import SourceName
from wave_agent.settings.sources import Trust
from wave_agent.tools.base import Tool


class AgentOptions(TypedDict, total=False):
    """The arguments of `Agent.create`."""

    workdir: str | os.PathLike[str] | None
    model: str | None
    base_url: str | None
    api_key: str | None
    api: ApiName | None
    hooks: Mapping[str, Any] | Mapping[HookEventName, Any] | None
    tools: Sequence[Tool]
    agents: Mapping[str, Mapping[str, Any]] | None
    system_prompt: str | None
    permission_mode: ModeName | PermissionMode | None
    can_use_tool: Approver | None
    callbacks: Callbacks | Mapping[str, Callable[..., object]] | None
    settings: str | os.PathLike[str] | Mapping[str, Any] | None
    setting_sources: Sequence[SourceName] | None
    trust: Trust
    max_turns: int | None
    max_cost: float | None
    max_output_tokens: int | None
    effort: Effort | None
    fallback_model: str | None
    resume: str | None
    model_client: Model | None
    hook_runner: HookRunner | None
    mcp_servers: Mapping[str, Any] | None
    mcp_host: Any


def run(prompt: str, **options: Unpack[AgentOptions]) -> Result:
    """Runs one prompt with a new agent and closes it. `options` are those of `Agent.create`."""

    async def once() -> Result:
        async with await Agent.create(**options) as agent:
            return await agent.send_message(prompt)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(once())
    raise RuntimeError("wave_agent.run needs a thread without an event loop: here, await Agent.create(…) instead.")
