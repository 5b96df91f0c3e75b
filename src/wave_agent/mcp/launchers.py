"""Programs that run other programs: what they load without being told. One row for each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex

_NODE = ("package.json", "tsconfig.json")
_NPX = ("package.json", ".npmrc", "package-lock.json", "npm-shrinkwrap.json", "node_modules/.package-lock.json")
_PNPM = (
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    ".pnpmfile.cjs",
    "pnpmfile.js",
    ".pnp.cjs",
    ".pnp.js",
    ".pnp.loader.mjs",
)
_BUN = ("bun.lock", "bun.lockb", "bunfig.toml", "tsconfig.json", ".env", ".env.local")
_NPM = (*_NPX, *_PNPM, "yarn.lock", ".yarnrc", ".yarnrc.yml", *_BUN, ".node-version", ".nvmrc")
_UV = ("pyproject.toml", "uv.lock", "uv.toml", ".python-version", ".python-versions", ".env", "requirements.txt")
_COMPOSE = tuple(
    f"{stem}{override}{suffix}"
    for stem in ("compose", "docker-compose")
    for override in ("", ".override")
    for suffix in (".yaml", ".yml")
)
_CONTAINER = (*_COMPOSE, ".env", "Dockerfile", ".dockerignore")


class LauncherRow(Struct, frozen=True, kw_only=True):
    """What one program loads besides what its arguments name."""

    files: tuple[str, ...] = ()
    """Looked for in its directory, and in each one above inside the project."""
    runs_package: bool = False
    """Its first plain argument is a package, or a program of one, which may be in `node_modules/.bin` or `.venv/bin`.
    The arguments after it are for that package."""
    from_registry: bool = False
    """That package is usually not in the project: directories given to it are data."""
    runs_script: bool = False
    """Its first plain argument is a script, or a directory with code."""
    imports_here: bool = False
    """It loads modules from its directory, if it is not given a script: `python -m`, `python -c`."""
    builds: bool = False
    """It runs whatever is in its directory."""
    is_of_place: bool = False
    """It runs what `files` in its directory say, whatever its arguments are: `npm start`, `uv run`."""
    fetched: frozenset[str] = frozenset()
    """Subcommands after which it does not, but runs a package: `npm exec`."""
    only_for: tuple[str, ...] = ()
    """If any: `files` are only read by these subcommands."""
    subcommands: tuple[str, ...] = ()
    """Words before that argument: `npm exec`, `uv run`."""
    values: tuple[str, ...] = ()
    """Options that take the next word as their value."""
    code_options: tuple[str, ...] = ()
    """Options whose value is code, or a module that is loaded: `--eval`."""
    code_letters: str = ""
    """The same as letters, which may be put together: `-pe`."""
    search_options: tuple[str, ...] = ()
    """Options whose value lists directories from which code is loaded: `-cp`."""
    runs_arguments: bool = False
    """Any of its arguments may be code, or name what it runs: `awk`, `git -c alias.x=!…`."""
    runs_elsewhere: bool = False
    """What its arguments name is run in a container."""

    @property
    def takes_code(self) -> bool:
        """Whether its arguments may be code, or say where code is loaded from."""
        return bool(self.runs_arguments or self.code_options or self.code_letters or self.search_options)


_PACKAGE_OPTIONS = ("-p", "--package", "-c", "--call", "-w", "--workspace", "--prefix", "--cache", "--registry")


def _fetching(*files: str) -> LauncherRow:
    return LauncherRow(files=files, runs_package=True, from_registry=True, values=_PACKAGE_OPTIONS)


_NPM_RUN = LauncherRow(
    files=_NPM,
    runs_package=True,
    runs_script=True,
    is_of_place=True,
    fetched=frozenset({"exec", "x", "dlx"}),
    subcommands=("exec", "x", "dlx", "run", "run-script", "start", "test", "tool", "node"),
    code_options=("--eval", "--print", "--preload", "--require"),
    code_letters="er",
    values=("-C", "--prefix", "--dir", "--cwd", "--filter", "-F", *_PACKAGE_OPTIONS),
)
_NODE_ROW = LauncherRow(
    files=_NODE,
    runs_script=True,
    values=("-r", "--require", "--import", "--loader", "--experimental-loader", "-e", "--eval", "-p", "--env-file",
            "-C", "--conditions", "--input-type", "--title", "--watch-path"),
    code_options=("--eval", "--print", "--require", "--import", "--loader", "--experimental-loader"),
    code_letters="epr",
)  # fmt: skip
_PYTHON = LauncherRow(
    files=("pyvenv.cfg",), runs_script=True, imports_here=True, values=("-W", "-X", "--check-hash-based-pycs")
)
_UV_OPTIONS = (
    *("--from", "--with", "--with-editable", "--with-requirements", "-p", "--python", "--directory", "--project"),
    *("--env-file", "--extra", "--group", "--index", "--index-url", "--default-index", "--extra-index-url", "-i"),
    *("--find-links", "-f", "--config-file", "--cache-dir", "-m", "--module", "-s", "--script", "-c", "--constraints"),
    *("--overrides", "--refresh-package", "--link-mode", "--color", "-w"),
)
_UVX = LauncherRow(files=_UV, runs_package=True, from_registry=True, values=_UV_OPTIONS)
_UV_RUN = LauncherRow(
    files=_UV, runs_package=True, runs_script=True, imports_here=True, subcommands=("run", "tool", "x"),
    values=_UV_OPTIONS, is_of_place=True, fetched=frozenset({"tool", "x"}),
)  # fmt: skip
_PYTHON_PROJECT = LauncherRow(
    files=(*_UV, "poetry.lock", "poetry.toml", "pdm.lock", "hatch.toml", "Pipfile", "Pipfile.lock", "pixi.toml",
           "pixi.lock", "tox.ini", "noxfile.py"),
    runs_package=True, runs_script=True, is_of_place=True, subcommands=("run", "exec", "shell"),
)  # fmt: skip

LAUNCHERS: Mapping[str, LauncherRow] = {
    "npx": _fetching(*_NPX),
    "pnpx": _fetching(*_NPX, *_PNPM),
    "bunx": _fetching(*_NPX, *_BUN),
    **dict.fromkeys(("npm", "pnpm", "yarn", "yarnpkg", "bun", "corepack"), _NPM_RUN),
    **dict.fromkeys(("node", "nodejs", "tsx", "ts-node", "nodemon", "electron"), _NODE_ROW),
    **dict.fromkeys(("python", "pypy"), _PYTHON),
    "uvx": _UVX,
    "pipx": LauncherRow(runs_package=True, from_registry=True, subcommands=("run",), values=("--spec", "--python")),
    "uv": _UV_RUN,
    **dict.fromkeys(("poetry", "pdm", "hatch", "pipenv", "rye", "pixi", "tox", "nox"), _PYTHON_PROJECT),
    "deno": LauncherRow(
        files=("deno.json", "deno.jsonc", "deno.lock", "import_map.json", "package.json", ".env"),
        runs_script=True,
        subcommands=("run", "task", "serve"),
        values=("-c", "--config", "--import-map", "--lock", "--env-file"),
        code_options=("eval", "repl", "--preload", "--import"),
    ),
    **dict.fromkeys(("docker-compose", "podman-compose"), LauncherRow(files=_CONTAINER, is_of_place=True)),
    **dict.fromkeys(("docker", "podman", "nerdctl"),
                    LauncherRow(files=_CONTAINER, only_for=("compose", "build", "buildx", "bake", "stack"),
                                runs_elsewhere=True)),
    **dict.fromkeys(("make", "gmake"), LauncherRow(files=("GNUmakefile", "makefile", "Makefile"))),
    "just": LauncherRow(files=("justfile", ".justfile", "Justfile", ".env")),
    "task": LauncherRow(files=("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml", ".env")),
    "mise": LauncherRow(files=("mise.toml", ".mise.toml", "mise.lock", ".tool-versions", ".mise/config.toml"),
                        runs_package=True, subcommands=("exec", "x", "run")),
    "asdf": LauncherRow(files=(".tool-versions",)),
    "direnv": LauncherRow(files=(".envrc", ".env")),
    **dict.fromkeys(("nix", "nix-shell", "nix-build", "devenv"),
                    LauncherRow(files=("flake.nix", "flake.lock", "shell.nix", "default.nix", "devenv.nix"))),
    **dict.fromkeys(("ruby", "rake", "bundle", "bundler"),
                    LauncherRow(files=("Gemfile", "Gemfile.lock", ".bundle/config", "Rakefile", ".ruby-version"),
                                runs_script=True, subcommands=("exec",), values=("-r", "-I", "-C"),
                                code_letters="erI", code_options=("--require",))),
    **dict.fromkeys(("php", "composer"), LauncherRow(files=("composer.json", "composer.lock", "php.ini"),
                                                     runs_script=True, values=("-c", "-d"),
                                                     code_letters="rRBEFdz", code_options=("--run",))),
    **dict.fromkeys(("perl", "lua", "luajit", "Rscript", "julia", "elixir", "tclsh", "osascript", "pwsh"),
                    LauncherRow(files=(".Rprofile", ".Renviron", "Project.toml", "Manifest.toml", "mix.exs"),
                                runs_script=True, values=("-I", "-M", "-l", "--project", "-File"),
                                code_letters="eEMmIlcC", code_options=("--eval", "--print", "--load", "--require"))),
    "go": LauncherRow(files=("go.mod", "go.sum", "go.work", "go.work.sum"), builds=True),
    "cargo": LauncherRow(files=("Cargo.toml", "Cargo.lock", "build.rs", ".cargo/config.toml", ".cargo/config",
                                "rust-toolchain.toml", "rust-toolchain"), builds=True),
    **dict.fromkeys(("dotnet", "mvn", "mvnw", "gradle", "gradlew", "swift", "mix", "stack", "cabal", "sbt", "zig",
                     "dart", "flutter", "bazel", "lein", "clojure"), LauncherRow(builds=True)),
    "java": LauncherRow(values=("-cp", "-classpath", "--class-path", "-p", "--module-path", "-m", "--module"),
                        search_options=("-cp", "-classpath", "--class-path", "-p", "--module-path"), runs_script=True),
    **dict.fromkeys(("nx", "turbo", "lerna", "rush", "wireit"),
                    LauncherRow(files=("nx.json", "turbo.json", "lerna.json", "project.json", "package.json"),
                                is_of_place=True)),
    **dict.fromkeys(("invoke", "inv", "doit", "scons", "ninja", "mage", "devbox", "moon", "devcontainer", "vagrant"),
                    LauncherRow(files=("tasks.py", "invoke.yaml", "dodo.py", "SConstruct", "build.ninja", "magefile.go",
                                       "magefiles", "devbox.json", "moon.yml", ".moon/workspace.yml", "Vagrantfile",
                                       ".devcontainer/devcontainer.json", ".devcontainer.json"), is_of_place=True)),
    **{name: LauncherRow(files=files, runs_arguments=True, runs_script=True) for name, files in (
        ("fastmcp", ("fastmcp.json",)), ("flask", (".flaskenv", "app.py", "wsgi.py")), ("django-admin", ("manage.py",)),
        ("pytest", ("conftest.py",)), ("iex", ("mix.exs",)), ("R", (".Rprofile",)),
    )},
    **dict.fromkeys(("git", "awk", "gawk", "mawk", "nawk", "sed", "sqlite3", "expect", "socat",
                     "gdb", "vim", "vi", "ex", "emacs", "ssh", "ld-linux-x86-64.so", "ld-linux-aarch64.so", "ld.so",
                     "psql", "m4", "guile", "sbcl", "racket", "ghci", "runghc", "scala", "kotlin", "groovy", "jshell",
                     "mcp", "coverage", "ipython", "jupyter", "xonsh", "uvicorn", "gunicorn", "hypercorn", "erl",
                     "escript", "nim", "crystal", "v", "mono"),
                    LauncherRow(runs_arguments=True, runs_script=True)),
    **dict.fromkeys(("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox"),
                    LauncherRow(runs_script=True, values=("-c", "-o", "-O", "--rcfile", "--init-file"))),
}  # fmt: skip

WRAPPERS = frozenset({
    *("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox", "env", "nice", "ionice", "nohup", "timeout"),
    *("sudo", "doas", "xargs", "stdbuf", "setsid", "time", "exec", "command", "script", "flock", "chroot"),
    *("unshare", "nsenter", "bwrap", "firejail", "taskset", "chrt", "prlimit", "systemd-run", "su"),
    *("runuser", "setpriv", "parallel", "watch", "find", "eval", "dumb-init", "tini", "direnv", "op"),
    *("doppler", "infisical", "dotenv", "dotenvx", "cross-env"),
})  # fmt: skip
"""Programs whose arguments may be another command: their line is read as a shell would."""
WITHIN = frozenset({"-C", "--cwd", "--dir", "--directory", "--prefix", "--project", "--chdir", "-w", "--workdir", "cd"})
"""Options that are followed by the directory in which the rest happens."""
LOADER_VARIABLES = frozenset({
    *("PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONWARNINGS", "PYTHONBREAKPOINT"),
    *("PYTHONPYCACHEPREFIX", "VIRTUAL_ENV", "UV_PROJECT", "UV_CONFIG_FILE", "UV_ENV_FILE", "UV_PROJECT_ENVIRONMENT"),
    *("NODE_PATH", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS", "BUN_OPTIONS", "DENO_DIR", "TS_NODE_PROJECT"),
    *("BASH_ENV", "ENV", "ZDOTDIR", "SHELL", "IFS", "PROMPT_COMMAND", "PERL5LIB", "PERL5OPT", "PERLLIB", "PERL5DB"),
    *("RUBYLIB", "RUBYOPT", "GEM_PATH", "GEM_HOME", "BUNDLE_GEMFILE", "LUA_PATH", "LUA_CPATH", "LUA_INIT"),
    *("CLASSPATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_HOME", "GOFLAGS", "GOPATH"),
    *("PHPRC", "PHP_INI_SCAN_DIR", "R_PROFILE_USER", "R_ENVIRON_USER", "R_LIBS", "JULIA_PROJECT", "JULIA_LOAD_PATH"),
    *("DOTNET_STARTUP_HOOKS", "CORECLR_PROFILER_PATH", "MIX_EXS", "COMPOSE_FILE", "COMPOSE_ENV_FILES", "MAKEFILES"),
    *("PYENV_ROOT", "RBENV_ROOT", "NODENV_ROOT", "NVM_DIR", "FNM_DIR", "ASDF_DIR", "ASDF_DATA_DIR", "VOLTA_HOME"),
    *("PNPM_HOME", "GOROOT", "GOBIN", "RUSTUP_HOME", "CONDA_PREFIX", "BUN_INSTALL", "DENO_INSTALL_ROOT"),
    *("OPENSSL_CONF", "GCONV_PATH", "TCLLIBPATH", "EDITOR", "VISUAL", "PAGER", "BROWSER", "HOME", "XDG_CONFIG_HOME"),
    *("npm_config_userconfig", "npm_config_globalconfig", "npm_config_prefix", "npm_config_script_shell"),
})  # fmt: skip
_LOADER_PREFIXES = (
    "LD_",
    "DYLD_",
    "GIT_",
    "npm_config_",
    "NPM_CONFIG_",
    "YARN_",
    "PIP_",
    "UV_",
    "CARGO_",
    "BASH_FUNC_",
)
_NAMES_CODE = lazy_regex(r"(?i)plugin|extension|addon|script|module|hook|middleware")
"""In the name of an option or variable: its value is code, or a directory with code."""


def loads_code(variable: str) -> bool:
    """Whether this variable makes programs load code."""
    return variable in LOADER_VARIABLES or variable.startswith(_LOADER_PREFIXES)


def names_code(name: str) -> bool:
    """Whether the value of an option or a variable of this name is code, or a directory with code."""
    return _NAMES_CODE.search(name) is not None


RUNTIMES = frozenset({
    *("sh", "bash", "env", "node", "npm", "npx", "python", "python3", "uv", "git", "deno", "bun", "docker", "make"),
    *("ruby", "perl", "php", "java", "go", "cargo"),
})  # fmt: skip
"""Programs that launchers start by name."""
SYSTEM = ("/usr/", "/bin/", "/lib", "/sbin/", "/nix/", "/snap/", "/opt/")
"""Where programs are installed for everyone."""
SCRIPTS = frozenset({
    *(".py", ".pyc", ".pyw", ".pyz", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".wasm", ".jar"),
    *(".sh", ".bash", ".zsh", ".fish", ".ksh", ".ps1", ".rb", ".pl", ".php", ".phar", ".lua", ".tcl", ".r", ".jl"),
    *(".exs", ".kts", ".groovy", ".go", ".mk"),
})  # fmt: skip
"""Suffixes of files that are run if any program is given one."""


def launcher_of(program: str) -> LauncherRow | None:
    """The row of a program, by its path: `/usr/bin/python3.12` is python."""
    name = program.rpartition("/")[2].removesuffix(".exe").removesuffix(".cmd")
    return LAUNCHERS.get(name) or LAUNCHERS.get(name.rstrip("0123456789.-"))


def starts_command(word: str) -> bool:
    """Whether this argument is itself a program that runs what follows it: `npx tsx src`, `strace python -m server`.
    Names that are ordinary words as well are not among them."""
    row = None if "/" in word and not word.startswith("/") else launcher_of(word)
    return row is not None and not row.runs_arguments and (row.runs_script or row.runs_package)


class LauncherArguments(Struct, frozen=True):
    """The words after a launcher, sorted."""

    options: tuple[str, ...]
    """Options with their values, before the main argument."""
    main: str
    """The script or package; empty if there is none."""
    rest: tuple[str, ...]
    """What is handed to it."""
    subcommand: str = ""
    """The first one."""


def sort_arguments(row: LauncherRow, words: Sequence[str]) -> LauncherArguments:
    """An unknown option may take the next word as its value: then the value is taken for the main argument, and the
    words after it for arguments. So callers look at all of them."""
    options: list[str] = []
    subcommand = ""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
            break
        if word in row.subcommands:
            subcommand = subcommand or word
            options.append(word)
        elif word.startswith("-") and word != "-":
            options.append(word)
            if word in row.values and at + 1 < len(words):
                at += 1
                options.append(words[at])
        else:
            break
        at += 1
    main = words[at] if at < len(words) else ""
    return LauncherArguments(tuple(options), main, tuple(words[at + 1 :]), subcommand)


def code_values(words: Sequence[str]) -> Iterator[str]:
    """The values of options that name code: `--plugin-dir x`, `--plugins=x`."""
    for word, following in zip(words, (*words[1:], ""), strict=False):
        name, equals, value = word.partition("=")
        if name.startswith("-") and names_code(name):
            yield value if equals else following


def option_values(words: Sequence[str], options: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The values of these options: `--prefix x`, `--prefix=x`."""
    known = frozenset(options)
    for at, word in enumerate(words):
        if word in known and at + 1 < len(words):
            yield word, words[at + 1]
        name, equals, value = word.partition("=")
        if equals and name in known:
            yield name, value
