"""The client that the official conformance suite starts, with the URL of a scenario's server: our host, and a user who
logs in and accepts what a server proposes.

The suite names the scenario in `MCP_CONFORMANCE_SCENARIO`, and its data in `MCP_CONFORMANCE_CONTEXT`.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from wave_agent.hooks.definitions import Layer
from wave_agent.mcp.host import SdkHost
from wave_agent.mcp.values import (
    Elicitation,
    ElicitationAnswer,
    LoginNeededError,
    McpError,
    OAuth,
    Server,
    ServerEntry,
    ServerListing,
    ServerTransport,
)

DEADLINE = 20.0
LOGINS = 2
"""How often the user logs in for one connection or call: a server may ask for more rights, but not forever."""
METADATA_URL = "https://conformance-test.local/client-metadata.json"
"""The client that the suite's server knows by the document at its id."""
TOOLS: Mapping[str, tuple[tuple[str, Mapping[str, Any]], ...]] = {
    "initialize": (),
    "json-schema-ref-no-deref": (),
    "tools_call": (("add_numbers", {"a": 5, "b": 3}),),
    "request-metadata": (("add_numbers", {"a": 5, "b": 3}),),
    "http-standard-headers": (("add_numbers", {"a": 5, "b": 3}),),
    "sse-retry": (("test_reconnection", {}),),
    "elicitation-sep1034-client-defaults": (("test_client_elicitation_defaults", {}),),
    "sep-2322-client-request-state": (
        ("test_mrtr_echo_state", {}),
        ("test_mrtr_unrelated", {}),
        ("test_mrtr_no_state", {}),
        ("test_mrtr_no_result_type", {}),
    ),
}
"""The calls that a scenario wants to see, if they do not depend on what its server lists."""
EXAMPLES: Mapping[str, Any] = {"integer": 0, "number": 0, "boolean": False, "object": {}, "array": []}


class User:
    """What a person does with one server."""

    def __init__(self, host: SdkHost, server: Server) -> None:
        self._host = host
        self._server = server

    async def connect(self) -> ServerListing:
        for _ in range(LOGINS):
            with suppress(LoginNeededError):
                return await self._host.connect(self._server, deadline=DEADLINE)
            await self._host.login(self._server, show_url=visit)
        return await self._host.connect(self._server, deadline=DEADLINE)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        for _ in range(LOGINS):
            with suppress(LoginNeededError):
                print(await self._host.call(self._server, tool, arguments, elicit=accept))
                return
            await self._host.login(self._server, show_url=visit)
        print(await self._host.call(self._server, tool, arguments, elicit=accept))


def visit(url: str) -> None:
    """The browser: follows the redirects back to the host."""

    def go() -> None:
        with suppress(OSError):  # The host says what is wrong with the answer.
            urllib.request.urlopen(url, timeout=DEADLINE).close()

    threading.Thread(target=go, daemon=True).start()


async def accept(asked: Elicitation) -> ElicitationAnswer:
    """Leaves a form as it is, and confirms whatever has no default."""
    fields: Mapping[str, Any] = asked.schema.get("properties", {})
    filled = {name: field["default"] for name, field in fields.items() if "default" in field}
    confirmed = {name: True for name, field in fields.items() if name not in filled and field.get("type") == "boolean"}
    return ElicitationAnswer(action="accept", content={**filled, **confirmed})


def server_of(scenario: str, url: str, context: Mapping[str, Any]) -> Server:
    oauth = None
    if scenario == "auth/basic-cimd":
        oauth = OAuth(client_id=METADATA_URL)
    elif scenario == "auth/pre-registration":
        oauth = OAuth(client_id=context["client_id"], client_secret=context["client_secret"])
    entry = ServerEntry(transport=ServerTransport.HTTP, url=url, oauth=oauth, timeout=DEADLINE)
    return Server(name="conformance", entry=entry, layer=Layer.USER, source="settings.json")


def calls(scenario: str, listing: ServerListing, context: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    tools = {tool.name: tool for tool in listing.tools}
    if scenario in TOOLS:
        yield from TOOLS[scenario]
    elif scenario == "json-schema-2020-12-preservation":
        yield "json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema}
    elif scenario == "http-custom-headers":
        for call in context.get("toolCalls", ()):
            if call["name"] in tools:
                yield call["name"], call.get("arguments") or {}
    elif scenario == "http-invalid-tool-headers":
        for tool in listing.tools:
            fields = tool.input_schema.get("properties", {})
            required = tool.input_schema.get("required", ())
            yield tool.name, {name: EXAMPLES.get(fields.get(name, {}).get("type"), "x") for name in required}
    elif listing.tools:
        yield listing.tools[0].name, {}


async def run(scenario: str, url: str, context: Mapping[str, Any], home: Path) -> bool:
    """Whether everything worked. In some scenarios, it must not."""
    host = SdkHost(home=home, session_id="conformance", environment=dict(os.environ), roots=[str(home)])
    user = User(host, server_of(scenario, url, context))
    worked = True
    try:
        listing = await user.connect()
        for tool, arguments in calls(scenario, listing, context):
            try:
                await user.call(tool, arguments)
            except McpError as error:
                print(f"{tool}: {error}", file=sys.stderr)
                worked = False
    except McpError as error:
        print(error, file=sys.stderr)
        worked = False
    finally:
        await host.close()
    return worked


def main() -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    with tempfile.TemporaryDirectory() as home:
        worked = asyncio.run(run(os.environ["MCP_CONFORMANCE_SCENARIO"], sys.argv[1], context, Path(home)))
    sys.exit(0 if worked else 1)


if __name__ == "__main__":
    main()
