"""A server behind OAuth, with its authorization server, by hand: everything that a client may get wrong is checked."""

import base64
import hashlib
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

TOOL = {"name": "whoami", "inputSchema": {"type": "object"}}


class OAuthServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.requests: list[str] = []
        self.clients: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: dict[str, float] = {}
        """Access tokens, and until when they are good."""
        self.scopes: dict[str, str] = {}
        """What each access token allows."""
        self.scope_of_calls = ""
        """What calls of tools need, and nothing else does."""
        self.is_newer = False
        """Refuses the older protocol's first request, even without a login."""
        self.encoding_of_calls = ""
        self.refresh_tokens: set[str] = set()
        self.lifetime = 3600.0
        self.sessions: set[str] = set()

    def grant(self, scope: str = "") -> dict[str, Any]:
        access, refresh = f"access-{len(self.tokens)}", f"refresh-{len(self.tokens)}"
        self.tokens[access] = time.time() + self.lifetime
        self.scopes[access] = scope
        self.refresh_tokens = {refresh}
        return {"access_token": access, "token_type": "Bearer", "expires_in": self.lifetime, "refresh_token": refresh}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: OAuthServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.server.requests.append(f"GET {url.path}")
        base = self.server.url
        if url.path == "/.well-known/oauth-protected-resource/mcp":
            self.answer(200, {"resource": f"{base}/mcp", "authorization_servers": [base]})
        elif url.path == "/.well-known/oauth-authorization-server":
            names = {name: f"{base}/{path}" for name, path in self.endpoints()}
            self.answer(200, {"issuer": base, "code_challenge_methods_supported": ["S256"], **names})
        elif url.path == "/authorize":
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            assert query["redirect_uri"] in self.server.clients[query["client_id"]]["redirect_uris"]
            assert (query["code_challenge_method"], query["resource"]) == ("S256", f"{base}/mcp")
            code = f"code-{len(self.server.codes)}"
            self.server.codes[code] = query
            location = f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"
            self.answer(302, None, Location=location)
        else:
            self.answer(405 if url.path == "/mcp" else 404, None)

    def endpoints(self) -> list[tuple[str, str]]:
        return [
            ("authorization_endpoint", "authorize"),
            ("token_endpoint", "token"),
            ("registration_endpoint", "register"),
        ]

    def do_DELETE(self) -> None:
        self.answer(200, None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append(f"POST {self.path}")
        match urlsplit(self.path).path:
            case "/register":
                client = {**json.loads(body), "client_id": f"client-{len(self.server.clients)}"}
                self.server.clients[client["client_id"]] = client
                self.answer(201, client)
            case "/token":
                self.token({name: values[0] for name, values in parse_qs(body.decode()).items()})
            case "/mcp":
                self.rpc(json.loads(body))

    def token(self, form: dict[str, str]) -> None:
        scope = ""
        if form["grant_type"] == "refresh_token":
            good = form["refresh_token"] in self.server.refresh_tokens
        else:
            asked = self.server.codes.pop(form["code"])
            scope = asked.get("scope", "")
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            good = challenge == asked["code_challenge"] and form["redirect_uri"] == asked["redirect_uri"]
        self.answer(200, self.server.grant(scope)) if good else self.answer(400, {"error": "invalid_grant"})

    def rpc(self, message: dict[str, Any]) -> None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.server.is_newer and message.get("method") == "initialize":
            self.answer(400, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32020, "message": "Too old"}})
            return
        if self.server.tokens.get(token, 0) < time.time():
            where = f"{self.server.url}/.well-known/oauth-protected-resource/mcp"
            self.answer(401, None, **{"WWW-Authenticate": f'Bearer resource_metadata="{where}"'})
            return
        needed = self.server.scope_of_calls if message.get("method") == "tools/call" else ""
        if needed and needed not in self.server.scopes[token].split():
            self.answer(403, None, **{"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{needed}"'})
            return
        session = self.headers.get("Mcp-Session-Id", "")
        method, headers, result = message.get("method"), {}, None
        if method == "initialize":
            session = f"session-{len(self.server.requests)}"
            self.server.sessions.add(session)
            headers = {"Mcp-Session-Id": session}
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            }
        elif method == "server/discover":
            self.answer(
                400, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": "No session"}}
            )
            return
        elif session not in self.server.sessions:
            self.answer(404, None)
            return
        elif method == "tools/list":
            result = {"tools": [TOOL]}
        elif method == "tools/call":
            result = {"content": [{"type": "text", "text": f"{token} in {session}"}]}
            headers = {"Content-Encoding": self.server.encoding_of_calls} if self.server.encoding_of_calls else {}
        reply = None if "id" not in message else {"jsonrpc": "2.0", "id": message["id"], "result": result}
        self.answer(202 if reply is None else 200, reply, **headers)

    def answer(self, status: int, body: Any, **headers: str) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
