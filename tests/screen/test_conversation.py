"""What one sees of a conversation: answers, calls, thoughts, and what is for the user alone."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from tests.screen.stage import Stage, hooks, stage
from tests.waiting import until
from wave_agent import ModelError
from wave_agent.hooks import allow, deny
from wave_agent.messages import ToolBlock
from wave_agent.screen.answer import AnswerText
from wave_agent.screen.conversation import HEAVY, LIGHT, MANY
from wave_agent.screen.entries import ErrorEntry, HookLine, Info, ReasoningEntry, UserPrompt, Warning_
from wave_agent.screen.todo_card import TodoCard
from wave_agent.screen.tool_card import State, ToolCard
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import RecordingModelServer


async def test_an_answer_is_drawn_as_markdown_with_its_code(project: Path):
    text = "# Title\n\nSome **bold** words.\n\n```python\nprint('hi')\n```\n\n- one\n- two"
    async with stage(project, [text]) as on:
        await on.say("Explain.")
        await on.sees("print('hi')")
        assert on.kinds == ["UserPrompt", "AnswerText"]
        assert on.entry(AnswerText).text == text
        assert "**" not in on.screen
        assert "• one" in on.screen


async def test_an_answer_is_seen_while_it_still_streams(project: Path):
    gate = asyncio.Event()
    replies = [Reply("The first part. ", tool_calls=[call("Read", file_path="a")]), Reply("Rest.", gate=gate)]
    async with (
        RecordingModelServer(replies) as server,
        stage(project, base_url=server.base_url, model="any") as on,
    ):
        await on.send("Go.")
        await on.sees("The first part.")
        await on.sees("Working")
        assert on.app.busy
        gate.set()
        await on.idle()
        await on.sees("Rest.")
        assert "Working" not in on.screen
    assert server.requests[0].body["messages"][-1]["content"] == "Go."


async def test_nothing_that_a_model_writes_is_markup_or_html_or_hidden(project: Path):
    text = (
        "[red]not red[/red] <b>bold?</b> &#8238;x \x1b[31mescape\x1b[0m [link=file:///etc]l[/link]\n\n<div>block</div>"
    )
    async with stage(project, [text], size=(140, 30)) as on:
        await on.say("[bold]my[/bold] \x1b[2Jprompt")
        await on.sees("[red]not red[/red] <b>bold?</b> &#8238;x escape [link=file:///etc]l[/link]")
        await on.sees("<div>block</div>")
        assert "> [bold]my[/bold] prompt" in on.screen


async def test_a_call_is_a_card_that_opens_to_its_input_and_output(project: Path):
    replies = [Reply(tool_calls=[call("Bash", command="printf 'one\\ntwo\\n'")]), "done"]
    async with stage(project, replies, permission_mode="bypassPermissions") as on:
        await on.say("Run it.")
        card: ToolCard = on.entry(ToolCard)
        assert card.state is State.DONE
        assert "● Bash printf 'one\\ntwo\\n'  2 lines" in on.screen
        assert "$ printf" not in on.screen
        await on.press("ctrl+o")
        await on.sees("$ printf 'one\\ntwo\\n'")
        assert [line.strip() for line in on.screen.splitlines() if line.strip() in ("one", "two")] == ["one", "two"]
        await on.press("ctrl+o")
        assert "$ printf" not in on.screen


@pytest.mark.parametrize("prints", ["echo begun", "printf 'ended\\rbegun'"])
async def test_a_running_command_shows_its_last_line(project: Path, prints: str):
    command = f"{prints}; until [ -e go ]; do sleep 0.01; done"
    replies = [Reply(tool_calls=[call("Bash", command=command)]), "done"]
    async with stage(project, replies, permission_mode="bypassPermissions") as on:
        await on.send("Run it.")
        await on.sees(f"◌ Bash {prints}")
        await on.until(lambda: "\n  begun" in str(on.entry(ToolCard).visual))
        (project / "go").touch()
        await on.idle()
        assert on.entry(ToolCard).state is State.DONE


async def test_an_edit_opens_to_its_change(project: Path):
    (project / "a.py").write_text("x = 1\ny = 2\n")
    edit = call("Edit", file_path="a.py", old_string="x = 1", new_string="x = 3")
    replies = [Reply(tool_calls=[call("Read", file_path="a.py")]), Reply(tool_calls=[edit]), "done"]
    async with stage(project, replies, permission_mode="acceptEdits") as on:
        await on.say("Change it.")
        assert "● Edit a.py  +1 -1" in on.screen
        await on.press("ctrl+o")
        await on.sees("-x = 1")
        assert "+x = 3" in on.screen


async def test_a_failed_call_says_why_and_a_blocked_one_too(project: Path):
    guard = hooks("PreToolUse", lambda _: deny("not in this project"), matcher="Bash")
    replies = [Reply(tool_calls=[call("Read", file_path="nowhere"), call("Bash", command="rm -rf x")]), "done"]
    async with stage(project, replies, hooks=guard) as on:
        await on.say("Try.")
        failed, blocked = [entry for entry in on.entries if isinstance(entry, ToolCard)]
        assert (failed.state, blocked.state) == (State.FAILED, State.BLOCKED)
        assert "✗ Read nowhere  failed" in on.screen
        assert "does not exist" in str(failed.visual)
        assert "⊘ Bash rm -rf x  blocked" in on.screen
        assert "not in this project" in str(blocked.visual)


async def test_a_rule_that_denies_shows_as_blocked(project: Path):
    settings = ({"permissions": {"deny": ["Bash(rm:*)"]}},)
    replies = [Reply(tool_calls=[call("Bash", command="rm x")]), "done"]
    async with stage(project, replies, overlays=settings) as on:
        await on.say("Try.")
        assert on.entry(ToolCard).state is State.BLOCKED
        assert "Not run: denied by the permission rule Bash(rm:*)" in on.screen


async def test_the_reason_why_a_prompt_was_refused_is_shown_once_and_feedback_too(project: Path):
    guards = {
        **hooks("UserPromptSubmit", lambda event: deny("not on a Sunday") if "now" in event.prompt else None),
        **hooks("PostToolUse", lambda _: deny("please say please")),
    }
    replies = [Reply(tool_calls=[call("Bash", command="true")]), "done"]
    async with stage(project, replies, hooks=guards, permission_mode="bypassPermissions") as on:
        await on.say("Do it now.")
        assert on.screen.count("not on a Sunday") == 1
        await on.say("Do it.")
        assert on.screen.count("please say please") == 1
        session = on.agent.session_id
    async with stage(project, hooks=guards, resume=session) as on:
        assert on.screen.count("not on a Sunday") == 1
        assert on.screen.count("please say please") == 1


def todos(*statuses: str) -> Reply:
    names = zip(("Read", "Fix", "Test"), statuses, strict=True)
    listed = [{"content": f"{name} it", "status": status, "activeForm": f"{name}ing it"} for name, status in names]
    return Reply(tool_calls=[call("TodoWrite", todos=listed)])


async def test_a_list_of_things_to_do_is_shown_as_one_and_only_the_latest_whole(project: Path):
    gate = asyncio.Event()
    waiting = Reply("Fixed.", gate=gate)
    replies = [todos("in_progress", "pending", "pending"), todos("completed", "in_progress", "pending"), waiting]
    async with (
        RecordingModelServer(replies) as server,
        stage(project, base_url=server.base_url, model="any") as on,
    ):
        await on.send("Fix it.")
        await on.sees("TodoWrite 1 of 3 done")
        await on.sees("Fixing it")
        first, latest = [entry for entry in on.entries if isinstance(entry, TodoCard)]
        whole = "● TodoWrite 1 of 3 done\n  ✓ Read it\n  ▸ Fix it\n  ○ Test it"
        assert (str(first.visual), str(latest.visual)) == ("● TodoWrite 0 of 3 done", whole)
        first.toggle()
        assert str(first.visual) == "● TodoWrite 0 of 3 done\n  ▸ Read it\n  ○ Fix it\n  ○ Test it"
        gate.set()
        await on.idle()
        session = on.agent.session_id
    async with stage(project, resume=session) as on:
        assert on.said(TodoCard) == ["● TodoWrite 0 of 3 done", whole]


async def test_a_list_that_was_refused_leaves_the_one_before_in_its_place(project: Path):
    two = todos("in_progress", "in_progress", "pending")
    async with stage(project, [todos("in_progress", "pending", "pending"), two, "done"]) as on:
        await on.say("Fix it.")
        first, refused = on.said(TodoCard)
        assert "▸ Read it" in first
        assert "more than one item is in_progress" in refused
        assert "▸" not in refused


async def test_a_command_says_what_it_is_for(project: Path):
    command = call("Bash", command="touch x", description="Check \x1b[31mnothing")
    async with stage(project, [Reply(tool_calls=[command]), "done"]) as on:
        await on.send("Run it.")
        await on.sees("The model says: Check nothing")
        await on.press("y")
        await on.idle()
        assert "● Bash touch x  Check nothing · 1 line" in on.screen


async def test_thoughts_are_folded(project: Path):
    async with stage(project, [Reply("Forty-two.", reasoning="First six.\nThen seven.")]) as on:
        await on.say("How much?")
        assert "∴ Thought, 2 lines" in on.screen
        assert "Then seven." not in on.screen
        await on.press("ctrl+o")
        await on.sees("Then seven.")
        assert on.kinds == ["UserPrompt", "ReasoningEntry", "AnswerText"]
        assert on.entry(ReasoningEntry).opened


async def test_errors_and_notices_say_that_they_are_for_the_user_alone(project: Path):
    told = hooks("UserPromptSubmit", lambda _: {"systemMessage": "mind the [gap]"})
    async with stage(project, [ModelError("the server is down")], hooks=told) as on:
        await on.say("Hello.")
        assert on.said(Warning_) == ["! Shown only to you: mind the [gap]"] or on.said(Info) == ["· mind the [gap]"]
        assert on.said(ErrorEntry) == ["✗ Error, shown only to you: the server is down"]


async def test_a_long_notice_is_folded(project: Path):
    long = "\n".join(f"line {number}" for number in range(40))
    async with stage(project, [ModelError(long)]) as on:
        await on.say("Hello.")
        assert "… 28 more lines, Ctrl-O shows them" in on.screen
        await on.press("ctrl+o")
        await on.sees("line 39")


async def test_a_long_prompt_is_folded_too(project: Path):
    async with stage(project, ["ok"]) as on:
        await on.say("\n".join(f"line {number}" for number in range(40)))
        assert "… 28 more lines" in str(on.entry(UserPrompt).visual)


async def test_it_follows_the_stream_until_the_user_scrolls_away_and_then_stays(project: Path):
    gate = asyncio.Event()
    text = "\n\n".join(f"paragraph {number}" for number in range(60))
    async with stage(project, [text, Reply(text.replace("paragraph", "sentence"), gate=gate)], size=(80, 24)) as on:
        await on.say("One.")
        await on.sees("paragraph 59")
        await on.send("Two.")
        await on.sees("> Two.")
        await on.press("pageup", "pageup")
        place = on.conversation.scroll_offset.y
        gate.set()
        await on.idle()
        assert on.conversation.scroll_offset.y == place
        assert "sentence" not in on.screen
        await on.press("ctrl+end")
        await on.sees("sentence 59")


async def test_a_long_answer_is_drawn_in_pieces_and_loses_nothing(project: Path):
    text = "\n\n".join(f"Paragraph number {number} with a few more words in it." for number in range(150))
    async with stage(project, [text]) as on:
        await on.say("Much.")
        await on.sees("Paragraph number 149 ")
        assert text.endswith(answers(on))
        assert on.conversation.weight < HEAVY + LIGHT  # the others have left the screen
        await on.press("ctrl+home")
        await on.sees("Paragraph number 0 ")
        read = set[str]()
        while "Paragraph number 149 " not in on.screen:
            read.update(on.screen.split("\n"))
            await on.press("pagedown")
            await on.pilot.pause()
        read.update(on.screen.split("\n"))
        missing = [number for number in range(150) if not any(f"Paragraph number {number} " in line for line in read)]
        assert missing == []


def answers(on: Stage) -> str:
    return "".join(entry.text for entry in on.entries if isinstance(entry, AnswerText))


SHAPES = {
    "lines": "Some words about the parser, which reads tokens one by one.\n",
    "one line": "Some words about the parser, which reads tokens one by one. ",
    "list": "- an item of a list\n",
    "table": "| a cell | another cell |\n",
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_an_answer_without_blank_lines_is_drawn_in_pieces_too(project: Path, shape: str):
    start = "| a | b |\n|---|---|\n" if shape == "table" else ""
    text = start + SHAPES[shape] * (30_000 // len(SHAPES[shape])) + "the end"
    async with stage(project, [Reply(text)]) as on:
        await on.say("Much.")
        await on.sees("the end")
        assert max(len(entry.text) for entry in on.entries if isinstance(entry, AnswerText)) < 3000
        assert on.conversation.weight < HEAVY + LIGHT
        assert len(list(on.conversation.query("*"))) < 1000
        assert len(answers(on)) < 15_000  # of 30,000 characters


async def test_an_answer_that_streams_below_the_view_is_not_drawn_until_one_goes_there(project: Path):
    gate = asyncio.Event()
    long = "\n\n".join(f"sentence {number}" for number in range(1000))
    replies = ["\n\n".join(f"paragraph {number}" for number in range(60)), Reply(long, gate=gate)]
    async with stage(project, replies, size=(80, 24)) as on:
        await on.say("One.")
        await on.send("Two.")
        await on.sees("> Two.")
        await on.press("pageup", "pageup")
        place = on.conversation.scroll_offset.y
        gate.set()
        await on.idle()
        assert on.conversation.scroll_offset.y == place
        assert on.conversation.weight < HEAVY + LIGHT
        while "sentence 60" not in on.screen:
            await on.press("pagedown")
            await on.pilot.pause()
        await on.press("ctrl+end")
        await on.sees("sentence 999")
        assert on.conversation.is_following


async def test_a_long_conversation_keeps_few_widgets_and_brings_the_others_back(project: Path):
    async with stage(project, size=(80, 24)) as on:
        await on.conversation.fill([partial(Info, f"line {number}") for number in range(400)])
        await on.until(lambda: "line 399" in on.screen)
        assert len(on.entries) == 40
        await on.press(*["pageup"] * 4)
        await on.until(lambda: len(on.entries) == 80)
        await on.sees("line 360")  # what was in view stays in view
        for _ in range(20):
            await on.press("pageup")
            await on.pilot.pause()
        assert len(on.entries) <= MANY // 2 + 40
        assert "line 399" not in on.screen
        await on.press("ctrl+home")
        await on.sees("line 0")
        assert len(on.entries) <= MANY // 2 + 40
        await on.press("ctrl+end")
        await on.sees("line 399")
        assert on.conversation.is_following


async def test_what_was_said_long_ago_leaves_the_screen_and_can_be_brought_back(project: Path):
    async with stage(project, size=(80, 24)) as on:
        for number in range(170):
            await on.conversation.add(Info(f"line {number}"))
            await on.pilot.pause() if number % 40 == 0 else None
        await on.until(lambda: on.conversation.is_following)
        await on.conversation.add(Info("last"))
        assert len(on.entries) < 170
        await on.press("ctrl+home")
        await on.sees("line 0")


async def test_a_card_that_left_the_screen_while_it_ran_is_up_to_date_when_it_is_back(project: Path):
    async with stage(project, size=(80, 24)) as on:
        card = ToolCard(ToolBlock("one", "Bash", {"command": "make"}), str(project))
        await on.conversation.add(card)
        for number in range(100):
            await on.conversation.add(Info(f"line {number}"))
        await on.until(lambda: card not in on.entries)
        await on.press("ctrl+home")
        await on.sees("◌ Bash make")
        on.conversation.latest(card).output("begun\n")
        await on.sees("  begun")
        on.conversation.latest(card).finish(ToolBlock("one", "Bash", {"command": "make"}, "done\n", True))
        await on.sees("● Bash make")


async def test_the_cards_can_be_walked_by_keyboard(project: Path):
    calls = [call("Bash", command=f"echo {number}") for number in range(3)]
    replies = [Reply(tool_calls=calls), "done"]
    async with stage(project, replies, permission_mode="bypassPermissions") as on:
        await on.say("Three.")
        cards = on.conversation.cards
        await on.press("tab")
        assert cards[2].has_focus
        await on.press("up", "up", "enter")
        assert [card.opened for card in cards] == [True, False, False]
        await on.press("down", "ctrl+o")
        assert [card.opened for card in cards] == [True, True, False]
        await on.press("escape")
        assert on.box.input.has_focus
        await on.press("tab", "h", "i")
        assert on.box.text == "hi"


async def test_an_erased_prompt_is_gone_from_the_screen_and_the_up_key_brings_it_back(project: Path, home: Path):
    guard = hooks("UserPromptSubmit", lambda _: deny("no secrets"))
    async with stage(project, hooks=guard) as on:
        await on.say("my password is hunter2")
        assert "hunter2" not in on.screen
        assert "blocked and erased" in on.screen
        assert on.said(ErrorEntry) == ["✗ Error, shown only to you: no secrets"]
        await on.press("up")
        assert on.box.text == "my password is hunter2"
    assert not [file for file in home.rglob("*") if file.is_file() and b"hunter2" in file.read_bytes()]


async def test_a_fault_of_the_program_is_told_and_the_screen_lives_on(project: Path):
    async with stage(project, []) as on:  # a model without a reply raises what no model raises
        await on.say("Hello.")
        assert "Internal error: AssertionError" in on.screen
        assert not on.app.busy


def silent(event: object) -> None:
    pass


async def test_hooks_without_an_opinion_leave_no_line_unless_wanted(project: Path):
    quiet = hooks("UserPromptSubmit", silent, lambda _: allow())
    async with stage(project, ["a"], hooks=quiet) as on:
        await on.say("Hello.")
        assert on.kinds == ["UserPrompt", "AnswerText"]
    async with stage(project, ["a"], hooks=quiet, every_hook=True) as on:
        await on.say("Hello.")
        assert on.kinds.count("HookLine") == 2
        assert "had no opinion" in on.said(HookLine)[0]


async def test_it_is_waited_for_all_that_happened(project: Path):
    async def settled(on: Stage) -> None:
        await until(lambda: not on.app.busy)

    async with stage(project, ["word " * 500]) as on:
        await on.send("Much.")
        await settled(on)
        assert answers(on) == "word " * 500
