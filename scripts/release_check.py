"""Builds the distributions, and checks that they work where nothing else of this repository is.

    python scripts/release_check.py [--python python3.12 …]

The sdist and the wheel are built into `dist/` and checked with twine, and the wheel is compared with the sources. Then,
with every supported Python and the system's own, the wheel is installed into an environment of its own, and used in an
empty directory with an empty home: the version, the demos, the manual page, a guard that blocks, and a recipe that
passes its cases. With the newest Python, the sdist is installed and used in the same way. `dist/wave-agent.cdx.json`
lists what an installation consists of (a software bill of materials in CycloneDX's format).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
SYSTEM = "/usr/bin/python3"
CLASSIFIER = "Programming Language :: Python :: 3."
EXTRAS = "acp,fleet,mcp,otel"

GUARD = "#!/bin/sh\ncase $(cat) in *'rm -rf'*) echo 'not here' >&2; exit 2;; esac\n"
SETTINGS = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": "./guard.sh", "onFailure": "block"}]}]}}
GUARDED = """
import wave_agent
from wave_agent.testing import Reply, ScriptedModel, call

model = ScriptedModel([Reply(tool_calls=[call("Bash", command="rm -rf precious")]), "I will not do that."])
result = wave_agent.run("Tidy up.", model_client=model, trust=True, permission_mode="bypassPermissions")
print(result.status, [(run.name, run.outcome) for run in result.hooks])
"""


def run(command: Sequence[str | Path], cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """What a command prints. If it fails, this program ends with its output."""
    ran = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def expect(expected: str, text: str) -> None:
    if expected not in text:
        sys.exit(f'"{expected}" is missing in:\n{text}')


def build() -> tuple[Path, Path]:
    """Build both distributions, and return the wheel and the sdist."""
    shutil.rmtree(DIST, ignore_errors=True)
    run([sys.executable, "-m", "hatchling", "build", "-d", DIST])
    run([sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir()])
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    package = ROOT / "src" / "wave_agent"
    sources = {f"wave_agent/{file.relative_to(package)}" for file in package.rglob("*") if file.is_file()}
    sources = {name for name in sources if "__pycache__" not in name}
    with ZipFile(wheel) as opened:
        packed = {name for name in opened.namelist() if name.startswith("wave_agent/")}
    if packed != sources:
        sys.exit(f"the wheel differs from src/wave_agent: {', '.join(sorted(packed ^ sources))}")
    return wheel, sdist


def supported() -> list[str]:
    """The versions that the package's metadata names, such as `3.11`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [f"3.{one.removeprefix(CLASSIFIER)}" for one in project["classifiers"] if one.startswith(CLASSIFIER)]


def version_of(program: str | None) -> str:
    """Such as `3.12.1`; empty if this is no Python that runs."""
    if program is None:
        return ""
    asked = [program, "-I", "-c", "import sys; print(*sys.version_info[:3], sep='.')"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def interpreters(named: Sequence[str]) -> list[tuple[str, str]]:
    """The interpreters to check, and their versions: those named, else the system's own and all supported ones."""
    if named:
        found = [(shutil.which(name) or name, version_of(shutil.which(name))) for name in named]
        missing = [program for program, version in found if not version]
    else:
        found = [(program, version_of(program)) for program in every_python()]
        missing = [f"Python {one}" for one in supported() if not any(v.startswith(f"{one}.") for _, v in found)]
    if missing:
        sys.exit(f"not found: {', '.join(missing)}. To check with others only, name each: --python python3.12")
    return found


def every_python() -> Iterator[str]:
    """One program for each supported version, on PATH or installed by pyenv, and the system's own."""
    own = version_of(SYSTEM)
    if any(own.startswith(f"{one}.") for one in supported()):
        yield SYSTEM
    for wanted in supported():
        by_pyenv = sorted(Path.home().glob(f".pyenv/versions/{wanted}.*/bin/python"))
        candidates = [shutil.which(f"python{wanted}"), *map(str, by_pyenv)]
        usable = [one for one in candidates if one and version_of(one) not in ("", own)]
        yield from usable[:1]


def check(distribution: Path, program: str, place: Path) -> None:
    """Install the wheel or the sdist, and use it where nothing else is."""
    environment, project, home = place / "environment", place / "project", place / "home"
    run([program, "-m", "venv", environment])
    python, wave = environment / "bin" / "python", environment / "bin" / "wave"
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", distribution])
    (project / ".wave").mkdir(parents=True)
    home.mkdir()
    path = os.pathsep.join([str(environment / "bin"), "/usr/local/bin", "/usr/bin", "/bin"])
    own = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}
    expect(distribution.name.removesuffix(".tar.gz").split("-")[1], run([wave, "--version"], place, own))
    expect("Usage: wave", run([wave, "--help"], place, own))
    expect("rm -rf is not allowed here", run([wave, "demo"], place, own))
    expect("no-rm-rf.sh on PreToolUse denied", run([wave, "demo", "--screen"], place, own))
    expect("wave hooks schema", (environment / "share/man/man1/wave.1").read_text())
    use_recipe(wave, project, own)
    use_guard(python, project, own)


def use_recipe(wave: Path, project: Path, own: Mapping[str, str]) -> None:
    run([wave, "hooks", "new", "tidy", "--recipe", "shell-guard", "--lang", "python", "--yes"], project, own)
    run([wave, "hooks", "test", "--trust", ".wave/hooks/tidy.cases.json"], project, own)
    run([wave, "hooks", "lint"], project, own)


def use_guard(python: Path, project: Path, own: Mapping[str, str]) -> None:
    (project / ".wave" / "settings.json").write_text(json.dumps(SETTINGS))
    (project / "guard.sh").write_text(GUARD)
    (project / "guard.sh").chmod(0o755)
    (project / "precious").mkdir()
    expect("completed [('guard.sh', 'deny')]", run([python, "-c", GUARDED], project, own))
    if not (project / "precious").is_dir():
        sys.exit("the guard did not hold")


def write_bill_of_materials(wheel: Path, program: str, place: Path) -> None:
    """Of the package with all of its extras. The tool that writes it has an environment of its own."""
    environment, tool = place / "all", place / "tool"
    run([program, "-m", "venv", environment])
    run([program, "-m", "venv", tool])
    quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([environment / "bin" / "python", *quiet, f"{wheel}[{EXTRAS}]"])
    run([environment / "bin" / "python", "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools"])
    run([tool / "bin" / "python", *quiet, "cyclonedx-bom>=7,<8"])
    file = DIST / "wave-agent.cdx.json"
    more = ["--pyproject", ROOT / "pyproject.toml", "--of", "JSON", "-o", file]
    run([tool / "bin" / "cyclonedx-py", "environment", environment / "bin" / "python", *more])
    bill = json.loads(file.read_text())
    bill["metadata"]["component"]["version"] = wheel.name.split("-")[1]  # pyproject.toml does not have it
    file.write_text(json.dumps(bill, indent=2) + "\n")
    names = {part["name"] for part in bill["components"]} | {bill["metadata"]["component"]["name"]}
    if not {"wave-agent", "msgspec", "mcp", "distributed"} <= names:
        sys.exit(f"{file} lacks packages: it lists {', '.join(sorted(names))}")
    print(f"{file.name}: {len(names)} packages")


def main() -> None:
    parser = argparse.ArgumentParser(description="Check the distributions before a release.")
    parser.add_argument("--python", action="append", default=[], help="check with this interpreter; may be repeated")
    named: list[str] = parser.parse_args().python
    programs = interpreters(named)
    wheel, sdist = build()
    print(*(f"built and checked: {file.name}" for file in sorted(DIST.iterdir())), sep="\n", flush=True)
    for distribution, program, version in [*((wheel, *one) for one in programs), (sdist, *programs[-1])]:
        with tempfile.TemporaryDirectory(prefix="wave-release-") as place:
            check(distribution, program, Path(place))
        print(f"{distribution.name} works with Python {version} ({program})", flush=True)
    with tempfile.TemporaryDirectory(prefix="wave-release-") as place:
        write_bill_of_materials(wheel, programs[-1][0], Path(place))


if __name__ == "__main__":
    main()
