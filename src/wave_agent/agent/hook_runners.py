"""One runner for each kind of hook."""

import shutil
from collections.abc import Callable, Mapping

from wave_agent.hooks.execution import HookKind, HookRunner, Runners
from wave_agent.hooks.pinned import search_path
from wave_agent.hooks.runners.command import ProcessRunner
from wave_agent.settings.layers import Settings
from wave_agent.system.processes import Ledger, no_ledger


def hook_runner_for(settings: Settings, environment: Mapping[str, str], ledger: Ledger = no_ledger) -> HookRunner:
    """Runs the hooks in these settings; a runner is created only for kinds that are used."""
    makers: Mapping[HookKind, Callable[[], HookRunner]] = {
        HookKind.COMMAND: lambda: ProcessRunner(
            shell=shutil.which("bash", path=search_path(environment)), ledger=ledger
        ),
        HookKind.PYTHON: lambda: _workers(ledger),
        HookKind.HTTP: lambda: _http(settings, environment),
    }
    # Commands also read the variables that hooks export.
    wanted = {HookKind.COMMAND, *(hook.kind for hook in settings.hooks.hooks)}
    return Runners({kind: make() for kind, make in makers.items() if kind in wanted})


def _workers(ledger: Ledger) -> HookRunner:
    from wave_agent.hooks.runners.worker_pool import WorkerPool  # lazy: only for hooks that are functions in files

    return WorkerPool(ledger=ledger)


def _http(settings: Settings, environment: Mapping[str, str]) -> HookRunner:
    from wave_agent.hooks.runners.http import HttpRunner  # lazy: only for hooks that call a service

    return HttpRunner(
        hosts=settings.http_hosts,
        variables=settings.http_env,
        environment=environment,
        limits={"http_hosts", "http_env"} & settings.managed,
    )
