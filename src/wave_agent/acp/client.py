"""The editor, as the agent's side sees it: updates to it in order, and questions that it puts to the user."""

from typing import Any

from acp.connection import Connection
from acp.exceptions import RequestError
from acp.helpers import SessionUpdate
from acp.meta import CLIENT_METHODS
from acp.schema import (
    AcceptElicitationResponse,
    CancelElicitationResponse,
    ClientCapabilities,
    CreateFormSessionElicitationRequest,
    DeclineElicitationResponse,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
    UsageUpdate,
)
from acp.utils import serialize_params
from pydantic import TypeAdapter, ValidationError

from wave_agent.errors import WaveError
from wave_agent.mcp.values import Elicitation, ElicitationAnswer
from wave_agent.text import one_line

_ELICITED = TypeAdapter[AcceptElicitationResponse | DeclineElicitationResponse | CancelElicitationResponse](
    AcceptElicitationResponse | DeclineElicitationResponse | CancelElicitationResponse
)


class EditorAnswerError(WaveError):
    """The editor did not answer a question, or not in a way that can be understood."""


class EditorGoneError(WaveError):
    """The editor has closed the connection."""


class Editor:
    """One connection. Every message that is sent is a model of the SDK, and so valid."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self.capabilities = ClientCapabilities()

    def connect(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def shows_terminals(self) -> bool:
        """It shows output in terminals that it did not start."""
        return (self.capabilities.field_meta or {}).get("terminal_output") is True

    async def update(self, session_id: str, update: SessionUpdate | UsageUpdate) -> None:
        """Raises `EditorGoneError`."""
        message = SessionNotification(session_id=session_id, update=update)
        try:
            await self._open.send_notification(CLIENT_METHODS["session_update"], serialize_params(message))
        except ConnectionError as error:
            raise EditorGoneError(str(error)) from None

    async def ask(self, question: RequestPermissionRequest) -> RequestPermissionResponse:
        """Raises `EditorGoneError`, and `EditorAnswerError`."""
        answer = await self._request(CLIENT_METHODS["session_request_permission"], serialize_params(question))
        try:
            return RequestPermissionResponse.model_validate(answer)
        except ValidationError:
            raise EditorAnswerError("the editor's answer could not be understood") from None

    async def elicit(self, session_id: str, request: Elicitation) -> ElicitationAnswer:
        """Shows a form of an MCP server, if the editor can show forms; declines anything else."""
        can = self.capabilities.elicitation
        if request.mode != "form" or can is None or can.form is None:
            return ElicitationAnswer()
        try:
            form = CreateFormSessionElicitationRequest.model_validate(
                {
                    "sessionId": session_id,
                    "mode": "form",
                    "message": f"{one_line(request.server, 48)}: {request.message}",
                    "requestedSchema": dict(request.schema),
                }
            )
            given = await self._request(CLIENT_METHODS["elicitation_create"], serialize_params(form))
            answer = _ELICITED.validate_python(given)
        except (ValidationError, EditorAnswerError):
            return ElicitationAnswer()
        content = answer.content if isinstance(answer, AcceptElicitationResponse) else None
        return ElicitationAnswer(action=answer.action, content=content or {})

    async def _request(self, method: str, params: dict[str, Any]) -> Any:
        try:
            return await self._open.send_request(method, params)
        except ConnectionError as error:
            raise EditorGoneError(str(error)) from None
        except RequestError as error:
            raise EditorAnswerError(f"the editor could not ask: {error}") from None

    @property
    def _open(self) -> Connection:
        if self._connection is None:
            raise EditorGoneError("There is no connection yet.")
        return self._connection
