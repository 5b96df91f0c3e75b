"""Commands that print paths or pass on their input: what the next stage of a pipeline gets."""

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.listed_names import passes_on_lines, prints_names_only
from wave_agent.shell.options import Option, OptionTable, has, read, values_of
from wave_agent.shell.patterns import glob_pattern
from wave_agent.shell.printing import printed
from wave_agent.shell.values import Word

_FILTERS = frozenset({"cat", "egrep", "fgrep", "grep", "head", "sort", "tac", "tail", "tee", "uniq"})
_UNCHANGED = frozenset({"cat", "tee"})
_GREP = OptionTable(
    "eABCfmd",
    ("--regexp", "--include", "--exclude", "--exclude-dir", "--exclude-from", "--file", "--label", "--max-count"),
)


def handed_on(words: Sequence[Word], stdin: Word | None) -> Word | None:
    """What a command prints: the text, or the pattern of the paths; None if unknown."""
    places = list(_searched(words))
    if places:
        paths = tuple(place.pattern for place in places)
        return Word(places[0].text, static=False, paths=paths, exact=prints_names_only(words))
    if (expanded := _expanded(words)) is not None:
        return expanded
    name, operands = words[0].text, [word for word in words[1:] if not word.text.startswith("-")]
    if stdin is None or name not in _FILTERS or (name == "cat" and operands):
        return None
    exact = stdin.exact and passes_on_lines(words)
    if name in _UNCHANGED:
        return replace(stdin, exact=exact)
    return Word(stdin.text, static=False, paths=stdin.paths, exact=exact)


def _expanded(words: Sequence[Word]) -> Word | None:
    """`echo *.log`: names of files, where the pattern stands in the output."""
    if all(word.glob is None for word in words) or not all(word.static for word in words):
        return None
    text = printed(tuple(Word(word.text) for word in words))
    patterns = printed(tuple(Word(word.pattern) for word in words))
    if text is None or patterns is None:
        return None
    exact = _ONE_BY_ONE.fullmatch(" ".join(word.text for word in words[:2])) is not None
    return Word(text, static=False, paths=tuple(dict.fromkeys(filter(None, _BETWEEN.split(patterns)))), exact=exact)


_BETWEEN = lazy_regex(r"[\s\0]+")
_ONE_BY_ONE = lazy_regex(r"echo [^-\\].*|printf %s(?:\\[n0]|\n)", re.DOTALL)
"""What prints its operands as they are, with something between them."""


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
    elif name in ("fd", "fdfind"):
        yield from searched_by_fd(words)
    elif name == "rg" and any(map(_LISTS_FILES.fullmatch, (word.text for word in words))):
        hidden = any(map(_SHOWS_HIDDEN.match, (word.text for word in words)))
        yield from _shown([*words[1:], Word(".")], hidden=hidden)
    elif name == "mktemp" and all(re.fullmatch("-[duq]+", word.text) for word in words[1:]):
        yield Word("/tmp", static=False, glob=MADE_SOMEWHERE)


MADE_SOMEWHERE = "/**/tmp.*"
"""What `mktemp` prints: one name, which nothing splits."""


_NAMES_ONLY = lazy_regex(
    r"--name-only|--name-status|--files-with(?:out)?-match(?:es)?|-[a-zA-Z]*[lL][a-zA-Z]*|--porcelain"
)
_LISTING = frozenset({"diff", "diff-files", "diff-index", "diff-tree", "grep", "log", "ls-tree", "show", "status"})


def _git(words: Sequence[Word]) -> Iterator[Word]:
    """Files of the work tree. In git, a star also matches slashes."""
    texts = [word.text for word in words]
    if texts[1:2] == ["ls-files"]:
        below = [word for word in words[2:] if not word.text.startswith("-")]
    elif texts[1:2] and texts[1] in _LISTING and any(map(_NAMES_ONLY.fullmatch, texts)):
        below = list(words[texts.index("--") + 1 :]) if "--" in texts else []
    else:
        return
    for word in below or [Word(".")]:
        if "*" not in word.text:
            yield from _tree(word, without_git=True)
        else:
            yield Word(word.text, glob=word.text)
            yield Word(word.text, glob=_below(Word("."), word))


def _grep(words: Sequence[Word]) -> Iterator[Word]:
    options, operands = read(words, _GREP, mixed=True)
    if not has(options, "-l", "-L", "--files-with-matches", "--files-without-match"):
        return
    roots = operands if has(options, "-e", "-f", "--regexp", "--file") else operands[1:]
    named = _included(options)
    deep = has(options, "-r", "-R", "--recursive", "--dereference-recursive")
    follows = has(options, "-R", "--dereference-recursive")
    without_git = not follows and any(value.text == _GIT for value in values_of(options, "--exclude-dir"))
    for root in roots or [Word(".")]:
        if deep and not named:
            yield from _tree(root, without_git=without_git)
        else:
            yield from (Word(root.text, root.static, _below(root, name)) for name in named if deep)
            yield from [Word(root.text, root.static, root.glob)] if not deep or root.text.strip("./") else []


def _included(options: Sequence[Option]) -> list[Word]:
    """The names that `--include` names, if it comes first: then files that match none are left out."""
    given = [one for one in options if one.name.startswith(("--inc", "--exclude")) and one.name != "--exclude-dir"]
    return values_of(given, "--include") if given and given[0].name.startswith("--inc") else []


_LISTS_FILES = lazy_regex(r"--files(?:-with(?:out)?-match(?:es)?)?|-[a-zA-Z]*l[a-zA-Z]*")
_SHOWS_HIDDEN = lazy_regex(r"-[a-zA-Z]*[.uHg]|--(?:hidden|unrestricted|i?glob|no-ignore|type-add|ignore-file)")


def searched_by_fd(words: Sequence[Word]) -> Iterator[Word]:
    """The results of `fd`. Which of its words is a place, and which the value of an option, is not told apart."""
    own = words[1 : next((at for at, word in enumerate(words) if _EXECUTES.match(word.text)), len(words))]
    yield from _shown([*own, Word(".")], hidden=any(map(_SHOWS_HIDDEN.match, (word.text for word in own))))


_EXECUTES = lazy_regex(r"-[xX]|--ex")


def _shown(places: Sequence[Word], *, hidden: bool) -> Iterator[Word]:
    """Files below those of the words that can be places: all of them, or those that are not hidden."""
    for word in places:
        if word.text in (".", "..") or "/" in word.text.rstrip("/") or word.text.endswith("/"):
            yield Word(word.text, word.static, f"{word.pattern.rstrip('/')}/**{'' if hidden else '/[!.]*'}")


def found(words: Sequence[Word]) -> list[Word]:
    """The results of `find`: patterns for each directory that it starts from."""
    places, tests = _places(words)
    follows = any(word.text in ("-L", "-H", "-follow") for word in words[1:])
    named = found_name(words)
    if named is not None:
        return [Word(start.text, start.static, _below(start, named)) for start in places]
    texts = [word.text for word in tests]
    return [
        place for start in places for place in _tree(start, without_git=not follows and _leaves_git(texts, start.text))
    ]


def starts(words: Sequence[Word]) -> Sequence[Word]:
    """Where `find` starts."""
    return _places(words)[0]


def _places(words: Sequence[Word]) -> tuple[Sequence[Word], Sequence[Word]]:
    """Where it starts, and the rest of its words."""
    rest = list(words[1:])
    while rest and rest[0].text[:2] in ("-H", "-L", "-P", "-O"):
        rest.pop(0)
    end = next((at for at, word in enumerate(rest) if word.text[:1] in ("-", "(", "!")), len(rest))
    return rest[:end] or [Word(".")], rest[end:]


_GIT = ".git"
_OR = frozenset({"-o", "-or", ","})
_NOT = ("!", "-not")
_PATHS = ("-path", "-wholename")
_ACTS = ("-exec", "-ok", "-delete", "-print", "-fprint", "-fls", "-ls", "-prune", "-quit")


def _tests(texts: Sequence[str]) -> Sequence[str]:
    """The tests before the first action: a later test has no effect on it."""
    return texts[: next((at for at, text in enumerate(texts) if text.startswith(_ACTS)), len(texts))]


def _leaves_git(texts: Sequence[str], start: str) -> bool:
    """`-path ./.git -prune -o …`, `… -not -path './.git/*' …`: nothing in a repository's own directory is found."""
    here = ("./.git",) if start == "." else ()
    itself = {("-name", _GIT), *((test, path) for test in _PATHS for path in ("*/.git", *here))}
    inside = ("*/.git/*", "*/.git*", *(f"{one}{end}" for one in here for end in ("*", "/*")))
    pruned = False
    while list(texts[2:4]) == ["-prune", "-o"]:
        pruned |= (texts[0], texts[1]) in itself
        texts = texts[4:]
    if _OR & set(texts) or {"(", ")", "\\(", "\\)"} & set(texts):
        return False
    tests = ["", *_tests(texts)]
    places = range(2, len(tests) - 1)
    return pruned or any(
        tests[at - 1] in _NOT and tests[at - 2] not in _NOT and tests[at] in _PATHS and tests[at + 1] in inside
        for at in places
    )


def _tree(start: Word, *, without_git: bool) -> list[Word]:
    """Everything below. `.git` is excluded with patterns for every other name."""
    base = start.pattern.rstrip("/")
    if not without_git:
        return [Word(start.text, start.static, f"{base}/**")]
    names = ("[!.]*", ".[!g]*", ".g[!i]*", ".gi[!t]*", ".git?*")
    return [Word(start.text, start.static, f"{base}/{name}{below}") for name in names for below in ("", "/**")]


def found_name(words: Sequence[Word]) -> Word | None:
    """The one name that is searched for, if all results have it."""
    words = _without_pruned(words)
    texts = [word.text for word in words]
    negated = (texts[at + 1] not in _PATHS for at, text in enumerate(texts[:-1]) if text in _NOT)
    if _OR & set(texts) or any(negated):
        return None
    tests = _tests(texts)
    at = next((at for at, text in enumerate(tests[:-1]) if text in ("-name", "-iname")), None)
    if at is None:
        return None
    return words[at + 1] if tests[at] == "-name" else _any_case(words[at + 1])


def _without_pruned(words: Sequence[Word]) -> Sequence[Word]:
    """Without `-path X -prune -o` at the start, if what follows says what to do with the results."""
    texts = [word.text for word in words]
    at = next((at for at, text in enumerate(texts) if text in ("-name", *_PATHS)), len(texts))
    if texts[at + 2 : at + 4] != ["-prune", "-o"] or not any(text.startswith(_SHOWS) for text in texts[at + 4 :]):
        return words
    return _without_pruned((*words[:at], *words[at + 4 :]))


_SHOWS = ("-print", "-exec", "-ok", "-ls", "-fprint")


def _any_case(word: Word) -> Word | None:
    """The pattern of a name in capitals or not."""
    if "[" in word.text or "\\" in word.text:
        return None
    text = "".join(f"[{one.lower()}{one.upper()}]" if one.isalpha() else one for one in word.text)
    return Word(text, word.static, text)


def _below(start: Word, named: Word) -> str:
    return f"{start.pattern.rstrip('/')}/**/{as_name(named)}"


def as_name(named: Word) -> str:
    """The name is a pattern, quoted or not, and also matches at a leading dot."""
    return _FIRST.sub("**", glob_pattern([(named.text, False, True)]))


_FIRST = lazy_regex(r"\A(?:\*|\?|\[(?![a-zA-Z]+\])\]?[^\]]*\])\**")
"""A wildcard at the start of a name."""
