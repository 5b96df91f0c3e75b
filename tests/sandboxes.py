"""Sandboxes for tests, on machines that can have them."""

import fcntl
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from wave_agent.errors import SandboxError
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.permissions.hosts import Network
from wave_agent.permissions.protected_paths import protected_paths
from wave_agent.permissions.sandbox import Sandbox
from wave_agent.rules.rule import parse_rule
from wave_agent.tools.base import ToolContext, ToolResult
from wave_agent.tools.registry import builtin_tools, find_tool

ESCAPEE = """setsid sh -c 'trap "" TERM HUP; exec 9>>held; flock 9; while :; do sleep 1; done'"""
"""A command that leaves its session and hears no signal but the last. As long as it lives, it holds a lock."""


def is_held(project: Path) -> bool:
    """Whether an `ESCAPEE` lives."""
    with (project / "held").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def open_sandbox(
    project: Path,
    state: Path,
    *,
    directories: Sequence[Path] = (),
    hooks: Sequence[HookDefinition] = (),
    network: Network = False,
    denied: Sequence[str] = (),
    home: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Sandbox:
    """A real one; the test is skipped where there is none to be had."""
    try:
        return Sandbox.open(
            project=str(project),
            directories=[str(directory) for directory in directories],
            protected=protected_paths(str(project), state, hooks, home),
            state=state,
            outputs=state / "projects" / "this" / "session",
            network=network,
            environment=environment or os.environ,
            denied=[parse_rule(text) for text in denied],
        )
    except SandboxError as error:
        pytest.skip(f"no sandbox on this machine: {error}")


class Confined:
    """The built-in tools, with a sandbox around their commands."""

    def __init__(self, root: Path, **more: Any) -> None:
        self.root = root
        self.project = root / "project"
        self.state = root / "state"
        self.outputs = self.state / "projects" / "this" / "session"
        self.outputs.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.project.mkdir(exist_ok=True)
        self.environment = {**os.environ, "HOME": str(root)}
        self.sandbox: Sandbox = open_sandbox(self.project, self.state, **more)
        self.tools = builtin_tools()

    async def call(self, name: str, **tool_input: Any) -> ToolResult:
        tool = find_tool(name, self.tools)
        context = ToolContext(
            project_dir=self.project, environment=self.environment, outputs=self.outputs, sandbox=self.sandbox
        )
        return await tool.run(tool.parse(tool_input), context)

    async def bash(self, command: str, **tool_input: Any) -> ToolResult:
        return await self.call("Bash", command=command, **tool_input)

    async def close(self) -> None:
        for tool in self.tools:
            await tool.close()
        self.sandbox.close()


Make = Callable[..., Confined]
