"""The files of a package, or of a Python module, as far as the project has them. Launchers are given the name of a
package, with or without a version, or a path."""

import os
from collections.abc import Iterator, Sequence

from wave_agent.lazy_regex import lazy_regex
from wave_agent.mcp.bound_files import BoundFiles
from wave_agent.system.real_files import is_below

_ENTRY_POINT = lazy_regex(r"""=\s*["']([\w.]+):[\w.]+["']""")
_VERSION = lazy_regex(r"(?<=.)(?:@|==|>=|<=|~=|!=|>|<|\[).*")


class PackageFiles:
    """Adds them to the files of a server. `root` is the real path of the project or its repository."""

    def __init__(self, files: BoundFiles, root: str) -> None:
        self._files, self._root = files, root

    def module(self, module: str, base: str) -> None:
        """The files that `python -m a.b` would run if they existed, and the package around them."""
        parts = module.split(".")
        if not all(part.isidentifier() for part in parts):
            return
        path = base
        for part in parts:
            path = os.path.join(path, part)
            self._files.file(os.path.join(path, "__init__.py"), code=True)
        self._files.file(f"{path}.py", code=True)
        self._files.file(os.path.join(path, "__main__.py"), code=True)
        if os.path.isdir(package := os.path.join(base, parts[0])):
            self._files.tree(package)

    def package(self, package: str, bases: Sequence[str]) -> None:
        """A package, or a program of one, as far as the project has it."""
        name = program_of_package(package)
        full = without_version(package)
        for base in bases:
            path = os.path.normpath(os.path.join(base, os.path.expanduser(local_path(package))))
            if os.path.isdir(path) and self._files.is_inside(path):
                self._files.tree(path)
            for directory in upwards(base, self._root) if name else ():
                for place in ("node_modules/.bin", ".venv/bin", "venv/bin"):
                    self._files.file(os.path.join(directory, place, name), code=True)
                for one in dict.fromkeys((full, name)):
                    if os.path.isdir(inside := os.path.join(directory, "node_modules", one)):
                        self._files.tree(os.path.realpath(inside))
                self._entry_points(os.path.join(directory, "pyproject.toml"))

    def _entry_points(self, path: str) -> None:
        """`uv run NAME` runs a function of the project."""
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read(1 << 20)
        except OSError:
            return
        directory = os.path.dirname(path)
        for module in dict.fromkeys(_ENTRY_POINT.findall(text)):
            for base in (directory, os.path.join(directory, "src")):
                self.module(module, base)


def upwards(directory: str, root: str) -> Iterator[str]:
    """From a directory to the root of the project; nothing if it is outside."""
    at = directory
    while is_below(at, root):
        yield at
        if at == root:
            return
        at = os.path.dirname(at)


def without_version(package: str) -> str:
    return _VERSION.sub("", package)


def program_of_package(package: str) -> str:
    """Its program: `@scope/server-x@1.2` → `server-x`. Empty for a path."""
    name = without_version(package).rpartition("/")[2]
    return "" if name in ("", ".", "..") or package.startswith(("-", ".")) else name


def local_path(word: str) -> str:
    """`file:x`, also as the version of a package: `name@file:x`."""
    word = word[max(0, word.find("@file:") + 1) :]
    return word.removeprefix("file:").removeprefix("//") if word.startswith("file:") else word
