"""Commands that write, move or remove files: which of their words are the paths."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from posixpath import basename, dirname

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.carriers import unbundled
from wave_agent.shell.git import git_targets, users_settings
from wave_agent.shell.options import Option, OptionTable, has, read, says, several, value_of, values_of
from wave_agent.shell.readers import named
from wave_agent.shell.searches import found
from wave_agent.shell.targets import Target
from wave_agent.shell.values import Reach, Word


def targets(words: Sequence[Word]) -> Iterator[Target]:
    """What this command visibly writes to; for an unknown command, every path passed to it."""
    if not words:
        return
    writer = WRITERS.get(words[0].text)
    yield from named(words) if writer is None else writer(words)


# ---------------------------------------------------------------------------------------------- every operand is a path


_MODE = lazy_regex(r"-[rwxXstugoa][rwxXstugoa,+=-]*")


_GIVES = lazy_regex(r"[ugoa]*\+[rwX]+(?:,[ugoa]*\+[rwX]+)*")
"""Permissions that neither make a file executable nor stop it from being so."""


def _mode(words: Sequence[Word]) -> Iterator[Target]:
    """Removed permissions look like options: `chmod -x FILE`. Those of a directory affect everything in it. Granting
    only read or write access, even to a whole project, changes no guard."""
    plain = [Word(f"a{word.text}") if _MODE.fullmatch(word.text) else word for word in words]
    found = _Each(skip=1, reach=Reach.TREE, unless=("--reference",), existing=_always)(plain)
    _, operands = read(plain, OptionTable(), mixed=True)
    gives = bool(operands) and operands[0].static and _GIVES.fullmatch(operands[0].text) is not None
    for target in found:
        yield from _by_name(target.word) if gives else (target,)


def _by_name(word: Word) -> Iterator[Target]:
    yield Target(word, Reach.NAMED)
    yield Target(word, Reach.FILE)


def _always(_: Sequence[Option]) -> bool:
    return True


def _never(_: Sequence[Option]) -> bool:
    return False


def _makes_none(options: Sequence[Option]) -> bool:
    return says(options, "-c", "--no-create")


class _Each(Struct, frozen=True):
    options: OptionTable = OptionTable()
    skip: int = 0
    """Leading operands that are not paths: a mode, an owner."""
    reach: Reach = Reach.FILE
    only: tuple[str, ...] = ()
    """Nothing is written without one of these options."""
    unless: tuple[str, ...] = ()
    """One of these options replaces the skipped operands."""
    existing: Callable[[Sequence[Option]], bool] = _never
    """With these options it creates no file."""
    removes: bool = False

    def __call__(self, words: Sequence[Word]) -> Iterator[Target]:
        options, operands = read(words, self.options, mixed=True)
        if self.only and not has(options, *self.only):
            return
        skip = 0 if has(options, *self.unless) else self.skip
        reach = Reach.TREE if has(options, "-R", "--recursive") else self.reach
        existing = self.existing(options)
        named = several(operands) if skip else operands
        yield from (Target(word, reach, existing=existing, removes=self.removes) for word in named[skip:])


_SED = OptionTable("efl", ("--expression", "--file", "--line-length"), attached="i")
_EDITOR = OptionTable("cSuUiTtwW", ("--cmd",))


# ---------------------------------------------------------------------------------------------- the last operand is one

_COPY = OptionTable("tSmog", ("--target-directory", "--suffix", "--mode", "--owner", "--group"))


class _Into(Struct, frozen=True):
    reach: Reach = Reach.FILE
    moves: bool = False
    """The sources are removed afterwards."""

    def __call__(self, words: Sequence[Word]) -> Iterator[Target]:
        options, named = read(words, _COPY, mixed=True)
        operands = several(named)
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
        # `cp -r a/. b` and `cp -rT a b` put the content of `a` into `b`.
        inside = any(word.text.endswith(("/.", "/..")) or word.text in (".", "..") for word in sources)
        # `cp --parents a/../b c` makes the directory `c/a`.
        inside |= whole_path and any(".." in word.text for word in sources)
        if inside or has(options, "-T", "--no-target-directory"):
            yield Target(target, Reach.TREE if whole else Reach.INSIDE)


def _link(words: Sequence[Word]) -> Iterator[Target]:
    """A file can also be written through another name, so the link's target is included."""
    options, named = read(words, _COPY, mixed=True)
    operands = several(named)
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


_RSYNC_FILES = (
    "--log-file",
    "--write-batch",
    "--only-write-batch",
    "--backup-dir",
    "--partial-dir",
    "--temp-dir",
    "-T",
)
_RSYNC = OptionTable(
    "eTfBM", (*_RSYNC_FILES, "--rsh", "--exclude", "--include", "--filter", "--files-from", "--rsync-path")
)


def _install(words: Sequence[Word]) -> Iterator[Target]:
    options, operands = read(words, _COPY, mixed=True)
    yield from map(Target, operands) if has(options, "-d", "--directory") else _Into()(words)


def _rsync(words: Sequence[Word]) -> Iterator[Target]:
    options, named = read(words, _RSYNC, mixed=True)
    operands = several(named)
    yield from (Target(value, Reach.INSIDE) for value in values_of(options, *_RSYNC_FILES))
    if len(operands) > 1:
        names = tuple(basename(word.pattern) for word in operands[:-1] if not word.text.endswith("/"))
        whole = has(options, "--delete", "--delete-after") or len(names) < len(operands) - 1
        yield Target(operands[-1], Reach.TREE if whole else Reach.INSIDE)
        yield Target(operands[-1], Reach.TREE, names or ("*",))
    if has(options, "--remove-source-files"):
        yield from (Target(word, Reach.TREE) for word in operands[:-1])


def _secure_copy(words: Sequence[Word]) -> Iterator[Target]:
    _, named = read(words, OptionTable("cDFiJloPSX"), mixed=True)
    operands = several(named)
    names = tuple(basename(word.pattern) for word in operands[:-1])
    yield from (Target(word, Reach.TREE, names) for word in operands[1:][-1:] if ":" not in word.text)


_SSH = OptionTable("BbcDEeFIiJLlmOoPpQRSWw")
_SSH_FILES = lazy_regex(r"\s*(?:UserKnownHostsFile|ControlPath)\s*[=\s]\s*(.*)", re.IGNORECASE)


def _remote_shell(words: Sequence[Word]) -> Iterator[Target]:
    options, operands = read(words, _SSH)
    more, _ = read(operands, _SSH)
    yield from map(Target, values_of([*options, *more], "-E"))
    for value in values_of([*options, *more], "-o"):
        if found := _SSH_FILES.fullmatch(value.text):
            yield from (Target(Word(one, value.static)) for one in found[1].split())


def _second(words: Sequence[Word]) -> Iterator[Target]:
    """`uniq IN OUT`"""
    _, operands = read(words, OptionTable("fsw", ("--skip-fields", "--skip-chars", "--check-chars")), mixed=True)
    yield from map(Target, several(operands)[1:2])


# ------------------------------------------------------------------------------------------- an option says where it is


class _OptionValue(Struct, frozen=True):
    """The value of an option, however it is attached: `-o FILE`, `-uoFILE`, `--output=FILE`, `--out FILE`."""

    names: tuple[str, ...]
    values: str = ""
    """Letters of other options that take a value."""
    prefix: bool = False
    """It is only the beginning of the file names."""

    def __call__(self, words: Sequence[Word]) -> Iterator[Target]:
        letters = "".join(name[1] for name in self.names if len(name) == 2)
        longs = tuple(name for name in self.names if len(name) > 2)
        options, _ = read(words, OptionTable(letters + self.values, longs), mixed=True)
        yield from map(self._target, values_of(options, *self.names))

    def _target(self, word: Word) -> Target:
        return Target(Word(word.text, word.static, f"{word.pattern}*")) if self.prefix else Target(word)


class _OneDash(Struct, frozen=True):
    """The same, for long options with one dash."""

    names: tuple[str, ...]

    def __call__(self, words: Sequence[Word]) -> Iterator[Target]:
        for at, word in enumerate(words[1:], 1):
            name, equals, value = word.text.partition("=")
            if name in self.names or (name.startswith("--") and name[1:] in self.names):
                yield from map(Target, [Word(value, word.static)] if equals else words[at + 1 : at + 2])


class _Wrapper(Struct, frozen=True):
    """The same, of a command that runs another one: its own options come first."""

    names: tuple[str, ...]
    values: str = ""
    """Letters of other options that take a value."""
    operand: bool = False
    """Its first operand is also a file that it makes."""

    def __call__(self, words: Sequence[Word]) -> Iterator[Target]:
        letters = "".join(name[1] for name in self.names if len(name) == 2)
        longs = tuple(name for name in self.names if len(name) > 2)
        options, operands = read(words, OptionTable(letters + self.values, longs))
        for word in (*values_of(options, *self.names), *operands[: self.operand]):
            # Some add the number of a process.
            yield Target(word)
            yield Target(Word(word.text, word.static, f"{word.pattern}.*"))


_LOGS = ("-O", "-I", "-B", "-T", "--log-out", "--log-in", "--log-io", "--log-timing")


def _typescript(words: Sequence[Word]) -> Iterator[Target]:
    options, operands = read(words, OptionTable("cEIOBTmo", (*_LOGS[4:], "--command", "--echo")), mixed=True)
    yield from map(Target, (*operands, *values_of(options, *_LOGS)))


def _compiler(words: Sequence[Word]) -> Iterator[Target]:
    yield from _OptionValue(("-o",), "ILlDxU")(words)
    yield from _OneDash(("-MF", "-MJ", "-dumpdir", "-dumpbase", "-aux-info", "--serialize-diagnostics"))(words)


def _split(words: Sequence[Word]) -> Iterator[Target]:
    _, operands = read(words, OptionTable("abClnt", ("--bytes", "--lines", "--number", "--filter")), mixed=True)
    yield from (Target(Word(word.text, word.static, f"{word.pattern}*")) for word in several(operands)[1:2])


def _sed(words: Sequence[Word]) -> Iterator[Target]:
    """Its files, if they are changed in place; and those its script writes to."""
    yield from _Each(_SED, only=("-i", "--in-place"), existing=_always)(words)
    options, operands = read(words, _SED, mixed=True)
    yield from _copies(options)
    for script in values_of(options, "-e", "--expression") or operands[:1]:
        yield from (Target(Word(file[1], script.static)) for file in _SED_WRITES.finditer(script.text))


def _copies(options: Sequence[Option]) -> Iterator[Target]:
    """`-i'DIRECTORY/*'` stores a copy of each original file elsewhere."""
    for suffix in values_of(options, "-i", "--in-place"):
        if "/" in suffix.text:
            yield Target(Word(dirname(suffix.text), suffix.static), Reach.INSIDE)


_SED_WRITES = lazy_regex(r"(?=[wW][ \t]*+([^\n;}]*[^\s;}]))")


_IN_PLACE = OptionTable("eEIMmFrC", attached="i0l")


def _in_place(words: Sequence[Word]) -> Iterator[Target]:
    """Files changed by `-i`; without it, the effect of the code is unknown."""
    yield from _copies(read(words, _IN_PLACE, mixed=True)[0])
    files = list(_Each(_IN_PLACE, only=("-i",), existing=_always)(words))
    yield from files or named(words)


def _editor(words: Sequence[Word]) -> Iterator[Target]:
    yield from _Each(_EDITOR)(words)
    for word in words[1:]:
        yield from (Target(Word(file)) for file in _EDITOR_WRITES.findall(word.text))


_EDITOR_WRITES = lazy_regex(r"\b(?:w|wr|write|sav|saveas|wq|x|up|update)!?[ \t]+(?:>>[ \t]*)?([^\n|]+)")


def _history(words: Sequence[Word]) -> Iterator[Target]:
    options, operands = read(words, OptionTable("d"), mixed=True)
    if has(options, "-w", "-a"):  # without an operand, to the file that HISTFILE names
        yield from map(Target, operands)


def _compress(words: Sequence[Word]) -> Iterator[Target]:
    """The file is replaced by another one with almost the same name."""
    options, operands = read(words, OptionTable("STb", ("--suffix", "--threads")), mixed=True)
    if not says(options, "-c", "-t", "-l", "--stdout", "--to-stdout", "--test", "--list"):
        for word in operands:
            yield Target(word, Reach.TREE)
            yield Target(Word(re.sub(r"\.(?:gz|xz|bz2|zst|lzma|Z)$", "", word.text), word.static))


def _dd(words: Sequence[Word]) -> Iterator[Target]:
    for word in words[1:]:
        if word.text.startswith("of="):
            yield Target(Word(word.text[3:], word.static, word.glob and word.glob[3:]))


_TAR = OptionTable(
    "fCTXbgHKLNVIF",
    (
        *("--file", "--directory", "--files-from", "--exclude-from", "--exclude", "--transform", "--strip-components"),
        *("--listed-incremental", "--index-file", "--use-compress-program", "--to-command", "--checkpoint-action"),
        *("--xform", "--add-file", "--volno-file"),
    ),
)
_RENAMES = lazy_regex(r"s([^\w\s])(?:(?!\1).|\\.)*\1((?:(?!\1).|\\.)*)\1[^;]*")


def _tar(words: Sequence[Word]) -> Iterator[Target]:
    """The files in an archive are unknown, the directory is not; nor is the archive that is written."""
    options, operands = read(unbundled(words, _TAR), _TAR, mixed=True)
    below = value_of(options, "-C", "--directory")
    if has(options, "-x", "--extract", "--get"):
        yield Target(below or Word("."), Reach.INSIDE)
        yield from (Target(word, Reach.TREE, below=below) for word in operands)
        yield from (Target(word, Reach.TREE, below=below) for word in values_of(options, "--one-top-level"))
        if any(map(_moves_elsewhere, values_of(options, "--transform", "--xform"))):
            yield Target(below or Word("."), Reach.TREE)
    elif has(options, "-c", "-r", "-u", "-A", "--create", "--append", "--update", "--concatenate", "--delete"):
        yield from map(Target, values_of(options, "-f", "--file"))
    if has(options, "--remove-files"):
        yield from (Target(word, Reach.TREE, below=below) for word in operands)
    yield from map(Target, values_of(options, "-g", "--listed-incremental", "--index-file", "--volno-file"))


def _moves_elsewhere(word: Word) -> bool:
    """Whether an expression may put what is in an archive into another directory. One that only removes does not."""
    found = [each[2] for each in _RENAMES.finditer(word.text)]
    return not word.static or not found or any(text.startswith(".") or "/" in text for text in found)


def _zip(words: Sequence[Word]) -> Iterator[Target]:
    options, operands = read(words, OptionTable("bntPsx", ("--out", "--password", "--suffixes")), mixed=True)
    yield from map(Target, (*operands[:1], *values_of(options, "--out")))
    if has(options, "-m", "--move"):
        yield from (Target(word, Reach.TREE) for word in operands[1:])


def _unzip(words: Sequence[Word]) -> Iterator[Target]:
    options, _operands = read(words, OptionTable("dPx"), mixed=True)
    if not says(options, "-l", "-t", "-p", "-Z"):
        yield Target(value_of(options, "-d") or Word("."), Reach.INSIDE)


_CURL_FILES = (
    *("-o", "--output", "-c", "--cookie-jar", "-D", "--dump-header", "--trace", "--trace-ascii", "--stderr"),
    *("--libcurl", "--etag-save", "--hsts", "--alt-svc"),
)
_CURL = OptionTable(
    "AbCcdDeEFhHKmoPQrTtuUwxXYyz",
    (*_CURL_FILES, "--output-dir", "--header", "--data", "--request", "--user", "--max-time", "--retry", "--url"),
)


def _curl(words: Sequence[Word]) -> Iterator[Target]:
    options, operands = read(words, _CURL, mixed=True)
    below = value_of([one for one in options if one.name != "--output"], "--output-dir")
    yield from (Target(value, below=below) for value in values_of(options, *_CURL_FILES))
    if has(options, "-O", "--remote-name", "--remote-name-all"):
        yield from (Target(_last_part(word), below=below) for word in operands)


_WGET_FILES = (
    *("-O", "--output-document", "-o", "--output-file", "-a", "--append-output", "--save-cookies", "--rejected-log"),
    *("--warc-file", "--hsts-file"),
)
_WGET = OptionTable("oOaPieBtTwQUl", (*_WGET_FILES, "--directory-prefix", "--header", "--tries", "--timeout"))


def _wget(words: Sequence[Word]) -> Iterator[Target]:
    options, operands = read(words, _WGET, mixed=True)
    below = value_of(options, "-P", "--directory-prefix")
    yield from map(Target, values_of(options, *_WGET_FILES))
    yield from (Target(_last_part(word), below=below) for word in operands)


def _last_part(url: Word) -> Word:
    return Word(basename(url.text.split("?", 1)[0].split("#", 1)[0]), url.static)


_PATCH = OptionTable(
    "BdDFgioprVYz",
    (
        *(
            "--directory",
            "--input",
            "--output",
            "--strip",
            "--reject-file",
            "--prefix",
            "--suffix",
            "--basename-prefix",
        ),
        *("--fuzz", "--get", "--ifdef"),
    ),
)


def _patch(words: Sequence[Word]) -> Iterator[Target]:
    """Without an operand the patch names the files: see `patched`. A file `x` may be kept as `x.orig`, and what cannot
    be applied as `x.rej`."""
    options, operands = read(words, _PATCH, mixed=True)
    below = value_of(options, "-d", "--directory")
    written = values_of(options, "-o", "--output", "-r", "--reject-file")
    yield from (Target(word, below=below) for word in (*operands[:1], *written))
    for word in operands[:1] if not has(options, "--dry-run") else ():
        yield from (
            Target(Word(word.text, word.static, f"{word.pattern}.{end}"), below=below) for end in ("orig", "rej")
        )
    for prefix in values_of(options, "-B", "--prefix", "-Y", "--basename-prefix"):
        yield Target(Word(prefix.text, prefix.static, f"{prefix.pattern}*"), below=below)
        yield from (
            Target(Word(dirname(word.text), word.static), Reach.INSIDE) for word in [prefix] if "/" in word.text
        )


_PATCHED = lazy_regex(r"^(?:(?:---|\+\+\+|\*\*\*|Index:|rename to|copy to)[ \t]+|diff --git )([^\n]+)", re.MULTILINE)
_MOST_PATCHED = 200
PATCHING = ("git", "patch")


def patched(words: Sequence[Word], text: Word | None) -> Iterator[Target]:
    """The files that a patch names, with any number of directories at their front left out."""
    name = words[0].text
    applies = name == "patch" or (name == "git" and any(word.text in ("apply", "am") for word in words[1:]))
    if not applies or text is None:
        return
    options, _ = read(words, _PATCH, mixed=True)
    below = value_of(options, "-d", "--directory", "-C") if name == "patch" else None
    paths: dict[str, None] = {}
    for line in islice(_PATCHED.finditer(text.text), _MOST_PATCHED):
        whole = [line[1].partition("\t")[0].strip().strip('"')]
        for path in line[1].split() if line[0].startswith("diff") else whole:
            steps = path.split("/")
            paths |= dict.fromkeys("/".join(steps[at:]) for at in range(len(steps)))
    yield from (Target(Word(path), below=below) for path in paths if path)


_FILE_VARIABLES = lazy_regex(
    r"HISTFILE|\w+_HISTFILE|LESSHISTFILE|GIT_TRACE\w*|GIT_INDEX_FILE|GIT_REDIRECT_\w+|SSLKEYLOGFILE|RANDFILE|MALLOC_TRACE"
    r"|LD_DEBUG_OUTPUT|GMON_OUT_PREFIX|COVERAGE_FILE"
)


def file_variable(name: str) -> Reach | None:
    """How far a program may write at the path in this variable. None: it names none."""
    if name == "TMPDIR":
        return Reach.INSIDE
    if name == "GIT_WORK_TREE":
        return Reach.TREE
    return Reach.FILE if _FILE_VARIABLES.fullmatch(name) else None


def _find(words: Sequence[Word]) -> Iterator[Target]:
    texts = [word.text for word in words]
    if "-delete" in texts:
        yield from (Target(word, Reach.TREE, removes=True) for word in found(words))
    for at, text in enumerate(texts[:-1]):
        if text in ("-fprint", "-fprint0", "-fprintf", "-fls"):
            yield Target(words[at + 1])


def _scalar(words: Sequence[Word]) -> Iterator[Target]:
    """Maintained repositories are listed in the user's settings, and get their own settings."""
    options, operands = read(words, OptionTable("C"))
    if operands and operands[0].text not in ("list", "version", "help", "diagnose"):
        yield from users_settings()
        yield Target(Word(".git/config"), below=value_of(options, "-C"), upwards=True)
        yield from (Target(word, Reach.NAMED) for word in operands[1:] if not word.text.startswith("-"))


_VALGRIND_FILES = (
    *("--log-file", "--xml-file", "--callgrind-out-file", "--cachegrind-out-file", "--massif-out-file"),
    *("--dhat-out-file", "--xtree-leak-file", "--xtree-memory-file"),
)
WRITERS: Mapping[str, Callable[[Sequence[Word]], Iterator[Target]]] = {
    **dict.fromkeys(("tee", "sponge"), _Each()),
    **dict.fromkeys(("mkdir", "mkfifo", "mknod"), _Each(OptionTable("m", ("--mode",)))),
    **dict.fromkeys(("rmdir", "unlink"), _Each(removes=True)),
    "touch": _Each(OptionTable("rdtA", ("--reference", "--date", "--time")), existing=_makes_none),
    "truncate": _Each(OptionTable("rs", ("--size", "--reference")), existing=_makes_none),
    "shred": _Each(OptionTable("ns", ("--iterations", "--size")), existing=_always),
    **dict.fromkeys(("rm", "rimraf", "trash", "trash-put"), _Each(reach=Reach.TREE, removes=True)),
    "chmod": _mode,
    "chown": _Each(skip=1, reach=Reach.TREE, unless=("--reference",), existing=_always),
    "chgrp": _Each(skip=1, reach=Reach.TREE, unless=("--reference",), existing=_always),
    "chattr": _Each(skip=1, reach=Reach.TREE, existing=_always),
    "setfacl": _Each(OptionTable("mxMX"), reach=Reach.TREE, existing=_always),
    "cp": _copy,
    "scp": _secure_copy,
    "ssh": _remote_shell,
    "install": _install,
    "mv": _Into(Reach.TREE, moves=True),
    "ln": _link,
    "rsync": _rsync,
    "dd": _dd,
    "sed": _sed,
    "sort": _OptionValue(("-o", "--output"), "kStT"),
    "uniq": _second,
    "split": _split,
    "csplit": _OptionValue(("-f", "--prefix"), "bn", prefix=True),
    **dict.fromkeys(
        ("gzip", "gunzip", "xz", "unxz", "bzip2", "bunzip2", "zstd", "unzstd", "lzma", "uncompress", "compress"),
        _compress,
    ),
    "scalar": _scalar,
    "time": _Wrapper(("-o", "--output"), "f"),
    "strace": _Wrapper(("-o", "--output"), "aAbeEIOpPsSuUX"),
    "ltrace": _Wrapper(("-o", "--output"), "aAeFlnpsuwx"),
    "flock": _Wrapper((), "wEc", operand=True),
    "valgrind": _Wrapper(_VALGRIND_FILES),
    "perf": _OptionValue(("-o", "--output"), "eFpgCt"),
    "script": _typescript,
    **dict.fromkeys(("cc", "gcc", "g++", "c++", "clang", "clang++", "ld", "as", "rustc"), _compiler),
    "go": _OneDash(("-o", "-coverprofile", "-cpuprofile", "-memprofile", "-outputdir")),
    **dict.fromkeys(("pandoc", "dot"), _OptionValue(("-o", "--output"), "ftTGNEK")),
    "openssl": _OneDash(
        (
            *(
                "-out",
                "-keyout",
                "-writerand",
                "-outdir",
                "-sess_out",
                "-keylogfile",
                "-CAserial",
                "-certsout",
                "-cacertsout",
            ),
            *(
                "-extracertsout",
                "-newkeyout",
                "-respout",
                "-reqout",
                "-reqout_only",
                "-rspout",
                "-signer",
                "-tracefile",
            ),
        )
    ),
    "ssh-keygen": _OptionValue(("-f",), "tbCNPIVnOsSDrRaE"),
    "history": _history,
    "perl": _in_place,
    "ruby": _in_place,
    **dict.fromkeys(("ed", "nano", "emacs"), _Each(_EDITOR)),
    **dict.fromkeys(("ex", "vi", "vim", "nvim"), _editor),
    "patch": _patch,
    "tar": _tar,
    "bsdtar": _tar,
    "unzip": _unzip,
    "zip": _zip,
    "curl": _curl,
    "wget": _wget,
    "find": _find,
    "git": git_targets,
}
