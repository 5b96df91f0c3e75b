"""Where MCP servers can be configured. Tells a start without any that there are none, before anything is loaded."""

import os
from collections.abc import Mapping
from pathlib import Path

from wave_agent.hooks.definitions import Layer
from wave_agent.settings.places import LayerFile, project_places
from wave_agent.settings.sources import Gathered, SourceChoice
from wave_agent.system.project import Project

MCP_FILES: Mapping[str, Layer] = {".mcp.json": Layer.PROJECT}
"""In each directory of a project."""
CONSENT_FILE = "mcp.json"
"""In the agent's own directory: see `mcp.consent`."""
_LARGEST = 64 << 20
"""Bytes of another agent's own file: it grows with every project."""


def has_servers(gathered: Gathered, project: Project, home: Path, choice: SourceChoice) -> bool:
    """Whether any MCP server may be configured. False is certain; true may turn out to be nothing.

    For an agent: `has_servers(foundation.gathered, foundation.place, foundation.home, foundation.options)`.
    """
    if choice.mcp_config or choice.mcp_servers:
        return True
    if any(source.document.value.get("mcpServers") for source in gathered.mcp):
        return True
    if gathered.foreign and os.path.lexists(choice.managed_mcp_file):
        return True
    if choice.strict_mcp_config:
        return False
    if any(os.path.lexists(place.file) for place in mcp_places(home, project, choice)):
        return True
    return gathered.foreign and Layer.USER in choice.wanted and b'"mcpServers"' in claude_state(choice)


def mcp_places(home: Path, project: Project, choice: SourceChoice) -> tuple[LayerFile, ...]:
    """The places of `.mcp.json`, outermost directory first."""
    return project_places(home, project, MCP_FILES) if Layer.PROJECT in choice.wanted else ()


def claude_state_file(choice: SourceChoice) -> Path:
    """The file in which Claude Code keeps the servers that a user has added."""
    directory = choice.claude
    return directory.with_name(".claude.json") if directory.name == ".claude" else directory / ".claude.json"


def stored_consents(home: Path) -> bytes:
    """The whole file with consents and pins; empty if there is none, or it cannot be read."""
    try:
        return (home / CONSENT_FILE).read_bytes()
    except OSError:
        return b""


def claude_state(choice: SourceChoice) -> bytes:
    """Its content; empty if there is none. That program rewrites it all the time, so it is never an error."""
    try:
        with open(claude_state_file(choice), "rb") as file:
            return file.read(_LARGEST)
    except OSError:
        return b""
