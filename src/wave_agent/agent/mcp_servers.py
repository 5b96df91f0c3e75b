"""The MCP servers of a session, from what is configured. Loaded only if servers are."""

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from wave_agent.agent.foundation import Foundation
from wave_agent.mcp.cache import ListingCache
from wave_agent.mcp.consent import ConsentStore
from wave_agent.mcp.host_on_demand import HostOnDemand
from wave_agent.mcp.servers import Configured, configured_servers
from wave_agent.mcp.session import McpSession
from wave_agent.mcp.values import EXTRA_MISSING, McpHost
from wave_agent.rules.rule import Places
from wave_agent.system.processes import Ledger

if TYPE_CHECKING:
    from wave_agent.permissions.sandbox import Sandbox


def open_servers(
    foundation: Foundation,
    *,
    session_id: str,
    fixed: Mapping[str, str],
    ledger: Ledger,
    sandbox: "Sandbox | None",
    notices: list[str],
    notify: Callable[[str], None],
) -> McpSession | None:
    """None if no server may run. `fixed` are variables that no entry changes. `notices` gets what the user should know
    at the start, `notify` what happens later. Starts nothing. Raises `SettingsError`."""
    configured = configured_servers(
        foundation.gathered,
        project=foundation.place,
        home=foundation.home,
        choice=foundation.options,
        environment=foundation.environment,
        fixed=fixed,
    )
    notices += configured.notices
    if not configured.servers:
        return None
    if foundation.options.mcp_host is None and not _is_installed("mcp"):
        notices.append(f"No MCP server is used: {EXTRA_MISSING}")
        return None
    return McpSession(
        configured.servers,
        host=foundation.options.mcp_host or _host(foundation, configured, session_id, ledger, sandbox),
        store=ConsentStore(foundation.home),
        cache=ListingCache(foundation.home, foundation.project),
        rules=foundation.settings.rules,
        places=Places(foundation.project, os.path.expanduser("~"), foundation.place.start),
        notify=notify,
        patience=foundation.options.mcp_patience,
    )


def _is_installed(module: str) -> bool:
    """`importlib.util.find_spec` does the same, but takes longer to load than to run."""
    return module in sys.modules or any(finder.find_spec(module, None) for finder in sys.meta_path)


def _host(
    foundation: Foundation, configured: Configured, session_id: str, ledger: Ledger, sandbox: "Sandbox | None"
) -> McpHost:
    def make() -> McpHost:
        from wave_agent.mcp.host import SdkHost  # lazy: the first request needs no server whose tools are cached

        return SdkHost(
            home=foundation.home,
            session_id=session_id,
            environment=foundation.environment,
            roots=foundation.directories,
            ledger=ledger,
            sandbox=sandbox,
            why_not=lambda name: configured.why_changed(name, foundation.place),
        )

    return HostOnDemand(make)
