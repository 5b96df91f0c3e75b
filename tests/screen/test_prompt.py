"""The prompt: lines, history, pastes, completion, shell lines, and prompts that wait."""

import asyncio
import stat
from pathlib import Path

from textual import events

from tests.screen.stage import Stage, stage
from wave_agent.screen.entries import UserPrompt
from wave_agent.screen.prompt import Completions
from wave_agent.screen.search import HistorySearch
from wave_agent.screen.tool_card import State, ToolCard
from wave_agent.testing import Reply


def listed(on: Stage) -> list[str]:
    found = on.app.query_one(Completions)
    return [str(option.prompt).split()[0] for option in found.options] if found.display else []


def asked(on: Stage) -> list[str]:
    """The last message of each request that the model got."""
    return [request.messages[-1]["content"] for request in on.model.requests]


async def test_enter_sends_and_three_ways_make_a_new_line(project: Path):
    async with stage(project, ["ok"]) as on:
        await on.type("one")
        await on.press("shift+enter")
        await on.type("two")
        await on.press("ctrl+j")
        await on.type("three\\")
        await on.press("enter")
        await on.type("four")
        assert on.box.text == "one\ntwo\nthree\nfour"
        await on.press("enter")
        await on.idle()
        assert asked(on) == ["one\ntwo\nthree\nfour"]
        assert on.box.text == ""
        await on.press("enter")  # nothing to send
        assert not on.app.busy


async def test_the_arrow_keys_walk_through_history_at_the_edges_and_come_back_to_the_draft(project: Path):
    async with stage(project, ["a", "b"]) as on:
        await on.say("first")
        await on.say("second\nline")
        await on.type("draft")
        await on.press("up")
        assert on.box.text == "second\nline"
        await on.press("up")  # from the second line to the first: still the same prompt
        assert on.box.text == "second\nline"
        await on.press("up")
        assert on.box.text == "first"
        await on.press("up")
        assert on.box.text == "first"
        await on.press("down", "down", "down")
        assert on.box.text == "draft"


async def test_history_is_kept_for_the_project_and_private(project: Path, home: Path):
    async with stage(project, ["a"]) as on:
        await on.say("remember me")
    (file,) = home.rglob("history")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    async with stage(project) as on:
        await on.press("up")
        assert on.box.text == "remember me"


async def test_ctrl_r_searches_the_prompts(project: Path):
    async with stage(project, ["a", "b", "c"]) as on:
        for prompt in ("fix the parser", "write docs", "fix the printer"):
            await on.say(prompt)
        await on.press("ctrl+r")
        await on.until(lambda: isinstance(on.app.screen, HistorySearch))
        await on.type("fix")
        await on.press("down", "enter")
        await on.until(lambda: on.box.text == "fix the parser")
        await on.press("ctrl+r")
        await on.until(lambda: isinstance(on.app.screen, HistorySearch))
        await on.press("escape")
        await on.until(lambda: on.box.input.has_focus)
        assert on.box.text == "fix the parser"


async def test_a_paste_of_many_lines_is_one_and_is_sent_whole(project: Path):
    pasted = "\r\n".join(f"line {number}" for number in range(30)) + "\x1b[31m"
    async with stage(project, ["ok"]) as on:
        await on.type("See ")
        on.box.input.post_message(events.Paste(pasted))
        await on.until(lambda: on.box.text == "See [Pasted text #1, 30 lines]")
        assert not on.model.requests
        await on.press("enter")
        await on.idle()
        assert asked(on) == ["See " + "\n".join(f"line {number}" for number in range(30))]


async def test_a_small_paste_stands_there_itself(project: Path):
    async with stage(project) as on:
        on.box.input.post_message(events.Paste("two\nlines"))
        await on.until(lambda: on.box.text == "two\nlines")


async def test_a_slash_completes_commands_tab_takes_one_and_enter_sends_it(project: Path):
    async with stage(project) as on:
        await on.type("/co")
        await on.until(lambda: listed(on) == ["/compact", "/cost", "/copy"])
        await on.press("down", "tab")
        assert on.box.text == "/cost "  # ready for an argument
        assert listed(on) == []
        await on.press("ctrl+u")
        await on.type("/cos")
        await on.until(lambda: listed(on) == ["/cost"])
        await on.press("enter")
        await on.sees("tokens in")
        await on.type("/x")
        assert listed(on) == []


async def test_enter_right_behind_the_last_letters_sends_what_was_typed(project: Path):
    async with stage(project) as on:
        await on.type("/co")
        assert "/compact" in listed(on)
        on.box.input.insert("s")  # typed so fast that the list has not heard of it
        on.box.key_send()
        await on.sees("tokens in")


async def test_an_at_sign_completes_files_that_git_does_not_ignore(project: Path):
    (project / "src").mkdir()
    (project / "src" / "parser.py").touch()
    (project / "notes.md").touch()
    (project / "ignored.py").touch()
    (project / ".gitignore").write_text("ignored.py\n")
    async with stage(project, ["ok"]) as on:
        await on.type("Read @par")
        await on.until(lambda: listed(on) == ["@src/parser.py"])
        await on.press("enter")
        assert on.box.text == "Read @src/parser.py "
        await on.type("and @ig")
        await on.until(lambda: listed(on) == ["@.gitignore"])
        await on.press("escape")
        assert listed(on) == []
        assert on.box.text == "Read @src/parser.py and @ig"


async def test_prompts_wait_while_the_agent_works_and_can_be_taken_back(project: Path):
    gate = asyncio.Event()
    async with stage(project, [Reply("one", gate=gate), "two"]) as on:
        await on.send("first")
        await on.until(lambda: len(on.model.requests) == 1)
        await on.send("second")
        await on.send("third")
        assert on.box.queued == ["second", "third"]
        assert "⧗ second" in on.screen
        await on.press("up")
        assert (on.box.text, on.box.queued) == ("third", ["second"])
        gate.set()
        await on.idle()
        assert asked(on) == ["first", "second"]
        assert on.box.text == "third"


async def test_escape_interrupts_and_gives_the_waiting_prompts_back(project: Path):
    async with stage(project, [Reply("never", gate=asyncio.Event())]) as on:
        await on.send("first")
        await on.until(lambda: len(on.model.requests) == 1)
        await on.send("second")
        await on.press("escape")
        await on.until(lambda: not on.app.busy)
        assert "Interrupted." in on.screen
        assert (on.box.text, on.box.queued) == ("second", [])


async def test_a_shell_line_is_run_and_goes_along_with_the_next_prompt(project: Path):
    async with stage(project, ["I see."], size=(120, 30)) as on:
        await on.say("!echo out; echo err >&2; exit 3")
        card: ToolCard = on.entry(ToolCard)
        assert card.state is State.FAILED
        assert {"out", "err", "[exit code 3]"} <= set((card.block.result or "").split("\n"))
        assert not on.model.requests
        await on.say("Why?")
        (prompt,) = asked(on)
        assert prompt.startswith('Why?\n\n<from-the-user kind="shell" what="echo out; echo err >&2; exit 3">\n')
        assert "err" in prompt
        assert on.said(UserPrompt) == ["> Why?\n  + shell: echo out; echo err >&2; exit 3"]
        await on.say("!true")  # no reply is left: nothing is sent by itself


async def test_escape_ends_a_shell_line_and_all_that_it_started(project: Path):
    async with stage(project) as on:
        await on.send("!sleep 600 & echo $! > child; sleep 600")
        await on.until(lambda: (project / "child").exists() and (project / "child").read_text().endswith("\n"))
        await on.send("waits")
        await on.press("escape")
        await on.until(lambda: not on.app.busy)
        await on.until(lambda: on.box.text == "waits")
        assert on.entry(ToolCard).state is State.FAILED
        child = int((project / "child").read_text())
        await on.until(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text())


async def test_the_keys_of_the_agent_are_not_in_the_environment_of_a_shell_line(project: Path):
    async with stage(project, environment={"PATH": "/usr/bin:/bin", "WAVE_API_KEY": "secret"}) as on:
        await on.say("!env")
        assert "secret" not in (on.entry(ToolCard).block.result or "")
