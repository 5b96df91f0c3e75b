"""What an editor sends as a prompt: text, links to files, their contents, images."""

import base64
import binascii
import os
import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)
from msgspec import Struct

from wave_agent.errors import WaveError
from wave_agent.text import one_line

PromptBlock = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)
IMAGES: Mapping[str, str] = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
_CLOSING = re.compile(r"<(?=/?(?:file|attached))", re.IGNORECASE)
_SAFE = re.compile(r"[^@`\n\r\x00-\x1f]*")


class PromptError(WaveError):
    """A prompt cannot be used."""


class PromptPicture(Struct, frozen=True):
    data: bytes
    suffix: str


class EditorPrompt(Struct, frozen=True):
    """`text` is what the user typed, with files named where they were mentioned."""

    text: str
    attached: str = ""
    """What follows it: not typed, so never read as a command."""
    pictures: tuple[PromptPicture, ...] = ()


def read_prompt(blocks: Sequence[PromptBlock], project: str) -> EditorPrompt:
    """Raises `PromptError`."""
    typed: list[str] = []
    attached: list[str] = []
    pictures: list[PromptPicture] = []
    after_text = False
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                typed.append(f"\n{text}" if after_text else text)
            case ResourceContentBlock(uri=uri):
                _mention(uri, project, typed, attached)
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                _mention(uri, project, typed, attached)
                attached.append(f'<attached name="{_attribute(place_of(uri, project))}">\n{_inside(text)}\n</attached>')
            case EmbeddedResourceContentBlock(resource=BlobResourceContents() as blob):
                if (blob.mime_type or "") not in IMAGES:
                    raise PromptError(f"{one_line(blob.uri, 200)} is neither text nor an image, so it cannot be sent.")
                _mention(blob.uri, project, typed, attached)
                pictures.append(_picture(blob.blob, blob.mime_type or ""))
            case ImageContentBlock():
                pictures.append(_picture(block.data, block.mime_type))
            case _:
                raise PromptError("Audio cannot be sent: no model here takes it.")
        after_text = isinstance(block, TextContentBlock)
    text = "".join(typed).strip()
    if not (text or attached or pictures):
        raise PromptError("The prompt is empty.")
    return EditorPrompt(text, "\n\n".join(attached), tuple(pictures))


def _mention(uri: str, project: str, typed: list[str], attached: list[str]) -> None:
    """Names a file where the user did. A name that could be read as something else comes after the text."""
    place = place_of(uri, project)
    if _SAFE.fullmatch(place):
        typed.append(f"`{place}`")
    else:
        attached.append(f'<attached name="{_attribute(place)}" />')


def place_of(uri: str, project: str) -> str:
    """The path of a file, relative to the project if it is in there; any other address as it is."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    if parts.scheme not in ("file", "") or parts.netloc not in ("", "localhost"):
        return uri
    path = os.path.normpath(unquote(parts.path)) if parts.path else ""
    inside = path.removeprefix(f"{project}/")
    return f"{inside}#{parts.fragment}" if parts.fragment else inside


def _attribute(text: str) -> str:
    return one_line(text, 1000).replace('"', "'").replace("<", "&lt;")


def _inside(text: str) -> str:
    """Text that cannot close the tag around it."""
    return _CLOSING.sub(r"<\\", text)


def _picture(data: str, media_type: str) -> PromptPicture:
    suffix = IMAGES.get(media_type)
    if suffix is None:
        raise PromptError(f"{one_line(media_type, 60)} is not a type of image that can be sent: {', '.join(IMAGES)}.")
    try:
        return PromptPicture(base64.b64decode(data, validate=True), suffix)
    except binascii.Error as error:
        raise PromptError(f"An image is not valid Base64: {error}.") from None


def with_attachments(prompt: EditorPrompt, files: Sequence[str], text: str) -> str:
    """The whole prompt: `text` stands for what was typed, `files` are where the pictures are now."""
    images = [f"[An image is attached: {file}. Use Read to see it.]" for file in files]
    return "\n\n".join(filter(None, (text, prompt.attached, *images)))
