"""A scripted model behind the Messages API, streamed, on loopback: what the original agent talks to."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.running_servers import running

MODEL = "claude-sonnet-4-5"
VERDICT = "StructuredOutput"
"""The tool by which a hook of type `agent` answers."""


class MessagesServer(ThreadingHTTPServer):
    """Answers requests that offer tools with the replies, one after another; the last one is given again and again.

    A reply is a list of blocks as the API has them: `{"type": "text", …}` and `{"type": "tool_use", …}`. Requests
    without tools, of a hook of type `prompt` or the agent's own (a title, a quota check), get the text `aside` and are
    kept apart; so are those of a hook of type `agent`, which get it as that hook's answer.
    """

    daemon_threads = True

    def __init__(self, replies: Sequence[Sequence[dict[str, Any]]], aside: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []
        self.asides: list[dict[str, Any]] = []
        self._replies = replies
        self._aside = aside
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, body: dict[str, Any]) -> Sequence[dict[str, Any]]:
        tools = {tool["name"] for tool in body.get("tools") or []}
        if not tools or VERDICT in tools:
            self.asides.append(body)
            return [_verdict(self._aside)] if tools else [{"type": "text", "text": self._aside}]
        with self._lock:
            self.requests.append(body)
            return self._replies[min(len(self.requests), len(self._replies)) - 1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no news."""


@contextmanager
def serving_messages(replies: Sequence[Sequence[dict[str, Any]]], aside: str) -> Iterator[MessagesServer]:
    server = MessagesServer(replies, aside)
    with running(server):
        yield server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self._json(404, {"type": "error", "error": {"type": "not_found_error", "message": "nothing here"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._json(200, {"input_tokens": 100})
            return
        if not path.endswith("/v1/messages"):
            self._json(404, {"type": "error", "error": {"type": "not_found_error", "message": "nothing here"}})
            return
        assert isinstance(self.server, MessagesServer)
        blocks = self.server.answer(body)
        if body.get("stream"):
            self._stream(blocks)
        else:
            self._json(200, {**_message(), **_end(blocks), "content": list(blocks)})

    def _json(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, blocks: Sequence[dict[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in _events(blocks):
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are kept, not logged."""


def _verdict(answer: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_verdict", "name": VERDICT, "input": json.loads(answer)}


def _message() -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _end(blocks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    calls = any(block["type"] == "tool_use" for block in blocks)
    return {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}


def _events(blocks: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": _message()}
    for index, block in enumerate(blocks):
        if block["type"] == "tool_use":
            start: dict[str, Any] = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            start = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": _end(blocks), "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}
