"""Images: their format and size, read from the first bytes. Nothing is decoded."""

import struct
from base64 import b64encode

from msgspec import Struct

from wave_agent.messages import Image

LARGEST = 3_750_000
"""Bytes. In base64 that is 5 MB, the limit of common servers."""
WIDEST = 8000
"""Pixels of the longer side that common servers accept."""


class Picture(Struct, frozen=True):
    """The header of an image."""

    kind: str
    """The format's usual name."""
    media_type: str
    width: int
    height: int

    def with_content(self, data: bytes) -> Image:
        """The whole image, as part of the conversation."""
        return Image(self.media_type, b64encode(data).decode(), self.width, self.height)


def picture_in(data: bytes) -> Picture | None:
    """None: not an image format that models accept, or the header cannot be read."""
    for kind, media_type, measure in (
        ("PNG", "image/png", _png),
        ("JPEG", "image/jpeg", _jpeg),
        ("GIF", "image/gif", _gif),
        ("WebP", "image/webp", _webp),
    ):
        try:
            found = measure(data)
        except (struct.error, IndexError):  # it ends before its size
            found = None
        if found is not None and min(found) > 0:
            return Picture(kind, media_type, *found)
    return None


def _png(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR":
        return None
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int] | None:
    if not data.startswith((b"GIF87a", b"GIF89a")):
        return None
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


_FRAMES = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
"""JPEG segments that start a frame."""
_BARE = {0x01, *range(0xD0, 0xD9)}
"""Markers without a length."""


def _jpeg(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        if marker == 0xFF:  # padding
            at += 1
        elif marker in _BARE:
            at += 2
        else:
            at += 2 + max(struct.unpack_from(">H", data, at + 2)[0], 2)
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"RIFF") or data[8:12] != b"WEBP":
        return None
    form = data[12:16]
    if form == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if form == b"VP8L" and data[20] == 0x2F:
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if form == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None
