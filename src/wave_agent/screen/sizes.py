"""Texts and durations as people read them."""

from wave_agent.text import strip_controls

TAB = 4


def clean(text: str) -> str:
    """Without control characters."""
    return strip_controls(text).expandtabs(TAB)


def folded(text: str, lines: int) -> tuple[str, int]:
    """The first lines and the number of remaining ones."""
    every = text.split("\n")
    return "\n".join(every[:lines]), max(0, len(every) - lines)


def size_of(text: str) -> str:
    """A readable text size."""
    count = text.count("\n") + (not text.endswith("\n") and bool(text))
    return "1 line" if count == 1 else f"{count:,} lines"


def elapsed(seconds: float) -> str:
    """A readable duration: 0.4 s, 12 s, 3 min 5 s."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
