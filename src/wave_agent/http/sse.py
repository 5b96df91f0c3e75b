"""Parses server-sent events from bytes that arrive in arbitrary pieces."""

import re

_LINE_END = re.compile(rb"\r\n|\n|\r")
MAX_EVENT = 16 << 20
"""Maximum bytes of one event. No real event comes close; without a limit, a server could fill the memory."""


class EventReader:
    """Returns the data of each event as soon as its last byte arrives. Comments and other fields are ignored."""

    def __init__(self) -> None:
        self._begun = bytearray()
        """The start of an unfinished line."""
        self._data: list[bytes] = []
        self._size = 0
        self._first = True
        self.lines = 0
        """Lines received, including comments and blank lines: a sign that the server is working."""
        self._after_return = False
        """The last byte was a carriage return, so a following line feed belongs to it."""

    def feed(self, data: bytes) -> list[str]:
        """The events these bytes complete. Raises `ValueError` if one is larger than `MAX_EVENT`."""
        if self._after_return:
            data = data.removeprefix(b"\n")
        self._after_return = data.endswith(b"\r")
        self._begun += data
        if len(self._begun) + self._size > MAX_EVENT:
            raise ValueError(f"an event of more than {MAX_EVENT >> 20} MB")
        if b"\n" not in data and b"\r" not in data:
            return []
        begun = bytes(self._begun)
        # Splitting at a fixed string is much faster, and hardly any server sends carriage returns.
        *lines, rest = _LINE_END.split(begun) if b"\r" in begun else begun.split(b"\n")
        self._begun = bytearray(rest)
        self.lines += len(lines)
        return [event for line in lines if (event := self._line(line)) is not None]

    def finish(self) -> list[str]:
        """The event completed by the end of the stream: some servers omit the blank line after the last event."""
        return self.feed(b"\n\n")

    def _line(self, line: bytes) -> str | None:
        if self._first:
            line = line.removeprefix(b"\xef\xbb\xbf")
            self._first = False
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
                self._size += len(line)  # including the name: a flood of empty lines takes memory too
            return None
        if not self._data:
            return None
        event = (self._data[0] if len(self._data) == 1 else b"\n".join(self._data)).decode("utf-8", "replace")
        self._data, self._size = [], 0
        return event
