"""Commands that run shell text from the project's own files: scripts, Makefiles, package.json, justfiles."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from posixpath import dirname, join, normpath

from wave_agent.effects.gathering import Command
from wave_agent.effects.makefiles import read_makefile
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.options import OptionTable, has, value_of, values_of
from wave_agent.shell.values import Word
from wave_agent.shell.words import Pattern
from wave_agent.shell.wrappers import SHELLS

_SHEBANG = lazy_regex(r"#![ \t]*(?:/usr)?(?:/local)?/bin/(?:env[ \t]+(?:-S[ \t]+)?)?(\w+)[^\n]*")
_SHELL_OPTIONS = OptionTable("oO", ("--rcfile", "--init-file"))
_MOST_DIRECTORIES = 4
STANDARD_INPUT = lazy_regex(r"-|/dev/(?:stdin|fd/\d+)|/proc/(?:self|thread-self)/fd/\d+")


def run_shell(command: Command) -> None:
    """`bash FILE`; with `-c` or input from the line, the reader of the line has followed it."""
    options, operands = command.options(_SHELL_OPTIONS, mixed=False)
    starting = values_of(options, "--rcfile", "--init-file")
    command.reads(starting)
    if any(_is_text_option(text) for text in command.texts):
        command.gathering.complete &= not starting
        return
    files = operands[:1]
    if has(options, "--version", "--help"):
        return
    if has(options, "--rcfile", "--init-file", "-i", "-l", "--login") or command.name == "fish":
        command.unknown()
    if not files or STANDARD_INPUT.fullmatch(files[0].text) or has(options, "-s"):
        if command.stdin is None or not command.stdin.static:
            command.unknown()
        return
    look_into(command, files[0], operands)


def _is_text_option(text: str) -> bool:
    return re.fullmatch(r"[-+][A-Za-z]*c[A-Za-z]*", text) is not None


def source_file(command: Command) -> None:
    operands = [word for word in command.arguments if word.text != "--"]
    if operands and STANDARD_INPUT.fullmatch(operands[0].text):
        if command.stdin is None or not command.stdin.static:
            command.unknown()
    elif operands:
        look_into(command, operands[0], operands)


def run_file(command: Command) -> None:
    """`./x.sh`: text for a shell, if its first line says so."""
    word = command.words[0]
    texts = list(_texts(command, word))
    shells = [
        text for _, text in texts if (found := _SHEBANG.match(text)) and found[1] in SHELLS and found[1] != "fish"
    ]
    if len(shells) == len(texts) and texts:
        look_into(command, word, command.words)
        return
    command.reads([word])
    command.reads_like_paths(command.arguments)
    command.unknown()


def look_into(command: Command, file: Word, arguments: Sequence[Word]) -> None:
    """Takes in the effects of a shell script, which is read itself."""
    if file.text.startswith("<("):
        return  # its output is followed by the reader of the line
    command.reads([file])
    texts = list(_texts(command, file))
    if not texts or len(texts) < len(command.directories):
        command.unknown()
    for path, text in texts:
        given = shlex.join(["set", "--", *(word.text for word in arguments[1:])])
        known = all(word.static for word in arguments[1:])
        command.script(f"{given}\n{text}" if known and len(arguments) > 1 else text, path, _directory(command))


def _directory(command: Command) -> str:
    """The directory that scripts run in: that of the command, or an unknown one."""
    return command.directories[0]


def _texts(command: Command, file: Word) -> Iterable[tuple[str, str]]:
    if not file.static or file.glob is not None:
        return
    for pattern in list(command.paths([file]))[:_MOST_DIRECTORIES]:
        path = _plain(pattern)
        text = None if path is None else command.surroundings.read_text(path)
        if path is not None and text is not None:
            yield path, text


_ESCAPED = lazy_regex(r"\[([*?\[])\]")


def _plain(pattern: str) -> str | None:
    """The path, if the pattern is one."""
    bare = _ESCAPED.sub("", pattern)
    return None if re.search(r"[*?\[]", bare) else normpath(_ESCAPED.sub(r"\1", pattern))


def _places(command: Command, below: Word | None) -> list[str]:
    """Directories that a runner may start in."""
    named = [below] if below is not None else [Word(".")]
    if any(isinstance(directory, Pattern) for directory in command.directories):
        return []
    return [path for pattern in command.paths(named) if (path := _plain(pattern)) is not None][:_MOST_DIRECTORIES]


def _first_text(command: Command, directory: str, names: Iterable[str], *, upwards: bool) -> tuple[str, str] | None:
    """The first of these files that there is, and its text; `upwards` also in the directories above."""
    while True:
        for name in names:
            path = normpath(join(directory, name))
            if (text := command.surroundings.read_text(path)) is not None:
                return path, text
        if not upwards or directory in ("/", command.surroundings.project):
            return None
        directory = dirname(directory)


# ----------------------------------------------------------------------------------------------------------------- make

_MAKE = OptionTable(
    "fCIoEWj", ("--file", "--makefile", "--directory", "--eval", "--include-dir", "--old-file", "--what-if")
)
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")


def run_make(command: Command) -> None:
    table = OptionTable(_MAKE.values.replace("j", ""), _MAKE.longs, attached="jlO")
    options, operands = command.options(table)
    if has(options, "--version", "-v", "--help", "-h"):
        return
    goals = [word.text for word in operands if "=" not in word.text]
    given = dict(word.text.split("=", 1) for word in operands if "=" in word.text)
    if has(options, "--eval", "-E", "-I", "--include-dir") or not all(word.static for word in operands):
        command.unknown()
    files = values_of(options, "-f", "--file", "--makefile")
    below = value_of(options, "-C", "--directory")
    names = [word.text for word in files[:1]] or _MAKEFILES
    places = _places(command, below)
    if not places or len(files) > 1:
        command.unknown()
    for directory in places:
        found = _first_text(command, directory, names, upwards=False)
        if found is None:
            command.unknown()
            continue
        path, text = found
        command.gathering.read(path)
        recipes = read_makefile(text, goals, given, lambda name, at=directory: _exists(command, join(at, name)))
        if not recipes.complete:
            command.unknown()
        command.script("\n".join(recipes.lines), f"{path} {' '.join(goals)}", directory)


def _exists(command: Command, path: str) -> bool:
    return command.surroundings.read_text(normpath(path)) is not None


# --------------------------------------------------------------------------------------------------------- package.json

_SCRIPT_NAMES = {"t": "test", "tst": "test"}
_LIFECYCLE = frozenset({"test", "start", "stop", "restart"})
_ON_INSTALL = ("preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare")
_INSTALLING = frozenset({"install", "i", "ci", "add", "rebuild"})
_NODE_OPTIONS = OptionTable("wC", ("--prefix", "--workspace", "--dir", "--cwd", "--filter"))


def run_package_script(command: Command) -> None:
    """`npm run NAME`, `npm test`, `yarn NAME`: always incomplete, as programs of packages come first on their PATH."""
    options, operands = command.options(_NODE_OPTIONS)
    words = [word.text for word in operands]
    names = _script_names(command.name, words)
    below = value_of(options, "--prefix", "--dir", "--cwd", "-C")
    command.unknown()
    for directory in _places(command, below) if names else ():
        found = _first_text(command, directory, ("package.json",), upwards=True)
        if found is not None:
            path, text = found
            command.gathering.read(path)
            scripts = _scripts(text)
            for one in names:
                if one in scripts:
                    command.script(scripts[one], f"{path} {one}", dirname(path))


def _script_names(program: str, words: Sequence[str]) -> tuple[str, ...]:
    """The script that is run, with those before and after it, or those that an installation runs."""
    first = words[0] if words else "install" if program == "yarn" else ""
    if first in _INSTALLING:
        return _ON_INSTALL
    if first in ("run", "run-script", "rum", "urn"):
        name = words[1] if len(words) > 1 else ""
    else:
        name = _SCRIPT_NAMES.get(first, first)
        name = name if name in _LIFECYCLE or program in ("yarn", "pnpm", "bun") else ""
    return (f"pre{name}", name, f"post{name}") if name else ()


def _scripts(text: str) -> Mapping[str, str]:
    try:
        scripts = json.loads(text)["scripts"]
        return {str(name): str(value) for name, value in scripts.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


# ----------------------------------------------------------------------------------------------------------------- just

_JUST = OptionTable("fdl", ("--justfile", "--working-directory", "--set", "--shell", "--dotenv-path"))
_RECIPE = lazy_regex(r"@?([A-Za-z_][\w-]*)((?:\s+[^:]*)?):(?!=)\s*(.*)")
_TEMPLATE = lazy_regex(r"\{\{.*?\}\}")
_JUSTFILES = ("justfile", "Justfile", ".justfile", "JUSTFILE")


def run_just(command: Command) -> None:
    options, operands = command.options(_JUST)
    if has(options, "--list", "-l", "--summary", "--version", "--show", "-s", "--evaluate"):
        return
    if has(options, "--set", "--shell", "--dotenv-path", "-d", "--working-directory"):
        command.unknown()
    file = value_of(options, "-f", "--justfile")
    names = [file.text] if file is not None else _JUSTFILES
    places = _places(command, None)
    if not places:
        command.unknown()
    for directory in places:
        found = _first_text(command, directory, names, upwards=file is None)
        if found is None:
            command.unknown()
            continue
        path, text = found
        command.gathering.read(path)
        lines, complete = read_justfile(text, [word.text for word in operands])
        if not complete:
            command.unknown()
        command.script("\n".join(lines), f"{path} {' '.join(word.text for word in operands)}", dirname(path))


def read_justfile(text: str, goals: Sequence[str]) -> tuple[list[str], bool]:
    """The shell lines of recipes and what they depend on, and whether that is all."""
    recipes: dict[str, tuple[list[str], list[str]]] = {}
    complete, body = True, list[str]()
    for line in text.replace("\\\n", " ").split("\n"):
        if line[:1] in (" ", "\t"):
            body.append(line.strip())
        elif found := _RECIPE.fullmatch(line):
            body = []
            recipes[found[1]] = (re.findall(r"[A-Za-z_][\w-]*", found[3]), body)
            complete &= not found[2].strip() and "(" not in found[3]
        elif line.strip() and not line.startswith(("#", "[")):
            complete = False  # an assignment, a setting, an import
    waiting, done, lines = list(goals[:1]) or list(recipes)[:1], list[str](), list[str]()
    while waiting:
        name = waiting.pop(0)
        if name not in done:
            done.append(name)
            depends, body = recipes.get(name, ([], ["$UNKNOWN_TO_THE_READER"]))
            waiting += depends
            complete &= not any(one.startswith("#!") for one in body)
            lines += [_TEMPLATE.sub("$UNKNOWN_TO_THE_READER", one.lstrip("@-")) for one in body]
    return lines, complete and bool(done)
