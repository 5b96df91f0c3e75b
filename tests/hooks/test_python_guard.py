"""The Python that hooks run: where it takes modules from, and what keeps a project's modules out of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rows import rows
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.hooks.python_guard import PythonGuard
from wave_agent.hooks.python_modules import PythonStart, imported, python_of, python_runs, shadows
from wave_agent.permissions.protected_paths import protected_paths
from wave_agent.settings.hook_entries import load_hooks, parse_settings

INLINE = "python3 -c 'import json, sys; json.load(sys.stdin)'"


class Workshop:
    """A project, the agent's directory, and a python3 that says by its name how old it is."""

    def __init__(self, root: Path) -> None:
        self.project, self.home, self.programs = root / "project", root / "home", root / "bin"
        for directory in (self.project, self.home / "hooks", self.programs):
            directory.mkdir(parents=True)
        self.python("python3.12")

    def python(self, name: str, text: str = "#!/bin/sh\n") -> None:
        for file in self.programs.iterdir():
            file.unlink()
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)
        if name != "python3":
            (self.programs / "python3").symlink_to(name)

    def file(self, name: str, text: str = "") -> str:
        file = self.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return str(file)

    def hook(self, command: str, layer: Layer = Layer.USER, **more: object) -> HookDefinition:
        text = json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"command": command, **more}]}]}})
        (found,) = load_hooks([parse_settings(text, layer, "settings.json")]).hooks
        return found

    def guard(self, **environment: str) -> PythonGuard:
        return PythonGuard(str(self.project), self.home, {"PATH": str(self.programs), **environment})

    def is_safe(self, command: str, layer: Layer = Layer.USER) -> bool:
        return self.guard().environment(self.hook(command, layer)).get("PYTHONSAFEPATH") == "1"


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@rows(
    ("line", "start", "module"),
    [
        ("python3 -c 'import json'", PythonStart.CODE, ""),
        ("python3 -uc 'import json'", PythonStart.CODE, ""),
        ("/usr/bin/python3.10 -W ignore -X utf8 -c 'x'", PythonStart.CODE, ""),
        ('"python3" "-c" "x"', PythonStart.CODE, ""),
        ("${PY:-python3} -c x", PythonStart.CODE, ""),
        ("pypy3 -m json.tool", PythonStart.MODULE, "json"),
        ("python3 -mjson.tool", PythonStart.MODULE, "json"),
        ("python3 - <<'E'", PythonStart.STDIN, ""),
        ("python3 <<E", PythonStart.STDIN, ""),
        ("cat x | python3", PythonStart.STDIN, ""),
        ("python3 2>/dev/null", PythonStart.STDIN, ""),
        ("python3 guard.py -c x", PythonStart.SCRIPT, ""),
        ("python3 -u guard.py", PythonStart.SCRIPT, ""),
    ],
)
def test_a_start_of_python_is_known_by_its_options(line: str, start: PythonStart, module: str) -> None:
    (run,) = python_runs(line)
    assert (run.start, run.module, run.isolated) == (start, module, False)


def test_isolated_and_deaf_starts_are_told_apart() -> None:
    assert [run.isolated for run in python_runs("python3 -I -c x; python3 -Pc x; python3 -sc x")] == [True, True, False]
    assert [run.ignores for run in python_runs("python3 -E -c x; python3 -c x")] == [True, False]
    assert [run.program for run in python_runs("/opt/x/bin/python3 -c x")] == ["/opt/x/bin/python3"]
    assert list(python_runs("my-python3 -c x; python-config --x; pythonic -c x")) == []


def test_imports_are_seen_in_one_line_and_in_many() -> None:
    assert imported("import sys,json as j; from a.b import c") == {"sys", "json", "a"}
    assert imported("x = __import__('y')\nimport_module(\"z.q\")") == {"y", "z"}


def test_a_users_inline_python_takes_nothing_from_the_project(workshop: Workshop) -> None:
    assert workshop.is_safe(INLINE)
    assert workshop.is_safe("python3 -m json.tool > /dev/null")
    assert workshop.is_safe(INLINE, Layer.MANAGED)


def test_what_runs_the_code_of_a_project_goes_on_finding_it(workshop: Workshop) -> None:
    workshop.file("json.py")
    assert not workshop.is_safe("python3 -m pytest -q")
    assert not workshop.is_safe("python3 -m unittest")
    assert python_of(workshop.hook("python3 -m pytest -q"), str(workshop.project)).places == ()


@pytest.mark.parametrize("command", ["python3 guard.py", "jq .x", "python3 -I -c 'import json'"])
def test_other_hooks_are_left_alone(workshop: Workshop, command: str) -> None:
    workshop.file("json.py")
    assert "PYTHONSAFEPATH" not in workshop.guard().environment(workshop.hook(command))


@pytest.mark.parametrize(
    "command", [f"{INLINE} && make test", "python3 -c 'import subprocess; subprocess.run([\"make\"])'"]
)
def test_where_other_programs_run_too_it_takes_a_module_in_the_way(workshop: Workshop, command: str) -> None:
    """Those may be a test run, which needs the project's directory."""
    assert not workshop.is_safe(command)
    workshop.file("json.py")
    assert workshop.is_safe(command)


def test_so_with_a_users_script(workshop: Workshop) -> None:
    script = workshop.home / "hooks" / "guard.sh"
    script.write_text(f"#!/bin/sh\n# python3 -c x\n{INLINE}\npython3 ~/other.py\n")
    hook, guard = workshop.hook(str(script)), workshop.guard()
    assert guard.environment(hook) == {}
    workshop.file("json/__init__.py")
    assert guard.environment(hook)["PYTHONSAFEPATH"] == "1"


def test_a_directory_that_is_no_package_is_not_in_the_way(workshop: Workshop) -> None:
    workshop.file("json/data.txt")
    assert not workshop.is_safe(f"{INLINE} && make test")


def test_a_module_of_the_project_that_a_run_names_is_meant(workshop: Workshop) -> None:
    workshop.file("ci/guard.py")
    workshop.file("ci/__init__.py")
    assert not workshop.is_safe("python3 -m ci.guard", Layer.FLAG)
    assert not workshop.is_safe("python3 -m ci.guard", Layer.CODE)
    assert workshop.is_safe("python3 -m ci.guard", Layer.USER), "a user's hooks are for every project"
    assert workshop.is_safe("python3 -m black .", Layer.FLAG)


def test_a_projects_inline_python_is_safe_if_it_visibly_needs_nothing_of_it(workshop: Workshop) -> None:
    assert workshop.is_safe(INLINE, Layer.PROJECT)
    assert not workshop.is_safe("python3 -c 'import rules'", Layer.PROJECT)
    assert not workshop.is_safe('python3 -c "$(cat guard.txt)"', Layer.PROJECT)
    assert not workshop.is_safe("python3 -c 'exec(open(\"guard.txt\").read())'", Layer.PROJECT)
    assert not workshop.is_safe(f"{INLINE} && make test", Layer.PROJECT)


@pytest.mark.parametrize(("name", "runs"), [("python3.10", False), ("python3.11", True)])
def test_an_older_python_does_not_run_a_users_hook_past_a_module_in_the_way(
    workshop: Workshop, name: str, runs: bool
) -> None:
    workshop.python(name)
    hook = workshop.hook(INLINE)
    assert workshop.guard().problem(hook) is None
    workshop.file("json.py")
    told = workshop.guard().problem(hook)
    assert (told is None) is runs
    assert runs or (told is not None and "json.py" in told and "python3 -I" in told)
    assert workshop.guard().problem(workshop.hook(INLINE, Layer.PROJECT)) is None, "that is a matter of trust"
    assert workshop.guard().problem(workshop.hook("python3 -E -c 'import json'")) is not None


@pytest.mark.parametrize(("text", "runs"), [("echo True", True), ("echo False", False), ("exit 1", False)])
def test_a_shim_is_asked_which_python_it_starts(workshop: Workshop, text: str, runs: bool) -> None:
    workshop.python("python3", f'#!/bin/sh\ntest "$1" = -I && {text}\n')
    workshop.file("json.py")
    assert (workshop.guard().problem(workshop.hook(INLINE)) is None) is runs


def test_a_program_that_is_missing_or_cannot_be_run_loads_nothing(workshop: Workshop) -> None:
    workshop.file("json.py")
    assert workshop.guard().problem(workshop.hook("python9 -c 'import json'")) is None
    workshop.python("python3", "\0")
    assert workshop.guard().problem(workshop.hook(INLINE)) is not None


def test_modules_of_the_project_are_not_taken_from_its_pycache(workshop: Workshop) -> None:
    workshop.file("guard.py", "import json, rules\n")
    hook = workshop.hook("python3 guard.py", Layer.PROJECT)
    assert workshop.guard().environment(hook) == {}, "a script of one file has nothing there"
    workshop.file("rules.py")
    given = workshop.guard().environment(hook)
    assert given == {"PYTHONPYCACHEPREFIX": str(workshop.home / "pycache"), "PYTHONDONTWRITEBYTECODE": ""}
    assert workshop.guard(PYTHONPYCACHEPREFIX="/mine").environment(hook) == {}


def test_a_sibling_is_loaded_with_these_variables_and_its_cache_is_not(workshop: Workshop) -> None:
    workshop.file("guard.py", "import rules\nprint(rules.WORD)\n")
    workshop.file("rules.py", "WORD = 'source'\n")
    evil = workshop.file("evil.py", "WORD = 'cache'\n")
    code = (
        "import importlib.util, py_compile, sys; py_compile.compile(sys.argv[1], cfile="
        "importlib.util.cache_from_source('rules.py'), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)"
    )
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([sys.executable, "-c", code, evil], cwd=workshop.project, env=plain, check=True)

    def said(environment: dict[str, str]) -> str:
        run = [sys.executable, "guard.py"]
        return subprocess.check_output(run, cwd=workshop.project, env=environment, text=True).strip()

    assert said(plain) == "cache", "this is how it would be"
    given = workshop.guard().environment(workshop.hook("python3 guard.py", Layer.PROJECT))
    assert said({**plain, **given}) == "source"
    assert list((workshop.home / "pycache").rglob("rules.*.pyc"))


def test_what_a_hook_would_import_is_protected_whether_it_is_there_or_not(workshop: Workshop) -> None:
    workshop.file("guard.py", "import rules\n")
    workshop.file("rules.py", "import deeper\n")
    hooks = [workshop.hook("python3 guard.py", Layer.PROJECT)]
    found = protected_paths(str(workshop.project), workshop.home, hooks, workshop.home)
    asked = ("json.py", "rules.py", "rules/__init__.py", "rules.cpython-311.so", "rules.pyc", "deeper.py")
    for name in asked:
        assert found.find(str(workshop.project / name)) is not None, name
    for name in ("main.py", "json.txt", "src/json.py", "json/data.py", "rules", "__init__.py", "os.py"):
        assert found.find(str(workshop.project / name)) is None, name
    assert found.find(str(workshop.home / "pycache/x/rules.pyc")) is not None


def test_in_a_directory_that_the_command_goes_to_and_one_that_pythonpath_names(workshop: Workshop) -> None:
    workshop.file("tools/json.py")
    workshop.file("lib/json.py")
    places = python_of(workshop.hook(f"cd tools && PYTHONPATH=lib {INLINE}"), str(workshop.project)).places
    assert [file for place in places for file in shadows(place)] == [
        str(workshop.project / "tools/json.py"),
        str(workshop.project / "lib/json.py"),
    ]


def test_a_hook_in_arguments_is_read_the_same(workshop: Workshop) -> None:
    hook = workshop.hook("python3", args=["-c", "import json; print('a'); print($x)"])
    assert workshop.guard().environment(hook) == {"PYTHONSAFEPATH": "1"}
