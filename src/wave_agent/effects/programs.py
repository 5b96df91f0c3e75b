"""Which programs there are tables for, and how each of them is read."""

from collections.abc import Callable, Mapping, Sequence

from wave_agent.effects.file_readers import FILE_READERS, OTHER_READERS, RESPONSE_FILES, response_file
from wave_agent.effects.gathering import Command
from wave_agent.effects.git import git
from wave_agent.effects.network import NETWORK, proxies_in
from wave_agent.effects.project_scripts import run_just, run_make, run_package_script, run_shell, source_file
from wave_agent.effects.text_programs import AWKS, awk, sed
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.carriers import EVERYWHERE, language, unbundled
from wave_agent.shell.options import OptionTable, has, says, values_of
from wave_agent.shell.values import Word
from wave_agent.shell.wrappers import PREFIXES, RUN_OTHERS, SHELLS
from wave_agent.shell.writes import WRITERS

Part = Callable[[Command], None]

# ---------------------------------------------------------------------------------------------- no files, or names only

_BUILTINS = """
    : true false echo printf cd pushd popd dirs pwd test [ [[ set shopt export unset local declare typeset readonly read
    return exit break continue shift wait jobs fg bg kill type umask ulimit let getopts times caller disown suspend help
    logout mapfile readarray bind compgen complete compopt hash
"""
_TELLING = """
    ls dir vdir stat df basename dirname realpath readlink which whereis whoami id groups uname hostname date nproc arch
    tty seq sleep expr factor yes tput clear reset free uptime who w users ps pgrep pidof pkill killall top htop lsof
    tree exa eza printenv locale getconf logname sync cal tr numfmt pathchk lsblk lscpu vmstat iostat dmesg last
    getfacl lsattr namei mountpoint stty nohup-list sw_vers lsb_release fd fdfind bc-version tokei cloc
"""


def _nothing(_: Command) -> None:
    """It neither reads the content of files nor changes any; or it runs something else, which is found by itself."""


def _written(command: Command) -> None:
    command.targets(WRITERS[command.name](command.words))


def _moved(command: Command) -> None:
    """The sources are deleted, so only the destination is left: a copy of whole directories writes the same."""
    command.targets(WRITERS["cp"]((Word("cp"), Word("-r"), *command.arguments)))


_COMPRESSORS = "gzip xz bzip2 zstd lzma compress"


def _compressed(command: Command) -> None:
    """The result gets another ending, and the original goes away."""
    options, operands = command.options(OptionTable("STb", ("--suffix", "--threads")))
    if not says(options, "-c", "--stdout", "--to-stdout", "-t", "--test", "-l", "--list"):
        command.writes(Word(word.text, word.static, f"{word.pattern}?*") for word in operands)


def _incomplete(command: Command) -> None:
    command.unknown()


def _unknown_program(command: Command) -> None:
    """It probably reads what looks like a path, and may do anything."""
    command.reads_like_paths(command.arguments)
    command.unknown()


def _traced(command: Command) -> None:
    """`-o '|COMMAND'` runs one, and another process may be followed."""
    if any(text.startswith(("-o|", "-o!", "|", "!", "--output=|", "--output=!", "-p")) for text in command.texts):
        command.unknown()


def _made_somewhere(command: Command) -> None:
    """`mktemp`, in a directory that is given, or in the usual one."""
    options, operands = command.options(OptionTable("p", ("--tmpdir", "--suffix")))
    places = values_of(options, "-p", "--tmpdir")
    forms = [f"{word.pattern.rstrip('X')}*" for word in operands] or ["tmp.*"]
    if operands and not has(options, "-t", "-p", "--tmpdir"):
        command.writes(Word(form, glob=form) for form in forms)
    else:
        usual = command.surroundings.variables.get("TMPDIR") or "/tmp"
        for place in places or [Word(usual)]:
            command.writes(Word(f"{place.pattern}/{form}", place.static, f"{place.pattern}/{form}") for form in forms)


def _history(command: Command) -> None:
    """`-r` and `-n` read a file, which can then be shown. Without an operand it is the one that HISTFILE names."""
    options, operands = command.options(OptionTable("d"))
    if has(options, "-r", "-n", "-a", "-w"):
        command.reads(operands if has(options, "-r", "-n") else ())
        if not operands:
            command.unknown()


def _parts(command: Command) -> None:
    """`split` and `csplit` have a usual prefix."""
    options, operands = command.options(OptionTable("abCflnt", ("--prefix", "--suffix-format")))
    if not has(options, "-f", "--prefix") and (command.name == "csplit" or len(operands) < 2):
        form = "xx*" if command.name == "csplit" else "x*"
        command.writes([Word(form, glob=form)])


def _parents(command: Command) -> None:
    """`mkdir -p a/b/c`, `install -d a/b/c`"""
    options, operands = command.options(OptionTable("mog", ("--mode", "--owner", "--group")))
    makes = ("-p", "--parents") if command.name == "mkdir" else ("-d", "--directory")
    for word in operands if has(options, *makes) else ():
        steps = word.pattern.split("/")
        for end in range(1, len(steps)):
            command.writes([Word(text, word.static, text) for text in ["/".join(steps[:end])]])


def _output(command: Command) -> None:
    options, _ = command.options(OptionTable("inoft", ("--output",)))
    command.writes(values_of(options, "-o", "--output"))


def _tar(command: Command) -> None:
    """An archive is read, or written from what is read."""
    table = OptionTable(
        "fCTXbgHKLNVIF",
        (
            *("--file", "--directory", "--files-from", "--exclude-from", "--exclude", "--transform"),
            *("--strip-components", "--listed-incremental", "--use-compress-program", "--to-command", "--add-file"),
            "--xform",
        ),
    )
    command.words = tuple(unbundled(command.words, table))
    options, operands = command.options(table)
    if has(options, "-x", "-t", "--extract", "--get", "--list", "-d", "--diff", "--compare"):
        command.reads(values_of(options, "-f", "--file"))
    else:
        below = values_of(options, "-C", "--directory")
        lists = values_of(options, "-T", "--files-from")
        operands = [
            *operands,
            *values_of(options, "--add-file"),
            *command.listed(lists, "\0" if has(options, "--null") else "\n"),
        ]
        for inside in below or [None]:
            for pattern in list(command.paths(operands, inside)):
                command.gathering.read(pattern)
                command.gathering.read(f"{pattern}/**")
    # Some of these are flags in other versions of tar, and what follows is then a file.
    command.reads(values_of(options, "-X", "--exclude-from", "-T", "--files-from", "-H", "-L", "-N", "-V", "-K", "-b"))
    if has(options, "-T", "--files-from", "-P", "--absolute-names", "--transform", "--xform"):
        command.unknown()


_EDITORS = ("ex", "vi", "vim", "nvim", "nano", "emacs", "ed", "less", "more", "sdiff", "view", "most")


def _edited(command: Command) -> None:
    command.reads_like_paths(command.arguments)
    command.reads(word for word in command.arguments if not word.text.startswith(("-", "+")))
    command.unknown()


_IN_PLACE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("black", "isort", "rustfmt", "autopep8", "yapf", "docformatter", "pyupgrade", "unifdef"), ()),
    **dict.fromkeys(("gofmt", "goimports", "shfmt", "gofumpt"), ("-w",)),
    **dict.fromkeys(("prettier", "biome"), ("--write", "-w", "format")),
    **dict.fromkeys(("eslint", "stylelint", "swiftlint", "standard", "markdownlint"), ("--fix",)),
    "ruff": ("format", "--fix"),
    "clang-format": ("-i",),
    "yq": ("-i", "--inplace"),
    "dos2unix": (),
    "unix2dos": (),
    "sponge": (),
}


def _reformatted(command: Command) -> None:
    """Tools that change the files they are given, perhaps only with an option."""
    named = [word for word in command.arguments if not word.text.startswith("-")]
    marks = _IN_PLACE[command.name]
    changes = not marks or any(text in marks for text in command.texts)
    for pattern in list(command.paths(named)):
        for one in (pattern, f"{pattern}/**/[!.]*"):  # in a directory, they look for sources: none is hidden
            command.gathering.read(one)
            if changes:
                command.gathering.write(one)
    command.unknown()


def _environment(command: Command) -> None:
    """`env NAME=value COMMAND`: another PATH finds other programs. `env -S` has a quoting of its own."""
    split = any(text.startswith(("-S", "--split")) for text in command.texts)
    names = [text.partition("=")[0] for text in command.texts if "=" in text]
    command.gathering.assigned.update(names)
    for host in (host for text in command.texts for host in proxies_in(text)):
        command.host(host)
    if split or any(map(matters, names)):
        command.unknown()


_MATTERS = lazy_regex(
    r"PATH|LD_.*|DYLD_.*|BASH_.*|ENV|IFS|SHELLOPTS|BASHOPTS|GLOBIGNORE|CDPATH|HOME|TMPDIR|GIT_.*|PYTHON.*|NODE_.*|PERL.*"
    r"|RUBY.*|.*PAGER|.*EDITOR|VISUAL|LESS.*|GREP_.*|RIPGREP_.*|TAR_OPTIONS|MAKEFLAGS|.*_RSH|.*_PROXY|.*_proxy"
    r"|.*INDEX_URL|npm_.*|UV_.*|PIP_.*|CARGO_.*|RUST.*|GO[A-Z]+|CC|CXX|JAVA_.*|XDG_.*|ZDOTDIR|POSIXLY_CORRECT|PS4"
    r"|PROMPT_COMMAND|OPENSSL_.*|CURL_HOME|NETRC|WGETRC|SSH_.*|DOCKER_.*|TERMINFO.*|LOCPATH|NLSPATH|MALLOC_.*|JQ_.*"
)


def matters(name: str) -> bool:
    """Whether this variable changes which programs run, or which files and hosts they use."""
    return _MATTERS.fullmatch(name) is not None


# ------------------------------------------------------------------------------------------------------------ the table

_WRITTEN = """
    tee mkdir mkfifo mknod rmdir unlink touch truncate shred rm rimraf trash trash-put chmod chown chgrp chattr setfacl
    cp install ln dd sort uniq split csplit gzip gunzip xz unxz bzip2 bunzip2 zstd unzstd lzma uncompress compress unzip
    zip patch curl wget find history scp ssh rsync openssl ed nano emacs ex vi vim nvim tar
"""
_ALSO_WRITTEN = """
    script cc gcc g++ c++ clang clang++ ld as rustc pandoc dot ssh-keygen perl ruby scalar
"""
"""Programs of which it is known where they write, but not what else they do."""
_ELSEWHERE = ("chroot", "unshare", "nsenter", "systemd-run", "faketime", "run0", "busybox", "toybox")
"""They run a command, but not where, or not as, it would run here."""


def _table() -> Mapping[str, tuple[Part, ...]]:
    table: dict[str, tuple[Part, ...]] = {}

    def add(names: Sequence[str], part: Part) -> None:
        for name in names:
            table[name] = (*table.get(name, ()), part)

    add((*_BUILTINS.split(), *_TELLING.split()), _nothing)
    add([name for name in (*PREFIXES, *RUN_OTHERS) if name not in SHELLS and name not in EVERYWHERE], _nothing)
    add(_ELSEWHERE, _incomplete)
    add(("env", "sudo", "doas"), _environment)
    add(tuple(SHELLS), run_shell)
    add((".", "source"), source_file)
    for name, reader in (*FILE_READERS.items(), *OTHER_READERS.items(), *NETWORK.items()):
        add((name,), reader)
    add(AWKS, awk)
    add(RESPONSE_FILES.split(), response_file)
    add([name for name in RESPONSE_FILES.split() if name not in FILE_READERS], _unknown_program)
    add(("time", "strace", "ltrace", "flock", "valgrind", "perf"), _written)
    add(("strace", "ltrace"), _traced)
    add(("valgrind", "perf"), _unknown_program)
    add(("sed",), sed)
    add(("git",), git)
    add(("tar", "bsdtar", "gtar"), _tar)
    add(("mktemp",), _made_somewhere)
    add(("history",), _history)
    add(_WRITTEN.split(), _written)
    add(_COMPRESSORS.split(), _compressed)
    add(("mv",), _moved)
    add(("split", "csplit"), _parts)
    add(("mkdir", "install"), _parents)
    add(("shuf", "iconv"), _output)
    add(_ALSO_WRITTEN.split(), _written)
    add(_ALSO_WRITTEN.split(), _unknown_program)
    add(_EDITORS, _edited)
    add(tuple(_IN_PLACE), _reformatted)
    add(("make", "gmake"), run_make)
    add(("npm", "yarn", "pnpm", "bun"), run_package_script)
    add(("just",), run_just)
    return table


PROGRAMS = _table()
"""Everything that is known of a program: all of its parts are asked."""
_VERSION = frozenset({"--version", "-V", "-v", "version"})


def note(command: Command) -> None:
    """Adds the effects of a command, apart from what it runs."""
    if _asks_for_version(command):
        return
    for part in PROGRAMS.get(command.name, (_unknown_program,)):
        part(command)


VERSIONED = frozenset(
    {
        *("pip", "pip3", "uv", "npm", "npx", "node", "deno", "python", "python3", "make", "cmake", "ninja", "gcc"),
        *("g++", "cc", "c++", "clang", "clang++", "cargo", "rustc", "ruby", "perl", "php", "java", "javac", "docker"),
        *("pytest", "ruff", "mypy", "black"),
    }
)
"""Programs that only print something if they are asked for their version or for help."""


def _asks_for_version(command: Command) -> bool:
    """`python3 --version`"""
    if len(command.texts) != 1:
        return False
    if command.name in VERSIONED and command.texts[0] in ("--version", "--help"):
        return True
    return language(command.name) is not None and command.name not in PROGRAMS and command.texts[0] in _VERSION
