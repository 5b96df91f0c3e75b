"""Commands that only read their arguments: a table. Any other command may do anything with a path."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.carriers import AFTER, EVERYWHERE, LANGUAGES, language
from wave_agent.shell.options import OptionTable, has, read, value_of, values_of
from wave_agent.shell.targets import Target
from wave_agent.shell.values import Reach, Word
from wave_agent.shell.wrappers import PREFIXES, RUN_OTHERS, SHELLS

_PLAIN = """
    : [ [[ alias ack ag arch b2sum base32 base64 basename bg bind break builtin caller cal cat cd cksum clear cmp comm
    compgen complete compopt continue cut date dd df diff diff3 dircolors dirname dirs disown du echo egrep env
    eval exit expand export expr factor false fc fg fgrep file fmt fold free getconf getfacl getopts grep groups
    hash head hexdump hostname iconv id jobs join jq kill ldd let local locale locate logname look ls lsattr lsblk
    lsof man md5sum md5 mkdir more nl nm nproc numfmt objdump od paste pathchk pgrep pidof popd pr printenv printf ps
    pstree pushd pwd read readelf readlink readonly realpath return rev rg seq set sha1sum sha224sum sha256sum
    sha384sum sha512sum shasum shellcheck shift shopt size sleep source . stat strings sum suspend sync sysctl tac tail
    test times tokei top tput tr trap true tty type typeset declare ulimit umask unalias uname unexpand unset uptime
    users vdir vmstat w wait wc whereis which who whoami xargs yes zcat zdiff zgrep zless bzcat bzgrep xzcat xzgrep
    zstdcat cloc scc hadolint yamllint markdownlint actionlint mypy pyright basedpyright pylint flake8 pyflakes bandit
    vulture tsc codespell detect-secrets gitleaks trufflehog semgrep json.tool tokenize ast pytest py.test unittest
    pycodestyle pydocstyle bashate checkbashisms tox nox watchexec open xdg-open code gh glab ssh curl
"""
READERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_PLAIN.split(), ()),
    "ack": ("--create-ackrc",),
    "bat": (),
    "biome": ("--write", "--apply", "--apply-unsafe", "--fix", "format"),
    "codespell": ("-w", "--write-changes", "-i", "--interactive"),
    "eslint": ("--fix", "-o", "--output-file", "--cache-location"),
    "exa": (),
    "eza": (),
    "file": ("-C", "--compile"),
    "gh": ("-D", "--dir", "--output", "-O"),
    "hexyl": (),
    "iconv": ("-o", "--output"),
    "less": ("-o", "-O", "--log-file", "--LOG-FILE"),
    "mypy": ("--junit-xml", "--cache-dir", "--any-exprs-report", "--html-report", "--txt-report"),
    "prettier": ("--write", "-w", "--cache-location"),
    "pylint": ("--output",),
    "pytest": ("--junitxml", "--junit-xml", "--basetemp", "--log-file", "--debug", "--cov-report", "--report-log"),
    "rubocop": ("-a", "-A", "--autocorrect", "--auto-correct", "--autocorrect-all", "-o", "--out"),
    "ruff": ("--fix", "--fix-only", "--unsafe-fixes", "-o", "--output-file", "format", "--add-noqa"),
    "shfmt": ("-w", "--write"),
    "swiftlint": ("--fix", "--autocorrect"),
    "taplo": ("format", "fmt"),
    "tree": ("-o",),
    "tsc": ("--outDir", "--outFile", "--declarationDir", "--tsBuildInfoFile"),
    "xxd": ("-r", "-revert"),
    "yq": ("-i", "--inplace", "-s", "--split-exp"),
}
"""And the options, or words, that make them write."""
_MOST_READ = {"xxd": 1, "json.tool": 1}
"""Operands that are read; the next one is written."""
_AWK_WRITES = lazy_regex(r"[>|]|\bsystem\b|@")
_SCRIPT_WRITES = lazy_regex(
    r"\b(?:open|unlink|rename|system|exec|truncate|ch(?:mod|own)|link|symlink|utime|rmdir|mkdir|qx|eval|do|require"
    r"|sys\w+|File|IO|FileUtils)\b|[`>|]"
)
_SYSTEM = ("/bin/", "/sbin/", "/usr/", "/opt/", "/nix/", "/snap/")
_NO_PATH = lazy_regex(r"[^\w./~+@%-]+")
_BARE = lazy_regex(r"[\w-]*")
_MOST_IN_TEXT = 400
_SHELL = OptionTable("oO", ("--rcfile", "--init-file"))
AWK = frozenset({"awk", "gawk", "mawk", "nawk", "original-awk"})
_LINE_BY_LINE = frozenset({"perl", "ruby"})
_RUN_A_FILE = frozenset(
    {
        *("bun", "elixir", "guile", "julia", "lua", "luajit", "node", "nodejs", "osascript", "php", "pwsh", "Rscript"),
        *("scala", "tclsh", "ts-node", "tsx", "wish"),
    }
)
_MOUNTING = frozenset({"docker", "podman", "nerdctl"})
"""Words before their command may name a directory that the command sees under another name."""


def named(words: Sequence[Word]) -> Iterator[Target]:
    """The paths passed to a command with unknown effects."""
    name = _name(words[0].text)
    if words[0].anything or _only_reads(name, words):
        return
    if name in PREFIXES:
        options, _ = read(words, PREFIXES[name].options)
        values = [one.value for one in options if one.value is not None and one.name not in PREFIXES[name].directory]
        yield from (target for value in values for target in named_by(value))
    elif name in EVERYWHERE:
        yield from (target for word in _in_front(words) for target in named_by(word))
    elif name in SHELLS or runs_files(name):
        yield from _handed_to_script(name, words)
    elif name in AFTER and name not in _MOUNTING:
        end = next((at for at, word in enumerate(words) if word.text in AFTER[name]), len(words))
        yield from (target for word in words[1:end] for target in named_by(word))
    else:
        yield from (target for word in words[1:] for target in named_by(word))


def _in_front(words: Sequence[Word]) -> Iterator[Word]:
    """The options before a command, and possible values of them."""
    for before, word in pairwise(words):
        if word.text.startswith("-"):
            yield word
        elif not before.text.startswith("-"):
            return
        else:
            yield word


def named_in(text: str) -> Iterator[Target]:
    """The same, for text in another language: anything that looks like a path."""
    found = dict.fromkeys(token for token in _NO_PATH.split(text) if "/" in token or "." in token)
    yield from (Target(Word(token), _reach(token)) for token in list(found)[:_MOST_IN_TEXT])


def named_by(word: Word) -> Iterator[Target]:
    """The word itself, and anything attached to an option, an equals sign or a colon in it."""
    text = word.text
    if word.glob is not None and "**" in word.glob:  # the result of a search: it is below this
        yield Target(Word(text), _reach(text))
        return
    if word.glob is not None:
        yield from [Target(word, _reach(text))] if word.glob != "*" else []
        return
    parts = [text, *re.split("[=:,]", text)[1:], *text.split(":")[:1]]
    if re.match(r"-\w", text):
        parts.append(text[2:])
    yield from (
        Target(Word(part, word.static), _reach(part), guessed=_BARE.fullmatch(part) is not None)
        for part in dict.fromkeys(parts)
        if part and part[0] != "-"
    )


def _reach(text: str) -> Reach:
    """A bare word such as `test` is not a directory to a program that has subcommands."""
    return Reach.NAMED if "/" in text or text.startswith((".", "~")) else Reach.FILE


def _name(word: str) -> str:
    """A system program is known by its name; one from another place is not."""
    return word.rsplit("/", 1)[-1] if word.startswith(_SYSTEM) else word


def runs_files(name: str) -> bool:
    """Whether it runs a file named as an argument, in its own language."""
    return name in _RUN_A_FILE or (name not in LANGUAGES and language(name) is not None)


def _only_reads(name: str, words: Sequence[Word]) -> bool:
    if name in READERS:
        return not _writes(words, READERS[name]) and _operands(words) <= _MOST_READ.get(name, len(words))
    if name in AWK:
        return _AWK_WRITES.search(" ".join(word.text for word in words[1:])) is None
    if name in _LINE_BY_LINE:
        options, _ = read(words, LANGUAGES[name].options)
        code = " ".join(value.text for value in values_of(options, "-e", "-E"))
        return has(options, "-n", "-p") and bool(code) and _SCRIPT_WRITES.search(code) is None
    return name in RUN_OTHERS and name not in SHELLS and name not in PREFIXES and name not in EVERYWHERE


def _operands(words: Sequence[Word]) -> int:
    return sum(word.text == "-" or not word.text.startswith("-") for word in words[1:])


def _writes(words: Sequence[Word], marks: Sequence[str]) -> bool:
    for word in words[1:]:
        given = word.text.partition("=")[0]
        for mark in marks:
            short = len(mark) == 2 and re.match(r"-\w", given) and mark[1] in given
            abbreviated = len(given) > 3 and given.startswith("--") and mark.startswith(given)
            if given == mark or short or abbreviated:
                return True
    return False


def _handed_to_script(name: str, words: Sequence[Word]) -> Iterator[Target]:
    """The file an interpreter runs is read; what it does with its arguments is unknown."""
    found = language(name)
    options, operands = read(words, _SHELL if found is None else found.options)
    module = value_of(options, "-m") if found is not None and name not in LANGUAGES else None
    if module is not None:
        yield from named((module, *operands))
    elif found is None and has(options, "-c"):
        return
    else:
        code = found is not None and (has(options, *found.flags) or bool(values_of(options, *found.names)))
        yield from (target for word in operands[0 if code else 1 :] for target in named_by(word))
