"""`wave hooks report`: a page with plots, in a real browser."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.replay.browser import browser, find_browser
from tests.replay.recorded import commands, record, wave_hooks
from wave_agent.replay.charts import Bar, over_time, share, span
from wave_agent.replay.figures import figures, percentile
from wave_agent.replay.overview import DayFigures, overview
from wave_agent.replay.report_page import filled, report_page, weeks
from wave_agent.replay.tally import DeniedTally, HookTally, SessionTally

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">\x1b]0;owned\x07\u202e\'"&lt; -->'


def hook(day: str = "2026-01-31", name: str = "guard", **facts: float) -> HookTally:
    given = {"runs": 4, "waited_ms": 100.0, "turn_seconds": 10.0, **facts}
    return HookTally(
        day=day, event="PreToolUse", name=name, layer="user", mode="enforce", times=[1.5, 40.0], counts=[3, 1], **given
    )


def session(*hooks: HookTally, denied: tuple[DeniedTally, ...] = ()) -> SessionTally:
    facts = {"user": "", "hostname": "", "repository": "", "project": "", "agent": ""}
    return SessionTally(
        started=0, ended=0, prompts=1, calls=1, hooks=[*hooks], denied=[*denied], **facts
    )  # fmt: skip


def denied(text: str, count: int = 1) -> DeniedTally:
    return DeniedTally(day="2026-01-31", tool="Bash", text=text, by="", count=count)


def test_figures_of_many_sessions_are_added_up() -> None:
    [one, other] = figures([hook(blocks=1), hook("2026-02-01", failures=4, let_through=2), hook(name="idle", runs=0)])
    assert (one.runs, one.blocks, one.failures, one.let_through, one.share) == (8, 1, 4, 2, 0.01)
    assert (one.p50_ms, one.p95_ms, one.p99_ms, one.max_ms, one.marks) == (1.5, 40, 40, 40, ("flaky",))
    assert (other.name, one.to_dict()["p99_ms"]) == ("idle", 40)
    assert (percentile([3.0, 1.0], 0.5), percentile([], 0.5)) == (1.0, 0.0)
    assert figures([]) == []
    empty = HookTally(day="", event="Stop", name="none", layer="user", mode="enforce", times=[], counts=[])
    assert (figures([empty])[0].p50_ms, figures([empty])[0].max_ms) == (0, 0)


def test_the_overview_counts_days_and_the_most_frequent_denials() -> None:
    found = overview([
        session(hook(blocks=1), denied=(denied("rm"), denied("push", 2))),
        session(hook("2026-01-30", failures=2, let_through=1), denied=(denied("rm", 3),)),
    ])  # fmt: skip
    assert [(day.day, day.runs, day.blocks, day.failures, day.let_through) for day in found.days] == [
        ("2026-01-30", 4, 0, 2, 1), ("2026-01-31", 4, 1, 0, 0),
    ]  # fmt: skip
    assert [(one.text, one.count) for one in found.denied] == [("rm", 4), ("push", 2)]
    assert (found.sessions, found.runs) == (2, 8)


def test_rare_denials_are_dropped_before_they_fill_the_memory() -> None:
    rare = (session(denied=tuple(denied(f"rm {at} {number}") for at in range(100))) for number in range(201))
    found = overview([session(denied=(denied("often", 3),)), *rare])
    assert found.denied[0] == DeniedTally(day="", tool="Bash", text="often", by="", count=3)


def test_days_without_a_run_are_shown_and_long_times_by_week() -> None:
    days = [
        DayFigures(day=day, runs=1, enforced=1, blocks=1)
        for day in ("2026-01-05", "2026-01-08", "2026-01-12", "2226-01-01")
    ]
    found = filled(days)
    assert [day.day for day in found[:4]] == ["2026-01-05", "2026-01-06", "2026-01-07", "2026-01-08"]
    assert len(found) == 9
    assert [(week.day, week.runs) for week in weeks(found)] == [("2026-01-05", 2), ("2026-01-12", 1), ("2225-12-26", 1)]
    long = [session(hook(str(date(2026, 1, 1) + timedelta(day)))) for day in range(200)]
    assert "by week" in report_page(overview(long), "long")


@pytest.mark.parametrize(
    ("values", "top"), [([], "1"), ([0], "1"), ([0.3], "0.5"), ([1200], "2k"), ([10], "10"), ([3e6], "5M")]
)
def test_an_axis_ends_at_a_round_number(values: list[float], top: str) -> None:
    drawn = over_time("t", [Bar("day", value, "hint") for value in values])
    assert f">{top}</text>" in drawn


def test_a_span_lies_within_its_lane() -> None:
    assert 'x="0.0" y="6" width="400.0"' in span(1, 1000, 1000)
    assert 'width="2.0"' in span(0.5, 0.7, 0.7)
    assert 'width="200.0"' in share(1, 2)
    assert 'width="0.0"' in share(0, 0)


def test_without_a_run_the_page_says_so() -> None:
    page = report_page(overview([]), "empty")
    assert page.count("Nothing in this time.") == 2
    assert "No hook ran." in page


@pytest.fixture(scope="module")
def program() -> str:
    found = find_browser()
    if found is None:
        pytest.skip("no browser: .ci/browser installs one")
    return found


def test_in_a_browser_it_fits_a_phone_in_both_colour_schemes_and_hostile_text_does_nothing(
    program: str, tmp_path: Path
) -> None:
    days = [str(date(2026, 1, 1) + timedelta(day)) for day in range(60)]
    sessions = [
        session(hook(day, HOSTILE * 3, blocks=1, failures=2, let_through=1), denied=(denied(HOSTILE * 2),))
        for day in days
    ]
    (tmp_path / "page.html").write_text(report_page(overview(sessions), HOSTILE))
    with browser(program, tmp_path / "profile") as tab:
        grounds: set[str] = set()
        for width, scheme in ((320, "dark"), (1200, "light")):
            tab.send("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=True)
            tab.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            tab.open(tmp_path / "page.html")
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            assert tab.evaluate("document.querySelectorAll('rect.value').length") >= 2 * len(days)
            assert tab.evaluate("document.querySelector('.plot rect.value').getBoundingClientRect().height") > 1
            grounds.add(tab.evaluate("getComputedStyle(document.querySelector('rect.value')).fill"))
        assert len(grounds) == 2
        assert tab.evaluate("document.images.length + document.scripts.length") == 0
        assert tab.complaints == []


def test_without_a_session_the_command_says_that_the_page_is_empty(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    done = wave_hooks(project, "report", "--html", str(file))
    said = f"There are no sessions to analyse: the page is empty.\nWrote {file}\n"
    assert (done.returncode, done.stderr, file.exists()) == (0, said, True)


def test_the_command_writes_a_page_of_this_projects_sessions(project: Path, tmp_path: Path) -> None:
    guard = "case $(cat) in *'rm -rf'*) exit 2;; esac"
    hooks = {"PreToolUse": [{"hooks": [{"name": "guard", "command": guard}]}]}
    record(project, [commands("rm -rf build"), "Done."], hooks=hooks)
    done = wave_hooks(project, "report", "--html", str(tmp_path / "report.html"))
    assert (done.returncode, done.stderr) == (0, f"Wrote {tmp_path / 'report.html'}\n")
    page = (tmp_path / "report.html").read_text()
    for part in ("rm -rf build", "guard", "1 (100.0%)"):
        assert part in page
