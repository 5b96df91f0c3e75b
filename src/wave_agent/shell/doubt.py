"""Text that cannot be parsed: whether any part of it could run a command that a rule matches.

A command may start at every word, after every operator and every quote; unknown words may be the rule's. Errs on the
side of finding too much, in time that grows linearly with the length of the text.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.effort import spend
from wave_agent.shell.printing import decode

_QUOTING = lazy_regex(r"\$(?=['\"])|\\\n|[\\'\"]")
_ANSI = lazy_regex(r"\$'((?:[^'\\]|\\.)*+)'", re.DOTALL)
_SIGNS_IN_QUOTES = lazy_regex(r"'[^']*+'|\"[^\"]*+\"")
_SIGN = lazy_regex(r"[;&|\n]")
_INNERMOST = lazy_regex(r"\$\([^()`]*+\)|`[^`]*+`|\$\{[^{}]*+\}|\$[\w@*#?!-]")
_VARIABLE = lazy_regex(r"\$(?:\{(\w+)[^{}]*+\}|(\w+)|[@*])")
_ASSIGNMENT = lazy_regex(r"(?<![\w$])(\w+)\+?=([^\s;&|(){}<>]*)")
_BRACES = lazy_regex(r"\{([^{}\s]*+)\}([^\s;&|(){}]{0,60})")
_BEFORE_A_WORD = lazy_regex(r".*[\s;&|(){}]", re.DOTALL)
_REDIRECTION = lazy_regex(r"(?:(?<![0-9])[0-9]++)?(?:<<<|<<-?|&>>?|>>|>&|>\||<&|<>|[<>])[ \t]*[^\s;&|<>()]*")
_DEEPEST = 3
UNKNOWN = "\uffff"
"""Placeholder for the result of an expansion."""


_MADE = r"(?:\$\(|`|\$\{!|\$\{\w+(?:\[[^\]]*\])?[:/^,@]|\$_\b)"
_MAKES = lazy_regex(
    rf"(?:^|[;&|\n({{!]|(?:then|do|else|elif|if|while|until|time|coproc|exec|command|env)[ \t])[ \t]*[\"']*{_MADE}"
    rf"|(?<![\w.-])(?:eval|source|xargs|(?:ba|da|z|k|a)?sh)[ \t][^\n]{{0,400}}?(?:\$|`)"
    r"|\|&?[ \t]*(?:[\w./-]{0,40}/)?(?:(?:ba|da|z|k|a)?sh|xargs)(?![\w.-])"
)


def may_make(text: str) -> bool:
    """Whether there is something in command position that the line builds at run time."""
    spend(len(text))
    return _MAKES.search(text) is not None


def forms(text: str) -> Iterator[str]:
    """The text without quotes, in the forms that whatever runs it may see."""
    spend(len(text) >> 1)
    text = text.replace(UNKNOWN, "")
    decoded = _ANSI.sub(lambda found: f" {decode(found[1])} ", text) if "$'" in text else text
    bare = _QUOTING.sub("", text)
    yield bare
    if decoded is not text:
        yield _QUOTING.sub("", _ANSI.sub(lambda found: decode(found[1]), text))
        yield _QUOTING.sub("", decoded)
    if _SIGN.search(text):
        yield _QUOTING.sub("", _SIGNS_IN_QUOTES.sub(lambda found: _SIGN.sub("_", found[0]), text))
    if "$" in bare or "`" in bare:
        yield from _expanded(bare)
    if "{" in bare and "," in bare:
        yield _with_choices(bare)
    if "<" in bare or ">" in bare:
        yield _REDIRECTION.sub(" ", bare)


def _with_choices(text: str) -> str:
    """`a{b,c}d` is `abd acd`."""
    at = 0
    parts: list[str] = []
    for braces in _BRACES.finditer(text):
        front = text[max(at, braces.start() - 60) : braces.start()]
        between = _BEFORE_A_WORD.match(front)
        before = front[between.end() :] if between else front
        parts += (
            text[at : braces.start() - len(before)],
            " ".join(f"{before}{one}{braces[2]}" for one in braces[1].split(",")),
        )
        at = braces.end()
    return "".join((*parts, text[at:]))


def _expanded(bare: str) -> Iterator[str]:
    values = {name: value for name, value in _ASSIGNMENT.findall(bare) if value}
    yield _VARIABLE.sub("", bare)
    if values:
        yield _VARIABLE.sub(lambda found: values.get(found[1] or found[2], UNKNOWN), bare)
    for _ in range(_DEEPEST):
        shorter = _INNERMOST.sub(UNKNOWN, bare)
        if shorter == bare:
            break
        bare = shorter
    yield bare
    yield bare.replace(UNKNOWN, "")


_OPTION = rf"-[^\s;&|]*+(?:[ \t]++[^-\s;&|{UNKNOWN}$`]++)?"
_NOTHING = rf"[^-\s;&|{UNKNOWN}$`]*+[{UNKNOWN}$`][^\s;&|]*+"
_BETWEEN = rf"(?:[ \t]++(?:{_OPTION}|{_NOTHING})){{0,16}}?[ \t]++"
"""Between two words of a rule: options and their values, and anything that may expand to nothing."""
_GUESS = rf"[\w./-]{{0,40}}(?:[{UNKNOWN}$`*?]|\[[^\]\s,]{{1,20}}\])[^\s;&|]*+"
_UNKNOWN = lazy_regex(rf"[{UNKNOWN}$`*?\[]")
_MOST_GUESSED = 4


def could_run(pattern: str, texts: Sequence[str]) -> bool:
    """Whether one of these forms contains the words of this rule."""
    searches = _searches(pattern)
    return any(
        all(part in text for part in needed) and (not guess or _UNKNOWN.search(text)) and expression.search(text)
        for text in texts
        for needed, guess, expression in searches
    )


@lru_cache(maxsize=2048)
def _searches(pattern: str) -> list[tuple[list[str], bool, "InOrder | re.Pattern[str]"]]:
    """The text that must be present, and the expression to search for if it is."""
    words = pattern.removesuffix(":*").split()
    if "*" in " ".join(words).rstrip("*"):
        chunks = [chunk.split() for chunk in pattern.removesuffix(":*").split("*") if chunk.strip()]
        spelt = [r"[ \t]+".join(map(re.escape, chunk)) for chunk in chunks]
        return [([word for chunk in chunks for word in chunk], False, InOrder(_FRONT, spelt, "", 2000))]
    needed = [word.rstrip("*") for word in words]
    ends = [
        re.escape(word) + (r"[^\s;&|]*" if word != whole else r"(?![\w.-])")
        for word, whole in zip(needed, words, strict=True)
    ]
    found: list[tuple[list[str], bool, InOrder | re.Pattern[str]]] = [(needed, False, _compiled(_BETWEEN.join(ends)))]
    for kept in range(len(words)) if 1 < len(words) <= _MOST_GUESSED else ():
        fixed = [at == kept or word.startswith("-") for at, word in enumerate(words)]
        line = [end if fix else f"(?:{end}|{_GUESS})" for end, fix in zip(ends, fixed, strict=True)]
        literal = [word for word, fix in zip(needed, fixed, strict=True) if fix]
        found.append((literal, True, _compiled(_BETWEEN.join(line))))
    return found


_FRONT = r"(?<![\w.-])"


def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(f"{_FRONT}{expression}")


class InOrder:
    """Searches one line for pieces that follow each other within a limited distance, in one pass per piece: a regular
    expression would try every combination of positions."""

    def __init__(self, front: str, pieces: Sequence[str], behind: str, distance: int) -> None:
        """`pieces` are expressions; `front` comes before the first, `behind` after the last."""
        whole = [*pieces]
        whole[0] = front + whole[0]
        whole[-1] += behind
        self._pieces = [re.compile(f"(?=({piece}))") for piece in whole]
        self._distance = distance

    def search(self, text: str) -> bool:
        return any(map(self._on_line, text.split("\n")))

    def _on_line(self, line: str) -> bool:
        first, *others = self._pieces
        ends = [found.end(1) for found in first.finditer(line)]
        for piece in others:
            reached: list[int] = []
            at = 0
            for found in piece.finditer(line):
                while at < len(ends) and ends[at] < found.start() - self._distance:
                    at += 1
                if at < len(ends) and ends[at] <= found.start():
                    reached.append(found.end(1))
            ends = reached
        return bool(ends)


_GIT = lazy_regex(r"\bgit\b")
_SUBCOMMAND = lazy_regex(r"\s([a-z][a-z-]+)\b")


def git_words(text: str) -> Iterator[str]:
    """The first word after each `git` that may be a subcommand."""
    word, done, end = _SUBCOMMAND.search(text), 0, -1
    for git in _GIT.finditer(text):
        at = git.end()
        if git.start() < done:
            continue
        if word is not None and word.start() < at:
            word = _SUBCOMMAND.search(text, at)
        if word is None:
            return
        if end < at:
            sign = _SIGN.search(text, at)
            end = len(text) if sign is None else sign.start()
        if word.start() <= end:
            done = word.end()
            yield word[1]
