"""The Python code a hook runs, and the directories it imports modules from before the standard library.

`python3 guard.py` looks next to the script first; `python3 -c`, `python3 -m` and `python3 -` look in the working
directory, which is the project. A `json.py` there shadows the standard module. With `-I` or `-P`, Python does not look
there.
"""

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum

from msgspec import Struct

from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.execution import HookKind
from wave_agent.hooks.named_files import hook_files, working_directories

_LOADED_BEFORE = frozenset([
    "_collections_abc", "_sitebuiltins", "abc", "builtins", "codecs", "encodings", "genericpath", "io", "os",
    "posixpath", "site", "stat", "sys", "zipimport",
])  # fmt: skip
"""Modules that Python loads before it searches any of these directories."""
STANDARD = frozenset(sys.stdlib_module_names) - _LOADED_BEFORE
"""The names of the standard library that can be shadowed."""
RUNNERS = frozenset([
    "behave", "cProfile", "coverage", "doctest", "nose2", "nox", "pdb", "profile", "pytest", "runpy", "timeit", "tox",
    "trace", "unittest",
])  # fmt: skip
"""Modules for `-m` that run a project's code, and so need its directory."""
MODULE_ENDINGS = (".py", ".pyc", ".so", ".pyd")

_SPACE = r"""(?:[ \t"',]|\\\n)"""
_PYTHON = re.compile(rf"(?<![\w.])(?<!\w-)(?P<name>(?:python|pypy)[\d.]*)(?![\w.-])[\"'}}]*(?P<options>(?:{_SPACE}+-(?:[WX]{_SPACE}*[^\s\"',]+|[bBdEhiIOPqsSuvVx?]+|-check-hash-based-pycs{_SPACE}+\w+)(?={_SPACE}|$))*)")  # fmt: skip  # noqa: E501
_CODE = re.compile(rf"{_SPACE}+-(?P<more>[A-Za-z]*?)(?P<kind>[cm]){_SPACE}*(?P<module>[\w.]*)")
_STDIN = re.compile(rf"{_SPACE}*(?:-(?![\w-])|[<|;&)\n]|\d?>|$)")
_IMPORT = re.compile(
    r"\bfrom[ \t]+([A-Za-z_][\w.]*)[ \t]+import\b"
    r"|\bimport[ \t]+([A-Za-z_][\w.]*(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*[A-Za-z_][\w.]*(?:[ \t]+as[ \t]+\w+)?)*)"
    r"|\b(?:__import__|import_module)\([ \t]*[\"']([\w.]+)"
)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_SHEBANG = re.compile(r"#!.*\bpython")
_ISOLATED = re.compile(r"\bpython[\d.]*[ \t]+-\w*[IP]")
_SEARCHED = re.compile(r"""\bPYTHONPATH=["']?([^\s"';&|]+)""")
_ABOVE = re.compile(r"[\w.~/+-]*/\Z")
_LONGEST_PATH = 200
_LARGEST = 1 << 18
"""How much of a script is read."""
_MOST_MODULES = 100


class PythonStart(StrEnum):
    CODE = "-c"
    MODULE = "-m"
    STDIN = "-"
    SCRIPT = "file"


class PythonRun(Struct, frozen=True):
    """One Python invocation found in a text."""

    program: str
    start: PythonStart
    module: str = ""
    isolated: bool = False
    """It imports nothing from the working directory or its script's directory."""
    ignores: bool = False
    """It ignores environment variables such as PYTHONSAFEPATH."""


class ImportPlace(Struct, frozen=True):
    """A directory from which a hook's Python imports modules before the standard library."""

    directory: str
    names: frozenset[str]
    """What it visibly imports, plus the names of the standard library."""
    script: str = ""
    """The script whose directory this is; empty if it is the working directory or comes from PYTHONPATH."""


def python_runs(text: str) -> Iterator[PythonRun]:
    """The Python invocations in a command line or a shell script. Errs on the side of finding one."""
    for found in _PYTHON.finditer(text):
        options = "".join(re.findall(rf"{_SPACE}-([A-Za-z?]+)", found["options"]))
        code = _CODE.match(text, found.end())
        above = _ABOVE.search(text, max(0, found.start() - _LONGEST_PATH), found.start())
        options += code["more"] if code else ""
        yield PythonRun(
            program=(above[0] if above else "") + found["name"],
            start=PythonStart(f"-{code['kind']}")
            if code
            else PythonStart.STDIN
            if _STDIN.match(text, found.end())
            else PythonStart.SCRIPT,
            module=code["module"].partition(".")[0] if code and code["kind"] == "m" else "",
            isolated=bool(set("IP") & set(options)),
            ignores="E" in options,
        )


def imported(text: str) -> frozenset[str]:
    """The top-level modules a text visibly imports."""
    names = (one for found in _IMPORT.finditer(text) for one in (found[1] or found[2] or found[3]).split(","))
    return frozenset(name.split()[0].partition(".")[0] for name in names)


class HookPython(Struct, frozen=True):
    """The Python one hook runs, judging by its command and its scripts."""

    inline: tuple[PythonRun, ...] = ()
    """Invocations without a script file, which search the working directory first."""
    is_command: bool = False
    """The command itself is such an invocation, and starts nothing else."""
    names: frozenset[str] = frozenset()
    """What they visibly import or run, besides the standard library."""
    places: tuple[ImportPlace, ...] = ()

    @property
    def runs_project(self) -> bool:
        """Whether it is meant to run the code of the project it runs in."""
        return bool(self.inline) and all(run.module in RUNNERS for run in self.inline)


_STARTS_OTHERS = re.compile(
    r"\b(?:subprocess|system|popen|spawn\w*|exec[lv]?\w*|multiprocessing|asyncio|pty|runpy|import_module|__import__"
    r"|sys\.path|open)\b"
)
"""Words in code that may run other programs, or code we cannot see."""
_ONE_COMMAND = re.compile(r"""(?:[^'"`;&|\n$]|'[^']*'|"(?:[^"\\`$]|\\.)*"|\d?>[>&]?)*""", re.DOTALL)


def python_of(hook: HookDefinition, project: str) -> HookPython:
    """The Python this hook runs. Reads its scripts, wherever they are."""
    if hook.kind is HookKind.PYTHON:
        return HookPython(places=tuple(_script_places(hook_files(hook, project))))
    if hook.kind is not HookKind.COMMAND:
        return HookPython()
    line = " ".join((hook.command, *(hook.args or ())))
    scripts = {file: text_of(file) for file in hook_files(hook, project)}
    shells = {file: _COMMENT.sub("", text) for file, text in scripts.items() if not _is_python(file, text)}
    own = _inline(line)
    inline = (*own, *(run for text in shells.values() for run in _inline(text)))
    texts = [line, *shells.values()] if inline else []
    names = {name for text in texts for name in imported(text)} | {run.module for run in inline}
    names_python = re.search(r"\b(?:python|pypy)[\d.]*\b", line) is not None
    apart = _ISOLATED.search(line) is not None
    loading = [
        file
        for file, text in scripts.items()
        if _is_python(file, text) and not (apart if names_python else _ISOLATED.search(text.partition("\n")[0]))
    ]
    python_path = [one for text in (line, *shells.values()) for one in _searched(text, project)]
    looks = any(run.module not in RUNNERS for run in inline)
    searched = [*(working_directories(line, project) if looks else ()), *python_path]
    wanted = _with_neighbours(searched, frozenset(names))
    return HookPython(
        inline=inline,
        is_command=bool(own) and _does_nothing_else(hook, line, scripts),
        names=frozenset(names) - STANDARD - _LOADED_BEFORE - {""},
        places=(*_script_places(loading), *(ImportPlace(one, wanted) for one in dict.fromkeys(searched))),
    )


def _inline(text: str) -> tuple[PythonRun, ...]:
    return tuple(run for run in python_runs(text) if run.start is not PythonStart.SCRIPT and not run.isolated)


def _does_nothing_else(hook: HookDefinition, line: str, scripts: Iterable[str]) -> bool:
    """Whether an environment variable for this hook affects only this one Python."""
    whole = hook.args is not None or _ONE_COMMAND.fullmatch(line) is not None
    ran = [file for file in scripts if os.path.isfile(file)]
    return whole and not ran and len(list(python_runs(line))) == 1 and not _STARTS_OTHERS.search(line)


def _searched(text: str, project: str) -> Iterator[str]:
    for found in _SEARCHED.finditer(text):
        for one in found[1].split(":"):
            yield from working_directories(f"cd {one}", project)[1:]


def _is_python(file: str, text: str) -> bool:
    return file.endswith(".py") or _SHEBANG.match(text) is not None


def _script_places(files: Iterable[str]) -> Iterator[ImportPlace]:
    for file in filter(os.path.isfile, files):
        directory = os.path.dirname(file)
        yield ImportPlace(directory, _with_neighbours([directory], imported(text_of(file))), file)


def _with_neighbours(directories: Iterable[str], names: frozenset[str]) -> frozenset[str]:
    """Add the modules that modules in these directories import themselves."""
    wanted = (STANDARD | names) - {""}
    entries = [os.path.join(one, name) for one in dict.fromkeys(directories) for name in _names_in(one)]
    unread = {file for file in entries if file.endswith(".py") or "." not in os.path.basename(file)}
    for _ in range(_MOST_MODULES):
        named = [file for file in unread if os.path.basename(file).partition(".")[0] in wanted]
        if not named:
            break
        unread.discard(file := min(named))
        wanted |= imported(text_of(file if file.endswith(".py") else os.path.join(file, "__init__.py")))
    return wanted


def shadows(place: ImportPlace) -> tuple[str, ...]:
    """Paths of the files and packages in this directory that Python would import for these names."""
    found: list[str] = []
    for entry in _names_in(place.directory):
        file = os.path.join(place.directory, entry)
        if entry.partition(".")[0] in place.names and file != place.script and is_module(file):
            found.append(file)
    return tuple(found)


def packages(place: ImportPlace) -> tuple[str, ...]:
    """Subdirectories that would become such a package if files were added to them."""
    found = [os.path.join(place.directory, name) for name in _names_in(place.directory) if name in place.names]
    return tuple(filter(os.path.isdir, found))


def is_module(file: str) -> bool:
    """Whether Python would import this. A directory named like a standard module needs an `__init__`."""
    if file.endswith(MODULE_ENDINGS):
        return True
    name = os.path.basename(file)
    if "." in name or not os.path.isdir(file):
        return False
    return name not in STANDARD or any(one.startswith("__init__.") for one in _names_in(file))


def _names_in(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def text_of(file: str) -> str:
    """The text of a script; empty if it is not a regular text file. Never blocks."""
    try:
        with open(file, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                return ""
            content = opened.read(_LARGEST)
    except (OSError, ValueError):
        return ""
    return "" if b"\0" in content else content.decode(errors="replace")
