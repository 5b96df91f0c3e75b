"""What a terminal would show of a command's output: only the last state of a progress bar, not all of them."""

from wave_agent.lazy_regex import lazy_regex

ROW = 4096
"""Characters after which a line wraps to a new row, to whose start `\\r` then returns. Real terminals have fewer."""
_RIGHTMOST = 200
"""How far a sequence can move the cursor to the right of the text."""

_SEQUENCE = r"(?:\x1b\[|\x9b)"
_BODY = r"[0-?]{0,24}[ -/]{0,4}"
_MOVES = lazy_regex(rf"[\r\x08]|{_SEQUENCE}[0-9;]{{0,16}}[CDGJK]")
"""Sequences that move the cursor within its line, or erase."""
_STEP = lazy_regex(
    rf"(?P<text>[^\r\x08\x1b\x9b]+)|\r|\x08|{_SEQUENCE}(?P<count>[0-9]{{0,4}})[0-9;]{{0,12}}(?P<move>[CDGJK])"
    rf"|{_SEQUENCE}{_BODY}[@-~]?|\x1b"
)
_INVISIBLE = lazy_regex(rf"{_SEQUENCE}{_BODY}[@-~]?|\x1b")
_UNFINISHED = lazy_regex(rf"(?:\r|\x1b|{_SEQUENCE}{_BODY})\Z")
_LONGEST_SEQUENCE = 32
_SPECIAL = ("\r", "\x08", "\x1b", "\x9b")
"""Searched for first, one by one: in text without any, that is a hundred times as fast as a regular expression."""


class TerminalLines:
    """A growing text, as lines. How it is split into pieces makes no difference.

    A line in which the cursor never goes back stays as it is, colours and all. One that is overwritten becomes its
    final state, as plain text. Rows above the cursor are final: sequences that move up are ignored.
    """

    def __init__(self) -> None:
        self._held = ""
        """The start of a sequence, or of a `\\r\\n`, whose end has not arrived yet."""
        self._row = ""
        """The line so far, until it is overwritten."""
        self._cells: list[str] | None = None
        """From then on, its characters."""
        self._column = 0

    @property
    def pending(self) -> str:
        """The incomplete line, as it looks now."""
        return self._row if self._cells is None else "".join(self._cells).rstrip(" ")

    def feed(self, text: str) -> str:
        """Returns the lines completed by the text."""
        text = self._held + text
        if self._cells is None and not any(special in text for special in _SPECIAL):
            done: list[str] = []
            self._take(text, done)
            return "".join(done)
        unfinished = _UNFINISHED.search(text, max(0, len(text) - _LONGEST_SEQUENCE))
        self._held = "" if unfinished is None else unfinished[0]
        text = text[: len(text) - len(self._held)].replace("\r\n", "\n")
        done = []
        at = 0
        while at < len(text):
            at = self._go_on(text, at, done) if self._cells is None else self._write_over(text, at, done)
        return "".join(done)

    def finish(self) -> str:
        """Returns what is left when there is no more input."""
        rest = self.pending + self._held.rstrip("\r")
        self._held, self._row, self._cells, self._column = "", "", None, 0
        return rest

    def _go_on(self, text: str, at: int, done: list[str]) -> int:
        """Takes everything before the next move as it is. Returns how far it got."""
        move = _MOVES.search(text, at)
        end = len(text) if move is None else move.start()
        self._take(text[at:end], done)
        if move is not None:
            self._cells = list(_INVISIBLE.sub("", self._row))
            self._row, self._column = "", len(self._cells)
        return end

    def _take(self, text: str, done: list[str]) -> None:
        newline = text.rfind("\n") + 1
        if newline:
            done.append(self._row + text[:newline])
            self._row = ""
        self._row += text[newline:]
        if len(self._row) > ROW:
            full = (len(self._row) - 1) // ROW * ROW
            done.append(self._row[:full])
            self._row = self._row[full:]

    def _write_over(self, text: str, at: int, done: list[str]) -> int:
        newline = text.find("\n", at)
        end = len(text) if newline < 0 else newline
        for step in _STEP.finditer(text, at, end):
            if run := step["text"]:
                self._write(run, done)
            else:
                self._move(step[0], step["move"], int(step["count"] or 0))
        if newline < 0:
            return end
        done.append(f"{self.pending}\n")
        self._cells, self._column = None, 0
        return end + 1

    def _write(self, run: str, done: list[str]) -> None:
        cells = self._cells or []
        while run:
            if self._column >= ROW:
                done.append("".join(cells))
                cells, self._column = [], 0
            part = run[: ROW - self._column]
            cells += " " * (self._column - len(cells))
            cells[self._column : self._column + len(part)] = part
            self._column += len(part)
            run = run[len(part) :]
        self._cells = cells

    def _move(self, step: str, move: str | None, count: int) -> None:
        cells = self._cells or []
        match move:
            case "K" | "J" if count == 1:
                cells[: self._column] = " " * min(self._column, len(cells))
            case "K" | "J":
                del cells[0 if count else self._column :]
            case "G":
                self._column = min(max(count, 1) - 1, max(_RIGHTMOST, len(cells)))
            case "C":
                self._column = min(self._column + max(count, 1), max(_RIGHTMOST, len(cells)))
            case "D":
                self._column = max(0, self._column - max(count, 1))
            case _ if step == "\r":
                self._column = 0
            case _ if step == "\x08":
                self._column = max(0, self._column - 1)
            case _:
                pass  # a colour, or something that does not affect this line
