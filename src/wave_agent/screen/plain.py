"""Sanitises untrusted text for the screen: no control characters, and never read as markup.

All text from a model, hook, tool or file goes through here.
"""

from textual.content import Content

from wave_agent.screen.sizes import clean


def plain(text: str, style: str = "") -> Content:
    """The literal text in one style."""
    return Content.styled(clean(text), style) if style else Content(clean(text))
