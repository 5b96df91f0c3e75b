"""What can be imported, and what importing it costs."""

import ast
import importlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import wave_agent
import wave_agent.hooks

PACKAGES = pytest.mark.parametrize("package", [wave_agent, wave_agent.hooks], ids=lambda package: package.__name__)
HEAVY = (
    *("msgspec", "asyncio", "dataclasses", "inspect", "click", "httpcore", "h11", "json", "typing", "re", "enum"),
    *("pathlib", "subprocess", "socket", "ssl", "tempfile", "logging", "importlib.metadata"),
)


def type_checking_imports(package: ModuleType) -> dict[str, str]:
    """Name → module, as a type checker sees it."""
    assert package.__file__ is not None
    tree = ast.parse(Path(package.__file__).read_text())
    found: dict[str, str] = {}
    for branch in tree.body:
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING":
            for statement in branch.body:
                assert isinstance(statement, ast.ImportFrom)
                found.update({alias.name: statement.module or "" for alias in statement.names})
    return found


@PACKAGES
def test_the_list_of_public_names_is_sorted_and_has_no_name_twice(package: ModuleType) -> None:
    assert package.__all__ == sorted(set(package.__all__))


@PACKAGES
def test_every_public_name_can_be_imported_from_where_the_type_checker_sees_it(package: ModuleType) -> None:
    seen = type_checking_imports(package)
    assert sorted(seen) == package.__all__
    for name, module in seen.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name)


@PACKAGES
def test_nothing_else_is_given_out_lazily(package: ModuleType) -> None:
    assert sorted(package._HOME) == package.__all__


@PACKAGES
def test_a_name_that_is_not_there_is_an_attribute_error_with_its_name(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'Agnet'"):
        _ = package.Agnet
    with pytest.raises(ImportError, match="Agnet"):
        exec(f"from {package.__name__} import Agnet")


@PACKAGES
def test_a_star_import_gives_exactly_the_public_names(package: ModuleType) -> None:
    namespace: dict[str, object] = {}
    exec(f"from {package.__name__} import *", namespace)
    assert sorted(namespace.keys() - {"__builtins__"}) == package.__all__


def test_the_names_are_listed_before_they_are_loaded() -> None:
    code = "import wave_agent; print(*dir(wave_agent))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert {*wave_agent.__all__, "__version__", "__all__", "__name__"} <= set(ran.stdout.split())


def test_the_version_is_that_of_the_installed_package() -> None:
    assert wave_agent.__version__ == importlib.metadata.version("wave-agent")


def test_the_package_can_be_run_as_the_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "wave_agent", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout == f"wave {wave_agent.__version__}\n"
    wrong = subprocess.run(
        [sys.executable, "-m", "wave_agent", "hokks"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (wrong.returncode, "Usage: wave " in wrong.stderr) == (2, True)


def modules_after(statement: str) -> set[str]:
    """What a fresh interpreter loads for a statement. Coverage stays out: it loads half of the standard library."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    code = f"import sys; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return set(ran.stdout.split())


@PACKAGES
def test_importing_the_package_alone_loads_nothing_but_itself(package: ModuleType) -> None:
    assert modules_after(f"import {package.__name__}") <= {"wave_agent", "wave_agent.hooks"}


@PACKAGES
def test_importing_the_package_loads_nothing_heavy_even_counting_what_the_interpreter_had(package: ModuleType) -> None:
    """With `-S` the interpreter has loaded next to nothing by itself."""
    assert package.__file__ is not None
    root = Path(wave_agent.__path__[0]).parent
    code = (
        f"import sys; sys.path.insert(0, {str(root)!r}); import {package.__name__}; "
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTHON"))}
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.split() == []


@pytest.mark.parametrize(
    "statement",
    [
        "from wave_agent.hooks import deny",
        "from wave_agent.hooks import Answer, HookCall, allow, ask, context, deny, replace_output, rewrite, stop, tell",
        "from wave_agent.hooks import HookCall, deny, hook",
        "from wave_agent import WaveError, SettingsError",
    ],
)
def test_a_hook_script_pays_neither_for_msgspec_nor_for_asyncio(statement: str) -> None:
    loaded = modules_after(statement)
    assert not loaded & {"msgspec", "asyncio", "click", "httpcore", "h11", "inspect", "dataclasses", "subprocess"}


def test_an_agent_does_not_pay_for_the_command_line_or_the_network_client() -> None:
    assert not modules_after("from wave_agent import Agent, tool, run") & {"click", "httpcore", "h11"}


def test_a_published_module_that_has_moved_can_still_be_imported() -> None:
    from wave_agent import model_server as before
    from wave_agent.testing import model_server as now

    public = [name for name, value in vars(now).items() if getattr(value, "__module__", "") == now.__name__]
    assert {"RecordingModelServer", "Status", "RecordedRequest"} <= set(public)
    assert [name for name in public if not name.startswith("_") and not hasattr(before, name)] == []
