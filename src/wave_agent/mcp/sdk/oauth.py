"""OAuth: a stored login is used and refreshed; a new one needs the user, in `wave mcp login`."""

import asyncio
import html
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError

from wave_agent.mcp.sdk.tokens import TokenFile
from wave_agent.mcp.values import LoginNeededError, McpError, OAuth, Server

_PAGE = "<!doctype html><meta charset=utf-8><title>Wave</title><p>{}</p><p>You can close this page.</p>"
_HEAD_LIMIT = 1 << 14


def login_needed(server: Server) -> LoginNeededError:
    return LoginNeededError(f"The MCP server {server.name!r} needs a login: wave mcp login {server.name}")


class _Storage:
    """Implements the SDK's `TokenStorage`. Also keeps what it takes to refresh: the SDK itself would forget it."""

    def __init__(self, file: TokenFile, server: Server, *, is_new: bool) -> None:
        """`is_new` for a login: a client registered earlier has another address for the answer."""
        self._file = file
        self._server = server
        self._is_new = is_new
        self.provider: OAuthProvider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return None if self._is_new else _parsed(OAuthToken, self._file.read(self._server).get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        assert self.provider is not None
        context = self.provider.context
        self._file.update(
            self._server,
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            expires=context.token_expiry_time,
            metadata=_dumped(context.oauth_metadata),
            resource=_dumped(context.protected_resource_metadata),
            issuer=context.auth_server_url,
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        oauth = self._server.entry.oauth
        if oauth is not None and oauth.client_id:
            return OAuthClientInformationFull(
                client_id=oauth.client_id,
                client_secret=oauth.client_secret or None,
                token_endpoint_auth_method="client_secret_basic" if oauth.client_secret else "none",
            )
        if self._is_new:
            return None
        return _parsed(OAuthClientInformationFull, self._file.read(self._server).get("client"))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._file.update(self._server, client=client_info.model_dump(mode="json", exclude_none=True))

    def stored(self) -> dict[str, Any]:
        return {} if self._is_new else self._file.read(self._server)


class OAuthProvider(OAuthClientProvider):
    """The SDK's, with what was stored, and with the settings of the entry."""

    def __init__(
        self,
        server: Server,
        storage: _Storage,
        *,
        redirect: str,
        show: Callable[[str], Awaitable[None]],
        answer: Callable[[], Awaitable[AuthorizationCodeResult]],
        metadata: OAuthMetadata | None = None,
        more_scopes: str = "",
    ) -> None:
        """`more_scopes` are asked for together with those that the server names."""
        oauth = server.entry.oauth or OAuth()
        super().__init__(
            server.entry.url,
            OAuthClientMetadata(client_name="Wave", redirect_uris=[AnyUrl(redirect)], scope=oauth.scopes or None),
            storage,
            redirect_handler=show,
            callback_handler=answer,
        )
        self._storage = storage
        self._scopes = oauth.scopes
        self._metadata = metadata
        self._more_scopes = more_scopes
        self._has_own_secret = bool(oauth.client_id and oauth.client_secret)
        storage.provider = self

    async def _initialize(self) -> None:
        await super()._initialize()
        stored = self._storage.stored()
        expires = stored.get("expires")
        self.context.token_expiry_time = expires if isinstance(expires, int | float) else None
        self.context.oauth_metadata = _parsed(OAuthMetadata, stored.get("metadata"))
        self.context.protected_resource_metadata = _parsed(ProtectedResourceMetadata, stored.get("resource"))
        issuer = stored.get("issuer")
        self.context.auth_server_url = issuer if isinstance(issuer, str) else None

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        # The server's challenge has replaced the scopes, and discovery the metadata: what is configured wins.
        if self._scopes:
            self.context.client_metadata.scope = self._scopes
        elif self._more_scopes:
            self.context.client_metadata.scope = union_scopes(self.context.client_metadata.scope, self._more_scopes)
        if self._metadata is not None:
            self.context.oauth_metadata = self._metadata
        self._choose_authentication()
        return await super()._perform_authorization_code_grant()

    async def _refresh_token(self) -> httpx2.Request:
        self._choose_authentication()
        return await super()._refresh_token()

    def _choose_authentication(self) -> None:
        """A registration says how a client proves who it is; for a configured secret, the server's metadata does."""
        metadata, client = self.context.oauth_metadata, self.context.client_info
        methods = (metadata.token_endpoint_auth_methods_supported if metadata is not None else None) or ()
        is_basic = "client_secret_basic" in methods or "client_secret_post" not in methods
        if self._has_own_secret and client is not None and not is_basic:
            client.token_endpoint_auth_method = "client_secret_post"


def stored_login(file: TokenFile, server: Server, *, refused: Callable[[], None]) -> OAuthProvider | None:
    """Uses the stored tokens, if there are any. If they are no longer accepted, or do not allow enough, calls
    `refused`, and requests fail: the SDK hides how."""
    if not file.read(server).get("tokens"):
        return None

    async def refuse(url: str) -> None:
        # The next login has to ask for them: by then, they are known nowhere else.
        file.update(server, wanted_scopes=_query(url, "scope"))
        refused()
        raise login_needed(server)

    async def unasked() -> AuthorizationCodeResult:
        raise login_needed(server)

    storage = _Storage(file, server, is_new=False)
    return OAuthProvider(server, storage, redirect="http://127.0.0.1/callback", show=refuse, answer=unasked)


async def new_login(
    file: TokenFile, server: Server, callback: "LoopbackCallback", show_url: Callable[[str], None]
) -> OAuthProvider:
    """Asks the user whenever the server wants a login. Raises `McpError`."""

    async def show(url: str) -> None:
        callback.expect(_query(url, "state"))
        show_url(url)

    wanted = file.read(server).get("wanted_scopes")
    if wanted:
        file.update(server, wanted_scopes="")  # If it is refused for them, the next one goes without.
    return OAuthProvider(
        server,
        _Storage(file, server, is_new=True),
        redirect=callback.url,
        show=show,
        answer=callback.answer,
        metadata=await _configured_metadata(server),
        more_scopes=wanted if isinstance(wanted, str) else "",
    )


async def _configured_metadata(server: Server) -> OAuthMetadata | None:
    if server.entry.oauth is None or not server.entry.oauth.metadata_url:
        return None
    url = server.entry.oauth.metadata_url
    try:
        async with httpx2.AsyncClient(timeout=30) as client:
            response = await client.get(url)
            response.raise_for_status()
            return OAuthMetadata.model_validate_json(response.content)
    except (httpx2.HTTPError, ValidationError) as error:
        raise McpError(f"The OAuth metadata of {server.name!r} at {url} cannot be used: {error}") from None


class LoopbackCallback:
    """Waits on this machine for the browser to come back. Answers that belong to another login are ignored."""

    def __init__(self, port: int | None) -> None:
        """`port` is the one that a client was registered with; None for any."""
        self._port = port
        self._state = ""
        self._answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port or 0)
        except OSError as error:
            raise McpError(f"Port {self._port} for the answer of the login cannot be used: {error}") from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self._answer.cancel()

    @property
    def url(self) -> str:
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        # People register `localhost`; by itself, an address cannot be answered by anyone else.
        return f"http://{'localhost' if self._port else '127.0.0.1'}:{port}/callback"

    def expect(self, state: str) -> None:
        self._state = state
        if self._answer.done():  # More rights are asked for: another round.
            self._answer = asyncio.get_running_loop().create_future()

    async def answer(self) -> AuthorizationCodeResult:
        return await self._answer

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            status, text = self._take(head[:_HEAD_LIMIT].split(b"\r\n")[0].decode("latin-1"))
            page = _PAGE.format(html.escape(text)).encode()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(page)}\r\n"
                "Connection: close\r\n\r\n".encode()
                + page
            )
            await writer.drain()
        writer.close()

    def _take(self, request: str) -> tuple[str, str]:
        method, target, *_ = [*request.split(" "), "", ""]
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if method != "GET" or url.path != "/callback":
            return "404 Not Found", "There is nothing here."
        if self._answer.done() or not self._state or query.get("state") != self._state:
            return "400 Bad Request", "This response does not belong to the current login."
        if "error" in query:
            why = query.get("error_description") or query["error"]
            self._answer.set_exception(OAuthFlowError(f"The login was refused: {why[:500]}"))
            return "200 OK", f"The login was refused: {why[:500]}"
        self._answer.set_result(
            AuthorizationCodeResult(code=query.get("code", ""), state=query.get("state"), iss=query.get("iss"))
        )
        return "200 OK", "You are logged in."


def _query(url: str, name: str) -> str:
    return parse_qs(urlsplit(url).query).get(name, [""])[0]


def _parsed(model: Any, data: Any) -> Any:
    try:
        return None if data is None else model.model_validate(data)
    except ValidationError:
        return None


def _dumped(model: Any) -> Any:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)
