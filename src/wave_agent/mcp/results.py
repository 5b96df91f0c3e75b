"""The result of a call: as the model reads it, and as hooks get it."""

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

from msgspec import Struct

from wave_agent.mcp.mentions import unmarked
from wave_agent.mcp.values import McpResult
from wave_agent.messages import Image
from wave_agent.text import one_line, strip_controls
from wave_agent.tools.base import ToolResult
from wave_agent.tools.images import LARGEST, WIDEST, picture_in

_NAME = 200
"""Characters of a name or an address in a line about something that is not shown."""
_CUT = "[{:,} bytes of this result were dropped: it was too large]"
NOTHING = "(The tool returned nothing.)"


class ShownContent(Struct, frozen=True):
    """A content array as the model gets it."""

    text: str
    images: tuple[Image, ...] = ()


def tool_result(result: McpResult, *, takes_images: bool, server: str = "", reader: str = "") -> ToolResult:
    """What the model and hooks get from a server. A call that failed is one that could not do its work."""
    shown = shown_content(result, takes_images=takes_images, server=server, reader=reader)
    return ToolResult(
        content=shown.text or NOTHING,
        success=not result.is_error,
        ran=not result.is_error,
        response={"blocks": hook_content(result.content)},
        beside={"mcp": {"structuredContent": result.structured, "isError": result.is_error}},
        images=shown.images,
    )


def shown_content(result: McpResult, *, takes_images: bool = False, server: str = "", reader: str = "") -> ShownContent:
    """Text and images in their order; everything else is named. Structured content is added unless the text already
    says the same. A link to a resource comes with the tool that reads it (`reader`), or with what the user can do."""
    pieces: list[str] = []
    images: list[Image] = []
    for block in result.content:
        piece = _piece(block, server, reader)
        if isinstance(piece, Image) and takes_images:
            images.append(piece)
        elif isinstance(piece, Image):
            pieces.append(f"[image, {piece.media_type}, {piece.width} × {piece.height}: this model accepts no images]")
        else:
            pieces.append(piece)
    if result.structured is not None and not _says(result):
        pieces.append(f"Structured content:\n{_json(result.structured)}")
    if result.cut:
        pieces.append(_CUT.format(result.cut))
    return ShownContent(unmarked(strip_controls("\n".join(filter(None, pieces)))), tuple(images))


def hook_content(content: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The content array without binary data: hooks get its length and digest instead."""
    return [_without_data(block) for block in content]


# ------------------------------------------------------------------------------------------------------ for the model


def _piece(block: Mapping[str, Any], server: str, reader: str) -> str | Image:
    match block.get("type"):
        case "text":
            return str(block.get("text") or "")
        case "image":
            return _image(block)
        case "audio":
            return f"[audio, {_said(block, 'mimeType')}, {_size(block.get('data'))}]"
        case "resource":
            return _resource(block.get("resource"))
        case "resource_link":
            about = ", ".join(filter(None, (_said(block, key) for key in ("name", "mimeType", "description"))))
            uri = _said(block, "uri")
            how = f"call {reader}" if reader else f"ask the user to write @{server}:{uri}"
            follow = f"; to read it, {how}" if server and uri else ""
            return f"[resource {uri}{f': {about}' if about else ''}{follow}]"
        case other:
            return f"[content of type {one_line(str(other), _NAME)}]"


def _image(block: Mapping[str, Any]) -> str | Image:
    """An image that common servers accept; otherwise its description."""
    data = _decoded(block.get("data"))
    found = None if data is None else picture_in(data)
    if data is None or found is None:
        return f"[image, {_said(block, 'mimeType')}, {_size(block.get('data'))}: not a format that models accept]"
    if len(data) > LARGEST or max(found.width, found.height) > WIDEST:
        return f"[image, {found.media_type}, {found.width} × {found.height}, {len(data):,} bytes: too large]"
    return found.with_content(data)


def _resource(resource: Any) -> str:
    if not isinstance(resource, Mapping):
        return "[a resource without content]"
    found = cast(Mapping[str, Any], resource)
    name = f"resource {_said(found, 'uri')}"
    if isinstance(found.get("text"), str):
        return f"[{name}]\n{found['text']}"
    about = ", ".join(filter(None, (_said(found, "mimeType"), _size(found.get("blob")))))
    return f"[{name}: {about}]"


def _says(result: McpResult) -> bool:
    """Whether the text says what the structured content says: the same JSON, or the only value in it."""
    texts = [str(block.get("text") or "") for block in result.content if block.get("type") == "text"]
    if not texts:
        return False
    whole, structured = "\n".join(texts), result.structured
    said: list[Any] = [whole, _parsed(whole), texts, [_parsed(text) for text in texts]]
    if any(_equal(one, structured) for one in said):
        return True
    if not isinstance(structured, Mapping) or len(cast(Mapping[str, Any], structured)) != 1:
        return False
    (inner,) = cast(Mapping[str, Any], structured).values()
    return any(_equal(one, inner) for one in said)


def _equal(one: Any, other: Any) -> bool:
    """As JSON: 1 is not true."""
    return one == other and _json(one) == _json(other)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _said(block: Mapping[str, Any], key: str) -> str:
    return one_line(str(block.get(key) or ""), _NAME)


def _decoded(data: Any) -> bytes | None:
    if not isinstance(data, str):
        return None
    try:
        return b64decode(data, validate=True)
    except (Base64Error, ValueError):
        return None


def _size(data: Any) -> str:
    decoded = _decoded(data)
    return "not valid base64" if decoded is None else f"{len(decoded):,} bytes"


# ---------------------------------------------------------------------------------------------------------- for hooks


def _without_data(block: Mapping[str, Any]) -> dict[str, Any]:
    plain = dict(block)
    for key in ("data", "blob"):
        if isinstance(plain.get(key), str):
            plain[key] = _digest(plain[key])
    if isinstance(plain.get("resource"), Mapping):
        plain["resource"] = _without_data(cast(Mapping[str, Any], plain["resource"]))
    return plain


def _digest(data: str) -> dict[str, Any]:
    """Of the decoded bytes; of the text itself if it is not base64."""
    decoded = _decoded(data)
    content = data.encode("utf-8", "surrogatepass") if decoded is None else decoded
    return {"length": len(content), "sha256": sha256(content).hexdigest()}
