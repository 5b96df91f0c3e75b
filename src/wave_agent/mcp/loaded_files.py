"""The files that a server would load, determined without running it.

This covers what launchers, interpreters and shells load by themselves, and errs on the side of too much. A server that
runs anything of the project is bound to all code of it, since what a program loads cannot be seen from outside.
"""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from wave_agent.lazy_regex import lazy_regex
from wave_agent.mcp.bound_files import CODE, BoundFiles, UnboundFilesError, spellings
from wave_agent.mcp.file_digests import FileDigests
from wave_agent.mcp.launchers import (
    RUNTIMES,
    SCRIPTS,
    SYSTEM,
    WITHIN,
    WRAPPERS,
    LauncherArguments,
    LauncherRow,
    code_values,
    launcher_of,
    loads_code,
    names_code,
    option_values,
    sort_arguments,
    starts_command,
)
from wave_agent.mcp.package_files import PackageFiles, local_path, program_of_package, upwards
from wave_agent.mcp.values import ServerEntry, ServerTransport
from wave_agent.system.project import Project
from wave_agent.system.real_files import is_below
from wave_agent.system.which import which

_LOOKS_LIKE_A_FILE = lazy_regex(r"[^\s]*/[^\s]*|[^\s/]*[^\s/.-][^\s/]*\.[A-Za-z]\w{0,9}")
_LONGEST_LINE = 16 << 10
_COMPUTED = "*?[$`"
"""In a shell's line: names that are only known when it runs."""
_FETCHING = lazy_regex(
    r"\s*(?:[#;]|$|//|(?:@[\w.-]+:)?registry\s*=|(?:engine-strict|save-exact|save-prefix|package-lock|fund|audit|loglevel"
    r"|legacy-peer-deps|strict-peer-dependencies|auto-install-peers|strict-ssl|always-auth|update-notifier|progress)\s*=)"
)
"""Lines of `.npmrc` that make npm load no code of the project."""
_OBJECT = lazy_regex(r"([\w.]+):[\w.]+")
"""`package.module:app`, which programs such as uvicorn import."""
_CONFIGURATION = frozenset({".json", ".jsonc", ".json5", ".yaml", ".yml", ".toml"})
_STARTS = lazy_regex(r"""(?i)\b(?:mcpServers|command|cmd|exec|entrypoint|script)["']?\s*[:=]""")
"""In configuration: a program that is started, as proxies of servers have it."""
_MOST_READ = 1 << 20
"""Characters of a file that are searched."""
_PASSIVE = frozenset({
    *("package.json", "package-lock.json", "npm-shrinkwrap.json", ".package-lock.json", "pnpm-lock.yaml", "yarn.lock"),
    *("bun.lock", "bun.lockb", "tsconfig.json", ".nvmrc", ".node-version", "pyproject.toml", "uv.lock"),
    *(".python-version", ".python-versions", "requirements.txt", "poetry.lock", "pdm.lock", "Pipfile.lock"),
    *("deno.lock", "Cargo.lock", "go.sum", "composer.lock", "Gemfile.lock", "Dockerfile", ".dockerignore", ".env"),
})  # fmt: skip
"""Files in a project that do not decide what a package from a registry does."""


class LoadedFiles:
    """Looks at everything that one server would load."""

    def __init__(
        self,
        entry: ServerEntry,
        project: Project,
        environment: Mapping[str, str],
        digests: FileDigests,
        *,
        is_of_project: bool,
    ) -> None:
        self._entry, self._environment, self._is_of_project = entry, environment, is_of_project
        self._digests = digests
        self._directory = project.directory
        self._root = digests.real_path(project.root)
        self.files = BoundFiles(self._root, self._directory, digests)
        self._packages = PackageFiles(self.files, self._root)
        self.unwatched = ""
        self._reached: dict[str, None] = {}
        """What makes it load code of the project although no file of it is run directly."""
        self._path = [
            os.path.normpath(os.path.join(self._directory, one or "."))
            for one in environment.get("PATH", os.defpath).split(os.pathsep)
        ]
        looked_at = dict.fromkeys(self._path) if is_of_project or "PATH" in entry.env else ()
        self._own_path = [one for one in looked_at if self.files.is_inside(one)]
        self._lines = 0

    def everything(self) -> str:
        """Collects it. Returns why it cannot be bound, if so."""
        entry = self._entry
        try:
            self._variables()
            if entry.transport is ServerTransport.STDIO:
                self._command([entry.command, *entry.args], [self._directory])
                self._shown_commands([entry.command, *entry.args])
            elif entry.headers_helper:
                self._line(entry.headers_helper)
            self._runtimes()
            if self.loads_project():
                self.unwatched = self.files.project_code()
        except UnboundFilesError as error:
            return str(error)
        except (OSError, ValueError, RecursionError) as error:
            return f"its files cannot be looked at: {error}"
        return ""

    def runs(self) -> tuple[str, ...]:
        """The existing files of the project that it runs, or that decide what it runs."""
        found = self.files.found
        return tuple(
            name
            for name, one in sorted(found.items())
            if one.digest is not None
            and (name in self._reached or (one.is_code and os.path.basename(name) not in _PASSIVE))
            and not os.path.isabs(name)
        )

    def loads_project(self) -> bool:
        """Whether it runs any code of the project, or may be led to some."""
        return (bool(self._reached) and self._is_of_project) or not all(map(self._leads_nowhere, self.runs()))

    def _leads_nowhere(self, name: str) -> bool:
        """Settings of npm that only say where packages come from. They are bound, but no file that they name."""
        if os.path.basename(name) != ".npmrc":
            return False
        path = os.path.join(self._directory, name)
        return os.access(path, os.R_OK) and all(map(_FETCHING.match, _text_of(path).splitlines()))

    def _reach(self, path: str) -> None:
        """This file or directory lets it load code of the project."""
        self._reached[os.path.relpath(path, self._directory)] = None

    # What runs ----------------------------------------------------------------------------------------------------

    def _shown_commands(self, words: Sequence[str]) -> None:
        """Commands inside the arguments: `env X=1 node x.js`, `sh -c '…'`, `npx -c '…'`."""
        if os.path.basename(words[0]) in WRAPPERS:
            self._line(shlex.join(words))
        for word in words[1:]:
            if any(blank in word for blank in " \t\n;|&"):
                self._line(word)
                if word.startswith("-") and (value := word.partition("=")[2]):
                    self._line(value)

    def _line(self, line: str) -> None:
        """A line that a shell reads, with every command in it, nested ones as well."""
        from wave_agent.shell.reader import read_placed  # lazy: needs a grammar, and few servers are started this way

        self._lines += 1
        if len(line) > _LONGEST_LINE or self._lines > 32:
            raise UnboundFilesError("its command is too long to be read")
        if self._is_of_project and set(line) & set(_COMPUTED):
            self._reach(self._directory)
        parsed = read_placed(line, self._environment, self._directory)
        for placed in parsed.placed:
            words = [word.text for word in placed.words]
            if words and words[0]:
                self._command(words, [one for one in placed.directories if not set(one) & set("*?[")])
        for word in (*parsed.redirected_from, *parsed.texts):
            self._named(word, [self._directory], code=True, is_data=False)
        for text in parsed.texts:
            self.files.words(os.fsencode(text), (self._directory,))
        self.files.words(os.fsencode(line), (self._directory,))

    def _command(self, words: Sequence[str], directories: Sequence[str]) -> None:
        program, arguments = words[0], list(words[1:])
        bases = [*directories] or [self._directory]
        within = [value for _, value in option_values(arguments, WITHIN)]
        bases += [os.path.normpath(os.path.join(base, one)) for base in bases for one in within]
        bases = [base for base in dict.fromkeys(bases) if base == self._directory or os.path.isdir(base)]
        is_own = self._program(program, bases)
        for word in arguments:
            if ":" in word and (named := _OBJECT.fullmatch(word)):
                for base in bases:
                    self._packages.module(named[1], base)
        for word in code_values(arguments):
            self._named(word, bases, code=True, is_data=False)
        row = launcher_of(program)
        inner = next((at for at, word in enumerate(arguments[:-1]) if starts_command(word)), None)
        if inner is not None and not (row is not None and row.runs_elsewhere):
            self._command(arguments[inner:], bases)
        if row is None:
            for word in arguments:
                self._named(word, bases, code=is_own, is_data=not is_own)
            return
        sorted_ones = sort_arguments(row, arguments)
        if not row.only_for or sorted_ones.main in row.only_for:
            self._launcher(row, sorted_ones, bases)
        if row.is_of_place and sorted_ones.subcommand not in row.fetched:
            self._place(row, [one for one in bases if one not in directories] if within else bases)
        for word in sorted_ones.options:
            self._named(word, bases, code=True, is_data=word in within)
        self._main(row, sorted_ones, bases)
        self._inline(row, arguments, bases)
        for word in sorted_ones.rest:
            self._named(word, bases, code=not row.from_registry, is_data=row.from_registry)

    def _program(self, program: str, bases: Sequence[str]) -> bool:
        """Whether the program belongs to the project."""
        if "/" in program:
            own = False
            for base in bases:
                path = os.path.normpath(os.path.join(base, os.path.expanduser(program)))
                if self.files.is_inside(path):
                    own = True
                    self.files.file(path, code=True)
                    self.files.siblings(os.path.dirname(path))
                else:
                    self.files.place(program, self._digests.real_path(path))
            return own
        for directory in self._own_path:
            self.files.file(os.path.join(directory, program), code=True)
        found = which(program, os.pathsep.join(self._path))
        if found is None:
            self.files.place(program, "not found")
            return False
        if not self.files.is_inside(found):
            self.files.place(program, f"{found} -> {self._digests.real_path(found)}")
        return self.files.is_inside(found)

    def _runtimes(self) -> None:
        """What programs start by name, if the project is on PATH."""
        if "PATH" in self._entry.env:
            for directory in self._own_path:
                self._reach(directory)
        for directory in self._own_path:
            for name in sorted(RUNTIMES):
                self.files.file(os.path.join(directory, name), code=True, follow=False)

    def _launcher(self, row: LauncherRow, arguments: LauncherArguments, bases: Sequence[str]) -> None:
        names_main = not (row.from_registry or self._is_elsewhere(row, arguments))
        for base in bases:
            for directory in upwards(base, self._root):
                for file in row.files:
                    path = os.path.join(directory, file)
                    passive = os.path.basename(file) in _PASSIVE and not (names_main and file == "package.json")
                    self.files.file(path, code=True, follow=not passive or self._mentions(path, arguments.main))
            if row.builds:
                self.files.tree(base)

    def _is_elsewhere(self, row: LauncherRow, arguments: LauncherArguments) -> bool:
        """A script that the user has outside the project is not the one that `package.json` names here."""
        is_script = row.runs_script and not row.is_of_place and os.path.isabs(arguments.main)
        return is_script and not self._is_of_project and not self.files.is_inside(arguments.main)

    def _place(self, row: LauncherRow, bases: Sequence[str]) -> None:
        """It runs what the files of its directory say, or builds what is there."""
        for base in bases:
            for directory in upwards(base, self._root):
                for file in row.files:
                    if os.path.isfile(path := os.path.join(directory, file)):
                        self._reach(path)

    def _mentions(self, path: str, package: str) -> bool:
        """Whether a project's file about packages says something about this one."""
        if os.path.basename(path) != "package.json" or not (name := program_of_package(package)):
            return False
        text = _text_of(path)
        return f'"{name}"' in text or f'/{name}"' in text

    def _main(self, row: LauncherRow, arguments: LauncherArguments, bases: Sequence[str]) -> None:
        main = arguments.main
        if row.imports_here:
            self._python(arguments, bases)
            if _is_isolated(arguments) and not row.runs_package:
                return  # the main argument is a module, and not one of the project
        if row.runs_package:
            packages = [main, *(value for _, value in option_values(arguments.options, frozenset(row.values)))]
            for package in filter(None, packages):
                self._packages.package(package, bases)
        if main:
            self._script(main, bases, anywhere=row.runs_script)

    def _inline(self, row: LauncherRow, words: Sequence[str], bases: Sequence[str]) -> None:
        """Code in the arguments may load anything; what it names is looked for."""
        if not row.takes_code:
            return
        # Lazy: most servers are started by launchers whose arguments contain no code.
        from wave_agent.mcp.inline_code import inline_code, module_names, searched_directories

        code = inline_code(row, words)
        searched = [*searched_directories(row, words)]
        if self._is_of_project and (code is not None or searched):
            self._reach(self._directory)
        for one in code or ():
            self.files.words(os.fsencode(one), bases)
            for module in module_names(one):
                self._packages.package(module, bases)
                self._script(module, bases, anywhere=False)
        for base in bases:
            for one in searched:
                self.files.siblings(os.path.normpath(os.path.join(base, one)))

    def _script(self, main: str, bases: Sequence[str], *, anywhere: bool) -> None:
        """A script, or a directory with code."""
        if any(blank in main for blank in "\n\t ;") and not os.path.exists(os.path.join(bases[0], main)):
            return  # code, as after `-c`
        for base in bases:
            path = os.path.normpath(os.path.join(base, os.path.expanduser(local_path(main))))
            if os.path.isdir(path):
                self.files.tree(path)
                continue
            is_file = os.path.isfile(path)
            if not is_file and not self.files.is_inside(path):
                continue
            self.files.search(os.path.dirname(path))
            self.files.file(path, code=True, anywhere=anywhere and is_file and not path.startswith(SYSTEM))
            names = [path]
            if not os.path.splitext(path)[1]:
                names += [f"{path}{suffix}" for suffix in (".js", ".mjs", ".cjs", ".json", ".node", ".ts", ".py")]
            for name in names[1:]:
                self.files.file(name, code=True)
            if any(map(os.path.isfile, names)):
                self.files.siblings(os.path.dirname(path))

    def _python(self, arguments: LauncherArguments, bases: Sequence[str]) -> None:
        """Modules from the directory in which Python starts, and from PYTHONPATH."""
        words = [*arguments.options, arguments.main, *arguments.rest[:1]]
        modules = [value for _, value in option_values(words, frozenset({"-m", "--module"}))]
        modules += [word[2:] for word in words if word.startswith("-m") and len(word) > 2]
        inline = [
            one for one in arguments.options if one.startswith("-") and one[1:2] != "-" and one[-1:] in ("c", "m")
        ]
        texts = [value for _, value in option_values(words, frozenset(inline))]
        modules += texts
        if not inline and not modules:
            return
        # With -I and -P, Python does not look for modules where it starts.
        searched = [*(() if _is_isolated(arguments) else bases), *self._searched_by_python()]
        if self._is_of_project and searched:
            self._reach(self._directory)
        for base in searched:
            self.files.search(base)
            self.files.siblings(base)
        for base in searched:
            for module in modules:
                self._packages.module(module, base)
        for text in texts:
            self.files.words(os.fsencode(text), bases)

    def _searched_by_python(self) -> Iterator[str]:
        for one in self._environment.get("PYTHONPATH", "").split(os.pathsep):
            path = os.path.normpath(os.path.join(self._directory, one or "."))
            if one and self.files.is_inside(path):
                yield path

    # What is named ------------------------------------------------------------------------------------------------

    def _named(self, word: str, bases: Sequence[str], *, code: bool, is_data: bool) -> None:
        """A word among the arguments. `is_data`: a directory is something to work on."""
        if "{" in word and self._is_of_project and _STARTS.search(word):
            self._reach(self._directory)
        for one in spellings(word):
            if "\0" in one or len(one) > 1024:
                continue
            for base in bases:
                path = os.path.normpath(os.path.join(base, os.path.expanduser(one)))
                if not self.files.is_inside(path):
                    continue
                if os.path.isdir(path):
                    if not is_data and not is_below(self._directory, os.path.realpath(path)):
                        self.files.tree(path)
                elif os.path.lexists(path) or (("/" in one or "." in one) and _LOOKS_LIKE_A_FILE.fullmatch(one)):
                    suffix = os.path.splitext(path)[1].lower()
                    self.files.file(path, code=suffix in SCRIPTS or (code and suffix in CODE))
                    if suffix in _CONFIGURATION and _may_start(_text_of(path)):
                        self._reach(path)

    def _variables(self) -> None:
        """Files that the entry's own variables name, and those that programs load because of them."""
        for name, value in self._entry.env.items():
            loads = loads_code(name) or names_code(name)
            line = value.split()
            if len(line) > 1 and (starts_command(line[0]) or "/" in line[0]):
                self._command(line, [self._directory])
            words = dict.fromkeys((value, *(value.split() if loads else ()), *value.split(os.pathsep)))
            for word in words:
                if name == "PATH":
                    continue  # see `_runtimes`
                self._named(word, [self._directory], code=loads, is_data=not loads)
                path = os.path.normpath(os.path.join(self._directory, os.path.expanduser(word or ".")))
                if loads and word and os.path.isdir(path) and self.files.is_inside(path):
                    self._reach(path)
                    self.files.search(path)
                    self.files.siblings(path)
        for base in self._searched_by_python():
            self.files.search(base)
            self.files.siblings(base)


def _text_of(path: str) -> str:
    """Empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_READ)
    except OSError:
        return ""


def _may_start(configuration: str) -> bool:
    """Whether it has a program that is started; of more than is read, nobody knows."""
    return len(configuration) == _MOST_READ or _STARTS.search(configuration) is not None


def _is_isolated(arguments: LauncherArguments) -> bool:
    """`python -I -m module`, or with -P: a module that is not looked for where Python starts."""
    options = arguments.options
    if not options or not options[-1].endswith("m") or _letters(options[-1]) != options[-1][1:]:
        return False
    return any(not {"I", "P"}.isdisjoint(_letters(one)) for one in options)


def _letters(option: str) -> str:
    """Those that `-abc` begins with."""
    found = takewhile(lambda one: one.isascii() and one.isalpha(), option[1:])
    return "".join(found) if option.startswith("-") else ""
