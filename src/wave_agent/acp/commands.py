"""What users can call by `/name`: skills, commands, and prompts of MCP servers."""

from collections.abc import Iterable

from acp.schema import AvailableCommand, AvailableCommandInput, UnstructuredCommandInput

from wave_agent.agent.agent import Agent
from wave_agent.agent.expansion import user_commands
from wave_agent.settings.extensions import ExtensionFile


def commands_of(agent: Agent) -> list[AvailableCommand]:
    files: Iterable[ExtensionFile] = () if agent.extensions is None else user_commands(agent.extensions).values()
    found = [_command(one.name, one.description, one.front.get("argument-hint")) for one in files]
    if agent.mcp is not None:
        found += [_command(one.command.removeprefix("/"), one.prompt.description, None) for one in agent.mcp.prompts()]
    return found


def _command(name: str, description: str, hint: object) -> AvailableCommand:
    words = hint.strip() if isinstance(hint, str) else ""
    asks = AvailableCommandInput(root=UnstructuredCommandInput(hint=words)) if words else None
    return AvailableCommand(name=name, description=description or name, input=asks)
