"""Messages that are too large to be read whole: their beginning is made into a message again.

So a result of any size costs a bounded amount of memory, and still shows how it begins.
"""

import json
import re
from typing import Any, cast

LINE_LIMIT = 16 << 20
"""Bytes of a line that is read whole."""
HEAD = 9 << 20
"""Bytes of a longer one that are kept."""
TAIL = 4096
DROPPED = "wave-agent/dropped"
"""In a result's `_meta`: how many bytes are missing."""

_TOKEN = re.compile(rb'\s*+("(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s"{}\[\],:]++)', re.DOTALL)
_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{0,200}")\s*[,}]')
_INCOMPLETE = re.compile(
    rb"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3}|u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?)?$"
)
"""An escape that was cut, or the first half of a pair."""


class BoundedLine:
    """One line, put together from pieces. Of a line that is too long, only the beginning and the end are kept."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._tail = b""

    def add(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= LINE_LIMIT:
            self._parts.append(data)
            return
        if not self._tail:
            self._parts = [b"".join((*self._parts, data))[:HEAD]]
        self._tail = (self._tail + data)[-TAIL:]

    def take(self, prefix: bytes = b"") -> bytes | None:
        """The line, and begins another one. A response that is too long becomes a shorter one, after the same `prefix`;
        None if it cannot."""
        line, size, tail = b"".join(self._parts), self._size, self._tail
        self.__init__()
        if size <= LINE_LIMIT:
            return line
        if not line.startswith(prefix):
            return None
        short = shortened(line[len(prefix) :], tail, size - len(line))
        return None if short is None else prefix + json.dumps(short).encode()


def shortened(head: bytes, tail: bytes, dropped: int) -> dict[str, Any] | None:
    """The response that begins with `head` and ends with `tail`; None if it was not one. A block of its content that
    is cut off is left out unless it is text."""
    message = _closed(head)
    number = message.get("id")
    if number is None:
        found = _ID.findall(tail)
        number = json.loads(found[-1]) if found else None
    if number is None:
        return None
    result: Any = message.get("result")
    content: Any = cast("dict[str, Any]", result).get("content") if isinstance(result, dict) else None
    if not isinstance(content, list):
        error = {"code": -32000, "message": f"The answer is too large: {len(head) + dropped:,} bytes"}
        return {"jsonrpc": "2.0", "id": number, "error": error}
    blocks = cast("list[Any]", content)
    if blocks:
        blocks += _whole(blocks.pop())
    kept = {
        "resultType": "complete",  # Required by the newer protocol, unknown to the older one.
        "content": blocks,
        "_meta": {DROPPED: dropped},
        "isError": cast("dict[str, Any]", result).get("isError") is True,
    }
    return {"jsonrpc": "2.0", "id": number, "result": kept}


def _whole(block: Any) -> list[Any]:
    """The last block, if it is of use. Its type may have come after the text."""
    return [{"type": "text", **block}] if isinstance(block, dict) and "text" in block else []


def _closed(head: bytes) -> dict[str, Any]:
    """The object that begins like this, with everything that is open closed where it was cut; empty if it is none."""
    closers: list[bytes] = []
    end = position = 0  # Up to `end` the text is complete: it ends with a value, or with an opening bracket.
    is_key = False
    while (token := _TOKEN.match(head, position)) is not None:
        word, position = token[1], token.end()
        if word in (b"{", b"["):
            closers.append(b"}" if word == b"{" else b"]")
            is_key = word == b"{"
        elif word in (b"}", b"]"):
            if not closers or closers.pop() != word:
                return {}
        elif word in (b",", b":"):
            is_key = word == b"," and closers[-1:] == [b"}"]
            continue
        elif is_key or (position == len(head) and not word.startswith(b'"')):  # A number may have had more digits.
            continue
        end = position
    rest = head[position:].lstrip()
    text = head[:end]
    if rest.startswith(b'"') and not is_key:  # A string that was cut.
        text = (head[:-16] + _INCOMPLETE.sub(rb"\1", head[-16:])).decode(errors="ignore").encode() + b'"'
    try:
        message = json.loads(text + b"".join(reversed(closers)))
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", message) if isinstance(message, dict) else {}
