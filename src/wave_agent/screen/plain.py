"""Foreign text on its way to the screen: without control characters, and never read as markup.

Whatever a model, a hook, a tool or a file says is shown through here.
"""

from textual.content import Content

from wave_agent.text import strip_controls

TAB = 4


def clean(text: str) -> str:
    return strip_controls(text).expandtabs(TAB)


def plain(text: str, style: str = "") -> Content:
    """The text as it is, in one style."""
    return Content.styled(clean(text), style) if style else Content(clean(text))


def folded(text: str, lines: int) -> tuple[str, int]:
    """The first lines, and how many more there are."""
    every = text.split("\n")
    return "\n".join(every[:lines]), max(0, len(every) - lines)


def size_of(text: str) -> str:
    """How much text it is, for people."""
    count = text.count("\n") + (not text.endswith("\n") and bool(text))
    return "1 line" if count == 1 else f"{count:,} lines"


def elapsed(seconds: float) -> str:
    """A time for people: 0.4 s, 12 s, 3 min 5 s."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
