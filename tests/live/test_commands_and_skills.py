"""Commands and skills: what the model gets, and that no command dodges a guard."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent.testing import Reply, call

LOGS = 'cat >> "$WAVE_PROJECT_DIR/log"; echo >> "$WAVE_PROJECT_DIR/log"'


def write(project: Project, name: str, text: str) -> Path:
    path = project.directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def command(project: Project, name: str, text: str, front: str = "description: does something") -> Path:
    return write(project, f".wave/commands/{name}.md", f"---\n{front}\n---\n{text}")


def skill(project: Project, name: str = "review", front: str = "", text: str = "Look at $ARGUMENTS.") -> Path:
    return write(project, f".wave/skills/{name}/SKILL.md", f"---\ndescription: reviews code\n{front}\n---\n{text}")


def run(project: Project, *arguments: str, replies: tuple[Any, ...] = ("done",), piped: str | None = None) -> Any:
    """The result object, with what the model got and what was told."""
    with serving(*replies) as server:
        done = project.wave("-p", *arguments, "--output-format", "json", server=server, piped=piped)
    result = json.loads(done.stdout)
    result["requests"] = [request.body["messages"] for request in server.requests]
    result["exit"], result["stderr"] = done.returncode, done.stderr
    return result


def prompts(result: Any) -> list[str]:
    """What the model got from the user in the last request."""
    return [one["content"] for one in result["requests"][-1] if one["role"] == "user"]


def logged(project: Project) -> list[dict[str, Any]]:
    log = project.directory / "log"
    return [json.loads(line) for line in log.read_text().splitlines() if line] if log.exists() else []


def transcript(result: Any) -> str:
    return Path(result["transcript_path"]).read_text()


# ------------------------------------------------------------------------------------------------------------ commands


def test_a_command_becomes_its_text_with_arguments_files_and_output(project: Project) -> None:
    write(project, "notes.txt", "buy milk\n")
    command(project, "fix", "Fix $1: $ARGUMENTS.\nFrom !`echo out-$2`, see @notes.txt", "allowed-tools: Bash(echo:*)")
    result = run(project, "/fix bug 7", "--trust", piped="piped /fix @notes.txt")
    prompt, permitted = prompts(result)
    assert "these calls need no consent: Bash(echo:*)." in permitted
    output = '<output command="echo out-7">\nout-7\n</output>'
    assert prompt.startswith(f'Fix bug: bug 7.\nFrom {output}, see @notes.txt\n\n<file path="notes.txt">\n')
    assert "buy milk" in prompt
    assert prompt.endswith("</file>\n\npiped /fix @notes.txt")
    assert prompt.count("buy milk") == 1
    assert result["exit"] == 0


def test_what_is_piped_is_never_expanded(project: Project) -> None:
    command(project, "fix", "Fix it.")
    with serving("done") as server:
        project.wave("-p", "--trust", server=server, piped="/fix now")
    assert server.requests[0].body["messages"][-1]["content"] == "/fix now"


def test_hooks_see_the_command_before_it_is_expanded_and_the_text_after(project: Project) -> None:
    write(project, "a.txt", "x")
    command(project, "go", "Go to $1.\n!`cat a.txt`")
    events = ("UserPromptExpansion", "UserPromptSubmit", "PreToolUse", "PostToolUse")
    project.settings({"hooks": {event: [{"hooks": [{"command": LOGS}]}] for event in events}})
    result = run(project, "/go there", "--trust")
    seen = logged(project)
    assert [one["hook_event_name"] for one in seen] == [
        "UserPromptExpansion", "PreToolUse", "PostToolUse", "UserPromptSubmit",
    ]  # fmt: skip
    assert {key: seen[0][key] for key in ("expansion_type", "command_name", "command_args", "command_source")} == {
        "expansion_type": "slash_command",
        "command_name": "go",
        "command_args": "there",
        "command_source": "project",
    }
    assert seen[0]["prompt"] == "/go there"
    assert (seen[1]["tool_name"], seen[1]["tool_input"]["command"]) == ("Bash", "cat a.txt")
    text = 'Go to there.\n<output command="cat a.txt">\nx\n</output>'
    assert seen[3]["prompt"] == text
    assert prompts(result) == [text]


def test_a_refused_command_leaves_nothing_behind(project: Project) -> None:
    command(project, "go", "Secret plan.\n!`touch made`", "allowed-tools: Bash")
    hook = {"matcher": "go", "hooks": [{"command": "echo 'not on Fridays' >&2; exit 2"}]}
    project.settings({"hooks": {"UserPromptExpansion": [hook]}})
    result = run(project, "/go word-7", "--trust")
    assert (result["status"], result["exit"], result["requests"]) == ("blocked", 3, [])
    assert "not on Fridays" in result["stderr"]
    assert not (project.directory / "made").exists()
    assert "word-7" not in transcript(result)
    assert "Secret plan" not in transcript(result)


def test_a_guard_on_prompts_is_not_dodged_by_a_command(project: Project) -> None:
    command(project, "go", "Please do the forbidden thing.")
    guard = 'grep -q "forbidden thing" && { echo no-way >&2; exit 2; } || exit 0'
    project.settings({"hooks": {"UserPromptSubmit": [{"hooks": [{"command": guard}]}]}})
    result = run(project, "/go word-7", "--trust")
    assert (result["status"], result["requests"]) == ("blocked", [])
    assert "Please do" not in transcript(result)
    assert "word-7" not in transcript(result)


@pytest.mark.parametrize(
    ("settings", "status", "why"),
    [
        ({"permissions": {"deny": ["Bash(touch:*)"]}}, "error", "denied by the permission rule Bash(touch:*)"),
        ({"permissions": {"ask": ["Bash(touch:*)"]}}, "error", "the rule Bash(touch:*) asks"),
        (
            {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": "echo guarded >&2; exit 2"}]}]}},
            "blocked",
            "guarded",
        ),
    ],
    ids=["deny", "ask", "hook"],
)
def test_a_line_that_may_not_run_stops_the_command(
    project: Project, settings: dict[str, Any], status: str, why: str
) -> None:
    command(project, "go", "Go.\n!`touch made`", "allowed-tools: Bash")
    project.settings(settings)
    result = run(project, "/go", "--trust")
    assert (result["status"], result["requests"]) == (status, [])
    assert why in result["stderr"]
    assert not (project.directory / "made").exists()


def test_a_line_needs_consent_unless_the_command_allows_it(project: Project) -> None:
    command(project, "go", "Go.\n!`touch made`", "allowed-tools: Read")
    result = run(project, "/go", "--trust")
    assert result["status"] == "error"
    assert "needs your consent. To allow it: --allowed-tools 'Bash(touch made)'" in result["error"]
    assert not (project.directory / "made").exists()


def test_a_file_that_may_not_be_read_is_not_attached(project: Project) -> None:
    write(project, ".env", "KEY=secret-7")
    command(project, "go", "See @.env")
    project.settings({"permissions": {"deny": ["Read(.env)"]}})
    result = run(project, "/go", "--trust")
    assert (result["status"], result["requests"]) == ("error", [])
    assert "secret-7" not in json.dumps(result)


@pytest.mark.parametrize("prompt", ["/etc/hosts is odd", "/tmp is full", "/", "/ what", " /fix it", "a /fix"])
def test_a_path_is_an_ordinary_prompt(project: Project, prompt: str) -> None:
    command(project, "fix", "Fix it.")
    assert prompts(run(project, prompt, "--trust")) == [prompt]


def test_an_unknown_command_is_an_error_with_the_nearest_name(project: Project) -> None:
    command(project, "deploy", "Deploy it.")
    result = run(project, "/deplo now", "--trust")
    assert (result["status"], result["exit"], result["requests"]) == ("error", 1, [])
    assert 'There is no command /deplo (did you mean "deploy"?)' in result["error"]


def test_an_untrusted_command_is_left_out_and_named(project: Project) -> None:
    command(project, "deploy", "Deploy it.")
    result = run(project, "/deploy")
    assert result["exit"] == 1
    assert (
        result["error"]
        == "/deploy is not used: .wave/commands/deploy.md is not trusted yet. Review it with wave hooks trust."
    )
    assert "Not used until you trust them: .wave/commands/deploy.md (not trusted yet)" in result["stderr"]
    shown = project.wave("hooks", "trust", "--yes")
    assert "NOT TRUSTED  commands: .wave/commands/deploy.md" in shown.stdout
    assert prompts(run(project, "/deploy")) == ["Deploy it."]
    command(project, "deploy", "Do something else.")
    assert "changed since it was trusted" in run(project, "/deploy")["stderr"]
    assert run(project, "/deploy", "--no-project-hooks")["exit"] == 1


def test_a_broken_command_is_left_out_with_its_line(project: Project) -> None:
    command(project, "broken", "Do it.", "a: [b")
    result = run(project, "hello", "--trust")
    assert result["exit"] == 0
    assert ".wave/commands/broken.md is not used: it has an invalid front matter, line 2: " in result["stderr"]


def test_init_asks_the_model_for_a_first_agents_md(project: Project) -> None:
    write_it = call("Write", file_path="AGENTS.md", content="# How to work here\n")
    result = run(project, "/init", "--permission-mode", "acceptEdits", replies=(Reply(tool_calls=[write_it]), "Done."))
    assert result["requests"][0][-1]["content"].startswith("Write a first AGENTS.md for this project")
    assert (project.directory / "AGENTS.md").read_text() == "# How to work here\n"


# -------------------------------------------------------------------------------------------------------------- skills


def test_skills_are_listed_and_loaded_by_a_tool(project: Project) -> None:
    file = skill(project)
    write(project, ".wave/skills/review/rules.md", "Be kind.")
    replies = (Reply(tool_calls=[call("Skill", skill="review", args="a.py")]), "done")
    result = run(project, "go", "--trust", replies=replies)
    first, second = result["requests"]
    assert "Skills:\n\nThe tool Skill loads one of these.\n- review: reviews code" in first[0]["content"]
    assert second[-1]["content"] == f"Skill review. Its files are in {file.parent}\n\nLook at a.py."
    assert second[0] == first[0]


def test_without_trust_the_model_does_not_hear_of_a_skill(project: Project) -> None:
    skill(project)
    result = run(project, "go")
    assert "review" not in result["requests"][0][0]["content"]
    assert ".wave/skills/review (not trusted yet)" in result["stderr"]


def test_who_may_call_a_skill_is_up_to_it(project: Project) -> None:
    skill(project, "manual", "disable-model-invocation: true")
    skill(project, "hidden", "user-invocable: false")
    replies = (Reply(tool_calls=[call("Skill", skill="manual")]), "done")
    result = run(project, "go", "--trust", replies=replies)
    assert "- hidden: " in result["requests"][0][0]["content"]
    assert "manual" not in result["requests"][0][0]["content"]
    assert "Only the user may call the skill manual, as /manual." in result["requests"][1][-1]["content"]
    assert prompts(run(project, "/manual x", "--trust"))[0].endswith("Look at x.")
    assert "There is no command /hidden" in run(project, "/hidden x", "--trust")["error"]


def test_a_skill_that_changes_in_the_session_is_not_used(project: Project) -> None:
    file = skill(project)
    change = call("Bash", command=f"echo Obey. >> {file}")
    replies = (Reply(tool_calls=[change]), Reply(tool_calls=[call("Skill", skill="review")]), "done")
    project.settings({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": f"echo Obey. >> {file}"}]}]}})
    result = run(project, "go", "--trust", replies=replies)
    assert "The skill review has changed since this session started" in result["requests"][2][-1]["content"]
    assert "Obey" not in result["requests"][2][-1]["content"]


def test_what_a_skill_allows_runs_for_the_rest_of_the_turn_but_not_against_a_rule(project: Project) -> None:
    skill(project, front="allowed-tools: Bash(touch:*) Write")
    project.settings({"permissions": {"deny": ["Bash(touch denied)"], "ask": ["Bash(touch asked)"]}})
    calls = [call("Bash", command=f"touch {name}") for name in ("made", "denied", "asked")]
    protected = call("Write", file_path=".wave/settings.json", content="{}")
    replies = (Reply(tool_calls=[call("Skill", skill="review")]), Reply(tool_calls=[*calls, protected]), "done")
    run(project, "go", "--trust", replies=replies)
    assert sorted(set(os.listdir(project.directory)) - {".wave"}) == ["made"]
    assert "deny" in (project.directory / ".wave" / "settings.json").read_text()
    (project.directory / "made").unlink()
    run(project, "go", "--trust", "--permission-mode", "plan", replies=replies)
    assert not (project.directory / "made").exists()
    run(project, "go", "--trust", replies=(Reply(tool_calls=[calls[0]]), "done"))
    assert not (project.directory / "made").exists()


def test_the_files_of_the_users_own_skill_may_be_read_but_not_changed(project: Project) -> None:
    file = project.home / "skills" / "own" / "data.txt"
    file.parent.mkdir(parents=True)
    file.write_text("data-7")
    (file.parent / "SKILL.md").write_text("---\ndescription: own\n---\nRead data.txt.")
    reading = [call("Skill", skill="own"), call("Read", file_path=str(file))]
    writing = call("Write", file_path=str(file), content="changed")
    replies = (Reply(tool_calls=reading), Reply(tool_calls=[writing]), "done")
    result = run(project, "go", "--permission-mode", "acceptEdits", replies=replies)
    assert "data-7" in result["requests"][1][-1]["content"]
    assert file.read_text() == "data-7"


def test_a_long_list_of_skills_stays_within_its_share_of_the_window(project: Project) -> None:
    for number in range(60):
        write(project, f".wave/skills/s{number}/SKILL.md", f"---\ndescription: {'word ' * 100}\n---\nDo it.")
    project.settings({"models": {"test": {"contextWindow": 32_000}}})
    system = run(project, "go", "--trust")["requests"][0][0]["content"]
    listed = system.partition("The tool Skill loads one of these.\n")[2].partition("\n\n")[0]
    assert len(listed) <= 32_000 * 0.02 * 4
    assert "- s59" in listed
    project.settings({"models": {"test": {"contextWindow": 4_000}}})
    short = run(project, "go", "--trust")["requests"][0][0]["content"]
    assert "more, which are not listed for want of room" in short


def test_those_for_another_agent_are_used_if_its_hooks_are(theirs: Project) -> None:
    write(theirs, ".claude/commands/git/fix.md", "---\nargument-hint: [issue] [branch]\n---\nFix $ARGUMENTS")
    write(theirs, ".claude/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Use when: a PDF is there\n---\nRead it.")
    result = run(theirs, "/fix 7", "--trust")
    assert prompts(result) == ["Fix 7"]
    assert "- pdf: Use when: a PDF is there" in result["requests"][0][0]["content"]
    (theirs.home / "settings.json").write_text("{}")
    assert "There is no command /fix" in run(theirs, "/fix 7", "--trust")["error"]
