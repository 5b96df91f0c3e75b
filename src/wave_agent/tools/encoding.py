"""Decodes the bytes of a file, and encodes them again without changing unedited parts. Has only fast imports."""

import codecs

from wave_agent.lazy_regex import lazy_regex

_BOMS = (
    # The UTF-32 mark starts with the UTF-16 one.
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
"""The first bytes of image formats that models accept, and of some other files."""
_SAMPLE = 8192
"""Bytes at the start that decide whether a file is text."""
_CONTROLS = lazy_regex(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")  # not whitespace, backspace or escape
_MULTIBYTE = lazy_regex(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


class DecodedText:
    """Decoded content, and how to encode it again."""

    def __init__(self, content: str, encoding: str, bom: bytes = b"") -> None:
        """Newlines are as in the file. Undecodable bytes are lone surrogates."""
        self.content = content
        self.encoding = encoding
        self._bom = bom

    def encode(self, content: str) -> bytes:
        """Raises `UnicodeEncodeError`."""
        errors = "surrogateescape" if self.encoding == "utf-8" else "strict"
        return self._bom + content.encode(self.encoding, errors)


def decode(data: bytes) -> DecodedText | None:
    """None: not text.

    Without a byte order mark it is UTF-8, possibly with stray bytes; text with non-ASCII bytes, none of which could be
    UTF-8, is read as Latin-1.
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
    """New content with the file's former line endings: CRLF if most were, and the new content has none."""
    if b"\r" in after or before.count(b"\r\n") * 2 <= before.count(b"\n"):
        return after
    return after.replace(b"\n", b"\r\n")


def kind_of_binary(data: bytes) -> str | None:
    """What the content is, if not text. None: text without a byte order mark."""
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return kind
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "a WebP image"
    sample = data[:_SAMPLE]
    # Valid text may contain a form feed or the odd control character, but never NUL.
    if b"\0" in sample or len(_CONTROLS.findall(sample)) > len(sample) // 10:
        return "a binary file"
    return None


def printable(text: str) -> str:
    """Replaces lone surrogates, which JSON cannot contain, with replacement characters."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
