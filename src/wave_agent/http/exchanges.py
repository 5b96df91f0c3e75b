"""Requests and responses of one connection, as h11 understands them. Loaded while the server works on its answer."""

from collections.abc import Mapping

import h11
from msgspec import Struct

from wave_agent.http.retries import BrokenConnectionError, InvalidRequestError
from wave_agent.http.routes import Headers

_HEAD_TOO_LARGE = 431
"""h11's status hint for a status line and headers beyond its limit of 16 KiB."""


class Head(Struct, frozen=True):
    """The status line and the headers of a response."""

    status: int
    reason: str
    headers: Mapping[str, str]
    """Names in lower case."""
    is_interim: bool
    """Such as `100 Continue`: another one follows."""
    is_chunked: bool
    """Its body is still to come, in chunks."""
    keeps_alive: bool
    """The server takes another request afterwards."""


class Exchange:
    """What was sent and received on one connection."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT)

    def connect(self, authority: str, headers: Headers) -> bytes:
        """The bytes that ask a proxy for a tunnel."""
        return self._http.send(h11.Request(method="CONNECT", target=authority, headers=headers)) or b""

    def post(self, target: str, headers: Headers, body: bytes) -> tuple[bytes, bytes]:
        """The bytes of a request: its head and its body. Raises `InvalidRequestError`."""
        try:
            message = h11.Request(method="POST", target=target, headers=[*headers, ("Content-Length", str(len(body)))])
            head = self._http.send(message) or b""
            sent = self._http.send(h11.Data(data=body)) or b""
            return head, sent + (self._http.send(h11.EndOfMessage()) or b"")
        except (h11.LocalProtocolError, UnicodeEncodeError):
            raise InvalidRequestError("A header of the request contains invalid characters") from None

    def get(self, target: str, headers: Headers) -> bytes:
        """The bytes of a request without a body. Raises `InvalidRequestError`."""
        try:
            head = self._http.send(h11.Request(method="GET", target=target, headers=headers)) or b""
            return head + (self._http.send(h11.EndOfMessage()) or b"")
        except (h11.LocalProtocolError, UnicodeEncodeError):
            raise InvalidRequestError("The request contains invalid characters") from None

    def receive(self, data: bytes) -> None:
        """Takes bytes of the server; none if it has closed the connection."""
        self._http.receive_data(data)

    def next(self) -> Head | bytes | None:
        """What follows in the response: its head, a part of its body, or its end (no bytes).

        None if more data is needed. Raises `BrokenConnectionError`.
        """
        try:
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            too_large = error.error_status_hint == _HEAD_TOO_LARGE
            raise BrokenConnectionError("its response headers are too large" if too_large else str(error)) from None
        if event is h11.NEED_DATA:
            return None
        if isinstance(event, h11.Data):
            return bytes(event.data)
        if isinstance(event, h11.EndOfMessage):
            return b""
        if isinstance(event, h11.Response | h11.InformationalResponse):
            return self._head(event)
        raise BrokenConnectionError("the connection was closed")

    def _head(self, event: h11.Response | h11.InformationalResponse) -> Head:
        headers = {bytes(name).decode("latin-1"): bytes(value).decode("latin-1") for name, value in event.headers}
        return Head(
            status=event.status_code,
            reason=bytes(event.reason).decode("latin-1"),
            headers=headers,
            is_interim=isinstance(event, h11.InformationalResponse),
            is_chunked=headers.get("transfer-encoding", "").lower() == "chunked" and self.has_body,
            keeps_alive=event.http_version == b"1.1" and "close" not in headers.get("connection", "").lower(),
        )

    @property
    def has_body(self) -> bool:
        """A part of the response's body may still come."""
        return self._http.their_state is h11.SEND_BODY

    @property
    def is_sent(self) -> bool:
        """The request was sent whole."""
        return self._http.our_state is h11.DONE

    @property
    def unread(self) -> bytes:
        """What was received and is not used yet."""
        return self._http.trailing_data[0]

    def next_cycle(self) -> bool:
        """Gets ready for another request. False if the response was not read whole, or was followed by other data."""
        if not self.is_sent or self._http.their_state is not h11.DONE or self.unread:
            return False
        self._http.start_next_cycle()
        return True
