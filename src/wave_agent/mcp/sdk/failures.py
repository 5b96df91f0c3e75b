"""What went wrong with a server, in one sentence."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import cast

import httpx2
from mcp import MCPError, types
from pydantic import ValidationError

from wave_agent.mcp.sdk.launching import ServerProcess
from wave_agent.mcp.values import McpError, Server, ServerTransport
from wave_agent.text import one_line

_SHOWN = 600
"""Characters of a server's own message."""


def first_of(error: BaseException) -> BaseException:
    """Task groups of the SDK wrap what happened, several times. Our own messages say it best."""
    found = list(_leaves(error))
    return next((one for one in found if isinstance(one, McpError)), found[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(one)
    else:
        yield error


def is_closed(error: BaseException) -> bool:
    """Whether the SDK says so. Its code is the one that many servers use for errors of their own."""
    return (
        isinstance(error, MCPError)
        and error.code == types.CONNECTION_CLOSED
        and error.error.data is None
        and (error.message == "Connection closed" or error.message.startswith("SSE stream "))
    )


class ForgottenSessionError(McpError):
    """An HTTP server was restarted, or has dropped the session: it has not run the call."""


def is_forgotten(error: BaseException) -> bool:
    return isinstance(error, MCPError) and error.code == types.INVALID_REQUEST and error.message == "Session terminated"


def explained(error: BaseException, server: Server, status: int | None = None, *, is_new: bool = False) -> McpError:
    """`status`: of the last HTTP response. `is_new`: it was being connected, so its address may be wrong."""
    error = first_of(error)
    who = f"The MCP server {server.name!r}"
    match error:
        case McpError():
            return error
        case MCPError() if is_forgotten(error):
            return ForgottenSessionError(f"{who} no longer knows the session")
        case MCPError():
            http = f" (HTTP {status})" if status is not None and (is_new or status != HTTPStatus.OK) else ""
            wrong = f". Is {_place(server)} the address of an MCP server?" if http and is_new else ""
            said = one_line(error.error.message, _SHOWN)
            return McpError(f"{who} answered with error {error.code}{http}: {said}{wrong}")
        case ValidationError():
            return McpError(f"{who} broke the protocol: {one_line(_first_problem(error), _SHOWN)}")
        case httpx2.HTTPStatusError():
            return McpError(f"{who} answered with HTTP {error.response.status_code}")
        case httpx2.TimeoutException() | TimeoutError():
            return McpError(f"{who} did not answer in time")
        case httpx2.HTTPError() | OSError():
            what = one_line(str(error), _SHOWN) or type(error).__name__
            return McpError(f"{who} cannot be reached at {_place(server)}: {what}")
        case _:
            return McpError(f"{who} failed: {one_line(str(error), _SHOWN) or type(error).__name__}")


def ended(server: Server, process: ServerProcess | None, *, during_call: bool) -> McpError:
    """For a connection that was lost."""
    status = process.status if process is not None else None
    how = "closed the connection"
    if status is not None:
        how = f"ended (exit code {status})" if status >= 0 else f"was ended by signal {-status}"
    said = process.tail.text() if process is not None else ""
    may = " The call may have run." if during_call else ""
    return McpError(f"The MCP server {server.name!r} {how}.{may}{_said(said)}")


def too_late(server: Server, seconds: float, process: ServerProcess | None) -> McpError:
    """For a connection that was not made."""
    said = process.tail.text() if process is not None else ""
    return McpError(f"The MCP server {server.name!r} did not connect within {seconds:g} s.{_said(said)}")


def unanswered(server: Server, seconds: float, progress: str, said: str) -> McpError:
    """For a call. `progress` is the last that the server has reported, `said` what it has printed during the call."""
    last = f" Its last progress: {one_line(progress, _SHOWN)}." if progress else _said(said)
    return McpError(f"The MCP server {server.name!r} did not answer within {seconds:g} s. The call may have run.{last}")


def _said(text: str) -> str:
    return f" Its last output: {text}" if text else ""


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _place(server: Server) -> str:
    """Without what may be secret in a URL."""
    if server.entry.transport == ServerTransport.STDIO:
        return server.entry.command
    url = httpx2.URL(server.entry.url)
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))
