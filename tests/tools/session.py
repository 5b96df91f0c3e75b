"""What the agent does with tools, without the agent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wave_agent.tools.base import ToolContext, ToolResult
from wave_agent.tools.registry import builtin_tools, find_tool


class Session:
    def __init__(self, project: Path, outputs: Path, environment: Mapping[str, str]) -> None:
        self.project = project
        self.outputs = outputs
        self.environment = environment
        self.emitted: list[str] = []
        self.window: int | None = None
        self.images = False
        self.hold = False
        self.tools = builtin_tools()

    async def call(self, name: str, **tool_input: Any) -> ToolResult:
        tool = find_tool(name, self.tools)
        arguments = tool.parse(tool.normalise(tool_input, str(self.project)))
        return await tool.run(arguments, self.context)

    @property
    def context(self) -> ToolContext:
        return ToolContext(
            project_dir=self.project,
            environment=self.environment,
            outputs=self.outputs,
            emit=self.emitted.append,
            window=lambda: self.window,
            takes_images=self._takes_images,
            hold=self.hold,
        )

    async def _takes_images(self) -> bool:
        return self.images

    async def bash(self, command: str, **tool_input: Any) -> ToolResult:
        return await self.call("Bash", command=command, **tool_input)

    async def close(self) -> None:
        for tool in self.tools:
            await tool.close()

    def file(self, name: str, content: bytes | str = b"") -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path
