"""Commands that only read: they may run like the Read tool, unasked and beside others.

The class is small on purpose. A line in it is a sequence of commands with literal words (`shell.plain`: two parsers
agree on it), each of a program in the tables below, with options from its row. None of them writes, runs, signals or
connects to anything. What cannot be told from the line is asked:

- `find_program`: a program of the project that hides behind a usual name is not in the class;
- `git_settings`: git runs what its settings name. `core.fsmonitor` (any command that looks at the work tree),
  `diff.external`, `diff.*.command`, `diff.*.textconv` (diffs, logs with patches, blame, grep), `filter.*.clean` and
  `filter.*.process` (whatever compares the work tree) and submodules, which have settings of their own, exclude the
  commands that would use them; a partial clone, which fetches missing objects, and a format that checks signatures
  (`%G`) exclude all. Without an answer no git command is in the class.

Git also refreshes its index, pages its output, follows `core.fsmonitor` and checks signatures (`log.showSignature`).
Run a line of this class with the variables of `reading_environment`: they switch all of that off.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from posixpath import isabs, join, normpath

from msgspec import Struct

from wave_agent.effects.gathering import Command, Gathering
from wave_agent.effects.programs import VERSIONED, note
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.text_programs import awk_acts, sed_arguments, sed_script
from wave_agent.effects.values import Effects
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.options import Option, OptionTable, read, several
from wave_agent.shell.plain import goes_on_only_after_success, plain_commands
from wave_agent.shell.reader import read_line
from wave_agent.shell.values import Placed, ShellCommand, Word

_LONGEST = 4000
"""Characters of a line. Lines that look something up are shorter."""
_NOT_LOOKED_AT = ("/dev/", "/proc/", "/sys/", "/run/")
"""Reading there can block, consume something, or show what belongs to other processes."""


def only_reads(line: str, effects: Effects, surroundings: Surroundings) -> bool:
    """Whether the line only reads. `effects` are those of the line. Whether the files in `effects.reads` may be read is
    not judged here; nothing else is read, except what git knows about the project."""
    acts = effects.writes or effects.deletes or effects.hosts
    if acts or len(line) > _LONGEST or any(map(_CHANGES_BASH.fullmatch, surroundings.variables)):
        return False
    if _is_not_looked_at(effects):
        return False
    commands = reading_commands(line)
    places = _places(line, commands, surroundings.directory)
    if places is None or not all(_only_reads(one, places, surroundings) for one in commands):
        return False
    return bool(commands) and (effects.complete or all(_is_complete(one, surroundings) for one in commands))


def reading_commands(line: str) -> tuple[ShellCommand, ...]:
    """The commands of a line that may be in the class; none if it is more than a sequence of them."""
    parsed = read_line(line)
    if parsed.plain or not parsed.understood:
        return parsed.plain
    return plain_commands(line, reading=True)


class ReadingPart(Struct, frozen=True):
    """A command of a line that only reads by itself."""

    command: ShellCommand
    reads: tuple[str, ...]


def reading_parts(line: str, surroundings: Surroundings) -> tuple[ReadingPart, ...]:
    """The commands of a line that only read by themselves, whatever the others do.

    The line runs without the variables of `reading_environment`, so that git must not need them. And no command before
    may have changed what git would run.
    """
    if len(line) > _LONGEST or any(map(_CHANGES_BASH.fullmatch, surroundings.variables)):
        return ()
    commands = read_line(line).plain
    places = _places(line, commands, surroundings.directory)
    if places is None:
        return ()
    found: list[ReadingPart] = []
    settled = True
    for one in commands:
        is_git = one.words[0].text == "git"
        if one.words[0].text == "xargs":
            continue  # what it reads is only known from the whole line
        if _only_reads(one, places, surroundings) and (not is_git or (settled and _is_quiet(places, surroundings))):
            gathering = _gathered(one, places, surroundings)
            effects = gathering.effects()
            acts = effects.writes or effects.deletes or effects.hosts
            if not acts and (is_git or effects.complete) and not _is_not_looked_at(effects):
                found.append(ReadingPart(one, effects.reads))
        elif is_git:
            settled &= len(one.words) > 1 and one.words[1].text in _SETTLED
    return tuple(found)


_SETTLED = frozenset(
    {
        *("add", "commit", "checkout", "switch", "restore", "reset", "stash", "pull", "fetch", "push", "merge"),
        *("rebase", "rm", "mv"),
    }
)
"""Git commands that change no settings."""


def _is_quiet(places: Sequence[str], surroundings: Surroundings) -> bool:
    """Whether git does nothing of what `reading_environment` switches off. Its index may be refreshed."""
    for place in places:
        settings = surroundings.git_settings(place) or {}
        if any(settings.get(name.lower(), "false") not in ("", "false") for name in _RUNS):
            return False
    return True


_RUNS = ("core.fsmonitor", "log.showSignature")


def _is_not_looked_at(effects: Effects) -> bool:
    return any(path.startswith(_NOT_LOOKED_AT) for path in effects.reads)


def reading_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables to run a line of this class with, besides those that it would have anyway."""
    count = variables.get("GIT_CONFIG_COUNT", "0")
    start = int(count) if _COUNT.fullmatch(count) else 0
    found = {"GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat", "PAGER": "cat", "GIT_NO_LAZY_FETCH": "1"}
    for at, (name, value) in enumerate(_GIT_OFF.items(), start):
        found |= {f"GIT_CONFIG_KEY_{at}": name, f"GIT_CONFIG_VALUE_{at}": value}
    return {**found, "GIT_CONFIG_COUNT": str(start + len(_GIT_OFF))}


_COUNT = lazy_regex(r"[0-9]{1,4}")
_GIT_OFF = {"core.fsmonitor": "false", "diff.autoRefreshIndex": "false", "log.showSignature": "false"}
_CHANGES_BASH = lazy_regex(r"BASH_FUNC_.*|BASH_ENV|SHELLOPTS|BASHOPTS|LD_PRELOAD|LD_AUDIT|POSIXLY_CORRECT|CDPATH")
"""Variables with which Bash, or every program, does something else."""


def _places(line: str, commands: Sequence[ShellCommand], directory: str) -> tuple[str, ...] | None:
    """The directories that the commands may run in. A `cd` may fail, so it only replaces the directory if all that
    follows needs its success."""
    seen, here = (directory,), (directory,)
    for one in commands:
        if one.words[0].text == "cd" and len(commands) > 1:
            target = one.words[-1]
            if len(one.words) != 2 or target.glob is not None or target.text.startswith(("-", "~")):
                return None
            there = tuple(normpath(join(place, target.text)) for place in here)
            here = there if goes_on_only_after_success(line) else tuple(dict.fromkeys((*here, *there)))
            seen = tuple(dict.fromkeys((*seen, *here)))
    return seen if len(seen) <= _MOST_PLACES else None


_MOST_PLACES = 8


def _only_reads(one: ShellCommand, places: Sequence[str], surroundings: Surroundings) -> bool:
    name = one.words[0].text
    if name == "git":
        return _is_of_the_system(name, surroundings) and _git(one, places, surroundings)
    row = HARMLESS.get(name)
    return row is not None and (name in BUILTINS or _is_of_the_system(name, surroundings)) and row(one, surroundings)


def _is_complete(one: ShellCommand, surroundings: Surroundings) -> bool:
    """Git does not say which of its files a command shows; anything else must be known."""
    if one.words[0].text == "git":
        return True
    if one.words[0].text == "xargs":
        return False
    return _gathered(one, (surroundings.directory,), surroundings).complete


def _gathered(one: ShellCommand, places: Sequence[str], surroundings: Surroundings) -> Gathering:
    gathering = Gathering(surroundings)
    note(Command(Placed(one.words, tuple(places), Word("")), gathering, _no_script))
    return gathering


def _no_script(_text: str, _source: str, _directory: str) -> None:
    """No program of this class runs one."""


def _is_of_the_system(name: str, surroundings: Surroundings) -> bool:
    path = surroundings.find_program(name)
    return path is not None and isabs(path) and not _is_below(path, surroundings.project)


def _is_below(path: str, directory: str) -> bool:
    return f"{path}/".startswith(f"{directory.rstrip('/')}/")


# ------------------------------------------------------------------------------------------------------ rows of options


class Row(Struct, frozen=True):
    """The options of a program with which it only reads."""

    flags: str = ""
    """Letters of short options without a value."""
    values: str = ""
    """Letters of short options with a value."""
    longs: frozenset[str] = frozenset()
    """Long options, with a value after `=` or without one. None may take the next word."""
    operands: int | None = None
    """How many operands it may have."""
    numbers: bool = False
    """`-5` is an option."""
    mixed: bool = True
    """Options may come after operands. Otherwise such a word is another operand."""
    any_options: bool = False
    """None of its options writes or runs anything."""

    def __call__(self, one: ShellCommand, _: Surroundings) -> bool:
        if self.any_options:
            return True
        options, operands = read(one.words, OptionTable(self.values), mixed=self.mixed)
        if not all(map(self._allows, options)) or any(map(_may_be_option, one.words[1:])):
            return False
        return self.operands is None or len(several(operands)) <= self.operands

    def _allows(self, option: Option) -> bool:
        name = option.name
        if name.startswith("--"):
            return name in self.longs
        return name[1] in self.flags or name[1] in self.values or (self.numbers and name[1].isdigit())


def _may_be_option(word: Word) -> bool:
    """A pattern that a file named like an option could match."""
    return word.glob is not None and word.glob[:1] in ("*", "?", "[")


def _row(flags: str = "", values: str = "", longs: str = "", operands: int | None = None) -> Row:
    """With a limit on operands, none of them may look like an option: some programs would write to it."""
    names = frozenset(f"--{name}" for name in longs.split())
    return Row(flags, values, names, operands, "0" in flags, mixed=operands is None)


_ANY = Row(any_options=True)
_SAFE = """
    cat head wc ls nl tac rev cut paste join comm cmp tr od md5sum sha1sum sha224sum sha256sum sha384sum
    sha512sum b2sum cksum sum stat basename dirname realpath readlink expand unexpand fold fmt numfmt tsort
    grep egrep fgrep df du id whoami groups uname nproc arch tty true false echo pwd type which expr uptime free
"""
"""No option of these writes, runs or signals anything."""
BUILTINS = frozenset({"cd", "echo", "false", "pwd", "printf", "test", "true", "type", ":", "command", "["})


def _condition(one: ShellCommand, _: Surroundings) -> bool:
    """`-v` and `-R` expand the index of an array, which may run something."""
    return not any(word.text in ("-v", "-R", "-o") or "[" in word.text[1:] for word in one.words[1:])


def _printf(one: ShellCommand, _: Surroundings) -> bool:
    return not any(word.text.startswith("-v") or _PRINTF_ASSIGNS.search(word.text) for word in one.words[1:])


_PRINTF_ASSIGNS = lazy_regex(r"%[^%A-Za-z]*[hljztL]*n")


def _change(one: ShellCommand, _: Surroundings) -> bool:
    return len(one.words) <= 2


_FIND_TESTS = frozenset(
    f"-{name}"
    for name in (
        *("name", "iname", "path", "ipath", "wholename", "regex", "iregex", "type", "size", "mtime", "mmin", "atime"),
        *("amin", "ctime", "cmin", "newer", "perm", "user", "group", "maxdepth", "mindepth", "regextype", "printf"),
        *("print", "print0", "ls", "prune", "empty", "o", "or", "a", "and", "not", "readable", "writable"),
        *("executable", "links", "inum", "samefile", "xdev", "mount", "depth", "true", "false", "quit", "follow"),
        *("daystart", "H", "L", "P", "noleaf", "nouser", "nogroup", "uid", "gid", "lname", "xtype", "d"),
    )
)


def _find(one: ShellCommand, _: Surroundings) -> bool:
    words = one.words[1:]
    texts = [word.text for word in words]
    return all(
        text in _FIND_TESTS or not text.startswith("-") or _NUMBER.fullmatch(text) for text in texts
    ) and not any(map(_may_be_option, words))


_NUMBER = lazy_regex(r"-\d+[a-zA-Z]?")


def _is_safe(words: Sequence[Word], surroundings: Surroundings) -> bool:
    """Whether this runs a program that only reads, whatever words are added."""
    name = words[0].text if words else ""
    return name in _SAFE.split() and name not in ("type", "tail") and _is_of_the_system(name, surroundings)


def _xargs(one: ShellCommand, surroundings: Surroundings) -> bool:
    options, operands = read(one.words, OptionTable("nLI"))
    plain = all(option.name in ("-0", "-r", "-n", "-L", "-I", "--null", "--no-run-if-empty") for option in options)
    return plain and _is_safe(operands, surroundings) and not any(map(_may_be_option, one.words[1:]))


def _sed(one: ShellCommand, _: Surroundings) -> bool:
    """`-n`, `-E`, `-e` and the like; no script from a file, nothing read or written by the script."""
    options, code, _files, certain = sed_arguments(one.words)
    script = sed_script(code)
    plain = (
        certain
        and all(option.name in _SED_OPTIONS for option in options)
        and not any(map(_may_be_option, one.words[1:]))
    )
    return plain and bool(code) and script.understood and not script.reads and not script.writes


_SED_OPTIONS = frozenset(
    {"-n", "-E", "-r", "-e", "-s", "-u", "-z", "--quiet", "--silent", "--regexp-extended", "--expression", "--posix"}
)


def _awk(one: ShellCommand, _: Surroundings) -> bool:
    """A program without output to elsewhere, with `-F` and `-v` only. Operands are files: an assignment is not."""
    options, operands = read(one.words, OptionTable("Fv"))
    plain = all(option.name in ("-F", "-v") for option in options) and bool(operands)
    literal = plain and operands[0].glob is None and not any(map(_may_be_option, operands[1:]))
    return literal and not awk_acts(operands[0].text)


def _date(one: ShellCommand, _: Surroundings) -> bool:
    return all(re.fullmatch(r"\+.*|-u|-I\w*|-R|--utc|--rfc-3339=\w+|--iso-8601(=\w+)?", word.text, re.DOTALL)
               for word in one.words[1:])  # fmt: skip


# ------------------------------------------------------------------------------------------------------------------ git


class GitRow(Struct, frozen=True):
    """A subcommand that only reads."""

    options: str
    """An expression for its options."""
    only: re.Pattern[str] | None = None
    """The first operand must be one of these."""
    needs: frozenset[str] = frozenset()
    """One of these words must be there."""
    diffs: bool = False
    """It may show differences: drivers for them can run."""
    work_tree: bool = False
    """It looks at the work tree: filters and the monitor can run."""
    values: frozenset[str] = frozenset()
    """Options with a value in the next word."""


_SELECT = (
    r"-\d+|-n\d*|-n|--max-count=\d+|--skip=\d+|--(?:since|until|after|before|author|committer|grep)=.*|-[iEFP]|--all-match"
    r"|--invert-grep|--(?:no-)?merges|--all|--branches|--tags|--remotes|--first-parent|--reverse|--follow|--topo-order"
    r"|--date-order|--author-date-order|--no-walk|--left-right|--cherry-(?:pick|mark)|--ancestry-path|--boundary"
)
_SHAPE = (
    r"--oneline|--graph|--decorate(?:=\w+)?|--no-decorate|--abbrev-commit|--no-abbrev-commit|--abbrev(?:=\d+)?"
    r"|--(?:pretty|format)=(?!.*%G).*|--date=[\w:-]+|--relative-date|--no-color|--color(?:=\w+)?|--no-notes|--no-mailmap"
)
_DIFF = (
    r"-p|-u|--patch|-s|--no-patch|-U\d+|--unified=\d+|--stat(?:=[\d,]+)?|--numstat|--shortstat|--dirstat|--summary|-z"
    r"|--name-only|--name-status|--cached|--staged|-M\d*%?|-C\d*%?|-w|-b|--ignore-(?:all-space|space-change|blank-lines)"
    r"|--minimal|--patience|--histogram|--word-diff(?:=\w+)?|--color-words|--no-ext-diff|--no-textconv|--exit-code"
    r"|--quiet|-q|--raw|--diff-filter=\w+|-R|--no-renames|--find-renames(?:=\d+%?)?|--full-index|--check|-W"
    r"|--function-context|--no-prefix|--merge-base|-[SG].+|--pickaxe-\w+|-L.+|-m|-c|--cc|--root|-r|-t"
)
_LOG = f"{_SELECT}|{_SHAPE}|{_DIFF}"
_LIST = (
    r"--list|-l|-a|--all|-r|--remotes|-v|-vv|--verbose|--sort=(?!.*signature)[\w:*-]+|--(?:no-)?contains(?:=.+)?"
    r"|--(?:no-)?merged(?:=.+)?|--points-at=.+|--format=(?!.*signature).*|--no-color|--color(?:=\w+)?|--no-column"
    r"|-i|--ignore-case|-n\d*|--count=\d+"
)


_TAGS = (
    r"--list|-l|-n\d*|--sort=(?!.*signature)[\w:*-]+|--(?:no-)?contains(?:=.+)?|--(?:no-)?merged(?:=.+)?|-i"
    r"|--ignore-case|--no-column"
)


def _words(text: str) -> re.Pattern[str]:
    return re.compile(text)


_VALUES = frozenset(
    {"-S", "-G", "-L", *(f"--{name}" for name in ("grep", "author", "committer", "since", "until", "after", "before"))}
)
GIT_ROWS: Mapping[str, GitRow] = {
    "log": GitRow(_LOG, diffs=True, values=_VALUES),
    "show": GitRow(_LOG, diffs=True, values=_VALUES),
    "whatchanged": GitRow(_LOG, diffs=True),
    "diff": GitRow(f"{_DIFF}|--no-color|--color(?:=\\w+)?", diffs=True, work_tree=True),
    "diff-tree": GitRow(f"{_LOG}|--stdin", diffs=True),
    "status": GitRow(
        r"-[sbvz]+|--short|--branch|--porcelain(?:=v?[12])?|--verbose|-u\w*|--untracked-files(?:=\w+)?|--ignored(?:=\w+)?"
        r"|--long|--show-stash|--(?:no-)?ahead-behind|--(?:no-)?renames|--no-column",
        work_tree=True,
        diffs=True,
    ),
    "blame": GitRow(
        r"-L.+|-[lstewfnMC]+\d*|--since=.*|--date=[\w:-]+|--porcelain|--line-porcelain|--show-\w+|--root",
        diffs=True,
        work_tree=True,
        values=frozenset({"-L"}),
    ),
    "shortlog": GitRow(f"-[nsec]+|{_SELECT}"),
    "rev-parse": GitRow(
        r"--(?:short(?:=\d+)?|abbrev-ref(?:=\w+)?|show-toplevel|show-prefix|show-cdup|git-dir|git-common-dir|verify|quiet"
        r"|is-inside-work-tree|is-inside-git-dir|is-bare-repository|absolute-git-dir|symbolic|symbolic-full-name|all"
        r"|branches|tags|remotes|show-superproject-working-tree|is-shallow-repository)|-q"
    ),
    "rev-list": GitRow(f"{_SELECT}|--count|--objects|--parents|--children|--timestamp|--oneline|--abbrev-commit"),
    "ls-files": GitRow(
        r"-[cdosmuktz]+|--(?:cached|deleted|others|stage|modified|unmerged|exclude-standard|full-name|error-unmatch"
        r"|directory|no-empty-directory|eol|ignored|abbrev(?:=\d+)?)|-i|--exclude=.*",
        work_tree=True,
    ),
    "ls-tree": GitRow(
        r"-[rdtlz]+|--name-only|--name-status|--full-name|--full-tree|--long|--object-only|--abbrev(?:=\d+)?"
    ),
    "cat-file": GitRow(r"-[ptse]|--batch-all-objects|--unordered"),
    "branch": GitRow(f"{_LIST}|--show-current|--column", needs=frozenset({"", "--list", "--show-current"})),
    "tag": GitRow(_TAGS, needs=frozenset({"", "--list", "-l"})),
    "remote": GitRow(r"-v|--verbose", only=_words(r"get-url")),
    "stash": GitRow(f"{_SELECT}|{_SHAPE}", only=_words("list"), needs=frozenset({"list"})),
    "worktree": GitRow(r"--porcelain|-v|-z", only=_words("list"), needs=frozenset({"list"})),
    "reflog": GitRow(f"{_SELECT}|{_SHAPE}", only=_words(r"show|HEAD\S*")),
    "config": GitRow(
        r"--get|--get-all|--get-regexp|--list|-l|--local|--global|--system|--show-origin|--show-scope|-z"
        r"|--name-only|--type=\w+|--bool|--int",
        needs=frozenset({"--get", "--get-all", "--get-regexp", "--list", "-l"}),
    ),
    "describe": GitRow(r"--tags|--all|--always|--long|--abbrev=\d+|--match=.*|--exclude=.*|--exact-match|--contains"),
    "merge-base": GitRow(r"-a|--all|--octopus|--is-ancestor|--fork-point|--independent"),
    "name-rev": GitRow(r"--tags|--name-only|--always|--refs=.*"),
    "for-each-ref": GitRow(_LIST),
    "show-ref": GitRow(r"--head|--heads|--branches|--tags|-d|--dereference|-s|--hash(?:=\d+)?|--verify|-q|--quiet"),
    "grep": GitRow(
        r"-[nilLcwvhHIEFGPqopWa]+|--(?:line-number|ignore-case|files-with-matches|files-without-match|count|name-only"
        r"|word-regexp|invert-match|cached|untracked|heading|break|column|no-color|color(?:=\w+)?|and|or|not|all-match"
        r"|extended-regexp|fixed-strings|perl-regexp|show-function|no-textconv)|-[ABC]\d+|-e|-\d+|--max-depth=\d+",
        diffs=True,
        work_tree=True,
    ),
    "check-ignore": GitRow(r"-[vqnz]+|--verbose|--quiet|--non-matching|--no-index"),
    "count-objects": GitRow(r"-[vH]+|--verbose|--human-readable"),
    "version": GitRow(r"--build-options"),
    "cherry": GitRow(r"-v|--verbose|--abbrev(?:=\d+)?"),
}
_DRIVERS = lazy_regex(r"diff\.external|diff\..+\.(?:command|textconv)")
_FILTERS = lazy_regex(r"filter\..+\.(?:clean|process)")
_SUBMODULES = lazy_regex(r"submodule\..+")
_ALWAYS = lazy_regex(r"extensions\.partialclone|remote\..+\.(?:promisor|partialclonefilter)")
_GIT_VARIABLES = lazy_regex(
    r"GIT_(?:EXTERNAL_DIFF|DIR|WORK_TREE|INDEX_FILE|TRACE.*|EXEC_PATH|SSH.*|CONFIG.*|REDIRECT.*)"
)


def _git(one: ShellCommand, places: Sequence[str], surroundings: Surroundings) -> bool:
    texts = [word.text for word in one.words[1:]]
    while texts and texts[0] in ("--no-pager", "--no-optional-locks", "-C"):
        if texts[0] == "-C":
            places = [normpath(join(place, *texts[1:2])) for place in places]
        texts = texts[2 if texts[0] == "-C" else 1 :]
    row = GIT_ROWS.get(texts[0]) if texts else None
    if row is None or any(map(_may_be_option, one.words[1:])) or not _words_are_harmless(row, texts[1:]):
        return False
    return all(_runs_nothing(row, texts, place, surroundings) for place in places)


def _words_are_harmless(row: GitRow, texts: Sequence[str]) -> bool:
    end = texts.index("--") if "--" in texts else len(texts)
    options = [text for text in texts[:end] if text.startswith("-")]
    operands = [*(text for text in texts[:end] if not text.startswith("-")), *texts[end + 1 :]]
    if not all(option in row.values or re.fullmatch(row.options, option, re.DOTALL) for option in options):
        return False
    if (row.only is not None or row.needs) and "--" in texts:
        return False  # what follows is no subcommand, and may be made
    if row.needs and row.only is not None and texts[:1] != operands[:1]:
        return False
    if texts[end : end + 1] and texts[end - 1 : end] and texts[end - 1] in row.values:
        return False  # this is its value, and options may follow
    if row.only is not None and operands and row.only.fullmatch(operands[0]) is None:
        return False
    if not operands and "" in row.needs:
        return True  # it lists
    return not row.needs or not row.needs.isdisjoint((*options, *operands[:1]))


def _runs_nothing(row: GitRow, texts: Sequence[str], place: str, surroundings: Surroundings) -> bool:
    settings = surroundings.git_settings(place) if _is_below(place, surroundings.project) else None
    if settings is None or any(map(_GIT_VARIABLES.fullmatch, surroundings.variables)):
        return False
    excluded = [_ALWAYS]
    if row.diffs and not {"--no-ext-diff", "--no-textconv"} <= set(texts):
        excluded.append(_DRIVERS)
    if row.work_tree or row.diffs:
        excluded.append(_SUBMODULES)
    if row.work_tree:
        excluded.append(_FILTERS)
    return not any(
        "%G" in value or (value and one.fullmatch(name)) for one in excluded for name, value in settings.items()
    )


# ------------------------------------------------------------------------------------------------------------ the table

_RG = (
    "after-context before-context context count count-matches files files-with-matches files-without-match "
    "fixed-strings glob hidden iglob ignore-case invert-match json line-number line-regexp max-count max-depth "
    "multiline no-filename no-heading no-ignore no-line-number null only-matching pcre2 quiet regexp smart-case sort "
    "stats text trim type type-not unrestricted vimgrep with-filename word-regexp color heading column no-config"
)
_DIFF_LONGS = (
    "brief recursive unified context side-by-side ignore-case ignore-all-space ignore-space-change ignore-blank-lines"
    " new-file text color width suppress-common-lines report-identical-files strip-trailing-cr label exclude minimal"
)
_RG_ROW = Row("FHILNPSUachilnopqsuvwx0.", "ABCTefgjmt", frozenset(f"--{name}" for name in _RG.split()))


def _rg(one: ShellCommand, surroundings: Surroundings) -> bool:
    """Its options may also be in a file."""
    return "RIPGREP_CONFIG_PATH" not in surroundings.variables and _RG_ROW(one, surroundings)


def _command(one: ShellCommand, _: Surroundings) -> bool:
    """`command -v NAME`: where a program is."""
    return len(one.words) > 2 and one.words[1].text in ("-v", "-V") and one.words[2].text[:1] != "-"


def _processes(one: ShellCommand, _: Surroundings) -> bool:
    """No form that shows the variables of processes."""
    return all(re.fullmatch(r"-?[aux]+|-[eAfFlj]+|-p|\d+", word.text) for word in one.words[1:])


def _variables(one: ShellCommand, _: Surroundings) -> bool:
    """Variables that cannot be a secret."""
    known = r"PATH|HOME|PWD|OLDPWD|SHELL|USER|LOGNAME|LANG|LC_\w+|TERM|TMPDIR|TZ|HOSTNAME|VIRTUAL_ENV|PYTHONPATH|CI"
    return len(one.words) > 1 and all(re.fullmatch(known, word.text) for word in one.words[1:])


def _version(one: ShellCommand, surroundings: Surroundings) -> bool:
    """`gcc --version`, of the system. What is elsewhere may be a proxy that installs the version it is asked for."""
    if len(one.words) != 2 or one.words[1].text not in ("--version", "--help"):
        return False
    path = surroundings.find_program(one.words[0].text) or ""
    return path.startswith(("/usr/", "/bin/", "/opt/", "/nix/"))


def _ends(one: ShellCommand, _: Surroundings) -> bool:
    """`sleep infinity` and `seq inf` would hold the session until their limit."""
    return all(map(_SHORT_NUMBER.fullmatch, (word.text for word in one.words[1:])))


_SHORT_NUMBER = re.compile(r"-?[0-9]{1,3}(?:\.[0-9]{1,3})?")
HARMLESS: Mapping[str, Callable[[ShellCommand, Surroundings], bool]] = {
    **dict.fromkeys(_SAFE.split(), _ANY),
    ":": _ANY,
    **dict.fromkeys(("sleep", "seq"), _ends),
    "tail": _row("qvz0123456789", "cn", "bytes lines quiet verbose zero-terminated"),
    "sort": _row(
        "bdfghiMnRrVcCsuz",
        "kt",
        "numeric-sort reverse unique key field-separator human-numeric-sort"
        " version-sort ignore-case general-numeric-sort stable zero-terminated check ignore-leading-blanks",
    ),
    "uniq": _row("cdDiuz", "fsw", "count repeated unique ignore-case all-repeated skip-fields skip-chars", operands=1),
    "diff": _row("qrubwBiaNsyEtTZcd0123456789", "UCWx", _DIFF_LONGS),
    "rg": _rg,
    "tree": _row("adflDFshpugJXnCQNirtUvcSA", "LIP", "dirsfirst noreport gitignore du filelimit prune charset"),
    "file": _row("bhiLN0", "", "brief mime mime-type mime-encoding dereference no-dereference", None),
    "jq": _row(
        "rcnsSejMCaR",
        "",
        "raw-output compact-output slurp sort-keys exit-status null-input tab arg argjson"
        " raw-input join-output monochrome-output color-output indent",
    ),
    **dict.fromkeys(("base64", "base32"), _row("d", "w", "decode wrap")),
    "xxd": _row("abeEiups", "cgl", operands=1),
    "strings": _row("afow", "net"),
    "column": _row("txe", "csoN", "table separator output-separator"),
    "hostname": _row("s", operands=0),
    "date": _date,
    "command": _command,
    "ps": _processes,
    "printenv": _variables,
    **dict.fromkeys(VERSIONED, _version),
    "cd": _change,
    "printf": _printf,
    **dict.fromkeys(("test", "["), _condition),
    "find": _find,
    "xargs": _xargs,
    "sed": _sed,
    **dict.fromkeys(("awk", "mawk", "gawk"), _awk),
}
"""Programs of the class."""
