"""Small images of every kind, as their headers are."""

import struct
import zlib


def png(width: int, height: int) -> bytes:
    """A whole one, black."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\0" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg(width: int, height: int, *, fill: bytes = b"") -> bytes:
    """Its header, with a segment before the frame, as cameras write them."""
    application = b"\xff\xe1" + struct.pack(">H", 10) + b"Exif\0\0MM"
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + application + fill + frame + b"\xff\xd9"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def webp(width: int, height: int, form: bytes) -> bytes:
    """`form`: lossy `VP8 `, lossless `VP8L` or extended `VP8X`."""
    if form == b"VP8 ":
        body = b"\x10\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    elif form == b"VP8L":
        body = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
    else:
        body = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    chunk = form + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk
