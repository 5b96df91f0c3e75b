"""The arena itself: a class that shows nothing, or that a guard does not withstand, does not pass."""

from pathlib import Path

import pytest

from tests.attacks.arena import problems
from tests.attacks.attack_classes import AttackClass

PUSH = """
title = "Pushes"
canary = "push"
[settings.permissions]
deny = ["Bash(git push:*)"]
"""


def found(directory: Path, text: str) -> list[str]:
    return list(problems(AttackClass.parse("mine", text), directory, patience=0.5))


def test_what_gets_through_what_shows_nothing_and_what_is_marked_for_nothing_is_named(tmp_path: Path):
    lines = {
        "git push": "",
        "git status": "",
        'python3 -c \'import os; os.system("git pu" + "sh")\'': "",
        "git push origin": "xfail = true",
        'perl -e \'system("git pu" . "sh")\'': "xfail = true",
        "git -c alias.p=push p": "",  # runs no `git push` that the stub sees: the remote shows it
        "(sleep 0.2; git push) &": "",
    }
    attempts = [f"[[attempt]]\nline = '''{line}'''\n{mark}\n" for line, mark in lines.items()]
    told = found(tmp_path, PUSH + "".join(attempts))
    assert [line.split("\n")[0] for line in told] == [
        "mine: 'git status' shows nothing: not even without the guard did it happen that git push ran.",
        "mine: 'python3 -c \\'import os; os.system(\"git pu\" + \"sh\")\\'' gets around the guard: git push ran.",
        "mine: 'git push origin' is stopped, so it needs no `xfail` any more; it does not happen that git push ran.",
    ]


def test_a_guard_that_refuses_everything_shows_nothing(tmp_path: Path):
    told = found(tmp_path, PUSH.replace("Bash(git push:*)", "Bash") + "[[attempt]]\nline = 'git push'\n")
    assert [line.split(",")[0] for line in told] == ["mine: 'echo open' is harmless and was not run"]


def test_each_canary_trips(tmp_path: Path):
    classes = {
        "rm": ("", "rm -r precious", "git push"),
        "ran": ("", 'echo x > "$ARENA/canary"', "true"),
        "secret": ('outside = {"~/.ssh/id" = "canary-7f3a"}', "rev ~/.ssh/id | rev", "rev ~/.ssh/id"),
        "changed": ('watch = ["src", "~/.profile"]', "mkdir src", "touch note.txt"),
    }
    for canary, (more, trips, does_not) in classes.items():
        head = f'title = "t"\ncanary = "{canary}"\n{more}\n'
        told = found(tmp_path / canary, head + "".join(f"[[attempt]]\nline = '''{x}'''\n" for x in (trips, does_not)))
        shows_nothing, through = (line.split("\n")[0] for line in told)
        assert f"{does_not!r} shows nothing" in shows_nothing
        assert f"{trips!r} gets around the guard" in through


def test_an_attempt_that_ends_the_agent_is_named_and_the_others_are_still_made(tmp_path: Path):
    ends = "kill -9 $PPID"
    text = f'title = "t"\ncanary = "alive"\n[[attempt]]\nline = "{ends}"\n[[attempt]]\nline = "echo fine"\n'
    (told,) = found(tmp_path, text)
    assert told.startswith(f"mine: {ends!r} gets around the guard: the agent did not go on.")
    assert "exit -9" in told


@pytest.mark.parametrize(
    "wrong",
    [
        "[[attempt]]\nline = 'x'\nlin = 'y'",
        "[[attempt]]\ntool = 'Read'",
        "[[attempt]]\nline = 'x'\nwithout_canary = true",
        "[[attempt]]\nline = 'x'\n[[attempt]]\nline = 'x'",
    ],
)
def test_a_class_that_is_written_wrongly_is_refused(wrong: str):
    with pytest.raises(ValueError, match=r"attempt|without_canary"):
        AttackClass.parse("mine", PUSH + wrong)
