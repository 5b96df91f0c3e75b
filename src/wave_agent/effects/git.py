"""What git reads, writes and reaches, subcommand by subcommand.

What it keeps in its own directory is not listed: every command would write there. Commands that run the repository's
hooks, and those whose files are named by commits, are not complete.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from posixpath import basename

from wave_agent.effects.gathering import Command, looks_like_path
from wave_agent.effects.network import address_host
from wave_agent.effects.values import ANY_HOST
from wave_agent.shell.git import git_targets
from wave_agent.shell.git_commands import COMMANDS
from wave_agent.shell.git_runs import GIT
from wave_agent.shell.options import Option, OptionTable, has, read, value_of, values_of
from wave_agent.shell.values import Word

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
    "grep": OptionTable("eABCmf", ("--max-depth", "--max-count", "--threads")),
    "config": OptionTable("ft", ("--file", "--blob", "--type", "--default", "--comment", "--value")),
    "notes": OptionTable("mFCc", ("--message", "--file", "--ref", "--reuse-message", "--reedit-message", "--strategy")),
    "tag": OptionTable("mFu", ("--message", "--file", "--sort", "--format", "--cleanup", "--local-user")),
    "blame": OptionTable("LS", ("--since", "--date", "--contents", "--ignore-rev", "--ignore-revs-file")),
}
"""Options that take the next word; those of log and diff for any other subcommand."""
_AT_REVISION = re.compile(r"(?!.*://)[^:]*:(?:\./)?(.+)", re.DOTALL)


class _Git:
    """One git command."""

    def __init__(self, command: Command, operands: Sequence[Word], below: Word | None) -> None:
        self.command = command
        self.below = below
        self.name = operands[0].text
        self.options, self.operands = read(operands, _TABLES.get(self.name, _HISTORY), mixed=True)
        texts = [word.text for word in operands]
        self.first = texts[1] if len(texts) > 1 else None
        """The word after its name."""
        self.paths: Sequence[Word] = operands[texts.index("--") + 1 :] if "--" in texts else ()
        """After `--`: certainly paths."""

    def reads(self, words: Sequence[Word], *, tree: bool = False) -> None:
        for pattern in self.command.paths(words, self.below):
            self.command.gathering.read(pattern)
            if tree:
                self.command.gathering.read(f"{pattern}/**")

    def directory(self) -> str:
        return next(iter(self.command.paths([self.below or Word(".")])), self.command.surroundings.directory)


def git(command: Command) -> None:
    options, operands = command.options(GIT, mixed=False)
    for value in values_of(options, "-c", "--config-env"):
        if value.text.lower().startswith("url."):  # it gives addresses another meaning
            command.host(ANY_HOST)
            command.hosts_in(value.text)
    if has(options, "--git-dir", "--work-tree", "--exec-path", "--config-env", "-c"):
        command.unknown()
    if not operands:
        return
    below = value_of(options, "-C")
    name = operands[0].text
    one = _Git(command, operands, below)
    if name not in COMMANDS:
        _alias(one, name, operands, options)
        return
    if name in _WRITING:
        command.targets(git_targets(command.words))
    _SUBCOMMANDS.get(name, _anything)(one)


_WRITING = frozenset(
    {
        *(
            "archive",
            "bundle",
            "config",
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


def _nothing(_: _Git) -> None:
    """It tells something about the repository, or changes it, but shows and touches no file."""


def _anything(one: _Git) -> None:
    one.command.reads_like_paths(one.operands)
    one.command.unknown()


def _shows(one: _Git) -> None:
    """The content of files, now or in a commit. Without a certain path it may be any file in the repository."""
    certain = list(one.paths)
    named: list[Word] = []
    for word in one.operands:
        if at_revision := _AT_REVISION.fullmatch(word.text):
            certain.append(Word(at_revision[1], word.static))
        elif looks_like_path(word.text) and ".." not in word.text:
            named.append(word)
    one.reads(certain or named, tree=True)
    one.reads(values_of(one.options, "--contents", "-f", "-O"))
    if not certain:
        one.command.unknown()


_PATCHES = (
    *("-p", "-u", "--patch", "-L", "-c", "--cc", "-m", "-U", "--unified", "--patch-with-stat", "--patch-with-raw"),
    *("--binary", "-W", "--function-context", "--word-diff", "--color-words", "--word-diff-regex", "--remerge-diff"),
    *("--diff-merges", "--dd", "--ext-diff", "--textconv"),
)
"""Options with which a log shows what changed."""


def _logs(one: _Git) -> None:
    if has(one.options, *_PATCHES):
        _shows(one)


def _stash(one: _Git) -> None:
    """The name of its subcommand comes first: after `--` or an option it is a file, and is stashed."""
    if one.first not in ("list", "drop", "clear"):
        one.command.unknown()
    else:
        _logs(one)


def _configures(one: _Git) -> None:
    """Settings may come from any file, or from a commit."""
    one.reads(values_of(one.options, "-f", "--file"))
    if has(one.options, "--blob", "-e", "--edit") or one.first == "edit":
        one.command.unknown()


def _annotates(one: _Git) -> None:
    """Notes and tags: their text may come from a file, or from an editor."""
    one.reads(values_of(one.options, "-F", "--file"))
    if one.name == "notes" and one.first not in (None, "list", "show", "remove", "prune", "get-ref"):
        one.command.unknown()


def _adds(one: _Git) -> None:
    one.reads(one.operands, tree=True)


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
    certain = list(one.paths) or (one.operands if one.name == "restore" else [])
    named = certain or [word for word in one.operands if looks_like_path(word.text)]
    for pattern in one.command.paths(named, one.below):
        one.command.gathering.write(pattern)
        one.command.gathering.write(f"{pattern}/**")
    if not certain or has(one.options, "--pathspec-from-file"):
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
    if [word.text for word in one.operands[:1]] in (["update"], ["show"], ["prune"], ["set-head"]):
        _reaches(one, one.operands[1:2])


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
    merge-base mktree multi-pack-index name-rev pack-refs prune repack rerere rev-list rev-parse shortlog
    show-branch show-index show-ref status symbolic-ref update-index update-ref var verify-pack version
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
    "stash": _stash,
    **dict.fromkeys(("add", "stage", "hash-object"), _adds),
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
