"""For all tests."""

import atexit
import os
import shutil
import signal
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes, or takes to make up, says how busy the machine is and nothing about the code.
settings.register_profile("few", max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("many", settings.get_profile("few"), max_examples=400)
settings.load_profile("few")

THOROUGH = [line for line in (Path(__file__).parent / "thorough.txt").read_text().splitlines() if line[:1].strip(" #")]
SAMPLED = 8
"""`make test` runs every third row of a longer table."""


# An agent of a test that does not say where its state goes must not write among the sessions of whoever runs the tests.
os.environ["HOME"] = tempfile.mkdtemp(prefix="home-of-tests-")
atexit.register(shutil.rmtree, os.environ["HOME"], ignore_errors=True)

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # started in the background by a shell, so that
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs that the tests start could not be interrupted


@pytest.hookimpl(tryfirst=True)  # before the tests are selected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tables: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        fits = [line for line in THOROUGH if item.nodeid.startswith(line.removeprefix("!"))]
        if item.get_closest_marker("soak"):
            continue
        if not fits:
            tables[item.nodeid.split("[")[0]].append(item)
        elif not fits[-1].startswith("!"):
            item.add_marker(pytest.mark.thorough)
    for table in tables.values():
        for number, item in enumerate(table):
            if number % 3 and len(table) > SAMPLED:
                item.add_marker(pytest.mark.thorough)
