"""A server made with the official SDK, over HTTP: `python official.py streamable-http|sse PORT_FILE`.

It writes the port that it listens on into the file.
"""

import socket
import sys
from pathlib import Path

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer

transport, port_file = sys.argv[1:]
server = MCPServer("official", instructions="Over HTTP.")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@server.tool()
async def header(name: str, ctx: Context) -> str:
    """A header of the request."""
    return ctx.headers.get(name, "") if ctx.headers else ""


@server.tool()
async def wait(ctx: Context) -> str:
    """Reports progress, and never ends."""
    await ctx.report_progress(1, 2, "waiting")
    await anyio.sleep(600)
    return ""


@server.tool()
def big(size: int) -> str:
    """Says a lot."""
    return "x" * size


app = server.sse_app() if transport == "sse" else server.streamable_http_app()
listener = socket.create_server(("127.0.0.1", 0))
file = Path(port_file)
file.with_suffix(".new").write_text(f"{listener.getsockname()[1]}\n")
file.with_suffix(".new").rename(file)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listener])
