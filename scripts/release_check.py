"""Builds the distributions, and checks that they work where nothing else of this repository is.

    python scripts/release_check.py [--python python3.12 …]

The sdist and the wheel are built into `dist/` and checked with twine. Then, with every Python named (else every
supported one on this machine), the wheel is installed into an environment of its own, and used in an empty directory
with an empty home: the version, the demo, and a guard that blocks. `dist/wave-agent.cdx.json` lists what such an
installation consists of (a software bill of materials in CycloneDX's format).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
OLDEST = (3, 11)
NAMES = ("python3.11", "python3.12", "python3.13", "python3.14", "/usr/bin/python3")
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


def build() -> Path:
    """Build both distributions, and return the wheel."""
    shutil.rmtree(DIST, ignore_errors=True)
    run([sys.executable, "-m", "hatchling", "build", "-d", DIST])
    run([sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir()])
    (wheel,) = DIST.glob("*.whl")
    return wheel


def interpreters(named: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The interpreters to check, and their versions, each version once. One that is named has to exist."""
    seen: set[str] = set()
    for name in named or NAMES:
        program = shutil.which(name)
        if program is None:
            if named:
                sys.exit(f"{name} not found")
            continue
        asked = [program, "-I", "-c", "import sys; print(*sys.version_info[:3])"]
        numbers = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
        version = ".".join(numbers)
        if tuple(map(int, numbers[:2])) >= OLDEST and version not in seen:
            seen.add(version)
            yield program, version


def check(wheel: Path, program: str, place: Path) -> Path:
    """Install the wheel and use it. Returns the environment's interpreter."""
    environment = place / "environment"
    run([program, "-m", "venv", environment])
    python = environment / "bin" / "python"
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel])
    project = place / "project"
    (project / ".wave").mkdir(parents=True)
    (project / ".wave" / "settings.json").write_text(json.dumps(SETTINGS))
    (project / "guard.sh").write_text(GUARD)
    (project / "guard.sh").chmod(0o755)
    (project / "precious").mkdir()
    (place / "home").mkdir()
    path = os.pathsep.join([str(environment / "bin"), "/usr/local/bin", "/usr/bin", "/bin"])
    own = {"PATH": path, "HOME": str(place / "home"), "LANG": "C.UTF-8"}
    wave = environment / "bin" / "wave"
    expect(wheel.name.split("-")[1], run([wave, "--version"], place, own))
    expect("rm -rf is not allowed here", run([wave, "demo"], place, own))
    expect("completed [('guard.sh', 'deny')]", run([python, "-c", GUARDED], project, own))
    if not (project / "precious").is_dir():
        sys.exit("the guard did not hold")
    return python


def write_bill_of_materials(wheel: Path, program: str, place: Path) -> None:
    """Of the package with all of its extras. The tool that writes it has an environment of its own."""
    environment, tool = place / "all", place / "tool"
    run([program, "-m", "venv", environment])
    run([program, "-m", "venv", tool])
    quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([environment / "bin" / "python", *quiet, f"{wheel}[{EXTRAS}]"])
    run([environment / "bin" / "python", "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools"])
    run([tool / "bin" / "python", *quiet, "cyclonedx-bom>=7,<8"])
    bill = DIST / "wave-agent.cdx.json"
    run([tool / "bin" / "cyclonedx-py", "environment", environment / "bin" / "python", "--of", "JSON", "-o", bill])
    names = {part["name"] for part in json.loads(bill.read_text())["components"]}
    if not {"wave-agent", "msgspec", "mcp", "distributed"} <= names:
        sys.exit(f"{bill} lacks packages: it lists {', '.join(sorted(names))}")
    print(f"{bill.name}: {len(names)} packages")


def main() -> None:
    parser = argparse.ArgumentParser(description="Check the distributions before a release.")
    parser.add_argument("--python", action="append", default=[], help="check with this interpreter; may be repeated")
    named: list[str] = parser.parse_args().python
    wheel = build()
    print(*(f"built and checked: {file.name}" for file in sorted(DIST.iterdir())), sep="\n", flush=True)
    program = ""
    for program, version in interpreters(named):
        with tempfile.TemporaryDirectory(prefix="wave-release-") as place:
            check(wheel, program, Path(place))
        print(f"Python {version}: installed, demo and guard work ({program})", flush=True)
    if not program:
        sys.exit("no Python to check with")
    with tempfile.TemporaryDirectory(prefix="wave-release-") as place:
        write_bill_of_materials(wheel, program, Path(place))


if __name__ == "__main__":
    main()
