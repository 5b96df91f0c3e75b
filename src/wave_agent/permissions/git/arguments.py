"""The words after a git subcommand."""

from collections.abc import Sequence


class Arguments:
    """The words after a subcommand. Git accepts any unambiguous prefix of a long option."""

    def __init__(self, words: Sequence[str], values: str = "", longs: Sequence[str] = ()) -> None:
        """`values` are short options that take a value, `longs` long ones."""
        self.longs: list[tuple[str, str]] = []
        self.letters: list[tuple[str, str]] = []
        self.operands: list[str] = []
        self.paths: list[str] | None = None
        """The words after `--`."""
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word == "--":
                self.paths = rest
                return
            if word.startswith("--"):
                name, equals, value = word.partition("=")
                if not equals and rest and any(long.startswith(name) for long in longs):
                    value = rest.pop(0)
                self.longs.append((name, value))
            elif word.startswith("-") and len(word) > 1:
                self._short(word, values, rest)
            else:
                self.operands.append(word)

    def _short(self, word: str, values: str, rest: list[str]) -> None:
        for at, letter in enumerate(word[1:], 2):
            if letter in values:
                self.letters.append((letter, word[at:] or (rest.pop(0) if rest else "")))
                return
            self.letters.append((letter, ""))

    def may(self, letters: str, *names: str) -> bool:
        """One of these options may be present."""
        return self.value(letters, *names) is not None

    def value(self, letters: str, *names: str) -> str | None:
        """Its value; "" for a flag."""
        short = [value for letter, value in self.letters if letter in letters]
        long = [value for given, value in self.longs if any(name.startswith(given) for name in names)]
        return next(iter([*short, *long]), None)

    def surely(self, letters: str, *names: str) -> bool:
        """One of these options is present, spelled out."""
        return any(letter in letters for letter, _ in self.letters) or any(given in names for given, _ in self.longs)
