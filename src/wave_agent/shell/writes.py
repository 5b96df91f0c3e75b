"""Commands that write, move or remove files: which of their words are the paths."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import basename

from msgspec import Struct

from wave_agent.shell.options import Option, Options, has, read, value_of
from wave_agent.shell.values import Reach, Word, Write
from wave_agent.shell.searches import found
from wave_agent.shell.wrappers import GIT


class Target(Struct, frozen=True):
    """A word that names a path which is written, and the directory that it is relative to, if not the current one."""

    word: Word
    reach: Reach = Reach.FILE
    names: tuple[str, ...] = ()
    below: Word | None = None
    upwards: bool = False
    """It is searched in the directories around as well."""

    def write(self, pattern: str) -> Write:
        return Write(pattern, self.reach, self.names)


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
        names = tuple(basename(word.pattern) or "*" for word in sources)
        yield Target(target, Reach.TREE if whole else self.reach, names)
        # `cp -r a/. b` puts what is in `a` into `b`.
        if any(word.text.endswith(("/.", "/..")) or word.text in (".", "..") for word in sources):
            yield Target(target, Reach.INSIDE)


def _link(words: Sequence[Word]) -> Iterator[Target]:
    _, operands = read(words, _COPY, mixed=True)
    if len(operands) == 1:
        yield Target(Word(basename(operands[0].text), operands[0].static), Reach.TREE)
    yield from _Into(Reach.TREE)(words)


def _rsync(words: Sequence[Word]) -> Iterator[Target]:
    _, operands = read(
        words, Options("eTfB", ("--rsh", "--exclude", "--include", "--filter", "--files-from")), mixed=True
    )
    if len(operands) > 1:
        names = tuple(basename(word.pattern) for word in operands[:-1] if not word.text.endswith("/"))
        yield Target(operands[-1], Reach.INSIDE)
        yield Target(operands[-1], Reach.TREE, names or ("*",))


# ------------------------------------------------------------------------------------------- an option says where it is


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


# ------------------------------------------------------------------------------------------------------------------ git

_CONFIG = Options("f", ("--file", "--blob", "--type", "--default", "--value", "--comment"))
_READING = ("--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "--get-color", "--get-colorbool")
_CONFIG_FILES = {"--global": ("~/.gitconfig", "~/.config/git/config"), "--system": ("/etc/gitconfig",)}


def _git(words: Sequence[Word]) -> Iterator[Target]:
    options, operands = read(words, GIT)
    if not operands:
        return
    below = value_of(options, "-C")
    name = operands[0].text
    if name == "config":
        yield from _git_config(operands, below, value_of(options, "--git-dir"))
    elif name in _GIT_CONFIGURES and len(operands) > 1 and operands[1].text in _GIT_CONFIGURES[name]:
        yield Target(Word(".git/config"), below=below)
    elif name in ("rm", "mv", "restore"):
        _, paths = read(operands, Options("s", ("--source", "--pathspec-from-file")), mixed=True)
        yield from (Target(word, Reach.TREE, below=below) for word in paths)
    elif name == "checkout" and "--" in (texts := [word.text for word in operands]):
        yield from (Target(word, Reach.TREE, below=below) for word in operands[texts.index("--") + 1 :])


_GIT_CONFIGURES = {"remote": ("add", "remove", "rm", "rename", "set-url", "set-branches", "set-head")}


def _git_config(operands: Sequence[Word], below: Word | None, git_dir: Word | None) -> Iterator[Target]:
    options, rest = read(operands, _CONFIG, mixed=True)
    texts = [word.text for word in rest]
    if has(options, *_READING) or texts[:1] in (["get"], ["list"]):
        return
    changes = has(options, "--add", "--unset", "--unset-all", "--replace-all", "-e", "--edit") or has(
        options, "--rename-section", "--remove-section"
    )
    if not changes and len(rest) < 2:
        return
    if file := value_of(options, "-f", "--file"):
        yield Target(file, below=below)
        return
    files = [file for option in options for file in _CONFIG_FILES.get(option.name, ())]
    yield from (Target(Word(file, glob=file)) for file in files)
    if git_dir is not None:
        yield Target(Word(f"{git_dir.text}/config", git_dir.static), below=below)
    elif not files:
        yield Target(Word(".git/config"), below=below)


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
    "cp": _Into(),
    "install": _Into(),
    "mv": _Into(Reach.TREE, moves=True),
    "ln": _link,
    "rsync": _rsync,
    "dd": _dd,
    "sed": _Each(_SED, only=("-i", "--in-place")),
    "perl": _Each(Options("eEIMmF"), only=("-i",)),
    "ruby": _Each(Options("eIr"), only=("-i",)),
    **dict.fromkeys(("ed", "ex", "vi", "vim", "nvim", "nano", "emacs"), _Each(_EDITOR)),
    "patch": _patch,
    "tar": _tar,
    "bsdtar": _tar,
    "unzip": _unzip,
    "curl": _curl,
    "wget": _wget,
    "find": _find,
    "git": _git,
}
