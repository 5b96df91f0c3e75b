"""Programs that read files: which of their words are the files."""

import re
from collections.abc import Mapping, Sequence
from posixpath import dirname, join

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.effects.gathering import Command, looks_like_path
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.options import Option, OptionTable, has, says, several, value_of, values_of
from wave_agent.shell.values import Word
from wave_agent.shell.wrappers import XARGS
from wave_agent.shell.writes import patched

HERE = Word(".")
_NUMBERS = ("-A", "-B", "-C", "-m")


class ReadingProgram(Struct, frozen=True):
    """How a program reads its operands."""

    options: OptionTable = OptionTable()
    files: tuple[str, ...] = ()
    """Options whose value is a file that it reads."""
    operands: tuple[str, ...] = ()
    """Options whose value is read like an operand."""
    lists: tuple[str, ...] = ()
    """Options that make it read files which no word names, but another file does."""
    separator: str = "\0"
    """What is between the names in such a file."""
    skip: int = 0
    """Leading operands that are not files: a pattern."""
    instead: tuple[str, ...] = ()
    """One of these options replaces the skipped operands."""
    deep: tuple[str, ...] = ()
    """With one of these options, directories are read with everything below them, and the current one by default."""
    always_deep: bool = False
    shallow: bool = False
    """Of directories, it reads the files directly in them."""

    def __call__(self, command: Command) -> None:
        options, operands = command.options(self.options)
        if has(options, *self.lists):
            command.unknown()
            command.reads(command.listed(values_of(options, *self.lists), self.separator))
        if self.skip and any(
            one.name in _NUMBERS and one.value is not None and not one.value.text.isdigit() for one in options
        ):
            command.unknown()  # elsewhere, the number is optional
        files = operands if has(options, *self.instead) or not self.skip else several(operands)[self.skip :]
        deep = self.always_deep or has(options, *self.deep)
        files = [*(files or ([HERE] if deep else [])), *(values_of(options, *self.operands))]
        names = _included(options) if deep and self.skip else None
        command.reads(files, tree=deep and names is None)
        for pattern in list(command.paths(files if names else ())):
            for name in names or ():
                command.gathering.read(f"{pattern}/**/{name}")
        if self.shallow and not deep:
            _entries(command, files)
        others = [one for one in options if one.name not in _PATTERNS]
        command.reads(values_of(others, *self.files, *self.lists))
        command.reads(
            one.value
            for one in others
            if one.value is not None and one.name.startswith("--") and looks_like_path(one.value.text)
        )


_PATTERNS = ("--include", "--exclude", "--exclude-dir")
_INCLUDES = lazy_regex(r"--(?:inc|exclude\b(?!-))")
_LONGEST_EXCLUDED = 10


def _included(options: Sequence[Option]) -> tuple[str, ...] | None:
    """`--include=NAME`, `--exclude=NAME`: patterns of the names of files that are read below a directory. None: any.

    The first of them says what happens to a file that matches none.
    """
    given = [one for one in options if _INCLUDES.match(one.name) and one.value is not None]
    texts = [one.value.text for one in given if one.value is not None]
    includes = [text for one, text in zip(given, texts, strict=True) if one.name.startswith("--inc")]
    if not given or not all(map(_NAME.fullmatch, texts)):
        return None
    if given[0].name.startswith("--inc"):
        return tuple(f"*{text}" if text.startswith("*") and not text.startswith("**") else text for text in includes)
    if includes or len(given) > 1 or "*" in texts[0] or len(texts[0]) > _LONGEST_EXCLUDED:
        return None
    name = texts[0]
    other = [f"{name[:at]}[!{one}]*" for at, one in enumerate(name)]
    if name[0] != ".":
        other.append(".*")  # no other wildcard at the start of a name matches a dot
    return (*other, f"{name}?*", *(name[:at] for at in range(1, len(name)) if name[:at] != "."))


def _entries(command: Command, words: Sequence[Word]) -> None:
    """What is directly in those that may be directories, hidden or not."""
    for pattern in list(command.paths(words)):
        if command.surroundings.read_text(pattern) is None:
            command.gathering.read(f"{pattern}/*")
            command.gathering.read(f"{pattern}/.*")


def _reader(
    values: str = "",
    *longs: str,
    files: tuple[str, ...] = (),
    lists: tuple[str, ...] = (),
    deep: tuple[str, ...] = (),
) -> ReadingProgram:
    letters = "".join(name[1] for name in files if len(name) == 2)
    return ReadingProgram(
        OptionTable(values + letters, (*longs, *(name for name in files if len(name) > 2))),
        files=files,
        lists=lists,
        deep=deep,
    )


_GREP = ReadingProgram(
    OptionTable(
        "eABCfmdD",
        (
            *("--regexp", "--file", "--max-count", "--after-context", "--before-context", "--context", "--include"),
            *("--exclude", "--exclude-from", "--exclude-dir", "--label", "--binary-files", "--devices"),
            *("--directories", "--group-separator"),
        ),
    ),
    files=("-f", "--file", "--exclude-from"),
    skip=1,
    instead=("-e", "-f", "--regexp", "--file"),
    deep=("-r", "-R", "--recursive", "--dereference-recursive", "-d", "--directories"),
)
_RGREP = replace(_GREP, always_deep=True)
_SUM = _reader("", lists=("-c", "--check"))
_DIFF = ReadingProgram(
    OptionTable(
        "CUFILWxXS",
        (
            *("--exclude", "--label", "--context", "--unified", "--ignore-matching-lines", "--show-function-line"),
            *("--width", "--exclude-from", "--from-file", "--to-file"),
        ),
    ),
    files=("-X", "--exclude-from"),
    operands=("--from-file", "--to-file"),
    deep=("-r", "--recursive"),
    shallow=True,
)
_COMPRESSED = _reader("S", "--suffix", "--threads", deep=("-r", "--recursive"))
_RG_SEARCH = OptionTable(
    "ABCEGMTefgjmrtd",
    (
        *("--after-context", "--before-context", "--context", "--encoding", "--max-columns", "--type-not", "--regexp"),
        *("--file", "--glob", "--iglob", "--threads", "--max-count", "--replace", "--type", "--max-depth", "--sort"),
        *("--sortr", "--color", "--colors", "--engine", "--ignore-file", "--max-filesize", "--path-separator", "--pre"),
        *(
            "--file-search-regex",
            "--pre-glob",
            "--context-separator",
            "--field-match-separator",
            "--type-add",
            "--type-clear",
        ),
    ),
)
_HIDDEN = ("-.", "--hidden", "-u", "--unrestricted", "--type-add", "--ignore-file", "--glob-case-insensitive")
"""Options with which hidden files are searched as well, or may be."""
_IGNORES = (".gitignore", ".ignore", ".rgignore")
_NAMES_HIDDEN = lazy_regex(r"^!(?:.*/)?[.*?\[{\\]", re.MULTILINE)
_CONFIGURED = "RIPGREP_CONFIG_PATH"
_NOT_HIDDEN = "[!.]*"
_TYPED = (_NOT_HIDDEN, ".*.*", ".*rc", ".*log*", ".*profile", ".zshenv")
"""Names that the types which it knows by itself may have."""
_NAME = lazy_regex(r"[^/\\{}\[?]+")


def _search(command: Command) -> None:
    """`rg`, `ag`, `ack`: below directories they leave out hidden files, unless something says otherwise."""
    options, operands = command.options(_RG_SEARCH)
    named = has(options, "-e", "--regexp", "-f", "--file", "--files", "--type-list")
    places = operands if named else several(operands)[1:]
    command.reads(values_of(options, "-f", "--file", "--ignore-file"))
    command.reads(places)
    if has(options, "--pre"):
        command.unknown()
    hidden = says(options, *_HIDDEN) or command.name == "ack" or _is_configured(command)
    names = None if hidden else _searched_names(options)
    for pattern in list(command.paths(places or [HERE])):
        each = None if _lists_hidden(command, pattern) else names
        for one in (f"{pattern}/**",) if each is None else [f"{pattern}/**/{name}" for name in each]:
            command.gathering.read(one)


def _searched_names(options: Sequence[Option]) -> tuple[str, ...] | None:
    """Patterns of the names of files that are searched. None: any.

    A glob that includes something switches the filters off for what it matches, and nothing else is then searched.
    """
    if any(not value.text.startswith("!") for value in values_of(options, "--iglob")):
        return None
    globs = [value.text for value in values_of(options, "-g", "--glob") if not value.text.startswith("!")]
    if not globs:
        return _TYPED if has(options, "-t", "--type") else (_NOT_HIDDEN,)
    if not all(map(_NAME.fullmatch, globs)):
        return None
    # Its star also matches a leading dot.
    return tuple(f"*{glob}" if glob.startswith("*") and not glob.startswith("**") else glob for glob in globs)


def _is_configured(command: Command) -> bool:
    return _CONFIGURED in command.surroundings.variables or _CONFIGURED in command.gathering.assigned


def _lists_hidden(command: Command, place: str) -> bool:
    """Whether a list of ignored files, in this directory or above it, says of a hidden file that it is not ignored."""
    if command.gathering.writes_one_of(_IGNORES):
        return True
    while True:
        for name in _IGNORES:
            text = command.surroundings.read_text(join(place, name))
            if text is not None and _NAMES_HIDDEN.search(text):
                return True
        if place in ("/", command.surroundings.project):
            return False
        place = dirname(place)


_JQ_PAIRS = ("--arg", "--argjson")
_JQ_FILES = ("--slurpfile", "--rawfile", "--argfile")
_JQ = OptionTable("fL", ("--from-file", "--indent", "--library-path"))


def _json_query(command: Command) -> None:
    """`jq FILTER FILE…`: some options take a name and a value."""
    rest: list[Word] = []
    words = list(command.words)
    while words:
        word = words.pop(0)
        if word.text in _JQ_PAIRS or word.text in _JQ_FILES:
            command.reads(words[1:2] if word.text in _JQ_FILES else ())
            words = words[2:]
        else:
            rest.append(word)
    command.arguments, command.words = tuple(rest[1:]), tuple(rest)
    options, named = command.options(_JQ)
    operands = several(named)
    from_file = has(options, "-f", "--from-file")
    code = [] if from_file else operands[:1]
    if from_file or has(options, "-L", "--library-path") or any(_is_module(word.text) for word in code):
        command.unknown()
    command.reads((*values_of(options, "-f", "--from-file"), *operands[len(code) :]))


def _is_module(text: str) -> bool:
    """It uses other files, or shows the environment."""
    return any(word in text for word in ("import", "include", "modulemeta", "$ENV", "$__")) or (
        _ENVIRONMENT.search(text) is not None
    )


_ENVIRONMENT = lazy_regex(r"(?<![.\w\"$@])env\b(?!\s*:)")
"""The function of jq, not a field."""


def _disk_dump(command: Command) -> None:
    command.reads(Word(word.text[3:], word.static) for word in command.arguments if word.text.startswith("if="))


def _archive(command: Command) -> None:
    """`zip ARCHIVE FILE…`"""
    options, operands = command.options(OptionTable("bntPsxi", ("--out", "--password", "--suffixes", "--exclude")))
    command.reads(several(operands)[1:], tree=has(options, "-r", "-R", "--recurse-paths"))
    if has(options, "-@", "--names-stdin", "-T", "-TT"):
        command.unknown()


def _unarchive(command: Command) -> None:
    _, operands = command.options(OptionTable("dPx"))
    command.reads(operands[:1])


def _patch(command: Command) -> None:
    """Names of files are in the patch, and originals and rejected parts are kept."""
    options, operands = command.options(OptionTable("BdDFgioprVYz", ("--directory", "--input", "--output", "--strip")))
    command.reads((*values_of(options, "-i", "--input"), *operands))
    if not has(options, "--dry-run"):
        command.unknown()
        command.targets(patched(command.words, command.stdin))


def _uniq(command: Command) -> None:
    _, operands = command.options(OptionTable("fsw", ("--skip-fields", "--skip-chars", "--check-chars")))
    command.reads(operands[:1])


def _first(command: Command) -> None:
    """The next operand, if there is one, is written."""
    splits = command.name == "split"
    # To xxd, everything after the first operand is one.
    _, operands = command.options(OptionTable("abClnt" if splits else "cglosnR"), mixed=splits)
    command.reads(operands[:1])
    command.writes(() if splits else several(operands)[1:2])


_COPY = OptionTable("tSmog", ("--target-directory", "--suffix", "--mode", "--owner", "--group"))


def _copied(command: Command) -> None:
    """`cp`, `mv`, `ln`, `install`: all operands but the last, which is where they go."""
    options, named = command.options(_COPY)
    operands = several(named)
    if command.name == "install" and has(options, "-d", "--directory"):
        return
    apart = value_of(options, "-t", "--target-directory") is not None or len(operands) == 1
    sources = operands if apart else operands[:-1]
    deep = command.name in ("mv", "ln") or has(options, "-r", "-R", "-a", "--recursive", "--archive")
    command.reads(sources, tree=deep)
    if command.name == "ln" and has(options, "-s", "--symbolic"):
        _linked(command, sources, value_of(options, "-t", "--target-directory") or (operands or [Word(".")])[-1])
    if has(options, "-b", "--backup", "-S", "--suffix") or (command.name == "install" and has(options, "-D")):
        command.unknown()  # it makes up names, or makes directories
    if command.name == "mv":
        command.deletes(sources)


def _linked(command: Command, sources: Sequence[Word], link: Word) -> None:
    """The path in a symbolic link starts from where the link is: next to its name, or in the directory of that name."""
    if link.static and link.glob is None:
        for place in (Word(link.text), Word(link.text.rpartition("/")[0] or ".")):
            for pattern in list(command.paths(sources, place)):
                command.gathering.read(pattern)
                command.gathering.read(f"{pattern}/**")


def _found_files(command: Command) -> None:
    """`find` reads names; a list of places may come from a file."""
    if any(text == "-files0-from" or text.startswith("-files0") for text in command.texts):
        command.unknown()


def _arguments_from_file(command: Command) -> None:
    options, operands = command.options(XARGS, mixed=False)
    command.reads(values_of(options, "-a", "--arg-file"))
    if operands and command.stdin is None:
        command.unknown()


def _in_own_language(command: Command) -> None:
    """`openssl`: options with one dash, most of which name a file."""
    command.reads_like_paths(word for word, before in zip(command.arguments[1:], command.texts, strict=False)
                             if before not in ("-connect", "-out", "-keyout", "-host"))  # fmt: skip
    for word, before in zip(command.arguments[1:], command.texts, strict=False):
        if before in ("-in", "-inkey"):
            command.reads([word])
        if before in ("-connect", "-host"):
            command.host(word.text.rpartition(":")[0] or word.text)
    command.reads(command.arguments[-1:] if command.texts[:1] != ["s_client"] else ())
    command.unknown()


def response_file(command: Command) -> None:
    """`strings @FILE`: the file is read, and has more words for the command."""
    files = [Word(word.text[1:], word.static) for word in command.arguments if word.text.startswith("@")]
    command.reads(files)
    if files:
        command.unknown()


RESPONSE_FILES = """
    ar as addr2line c++filt elfedit gprof ld ld.bfd ld.gold nm objcopy objdump ranlib readelf size strings strip
"""
"""Programs that take words from files which are named like that."""
_PLAIN = """
    cat tac rev expand unexpand fmt tsort bzcat xzcat zcat zstdcat lz4cat gzcat zless zmore bzless xzless
    sum hexyl pr ptx nl wdiff diff3 zdiff readelf nm objdump size ldd shellcheck md5 crc32 asciidoctor
"""
FILE_READERS: Mapping[str, ReadingProgram] = {
    # Where it is not certain which options take a value, none does: the value is then listed as well.
    **dict.fromkeys(_PLAIN.split(), _reader()),
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "zegrep", "zfgrep", "bzgrep", "xzgrep"), _GREP),
    **dict.fromkeys(
        ("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "shasum", "cksum"), _SUM
    ),
    "rgrep": _RGREP,
    **dict.fromkeys(("diff", "colordiff"), _DIFF),
    "date": ReadingProgram(
        OptionTable("dfrs", ("--date", "--file", "--reference", "--set")), ("-f", "--file"), skip=100_000
    ),
    **dict.fromkeys(
        ("gzip", "gunzip", "xz", "unxz", "bzip2", "bunzip2", "zstd", "unzstd", "lzma", "uncompress", "compress"),
        _COMPRESSED,
    ),
    "tac": _reader("s", "--separator"),
    "head": _reader("cn", "--bytes", "--lines"),
    "tail": _reader("cns", "--bytes", "--lines", "--pid", "--sleep-interval", "--max-unchanged-stats"),
    "wc": _reader("", lists=("--files0-from",)),
    "cut": _reader("bcdf", "--delimiter", "--fields", "--characters", "--bytes", "--output-delimiter"),
    "paste": _reader("d", "--delimiters"),
    "join": _reader("aejotv12", "--header", "--check-order"),
    "comm": _reader("", "--output-delimiter"),
    "cmp": _reader("in", "--ignore-initial", "--bytes"),
    "sort": _reader(
        "kStTo",
        *("--key", "--buffer-size", "--field-separator", "--temporary-directory", "--output", "--parallel"),
        *("--batch-size", "--sort"),
        files=("--random-source",),
        lists=("--files0-from",),
    ),
    "base64": _reader("w", "--wrap"),
    "base32": _reader("w", "--wrap"),
    "basenc": _reader("w", "--wrap"),
    "od": _reader("AjNSt", "--address-radix", "--skip-bytes", "--read-bytes", "--format", "--strings"),
    "hexdump": _reader("ens", files=("-f",)),
    "hd": _reader("ens", files=("-f",)),
    "strings": _reader("entTs", "--bytes", "--encoding", "--radix"),
    "file": replace(
        _reader("eFPm", "--exclude", "--separator", files=("-m", "--magic-file"), lists=("-f", "--files-from")),
        separator="\n",
    ),
    "iconv": _reader("ft", "--from-code", "--to-code"),
    "fold": _reader("w", "--width"),
    "column": _reader("sNlcoEHRWT", "--table-columns", "--separator", "--output-separator"),
    "shuf": _reader("ino", files=("--random-source",)),
    "bat": _reader("lmHr", "--language", "--line-range", "--style", "--theme", "--paging"),
    "batcat": _reader("lmHr", "--language", "--line-range", "--style", "--theme", "--paging"),
    "csplit": _reader("bfn"),
    "du": ReadingProgram(OptionTable("dtBX"), files=("-X", "--exclude-from"), lists=("--files0-from",), skip=100_000),
    "yq": ReadingProgram(OptionTable("oIp"), skip=1, instead=("--from-file",), files=("--from-file",)),
    "look": ReadingProgram(skip=1),
    "chmod": ReadingProgram(files=("--reference",), skip=100_000),
}
"""All operands are read, unless the row says otherwise."""
OTHER_READERS = {
    **dict.fromkeys(("rg", "ag", "ack"), _search),
    **dict.fromkeys(("cp", "mv", "ln", "install"), _copied),
    **dict.fromkeys(("xxd", "split"), _first),
    "jq": _json_query,
    "dd": _disk_dump,
    "zip": _archive,
    "unzip": _unarchive,
    "patch": _patch,
    "uniq": _uniq,
    "find": _found_files,
    "xargs": _arguments_from_file,
    "openssl": _in_own_language,
}
"""The same, in ways of their own."""
