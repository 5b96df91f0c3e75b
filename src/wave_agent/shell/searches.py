"""Commands that print paths, or pass on what they read: what the next stage of a pipeline gets."""

import re
from collections.abc import Iterator, Sequence

from wave_agent.shell.options import Options, has, read, value_of
from wave_agent.shell.values import Word

_FILTERS = frozenset({"cat", "egrep", "fgrep", "grep", "head", "sort", "tac", "tail", "tee", "uniq"})
_UNCHANGED = frozenset({"cat", "tee"})
_GREP = Options("eABCfmd", ("--regexp", "--include", "--exclude", "--exclude-dir", "--file"))


def handed_on(words: Sequence[Word], stdin: Word | None) -> Word | None:
    """What a command prints: the text, or the pattern of the paths; none if nothing is known of it."""
    places = list(_searched(words))
    if places:
        return Word(places[0].text, static=False, paths=tuple(place.pattern for place in places))
    name, operands = words[0].text, [word for word in words[1:] if not word.text.startswith("-")]
    if stdin is None or name not in _FILTERS or (name == "cat" and operands):
        return None
    return stdin if name in _UNCHANGED else Word(stdin.text, static=False, paths=stdin.paths)


def _searched(words: Sequence[Word]) -> Iterator[Word]:
    name = words[0].text
    if name == "find":
        yield from found(words)
    elif name in ("grep", "egrep", "fgrep"):
        yield from _grep(words)
    elif name == "ls":
        yield from (Word(word.text, word.static, word.glob) for word in words[1:] if word.glob or "/" in word.text)
    elif name == "git":
        yield from _git(words)
    elif name == "mktemp" and all(re.fullmatch("-[duq]+", word.text) for word in words[1:]):
        yield Word("/tmp", static=False, glob="/**/tmp.*")


_NAMES_ONLY = re.compile(
    r"--name-only|--name-status|--files-with(?:out)?-match(?:es)?|-[a-zA-Z]*[lL][a-zA-Z]*|--porcelain"
)
_LISTING = frozenset({"diff", "diff-files", "diff-index", "diff-tree", "grep", "log", "ls-tree", "show", "status"})


def _git(words: Sequence[Word]) -> Iterator[Word]:
    """Files of the work tree. A star of git's also stands for slashes."""
    texts = [word.text for word in words]
    if texts[1:2] == ["ls-files"]:
        below = [word for word in words[2:] if not word.text.startswith("-")]
    elif texts[1:2] and texts[1] in _LISTING and any(map(_NAMES_ONLY.fullmatch, texts)):
        below = list(words[texts.index("--") + 1 :]) if "--" in texts else []
    else:
        return
    for word in below or [Word(".")]:
        if "*" not in word.text:
            yield Word(word.text, glob=f"{word.text}/**")
        else:
            yield Word(word.text, glob=word.text)
            yield Word(word.text, glob=_below(Word("."), word))


def _grep(words: Sequence[Word]) -> Iterator[Word]:
    options, operands = read(words, _GREP, mixed=True)
    if not has(options, "-l", "-L", "--files-with-matches", "--files-without-match"):
        return
    roots = operands if has(options, "-e", "-f", "--regexp", "--file") else operands[1:]
    named = value_of(options, "--include")
    deep = has(options, "-r", "-R", "--recursive")
    for root in roots or [Word(".")]:
        yield Word(root.text, root.static, _below(root, named) if deep else root.glob)


def found(words: Sequence[Word]) -> list[Word]:
    """What `find` finds, one pattern for each directory that it starts at."""
    rest = list(words[1:])
    while rest and rest[0].text[:2] in ("-H", "-L", "-P", "-O"):
        rest.pop(0)
    end = next((at for at, word in enumerate(rest) if word.text[:1] in ("-", "(", "!")), len(rest))
    named = found_name(words)
    return [Word(start.text, start.static, _below(start, named)) for start in rest[:end] or [Word(".")]]


def found_name(words: Sequence[Word]) -> Word | None:
    """The one name that is searched for, if all that is found has it."""
    texts = [word.text for word in words]
    if {"!", "-not", "-o", "-or", ","} & set(texts):
        return None
    return next((words[at + 1] for at, text in enumerate(texts[:-1]) if text in ("-name", "-iname")), None)


def _below(start: Word, named: Word | None) -> str:
    """The name is a pattern, whether quoted or not, and its star also stands for a dot in front."""
    below = f"{start.pattern.rstrip('/')}/**"
    if named is None:
        return below
    return f"{below}/{named.text.replace('*', '**', 1) if named.text.startswith('*') else named.text}"
