"""An editor for tests: the SDK's client side, connected to a real `wave acp` by pipes.

Every message that Wave sends is checked: the SDK has to understand it, and must not drop or mend any part of it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, connect_to_agent
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from acp.helpers import text_block
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    CloseSessionResponse,
    CreateFormSessionElicitationRequest,
    DeniedOutcome,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    RequestPermissionRequest,
    RequestPermissionResponse,
    ResumeSessionResponse,
    SessionNotification,
    SetSessionModeResponse,
    ToolCallUpdate,
)
from pydantic import BaseModel

from tests.cli.project import WAVE, Project
from wave_agent.models.base import ToolCall
from wave_agent.testing import RecordingModelServer, Reply
from wave_agent.testing.model_server import RecordedRequest

ANSWERS: Mapping[str, type[BaseModel]] = {
    "initialize": InitializeResponse,
    "session/new": NewSessionResponse,
    "session/load": LoadSessionResponse,
    "session/resume": ResumeSessionResponse,
    "session/list": ListSessionsResponse,
    "session/close": CloseSessionResponse,
    "session/set_mode": SetSessionModeResponse,
    "session/prompt": PromptResponse,
}
REQUESTS: Mapping[str, type[BaseModel]] = {
    "session/update": SessionNotification,
    "session/request_permission": RequestPermissionRequest,
    "elicitation/create": CreateFormSessionElicitationRequest,
}
Answer = Callable[["Question"], Awaitable[str | None]]


class Question:
    def __init__(self, tool_call: ToolCallUpdate, options: list[PermissionOption]) -> None:
        self.tool_call = tool_call
        self.options = {option.kind: option for option in options}
        self.kinds = [option.kind for option in options]
        self.text = "\n".join(
            one.content.text for one in tool_call.content or [] if one.type == "content" and one.content.type == "text"
        )


def answering(kind: str) -> Answer:
    async def answer(question: Question) -> str | None:
        return question.options[kind].option_id

    return answer


async def turning_away(_: Question) -> None:
    return None


class Editor:
    """What the editor has been shown and asked."""

    def __init__(self, answer: Answer) -> None:
        self.updates: list[Any] = []
        self.questions: list[Question] = []
        self.forms: list[tuple[str, Any]] = []
        self.answer = answer
        self.wrong: list[str] = []
        """What the SDK does not understand, or not wholly."""
        self._asked: dict[Any, str] = {}
        self._changed = asyncio.Event()
        self.agent: ClientSideConnection
        self.process: asyncio.subprocess.Process

    # ------------------------------------------------------------------------------------------- what the SDK calls

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self._changed.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        question = Question(tool_call, options)
        self.questions.append(question)
        self._changed.set()
        chosen = await self.answer(question)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.forms.append((message, mode.requested_schema))
        return AcceptElicitationResponse(action="accept", content={"name": "Ada"})

    def on_connect(self, _: object) -> None:
        pass

    def check(self, event: StreamEvent) -> None:
        message = event.message
        if event.direction is StreamDirection.OUTGOING:
            if "method" in message and "id" in message:
                self._asked[message["id"]] = message["method"]
        elif "method" in message:
            self._compare(REQUESTS[message["method"]], message["params"])
        elif "result" in message:
            self._compare(ANSWERS[self._asked[message["id"]]], message["result"])

    def _compare(self, model: type[BaseModel], sent: Any) -> None:
        understood = model.model_validate(sent).model_dump(mode="json", by_alias=True, exclude_unset=True)
        if understood != sent:
            self.wrong.append(f"{model.__name__}: {sent} was understood as {understood}")

    # ----------------------------------------------------------------------------------------------- what tests look at

    async def until(self, condition: Callable[[], bool], seconds: float = 30) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def of_kind(self, kind: str) -> list[Any]:
        return [one for one in self.updates if one.session_update == kind]

    @property
    def said(self) -> str:
        return "".join(one.content.text for one in self.of_kind("agent_message_chunk"))

    def call(self, title: str) -> dict[str, Any]:
        """A tool call with all its updates applied, as an editor has it."""
        first = next(one for one in self.of_kind("tool_call") if title in one.title)
        seen = first.model_dump(exclude_none=True)
        for update in self.of_kind("tool_call_update"):
            if update.tool_call_id == first.tool_call_id:
                seen.update(update.model_dump(exclude_none=True))
        return seen

    async def prompt(self, session_id: str, *blocks: Any) -> PromptResponse:
        given = [text_block(one) if isinstance(one, str) else one for one in blocks]
        return await self.agent.prompt(session_id=session_id, prompt=given)

    async def prompt_until_called(self, session_id: str) -> None:
        """For `when_offered`."""
        async with asyncio.timeout(60):
            while not self.of_kind("tool_call"):
                await self.prompt(session_id, "Call it.")
                await asyncio.sleep(0.1)

    async def new(self, project: Project, **more: Any) -> str:
        opened = await self.agent.new_session(cwd=str(project.directory), mcp_servers=[], **more)
        return opened.session_id

    async def closed(self) -> tuple[int, str]:
        """Closes stdin, and returns the exit status and what is on stderr."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        async with asyncio.timeout(30):
            said = await self.process.stderr.read()
            return await self.process.wait(), said.decode()


def when_offered(made: ToolCall) -> Callable[[RecordedRequest], Reply | str]:
    """A model that makes this call once its tool is offered: reaching a server may take longer than a request waits."""

    def answer(request: RecordedRequest) -> Reply | str:
        is_offered = made.name in {tool["function"]["name"] for tool in request.body["tools"]}
        is_asked = request.body["messages"][-1]["role"] == "user"
        return Reply(tool_calls=[made]) if is_offered and is_asked else "Not now."

    return answer


def text_in(content: list[dict[str, Any]]) -> str:
    return "\n".join(one["content"]["text"] for one in content if one["type"] == "content")


@asynccontextmanager
async def started(
    project: Project,
    server: RecordingModelServer | None,
    *arguments: str,
    answer: Answer = turning_away,
    capabilities: ClientCapabilities | None = None,
    env: Mapping[str, str] | None = None,
    initialize: bool = True,
) -> AsyncIterator[Editor]:
    process = await asyncio.create_subprocess_exec(
        WAVE,
        "acp",
        *arguments,
        cwd=Path("/"),
        env=project.environment(server, **(env or {})),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=64 << 20,
    )
    editor = Editor(answer)
    editor.process = process
    assert process.stdin is not None
    assert process.stdout is not None
    client: Any = editor  # it lacks what Wave never asks for: files and terminals of the editor
    editor.agent = connect_to_agent(
        client, process.stdin, process.stdout, use_unstable_protocol=True, observers=[editor.check]
    )
    try:
        if initialize:
            await editor.agent.initialize(
                protocol_version=PROTOCOL_VERSION, client_capabilities=capabilities or ClientCapabilities()
            )
        yield editor
    finally:
        if process.returncode is None:
            process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), 20)
            except TimeoutError:
                process.kill()
                await process.wait()
                raise
        await editor.agent.close()
    assert editor.wrong == []
