"""`--fix`: what is repaired is repaired, and no byte beside it changes."""

from pathlib import Path

import pytest

from tests.lint.workbench import Workbench
from wave_agent.lint.repairs import repair

SCRIPT = "#!/bin/sh\ncat >/dev/null\n"


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    made = Workbench(tmp_path)
    made.write("x.sh", SCRIPT)
    return made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (r"$CLAUDE_PROJECT_DIR/x.sh", r"\"$CLAUDE_PROJECT_DIR\"/x.sh"),
        (r"${CLAUDE_PROJECT_DIR}/x.sh", r"\"${CLAUDE_PROJECT_DIR}\"/x.sh"),
        (
            r"\u0062ash $CLAUDE_PROJECT_DIR/x.sh \"a\ud83d\ude00b\" $CLAUDE_PROJECT_DIR",
            r"\u0062ash \"$CLAUDE_PROJECT_DIR\"/x.sh \"a\ud83d\ude00b\" \"$CLAUDE_PROJECT_DIR\"",
        ),
    ],
)
def test_variables_are_quoted_and_the_rest_of_the_file_stays(bench: Workbench, before: str, after: str) -> None:
    text = '\ufeff{ "//": "ä note",\r\n\t"hooks" : {"Stop":[ {"hooks":[{"command": "%s",   "timeout":5 }]}]}\r\n}\r\n'
    file = bench.project / ".wave" / "settings.json"
    file.parent.mkdir()
    file.write_bytes((text % before).encode())
    report = bench.check()
    assert [one.code for one in report.findings] == ["W101"]
    told = repair(report.findings)
    assert file.read_bytes() == (text % after).encode()
    assert any(line.startswith("+") and "CLAUDE_PROJECT_DIR" in line for line in told)
    assert bench.codes() == []


@pytest.mark.parametrize(("before", "after"), [("5000", "5"), ("2500", "2.5"), ("60000.0", "60")])
def test_milliseconds_become_seconds(bench: Workbench, before: str, after: str) -> None:
    text = '{"hooks": {"Stop": [{"hooks": [{"command": "./x.sh", "timeout": %s}, {"command": "./x.sh b"}]}]}}'
    file = bench.write(".wave/settings.json", text % before)
    repair(bench.check().findings)
    assert file.read_text() == text % after
    assert bench.codes() == []


def test_two_repairs_in_one_entry_do_not_disturb_each_other(bench: Workbench) -> None:
    text = '{"hooks": {"Stop": [{"hooks": [{"timeout": %s, "command": "%s$WAVE_PROJECT_DIR%s/x.sh"}]}]}}'
    file = bench.write(".wave/settings.json", text % ("2000", "", ""))
    repair(bench.check().findings)
    assert file.read_text() == text % ("2", r"\"", r"\"")


def test_a_script_gets_the_run_bit_for_those_who_may_read_it(bench: Workbench) -> None:
    (bench.project / "x.sh").chmod(0o640)
    bench.hook("./x.sh")
    told = repair(bench.check().findings)
    assert (bench.project / "x.sh").stat().st_mode & 0o777 == 0o750
    assert told == [f"chmod +x {bench.project / 'x.sh'}"]
    assert bench.codes() == []


def test_what_cannot_be_repaired_safely_is_left_alone(bench: Workbench) -> None:
    file = bench.hook("./gone.sh")
    before = file.read_bytes()
    assert repair(bench.check().findings) == []
    assert file.read_bytes() == before
