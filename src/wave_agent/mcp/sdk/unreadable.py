"""Messages that the SDK cannot read, and would drop: then a call would wait for its answer until its time is up."""

import json
import re
from typing import Any, cast

from mcp import types

from wave_agent.mcp.sdk.oversized import TAIL

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|u[dD][c-fC-F][0-9a-fA-F]{2}|.)")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ID = re.compile(r'"id"\s*:\s*(\d{1,18}|"[^"\\]{0,200}")\s*[,}]')


def readable(message: bytes) -> bytes:
    """The same message, if it can be read; else one that can: with lone surrogates and bytes that are no UTF-8 replaced
    (programs cut texts in the middle of a character), or an error in place of an answer. What is neither stays as it
    is."""
    if _is_readable(message):
        return message
    mended = _ESCAPE.sub(_whole, message.decode(errors="replace")).encode()
    if _is_readable(mended):
        return mended
    number = _answered(mended.decode())
    if number is None:
        return message
    error = {"code": types.PARSE_ERROR, "message": "Its answer breaks the protocol"}
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode()


def _is_readable(message: bytes) -> bool:
    try:
        types.jsonrpc_message_adapter.validate_json(message, by_name=False)
    except ValueError:
        return False
    return True


def _whole(escape: re.Match[str]) -> str:
    is_lone = _SURROGATE.match(escape[0]) is not None and escape[1] is None
    return "\\ufffd" if is_lone else escape[0]


def _answered(text: str) -> int | str | None:
    """The id of the request that this answers; None if it is not an answer."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return _answered_by_broken(text)
    if not isinstance(found, dict) or "method" in found:
        return None
    number: Any = cast("dict[str, Any]", found).get("id")
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


def _answered_by_broken(text: str) -> int | str | None:
    """Text that is no JSON: it has to look like an answer, and its own fields are at its ends."""
    ends = text[:TAIL], text[-TAIL:]
    if not text.lstrip().startswith("{") or '"jsonrpc"' not in "".join(ends) or '"method"' in ends[0]:
        return None
    found = [*_ID.findall(ends[0])[:1], *_ID.findall(ends[1])[-1:]]
    return json.loads(found[0]) if found else None
