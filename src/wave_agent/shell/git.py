"""What git writes to besides its objects."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.git_runs import GIT
from wave_agent.shell.options import OptionTable, has, read, says, value_of, values_of
from wave_agent.shell.readers import named_by
from wave_agent.shell.targets import Target
from wave_agent.shell.values import Placed, Reach, Word

_CONFIG = OptionTable("f", ("--file", "--blob", "--type", "--default", "--value", "--comment"))
_READING = ("--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "--get-color", "--get-colorbool")
_CONFIG_FILES = {"--global": ("~/.gitconfig", "~/.config/git/config"), "--system": ("/etc/gitconfig",)}


_Writer: TypeAlias = Callable[[Sequence[Word], Word | None], Iterator[Target]]


def git_targets(words: Sequence[Word]) -> Iterator[Target]:
    options, operands = read(words, GIT)
    if not operands:
        return
    below = value_of(options, "-C")
    name = operands[0].text
    yield from git_file_options(words)
    if name == "config":
        yield from _git_config(operands, below, value_of(options, "--git-dir"))
    elif name == "remote":
        if len(operands) > 1 and operands[1].text in _CONFIGURES and not _is_plain_remote(operands[1:]):
            yield Target(Word(".git/config"), below=below, upwards=True)
    elif name in _SUBCOMMANDS:
        yield from _SUBCOMMANDS[name](operands, below)
    elif name not in _READING_COMMANDS:
        found = (target for word in operands[1:] for target in named_by(word))
        yield from (Target(target.word, target.reach, below=below) for target in found)


_FILE_OPTIONS = ("--output", "--export-marks", "--export-pack-edges", "--filter-to")
_DIRECTORY_OPTIONS = ("--output-directory", "--separate-git-dir")
_NAMED_OPTIONS = OptionTable("", (*_FILE_OPTIONS, *_DIRECTORY_OPTIONS, "--prefix", "--file"))


def git_file_options(words: Sequence[Word]) -> Iterator[Target]:
    """Files and directories that options name, of any subcommand: many take those of `git diff`."""
    options, operands = read(words, GIT)
    if len(operands) < 2:
        return
    below, name = value_of(options, "-C"), operands[0].text
    own, _ = read(operands, _NAMED_OPTIONS, mixed=True)
    yield from (Target(word, below=below) for word in values_of(own, *_FILE_OPTIONS))
    directories = values_of([option for option in own if option.name != "--output"], *_DIRECTORY_OPTIONS)
    yield from (Target(word, Reach.TREE, below=below) for word in directories)
    if name == "checkout-index":
        for word in values_of(own, "--prefix"):
            glob = None if word.text.endswith("/") else f"{word.pattern}*"
            yield Target(Word(word.text, word.static, glob), Reach.TREE, below=below)
    elif name.startswith("credential-"):
        yield from (Target(word, below=below) for word in values_of(own, "--file"))
    if name in _CHANGE_WORK_TREE:
        yield from (Target(word, Reach.TREE, below=below) for word in values_of(options, "--work-tree"))


_CHANGE_WORK_TREE = frozenset(
    {
        *("am", "apply", "checkout", "checkout-index", "cherry-pick", "clean", "merge", "mv", "pull", "read-tree"),
        *("rebase", "reset", "restore", "revert", "rm", "sparse-checkout", "stash", "submodule", "switch"),
    }
)


def changes_work_tree(command: Placed) -> bool:
    _, operands = read(command.words, GIT)
    return bool(operands) and operands[0].text in _CHANGE_WORK_TREE


_READING_COMMANDS = frozenset(
    {
        *("add", "annotate", "blame", "branch", "cat-file", "check-attr", "check-ignore", "check-mailmap", "cherry"),
        *("commit", "count-objects", "describe", "diff-files", "fetch", "for-each-ref", "fsck", "grep", "hash-object"),
        *("help", "ls-files", "ls-remote", "ls-tree", "merge-base", "name-rev", "notes", "pull", "push", "range-diff"),
        *("reflog", "remote", "reset", "rev-list", "rev-parse", "shortlog", "show-branch", "show-index", "show-ref"),
        *("stage", "status", "tag", "var", "verify-commit", "verify-tag", "version", "whatchanged"),
    }
)
"""They may read the work tree and write to the repository, but not to a file named as an argument."""
_CONFIGURES = ("add", "remove", "rm", "rename", "set-url", "set-branches", "set-head")
_REMOTE = OptionTable("tm", ("--track", "--master"))
_PLAIN_NAME = lazy_regex(r"\w[\w.-]*(?:/\w[\w.-]*)*")
_PLAIN_ADDRESS = lazy_regex(r"(?!.*(?:::|//-|:-))[\w./~][\w.@:/~+%-]*")
"""No transport runs a program (`ext::`), and no host is an option of ssh."""


def _is_plain_remote(words: Sequence[Word]) -> bool:
    """Whether it only writes or removes a name and an address in the configuration, which makes git run nothing.
    Renaming a remote is different: existing settings would then apply to another name."""
    _, operands = read(words, _REMOTE, mixed=True)
    texts = [word.text for word in operands]
    if not all(word.static and word.glob is None for word in operands):
        return False
    if words[0].text == "add":
        named = texts[:1] and _PLAIN_NAME.fullmatch(texts[0])
        return bool(named) and all(map(_PLAIN_ADDRESS.fullmatch, texts[1:]))
    return words[0].text in ("remove", "rm") and all(map(_PLAIN_NAME.fullmatch, texts))


def _paths(operands: Sequence[Word], below: Word | None) -> Iterator[Target]:
    _, paths = read(operands, OptionTable("", ("--pathspec-from-file",)), mixed=True)
    yield from (Target(word, Reach.TREE, below=below) for word in paths)


def _restore(operands: Sequence[Word], below: Word | None) -> Iterator[Target]:
    """Guards named explicitly. Git is asked what else would be restored."""
    options, paths = read(operands, OptionTable("s", ("--source", "--conflict", "--pathspec-from-file")), mixed=True)
    if not says(options, "-S", "--staged") or has(options, "-W", "--worktree"):
        yield from (Target(word, reach, below=below) for word in paths for reach in (Reach.NAMED, Reach.FILE))


def _checkout(operands: Sequence[Word], below: Word | None) -> Iterator[Target]:
    texts = [word.text for word in operands]
    end = texts.index("--") if "--" in texts else len(texts)
    paths = operands[end + 1 :]
    yield from (Target(word, reach, below=below) for word in paths for reach in (Reach.NAMED, Reach.FILE))


def _output(operands: Sequence[Word], below: Word | None) -> Iterator[Target]:
    options, _ = read(operands, OptionTable("o", ("--output", "--output-directory")), mixed=True)
    for file in values_of(options, "-o", "--output", "--output-directory"):
        yield Target(file, Reach.INSIDE, ("*",), below)
        yield Target(file, below=below)


def _bundle(operands: Sequence[Word], below: Word | None) -> Iterator[Target]:
    _, rest = read(operands, OptionTable(), mixed=True)
    if [word.text for word in rest[:1]] == ["create"]:
        yield from (Target(word, below=below) for word in rest[1:2])


def _new_directory(operands: Sequence[Word], below: Word | None) -> Iterator[Target]:
    """`clone`, `worktree add`, `submodule add`: every operand may be the directory."""
    _, rest = read(operands, OptionTable("bBojuc", ("--branch", "--origin", "--depth", "--reference")), mixed=True)
    if operands[0].text == "clone" or [word.text for word in rest[:1]] == ["add"]:
        yield from (Target(word, Reach.INSIDE, below=below) for word in rest[1:])


def _maintenance(operands: Sequence[Word], _: Word | None) -> Iterator[Target]:
    """Repositories under git maintenance are listed in the user's settings."""
    options, rest = read(
        operands, OptionTable("", ("--config-file", "--scheduler", "--schedule", "--task")), mixed=True
    )
    if rest and rest[0].text in ("register", "unregister", "start", "stop"):
        yield from map(Target, values_of(options, "--config-file"))
        yield from users_settings()


def users_settings() -> Iterator[Target]:
    yield from (Target(Word(file, glob=file)) for file in _CONFIG_FILES["--global"])


def _init(operands: Sequence[Word], below: Word | None) -> Iterator[Target]:
    """A template can contain hooks and settings."""
    options, rest = read(
        operands, OptionTable("b", ("--template", "--separate-git-dir", "--initial-branch")), mixed=True
    )
    if has(options, "--template"):
        where = f"{rest[0].text}/.git/config" if rest else ".git/config"
        yield Target(Word(where), below=below)


_SUBCOMMANDS: Mapping[str, _Writer] = {
    **dict.fromkeys(("rm", "mv"), _paths),
    **dict.fromkeys(
        ("archive", "bugreport", "diagnose", "diff", "diff-index", "diff-tree", "format-patch", "log", "show"), _output
    ),
    **dict.fromkeys(("clone", "submodule", "worktree"), _new_directory),
    "bundle": _bundle,
    "checkout": _checkout,
    "init": _init,
    "maintenance": _maintenance,
    "restore": _restore,
}


_RUNS_NOTHING = lazy_regex(
    r"(?:user|author|committer)\.(?:name|email)|(?:color|advice)\.\w+|init\.defaultbranch|safe\.directory"
    r"|core\.(?:autocrlf|eol|quotepath|longpaths|filemode|ignorecase)|pull\.(?:ff|rebase)|push\.(?:default|autosetupremote)"
    r"|fetch\.prune|merge\.conflictstyle|http\.postbuffer",
    re.IGNORECASE,
)
"""Settings that every project uses, which make git neither run anything nor use other files."""


def _is_plain_upstream(rest: Sequence[Word]) -> bool:
    """`branch.x.remote origin`: a remote may also be an address, which can name a program."""
    upstream = re.fullmatch(r"branch\.[\w./-]+\.(?:merge|remote)", rest[0].text, re.IGNORECASE)
    plain = all(word.static and word.glob is None for word in rest)
    return plain and len(rest) == 2 and upstream is not None and _PLAIN_NAME.fullmatch(rest[1].text) is not None


def _git_config(operands: Sequence[Word], below: Word | None, git_dir: Word | None) -> Iterator[Target]:
    options, rest = read(operands, _CONFIG, mixed=True)
    texts = [word.text for word in rest]
    if says(options, *_READING) or texts[:1] in (["get"], ["list"]):
        return
    changes = has(options, "--add", "--unset", "--unset-all", "--replace-all", "-e", "--edit") or has(
        options, "--rename-section", "--remove-section"
    )
    if not changes and len(rest) < 2:
        return
    if file := value_of(options, "-f", "--file"):
        yield Target(file, below=below)
        return
    if not changes and rest[0].static and _RUNS_NOTHING.fullmatch(rest[0].text):
        return
    if not changes and _is_plain_upstream(rest):
        return
    files = [file for option in options for file in _CONFIG_FILES.get(option.name, ())]
    yield from (Target(Word(file, glob=file)) for file in files)
    if git_dir is not None:
        yield Target(Word(f"{git_dir.text}/config", git_dir.static), below=below)
    elif not files:
        yield Target(Word(".git/config"), below=below, upwards=True)
