"""How long one result may be, so that none fills the model's window. Has only fast imports."""

USUAL = 30_000
"""Maximum length of one result, in characters."""
LONGEST = 100_000
"""Maximum length if the call asks for more and the window is known to be large enough."""
NOTES = 400
"""Characters that a tool reserves for notes about its result."""
_SHARE = 4
"""A result takes at most one part in this many of the window."""
_BYTES_PER_TOKEN = 3
"""A safe estimate: prose has more, code and logs about this many, as does Chinese with three bytes per character."""


class Room:
    """A limit in characters, and one in UTF-8 bytes, which track the tokens of other scripts more closely."""

    def __init__(self, characters: int, size: int) -> None:
        self.characters = characters
        self.size = size

    def holds(self, text: str) -> bool:
        return len(text) <= self.characters and (len(text) * 4 <= self.size or size_of(text) <= self.size)

    def without(self, characters: int) -> "Room":
        """What is left if something else takes this many characters."""
        return Room(max(self.characters - characters, 0), max(self.size - characters, 0))

    @property
    def length(self) -> int:
        """How many characters of plain text fit."""
        return min(self.characters, self.size)

    def cut(self, text: str, whole: str | None = None) -> str:
        """The text, or its start and end with a note between them that says what is missing, and where it is."""
        if self.holds(text):
            return text
        left = self.without(size_of(missing(len(text), whole)))
        head = _whole_lines(_first(text, left.characters // 2, left.size // 2))
        tail = _whole_lines(_first(text[::-1], left.characters // 2, left.size // 2))[::-1]
        return f"{head}{missing(len(text) - len(head) - len(tail), whole)}{tail}"


def room_in(window: int | None, *, asked: bool = False) -> Room:
    """The room for one result in a window of this many tokens; None if unknown.

    `asked`: the call asked for more than usual, which a large window allows.
    """
    if window is None:
        return Room(USUAL, 4 * USUAL)
    return Room(LONGEST if asked else USUAL, window // _SHARE * _BYTES_PER_TOKEN)


def size_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def missing(characters: int, whole: str | None) -> str:
    """The note in place of omitted text."""
    where = f"; the whole is in {whole}: Grep it, or Read it with offset and limit" if whole else ""
    return f"\n[… {characters:,} characters omitted here{where} …]\n"


def _whole_lines(start: str) -> str:
    """Without the partial line at its end, which could be mistaken for a full one, unless little else would remain."""
    lines = start.rpartition("\n")[0]
    return lines if len(lines) > len(start) // 2 else start


def _first(text: str, characters: int, size: int) -> str:
    """The start of a text, limited to this many characters and bytes."""
    start = text[:characters]
    if size_of(start) <= size:
        return start
    return start.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")
