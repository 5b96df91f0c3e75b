"""For all tests."""

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes, or takes to make up, says how busy the machine is and nothing about the code.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

UNMEASURED = {"attacks", "cli", "live", "screen", "soak"}
"""Directories of tests whose `wave` processes run without coverage, which would double their CPU time. What they run is
measured in the other tests."""


@pytest.fixture(autouse=True)
def coverage_of_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if UNMEASURED.intersection(request.path.parts):
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


THOROUGH = (
    "tests/attacks/test_answers.py",
    "tests/attacks/test_arena.py",
    "tests/attacks/test_classes.py::test_the_guard_withstands_a_sample",
    "tests/attacks/test_files",
    "tests/attacks/test_programs.py",
    "tests/attacks/test_trust.py",
    "tests/attacks/test_user_guards.py",
    "tests/claude/test_situations.py::test_here_it_does",
    "tests/cli/test_demo.py",
    "tests/cli/test_hooks_catalogue.py",
    "tests/cli/test_hooks_import.py",
    "tests/cli/test_hooks_workshop.py",
    "tests/cli/test_sandbox.py",
    "tests/cli/test_terminal.py",
    "tests/cli/test_verify.py",
    "tests/corpus/test_corpus.py::test_an_existing_hook",
    "tests/live/",
    "tests/replay/test_backtest.py",
    "tests/screen/test_conversation.py::test_a_long_answer",
    "tests/soak/",
    "tests/system/test_credentials.py::test_no_error_repeats_them",
    "tests/test_docs.py::test_console_blocks",
    "tests/test_docs.py::test_python_blocks",
    "tests/tools/test_search.py::test_ignored_is_what_git_ignores",
    "tests/workshop/test_recipes.py::test_every_script_passes",
)
"""Tests that start many programs. `make test` leaves them out, `make test-all` and CI run them."""
LIVE = {"test_first_request.py", "test_formatters.py", "test_gates.py", "test_modes.py", "test_refusals.py"}
QUICK = (
    *("[README.md]", "[docs/first-hook.md]"),
    *("[compiled_modules]", "[git_takes_the_guard_away]", "[links]", "[programs_that_carry]", "[protected_paths]"),
    *("[spelled_words]", "[two_readers]", "[unknown_command_words]"),
)
"""What `make test` has of them."""


@pytest.hookimpl(tryfirst=True)  # before the tests are selected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name in LIVE:
            continue
        if item.nodeid.startswith(THOROUGH) and not item.nodeid.endswith(QUICK) and not item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.thorough)
