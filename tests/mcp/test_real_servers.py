"""Servers that others wrote, from PyPI and npm: what they offer, what they answer, and our guards around them."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.project import Project, serving
from wave_agent.hooks.definitions import Layer
from wave_agent.mcp.host import SdkHost
from wave_agent.mcp.values import (
    Elicitation,
    ElicitationAnswer,
    McpResult,
    Server,
    ServerEntry,
    ServerListing,
    ServerTransport,
)
from wave_agent.testing import Reply, call

pytestmark = pytest.mark.thorough

NPM = Path(__file__).parents[2] / ".cache" / "mcp-servers" / "node_modules" / "@modelcontextprotocol"


def npm(name: str, *arguments: str) -> list[str]:
    """The command of a server from npm. Skips the test if it is not installed."""
    node = shutil.which("node")
    file = NPM / f"server-{name}" / "dist" / "index.js"
    if node is None or not file.exists():
        missing = "node is not installed" if node is None else "run make test-mcp-servers, which needs npm"
        pytest.skip(f"@modelcontextprotocol/server-{name}: {missing}")
    return [node, str(file), *arguments]


def pypi(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"mcp_server_{name}", *arguments]


def text_of(result: McpResult) -> str:
    return "\n".join(block["text"] for block in result.content if block["type"] == "text")


class RealServer:
    """One server, connected."""

    def __init__(self, host: SdkHost, server: Server) -> None:
        self._host = host
        self._server = server

    async def listing(self) -> ServerListing:
        return await self._host.connect(self._server, deadline=240)

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> McpResult:
        await self.listing()  # which has time to start it, however busy the machine is
        return await self._host.call(self._server, tool, arguments or {}, **more)

    async def read(self, uri: str) -> McpResult:
        return await self._host.read_resource(self._server, uri)

    async def prompt(self, name: str, **arguments: str) -> str:
        return await self._host.get_prompt(self._server, name, arguments)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[SdkHost]:
    made = SdkHost(home=tmp_path / "home", session_id=str(uuid4()), environment=dict(os.environ), roots=[str(tmp_path)])
    try:
        yield made
    finally:
        await made.close()


def started(host: SdkHost, command: Sequence[str], directory: Path, **env: str) -> RealServer:
    entry = ServerEntry(transport=ServerTransport.STDIO, command=command[0], args=tuple(command[1:]), env=env)
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), **env}
    server = Server(
        name="real",
        entry=entry,
        layer=Layer.USER,
        source="test",
        environment=environment,
        directory=str(directory),
    )
    return RealServer(host, server)


def repository(directory: Path) -> Path:
    directory.mkdir()
    (directory / "README").write_text("hello\n")
    name = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], [*name, "commit", "-qm", "First commit"]):
        subprocess.run(["git", *words], cwd=directory, check=True)
    return directory


async def test_time_converts_and_refuses(host: SdkHost, tmp_path: Path) -> None:
    server = started(host, pypi("time"), tmp_path)
    listing = await server.listing()
    assert {tool.name for tool in listing.tools} >= {"get_current_time", "convert_time"}
    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    assert "21:00:00+09:00" in text_of(await server.call("convert_time", arguments))
    refused = await server.call("get_current_time", {"timezone": "Nowhere/Land"})
    assert (refused.is_error, "Nowhere/Land" in text_of(refused)) == (True, True)


async def test_git_shows_a_repository(host: SdkHost, tmp_path: Path) -> None:
    place = repository(tmp_path / "repository")
    server = started(host, pypi("git", "--repository", str(place)), tmp_path)
    assert "git_log" in {tool.name for tool in (await server.listing()).tools}
    assert "First commit" in text_of(await server.call("git_log", {"repo_path": str(place)}))
    (place / "README").write_text("changed\n")
    assert "+changed" in text_of(await server.call("git_diff_unstaged", {"repo_path": str(place)}))


async def test_filesystem_stays_in_its_directory(host: SdkHost, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "note.txt").write_text("inside\n")
    (tmp_path / "secret.txt").write_text("outside\n")
    server = started(host, npm("filesystem", str(tmp_path / "project")), tmp_path)
    hints = {tool.name: tool.annotations for tool in (await server.listing()).tools}
    assert hints["read_text_file"].get("readOnlyHint") is True
    assert hints["write_file"].get("destructiveHint") is True
    inside = await server.call("read_text_file", {"path": str(tmp_path / "project" / "note.txt")})
    assert (text_of(inside), inside.is_error) == ("inside\n", False)


async def test_memory_keeps_a_graph(host: SdkHost, tmp_path: Path) -> None:
    server = started(host, npm("memory"), tmp_path, MEMORY_FILE_PATH=str(tmp_path / "memory.json"))
    entity = {"name": "Wave", "entityType": "agent", "observations": ["is guarded"]}
    await server.call("create_entities", {"entities": [entity]})
    graph = await server.call("read_graph")
    assert "is guarded" in text_of(graph)
    assert graph.structured["entities"][0]["name"] == "Wave"


async def test_everything_the_protocol_has(host: SdkHost, tmp_path: Path) -> None:
    server = started(host, npm("everything"), tmp_path, VISIBLE="yes")
    listing = await server.listing()
    assert {"echo", "get-tiny-image"} <= {tool.name for tool in listing.tools}
    assert text_of(await server.call("echo", {"message": "grüße"})) == "Echo: grüße"
    image = next(one for one in (await server.call("get-tiny-image")).content if one["type"] == "image")
    assert image["mimeType"] == "image/png"
    structured = await server.call("get-structured-content", {"location": "New York"})
    assert set(structured.structured) == {"temperature", "conditions", "humidity"}
    environment = json.loads(text_of(await server.call("get-env")))
    assert environment["VISIBLE"] == "yes"
    assert not [name for name in environment if name.startswith(("WAVE_API", "ANTHROPIC", "OPENAI"))]

    seen: list[tuple[float, float | None]] = []
    steps = {"duration": 0.4, "steps": 4}
    await server.call(
        "trigger-long-running-operation", steps, progress=lambda done, total, _: seen.append((done, total))
    )
    assert seen[-1] == (4, 4)

    text = next(one for one in listing.resources if not one.is_template)
    assert (await server.read(text.uri)).content
    simple = next(one for one in listing.prompts if not one.arguments)
    assert await server.prompt(simple.name)


async def test_everything_asks_and_is_cancelled(host: SdkHost, tmp_path: Path) -> None:
    server = started(host, npm("everything"), tmp_path)
    asked: list[Elicitation] = []

    async def answer(request: Elicitation) -> ElicitationAnswer:
        asked.append(request)
        return ElicitationAnswer(action="decline")

    if "trigger-elicitation-request" in {tool.name for tool in (await server.listing()).tools}:
        declined = await server.call("trigger-elicitation-request", elicit=answer)
        assert asked
        assert asked[0].server == "real"
        assert "decline" in text_of(declined).lower()
    long = asyncio.create_task(server.call("trigger-long-running-operation", {"duration": 600, "steps": 600}))
    await asyncio.wait([long], timeout=0.5)
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    assert text_of(await server.call("echo", {"message": "still here"})) == "Echo: still here"


def test_rules_and_hooks_hold_for_a_real_server(tmp_path: Path) -> None:
    """A whole session: the model reads a file through the server, and what rules and hooks deny never reaches it."""
    project = Project(tmp_path)
    for name in ("open.txt", ".env", "guarded.txt"):
        (project.directory / name).write_text(f"content of {name}\n")
    command, *arguments = npm("filesystem", str(project.directory))
    guard = "import json,sys; p=json.load(sys.stdin)['tool_input']['path']; sys.exit(2 if 'guarded' in p else 0)"
    hook = {"type": "command", "command": sys.executable, "args": ["-c", guard]}
    settings = {
        "mcpServers": {"files": {"command": command, "args": arguments}},
        "permissions": {"allow": ["mcp__files"], "deny": ["Read(.env)"]},
        "hooks": {"PreToolUse": [{"matcher": "mcp__files__.*", "hooks": [hook]}]},
    }
    project.home.mkdir()
    (project.home / "settings.json").write_text(json.dumps(settings))
    # Then its tools are known, however long it takes to start.
    tried = project.wave("mcp", "test", "files")
    assert tried.returncode == 0, tried.stderr
    paths = [str(project.directory / name) for name in ("open.txt", ".env", "guarded.txt")]
    calls = [call("mcp__files__read_text_file", path=path) for path in paths]
    with serving(Reply(tool_calls=calls), "Done.") as model:
        ran = project.wave("-p", "Read them.", server=model)
        assert (ran.returncode, ran.stdout) == (0, "Done.\n"), ran.stderr
        told = json.dumps(model.requests[-1].body)
    assert "content of open.txt" in told
    assert "content of .env" not in told
    assert "content of guarded.txt" not in told
