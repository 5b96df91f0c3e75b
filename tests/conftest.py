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
