"""The files that a server runs or reads, collected with their digests, and followed to the files that they name.

A change in any of them is a change of the server. This errs on the side of too many: a file that does not exist, and
never will, changes nothing.
"""

import errno
import os
import stat
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex
from wave_agent.mcp.file_digests import FileDigests
from wave_agent.mcp.launchers import SYSTEM
from wave_agent.settings.trust import UNREADABLE
from wave_agent.system.real_files import is_below

if TYPE_CHECKING:
    from wave_agent.mcp.project_code import CodeFile

MOST_FILES = 2000
MOST_BYTES = 64 << 20
_LONGEST_WORD = 1024
_LARGEST_TEXT = 1 << 20
"""Bytes of a file that are searched for the names of other files."""
_MOST_WORDS = 4000
CODE = frozenset({
    *(".py", ".pyc", ".pyw", ".pyx", ".so", ".pth", ".zip", ".pyz", ".whl", ".egg"),
    *(".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".node", ".wasm", ".json", ".jsonc", ".json5"),
    *(".sh", ".bash", ".zsh", ".fish", ".ksh", ".ps1", ".bat", ".cmd", ".exe", ".dll", ".dylib"),
    *(".rb", ".pl", ".pm", ".php", ".phar", ".lua", ".tcl", ".r", ".jl", ".ex", ".exs", ".erl", ".beam"),
    *(".jar", ".class", ".java", ".kt", ".kts", ".scala", ".groovy", ".gradle", ".cs", ".fs", ".csproj", ".fsproj"),
    *(".go", ".mod", ".rs", ".c", ".cc", ".cpp", ".h", ".swift", ".dart", ".hs", ".ml", ".nim", ".zig", ".mk"),
    *(".toml", ".yaml", ".yml", ".ini", ".cfg", ".env"),
})  # fmt: skip
"""Suffixes of files that a program loads from beside its script: code, and configuration that can name code."""
_TEXTS = (".md", ".rst", "license")
"""Files for people, which package files name."""
_NOT_ENTERED = frozenset({".git", ".hg", ".svn"})
_PYTHON = frozenset({".py", ".pyw", ".pyx"})
_IMPORT = lazy_regex(
    rb"(?m)^[ \t]*from[ \t]+(\.*[\w.]*)[ \t]+import[ \t(]+([\w, \t]*)|^[ \t]*import[ \t]+([\w., \t]+)"
    rb"|(?:__import__|import_module)\([ \t]*[\"']([\w.]+)"
)
_NAME = lazy_regex(rb"[\w.]+")
_WORD = lazy_regex(rb"[^\s\"'`;|&<>()\[\]{}=,$*?:!#\\\x00-\x1f]+")
_UPWARDS = (b" ..", b"\t..", b'"..', b"'..")
"""Before the name of a module in a package further up."""
_JAVASCRIPT = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx", ".json", ".node")


class UnboundFilesError(Exception):
    """Why the files cannot be bound: a phrase."""


class BoundFile(Struct, frozen=True):
    digest: str | None
    """None: there is no such file. If the name is a link, with where it leads."""
    is_code: bool
    """It is run, or decides what is run; otherwise it is just named, or may be loaded."""


class BoundFiles:
    """Collects the files of one server. `root` is the real path of the project or its repository, `directory` the one
    in which the server starts."""

    def __init__(self, root: str, directory: str, digests: FileDigests) -> None:
        self._root, self._directory, self._digests = root, directory, digests
        self._found: dict[str, BoundFile] = {}
        self._followed: set[str] = set()
        self._searched: dict[str, None] = {}
        self._bytes = 0
        self._all: list[str] = []

    @property
    def found(self) -> Mapping[str, BoundFile]:
        """By path: relative to the directory if it is in the project, else absolute."""
        return self._found

    @property
    def all_code(self) -> Sequence[str]:
        """What `project_code` has added, as in `found`."""
        return self._all

    def project_code(self) -> str:
        """Binds all code of the project, whether or not anything names it. Returns what could not be: a phrase, empty
        as a rule."""
        # Lazy: as a rule, a server of the user runs no code of the project.
        from wave_agent.mcp.project_code import TooMuchCodeError, code_below

        missing, most, without = "", self._digests.limits.code_files, self._digests.home
        try:
            found = code_below(self._root, most=most, installed=True, without=without)
        except TooMuchCodeError as error:
            missing = str(error)
            try:
                found = code_below(self._root, most=most, installed=False, without=without)
                missing = f"{missing}, so packages installed in it are not watched, unless they are listed"
            except TooMuchCodeError:
                return f"{missing}, so only the files listed are watched, and what they load is not"
        here = f"{self._directory}/"
        for one in found:
            key = one.path.removeprefix(here) if one.path.startswith(here) else os.path.relpath(one.path, here)
            self._all.append(key)
            if key not in self._found:
                self._found[key] = BoundFile(self._digest_below(one), is_code=False)
        return missing

    def _digest_below(self, one: "CodeFile") -> str | None:
        if stat.S_ISREG(one.facts.st_mode):
            return self._digests.of(one.path, one.facts)
        if not stat.S_ISLNK(one.facts.st_mode):
            return "not a regular file"
        try:
            real = os.path.realpath(one.path)
            facts = os.stat(real)
        except OSError:
            return f"missing -> {os.readlink(one.path)}"
        leads = f" -> {os.path.relpath(real, self._directory)}"
        if not stat.S_ISREG(facts.st_mode) or (real.startswith(SYSTEM) and not is_below(real, self._root)):
            return f"not a file of its own{leads}"
        return f"{self._digests.of(real, facts)}{leads}"

    def is_inside(self, path: str) -> bool:
        """Whether this name, or what it leads to, belongs to the project."""
        return is_below(path, self._root) or is_below(self._real(path), self._root)

    def _real(self, path: str) -> str:
        """Like `os.path.realpath`, which looks at every directory for each file in it."""
        above, name = os.path.split(path)
        if not name or name in (".", ".."):
            return self._digests.real_path(path)
        path = os.path.join(self._digests.real_path(above), name)
        return self._digests.real_path(path) if os.path.islink(path) else path

    def search(self, directory: str) -> None:
        """Python modules may be imported from here."""
        self._searched[directory] = None

    def file(self, path: str, *, code: bool, follow: bool = True, anywhere: bool = False) -> None:
        """Binds this file, existing or not. One outside the project is only bound if it is wanted from `anywhere`."""
        path = os.path.normpath(path)
        if not self.is_inside(path) and not anywhere:
            return
        key = os.path.relpath(path, self._directory) if is_below(path, self._root) else path
        before = self._found.get(key)
        if before is None or (code and not before.is_code):
            digest = self._digest(path) if before is None else before.digest
            self._found[key] = BoundFile(digest, code)
            if len(self._found) > MOST_FILES:
                raise UnboundFilesError(f"it has more than {MOST_FILES:,} files")
        if follow and code and path not in self._followed:
            self._followed.add(path)
            self._follow(path)

    def tree(self, directory: str) -> None:
        """Binds every file below, whatever its name."""
        if not self.is_inside(directory):
            return
        self._note(directory, "directory" if os.path.isdir(directory) else None)
        for place, names, files in os.walk(directory):
            names[:] = sorted(name for name in names if name not in _NOT_ENTERED)
            for name in [*files, *(one for one in names if os.path.islink(os.path.join(place, one)))]:
                self.file(os.path.join(place, name), code=True, follow=False)

    def siblings(self, directory: str) -> None:
        """Binds what a program may load from the directory of its script: files with code beside it, and the
        first file of each package. A new one counts as well. Where servers are configured is not part of one of them:
        its entry is."""
        if not is_below(self._digests.real_path(directory), self._root):
            return
        with suppress(OSError):
            for entry in sorted(os.scandir(directory), key=lambda one: one.name):
                if entry.is_dir():
                    self._first_files(entry.path)
                elif entry.name != ".mcp.json" and os.path.splitext(entry.name)[1].lower() in CODE:
                    self.file(entry.path, code=True, follow=False)

    def _first_files(self, package: str) -> None:
        with suppress(OSError):
            for name in sorted(os.listdir(package)):
                if name.startswith("__init__."):
                    self.file(os.path.join(package, name), code=True, follow=False)

    def place(self, name: str, path: str) -> None:
        """Binds where a program is found, without its content: outside the project, updates are expected."""
        self._note(f"program {name}", path)

    def words(self, text: bytes, bases: Iterable[str]) -> None:
        """Binds the existing files of the project that a text names."""
        bases = list(dict.fromkeys(bases))
        found = dict.fromkeys(_WORD.findall(text))
        if len(found) > _MOST_WORDS:
            raise UnboundFilesError("a file that it runs is too long to be searched for the names of others")
        for word in found:
            if len(word) > _LONGEST_WORD or not word.strip(b"./-"):
                continue
            name = os.fsdecode(word)
            for base in bases:
                path = os.path.normpath(os.path.join(base, name))
                is_text = name.lower().endswith(_TEXTS)
                if is_below(path, self._root) and os.path.isfile(path) and not is_text:
                    self.file(path, code=True)

    def _note(self, key: str, digest: str | None) -> None:
        shown = os.path.relpath(key, self._directory) + "/" if key.startswith("/") else key
        self._found[shown] = BoundFile(digest, is_code=False)

    def _digest(self, path: str) -> str | None:
        real = self._real(path)
        leads = "" if real == path else f" -> {os.path.relpath(real, self._directory)}"
        try:
            facts = os.stat(real)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return f"missing{leads}" if leads else None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return None
            raise UnboundFilesError(f"{path} cannot be read: {error.strerror}") from None
        if stat.S_ISDIR(facts.st_mode):
            return f"directory{leads}"
        if not stat.S_ISREG(facts.st_mode):
            raise UnboundFilesError(f"{path} is not a regular file")
        if leads and not is_below(real, self._root) and real.startswith(SYSTEM):
            return f"program{leads}"  # such as the Python of a virtual environment: updates are expected
        self._bytes += facts.st_size
        if self._bytes > MOST_BYTES:
            raise UnboundFilesError(f"its files have more than {MOST_BYTES >> 20} MiB")
        digest = self._digests.of(real, facts)
        if digest.startswith(UNREADABLE):
            raise UnboundFilesError(f"{path} {digest}")
        return f"{digest}{leads}"

    def _follow(self, path: str) -> None:
        """Files that this one loads, as far as they can be seen in it."""
        suffix = os.path.splitext(path)[1].lower()
        text = _read(path)
        if not text or b"\0" in text[:4096]:
            return
        directory = os.path.dirname(self._real(path))
        if suffix in _PYTHON or (not suffix and text.startswith(b"#!") and b"python" in text.partition(b"\n")[0]):
            bases = dict.fromkeys((os.path.dirname(path), directory, *self._searched))
            if not any(map(self._leads_inside, bases)) and not any(one in text for one in _UPWARDS):
                return  # as a rule: a server of the user, which is elsewhere
            modules = tuple(dict.fromkeys(_modules(text)))
            for base in bases:
                for module in modules:
                    self._module(module, base, directory)
        elif suffix in _JAVASCRIPT:
            for word in dict.fromkeys(_WORD.findall(text)):
                if word.startswith((b"./", b"../")) and len(word) < _LONGEST_WORD:
                    self._script(os.path.normpath(os.path.join(directory, os.fsdecode(word))))
            if suffix == ".json":
                self.words(text, (directory,))
        else:
            self.words(text, (directory, self._directory))

    def _leads_inside(self, directory: str) -> bool:
        """Whether a module that is imported from this directory may be one of the project."""
        return is_below(directory, self._root) or is_below(self._root, directory)

    def _module(self, name: str, base: str, package: str) -> None:
        """A Python module, relative ones by their leading dots."""
        plain = name.lstrip(".")
        dots = len(name) - len(plain)
        if dots:
            base = os.path.normpath(os.path.join(package, *[".."] * (dots - 1)))
        path = base
        for part in filter(None, plain.split(".")):
            path = os.path.join(path, part)
            for file in (f"{path}.py", os.path.join(path, "__init__.py"), f"{path}.so"):
                if is_below(file, self._root) and os.path.isfile(file):
                    self.file(file, code=True)

    def _script(self, path: str) -> None:
        """A JavaScript module, whose suffix may be left out, or whose TypeScript source may be meant."""
        stem = os.path.splitext(path)[0]
        for file in (
            path,
            *(f"{path}{suffix}" for suffix in _JAVASCRIPT),
            *(f"{stem}{suffix}" for suffix in (".ts", ".mts", ".cts", ".tsx")),
            *(os.path.join(path, f"index{suffix}") for suffix in _JAVASCRIPT),
            os.path.join(path, "package.json"),
        ):
            if is_below(file, self._root) and os.path.isfile(file):
                self.file(file, code=True)


def _modules(text: bytes) -> Iterator[str]:
    for found in _IMPORT.finditer(text):
        if found[1]:
            base = found[1].decode(errors="replace")
            yield base
            joint = "" if base.endswith(".") else "."
            yield from (f"{base}{joint}{name.decode(errors='replace')}" for name in _NAME.findall(found[2] or b""))
        else:
            for one in (found[3] or found[4] or b"").split(b","):
                yield from (name.decode(errors="replace") for name in _NAME.findall(one)[:1])


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            return file.read(_LARGEST_TEXT)
    except (OSError, ValueError):
        return b""


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO may never have a writer


def spellings(word: str) -> Iterator[str]:
    """The paths that one word may contain: itself, `--option=path`, `-Ipath`, `@path`, `file://…`, `a:b`, `a,b`."""
    waiting, seen = [word], {word}
    while waiting:
        one = waiting.pop()
        yield one
        more = [one.partition("=")[2], *one.split(":"), *one.split(","), *one.split(";")]
        more += [one[2:]] if one.startswith("-") and one[1:2] != "-" else []
        more += [one.lstrip("@<>"), one.strip("\"'")]
        if one[:5].lower() == "file:":
            location = urllib.parse.unquote(one[5:].partition("#")[0].partition("?")[0])
            more.append("/" + location.lstrip("/") if location.startswith("/") else location)
            more.append(location.removeprefix("//").removeprefix("localhost"))
        fresh = [part for part in more if part and part not in seen][: max(0, 64 - len(seen))]
        seen.update(fresh)
        waiting += fresh
