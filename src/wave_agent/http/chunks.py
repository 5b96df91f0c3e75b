"""The body of a chunked response, out of bytes that come in any portions.

h11 makes several objects for each chunk, and servers put each token into one: over a long answer that is more work than
all the rest.
"""

import re

_SIZE = re.compile(rb"([0-9a-fA-F]{1,16})[ \t]*(?:;.*)?", re.DOTALL)
_LONGEST_LINE = 16 << 10


class ChunkError(ValueError):
    """These bytes are no chunked body."""


class ChunkReader:
    """Takes bytes, gives those of the body."""

    def __init__(self) -> None:
        self.ended = False
        """The last chunk is there, and what follows it."""
        self.rest = b""
        """What is not understood yet; after the end, what does not belong to the body."""
        self._left = 0
        """Bytes that are missing of this chunk, with the line end after it."""
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
            line_end = b"\n" if self._last else b"\r\n"  # behind the last chunk, some servers are less exact
            end = buffer.find(line_end, at)
            if end < 0:
                break
            self._line(buffer[at:end])
            at = end + len(line_end)
        self.rest = buffer[at:]
        if not self.ended and not self._left and len(self.rest) > _LONGEST_LINE:
            raise ChunkError("the size of a chunk has no end")
        return b"".join(parts)

    def _line(self, line: bytes) -> None:
        if self._last:  # what follows the last chunk tells nothing that is wanted
            self.ended = line in (b"", b"\r")
            return
        size = _SIZE.fullmatch(line)
        if size is None:
            raise ChunkError("a chunk without a size")
        length = int(size[1], 16)
        self._last = length == 0
        self._left = length + 2 if length else 0
