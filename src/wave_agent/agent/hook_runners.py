"""The hooks of a session, with one runner for each kind."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wave_agent.agent.foundation import Foundation
from wave_agent.events import Event
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.execution import HookKind, HookRunner, Runners
from wave_agent.hooks.manager import HookManager, LiveSession, SessionFacts
from wave_agent.hooks.pinned import search_path
from wave_agent.settings.layers import Settings
from wave_agent.system.processes import Ledger, no_ledger
from wave_agent.system.which import which

if TYPE_CHECKING:
    from wave_agent.hooks.runners.mcp_tool import AskServer
    from wave_agent.hooks.runners.thinking import Thinker


def hooks_for(
    foundation: Foundation,
    session: SessionFacts,
    *,
    outputs: Path,
    ledger: Ledger = no_ledger,
    on_event: Callable[[Event], None] = lambda _: None,
    live: LiveSession | None = None,
    ask_server: "AskServer | None" = None,
    reserve: Sequence[HookDefinition] = (),
    open_thinker: "Callable[[], Thinker] | None" = None,
) -> HookManager:
    """Runs the hooks that apply, each only while it is as it was trusted. `outputs` is for texts too long to show.
    `ask_server` is for hooks that call a tool of an MCP server, `open_thinker` for those that ask a model. `reserve`
    are the hooks of subagents."""
    settings, environment = foundation.settings, foundation.hook_environment
    refused, given = foundation.gathered.trust.problem, _nothing_more
    runner = foundation.options.hook_runner or Runners({})
    if settings.hooks.hooks or reserve:
        from wave_agent.hooks.python_guard import PythonGuard  # lazy: most projects have no hooks

        python = PythonGuard(foundation.project, foundation.home, environment)
        refused, given = python.after(refused), python.environment
        runner = foundation.options.hook_runner or hook_runner_for(
            settings, environment, ledger, ask_server=ask_server, open_thinker=open_thinker, more=reserve
        )
    hooks: Sequence[HookDefinition] = settings.hooks.hooks
    if any(hook.rollout is not None for hook in (*hooks, *reserve)):
        from wave_agent.hooks.rollout import in_session, share_of  # lazy: few hooks are

        # Below another agent, a session of its own would be another draw.
        share = share_of(session.session_id) if foundation.above is None else foundation.above.share
        hooks = [in_session(hook, share) for hook in hooks]
        reserve = [in_session(hook, share) for hook in reserve]
    return HookManager(
        hooks,
        runner=runner,
        session=session,
        environment=environment,
        settings_env=settings.env,
        max_stop_blocks=settings.max_stop_blocks,
        on_event=on_event,
        outputs=outputs,
        why_refused=refused,
        own_environment=given,
        live=live or LiveSession(),
        reserve=reserve,
    )


def _nothing_more(_: HookDefinition) -> Mapping[str, str]:
    return {}


def hook_runner_for(
    settings: Settings,
    environment: Mapping[str, str],
    ledger: Ledger = no_ledger,
    *,
    ask_server: "AskServer | None" = None,
    open_thinker: "Callable[[], Thinker] | None" = None,
    more: Sequence[HookDefinition] = (),
) -> HookRunner:
    """Runs the hooks in these settings, and more; a runner is created only for kinds that are used."""
    makers: Mapping[HookKind, Callable[[], HookRunner]] = {
        HookKind.COMMAND: lambda: _processes(environment, ledger),
        HookKind.PYTHON: lambda: _workers(ledger),
        HookKind.HTTP: lambda: _http(settings, environment),
        HookKind.MCP_TOOL: lambda: _mcp_tools(ask_server),
    }
    # Commands also read the variables that hooks export.
    wanted = {HookKind.COMMAND, *(hook.kind for hook in (*settings.hooks.hooks, *more))}
    found = {kind: make() for kind, make in makers.items() if kind in wanted}
    if HookKind.PROMPT in wanted or HookKind.AGENT in wanted:
        thinking = _thinking(open_thinker)
        found |= {HookKind.PROMPT: thinking, HookKind.AGENT: thinking}
    return Runners(found)


def _processes(environment: Mapping[str, str], ledger: Ledger) -> HookRunner:
    from wave_agent.hooks.runners.command import ProcessRunner  # lazy: most projects have no hooks

    return ProcessRunner(shell=which("bash", path=search_path(environment)), ledger=ledger)


def _workers(ledger: Ledger) -> HookRunner:
    from wave_agent.hooks.runners.worker_pool import WorkerPool  # lazy: only for hooks that are functions in files

    return WorkerPool(ledger=ledger)


def _mcp_tools(ask_server: "AskServer | None") -> HookRunner:
    from wave_agent.hooks.runners.mcp_tool import McpToolRunner, no_servers  # lazy: only for hooks that ask a server

    return McpToolRunner(ask_server or no_servers)


def _thinking(open_thinker: "Callable[[], Thinker] | None") -> HookRunner:
    from wave_agent.hooks.runners.thinking import NoThinker, ThinkingRunner  # lazy: only for hooks that ask a model

    return ThinkingRunner(NoThinker() if open_thinker is None else open_thinker())


def _http(settings: Settings, environment: Mapping[str, str]) -> HookRunner:
    from wave_agent.hooks.runners.http import HttpRunner  # lazy: only for hooks that call a service

    return HttpRunner(
        hosts=settings.http_hosts,
        variables=settings.http_env,
        environment=environment,
        limits={"http_hosts", "http_env"} & settings.managed,
    )
