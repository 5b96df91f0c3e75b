"""Commands that run other commands."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import dirname

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.carriers import EVERYWHERE, carried
from wave_agent.shell.git_commands import COMMANDS
from wave_agent.shell.git_runs import git_runs
from wave_agent.shell.listed_names import AT_BLANKS, splits_at
from wave_agent.shell.options import Option, OptionTable, has, read, says, value_of, values_of, without_assignments
from wave_agent.shell.printing import decode
from wave_agent.shell.runs import ANY_COMMAND, ForeignCode, Inner, ShellText, Tail, joined
from wave_agent.shell.searches import as_name, found, found_name, searched_by_fd, starts
from wave_agent.shell.values import Word, escape

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "yash", "rbash", "fish", "csh", "tcsh"})


def inner(words: Sequence[Word], stdin: Word | None) -> Iterator[Inner]:
    """What a command runs, if its words say so. `stdin` is its input."""
    name = words[0].text
    short = name.rsplit("/", 1)[-1]
    if short != name:
        yield Tail((Word(short, words[0].static), *words[1:]), shortened=True)
        return
    if short in SHELLS:
        yield from _shell(words, stdin)
    elif short in _SPECIAL:
        yield from _SPECIAL[short](words, stdin)
    elif short in PREFIXES:
        yield from _prefix(words, PREFIXES[short])
    elif short.startswith("git-") and short.removeprefix("git-") in COMMANDS:
        yield Tail((Word("git"), Word(short.removeprefix("git-")), *words[1:]))
    yield from carried(words, stdin)


# --------------------------------------------------------------------------------- those that put words in front of one


class Prefix(Struct, frozen=True):
    """A command whose last operands are a command."""

    options: OptionTable = OptionTable()
    skipped: int = 0
    """Operands before the command."""
    lookups: tuple[str, ...] = ()
    """Options with which nothing is run."""
    directory: tuple[str, ...] = ()
    """Options that set the directory."""
    git: bool = False
    """It is a git command."""
    called: tuple[str, ...] = ()
    """Options that give it another name."""


_SUDO = OptionTable(
    "CDghpRrTtUu", ("--user", "--group", "--host", "--prompt", "--chdir", "--role", "--type", "--chroot")
)
_RUN_AS = OptionTable("cugGsw", ("--command", "--user", "--group", "--shell", "--session-command"))
PREFIXES: Mapping[str, Prefix] = {
    "!": Prefix(),
    "{": Prefix(),
    "builtin": Prefix(),
    "caffeinate": Prefix(OptionTable("tw")),
    "chroot": Prefix(OptionTable("", ("--userspec", "--groups")), skipped=1),
    "chrt": Prefix(OptionTable("TPD"), skipped=1),
    "command": Prefix(lookups=("-v", "-V")),
    "dbus-run-session": Prefix(),
    "doas": Prefix(OptionTable("uC")),
    "env": Prefix(
        OptionTable("uCSa", ("--unset", "--chdir", "--split-string", "--argv0")),
        directory=("-C", "--chdir"),
        called=("-a", "--argv0"),
    ),
    "exec": Prefix(OptionTable("a"), called=("-a",)),
    "fakeroot": Prefix(OptionTable("ils")),
    "faketime": Prefix(OptionTable("f"), skipped=1),
    "flock": Prefix(OptionTable("wEc", ("--timeout", "--wait", "--conflict-exit-code", "--command")), skipped=1),
    "gosu": Prefix(skipped=1),
    "ionice": Prefix(OptionTable("cnpPu", ("--class", "--classdata"))),
    "ltrace": Prefix(OptionTable("aAeFlnopsuwx")),
    "nice": Prefix(OptionTable("n", ("--adjustment",))),
    "nohup": Prefix(),
    "hub": Prefix(git=True),
    "nsenter": Prefix(OptionTable("tSGW", ("--target", "--setuid", "--setgid", "--wdns"), attached="muinpUCTrw")),
    "pkexec": Prefix(OptionTable("", ("--user",))),
    "run0": Prefix(
        OptionTable("ugDM", ("--user", "--group", "--chdir", "--unit", "--property", "--description", "--slice"))
    ),
    "setsid": Prefix(),
    "stdbuf": Prefix(OptionTable("ioe", ("--input", "--output", "--error"))),
    "strace": Prefix(OptionTable("aAbeEIoOpPsSuUX")),
    "su-exec": Prefix(skipped=1),
    "sudo": Prefix(_SUDO, directory=("-D", "--chdir")),
    "systemd-run": Prefix(
        OptionTable("HMpEut", ("--unit", "--property", "--setenv", "--uid", "--gid", "--description"))
    ),
    "taskset": Prefix(skipped=1),
    "time": Prefix(OptionTable("fo", ("--format", "--output"))),
    "timeout": Prefix(OptionTable("ks", ("--kill-after", "--signal")), skipped=1),
    "toybox": Prefix(),
    "busybox": Prefix(),
    "unbuffer": Prefix(),
    "unshare": Prefix(
        OptionTable(
            "RwSG",
            (
                *("--root", "--wd", "--setuid", "--setgid", "--propagation", "--setgroups", "--map-user"),
                *("--map-group", "--map-users", "--map-groups", "--monotonic", "--boottime"),
            ),
        )
    ),
}


def _prefix(words: Sequence[Word], prefix: Prefix) -> Iterator[Inner]:
    options, operands = read(words, prefix.options)
    if says(options, *prefix.lookups):
        return
    if prefix.git:
        yield Tail((Word("git"), *words[1:]))
        return
    given, operands = operands, without_assignments(operands)
    if split := value_of(options, "-S", "--split-string"):
        text = Word(_split_string(split.text), split.static)
        yield ShellText(joined([text, *operands]))
        yield Tail((*(Word(one, split.static and "$" not in one) for one in _parted(text.text)), *operands))
    assignments = tuple(word for word in given[: len(given) - len(operands)] if "=" in word.text)
    if name := value_of(options, *prefix.called):
        assignments += (Word(f"BASH_ARGV0={name.text}", name.static, origin=name.origin),)
        yield Tail((name, *operands[1:]))  # multi-call programs, which act according to their name
    for one in _command(operands[prefix.skipped :]):
        where = value_of(options, *prefix.directory)
        yield Tail(one.words, where, assignments) if isinstance(one, Tail) else one


_ESCAPED = lazy_regex(r"\\c.*|\\([_tnvfr])|\\(.)|(?:(?<=\s)|^)#.*", re.DOTALL)


def _split_string(text: str) -> str:
    """The argument of `env -S` in shell syntax: it has its own escapes, and a comment ends with the text."""
    return _ESCAPED.sub(lambda found: " " if found[1] else f"\\{found[2]}" if found[2] else "", text)


def _parted(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _command(words: Sequence[Word]) -> Iterator[Inner]:
    """`flock FILE -c '…'` and `chroot DIR VAR=x …` have something special before the command."""
    rest = without_assignments(words)
    if rest and rest[0].text in ("-c", "--command"):
        yield from (ShellText(word) for word in rest[1:2])
    elif rest and rest[0].text == "--":
        yield Tail(tuple(rest[1:]))
    elif rest:
        yield Tail(tuple(rest))


# ---------------------------------------------------------------------------------------- those with a way of their own


def _shell(words: Sequence[Word], stdin: Word | None) -> Iterator[Inner]:
    rest, reads_text, reads_stdin = list(words[1:]), False, False
    while rest and rest[0].text[:1] in ("-", "+") and len(rest[0].text) > 1:
        option = rest.pop(0).text
        if option == "--":
            break
        short = not option.startswith("--")
        reads_text |= (short and "c" in option) or option == "--command"
        reads_stdin |= short and "s" in option
        if option in ("--rcfile", "--init-file"):
            yield from (one for word in rest[:1] for one in _file(word))
        if (short and option[-1] in "oO") or option in ("--rcfile", "--init-file"):
            rest = rest[1:]
    if reads_text:
        yield from (ShellText(text, tuple(rest[1:])) for text in rest[:1])
    elif reads_stdin or not rest or rest[0].text == "-" or _STDIN.fullmatch(rest[0].text):
        yield from (ShellText(text, (Word("sh"), *rest)) for text in [stdin] if text is not None)
    else:
        yield from _file(rest[0])


_STDIN = lazy_regex(r"/dev/(?:stdin|fd/0)|/proc/(?:self|thread-self)/fd/0")


def _file(word: Word) -> Iterator[Inner]:
    if word.text.startswith("<("):
        yield ShellText(word if word.prints is None else Word(word.prints))


def _source(words: Sequence[Word], stdin: Word | None) -> Iterator[Inner]:
    for word in words[1:2]:
        if _STDIN.fullmatch(word.text) and stdin is not None:
            yield ShellText(stdin)
        yield from _file(word)


def _eval(words: Sequence[Word], _: Word | None) -> Iterator[Inner]:
    rest = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    if rest:
        yield ShellText(joined(rest))


def _trap(words: Sequence[Word], _: Word | None) -> Iterator[Inner]:
    _options, operands = read(words, OptionTable())
    if len(operands) > 1 and operands[0].text not in ("", "-"):
        yield ShellText(operands[0])


def _alias(words: Sequence[Word], _: Word | None) -> Iterator[Inner]:
    for word in words[1:]:
        _name, equals, value = word.text.partition("=")
        if equals:
            yield ShellText(Word(value, word.static))


def _coproc(words: Sequence[Word], _: Word | None) -> Iterator[Inner]:
    texts = [word.text for word in words]
    if "{" in texts:
        yield Tail(tuple(words[texts.index("{") + 1 :]))
    else:
        yield Tail(tuple(words[1:]))


def _run_as(words: Sequence[Word], _: Word | None) -> Iterator[Inner]:
    """`su` and `runuser` accept options anywhere, and pass the rest to a shell, or to the program named as one."""
    options, operands = read(words, _RUN_AS, mixed=True)
    shell = value_of(options, "-s", "--shell")
    text = value_of(options, "-c", "--command", "--session-command")
    if text is not None:
        yield ShellText(text)
    if has(options, "-u", "--user"):
        yield Tail(tuple(operands))
    elif shell is not None:
        given = operands[1:] if operands[:1] != [Word("-")] else operands[2:]
        yield Tail((shell, *([Word("-c"), text] if text is not None else []), *given))
    yield from (ShellText(operands[at + 1]) for at, word in enumerate(operands[:-1]) if word.text == "-c")


def _with_script_option(words: Sequence[Word], stdin: Word | None) -> Iterator[Inner]:
    options, _operands = read(words, OptionTable("cEIOBTmo", ("--command", "--log-out", "--log-io")), mixed=True)
    if text := value_of(options, "-c", "--command") or stdin:
        yield ShellText(text)


def _stdin(_: Sequence[Word], stdin: Word | None) -> Iterator[Inner]:
    if stdin is not None:
        yield ShellText(stdin)


def _make(words: Sequence[Word], stdin: Word | None) -> Iterator[Inner]:
    """Lines that start with a tab are for a shell, and so is what follows a semicolon."""
    options, _ = read(words, OptionTable("fCIo", ("--file", "--makefile", "--directory")), mixed=True)
    file = value_of(options, "-f", "--file", "--makefile")
    # The grammar loses the dash of `make -f - <<E`.
    is_input = words[-1].text in ("-f", "--file", "--makefile") if file is None else _IS_INPUT.fullmatch(file.text)
    if is_input and stdin is not None:
        lines = stdin.text.splitlines()
        recipes = (line if line.startswith("\t") else line.partition(";")[2] for line in lines)
        yield ShellText(Word("\n".join(one.lstrip("\t @+-") for one in recipes), stdin.static))
        yield ForeignCode(stdin)


_IS_INPUT = lazy_regex(r"-|/dev/stdin|/dev/fd/\d+|/proc/[^/]+/fd/\d+")


def _watch(words: Sequence[Word], _: Word | None) -> Iterator[Inner]:
    _options, operands = read(words, OptionTable("nq", ("--interval", "--equexit")))
    if operands:
        yield ShellText(joined(operands))


_SSH = OptionTable("BbcDEeFIiJLlmOoPpQRSWw")


def _ssh(words: Sequence[Word], _: Word | None) -> Iterator[Inner]:
    _options, operands = read(words, _SSH)
    _more, rest = read(operands, _SSH)
    if rest:
        yield ShellText(joined(rest))


XARGS = OptionTable(
    "adEILnPs", ("--arg-file", "--delimiter", "--process-slot-var", "--max-args", "--max-procs", "--max-chars")
)


def _items(text: str, options: Sequence[Option]) -> list[str]:
    """What `xargs` makes of its input: it has its own quoting."""
    delimiter = value_of(options, "-d", "--delimiter")
    if delimiter is not None or has(options, "-0", "--null"):
        return text.split(decode(delimiter.text) or " " if delimiter else "\0")
    return _parted(text)


def _xargs(words: Sequence[Word], stdin: Word | None) -> Iterator[Inner]:
    """Its input becomes words. If they are unknown, it is at least known that there are some."""
    options, operands = read(words, XARGS)
    if not operands:
        return
    if file := value_of(options, "-a", "--arg-file"):
        stdin = Word(file.text if file.prints is None else file.prints, static=file.prints is not None)
    given = [Word(text) for text in _items(stdin.text, options)] if stdin is not None and stdin.static else []
    if stdin is None:
        unknown = [_UNKNOWN]
    else:
        unknown = [] if stdin.static or stdin.paths else [Word(stdin.text, False, origin=stdin.origin)]
    mark = value_of(options, "-I", "--replace") or (Word("{}") if has(options, "-i", "--replace") else None)
    splits = splits_at(options)
    exact = stdin is not None and stdin.exact and splits is not None
    splits = splits or AT_BLANKS
    paths = [
        Word(path, static=False, glob=path, splits=splits, exact=exact and not re.search(splits, path))
        for path in (stdin.paths if stdin is not None else ())
    ]
    if mark is None:
        yield Tail((*operands, *given, *paths))
        if len(paths) > 1:  # one at a time, or in batches: each of them may be the last word
            yield from (Tail((*operands, *given, path)) for path in paths[:-1])
        if unknown:
            yield Tail((*operands, *unknown))
        return
    for word in unknown:
        yield Tail(tuple(word if mark.text in one.text else one for one in operands))
    for path in paths:
        yield Tail(tuple(_marked(word, mark.text, path) for word in operands))
    lines = stdin.text.splitlines() if stdin is not None and stdin.static else [mark.text]
    for line in lines[:_MOST]:
        yield Tail(tuple(Word(word.text.replace(mark.text, line), word.static) for word in operands))
    if len(lines) > _MOST:
        yield ANY_COMMAND


def _marked(word: Word, mark: str, path: Word) -> Word:
    """The word with a path of a search in it. What is around the path makes another one of it."""
    if word.text == mark or mark not in word.text:
        return path if word.text == mark else word
    glob = path.pattern.join(map(escape, word.text.split(mark)))
    return Word(word.text.replace(mark, path.pattern), static=False, glob=glob)


_UNKNOWN = Word("…", static=False)
_MOST = 64
"""Limit on the lines and arguments for which a command is repeated."""
_PARALLEL = OptionTable(
    "jJSaINnLPsCdE", ("--jobs", "--sshlogin", "--arg-file", "--colsep", "--joblog", "--results", "--delay")
)


def _parallel(words: Sequence[Word], stdin: Word | None) -> Iterator[Inner]:
    _, operands = read(words, _PARALLEL)
    texts = [word.text for word in operands]
    marks = [at for at, text in enumerate(texts) if re.fullmatch(r"::::?\+?", text)]
    end = marks[0] if marks else len(texts)
    template = joined(operands[:end])
    lines = stdin.text.splitlines() if stdin is not None and stdin.static else []
    each = [*texts[end + 1 :], *lines]
    if len(each) > _MOST:
        yield ANY_COMMAND
    listed = any(texts[at].startswith("::::") for at in marks)
    if (stdin is not None and not stdin.static) or listed:  # what it gets is not known, or only as names of files
        paths = stdin.paths if stdin is not None and stdin.paths else ("…",)
        yield from (ShellText(Word(_filled(template.text, path), static=False)) for path in paths)
    for given in each[:_MOST] or [""]:
        text = _filled(template.text, given)
        if text:
            yield ShellText(Word(text, template.static))


def _filled(template: str, given: str) -> str:
    return template.replace("{}", given) if "{}" in template else f"{template} {given}".strip()


def _find(words: Sequence[Word], _: Word | None) -> Iterator[Inner]:
    texts = [word.text for word in words]
    named = found_name(words)
    for at, text in enumerate(texts):
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            ends = (
                stop
                for stop in range(at + 1, len(texts))
                if texts[stop] == ";" or texts[stop - 1 : stop + 1] == ["{}", "+"]
            )
            end = next(ends, len(texts))
            run = words[at + 1 : end]
            if text.endswith("dir"):
                yield from _beside(words, run, named)
                continue
            for place in found(words):
                yield Tail(tuple(place if word.text == "{}" else word for word in run))
            if named is not None and texts[at + 1 : at + 2] == ["{}"]:
                yield Tail((Word(named.text, glob=named.text), *run[1:]))


def _beside(words: Sequence[Word], run: Sequence[Word], named: Word | None) -> Iterator[Inner]:
    """`-execdir` runs in the directory of each file that is found, and calls it `./name`."""
    name = Word(".", glob=f"./{'**' if named is None else as_name(named)}")
    filled = tuple(name if word.text == "{}" else _marked(word, "{}", name) for word in run)
    for start in starts(words):
        yield Tail(filled, Word(start.text, static=False, glob=f"{start.pattern.rstrip('/')}/**"))
        yield Tail(filled, start)
        yield Tail(filled, Word(dirname(start.text.rstrip("/")) or ".", start.static))


def _fd(words: Sequence[Word], _stdin: Word | None) -> Iterator[Inner]:
    for at, word in enumerate(words[1:], 1):
        name, _, value = word.text.partition("=")
        run: tuple[Word, ...] | None = None
        if len(name) > 3 and "--exec-batch".startswith(name):
            run = (*([Word(value)] if value else []), *words[at + 1 :])
        elif word.text[:2] in ("-x", "-X"):
            run = (*([Word(word.text[2:])] if word.text[2:] else []), *words[at + 1 :])
        if run is not None:
            yield Tail(run)
            for place in searched_by_fd(words) if run else ():
                filled = tuple(place if word.text == "{}" else word for word in run)
                yield Tail(filled if filled != run else (*run, place))


def _capsh(words: Sequence[Word], _: Word | None) -> Iterator[Inner]:
    """`capsh --shell=PROGRAM -- ARGUMENTS`"""
    texts = [word.text for word in words]
    end = next((at for at, text in enumerate(texts) if text in ("--", "==", "-+", "=+")), len(texts))
    for word in words[1:end]:
        if word.text.startswith("--shell="):
            yield Tail((Word(word.text.removeprefix("--shell="), word.static), *words[end + 1 :]))
    yield Tail((Word("bash"), *words[end + 1 :]))


def _run_parts(words: Sequence[Word], _: Word | None) -> Iterator[Inner]:
    """The programs in the directory are unknown; their arguments are not."""
    options, _operands = read(words, OptionTable("aun", ("--arg", "--umask", "--regex")), mixed=True)
    yield Tail((Word("…", static=False), *values_of(options, "-a", "--arg")))


def _tar(words: Sequence[Word], stdin: Word | None) -> Iterator[Inner]:
    """In a list of files, a line that looks like an option is one."""
    options, _ = read(words, OptionTable("fCTXbgHKLNVIF", ("--file", "--directory", "--files-from")), mixed=True)
    if stdin is not None and stdin.static and has(options, "-T", "--files-from"):
        lines = [Word(line) for line in stdin.text.splitlines() if line.startswith("-")]
        yield from [Tail((words[0], *lines))] if lines else []


def _git(words: Sequence[Word], _: Word | None) -> Iterator[Inner]:
    yield from git_runs(words)


_SPECIAL: Mapping[str, Callable[[Sequence[Word], Word | None], Iterator[Inner]]] = {
    ".": _source,
    "alias": _alias,
    "at": _stdin,
    "batch": _stdin,
    "capsh": _capsh,
    "coproc": _coproc,
    "eval": _eval,
    "fd": _fd,
    "fdfind": _fd,
    "find": _find,
    "git": _git,
    "make": _make,
    "newgrp": _stdin,
    "parallel": _parallel,
    "run-parts": _run_parts,
    "runuser": _run_as,
    "script": _with_script_option,
    "source": _source,
    "ssh": _ssh,
    "su": _run_as,
    "tar": _tar,
    "trap": _trap,
    "watch": _watch,
    "xargs": _xargs,
}
RUN_OTHERS = SHELLS | (frozenset(_SPECIAL) - {"git", "make", "tar"}) | frozenset(PREFIXES) | EVERYWHERE
"""Commands whose arguments are commands."""
