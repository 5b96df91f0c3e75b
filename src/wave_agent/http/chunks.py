"""Parses the body of a chunked response from bytes that arrive in arbitrary pieces.

h11 creates several objects per chunk, and servers send one chunk per token: over a long answer, that costs more than
everything else.
"""

import re

_SIZE = re.compile(rb"([0-9a-fA-F]{1,16})[ \t]*(?:;.*)?", re.DOTALL)
_LONGEST_LINE = 16 << 10


class ChunkError(ValueError):
    """These bytes are not a valid chunked body."""


class ChunkReader:
    """Extracts the body from the bytes of a chunked response."""

    def __init__(self) -> None:
        self.ended = False
        """The last chunk and its trailers have arrived."""
        self.rest = b""
        """Bytes not parsed yet; after the end, bytes that are not part of the body."""
        self._left = 0
        """Bytes of the current chunk still to come, including its line end."""
        self._last = False

    def feed(self, data: bytes) -> bytes:
        """The part of the body in these bytes. Raises `ChunkError`."""
        buffer, at, parts = self.rest + data, 0, list[bytes]()
        while not self.ended:
            if self._left > 2:
                part = buffer[at : at + self._left - 2]
                parts.append(part)
                at += len(part)
                self._left -= len(part)
            if self._left:
                if self._left > 2 or len(buffer) - at < 2:
                    break
                if buffer[at : at + 2] != b"\r\n":
                    raise ChunkError("a chunk is longer than it says")
                at += 2
                self._left = 0
            line_end = b"\n" if self._last else b"\r\n"  # after the last chunk, some servers are sloppy
            end = buffer.find(line_end, at)
            if end < 0:
                break
            self._line(buffer[at:end])
            at = end + len(line_end)
        self.rest = buffer[at:]
        if not self.ended and not self._left and len(self.rest) > _LONGEST_LINE:
            raise ChunkError("the size line of a chunk is too long")
        return b"".join(parts)

    def _line(self, line: bytes) -> None:
        if self._last:  # trailers are ignored
            self.ended = line in (b"", b"\r")
            return
        size = _SIZE.fullmatch(line)
        if size is None:
            raise ChunkError("a chunk without a size")
        length = int(size[1], 16)
        self._last = length == 0
        self._left = length + 2 if length else 0
