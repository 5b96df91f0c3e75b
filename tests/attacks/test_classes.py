"""Every attack works without its guard, and none with it: by the real program, with a canary."""

import sys
from pathlib import Path

import pytest

from tests.attacks.arena import problems
from tests.attacks.attack_classes import AttackClass, load_classes

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the attempts use the programs of Linux"),
    pytest.mark.timeout(600),  # each attempt is a process or several, on both sides
]


@pytest.mark.parametrize("attacks", load_classes(), ids=lambda attacks: attacks.name)
def test_the_guard_withstands_what_works_without_it(attacks: AttackClass, tmp_path: Path):
    if not any(attempt.possible for attempt in attacks.attempts):
        pytest.skip("none of its programs is installed")
    found = list(problems(attacks, tmp_path))
    if found:
        pytest.fail(f"{attacks.title}: {len(found)} of {len(attacks.attempts)}\n" + "\n".join(found), pytrace=False)
