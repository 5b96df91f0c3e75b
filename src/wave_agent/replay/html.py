"""The frame of a single, self-contained HTML page.

Anything in a transcript may be an attempt to break out of the page. So all of it is escaped text, the page's own script
and style are allowed by their hashes, and the content security policy forbids everything else.
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape

from wave_agent.text import strip_controls


def framed(title: str, body: Sequence[str], *, style: str, script: str = "") -> str:
    """The page. `body` is HTML, in which every text is `plain`."""
    scripts = f"script-src {_hash(script)}; " if script else ""
    policy = f"default-src 'none'; {scripts}style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    return "\n".join([
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{plain(title)}</title><style>{style}</style></head><body>",
        *body,
        f"{f'<script>{script}</script>' if script else ''}</body></html>\n",
    ])  # fmt: skip


def plain(text: str) -> str:
    """Escape text for any place in the page. Characters that cannot be encoded as UTF-8 are replaced."""
    return escape(strip_controls(text).encode("utf-8", "replace").decode())


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
