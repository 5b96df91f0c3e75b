"""Bodies of HTTP responses, kept within bounds while they are read."""

from collections.abc import AsyncIterator

import httpx2

from wave_agent.mcp.sdk.oversized import LINE_LIMIT, BoundedLine
from wave_agent.mcp.sdk.unreadable import readable

_DATA = b"data:"
_JSON = "application/json"


def bound(response: httpx2.Response, *, is_answer: bool) -> None:
    """Bounds a body that was not read yet. `is_answer`: it comes from the server itself, and not from its login."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    kind: type[_Body] = _BoundedAnswer if is_answer else _BoundedBody
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        kind = _CompressedBody
    elif response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        kind = _BoundedEvents
    response.stream = kind(response.stream, is_json=_JSON in response.headers.get("content-type", "").lower())


class TooLargeError(httpx2.StreamError):
    pass


class _Body(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, *, is_json: bool) -> None:
        self._inner = inner
        self._is_json = is_json

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedBody(_Body):
    """Fails if it is too large."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > LINE_LIMIT:
                raise TooLargeError(f"The answer is too large: more than {LINE_LIMIT:,} bytes")
            yield chunk


class _BoundedAnswer(_Body):
    """One message. If it is too large, it becomes a shorter one, and one that cannot be read an error."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = BoundedLine()
        async for chunk in self._inner:
            body.add(chunk)
        taken = body.take()
        if taken is None:
            raise TooLargeError(f"The answer is too large: more than {LINE_LIMIT:,} bytes")
        yield readable(taken) if self._is_json else taken


class _BoundedEvents(_Body):
    """A stream of events that may go on forever. A message that is too large becomes a shorter one: servers send each
    as one line."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        line = BoundedLine()
        async for chunk in self._inner:
            *ends, rest = chunk.split(b"\n")
            whole = b""
            for end in ends:
                line.add(end)
                taken = line.take(_DATA)
                if taken is None:
                    raise TooLargeError(f"An event is too large: more than {LINE_LIMIT:,} bytes")
                whole += _readable_event(taken) + b"\n"
            line.add(rest)
            if whole:
                yield whole
        yield line.take(_DATA) or b""


class _CompressedBody(_Body):
    """Fails: unpacked, a few bytes can be any size. We ask for none."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        raise TooLargeError("The answer is compressed, although that was not requested")
        yield b""


def _readable_event(line: bytes) -> bytes:
    """A line of a stream of events. Of a message in several lines, none has both braces, and it stays as it is."""
    content = line.removeprefix(_DATA).strip()
    is_whole = line.startswith(_DATA) and content.startswith(b"{") and content.endswith(b"}")
    return _DATA + b" " + readable(content) if is_whole else line
