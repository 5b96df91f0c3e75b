"""Installs the hosts from npm and PyPI, into `.cache/hosts` of the checkout; see `hosts.toml`."""

import os
import platform
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

TABLE = Path(__file__).with_name("hosts.toml")
CACHE = Path(__file__).parents[2] / ".cache" / "hosts"
NODE = "node"
"""The row that is not a host: it runs some of them."""
OLDEST_PYTHON = (3, 12)
PATIENCE = 900.0


class Package(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `hosts.toml`."""

    registry: str
    packages: list[str]
    program: list[str]

    @property
    def version(self) -> str:
        return self.packages[0].rpartition("@" if self.registry == "npm" else "=")[2]


class InstalledHost(msgspec.Struct, frozen=True):
    """A host, or why there is none."""

    name: str
    version: str
    program: tuple[str, ...] = ()
    """The first words of its command line; empty if it is not installed."""
    trouble: str = ""


class NotInstalledError(Exception):
    """The message says why."""


def packages() -> Mapping[str, Package]:
    return msgspec.convert(tomllib.loads(TABLE.read_text()), dict[str, Package])


def install(name: str, cache: Path = CACHE) -> InstalledHost:
    """What is already there is used as it is."""
    package = packages()[name]
    try:
        return InstalledHost(name, package.version, tuple(_program(name, package, cache)))
    except (NotInstalledError, OSError, subprocess.SubprocessError) as error:
        return InstalledHost(name, package.version, trouble=str(error))


def _program(name: str, package: Package, cache: Path) -> Iterator[str]:
    place = cache / f"{name}-{package.version}"
    if not place.is_dir():
        new = place.with_name(f"{place.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        (_from_npm if package.registry == "npm" else _from_pypi)(package, new if package.registry == "npm" else place)
        if package.registry == "npm":
            new.rename(place)  # whole, or not there
        else:
            new.rmdir()
    for word in package.program:
        if word == "{node}":
            yield from _program(NODE, packages()[NODE], cache)
            continue
        file = place / word.format(platform=platform_name())
        if not file.exists():
            raise NotInstalledError(f"{' '.join(package.packages)} has no {file.relative_to(place)}")
        yield str(file)


def platform_name() -> str:
    """As npm calls it, such as linux-x64."""
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine())
    return f"{platform.system().lower()}-{machine}"


def _from_npm(package: Package, place: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalledError("npm is needed to install it")
    names = [name.format(platform=platform_name()) for name in package.packages]
    options = ("--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    _run([npm, "install", "--prefix", str(place), "--cache", str(place / "cache"), *options, *names])
    shutil.rmtree(place / "cache", ignore_errors=True)


def _from_pypi(package: Package, place: Path) -> None:
    """An environment cannot be moved: one that was not finished is removed."""
    try:
        _run([_python(), "-m", "venv", str(place)])
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "--no-deps", *package.packages])
        _add_requirements(pip, package.packages[0].partition("=")[0], place)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _add_requirements(pip: list[str], name: str, place: Path) -> None:
    """Some hosts pin everything below them. A pinned version that an index does not have becomes any version: it is
    the host that is tested, not its libraries."""
    listing = f"import importlib.metadata as m; print(*(m.requires({name!r}) or ()), sep='\\n')"
    wanted = _run([str(place / "bin" / "python"), "-c", listing]).splitlines()
    wanted = [line for line in wanted if "extra ==" not in line]
    file = place / "requirements.txt"
    for _ in wanted:
        file.write_text("\n".join(wanted) + "\n")
        try:
            _run([*pip, "--requirement", str(file)])
        except NotInstalledError as error:
            missing = _MISSING.search(str(error))
            if missing is None:
                raise
            wanted = [line.replace(missing[0], missing[1]) for line in wanted]
        else:
            return


_MISSING = re.compile(r"([\w.-]+)==[\w.]+$")


def _python() -> str:
    """The newest Python here; it must be new enough for all of them."""
    names = [f"python3.{minor}" for minor in range(14, OLDEST_PYTHON[1] - 1, -1)]
    found = [shutil.which(name) for name in (*names, "python3")]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    newest = sorted(versions.glob("3.*"), key=lambda place: [int(part) for part in place.name.split(".")[:2]])
    found += [str(place / "bin" / "python3") for place in reversed(newest)]
    test = f"import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    for program in filter(None, found):
        if subprocess.run([program, "-c", test], capture_output=True, check=False).returncode == 0:
            return program
    raise NotInstalledError(f"Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer is needed to install it")


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise NotInstalledError(f"{Path(command[0]).name} failed: {said[-1] if said else done.returncode}")
    return done.stdout
