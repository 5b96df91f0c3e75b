"""`wave hooks trace`: the time line in the terminal, as JSON and as a page in a real browser."""

import json
import re
import stat
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.replay.browser import browser, find_browser
from tests.replay.recorded import commands, record, wave_hooks
from wave_agent.replay.drawing import draw
from wave_agent.replay.lines import lines_of, parse_lines
from wave_agent.replay.page import page
from wave_agent.replay.subagent_lines import subagents_in
from wave_agent.replay.timeline import Timeline, timeline
from wave_agent.testing import Reply, call

GUARD = 'case $(cat) in *"rm -rf"*) echo "rm -rf is not allowed here" >&2; exit 2;; esac'
HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">\x1b]0;owned\x07\u202e\'"&lt; -->'


def hooks(**events: list[dict[str, Any]]) -> dict[str, Any]:
    return {event: [{"hooks": own}] for event, own in events.items()}


def seen(path: Path) -> Timeline:
    lines = lines_of(path)
    return timeline(path.stem, lines, subagents_in(lines))


@pytest.fixture
def session(project: Path) -> Path:
    """Two prompts, the second one refused; hooks side by side; a command that runs and one that does not."""
    meet = "touch here-$0; until [ -e here-a ] && [ -e here-b ]; do sleep 0.01; done; sleep 0.05"
    own = hooks(
        UserPromptSubmit=[{"name": "prompts", "command": "case $(cat) in *hunter2*) echo no >&2; exit 2;; esac"}],
        PreToolUse=[
            {"name": "guard", "command": GUARD},
            {"name": "a", "command": "bash", "args": ["-c", meet, "a"]},
            {"name": "b", "command": "bash", "args": ["-c", meet, "b"]},
        ],
    )
    replies = [commands("sleep 0.1; echo hello"), commands("rm -rf build"), "All done."]
    return record(project, replies, hooks=own, prompts=("Tidy up.", "say hunter2"))


def test_without_a_session_it_says_so_and_is_content(project: Path) -> None:
    done = wave_hooks(project, "trace")
    assert (done.returncode, done.stdout) == (0, "There are no sessions in this project yet.\n")


def test_the_terminal_shows_what_happened_in_its_order_and_who_read_it(project: Path, session: Path) -> None:
    done = wave_hooks(project, "trace", session.stem[:8], COLUMNS="200")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert re.match(rf"Session {session.stem}, 20\d\d-.* UTC: 2 prompts, 8 hook runs, \d+\.\d s$", lines[0])
    wanted = [
        "prompt Tidy up.",
        "hook   prompts on UserPromptSubmit → none",
        "model  calls Bash",
        "tool   Bash sleep 0.1; echo hello",
        "guard on PreToolUse → deny [model]: rm -rf is not allowed here",
        "tool   Bash rm -rf build → not run",
        "model  All done.",
        "prompt (a prompt of 11 characters, not stored) → blocked",
        "hook   prompts on UserPromptSubmit → block [user]: no",
    ]
    places = [next(at for at, line in enumerate(lines) if text in line) for text in wanted]
    assert places == sorted(places)
    assert any("hook   ∥ a on PreToolUse" in line for line in lines)  # they waited for each other


def test_hooks_that_ran_at_the_same_time_are_side_by_side_and_a_tool_comes_after_them(session: Path) -> None:
    spans = seen(session).spans
    a, b = (next(span for span in spans if span.title.startswith(f"{name} on")) for name in "ab")
    tool = next(span for span in spans if span.kind == "tool")
    assert a.start < b.end
    assert b.start < a.end
    assert max(a.end, b.end) <= tool.start + 0.002
    assert tool.exact
    assert 100 <= tool.duration_ms < 60_000


def test_times_of_an_older_transcript_are_worked_out(session: Path) -> None:
    lines = [json.loads(line) for line in session.read_bytes().splitlines()]
    for line in lines:
        line.pop("started", None)
        if line.get("source") == "tool":
            line.pop("duration_ms", None)
    old = timeline("old", parse_lines([json.dumps(line).encode() for line in lines]))
    tool = next(span for span in old.spans if span.kind == "tool")
    assert not tool.exact
    assert tool.duration_ms > 50
    assert len(old.spans) == len(seen(session).spans)
    assert "~" in "\n".join(draw(old))


def test_lines_that_are_no_records_are_counted_and_nothing_else(session: Path) -> None:
    extra = [b"{torn", b"[]", b"17", b'{"type":"user"}', b'{"type":"assistant","message":7}', b'{"type":["x"]}']
    extra += [
        b'{"type":"system","subtype":"hook_run"}',
        b'{"type":"user","message":{"content":[1,{"type":"tool_result"}]}}',
    ]
    found = timeline("x", parse_lines([*session.read_bytes().splitlines(), *extra]))
    assert found.skipped == 3
    assert list(draw(found))


def test_json_has_every_span_with_its_journal_entry(project: Path, session: Path) -> None:
    done = wave_hooks(project, "trace", "--json")
    found = json.loads(done.stdout)
    assert found["session_id"] == session.stem
    runs = [span["run"]["name"] for span in found["spans"] if span["kind"] == "hook"]
    assert sorted(runs) == ["a", "a", "b", "b", "guard", "guard", "prompts", "prompts"]


def test_a_page_that_cannot_be_written_is_a_wrong_command_line(project: Path, session: Path) -> None:
    done = wave_hooks(project, "trace", session.stem, "--html", "missing/page.html")
    assert done.returncode == 2
    assert "missing/page.html cannot be written" in done.stderr


# ------------------------------------------------------------------------------------------------------------ the page


class Reader(HTMLParser):
    """What a browser would make of a page: its elements and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


@pytest.fixture
def hostile(project: Path) -> Path:
    """A session in which everybody tries to break out."""
    said = json.dumps(HOSTILE)
    own = hooks(PreToolUse=[{"name": HOSTILE, "command": f"printf '%s' {json.dumps(said)!r}; exit 2"}])
    return record(project, [commands(f"echo {HOSTILE}"), HOSTILE], hooks=own, prompts=(HOSTILE,))


def test_nothing_in_a_transcript_becomes_part_of_the_page(hostile: Path) -> None:
    html = page(seen(hostile))
    reader = Reader()
    reader.feed(html)
    tags = [tag for tag, _ in reader.elements]
    assert tags.count("script") == 1
    assert not {"img", "iframe", "a", "link", "object", "base", "form"} & set(tags)
    assert not [
        attrs for _, attrs in reader.elements if any(name.startswith("on") or name == "style" for name in attrs)
    ]
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert html.count("&lt;img src=x onerror=") >= 4


def test_the_page_is_whole_in_itself_and_its_owners_alone(project: Path, session: Path) -> None:
    assert wave_hooks(project, "trace", "--html", "page.html").returncode == 0
    file = project / "page.html"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    html = file.read_text()
    reader = Reader()
    reader.feed(html)
    policy = next(attrs["content"] for tag, attrs in reader.elements if attrs.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"(?:src|href|url)\s*[=(]", html)


def test_a_text_that_is_no_unicode_can_be_written(project: Path) -> None:
    lines = [b'{"type":"user","message":{"content":"\\ud800 x"},"timestamp":"2026-01-01T00:00:00Z"}']
    assert "? x" in page(timeline("s", parse_lines(lines))).encode().decode()


@pytest.fixture(scope="module")
def program() -> str:
    found = find_browser()
    if found is None:
        pytest.skip(
            "there is no Chromium here; install chromium-headless-shell or chromium, or name one in WAVE_TEST_BROWSER"
        )
    return found


def test_in_a_browser_the_search_filters_and_a_click_opens_details(program: str, session: Path, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page(seen(session)))
    rows = "[...document.querySelectorAll('details')]"
    with browser(program, tmp_path / "profile") as tab:
        tab.open(file)
        everything = tab.evaluate(f"{rows}.filter(row => row.checkVisibility()).length")
        assert everything == len(seen(session).spans)
        tab.click("#search")
        tab.type("GUARD deny")
        assert tab.evaluate(f"{rows}.filter(row => row.checkVisibility()).map(row => row.className)") == ["row bad"]
        assert tab.evaluate("document.getElementById('found').textContent") == f"1 of {everything}"
        assert tab.evaluate(f"{rows}.filter(row => row.open).length") == 0
        tab.click("details:not([hidden]) > summary .what")
        opened = tab.evaluate(f"{rows}.filter(row => row.open).map(row => row.innerText).join()")
        assert "rm -rf is not allowed here" in opened
        assert "exit_code" in opened
        assert (
            tab.evaluate("document.querySelector('details:not([hidden]) svg rect.bad').getBoundingClientRect().width")
            > 1
        )
        assert tab.complaints == []


def test_in_a_browser_hostile_text_does_nothing(program: str, hostile: Path, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page(seen(hostile)))
    with browser(program, tmp_path / "profile") as tab:
        tab.open(file)
        assert tab.evaluate("document.images.length + document.scripts.length") == 1
        assert "</script><script>alert(1)" in tab.evaluate("document.body.innerText")
        assert tab.complaints == []
        # The policy holds also against what would have got in.
        tab.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.owned = 1'}))"
        )
        assert tab.evaluate("window.owned === undefined")
        assert any("Content Security Policy" in complaint for complaint in tab.complaints)


def test_what_subagents_did_is_shown_in_its_place(project: Path) -> None:
    task = call("Task", description="look", prompt="Look closely.", subagent_type="general-purpose")
    own = hooks(PreToolUse=[{"name": "guard", "command": GUARD}])
    replies = [Reply(tool_calls=[task]), commands("echo inside"), "Report.", "All done."]
    path = record(project, replies, hooks=own)
    done = wave_hooks(project, "trace", COLUMNS="200")
    assert done.returncode == 0, done.stderr
    wanted = [
        "prompt Go.",
        "model  calls Task",
        "hook   guard on PreToolUse",
        "tool   Task Look closely.",
        "note   ↳ general-purpose: task: Look closely.",
        "model  ↳ general-purpose: calls Bash",
        "hook   ↳ general-purpose: guard on PreToolUse",
        "tool   ↳ general-purpose: Bash echo inside",
        "model  ↳ general-purpose: Report.",
        "model  All done.",
    ]
    lines = done.stdout.splitlines()
    places = [next(at for at, line in enumerate(lines) if want in line) for want in wanted]
    assert places == sorted(places)
    assert "1 prompt, 2 hook runs" in lines[0]
    found = seen(path)
    assert {span.turn for span in found.spans} == {1}
    (inside,) = (span for span in found.spans if "echo inside" in span.title)
    assert inside.agent_id in page(found)
    assert f"of subagents/{inside.agent_id}.jsonl" in page(found)
