"""Programs that read files: which of their words are the files."""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from wave_agent.effects.gathering import Command, looks_like_path
from wave_agent.shell.options import OptionTable, has, several, value_of, values_of
from wave_agent.shell.values import Word

HERE = Word(".")
_NUMBERS = ("-A", "-B", "-C", "-m")


class FileReader(Struct, frozen=True):
    """How a program reads its operands."""

    options: OptionTable = OptionTable()
    files: tuple[str, ...] = ()
    """Options whose value is a file that it reads."""
    lists: tuple[str, ...] = ()
    """Options that make it read files which no word names."""
    skip: int = 0
    """Leading operands that are not files: a pattern."""
    instead: tuple[str, ...] = ()
    """One of these options replaces the skipped operands."""
    deep: tuple[str, ...] = ()
    """With one of these options, directories are read with everything below them, and the current one by default."""

    def __call__(self, command: Command) -> None:
        options, operands = command.options(self.options)
        if has(options, *self.lists):
            command.unknown()
        if self.skip and any(
            one.name in _NUMBERS and one.value is not None and not one.value.text.isdigit() for one in options
        ):
            command.unknown()  # elsewhere, the number is optional
        files = operands if has(options, *self.instead) or not self.skip else several(operands)[self.skip :]
        deep = has(options, *self.deep)
        command.reads(files or ([HERE] if deep else []), tree=deep)
        command.reads(values_of(options, *self.files))
        for option in options:
            if option.value is not None and "-" in option.name[1:2] and looks_like_path(option.value.text):
                command.reads([option.value])


def _reader(
    values: str = "",
    *longs: str,
    files: tuple[str, ...] = (),
    lists: tuple[str, ...] = (),
    deep: tuple[str, ...] = (),
) -> FileReader:
    letters = "".join(name[1] for name in files if len(name) == 2)
    return FileReader(
        OptionTable(values + letters, (*longs, *(name for name in files if len(name) > 2))), files, lists, deep=deep
    )


_GREP = FileReader(
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
_SUM = _reader("", lists=("-c", "--check"))
_DIFF = _reader(
    "CUFILWxXS",
    *("--exclude", "--label", "--context", "--unified", "--ignore-matching-lines", "--show-function-line", "--width"),
    files=("-X", "--exclude-from", "--from-file", "--to-file"),
    deep=("-r", "--recursive"),
)
_COMPRESSED = _reader("S", "--suffix", "--threads", deep=("-r", "--recursive"))
_RG_SEARCH = OptionTable(
    "ABCEMTefgjmrtd",
    (
        *("--after-context", "--before-context", "--context", "--encoding", "--max-columns", "--type-not", "--regexp"),
        *("--file", "--glob", "--iglob", "--threads", "--max-count", "--replace", "--type", "--max-depth", "--sort"),
        *("--sortr", "--color", "--colors", "--engine", "--ignore-file", "--max-filesize", "--path-separator", "--pre"),
        *("--pre-glob", "--context-separator", "--field-match-separator", "--type-add", "--type-clear"),
    ),
)
_EVERYTHING = ("-.", "--hidden", "-u", "--unrestricted")
"""Options with which hidden files are searched as well."""


def _search(command: Command) -> None:
    """`rg`, `ag`, `ack`: below directories they leave out hidden files."""
    options, operands = command.options(_RG_SEARCH)
    named = has(options, "-e", "--regexp", "-f", "--file", "--files", "--type-list")
    places = operands if named else several(operands)[1:]
    command.reads(values_of(options, "-f", "--file", "--ignore-file"))
    command.reads(places)
    for pattern in list(command.paths(places or [HERE])):
        command.gathering.read(f"{pattern}/**" if has(options, *_EVERYTHING) else f"{pattern}/**/[!.]*")


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


_ENVIRONMENT = re.compile(r"(?<![.\w\"$@])env\b(?!\s*:)")
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
    options, operands = command.options(
        OptionTable("adEILnPs", ("--arg-file", "--delimiter", "--max-args", "--max-procs", "--max-chars", "--replace")),
        mixed=False,
    )
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
    sum hexyl pr ptx nl wdiff colordiff diff3 zdiff readelf nm objdump size ldd shellcheck md5 crc32 asciidoctor
"""
FILE_READERS: Mapping[str, FileReader] = {
    # Where it is not certain which options take a value, none does: the value is then listed as well.
    **dict.fromkeys(_PLAIN.split(), _reader()),
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "zegrep", "zfgrep", "bzgrep", "xzgrep"), _GREP),
    **dict.fromkeys(
        ("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "shasum", "cksum"), _SUM
    ),
    "diff": _DIFF,
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
    "file": _reader("eFPm", "--exclude", "--separator", files=("-m", "--magic-file"), lists=("-f", "--files-from")),
    "iconv": _reader("ft", "--from-code", "--to-code"),
    "fold": _reader("w", "--width"),
    "column": _reader("sNlcoEHRWT", "--table-columns", "--separator", "--output-separator"),
    "shuf": _reader("ino", files=("--random-source",)),
    "bat": _reader("lmHr", "--language", "--line-range", "--style", "--theme", "--paging"),
    "batcat": _reader("lmHr", "--language", "--line-range", "--style", "--theme", "--paging"),
    "csplit": _reader("bfn"),
    "du": FileReader(OptionTable("dtBX"), files=("-X", "--exclude-from"), lists=("--files0-from",), skip=100_000),
    "yq": FileReader(OptionTable("oIp"), skip=1, instead=("--from-file",), files=("--from-file",)),
    "look": FileReader(skip=1),
    "fc": FileReader(lists=("-e", "-s")),
    "chmod": FileReader(files=("--reference",), skip=100_000),
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
