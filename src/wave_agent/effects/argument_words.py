"""The words of a text that may be paths, in every form in which a program may read them."""

import re
from collections.abc import Iterable, Iterator

from wave_agent.effects.argument_texts import SHORT
from wave_agent.lazy_regex import lazy_regex

_LONGEST_PATH = 4096
_SEPARATORS = lazy_regex(r"[\s,;|<>()\[\]{}\"'`\u2018-\u201f]+")
_BLANKS = lazy_regex(r"[\s;|&<>()]+")
_QUOTES = lazy_regex(r"[\"'`\\]")
_LIKE_A_PATH = lazy_regex(r"[/.~\\]")
_REMOTE = lazy_regex(r"(?:https?|wss?):[/\\]*+[^/\\]", re.IGNORECASE)
"""The path of such a URL is none on this machine."""
_SCHEME = lazy_regex(r"[A-Za-z][A-Za-z0-9+.-]+:(?=[/\\])")
_FILE_URL = lazy_regex(r"file:[/\\]", re.IGNORECASE)
_OPTION = lazy_regex(r"-[A-Za-z](.+)")
_CUT = lazy_regex(r"[?#]|!/")


def path_words(text: str) -> Iterator[str]:
    """All of it, and each of its words."""
    whole = text.replace("\0", "").strip()
    short = len(whole) <= SHORT
    if 0 < len(whole) <= _LONGEST_PATH and "\n" not in whole:
        yield from spellings(whole)
    for word in _SEPARATORS.split(whole):
        if word and word != whole and (short or _LIKE_A_PATH.search(word)):
            yield from spellings(word)
    if _QUOTES.search(whole):  # to a shell, `.e''nv` and `\.env` are `.env`
        for word in _BLANKS.split(whole):
            plain = _QUOTES.sub("", word)
            if plain and plain != word and (short or _LIKE_A_PATH.search(plain)):
                yield from spellings(plain)


def spellings(word: str) -> Iterator[str]:
    """`--config=x`, `@x`, `-Fx`, `HEAD:x`, `x:12`, `x#L3`, `file:///x` and `a\\..\\x` all name x."""
    if len(word) > _LONGEST_PATH:
        return
    forms = dict.fromkeys(_of_one(word))
    if cut := _CUT.search(word):
        forms |= dict.fromkeys(_of_one(word[: cut.start()]))
    if "\\" in word:
        forms |= dict.fromkeys(_of_one(word.replace("\\", "/")))
    yield from (form for form in forms if form)


def _of_one(word: str) -> Iterator[str]:
    if url := _FILE_URL.search(word):
        yield from _of_url(word[url.start() + len("file:") :])
        return
    if _REMOTE.match(word):
        return
    if scheme := _SCHEME.match(word):
        yield from _of_url(word[scheme.end() :])
        return
    plain = word.strip("\"'`").removeprefix("@")
    forms = [plain]
    if "=" in plain:
        forms.append(plain.partition("=")[2])
    if option := _OPTION.fullmatch(plain):
        forms.append(option[1])
    forms += [part for form in tuple(forms) if ":" in form for part in _around_colons(form)]
    yield from forms


def _of_url(rest: str) -> Iterator[str]:
    """What follows the scheme. What looks like a host may be the first name of a path, and a path may be relative."""
    path = _CUT.split(rest, maxsplit=1)[0].replace("\\", "/")
    if not path.startswith("//"):
        yield path
        return
    inside = path[2:]
    authority, _, below = inside.partition("/")
    yield f"/{below}"
    yield below.lstrip("/") if not authority else inside


def _around_colons(word: str) -> Iterable[str]:
    """Of `rev:path`, `path:line:column` and `:(top)path`."""
    first, _, rest = word.partition(":")
    return (first, rest, word.rpartition(":")[0], word.rpartition(":")[2], rest.rpartition(")")[2])
