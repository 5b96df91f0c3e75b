"""Bytes of a file as text, and back without changing what was not edited. Imports nothing that is slow to import."""

import codecs
import re

_BOMS = (
    # The mark of UTF-32 begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "a program"),
)
IMAGES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")
"""How the images begin that models take, and some other files."""
_SAMPLE = 8192
"""Bytes from the beginning that tell whether a file is text."""
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")  # not white space, backspace or escape
_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


class DecodedText:
    """Decoded content, and how to encode it again."""

    def __init__(self, content: str, encoding: str, bom: bytes = b"") -> None:
        """Newlines are as in the file. Bytes that cannot be decoded are lone surrogates."""
        self.content = content
        self.encoding = encoding
        self._bom = bom

    def encode(self, content: str) -> bytes:
        """Raises `UnicodeEncodeError`."""
        errors = "surrogateescape" if self.encoding == "utf-8" else "strict"
        return self._bom + content.encode(self.encoding, errors)


def decode(data: bytes) -> DecodedText | None:
    """None: not text.

    Without a byte order mark it is UTF-8, which may have stray bytes in it; text that has non-ASCII bytes, but nothing
    that could be UTF-8, is taken for Latin-1.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            try:
                return DecodedText(data[len(bom) :].decode(encoding), encoding, bom)
            except UnicodeDecodeError:
                break
    if kind_of_binary(data):
        return None
    try:
        return DecodedText(data.decode(), "utf-8")
    except UnicodeDecodeError:
        if _MULTIBYTE.search(data):
            return DecodedText(data.decode(errors="surrogateescape"), "utf-8")
        return DecodedText(data.decode("latin-1"), "latin-1")


def like(before: bytes, after: bytes) -> bytes:
    """New content of a file with the line ends that it had: where most were CRLF, and the new content has none."""
    if b"\r" in after or before.count(b"\r\n") * 2 <= before.count(b"\n"):
        return after
    return after.replace(b"\n", b"\r\n")


def kind_of_binary(data: bytes) -> str | None:
    """What the content is, if it is not text. None: text without a byte order mark."""
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return kind
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "a WebP image"
    sample = data[:_SAMPLE]
    # Legal text may hold a form feed or an odd control character, but never NUL.
    if b"\0" in sample or len(_CONTROLS.findall(sample)) > len(sample) // 10:
        return "a binary file"
    return None


def printable(text: str) -> str:
    """Lone surrogates, which no JSON may hold, become replacement characters."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
