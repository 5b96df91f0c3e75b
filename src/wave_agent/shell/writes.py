"""Commands that write, move or remove files: which of their words are the paths."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import basename, dirname

from msgspec import Struct

from wave_agent.shell.git import git_targets
from wave_agent.shell.options import Option, Options, has, read, value_of
from wave_agent.shell.searches import found
from wave_agent.shell.targets import Target
from wave_agent.shell.values import Reach, Word


def targets(words: Sequence[Word]) -> Iterator[Target]:
    """What this command visibly writes to."""
    writer = WRITERS.get(words[0].text) if words else None
    if writer is not None:
        yield from writer(words)


# ---------------------------------------------------------------------------------------------- every operand is a path


_MODE = re.compile(r"-[rwxXstugoa][rwxXstugoa,+=-]*")


def _mode(words: Sequence[Word]) -> Iterator[Target]:
    """Rights that are taken away look like options: `chmod -x FILE`. Those of a directory count for what is in it."""
    plain = [Word(f"a{word.text}") if _MODE.fullmatch(word.text) else word for word in words]
    yield from _Each(skip=1, reach=Reach.TREE, unless=("--reference",))(plain)


class _Each(Struct, frozen=True):
    options: Options = Options()
    skip: int = 0
    """Operands in front that are no paths: a mode, an owner."""
    reach: Reach = Reach.FILE
    only: tuple[str, ...] = ()
    """Nothing is written without one of these options."""
    unless: tuple[str, ...] = ()
    """One of these options takes the place of what is skipped."""

    def __call__(self, words: Sequence[Word]) -> Iterator[Target]:
        options, operands = read(words, self.options, mixed=True)
        if self.only and not has(options, *self.only):
            return
        skip = 0 if has(options, *self.unless) else self.skip
        reach = Reach.TREE if has(options, "-R", "--recursive") else self.reach
        yield from (Target(word, reach) for word in operands[skip:])


_SED = Options("efl", ("--expression", "--file", "--line-length"))
_EDITOR = Options("cSuUiTtwW", ("--cmd",))


# ---------------------------------------------------------------------------------------------- the last operand is one

_COPY = Options("tSmogZ", ("--target-directory", "--suffix", "--mode", "--owner", "--group"))


class _Into(Struct, frozen=True):
    reach: Reach = Reach.FILE
    moves: bool = False
    """The sources are gone afterwards."""

    def __call__(self, words: Sequence[Word]) -> Iterator[Target]:
        options, operands = read(words, _COPY, mixed=True)
        target = value_of(options, "-t", "--target-directory")
        sources = operands if target is not None else operands[:-1]
        if target is None and len(operands) > 1:
            target = operands[-1]
        if target is not None:
            yield from self._destination(target, sources, options)
        if self.moves:
            yield from (Target(word, Reach.TREE) for word in sources)

    def _destination(self, target: Word, sources: Sequence[Word], options: Sequence[Option]) -> Iterator[Target]:
        whole = has(options, "-r", "-R", "-a", "--recursive", "--archive")
        whole_path = has(options, "--parents")
        names = tuple((word.pattern if whole_path else basename(word.pattern)) or "*" for word in sources)
        yield Target(target, Reach.TREE if whole else self.reach, names)
        # `cp -r a/. b` puts what is in `a` into `b`.
        if any(word.text.endswith(("/.", "/..")) or word.text in (".", "..") for word in sources):
            yield Target(target, Reach.INSIDE)


def _link(words: Sequence[Word]) -> Iterator[Target]:
    """By another name a file can be written as well, so that what is linked to counts."""
    options, operands = read(words, _COPY, mixed=True)
    if len(operands) == 1:
        yield Target(Word(basename(operands[0].text), operands[0].static), Reach.TREE)
    yield from _Into(Reach.TREE)(words)
    into = value_of(options, "-t", "--target-directory")
    sources = operands if into is not None or len(operands) == 1 else operands[:-1]
    places = [into, None] if into is not None else [*operands[-1:], *map(_parent, operands[-1:]), None]
    yield from (Target(word, Reach.TREE, below=place) for word in sources for place in places)


def _parent(word: Word) -> Word:
    return Word(dirname(word.text) or ".")


def _copy(words: Sequence[Word]) -> Iterator[Target]:
    options, _ = read(words, _COPY, mixed=True)
    yield from _Into()(words)
    if has(options, "-l", "-s", "--link", "--symbolic-link"):
        yield from _link(words)


def _rsync(words: Sequence[Word]) -> Iterator[Target]:
    _, operands = read(
        words, Options("eTfB", ("--rsh", "--exclude", "--include", "--filter", "--files-from")), mixed=True
    )
    if len(operands) > 1:
        names = tuple(basename(word.pattern) for word in operands[:-1] if not word.text.endswith("/"))
        yield Target(operands[-1], Reach.INSIDE)
        yield Target(operands[-1], Reach.TREE, names or ("*",))


def _secure_copy(words: Sequence[Word]) -> Iterator[Target]:
    _, operands = read(words, Options("cDFiJloPSX"), mixed=True)
    names = tuple(basename(word.pattern) for word in operands[:-1])
    yield from (Target(word, Reach.TREE, names) for word in operands[1:][-1:] if ":" not in word.text)


def _second(words: Sequence[Word]) -> Iterator[Target]:
    """`uniq IN OUT`"""
    _, operands = read(words, Options("fsw", ("--skip-fields", "--skip-chars", "--check-chars")), mixed=True)
    yield from map(Target, operands[1:2])


# ------------------------------------------------------------------------------------------- an option says where it is


class _Option(Struct, frozen=True):
    """The value of an option, however it is attached: `-o FILE`, `-oFILE`, `--output=FILE`."""

    names: tuple[str, ...]
    prefix: bool = False
    """The names of the files only begin with it."""

    def __call__(self, words: Sequence[Word]) -> Iterator[Target]:
        for at, word in enumerate(words[1:], 1):
            for name in self.names:
                if word.text == name:
                    yield from map(self._target, words[at + 1 : at + 2])
                elif word.text.startswith(name) and (len(name) == 2 or word.text[len(name)] == "="):
                    yield self._target(_after(word, len(name)))

    def _target(self, word: Word) -> Target:
        return Target(Word(word.text, word.static, f"{word.pattern}*")) if self.prefix else Target(word)


def _after(word: Word, length: int) -> Word:
    """What is attached to an option."""
    cut = length + (word.text[length : length + 1] == "=")
    return Word(word.text[cut:], word.static, word.glob and word.glob[cut:])


def _split(words: Sequence[Word]) -> Iterator[Target]:
    _, operands = read(words, Options("abClnt", ("--bytes", "--lines", "--number", "--filter")), mixed=True)
    yield from (Target(Word(word.text, word.static, f"{word.pattern}*")) for word in operands[1:2])


def _sed(words: Sequence[Word]) -> Iterator[Target]:
    """Its files, if they are changed in place; and those that its script writes to."""
    yield from _Each(_SED, only=("-i", "--in-place"))(words)
    options, operands = read(words, _SED, mixed=True)
    given = [option.value for option in options if option.name in ("-e", "--expression") and option.value]
    for script in given or operands[:1]:
        yield from (Target(Word(file.strip(), script.static)) for file in _SED_WRITES.findall(script.text))


_SED_WRITES = re.compile(r"[wW][ \t]+([^\n]+)")


def _editor(words: Sequence[Word]) -> Iterator[Target]:
    yield from _Each(_EDITOR)(words)
    for word in words[1:]:
        yield from (Target(Word(file)) for file in _EDITOR_WRITES.findall(word.text))


_EDITOR_WRITES = re.compile(r"\b(?:w|wr|write|sav|saveas|wq|x|up|update)!?[ \t]+(?:>>[ \t]*)?([^\n|]+)")


def _history(words: Sequence[Word]) -> Iterator[Target]:
    options, operands = read(words, Options("d"), mixed=True)
    if has(options, "-w", "-a"):
        yield from map(Target, operands)


def _compress(words: Sequence[Word]) -> Iterator[Target]:
    """The file is replaced by another one of almost the same name."""
    options, operands = read(words, Options("STb", ("--suffix", "--threads")), mixed=True)
    if not has(options, "-c", "-t", "-l", "--stdout", "--to-stdout", "--test", "--list"):
        for word in operands:
            yield Target(word)
            yield Target(Word(re.sub(r"\.(?:gz|xz|bz2|zst|lzma|Z)$", "", word.text), word.static))


def _dd(words: Sequence[Word]) -> Iterator[Target]:
    for word in words[1:]:
        if word.text.startswith("of="):
            yield Target(Word(word.text[3:], word.static, word.glob and word.glob[3:]))


def _tar(words: Sequence[Word]) -> Iterator[Target]:
    """The files in an archive are not to be seen, the directory is; so is the archive that is written."""
    listed = list(words)
    if len(listed) > 1 and re.fullmatch("[A-Za-z]+", listed[1].text):
        listed[1] = Word(f"-{listed[1].text}")  # the old way: `tar xf a.tar`
    options, operands = read(listed, Options("fCTXbgHKLNV", ("--file", "--directory")), mixed=True)
    if has(options, "-x", "--extract", "--get"):
        below = value_of(options, "-C", "--directory")
        yield Target(below or Word("."), Reach.INSIDE)
        yield from (Target(word, Reach.TREE, below=below) for word in operands)
    elif has(options, "-c", "-r", "-u", "--create", "--append") and (archive := value_of(options, "-f", "--file")):
        yield Target(archive)


def _unzip(words: Sequence[Word]) -> Iterator[Target]:
    options, _operands = read(words, Options("dPx"), mixed=True)
    if not has(options, "-l", "-t", "-p", "-Z"):
        yield Target(value_of(options, "-d") or Word("."), Reach.INSIDE)


_CURL = Options(
    "AbCcdDeEFhHKmoPQrTtuUwxXYyz", ("--output", "--output-dir", "--header", "--data", "--request", "--user")
)


def _curl(words: Sequence[Word]) -> Iterator[Target]:
    options, operands = read(words, _CURL, mixed=True)
    below = value_of(options, "--output-dir")
    for option in options:
        if option.name in ("-o", "--output", "-c", "--cookie-jar", "-D", "--dump-header") and option.value:
            yield Target(option.value, below=below)
    if has(options, "-O", "--remote-name", "--remote-name-all"):
        yield from (Target(_last_part(word), below=below) for word in operands)


def _wget(words: Sequence[Word]) -> Iterator[Target]:
    options, operands = read(words, Options("oOaPieBtTwQUl", ("--output-document", "--directory-prefix")), mixed=True)
    below = value_of(options, "-P", "--directory-prefix")
    for option in options:
        if option.name in ("-O", "--output-document", "-o", "--output-file", "-a") and option.value:
            yield Target(option.value)
    yield from (Target(_last_part(word), below=below) for word in operands)


def _last_part(url: Word) -> Word:
    return Word(basename(url.text.split("?", 1)[0].split("#", 1)[0]), url.static)


def _patch(words: Sequence[Word]) -> Iterator[Target]:
    """Without an operand it is the patch that names the files, and that is not to be seen."""
    options, operands = read(
        words, Options("BdDFgioprVYz", ("--directory", "--input", "--output", "--strip")), mixed=True
    )
    below = value_of(options, "-d", "--directory")
    written = value_of(options, "-o", "--output")
    yield from (Target(word, below=below) for word in [*operands[:1], *([written] if written else [])])


def _find(words: Sequence[Word]) -> Iterator[Target]:
    texts = [word.text for word in words]
    if "-delete" in texts:
        yield from (Target(word, Reach.TREE) for word in found(words))
    for at, text in enumerate(texts[:-1]):
        if text in ("-fprint", "-fprint0", "-fprintf", "-fls"):
            yield Target(words[at + 1])


WRITERS: Mapping[str, Callable[[Sequence[Word]], Iterator[Target]]] = {
    **dict.fromkeys(("tee", "touch", "rmdir", "unlink", "mkdir", "mkfifo", "sponge"), _Each(Options("rdmtA"))),
    "truncate": _Each(Options("rs", ("--size", "--reference"))),
    "shred": _Each(Options("ns", ("--iterations", "--size"))),
    "rm": _Each(reach=Reach.TREE),
    "chmod": _mode,
    "chown": _Each(skip=1, reach=Reach.TREE, unless=("--reference",)),
    "chgrp": _Each(skip=1, reach=Reach.TREE, unless=("--reference",)),
    "chattr": _Each(skip=1),
    "setfacl": _Each(Options("mxMX")),
    "cp": _copy,
    "scp": _secure_copy,
    "install": _Into(),
    "mv": _Into(Reach.TREE, moves=True),
    "ln": _link,
    "rsync": _rsync,
    "dd": _dd,
    "sed": _sed,
    "sort": _Option(("-o", "--output")),
    "uniq": _second,
    "split": _split,
    "csplit": _Option(("-f", "--prefix"), prefix=True),
    **dict.fromkeys(
        ("gzip", "gunzip", "xz", "unxz", "bzip2", "bunzip2", "zstd", "unzstd", "lzma", "uncompress", "compress"),
        _compress,
    ),
    "script": _Each(Options("cEIOBTmo", ("--command", "--echo"))),
    **dict.fromkeys(("cc", "gcc", "g++", "c++", "clang", "clang++", "ld", "as", "go", "rustc"), _Option(("-o",))),
    **dict.fromkeys(("pandoc", "jq", "dot", "protoc", "objcopy"), _Option(("-o", "--output"))),
    "openssl": _Option(("-out", "-keyout")),
    "ssh-keygen": _Option(("-f",)),
    "history": _history,
    "perl": _Each(Options("eEIMmF"), only=("-i",)),
    "ruby": _Each(Options("eIr"), only=("-i",)),
    **dict.fromkeys(("ed", "nano", "emacs"), _Each(_EDITOR)),
    **dict.fromkeys(("ex", "vi", "vim", "nvim"), _editor),
    "patch": _patch,
    "tar": _tar,
    "bsdtar": _tar,
    "unzip": _unzip,
    "curl": _curl,
    "wget": _wget,
    "find": _find,
    "git": git_targets,
}
