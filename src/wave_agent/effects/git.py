"""What git reads, writes and reaches, subcommand by subcommand.

What it keeps in its own directory is not listed: every command would write there. Commands that run the repository's
hooks, and those whose files are named by commits, are not complete.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from posixpath import basename, join, normpath

from msgspec import Struct

from wave_agent.effects.gathering import Command, looks_like_path
from wave_agent.effects.network import address_host, reach
from wave_agent.effects.overlap import may_meet
from wave_agent.effects.values import ANY_HOST
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.git import git_file_options, git_targets
from wave_agent.shell.git_commands import COMMANDS
from wave_agent.shell.git_runs import GIT
from wave_agent.shell.options import Option, OptionTable, has, read, says, value_of, values_of
from wave_agent.shell.values import Word, escape

_HISTORY = OptionTable(
    "nGSLO",
    (
        *("--author", "--committer", "--since", "--until", "--after", "--before", "--grep", "--format", "--max-count"),
        *("--skip", "--output", "--glob", "--remotes", "--diff-filter", "--date", "--word-diff-regex", "--remote"),
    ),
)
_FETCH = OptionTable(
    "joXs",
    (
        *("--depth", "--deepen", "--shallow-since", "--shallow-exclude", "--jobs", "--upload-pack", "--server-option"),
        *("--refmap", "--negotiation-tip", "--filter", "--strategy", "--strategy-option", "--sort", "--exec"),
    ),
)
_TABLES: Mapping[str, OptionTable] = {
    **dict.fromkeys(("add", "stage"), OptionTable("", ("--pathspec-from-file", "--chmod"))),
    **dict.fromkeys(("rm", "mv"), OptionTable("", ("--pathspec-from-file",))),
    "clean": OptionTable("e", ("--exclude",)),
    **dict.fromkeys(
        ("init", "init-db"),
        OptionTable("b", ("--initial-branch", "--template", "--separate-git-dir", "--object-format")),
    ),
    "hash-object": OptionTable("t", ("--path",)),
    **dict.fromkeys(
        ("commit", "merge", "rebase", "cherry-pick", "revert", "am"),
        OptionTable("mFCctXsx", ("--message", "--file", "--author", "--date", "--strategy", "--onto", "--exec")),
    ),
    **dict.fromkeys(("checkout", "switch"), OptionTable("bBcC", ("--orphan", "--conflict", "--create"))),
    "restore": OptionTable("s", ("--source", "--conflict", "--pathspec-from-file")),
    **dict.fromkeys(("fetch", "pull", "ls-remote", "fetch-pack", "remote"), _FETCH),
    "push": OptionTable("o", ("--receive-pack", "--repo", "--exec", "--push-option")),
    "clone": OptionTable(
        "objuc",
        (
            *(
                "--depth",
                "--branch",
                "--origin",
                "--reference",
                "--template",
                "--separate-git-dir",
                "--config",
                "--jobs",
            ),
            *("--filter", "--shallow-since", "--server-option", "--bundle-uri", "--upload-pack", "--revision"),
        ),
    ),
    "ls-files": OptionTable("xX", ("--exclude", "--exclude-from")),
    "archive": OptionTable("o", ("--format", "--prefix", "--output", "--add-file", "--remote")),
    "grep": OptionTable("eABCmf", ("--max-depth", "--max-count", "--threads")),
    "config": OptionTable("ft", ("--file", "--blob", "--type", "--default", "--comment", "--value")),
    "notes": OptionTable("mFCc", ("--message", "--file", "--ref", "--reuse-message", "--reedit-message", "--strategy")),
    "tag": OptionTable("mFu", ("--message", "--file", "--sort", "--format", "--cleanup", "--local-user")),
    "blame": OptionTable("LS", ("--since", "--date", "--contents", "--ignore-rev", "--ignore-revs-file")),
}
"""Options that take the next word; those of log and diff for any other subcommand."""
_AT_REVISION = lazy_regex(r"(?!.*://)(?:[^:]+:|:(?:[0-3]:)?)(?![/(!^])(?:\./)?(.+)", re.DOTALL)
_SPECIAL = lazy_regex(r":|.*[*?\[\\]", re.DOTALL)
"""A pathspec that is more than a path."""
_PATHSPEC_OPTIONS = ("--icase-pathspecs", "--glob-pathspecs")
_READ = (
    *("--pathspec-from-file", "--file", "--ignore-revs-file", "--exclude-from", "--add-file", "--contents"),
    *("--template", "--blob"),
)
"""Options of any subcommand whose value is a file."""


_ADDRESSES = ("--remote", "--bundle-uri")
_REMOTE_SETTING = lazy_regex(r"remote\.(.+)\.(?:url|pushurl)", re.IGNORECASE)
_ANOTHER_ADDRESS = lazy_regex(r"url\..+\.(?:insteadof|pushinsteadof)", re.IGNORECASE)


class _Git:
    """One git command."""

    def __init__(
        self, command: Command, operands: Sequence[Word], below: Word | None, *, special: bool, elsewhere: bool
    ) -> None:
        self.command = command
        self.below = below
        self.special = special
        """Every path is a pattern."""
        self.elsewhere = elsewhere
        """It may use another repository than that of the directory."""
        self.name = operands[0].text
        self.options, self.operands = read(operands, _TABLES.get(self.name, _HISTORY), mixed=True)
        texts = [word.text for word in operands]
        self.first = texts[1] if len(texts) > 1 else None
        """The word after its name."""
        self.paths: Sequence[Word] = operands[texts.index("--") + 1 :] if "--" in texts else ()
        """After `--`: certainly paths."""
        self.others: Sequence[Word] = self.operands[: len(self.operands) - len(self.paths)]
        """Before `--`."""

    def reads(self, words: Sequence[Word], *, tree: bool = False) -> None:
        for pattern in self.command.paths(words, self.below):
            self.command.gathering.read(pattern)
            if tree:
                self.command.gathering.read(f"{pattern}/**")

    def files(self, words: Sequence[Word], scope: str) -> None:
        """Reads what git knows below these paths, or everywhere."""
        special = [word for word in words if self.special or _SPECIAL.match(word.text)]
        plain = [word for word in words if word not in special]
        self.reads(plain)
        found = self.known(scope)
        if found is not None:
            for path in found:
                if not words or self._names(plain, special, path):
                    self.command.gathering.read(escape(path))
            project = f"{escape(self.command.surroundings.project)}/"
            for pattern in self.command.paths(plain, self.below):
                if not f"{normpath(pattern)}/".startswith(project):  # compared without a repository
                    self.command.gathering.read(f"{pattern}/**")
            return
        self.reads(plain, tree=True)
        self.reads([Word(_place(word.text), word.static) for word in special], tree=True)
        if not words or any(word.text.startswith(":") for word in special):
            self.everything()

    def everything(self) -> None:
        """Any file of the repository. Where that starts is not known."""
        self.reads([Word(".")], tree=True)
        self.command.gathering.read(f"{escape(self.command.surroundings.project)}/**")

    def _names(self, plain: Sequence[Word], special: Sequence[Word], path: str) -> bool:
        for pattern in map(normpath, self.command.paths(plain, self.below)):
            if may_meet(pattern, escape(path)) or may_meet(f"{pattern}/**", escape(path)):
                return True
        if any(self.special or word.text.startswith(":") for word in special):
            return True
        return any(
            path.startswith(f"{place.rstrip('/')}/") and _matches(word.text, path[len(place.rstrip("/")) + 1 :])
            for word in special
            for place in self.places()
        )

    def known(self, scope: str) -> Sequence[str] | None:
        found: list[str] = []
        for place in self.places():
            some = (
                None if self.elsewhere or _SPECIAL.match(place) else self.command.surroundings.git_files(place, scope)
            )
            if some is None:
                return None
            found += some
        return found

    def places(self) -> list[str]:
        """The directories that it may run in."""
        return [normpath(one) for one in self.command.paths([self.below or Word(".")])]

    def is_path(self, word: Word) -> bool | None:
        """Whether something is there. None: not known."""
        if not word.static:
            return None
        paths = map(normpath, self.command.paths([Word(word.text)], self.below))
        there = [self.command.surroundings.is_there(path) for path in paths]
        return True if True in there else None if None in there else False

    def directory(self) -> str:
        return next(iter(self.places()), self.command.surroundings.directory)


def _place(text: str) -> str:
    """The directory that the matches of a pathspec are in."""
    return _SIGNS.split(text, maxsplit=1)[0].rpartition("/")[0] or "."


_SIGNS = lazy_regex(r"[*?\[\\:]")


def _matches(spec: str, path: str) -> bool:
    """A star also matches slashes. What matches a directory stands for everything in it."""
    spec = normpath(spec)
    if re.search(r"[\[\\]|\.\.", spec):
        return True
    expression = "".join(".*" if one == "*" else "." if one == "?" else re.escape(one) for one in spec)
    return re.fullmatch(rf"{expression}(?:/.*)?", path, re.DOTALL) is not None


def git(command: Command) -> None:
    options, operands = command.options(GIT, mixed=False)
    for value in values_of(options, "-c", "--config-env"):
        if value.text.lower().startswith("url."):  # it gives addresses another meaning
            command.host(ANY_HOST)
            command.hosts_in(value.text)
        name, _, address = value.text.partition("=")
        if name.lower().endswith("proxy") or _REMOTE_SETTING.fullmatch(name):
            reach(command, Word(address, value.static))
    assigned = [name for name in command.gathering.assigned if name.startswith("GIT_")]
    elsewhere = has(options, "--git-dir", "--work-tree", "--namespace", "--bare", "--config-env", "-c")
    if elsewhere or has(options, "--exec-path"):
        command.unknown()
    if not operands:
        return
    below = value_of(options, "-C")
    name = operands[0].text
    special = has(options, *_PATHSPEC_OPTIONS) or any("PATHSPECS" in name for name in assigned)
    one = _Git(command, operands, below, special=special, elsewhere=elsewhere or bool(assigned))
    one.reads(values_of([option for option in one.options if option.name in _READ], *_READ))
    for address in values_of([option for option in one.options if option.name in _ADDRESSES], *_ADDRESSES):
        _reaches(one, [address])
    if has(one.options, "--pathspec-from-file"):
        command.unknown()
    if name not in COMMANDS:
        _alias(one, name, operands, options)
        return
    command.targets((git_targets if name in _WRITING else git_file_options)(command.words))
    _SUBCOMMANDS.get(name, _anything)(one)


_WRITING = frozenset(
    {
        *(
            "archive",
            "bugreport",
            "bundle",
            "config",
            "diagnose",
            "diff",
            "diff-index",
            "diff-tree",
            "format-patch",
            "init",
            "log",
            "maintenance",
        ),
        *("remote", "show", "worktree"),
    }
)
"""Subcommands that may write to a file which is named, or to settings."""


def _alias(one: _Git, name: str, operands: Sequence[Word], options: list[Option]) -> None:
    if any(value.text.lower().startswith(f"alias.{name.lower()}") for value in values_of(options, "-c")):
        return  # the reader of the line has followed it
    directory = one.directory()
    meaning = one.command.surroundings.git_alias(name, directory)
    if meaning is None:
        one.command.unknown()
        return
    rest = shlex.join(word.text for word in operands[1:])
    text = meaning[1:] if meaning.startswith("!") else f"git {meaning}"
    one.command.script(f"{text} {rest}", f"alias.{name}", directory)


def _nothing(one: _Git) -> None:
    """It tells something about the repository, or changes it, but shows and touches no file, or only a named one."""
    one.reads(values_of(one.options, "-F", "-f", "-X"))


def _anything(one: _Git) -> None:
    one.command.reads_like_paths(one.operands)
    one.command.unknown()


def _shows(one: _Git) -> None:
    """The content of files, now or in a commit."""
    one.reads(values_of(one.options, "-f", "-O"))
    if one.name in _OF_FILES:
        one.reads(values_of(one.options, "-S"))
    if one.name == "diff" and has(one.options, "--no-index"):
        one.reads(one.operands, tree=True)
        return
    sorted_out = _sorted_out(one)
    _at_revisions(one, sorted_out.files)
    if one.name == "grep" and has(one.options, "--no-index", "--untracked", "--recurse-submodules"):
        _searches_disk(one, sorted_out.paths)
        return
    if _tells_names_only(one, sorted_out) or (sorted_out.files and not (sorted_out.paths or sorted_out.others)):
        return
    _finds(one, sorted_out)


class _Operands(Struct, frozen=True):
    """What the operands of a command are."""

    paths: tuple[Word, ...]
    files: tuple[Word, ...]
    """`HEAD:src/app.py`"""
    others: tuple[Word, ...]
    """Revisions."""
    unsure: tuple[Word, ...]
    """One or the other."""


def _sorted_out(one: _Git) -> _Operands:
    paths, files, others, unsure = list(one.paths), list[Word](), list[Word](), list[Word]()
    skipped = 1 if _SKIPPED.get(one.name) and not has(one.options, *_SKIPPED[one.name]) else 0
    for word in one.others[skipped:]:
        there = one.is_path(word)
        if at_revision := _AT_REVISION.fullmatch(word.text):
            files.append(Word(at_revision[1], word.static))
            others += [] if word.static else [word]
        elif there or _SPECIAL.match(word.text) or (one.name in _OF_FILES and word is one.others[-1]):
            paths.append(word)
        elif there is None and not one.paths and looks_like_path(word.text) and ".." not in word.text:
            unsure.append(word)
        else:
            others.append(word)
    for value in values_of(one.options, "-L"):
        _, colon, file = value.text.rpartition(":")
        if colon and one.name != "blame":
            files.append(Word(file, value.static))
    return _Operands(tuple(paths), tuple(files), tuple(others), tuple(unsure))


_OF_FILES = ("blame", "annotate")
"""Subcommands whose last operand is a file."""
_SKIPPED = {"grep": ("-e", "-f"), "cat-file": ("-p", "-t", "-s", "-e", "--batch", "--textconv", "--filters")}
"""Subcommands with a first operand that is neither a path nor a revision, unless there is one of these options."""


def _at_revisions(one: _Git, files: Sequence[Word]) -> None:
    """Such a path starts from the top of the work tree, if it does not start with a dot."""
    one.reads(files, tree=True)
    for word in files:
        if word.static:
            path = escape(normpath(join(one.command.surroundings.project, word.text)))
            one.command.gathering.read(path)
            one.command.gathering.read(f"{path}/**")


_NAMES = (
    *("--stat", "--name-only", "--name-status", "--shortstat", "--numstat", "--summary", "-s", "--no-patch"),
    *("--raw", "--compact-summary", "--dirstat"),
)
_PATCHES = (
    *("-p", "-u", "-U", "--patch", "--unified", "--patch-with-stat", "--patch-with-raw", "--word-diff"),
    *("--color-words", "--binary", "--check", "--cc", "-c", "--dd", "--remerge-diff", "--diff-merges"),
    *("--function-context", "-W", "-L", "--submodule", "--word-diff-regex", "--ws-error-highlight", "--ext-diff"),
    "--textconv",
)
"""Options with which differences are shown, or may be."""


def _patches(one: _Git) -> bool:
    return has([option for option in one.options if option.name != "--color"], *_PATCHES)


_DIFFERENCES = frozenset({"diff", "diff-files", "diff-index", "diff-tree", "show", "log", "whatchanged"})
_OBJECT = lazy_regex(r"[0-9a-f]{4,64}")


def _tells_names_only(one: _Git, found: _Operands) -> bool:
    """`--stat` and the like show no content; `git show` shows a blob whatever is asked."""
    if one.name not in _DIFFERENCES or not says(one.options, *_NAMES) or _patches(one):
        return False
    named = (*found.others, *found.unsure)
    return one.name != "show" or all(word.static and not _OBJECT.fullmatch(word.text) for word in named)


def _finds(one: _Git, found: _Operands) -> None:
    """Without a path it may be any file that git knows."""
    now = one.name in ("diff", "diff-files", "grep") and not has(one.options, "--cached", "--staged")
    commits = found.others or found.unsure or any(word.text.startswith(":/") for word in one.others)
    scope = "tracked" if now and not commits else "history"
    known = one.known(scope) is not None
    if known or found.paths:
        one.files(found.paths, scope)
    else:
        one.reads(found.unsure, tree=True)
        one.command.unknown()
    if one.name in _OTHER_OBJECTS or has(one.options, "--submodule", "--recurse-submodules", "--stdin", "--batch"):
        one.command.unknown()


_OTHER_OBJECTS = frozenset({"cat-file", "fast-export", "bundle"})
"""They name objects by more than paths."""


def _searches_disk(one: _Git, paths: Sequence[Word]) -> None:
    """Files that git does not know are searched as well."""
    special = [word for word in paths if one.special or _SPECIAL.match(word.text)]
    one.reads([word for word in paths if word not in special], tree=True)
    one.reads([Word(_place(word.text), word.static) for word in special], tree=True)
    if not paths or any(word.text.startswith(":") for word in special):
        one.everything()
    if has(one.options, "--recurse-submodules"):
        one.command.unknown()


def _logs(one: _Git) -> None:
    if _patches(one) or has(one.options, "-m"):
        _shows(one)


def _statuses(one: _Git) -> None:
    """With `-v`, it shows what is staged."""
    if has(one.options, "-v", "--verbose"):
        _finds(one, _Operands(tuple(one.operands), (), (Word("HEAD"),), ()))


def _rerere(one: _Git) -> None:
    if [word.text for word in one.operands[:1]] == ["diff"]:
        one.command.unknown()


def _stash(one: _Git) -> None:
    """The name of its subcommand comes first: after `--` or an option it is a file, and is stashed."""
    if one.first == "show" and one.known("history") is not None:
        one.files((), "history")
    if one.first not in ("list", "drop", "clear") or _patches(one):
        one.command.unknown()


def _configures(one: _Git) -> None:
    """Settings may come from any file, or from a commit."""
    one.reads(values_of(one.options, "-f", "--file"))
    if has(one.options, "--blob", "-e", "--edit") or one.first == "edit":
        one.command.unknown()
    if len(one.operands) > 1 and (named := _REMOTE_SETTING.fullmatch(one.operands[0].text)):
        one.command.gathering.remotes.setdefault(named[1], []).append(one.operands[1])
    elif one.operands and _ANOTHER_ADDRESS.fullmatch(one.operands[0].text):
        one.command.gathering.remotes.setdefault("*", []).append(Word(""))
    # Not `has`: it takes `--get` for a short form of `--get-regexp`.
    lists = one.first == "list" or any(option.name.startswith(_LISTS_SETTINGS) for option in one.options)
    private = any(_PRIVATE_SETTING.search(word.text) or not word.static for word in one.operands)
    if (lists or private) and not has(one.options, "--local", "--worktree", "-f", "--file", "--blob"):
        one.reads([Word("/etc/gitconfig")] if not has(one.options, "--global") else ())
        if not has(one.options, "--system"):
            _reads_settings_of_the_user(one)


def _reads_settings_of_the_user(one: _Git) -> None:
    variables = one.command.surroundings.variables
    home = variables.get("HOME")
    if home is None:
        one.command.unknown()
        return
    settings = variables.get("XDG_CONFIG_HOME") or join(home, ".config")
    one.reads([Word(join(home, ".gitconfig")), Word(join(settings, "git/config"))])


_LISTS_SETTINGS = ("-l", "--li", "--get-r", "--get-u")
_PRIVATE_SETTING = re.compile(r"^(?:http|url|credential|gpg|sendemail|imap)\b|token|passw|secret|key", re.IGNORECASE)
"""Settings of the user that are not for everybody. Git itself uses the others in any command."""


def _annotates(one: _Git) -> None:
    """Notes and tags: their text may come from a file, or from an editor."""
    one.reads(values_of(one.options, "-F", "--file"))
    if one.name == "notes" and one.first not in (None, "list", "show", "remove", "prune", "get-ref"):
        one.command.unknown()


def _adds(one: _Git) -> None:
    """What is stored can be shown later by a name that says nothing of its path: this is reading, like copying."""
    if has(one.options, "--stdin-paths", "--index-info") or (one.name != "hash-object" and has(one.options, "--stdin")):
        one.command.unknown()
    every = has(one.options, "-A", "--all", "-u", "--update", "--no-ignore-removal", "--renormalize", "--refresh")
    if one.name in ("hash-object", "update-index") or has(one.options, "-f", "--force"):
        if one.operands or every:
            _searches_disk(one, one.operands)
    elif one.operands or every:
        one.files(one.operands, "new")


def _commits(one: _Git) -> None:
    """Hooks run. A message may come from a file."""
    one.reads(values_of(one.options, "-F", "--file", "-t", "--template"))
    one.command.unknown()


def _removes(one: _Git) -> None:
    """What is not the same as in the index is not removed, so it is compared."""
    one.reads(one.operands, tree=True)
    if has(one.options, "--cached", "-n", "--dry-run"):
        return
    for pattern in one.command.paths(one.operands, one.below):
        one.command.gathering.delete(pattern)
        one.command.gathering.delete(f"{pattern}/**")


def _moves(one: _Git) -> None:
    one.operands, target = one.operands[:-1], one.operands[-1:]
    _removes(one)
    for pattern in one.command.paths(target, one.below):
        one.command.gathering.write(pattern)
        one.command.gathering.write(f"{pattern}/**")


def _cleans(one: _Git) -> None:
    if not has(one.options, "-n", "--dry-run"):
        for pattern in one.command.paths(one.operands or [Word(".")], one.below):
            one.command.gathering.delete(pattern)
            one.command.gathering.delete(f"{pattern}/**")


def _restores(one: _Git) -> None:
    """Files named, or those in which commits differ."""
    if one.name == "restore" and has(one.options, "-S", "--staged") and not has(one.options, "-W", "--worktree"):
        return  # only the index
    elsewhere = one.name == "checkout-index" and has(one.options, "--prefix")
    certain = [] if elsewhere else list(one.paths) or (one.operands if one.name == "restore" else [])
    named = certain or [word for word in one.operands if looks_like_path(word.text)]
    for pattern in one.command.paths(named, one.below):
        one.command.gathering.write(pattern)
        one.command.gathering.write(f"{pattern}/**")
    if not certain:
        one.command.unknown()


def _begins(one: _Git) -> None:
    """`git init DIRECTORY`. A template may bring hooks."""
    for pattern in one.command.paths(one.operands, one.below):
        one.command.gathering.write(pattern)
        one.command.gathering.write(f"{pattern}/**")
    if has(one.options, "--template", "--separate-git-dir"):
        one.command.unknown()


def _applies(one: _Git) -> None:
    one.reads(one.operands)
    one.command.unknown()


def _remotes(one: _Git) -> None:
    _defines(one)
    if [word.text for word in one.operands[:1]] in (["update"], ["show"], ["prune"], ["set-head"]):
        _reaches(one, one.operands[1:2])


_REMOTE_OPTIONS = OptionTable("tm", ("--track", "--master", "--mirror"))


def _defines(one: _Git) -> None:
    """`git remote add NAME ADDRESS`, for the commands that follow. With `-f`, it is fetched from at once."""
    texts = [word.text for word in one.operands]
    if texts[:1] in (["add"], ["set-url"]):
        _, operands = read(one.operands, _REMOTE_OPTIONS, mixed=True)
        for address in operands[1:]:
            one.command.gathering.remotes.setdefault(operands[0].text, []).append(address)
        if has(one.options, "-f", "--fetch"):
            _reaches(one, operands[1:2])


def _fetches(one: _Git) -> None:
    _reaches(one, one.operands[:1])


def _pushes(one: _Git) -> None:
    """Hooks run, or files change."""
    _reaches(one, one.operands[:1])
    one.command.unknown()


def _clones(one: _Git) -> None:
    _reaches(one, one.operands[:1])
    written = one.operands[1:2] or [
        Word(basename(word.text.rstrip("/").removesuffix("/.git")).rpartition(":")[2].removesuffix(".git"), word.static)
        for word in one.operands[:1]
    ]
    for pattern in one.command.paths(written, one.below):
        one.command.gathering.write(pattern)
        one.command.gathering.write(f"{pattern}/**")
    if has(one.options, "--recurse-submodules", "--recursive", "--template", "-c", "--config"):
        one.command.host(ANY_HOST)
        one.command.unknown()


def _submodules(one: _Git) -> None:
    one.command.host(ANY_HOST)
    one.command.unknown()


def _reaches(one: _Git, address: Sequence[Word]) -> None:
    """An address, or the name of a remote."""
    text = address[0].text if address else ""
    if has(one.options, "--all", "--multiple", "--recurse-submodules"):
        one.command.host(ANY_HOST)
    if not _is_address(text) and _reaches_defined(one, text):
        return
    if not _is_address(text):
        found = one.command.surroundings.git_remote(text, one.directory())
        if found is None:
            one.command.host(ANY_HOST)
            return
        text = found
    else:
        text = _instead(one, text)
        if not address[0].static:
            one.command.host(ANY_HOST)
    if (host := address_host(text)) is not None:
        one.command.host(host)
    else:
        one.reads([Word(text.removeprefix("file://"))], tree=True)


def _reaches_defined(one: _Git, name: str) -> bool:
    """Reaches the remotes that the line has defined: the one of this name, or any of them. Says whether that is all."""
    remotes = one.command.gathering.remotes
    for own in remotes.get(name) or [address for each in remotes.values() for address in each]:
        host = address_host(own.text) if own.text else ANY_HOST
        if host is not None:
            one.command.host(host)
    return name in remotes


def _instead(one: _Git, address: str) -> str:
    """The address that settings put in its place. `url.BASE.insteadOf`: the longest beginning wins."""
    settings = one.command.surroundings.git_settings(one.directory()) or {}
    bases = {
        value: name[len("url.") : -len(suffix)]
        for name, value in settings.items()
        for suffix in (".insteadof", ".pushinsteadof")
        if name.startswith("url.") and name.endswith(suffix) and value and address.startswith(value)
    }
    if len(bases) > 1:
        one.command.host(ANY_HOST)
    longest = max(bases, key=len, default="")
    return bases[longest] + address[len(longest) :] if longest else address


def _is_address(text: str) -> bool:
    return ":" in text or "/" in text or text.startswith(".")


_TELLING = """
    branch bugreport check-attr check-ignore check-mailmap check-ref-format cherry column commit-graph
    count-objects describe for-each-ref fsck gc help ls-files ls-tree maintenance
    merge-base mktree multi-pack-index name-rev pack-refs prune repack rev-list rev-parse shortlog
    show-branch show-index show-ref symbolic-ref update-ref var verify-pack version
    write-tree fsck-objects diagnose replace
"""
_SUBCOMMANDS: Mapping[str, Callable[[_Git], None]] = {
    **dict.fromkeys(_TELLING.split(), _nothing),
    **dict.fromkeys(
        (
            *("annotate", "archive", "blame", "cat-file", "diff", "diff-files", "diff-index", "diff-tree"),
            *("fast-export", "format-patch", "grep", "range-diff", "show", "whatchanged", "bundle"),
        ),
        _shows,
    ),
    **dict.fromkeys(("log", "reflog"), _logs),
    "config": _configures,
    **dict.fromkeys(("notes", "tag"), _annotates),
    "status": _statuses,
    "rerere": _rerere,
    "stash": _stash,
    **dict.fromkeys(("add", "stage", "hash-object", "update-index"), _adds),
    **dict.fromkeys(("commit", "merge", "rebase", "cherry-pick", "revert", "am", "pull"), _commits),
    "rm": _removes,
    "mv": _moves,
    "clean": _cleans,
    **dict.fromkeys(("checkout", "restore", "switch", "reset", "checkout-index", "read-tree"), _restores),
    **dict.fromkeys(("init", "init-db"), _begins),
    "apply": _applies,
    "remote": _remotes,
    **dict.fromkeys(("fetch", "ls-remote", "fetch-pack"), _fetches),
    **dict.fromkeys(("push", "send-pack", "pull"), _pushes),
    "clone": _clones,
    "submodule": _submodules,
}
