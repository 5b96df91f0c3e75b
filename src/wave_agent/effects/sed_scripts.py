"""Scripts for sed: which files they read and write, and whether they run something."""

import re

from msgspec import Struct

_ADDRESS = re.compile(r"(?:\d+(?:~\d+)?|\$|(?:/(?:[^/\\\n]|\\.)*/|\\([^\\\n])(?:(?!\1)[^\\\n]|\\.)*\1)[IM]*)\s*")
_ALSO = re.compile(r",\s*[+~]?\s*")
_BLANKS = re.compile(r"[\s;]*")
_PLAIN = frozenset("dDgGhHlnNpPxqQ=zF}")
_TO_END = re.compile(r"[^\n]*")
_LABEL = re.compile(r"[^\n;}]*")
_NUMBER = re.compile(r"[ \t]*\d*")
_FLAGS = re.compile(r"[gpiIM0-9]*")
_TEXT = re.compile(r"(?:[^\\\n]|\\.)*", re.DOTALL)


class SedScript(Struct, frozen=True):
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    understood: bool = True
    """False: there may be more, or it runs something."""


class _NotUnderstoodError(Exception):
    pass


def read_sed_script(text: str) -> SedScript:
    scanner = _Scanner(text)
    try:
        scanner.run()
    except _NotUnderstoodError:
        return SedScript(tuple(scanner.reads), tuple(scanner.writes), understood=False)
    return SedScript(tuple(scanner.reads), tuple(scanner.writes))


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.reads: list[str] = []
        self.writes: list[str] = []

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
        if self._skip(_ADDRESS) and self._skip(_ALSO) and self._skip(_ADDRESS) == "" and self._skip(_NUMBER) == "":
            raise _NotUnderstoodError
        while self.text[self.at : self.at + 1] in ("!", " ", "\t"):
            self.at += 1

    def _command(self, sign: str) -> None:
        if sign in ("{", "#"):
            self._skip(_TO_END) if sign == "#" else None
        elif sign in ("s", "y"):
            self._substitute(sign)
        elif sign in ("r", "R", "w", "W"):
            (self.reads if sign in "rR" else self.writes).append(self._skip(_TO_END).strip())
        elif sign in ("a", "i", "c"):
            self._skip(_TEXT)
        elif sign in (":", "b", "t", "T"):
            self._skip(_LABEL)
        elif sign and sign in _PLAIN:
            self._skip(_NUMBER)
            if self.text[self.at : self.at + 1] not in ("", ";", "\n", "}", " ", "#"):
                raise _NotUnderstoodError
        else:
            raise _NotUnderstoodError

    def _substitute(self, sign: str) -> None:
        between = self.text[self.at : self.at + 1]
        if between in ("", "\\", "\n"):
            raise _NotUnderstoodError
        mark = re.escape(between)
        # In brackets the mark stands for itself, so such expressions are left alone.
        whole = re.compile(rf"{mark}((?:(?!{mark})[^\\]|\\.)*+){mark}(?:(?!{mark})[^\\]|\\.)*+{mark}", re.DOTALL)
        found = whole.match(self.text, self.at)
        if found is None or ("[" in found[1] and between in found[1].replace(f"\\{between}", "")):
            raise _NotUnderstoodError
        if "[" in found[1] and "]" not in found[1].rpartition("[")[2]:
            raise _NotUnderstoodError
        self.at = found.end()
        self._skip(_FLAGS)
        if sign == "s" and self.text[self.at : self.at + 1] == "w":
            self.at += 1
            self.writes.append(self._skip(_TO_END).strip())
        elif self.text[self.at : self.at + 1] not in ("", ";", "\n", "}", " ", "#"):
            raise _NotUnderstoodError
