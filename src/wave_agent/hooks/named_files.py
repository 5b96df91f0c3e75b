"""The files a hook names, found without running it.

This errs on the side of naming too many: a file that does not exist, and never will, changes nothing.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice, pairwise, product

from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.execution import HookKind
from wave_agent.lazy_regex import lazy_regex

_PROJECT = lazy_regex(r"\$(?:\{(?:(?:WAVE|CLAUDE)_PROJECT_DIR|PWD)[^}]*\}|(?:(?:WAVE|CLAUDE)_PROJECT_DIR|PWD)\b)|^~\+")
_NAMED_PROJECT = lazy_regex(r"\$(?:\{(?:WAVE|CLAUDE)_PROJECT_DIR[^}]*\}|(?:WAVE|CLAUDE)_PROJECT_DIR\b)")
"""The project directory, wherever the hook runs."""
_COMPUTED_PROJECT = lazy_regex(r"\$\([^()]*\b(?:rev-parse\s+--show-toplevel|pwd)\b[^()]*\)|`[^`]*\bpwd\b[^`]*`")
"""Common ways to compute the project directory."""
_PLUGIN = lazy_regex(r"\$(?:CLAUDE_PLUGIN_ROOT\b|\{CLAUDE_PLUGIN_ROOT\})")
_ASSIGNMENT = lazy_regex(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = lazy_regex(r"\$(?:\{(\w+)\}|(\w+))")
_MODULE_OPTION = lazy_regex(r"-[A-Za-z]*m(.*)")
_FILE_NAME = lazy_regex(r"[^/\s]*[^/\s.-][^/\s]*\.[A-Za-z]\w{0,9}")
_BRACES = lazy_regex(r"\{([^{},]*(?:,[^{},]*)+)\}")
_BLANKS = " \t\n"
_PUNCTUATION = "();<>|&\n"
_GOES_TO = ("cd", "pushd", "-C", "--chdir", "--prefix")
"""Words followed by a directory that later paths may be relative to."""
_BY_ITSELF: Mapping[str, tuple[str, ...]] = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", ".justfile", "Justfile"),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), ("package.json",)),
}
"""Programs that run code from a file without naming it."""
_PLAIN = frozenset({
    *("awk", "b2sum", "base32", "base64", "basename", "bash", "bc", "cat", "chmod", "cksum", "column", "comm"),
    *("cp", "curl", "cut", "dash", "date", "dd", "df", "diff", "dirname", "du", "echo", "egrep", "env"),
    *("expand", "expr", "factor", "false", "fgrep", "file", "find", "flock", "fmt", "fold", "gawk", "getopt"),
    *("grep", "head", "hexdump", "hostname", "iconv", "id", "jq", "kill", "ln", "logger", "ls", "mawk"),
    *("md5sum", "mkdir", "mktemp", "more", "mv", "nl", "nohup", "notify-send", "nproc", "numfmt", "od"),
    *("osascript", "paste", "pgrep", "pr", "printf", "ps", "pwd", "readlink", "realpath", "rev", "rm"),
    *("rmdir", "say", "sed", "seq", "sh", "sha1sum", "sha256sum", "sha512sum", "shuf", "sleep", "sort"),
    *("split", "stat", "strings", "stty", "sum", "sync", "tac", "tail", "tee", "test", "timeout", "touch"),
    *("tput", "tr", "true", "tsort", "tty", "uname", "unexpand", "uniq", "uptime", "users", "wc", "wget"),
    *("which", "who", "whoami", "xargs", "yes", "zsh", "["),
})  # fmt: skip
"""Programs that read neither code nor settings from the current directory or its parents."""
_GIVEN_A_SCRIPT = lazy_regex(
    r"\b(?:(?:python|pypy)[\d.]*|node(?:js)?|ruby|perl)\s+[\"']?(?=/|~/|\$\{?CLAUDE_PLUGIN_ROOT\b)"
)
"""Interpreters started with an absolute script path: they look for code next to that script."""
_HERE = lazy_regex(r"(?:\$\{?PWD\}?|\$\(pwd\)|`pwd`)[\"']?/")
_WORD = lazy_regex(r"[^\s\"'`;|&<>()\[\]{}=:,$]+")
_NAME = lazy_regex(r"[A-Za-z_\[][\w.+-]*")
_SCRIPT_LENGTH = 1 << 15
_LONGEST = os.pathconf("/", "PC_PATH_MAX")
"""Longest path the system accepts, in bytes."""
_MOST = 200
"""Maximum number of files for a glob pattern or brace expansion."""


def hook_files(hook: HookDefinition, project: str) -> tuple[str, ...]:
    """Absolute paths of the files this hook visibly runs."""
    return _FILES[hook.kind](hook, project)


def misplaced_file(hook: HookDefinition, project: str) -> str | None:
    """For a hook in the settings of a subdirectory: a file it names that exists relative to that subdirectory, but not
    relative to the project directory, where hooks run. The path is relative to the subdirectory."""
    if not hook.inner:
        return None
    own = os.path.join(project, hook.inner)
    there = {os.path.relpath(file, own) for file in hook_files(hook, own) if os.path.isfile(file)}
    here = {os.path.relpath(file, project) for file in hook_files(hook, project) if os.path.isfile(file)}
    inside = (file for file in sorted(there - here) if not file.startswith("../"))
    return next(inside, None)


def runs_alike(hook: HookDefinition, project: str, directory: str, path: str) -> bool:
    """Whether this hook visibly runs the same code in `directory` as in the project directory. `path` is the hooks'
    PATH.

    It does not if it, or a script it names, uses a relative path that resolves differently there, or a program that may
    read code or settings from the current directory. In doubt the answer is no: changing directory must not lose or
    replace a guard.
    """
    if hook.kind is not HookKind.COMMAND:
        return False
    here, there = (
        set(named_files(_placed(hook.command, project), hook.args, place, plugin_root=hook.plugin_root))
        for place in (project, directory)
    )
    if any(map(os.path.lexists, here ^ there)):
        return False
    line = " ".join((hook.command, *(hook.args or ())))
    texts = [_placed(text, project) for text in (line, *map(_script, hook_files(hook, project)))]
    return not any(_names_a_file(text, (project, directory)) or _looks_around(text, path) for text in texts)


def _placed(text: str, project: str) -> str:
    return _NAMED_PROJECT.sub(lambda _: project, text)


def _script(file: str) -> str:
    """The start of a script, without its shebang line."""
    try:
        with open(file, "rb") as opened:
            text = opened.read(_SCRIPT_LENGTH).decode(errors="replace")
    except OSError:
        return ""
    return "" if "\0" in text else text.partition("\n")[2] if text.startswith("#!") else text


def _names_a_file(text: str, places: Sequence[str]) -> bool:
    """Whether the text names a file by a relative path, which resolves differently in another directory."""
    text = _HERE.sub(" ", text)
    words = {word for word in _WORD.findall(text) if len(word) < _LONGEST and not word.startswith(("/", "~/"))}
    return any(os.path.isfile(os.path.join(place, word)) for word in words for place in places)


def _looks_around(text: str, path: str) -> bool:
    """Whether a program in the text may read code or settings from the current directory."""
    return not _PLAIN.issuperset(_programs(path).intersection(_NAME.findall(_GIVEN_A_SCRIPT.sub(" ", text))))


@lru_cache(maxsize=4)
def _programs(path: str) -> frozenset[str]:
    """The names of all programs on this PATH."""
    found: set[str] = set()
    for directory in path.split(os.pathsep):
        with suppress(OSError):
            found.update(os.listdir(directory or "."))
    return frozenset(found)


def target_file(target: str, project: str) -> str:
    """The file in `FILE:FUNCTION`."""
    return _absolute(target.rpartition(":")[0], project, project)


def working_directories(command: str, project: str) -> tuple[str, ...]:
    """Directories in which parts of a command line may run: the project, and those named by `cd` and the like."""
    words = list(_read_words(command))
    named = [word for before, word in pairwise(words) if before in _GOES_TO]
    found = (_absolute(word, project, project) for word in named if "\0" not in word)
    return (project, *filter(os.path.isdir, found))


def _no_files(*_: object) -> tuple[str, ...]:
    return ()


_FILES: Mapping[HookKind, Callable[[HookDefinition, str], tuple[str, ...]]] = {
    HookKind.COMMAND: lambda hook, project: named_files(hook.command, hook.args, project, plugin_root=hook.plugin_root),
    HookKind.PYTHON: lambda hook, project: (target_file(hook.command, project),),
    HookKind.HTTP: _no_files,
    HookKind.MCP_TOOL: _no_files,
    HookKind.PROMPT: _no_files,
    HookKind.AGENT: _no_files,
    HookKind.FUNCTION: _no_files,
    HookKind.ABSENT: _no_files,
}


def named_files(command: str, args: Sequence[str] | None, project: str, *, plugin_root: str = "") -> tuple[str, ...]:
    """Absolute paths of existing files, and of words that look like a path and may exist later.

    Files the command only writes to are omitted: a growing log is not code.
    """
    if plugin_root:
        command = _PLUGIN.sub(lambda _: shlex.quote(plugin_root), command)
    words = [command, *args] if args is not None else list(_read_words(command))
    return tuple(dict.fromkeys(path for path in _paths(words, project) if not os.path.isdir(path)))


def _paths(words: Sequence[str], project: str) -> Iterator[str]:
    bases, variables = [project], dict[str, str]()
    before = ""
    for raw in words:
        word = _VARIABLE.sub(lambda name: variables.get(name[1] or name[2], name[0]), raw)
        if assigned := _ASSIGNMENT.fullmatch(word):
            variables[assigned[1]] = assigned[2]
            named = [_absolute(one, project, project) for one in assigned[2].split(":") if one and "\0" not in one]
            bases += filter(os.path.isdir, named)  # such as PYTHONPATH
        if before in _GOES_TO or word.startswith("--chdir="):
            bases.append(_absolute(word.removeprefix("--chdir="), project, project))
        if module := _MODULE_OPTION.fullmatch(before if before.endswith("m") else word):
            yield from (path for base in bases for path in _module_files(module[1] or word, base))
        for name in _BY_ITSELF.get(word.rsplit("/", 1)[-1], ()):
            yield from (os.path.join(base, name) for base in bases)
        yield from (path for base in bases for spelt in _spellings(word) for path in _files(spelt, base, project))
        before = word


def _spellings(word: str) -> Iterator[str]:
    """The word itself, the part after a short option or inside `$'…'`, and each of its brace expansions."""
    for one in (word, word[1:] if word.startswith(("$./", "$/")) else "", word[2:] if re.match(r"-\w.", word) else ""):
        parts = _BRACES.split(one)
        choices = [part.split(",") if at % 2 else [part] for at, part in enumerate(parts)]
        yield from ("".join(chosen) for chosen in islice(product(*choices), _MOST) if one)


def _files(word: str, base: str, project: str) -> Iterator[str]:
    path = _absolute(word, base, project)
    if "\0" in path or len(word) > _LONGEST:
        return
    one_word = not any(blank in word for blank in _BLANKS)
    looks_like_one = ("/" in word and (one_word or word.startswith(("/", "./", "~/", "$")))) or _FILE_NAME.fullmatch(
        word
    )
    if looks_like_one or os.path.isfile(path):
        yield path
    if re.search(r"[*?\[]", word):
        from glob import iglob  # lazy: few hooks name files by a pattern

        yield from map(os.path.normpath, islice(iglob(path), _MOST))


def _absolute(word: str, base: str, project: str) -> str:
    named = _PROJECT.sub(lambda _: project, word)
    home = named if "\0" in named else os.path.expanduser(named)  # no user has such a name, and looking it up fails
    return os.path.normpath(os.path.join(base, home))


def _read_words(command: str) -> Iterator[str]:
    """The words of a command line, without the targets of output redirections and `tee`."""
    lexer = shlex.shlex(_COMPUTED_PROJECT.sub("${PWD}", command), posix=True, punctuation_chars=_PUNCTUATION)
    lexer.commenters, lexer.whitespace, lexer.whitespace_split = "", " \t\r", True
    try:
        tokens = list(lexer)
    except ValueError:  # a quote that is not closed
        tokens = command.split()
    direction, program = "", ""
    for token in tokens:
        if token and set(token) <= set(_PUNCTUATION):
            direction = token if set(token) & set("<>") and "(" not in token else ""
            program = program if set(token) <= set("<>&") and token != "&" else ""
            continue
        if "<" in direction or not (direction or program == "tee"):
            program = program or token.rsplit("/", 1)[-1]
            yield token
            yield from _parts(token)
        direction = ""


def _parts(token: str) -> Iterator[str]:
    """Words inside a word: `--config=x/y` names x/y, and a quoted program, as for `bash -c`, contains words."""
    if "=" in token and not _ASSIGNMENT.fullmatch(token):
        yield token.partition("=")[2]
    if any(blank in token for blank in _BLANKS):
        yield from _read_words(token)


def _module_files(module: str, base: str) -> Iterator[str]:
    """The files `python -m a.b` would run if they existed: they take precedence over modules elsewhere."""
    if not re.fullmatch(r"\w+(?:\.\w+)*", module):
        return
    path = base
    for name in module.split("."):
        path = os.path.join(path, name)
        yield os.path.join(path, "__init__.py")
    yield from (f"{path}.py", os.path.join(path, "__main__.py"))
