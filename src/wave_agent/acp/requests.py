"""What an editor can ask for, by method: each request is a model of the SDK, and so is each answer."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from acp.exceptions import RequestError
from acp.meta import AGENT_METHODS, PROTOCOL_VERSION
from acp.schema import (
    AgentCapabilities,
    CancelNotification,
    CloseSessionRequest,
    CloseSessionResponse,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    LoadSessionRequest,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionRequest,
    NewSessionResponse,
    PromptCapabilities,
    PromptRequest,
    PromptResponse,
    ResumeSessionRequest,
    ResumeSessionResponse,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionModeRequest,
    SetSessionModeResponse,
)
from acp.utils import serialize_params
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from wave_agent import __version__
from wave_agent.acp.client import Editor
from wave_agent.acp.mcp_servers import EditorServerError, servers_from
from wave_agent.acp.modes import mode_named
from wave_agent.acp.prompt import PromptError, read_prompt
from wave_agent.acp.session import EditorSession
from wave_agent.agent.options import Options, locate_for
from wave_agent.errors import MissingPathError, WaveError
from wave_agent.replay.selection import all_sessions
from wave_agent.sessions.index import SessionSummary, SessionUse, session_uses, summary_of
from wave_agent.sessions.transcript import is_session_id, transcripts
from wave_agent.system.private_files import wave_home
from wave_agent.text import one_line

PAGE = 50
"""Sessions in one answer to `session/list`."""
INVALID_PARAMS, FAILED = -32602, -32603
Request = TypeVar("Request", bound=BaseModel)
OpenRequest = NewSessionRequest | LoadSessionRequest | ResumeSessionRequest


class WrongRequestError(WaveError):
    """An editor asked for something that there is not, or in a way that cannot be understood."""


_MISTAKES = (WrongRequestError, PromptError, EditorServerError, MissingPathError)
"""Errors of who asks."""


class _Route(NamedTuple):
    model: type[BaseModel]
    answer: Callable[[Any], Awaitable[BaseModel | None]]


class EditorRequests:
    """The sessions of one connection. `note` is for the log on stderr."""

    def __init__(
        self, editor: Editor, options: Options, environment: Mapping[str, str], note: Callable[[str], None]
    ) -> None:
        self.editor = editor
        self._options = options
        self._environment = environment
        self._note = note
        self._sessions: dict[str, EditorSession] = {}
        self._is_closed = False
        self._requests = {
            AGENT_METHODS["initialize"]: _Route(InitializeRequest, self._initialize),
            AGENT_METHODS["session_new"]: _Route(NewSessionRequest, self._new),
            AGENT_METHODS["session_load"]: _Route(LoadSessionRequest, self._load),
            AGENT_METHODS["session_resume"]: _Route(ResumeSessionRequest, self._resume),
            AGENT_METHODS["session_list"]: _Route(ListSessionsRequest, self._list),
            AGENT_METHODS["session_close"]: _Route(CloseSessionRequest, self._close),
            AGENT_METHODS["session_set_mode"]: _Route(SetSessionModeRequest, self._set_mode),
            AGENT_METHODS["session_prompt"]: _Route(PromptRequest, self._prompt),
        }
        self._notifications = {AGENT_METHODS["session_cancel"]: _Route(CancelNotification, self._cancel)}

    async def handle(self, method: str, params: Any, is_notification: bool) -> Any:
        """For the SDK's connection. Raises `RequestError`, which becomes the answer; a notification has none."""
        try:
            return await self._handled(method, params, is_notification)
        except RequestError as error:
            if not is_notification:
                raise
            self._note(f"{method}: {error}")
            return None

    async def _handled(self, method: str, params: Any, is_notification: bool) -> Any:
        if is_notification and method.startswith(("$/", "_")):  # optional by convention, and none is known here
            return None
        route = (self._notifications if is_notification else self._requests).get(method)
        if route is None:
            raise RequestError.method_not_found(method)
        try:
            answer = await route.answer(_read(route.model, params))
        except WaveError as error:
            raise RequestError(_code_of(error), str(error)) from None
        except RequestError:
            raise
        except Exception as error:  # a bug of ours must end neither the connection nor other sessions
            self._note(f"{method}: internal error: {type(error).__name__}: {error}")
            raise RequestError(FAILED, f"Internal error: {type(error).__name__}: {error}") from error
        return {} if answer is None else serialize_params(answer)

    async def close(self) -> None:
        """Ends all sessions. Requests that come later are refused."""
        self._is_closed = True
        for session in self._sessions.values():
            session.cancel()
        while self._sessions:
            _, session = self._sessions.popitem()
            await session.close()

    # --------------------------------------------------------------------------------------------------------- requests

    async def _initialize(self, request: InitializeRequest) -> InitializeResponse:
        if request.client_capabilities is not None:
            self.editor.capabilities = request.client_capabilities
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True, sse=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                    additional_directories=SessionAdditionalDirectoriesCapabilities(),
                ),
            ),
            auth_methods=[],
            agent_info=Implementation(name="wave", title="Wave", version=__version__),
        )

    async def _new(self, request: NewSessionRequest) -> NewSessionResponse:
        session = self._open(request)
        session.greet()
        return NewSessionResponse(session_id=session.id, modes=session.modes)

    async def _load(self, request: LoadSessionRequest) -> LoadSessionResponse:
        session = self._open(request, request.session_id)
        await session.replay()
        session.greet()
        return LoadSessionResponse(modes=session.modes)

    async def _resume(self, request: ResumeSessionRequest) -> ResumeSessionResponse:
        session = self._open(request, request.session_id)
        session.greet()
        return ResumeSessionResponse(modes=session.modes)

    def _open(self, request: OpenRequest, resume: str | None = None) -> EditorSession:
        if self._is_closed:
            raise WrongRequestError("The connection is being closed.")
        if resume is not None and not is_session_id(resume):
            raise WrongRequestError(f'"{one_line(resume, 60)}" is not the id of a session.')
        if resume in self._sessions:
            raise WrongRequestError(f"The session {resume} is open already; close it first.")
        directories = request.additional_directories or []
        for path in (request.cwd, *directories):
            _require_directory(path)
        more = {"permissions": {"additionalDirectories": directories}}
        options = replace(
            self._options,
            workdir=request.cwd,
            resume=resume,
            overlays=[*self._options.overlays, more] if directories else self._options.overlays,
            mcp_servers=servers_from(request.mcp_servers) or None,
        )
        session = EditorSession(self.editor, options)
        self._sessions[session.id] = session
        return session

    async def _list(self, request: ListSessionsRequest) -> ListSessionsResponse:
        if request.cwd is not None:
            _require_directory(request.cwd)
        found = await asyncio.to_thread(self._recorded, request.cwd, _place_of(request.cursor))
        last = found[:PAGE][-1:]
        return ListSessionsResponse(
            sessions=[
                SessionInfo(
                    session_id=one.session_id,
                    cwd=one.cwd,
                    title=one_line(one.first_prompt, 100) or None,
                    updated_at=one.to_dict()["modified"],
                )
                for _, one in found[:PAGE]
            ],
            next_cursor=f"{last[0][0].mtime_ns}:{last[0][0].session_id}" if len(found) > PAGE else None,
        )

    def _recorded(self, cwd: str | None, place: tuple[int, str] | None) -> list[tuple[SessionUse, SessionSummary]]:
        """A page of the sessions that were started in this directory, or anywhere, and one more if there are more. What
        earlier pages had is not read again."""
        uses, start = self._all(cwd)
        left = (use for use in uses if place is None or (use.mtime_ns, use.session_id) < place)
        found = ((use, one) for use in left if (one := summary_of(use.path)) is not None)
        own = (pair for pair in found if pair[1].cwd and not pair[1].host and start in (None, pair[1].cwd))
        return list(islice(own, PAGE + 1))

    def _all(self, cwd: str | None) -> tuple[Iterator[SessionUse], str | None]:
        """The sessions that may have been started in this directory, or anywhere, and that directory."""
        if cwd is None:
            return all_sessions(wave_home(self._environment)), None
        place, home = locate_for(replace(self._options, workdir=cwd), self._environment)
        return session_uses(transcripts(home, place.directory)), place.start

    async def _close(self, request: CloseSessionRequest) -> CloseSessionResponse:
        session = self._session(request.session_id)
        del self._sessions[request.session_id]
        await session.close()
        return CloseSessionResponse()

    async def _set_mode(self, request: SetSessionModeRequest) -> SetSessionModeResponse:
        mode = mode_named(request.mode_id)
        if mode is None:
            known = ", ".join(one.id for one in self._session(request.session_id).modes.available_modes)
            raise WrongRequestError(f'There is no mode "{one_line(request.mode_id, 60)}": {known}.')
        self._session(request.session_id).set_mode(mode)
        return SetSessionModeResponse()

    async def _prompt(self, request: PromptRequest) -> PromptResponse:
        session = self._session(request.session_id)
        return await session.prompt(read_prompt(request.prompt, session.agent.project))

    async def _cancel(self, request: CancelNotification) -> None:
        self._session(request.session_id).cancel()

    def _session(self, session_id: str) -> EditorSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise WrongRequestError(f'There is no open session "{one_line(session_id, 60)}".')
        return session


def _place_of(cursor: str | None) -> tuple[int, str] | None:
    """Time and id of the last session that the client has: what comes after it does not depend on new ones."""
    if cursor is None:
        return None
    time, _, session_id = cursor.partition(":")
    if not (time.isascii() and time.isdecimal() and len(time) < 21 and is_session_id(session_id)):
        raise WrongRequestError(f'"{one_line(cursor, 60)}" is not a cursor of an earlier answer.')
    return int(time), session_id


def _require_directory(path: str) -> None:
    if not os.path.isabs(path) or "\0" in path:
        raise WrongRequestError(f'"{one_line(path, 200)}" is not an absolute path.')
    if not os.path.isdir(path):
        raise WrongRequestError(f"There is no directory {one_line(path, 200)}.")


def _read(model: type[Request], params: Any) -> Request:
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise _invalid(error) from None


def _invalid(error: ValidationError) -> WrongRequestError:
    """In words: what is wrong, and where."""
    problems = [
        f"{'.'.join(map(str, one['loc'])) or 'params'}: {one['msg']}"
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return WrongRequestError(f"Invalid params: {one_line('; '.join(problems), 500)}")


def _code_of(error: WaveError) -> int:
    return INVALID_PARAMS if isinstance(error, _MISTAKES) else FAILED
