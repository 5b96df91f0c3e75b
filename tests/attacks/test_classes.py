"""Every attack works without its guard, and none with it: by the real program, with a canary."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attacks.arena import problems
from tests.attacks.attack_classes import AttackClass, load_classes

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the attempts use the programs of Linux"),
    pytest.mark.timeout(600),  # each attempt is a process or several, on both sides
]


CLASSES = load_classes()
SAMPLE = 6
"""Attempts of each class that `make test` makes. `make test-all` makes every one."""


def sampled(attacks: AttackClass) -> AttackClass:
    """Attempts from all over the class."""
    possible = [attempt for attempt in attacks.attempts if attempt.possible]
    return replace(attacks, attempts=tuple(possible[:: -(-len(possible) // SAMPLE) or 1]))


def check(attacks: AttackClass, directory: Path) -> None:
    if not any(attempt.possible for attempt in attacks.attempts):
        pytest.skip("none of its programs is installed")
    found = list(problems(attacks, directory))
    if found:
        pytest.fail(f"{attacks.title}: {len(found)} of {len(attacks.attempts)}\n" + "\n".join(found), pytrace=False)


@pytest.mark.parametrize("attacks", list(map(sampled, CLASSES)), ids=lambda attacks: attacks.name)
def test_the_guard_withstands_a_sample(attacks: AttackClass, tmp_path: Path):
    check(attacks, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("attacks", CLASSES, ids=lambda attacks: attacks.name)
def test_the_guard_withstands_what_works_without_it(attacks: AttackClass, tmp_path: Path):
    check(attacks, tmp_path)
