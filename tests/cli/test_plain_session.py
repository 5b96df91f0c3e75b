"""A session of `wave --plain`: prompts, commands, questions and what the agent does, as lines."""

import json
from pathlib import Path

import pytest

from tests.cli.plain_stage import GUARD, NOT_PLAIN, Stage, hook
from wave_agent.testing import Reply, call


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


async def test_an_edit_is_shown_with_line_numbers_before_it_is_made(stage: Stage) -> None:
    (stage.project / "a.txt").write_text("one\ntwo\n")
    edit = call("Edit", file_path=str(stage.project / "a.txt"), old_string="two", new_string="2")
    async with stage.session(
        [Reply(tool_calls=[call("Read", file_path=str(stage.project / "a.txt")), edit]), "ok"]
    ) as wave:
        await wave.sees("You: ")
        wave.enter("Edit.")
        await wave.sees("Question: May Edit a.txt run?")
        await wave.sees("      1  one\n      2 -two\n      2 +2\n")
        await wave.sees("Answer, 1 to ")
        wave.enter("2")
        await wave.sees("  result: changed, +1 -1\n")
        await wave.sees("Wave: ok\n")


async def test_a_project_with_hooks_asks_for_trust(stage: Stage) -> None:
    stage.settings({"hooks": {"PreToolUse": [GUARD]}}, home=False)
    async with stage.session(["Hello."]) as wave:
        await wave.sees("Question: Do you trust this project?")
        await wave.sees("It has hooks: commands that run on your machine")
        await wave.sees("4. Leave\n")
        wave.enter("1")
        await wave.sees("You: ")
        wave.enter("/status")
        await wave.sees("Hooks: 1 of the project skipped\n")
        wave.enter("Hi.")
        await wave.sees("Wave: Hello.\n")
        wave.enter("/exit")
        assert await wave.ends() == 0
    async with stage.session([]) as wave:
        await wave.sees("Answer, 1 to 4: ")
        wave.end_of_input()
        assert await wave.ends() == 0


async def test_a_turned_away_question_interrupts(stage: Stage) -> None:
    async with stage.session([Reply(tool_calls=[call("Bash", command="touch made")]), "Never."]) as wave:
        await wave.sees("You: ")
        wave.enter("Make it.")
        await wave.sees("Answer, 1 to ")
        wave.interrupt()
        await wave.sees("Dismissed. Press Ctrl-C again to quit.\n")
        await wave.sees("Interrupted.\n")
        await wave.sees("You: ")
    assert not (stage.project / "made").exists()


async def test_a_prompt_may_have_many_lines(stage: Stage) -> None:
    async with stage.session(["One.", "Two.", "Three.", "Four."]) as wave:
        await wave.sees("You: ")
        wave.enter("first\\")
        await wave.sees("More: ")
        wave.enter("second")
        await wave.sees("Wave: One.\n")
        await wave.sees("You: ")
        wave.type("!rm\n\n/exit\nlast")  # a paste without a newline at its end
        await wave.sees("3 lines, not sent yet. An empty line sends them, Ctrl-C discards them.\n")
        await wave.sees("More: ")
        wave.enter(" line")
        await wave.sees("More: ")
        wave.enter("")
        await wave.sees("Wave: Two.\n")
        await wave.sees("You: ")
        wave.type('"""\na\n')
        await wave.sees("More: ")
        wave.type('\nb\n"""\n')
        await wave.sees("Wave: Three.\n")
        await wave.sees("You: ")
        wave.enter("x" * 5000)
        await wave.sees("The terminal cut this line after 4,095 bytes, so it was not sent.")
    sent = [request.body["messages"][-1]["content"] for request in stage.requests]
    assert sent == ["first\nsecond", "!rm\n\n/exit\nlast line", "a\n\nb"]


async def test_commands_answer_before_anything_has_happened(stage: Stage) -> None:
    async with stage.session([Reply("Hello.")], project_hooks=False) as wave:
        await wave.sees("You: ")
        for typed, told in (
            ("/help", "/resume [ID]: resume another session of this project; no ID: choose from a list\n"),
            ("/model", "The model is small. Change it with /model NAME.\n"),
            ("/model large", "Using large from the next prompt on.\n"),
            ("/mode plan", "The mode is plan."),
            ("/mode default", "The mode is default."),
            ("/mode bypassPermissions", "There is no mode"),
            ("/permissions", "Mode: default\nDeny: none\n"),
            ("/hooks", "No hooks.\n"),
            ("/hooks trace", "No hook has run yet.\n"),
            ("/output", "There is no such call."),
            ("/cost", "0 tokens in, 0 out"),
            ("/sessions", ""),
            ("/undo", "No changes to files to undo."),
            ("/theme", "/theme needs the full screen: wave without --plain.\n"),
            ("/mcp", "/mcp needs the full screen: wave without --plain, or in a shell: wave mcp.\n"),
            ("/nonsense", "There is no command /nonsense; /help lists them.\n"),
            ("!echo shouted", "\nshouted\n"),
            ("Hi.", "Wave: Hello.\n"),
            ("/export out.md", "Wrote "),
            ("/clear", "New session. To go back to the old one: /resume.\n"),
            ("/resume", "Question: Which session?\n"),
        ):
            wave.enter(typed)
            await wave.sees(told)
            await wave.sees("Answer, 1 to 1: " if typed == "/resume" else "You: ")
        wave.enter("1")
        await wave.sees("Switched session.\n")
        await wave.sees("Resumed a session of 2 messages.\nYou: Hi.\nWave: Hello.\n")
        await wave.sees("You: ")
        wave.enter("/exit")
        assert await wave.ends() == 0
    assert stage.requests[0].body["model"] == "large"
    assert "shouted" in stage.requests[0].body["messages"][-1]["content"]
    assert (stage.project / "out.md").exists()


async def test_a_plan_is_accepted_with_a_number(stage: Stage) -> None:
    async with stage.session(["The plan.", "Done."], permission_mode="plan") as wave:
        await wave.sees("You: ")
        wave.enter("Plan.")
        await wave.sees("Question: Accept this plan?")
        await wave.sees("Answer, 1 to 3: ")
        wave.enter("1")
        await wave.sees("Wave: Done.\n")
        await wave.sees("You: ")
        wave.enter("/mode")
        await wave.sees("The mode is default.")


async def test_a_todo_list_and_failures_have_words(stage: Stage) -> None:
    todos = [
        {"content": "Look", "status": "completed", "activeForm": "Looking"},
        {"content": "Mend", "status": "in_progress", "activeForm": "Mending"},
        {"content": "Rest", "status": "pending", "activeForm": "Resting"},
    ]
    replies = [
        Reply(tool_calls=[call("TodoWrite", todos=todos), call("Bash", command="seq 9; exit 3")]),
        "Done.",
    ]
    async with stage.session(replies, allowed=["Bash"]) as wave:
        await wave.sees("You: ")
        wave.enter("Go.")
        await wave.sees("Todo list: 1 of 3 done\n  done: Look\n  in progress: Mend\n  to do: Rest\n")
        await wave.sees("  failed: ")
        await wave.sees("more lines: /output\n")
        await wave.sees("Wave: Done.\n")


async def test_hooks_that_change_or_add_something_are_lines_too(stage: Stage) -> None:
    rewrite = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "echo other"}}}
    hooks = {
        "UserPromptSubmit": [hook("echo remember the milk", name="milk")],
        "PreToolUse": [hook(f"echo '{json.dumps(rewrite)}'", name="other", statusMessage="Looking at it")],
        "PostToolUse": [hook("exit 1", name="broken")],
    }
    stage.settings({"hooks": hooks})
    async with stage.session([Reply(tool_calls=[call("Bash", command="echo one")]), "Done."], allowed=["Bash"]) as wave:
        await wave.sees("You: ")
        wave.enter("Go.")
        await wave.sees('Hook "milk" on UserPromptSubmit added context')
        await wave.sees("Hook other runs: Looking at it\n")
        await wave.sees('Hook "other" on PreToolUse rewrote the input')
        await wave.sees('Hook "broken" on PostToolUse failed with exit code 1 and was let through')
        await wave.sees("Wave: Done.\n")


async def test_a_blocked_prompt_is_not_kept(stage: Stage) -> None:
    stage.settings({"hooks": {"UserPromptSubmit": [hook("echo not that >&2; exit 2", name="guard")]}})
    async with stage.session([]) as wave:
        await wave.sees("You: ")
        wave.enter("My password is 12345.")
        await wave.sees('Hook "guard" blocked the prompt: not that\n')
        await wave.sees("The prompt was not sent and is not stored.\n")
        await wave.sees("You: ")
        wave.end_of_input()
        assert await wave.ends() == 0
    assert not [file for file in stage.home.rglob("*") if file.is_file() and b"12345" in file.read_bytes()]


async def test_nothing_of_what_others_say_commands_the_terminal(stage: Stage) -> None:
    hostile = "a\x1b]52;c;Z290Y2hh\x07\x1b[2J\x1b[31m\x9b31m\rb\x08\u202ec"
    stage.settings({"hooks": {"UserPromptSubmit": [hook(f"printf '%s' '{json.dumps({'systemMessage': hostile})}'")]}})
    replies = [
        Reply(hostile + "\nnext", tool_calls=[call(f"Bash{hostile}", command=hostile), call("Bash", command=hostile)]),
        hostile,
    ]
    async with stage.session(replies) as wave:
        await wave.sees("You: ")
        wave.enter("Go.")
        await wave.sees("Answer, 1 to ")
        wave.enter("n")
        await wave.sees("Wave: a")
        await wave.sees("You: ")
        assert NOT_PLAIN.search(wave.shown) is None, ascii(wave.shown)


async def test_commands_tell_what_has_happened(stage: Stage) -> None:
    stage.settings({"hooks": {"PreToolUse": [GUARD]}, "models": {"large": {"contextWindow": 100_000}}})
    written = call("Write", file_path=str(stage.project / "a.txt"), content="one\n")
    replies = [Reply(tool_calls=[call("Bash", command="rm x"), written]), "Done."]
    async with stage.session(replies, allowed=["Bash", "Write"]) as wave:
        await wave.sees("You: ")
        wave.enter("Go.")
        await wave.sees("Wave: Done.\n")
        for typed, told in (
            ("/model", "Configured: large.\n"),
            ("/hooks", 'PreToolUse name "Bash": grep -q '),
            ("/hooks trace", "PreToolUse guard.sh: deny, no rm here\n"),
            ("/hooks now", "Use /hooks to list hooks, /hooks trace to list their runs.\n"),
            ("/permissions", "Allow: Bash, Write\n"),
            ("/status", "Model: small\nMode: default\n"),
            ("/output", "Call: Write\n"),
            ("/output 1", "Call: Bash\n  command: rm x\nOutput:\nno rm here\n"),
            ("/output x", "There is no such call."),
            ("/undo", "removed new file: "),
            ("/export a/b.md", "b.md cannot be written: "),
            ("/resume", "There is no other session in this project.\n"),
            ("/resume nothing", "Error: "),
            ("/sessions", "Go."),
        ):
            await wave.sees("You: ")
            wave.enter(typed)
            await wave.sees(told)
    assert not (stage.project / "a.txt").exists()


async def test_what_is_entered_during_a_turn_waits_for_its_end_and_commands_do_not(stage: Stage) -> None:
    waits = call("Bash", command="while [ ! -e gate ]; do sleep 0.02; done")
    async with stage.session([Reply(tool_calls=[waits]), "One.", "Two."], allowed=["Bash"]) as wave:
        await wave.sees("You: ")
        wave.enter("Wait.")
        await wave.sees("Bash: while ")
        wave.enter("And then this.")
        await wave.sees("Queued: it will be sent after this turn.\n")
        wave.enter("/status")
        await wave.sees("Model: small\n")
        (stage.project / "gate").touch()
        await wave.sees("Wave: One.\n")
        await wave.sees("You: And then this.\n")
        await wave.sees("Wave: Two.\n")
    assert stage.requests[-1].body["messages"][-1]["content"] == "And then this."


async def test_an_interrupt_drops_what_waits_and_a_second_one_leaves(stage: Stage) -> None:
    waits = call("Bash", command="while [ ! -e gate ]; do sleep 0.02; done")
    async with stage.session([Reply(tool_calls=[waits]), "Never."], allowed=["Bash"]) as wave:
        await wave.sees("You: ")
        wave.enter("Wait.")
        await wave.sees("Bash: while ")
        wave.enter("And then this.")
        await wave.sees("Queued: it will be sent after this turn.\n")
        wave.interrupt()
        await wave.sees("Interrupting. Press Ctrl-C again to quit.\n")
        await wave.sees("Interrupted.\n")
        await wave.sees("Discarded the queued prompt.\n")
        await wave.sees("You: ")
        wave.interrupt()
        wave.interrupt()
        assert await wave.ends() == 0
    assert len(stage.requests) == 1


async def test_a_line_for_the_memory_goes_into_the_project_s_file(stage: Stage) -> None:
    async with stage.session([], allowed=["Edit", "Write"]) as wave:
        await wave.sees("You: ")
        wave.enter("#Tests are run with make test.")
        await wave.sees("AGENTS.md")
        await wave.sees("You: ")
    assert "Tests are run with make test." in (stage.project / "AGENTS.md").read_text()
