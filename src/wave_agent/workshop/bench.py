"""A project's hooks, ready for a trial."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from wave_agent.agent.foundation import Foundation
from wave_agent.agent.hook_runners import hook_runner_for
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.python_guard import PythonGuard
from wave_agent.rules.rule import Places
from wave_agent.tools.registry import every_tool
from wave_agent.workshop.trial import Bench, ProjectJudge

if TYPE_CHECKING:
    from wave_agent.hooks.runners.mcp_tool import AskServer
    from wave_agent.hooks.runners.thinking import Thinker


def bench_of(
    foundation: Foundation,
    *,
    ask_server: "AskServer | None" = None,
    open_thinker: "Callable[[], Thinker]",
    why_refused: Callable[[HookDefinition], str | None] | None = None,
) -> Bench:
    """`ask_server` asks MCP servers for hooks, and `open_thinker` models. `why_refused` says why a hook must not run;
    the default is the trust in these settings."""
    settings = foundation.settings
    python = PythonGuard(foundation.project, foundation.home, foundation.hook_environment)
    return Bench(
        hooks=settings.hooks.hooks,
        environment=foundation.environment,
        settings_env=settings.env,
        max_stop_blocks=settings.max_stop_blocks,
        why_refused=python.after(why_refused or foundation.gathered.trust.problem),
        own_environment=python.environment,
        runner=hook_runner_for(settings, foundation.hook_environment, ask_server=ask_server, open_thinker=open_thinker),
        left_out=foundation.gathered.left_out,
        tools={tool.name: tool for tool in every_tool()},
        judge=ProjectJudge(
            places=Places(foundation.project, os.path.expanduser("~"), foundation.place.start),
            rules=settings.rules,
            mode=foundation.mode,
            directories=foundation.directories,
            protected=foundation.protected,
            environment=foundation.environment,
        ),
    )
