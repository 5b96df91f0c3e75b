"""Progress of long work: silent while it is short, and readable in a log."""

import pytest

from wave_agent.cli.progress import Progress


def test_without_a_terminal_there_is_a_line_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    time = 100.0
    with Progress("Reading sessions", lambda: time) as progress:
        for done in range(20):
            progress(done, 2000)
            time += 1
        time += 300
        progress(1000, 2000)
    assert capsys.readouterr().err.splitlines() == [
        "Reading sessions: 2 of 2,000 (0%)",
        "Reading sessions: 7 of 2,000 (0%)",
        "Reading sessions: 12 of 2,000 (1%), 33 min left",
        "Reading sessions: 17 of 2,000 (1%), 33 min left",
        "Reading sessions: 1,000 of 2,000 (50%), 5 min left",
    ]


def test_short_work_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("Reading sessions", lambda: 0.0) as progress:
        progress(1, 1)
    assert capsys.readouterr().err == ""
