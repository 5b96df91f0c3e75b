"""Skills, commands and agents on the screen, and the memory of the project."""

from pathlib import Path
from typing import Any

from tests.screen.stage import hooks, stage
from wave_agent.hooks import deny
from wave_agent.screen.entries import ErrorEntry, Info, UserPrompt, Warning_
from wave_agent.screen.hooks_view import HooksView
from wave_agent.screen.permission import PermissionDialog
from wave_agent.screen.tool_card import State, ToolCard
from wave_agent.screen.trust import TrustQuestion


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def test_what_a_command_runs_is_a_card_and_its_output_goes_into_the_prompt(project: Path, home: Path):
    write(home / "commands" / "go.md", "Go.\n!`cat a.txt`")
    write(project / "a.txt", "text-7")
    async with stage(project, ["done"]) as on:
        await on.say("/go")
        assert on.model.requests[0].messages[-1]["content"] == ('Go.\n<output command="cat a.txt">\ntext-7\n</output>')
        assert on.said(UserPrompt) == ["> /go"]
        card = on.entry(ToolCard)
        assert card.state is State.DONE


async def test_a_command_that_is_refused_is_erased_and_not_in_the_history(project: Path, home: Path):
    write(home / "commands" / "go.md", "Go.")
    guard = hooks("UserPromptExpansion", lambda _: {"decision": "block", "reason": "not on Fridays"})
    async with stage(project, hooks=guard) as on:
        await on.say("/go word-7")
        assert "not on Fridays" in str(on.entry(ErrorEntry).visual)
        assert not on.model.requests
    assert not any("word-7" in file.read_text(errors="replace") for file in home.rglob("*") if file.is_file())


async def test_skills_and_commands_are_listed_with_what_was_left_out(project: Path, home: Path):
    write(home / "skills" / "review" / "SKILL.md", "---\ndescription: reviews code\n---\nLook.")
    write(home / "commands" / "broken.md", "---\na: [\n---\nx")
    write(project / ".wave" / "skills" / "review" / "SKILL.md", "Mine.")
    write(home / "commands" / "help.md", "Help me.")
    write(home / "agents" / "tester.md", "---\nname: tester\ndescription: tests things\n---\nTest.")
    write(home / "agents" / "explore.md", "---\nname: explore\ndescription: explores my way\n---\nLook.")
    async with stage(project, size=(140, 30)) as on:
        assert "Not available here, because the screen has a command of that name: /help" in on.said(Info)[0]
        await on.type("/rev")
        await on.sees("reviews code")
        on.box.put("")
        await on.send("/skills")
        await on.until(lambda: isinstance(on.app.screen, HooksView))
        for text in ("/review", "reviews code", "another one has this name", "has an invalid front matter, line 2"):
            assert text in on.screen
        await on.press("escape")
        await on.send("/agents")
        await on.sees("tests things")
        await on.sees("explores my way")
        assert on.screen.count("built in") == 1
        assert "the built-in one is replaced: /" in on.screen


async def test_without_any_the_views_say_how_to_add_one(project: Path):
    async with stage(project) as on:
        await on.send("/skills")
        await on.sees("None. Put a skill into .wave/skills/NAME/SKILL.md")
        await on.press("escape")
        await on.send("/agents")
        await on.sees("Your own go into .wave/agents/NAME.md.")
        await on.sees("general-purpose")
        await on.sees("explore")
        await on.sees("built in")


async def test_init_sends_the_prompt_that_ships_with_the_program(project: Path):
    async with stage(project, ["done"]) as on:
        await on.say("/init")
        assert on.model.requests[0].messages[-1]["content"].startswith("Write a first AGENTS.md")
        assert on.said(UserPrompt) == ["> /init"]


async def test_a_line_for_the_memory_of_the_project_is_asked_about_and_written(project: Path):
    write(project / "AGENTS.md", "# Here\n")
    async with stage(project) as on:
        await on.send("#Use tabs.")
        await on.until(lambda: on.asks(PermissionDialog) is not None)
        assert "Add this line to AGENTS.md?" in on.screen
        assert "tell the model" not in on.screen
        await on.press("n")
        await on.idle()
        assert on.said(Warning_)[-1] == "! Shown only to you: Not added to AGENTS.md: you said no."
        await on.send("#Use tabs.")
        await on.until(lambda: on.asks(PermissionDialog) is not None)
        await on.press("y")
        await on.idle()
        assert on.said(Info)[-1] == "· Added to AGENTS.md: - Use tabs."
        assert not on.model.requests
    assert (project / "AGENTS.md").read_text() == "# Here\n- Use tabs.\n"


async def test_a_prompt_about_an_issue_is_not_a_line_of_the_instructions(project: Path) -> None:
    async with stage(project, ["Fixed."]) as on:
        await on.say("#42 still fails")
        (request,) = on.model.requests
    assert request.messages[-1]["content"] == "#42 still fails"
    assert not (project / "AGENTS.md").exists()


async def test_a_guard_of_edits_guards_the_memory_too(project: Path):
    write(project / "AGENTS.md", "# Here\n")
    guard = hooks("PreToolUse", lambda _: deny("hands off"), matcher="Edit")
    async with stage(project, hooks=guard, permission_mode="acceptEdits") as on:
        await on.say("#Use tabs.")
        assert "hands off" in on.said(Warning_)[-1]
        await on.say("#")
    assert (project / "AGENTS.md").read_text() == "# Here\n"


async def test_untrusted_skills_are_asked_about_and_trust_in_them_can_be_kept(project: Path):
    file = write(project / ".wave" / "skills" / "review" / "SKILL.md", "---\ndescription: reviews code\n---\nLook.")
    options: dict[str, Any] = {"trust": False, "wait_for_agent": False}
    async with stage(project, **options) as on:
        await on.until(lambda: on.asks(TrustQuestion) is not None)
        assert ".wave/skills/review (not trusted yet): reviews code" in on.screen
        await on.press("k")
        await on.until(lambda: on.app.open_agent is not None)
        assert list(on.app.custom) == ["review"]
    async with stage(project, trust=False) as on:
        assert list(on.app.custom) == ["review"]
    file.write_text("Obey.")
    async with stage(project, **options) as on:
        await on.until(lambda: on.asks(TrustQuestion) is not None)
        assert "changed since it was trusted" in on.screen
        await on.press("o")
        await on.until(lambda: on.app.open_agent is not None)
        assert on.app.custom == {}


async def test_the_question_shows_what_untrusted_commands_and_agents_may_do_and_what_is_left_out(project: Path):
    root = project / ".wave"
    write(root / "commands" / "ship.md", "---\nallowed-tools: Bash(git push:*)\n---\nShip.\n!`make all`")
    write(root / "commands" / "broken.md", "---\na: [\n---\nx")
    hook = "hooks:\n  Stop:\n    - command: ./stop.sh"
    write(root / "agents" / "fixer.md", f"---\nname: fixer\ndescription: fixes\ntools: Bash\n{hook}\n---\nFix.")
    async with stage(project, trust=False, wait_for_agent=False, size=(140, 50)) as on:
        await on.until(lambda: on.asks(TrustQuestion) is not None)
        for text in (
            *(".wave/commands/ship.md (not trusted yet)", "allows without asking: Bash(git push:*)"),
            *("runs, when called as /ship: make all", ".wave/commands/broken.md: left out, it has an invalid front"),
            *("tools: Bash", "hook on SubagentStop: ./stop.sh"),
        ):
            assert text in on.screen, text
        await on.press("l")
        await on.until(lambda: not on.app.is_running)


async def test_what_would_be_left_out_anyway_is_no_question(project: Path):
    write(project / ".wave" / "commands" / "broken.md", "---\na: [\n---\nx")
    async with stage(project, trust=False) as on:
        assert on.asks(TrustQuestion) is None
        await on.send("/skills")
        await on.sees("it has an invalid front matter, line 2")
