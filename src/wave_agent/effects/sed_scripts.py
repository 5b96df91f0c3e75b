"""Scripts for sed: which files they read and write, and whether they run something.

GNU sed, BSD sed and others disagree on where a label, a text or a bracket expression ends. Where they do, the script is
not understood; what any of them might read or write is listed nevertheless.
"""

import re
from itertools import islice

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex

_ADDRESS = lazy_regex(
    r"(?:\d+(?:~\d+)?|\$|(?:/((?:[^/\\\n]|\\.)*+)/|\\([^\\\n])((?>(?:(?!\2)[^\\\n]|\\.)*))\2)[IM]*)\s*"
)
_ALSO = lazy_regex(r",\s*[+~]?\s*")
_BLANKS = lazy_regex(r"[\s;]*")
_PLAIN = frozenset("dDgGhHlnNpPxqQ=zF}")
_TO_END = lazy_regex(r"[^\n]*")
_LABEL = lazy_regex(r"[ \t]*[^\s;]*[ \t]*")
_NUMBER = lazy_regex(r"[ \t]*\d*")
_FLAGS = lazy_regex(r"[gpiIM0-9]*")
_TEXT = lazy_regex(r"(?:[^\\\n]|\\.)*", re.DOTALL)
_BLANK_BEFORE_TEXT = lazy_regex(r"[ \t]*\\[ \t]+(?:\n|\Z)")
_REGEX = lazy_regex(r"(?>(?:[^\\\[\n]|\\[^\n]|\[\^?\]?(?>(?:\[([:.=])(?>(?:(?!\1\]).)*)\1\]|[^\]\n])*)\])*)")
"""A regular expression in which every bracket is closed: so no delimiter is inside one, where it would mean itself."""
_AFTER = ("", ";", "\n", "}", " ", "#")
"""What may follow a command on its line."""
_ANY_FILE = lazy_regex(r"(?<![A-Za-z])[gpiImMe0-9]*([rRwW])(?=[ \t]*+([^\n;}]*[^\s;}])([^\n]*))")
_RUNS = lazy_regex(
    r"(?<![A-Za-z])e[ \t]+([^\n]+)|s([^\w\s\\])(?>(?:(?!\2)[^\\\n]|\\.)*)\2((?>(?:(?!\2)[^\\\n]|\\.)*))\2\w*e"
)
"""`e COMMAND`, and `s/…/COMMAND/e`."""
_MOST_GUESSED = 32


class SedScript(Struct, frozen=True):
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    understood: bool = True
    """False: there may be more, or it runs something."""
    runs: tuple[str, ...] = ()
    """Lines that it may give to a shell."""


class _NotUnderstoodError(Exception):
    pass


def read_sed_script(text: str) -> SedScript:
    scanner = _Scanner(text)
    try:
        scanner.run()
    except _NotUnderstoodError:
        scanner.understood = False
    runs: list[str] = []
    if not scanner.understood:
        runs = [found[1] or found[3] for found in islice(_RUNS.finditer(text), _MOST_GUESSED)]
        for found in islice(_ANY_FILE.finditer(text), _MOST_GUESSED):
            kind = scanner.reads if found[1] in "rR" else scanner.writes
            kind += [found[2], f"{found[2]}{found[3]}"]
    return SedScript(_each_once(scanner.reads), _each_once(scanner.writes), scanner.understood, _each_once(runs))


def _each_once(names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.understood = True

    def run(self) -> None:
        while True:
            self._skip(_BLANKS)
            if self.at >= len(self.text):
                return
            self._addresses()
            sign = self.text[self.at : self.at + 1]
            self.at += 1
            self._command(sign)

    def _skip(self, expression: re.Pattern[str]) -> str:
        found = expression.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def _addresses(self) -> None:
        if self._address() and self._skip(_ALSO) and not self._address() and self._skip(_NUMBER) == "":
            raise _NotUnderstoodError
        while self.text[self.at : self.at + 1] in ("!", " ", "\t"):
            self.at += 1

    def _address(self) -> bool:
        found = _ADDRESS.match(self.text, self.at)
        if found is None:
            return False
        if not _REGEX.fullmatch(found[1] or found[3] or ""):
            raise _NotUnderstoodError
        self.at = found.end()
        return True

    def _command(self, sign: str) -> None:
        if sign == "{":
            return
        if sign == "#":
            self._understands(not self._skip(_TO_END).endswith("\\"))
        elif sign in ("s", "y"):
            self._substitute(sign)
        elif sign in ("r", "R", "w", "W"):
            self._file(self.reads if sign in "rR" else self.writes)
        elif sign in ("a", "i", "c"):
            self._understands(_BLANK_BEFORE_TEXT.match(self.text, self.at) is None)
            self._skip(_TEXT)
        elif sign in (":", "b", "t", "T"):
            self._label()
        elif sign and sign in _PLAIN:
            self._skip(_NUMBER)
            self._ends()
        else:
            raise _NotUnderstoodError

    def _understands(self, certain: bool) -> None:
        """The rest is read in any case, for what it may do."""
        self.understood &= certain

    def _ends(self) -> None:
        if self.text[self.at : self.at + 1] not in _AFTER:
            raise _NotUnderstoodError

    def _file(self, files: list[str]) -> None:
        name = self._skip(_TO_END).lstrip(" \t")
        self._understands("\\" not in name)
        files.append(name)

    def _label(self) -> None:
        """To GNU it ends at a blank or `;`, and commands may follow; to others it is the rest of the line."""
        label = self._skip(_LABEL).strip(" \t")
        rest = self.text[self.at :].partition("\n")[0]
        # A brace may be part of the label. A command that goes on in the next line may be none.
        self._understands("}" not in label.rstrip("}") and rest[:1] in ("", ";", "}", "#") and rest[-1:] != "\\")

    def _substitute(self, sign: str) -> None:
        between = self.text[self.at : self.at + 1]
        if between in ("", "\\", "\n"):
            raise _NotUnderstoodError
        mark = re.escape(between)
        part = rf"((?>(?:(?!{mark})[^\\\n]|\\.)*)){mark}"
        whole = re.compile(f"{mark}{part}{part}", re.DOTALL)
        found = whole.match(self.text, self.at)
        if found is None or (sign == "s" and not _REGEX.fullmatch(found[1])):
            raise _NotUnderstoodError
        self.at = found.end()
        self._skip(_FLAGS)
        if sign == "s" and self.text[self.at : self.at + 1] == "w":
            self.at += 1
            self._file(self.writes)
        else:
            self._ends()
