"""Sessions of `wave acp`, as an editor sees them: a real process, a real model server, the SDK's client."""

import asyncio
import base64
import json
import sys
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from acp.helpers import embedded_text_resource, image_block, resource_block, resource_link_block
from acp.schema import ClientCapabilities, ElicitationCapabilities, ElicitationFormCapabilities

from tests.acp.editor import Question, answering, started, text_in, turning_away, when_offered
from tests.cli.project import Project
from tests.waiting import number_in, until
from wave_agent.models.base import Usage
from wave_agent.testing import RecordingModelServer, Reply, call
from wave_agent.testing.model_server import Events, Hang, Status, delta

HOSTILE = Path(__file__).parent.parent / "mcp" / "servers" / "hostile.py"
PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63f8cfc0f01f000500"
        "01ff56c72f0d0000000049454e44ae426082"
    )
).decode()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def hooks(project: Project, event: str, **scripts: str) -> None:
    """Hooks of the user, by name: shell scripts."""
    entries = [{"name": name, "command": script} for name, script in scripts.items()]
    project.home.mkdir(exist_ok=True)
    (project.home / "settings.json").write_text(json.dumps({"hooks": {event: entries}}))


ASK = """echo '{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "reason-7"}}'"""
DENY = """echo reason-7 >&2; exit 2"""


def serving(*replies: Any) -> Any:
    return RecordingModelServer.in_thread(list(replies))


def last_result(server: RecordingModelServer) -> str:
    return server.requests[-1].body["messages"][-1]["content"]


async def test_an_answer_is_streamed_and_the_turn_ends(project: Project) -> None:
    long = "Hello there! " * 5000
    with serving(Reply(reasoning="Let me think.", text=long, usage=Usage(input_tokens=7, output_tokens=3))) as server:
        async with started(project, server) as editor:
            session = await editor.new(project)
            response = await editor.prompt(session, "Hi")
            status, stderr = await editor.closed()
    assert server.requests[0].body["messages"][-1]["content"] == "Hi"
    assert (editor.said, response.stop_reason) == (long, "end_turn")
    assert "".join(one.content.text for one in editor.of_kind("agent_thought_chunk")) == "Let me think."
    assert len(editor.of_kind("agent_message_chunk")) > 1, "it is not streamed"
    assert response.usage is not None
    assert response.field_meta is not None
    assert (response.usage.total_tokens, response.field_meta["wave"]["status"]) == (10, "completed")
    assert (status, stderr) == (0, "")


async def test_a_hooks_deny_is_a_failed_call_with_its_reason_and_no_question(project: Project) -> None:
    hooks(project, "PreToolUse", guard=DENY)
    calls = Reply(tool_calls=[call("Bash", command="touch ran")])
    with serving(calls, "I see.") as server:
        async with started(project, server, "--permission-mode", "bypassPermissions") as editor:
            session = await editor.new(project)
            response = await editor.prompt(session, "Go")
    assert "reason-7" in last_result(server)
    assert not (project.directory / "ran").exists()
    seen = editor.call("touch ran")
    assert (seen["status"], "reason-7" in text_in(seen["content"])) == ("failed", True)
    [run] = seen["field_meta"]["wave"]["hooks"]
    assert (run["name"], run["outcome"], run["reason"]) == ("guard", "deny", "reason-7")
    assert (editor.questions, response.stop_reason) == ([], "end_turn")


@pytest.mark.parametrize(
    ("kind", "status", "ran"), [("allow_once", "completed", True), ("reject_once", "failed", False)]
)
async def test_a_hooks_ask_is_a_question_with_its_reason(project: Project, kind: str, status: str, ran: bool) -> None:
    hooks(project, "PreToolUse", careful=ASK)
    with serving(Reply(tool_calls=[call("Bash", command="touch ran")]), "Done.") as server:
        async with started(project, server, answer=answering(kind)) as editor:
            session = await editor.new(project)
            response = await editor.prompt(session, "Go")
    assert ("the user said no" in last_result(server)) is not ran
    assert (project.directory / "ran").exists() is ran
    [question] = editor.questions
    assert ("reason-7" in question.text, "hook careful" in question.text) == (True, True)
    assert question.kinds == ["allow_once", "reject_once"], "a rule cannot answer what a hook asks"
    assert question.tool_call.field_meta is not None
    assert question.tool_call.field_meta["wave"]["hooks"][0]["outcome"] == "ask"
    seen = editor.call("touch ran")
    assert (seen["status"], response.stop_reason) == (status, "end_turn")
    assert "Asked by" not in text_in(seen["content"])


async def test_always_stores_the_rule_that_was_offered(project: Project) -> None:
    calls = [Reply(tool_calls=[call("Bash", command=f"touch {name}")]) for name in ("one", "two")]
    with serving(*calls, "Done.") as server:
        async with started(project, server, answer=answering("allow_always")) as editor:
            session = await editor.new(project)
            await editor.prompt(session, "Go")
    assert ((project.directory / "one").exists(), (project.directory / "two").exists()) == (True, True)
    offered = [option.name for option in editor.questions[0].options.values() if option.kind == "allow_always"]
    rules = [rule for one in (project.home).glob("*.json") for rule in _allowed(one.read_text())]
    assert rules
    assert any(rules[0] in one for one in offered), (offered, rules)


def _allowed(text: str) -> list[str]:
    return [rule for record in json.loads(text).get("projects", {}).values() for rule in record.get("allow", ())]


@pytest.mark.parametrize("answer", [turning_away, None])
async def test_turning_away_from_a_question_interrupts_and_denies_nothing(project: Project, answer: Any) -> None:
    async def cancel(_: Question) -> str | None:
        await editor.agent.cancel(session_id=session)
        return None

    with serving(Reply(tool_calls=[call("Bash", command="touch ran")]), "Again.") as server:
        async with started(project, server, answer=answer or cancel) as editor:
            session = await editor.new(project)
            response = await editor.prompt(session, "Go")
            again = await editor.prompt(session, "Go on")
    assert (response.stop_reason, again.stop_reason) == ("cancelled", "end_turn")
    result = next(one["content"] for one in server.requests[-1].body["messages"] if one["role"] == "tool")
    assert ("interrupted" in result, "said no" in result) == (True, False)
    assert not (project.directory / "ran").exists()
    assert editor.call("touch ran")["status"] == "failed"
    [transcript] = project.home.glob("projects/*/*.jsonl")
    assert "the user said no" not in transcript.read_text()


@pytest.mark.parametrize("outcome", ["unknown option", "error"])
async def test_an_answer_that_is_none_denies(project: Project, outcome: str) -> None:
    async def answer(question: Question) -> str | None:
        if outcome == "error":
            raise RequestError.internal_error()
        return "something else"

    with serving(Reply(tool_calls=[call("Bash", command="touch ran")]), "I see.") as server:
        async with started(project, server, answer=answer) as editor:
            session = await editor.new(project)
            response = await editor.prompt(session, "Go")
    assert "not offered" in last_result(server) or "could not ask" in last_result(server)
    assert (response.stop_reason, (project.directory / "ran").exists()) == ("end_turn", False)


async def test_cancelling_ends_the_tool_that_runs(project: Project) -> None:
    command = "echo $$ > pid; sleep 600"
    with serving(Reply(tool_calls=[call("Bash", command=command)])) as server:
        async with started(project, server, "--allowed-tools", "Bash(echo:*),Bash(sleep:*)") as editor:
            session = await editor.new(
                project,
            )
            await editor.agent.set_session_mode(session_id=session, mode_id="bypassPermissions")
            turn = asyncio.create_task(editor.prompt(session, "Go"))
            pid = await number_in(project.directory / "pid")
            await editor.agent.cancel(session_id=session)
            response = await turn
            await until(lambda: not Path(f"/proc/{pid}").exists())
    assert response.stop_reason == "cancelled"
    assert [one.current_mode_id for one in editor.of_kind("current_mode_update")] == ["bypassPermissions"]


async def test_an_erased_prompt_is_a_refusal_and_stays_nowhere(project: Project) -> None:
    hooks(project, "UserPromptSubmit", secrets="echo no keys please >&2; exit 2")
    with serving() as server:
        async with started(project, server) as editor:
            session = await editor.new(project)
            response = await editor.prompt(session, "canary-7f3a", image_block(PNG, "image/png"))
    assert (server.requests, response.stop_reason) == ([], "refusal")
    assert "no keys please" in editor.said
    assert response.field_meta is not None
    assert response.field_meta["wave"]["hooks"][0]["name"] == "secrets"
    assert [one for one in project.home.rglob("*") if one.is_file() and b"canary-7f3a" in one.read_bytes()] == []
    assert list(project.home.rglob("image-*")) == []


async def test_a_hook_that_ends_the_turn_says_why(project: Project) -> None:
    hooks(project, "PostToolUse", enough="""echo '{"continue": false, "stopReason": "reason-7"}'""")
    with serving(Reply(tool_calls=[call("Read", file_path="note.txt")])) as server:
        (project.directory / "note.txt").write_text("hello\n")
        async with started(project, server) as editor:
            session = await editor.new(project)
            response = await editor.prompt(session, "Go")
    assert (len(server.requests), response.stop_reason) == (1, "end_turn")
    assert "reason-7" in editor.said
    seen = editor.call("Read")
    assert (seen["kind"], seen["locations"][0]["path"]) == ("read", str(project.directory / "note.txt"))


async def test_a_turn_that_reaches_its_limit_says_so(project: Project) -> None:
    with serving(Reply(tool_calls=[call("Glob", pattern="*")]), "Never.") as server:
        async with started(project, server, "--max-turns", "1") as editor:
            response = await editor.prompt(await editor.new(project), "Go")
    assert (len(server.requests), response.stop_reason) == (1, "max_turn_requests")
    assert "> **Wave:** " in editor.said


async def test_an_edit_is_shown_as_a_change_and_asked_about_as_one(project: Project) -> None:
    note = project.directory / "note.txt"
    note.write_text("old\n")
    calls = [
        Reply(tool_calls=[call("Read", file_path="note.txt")]),
        Reply(tool_calls=[call("Edit", file_path="note.txt", old_string="old", new_string="new")]),
        Reply(tool_calls=[call("Write", file_path=str(note), content="newest\n")]),
    ]
    with serving(*calls, "Done.") as server:
        async with started(project, server, answer=answering("allow_once")) as editor:
            session = await editor.new(project)
            await editor.prompt(session, "Go")
    assert note.read_text() == "newest\n"
    [edit] = editor.call("Edit")["content"]
    assert (edit["path"], edit["old_text"], edit["new_text"]) == (str(note), "old", "new")
    [write] = editor.call("Write")["content"]
    assert (write["old_text"], write["new_text"]) == ("new\n", "newest\n")
    asked = [(question.tool_call.content or [])[-1] for question in editor.questions]
    assert [(one.type, getattr(one, "new_text", None)) for one in asked] == [("diff", "new"), ("diff", "newest\n")]
    assert [editor.call(name)["status"] for name in ("Edit", "Write")] == ["completed", "completed"]


async def test_what_a_command_prints_is_shown_while_it_runs(project: Project) -> None:
    command = "printf 'first\\n'; until test -e gate; do sleep 0.01; done; echo second"
    with serving(Reply(tool_calls=[call("Bash", command=command)]), "Done.") as server:
        async with started(project, server, "--permission-mode", "bypassPermissions") as editor:
            session = await editor.new(project)
            turn = asyncio.create_task(editor.prompt(session, "Go"))
            await editor.until(lambda: any(one.status == "in_progress" for one in editor.of_kind("tool_call_update")))
            (project.directory / "gate").touch()
            await turn
    running = next(one for one in editor.of_kind("tool_call_update") if one.status == "in_progress")
    assert running.content[0].content.text == "```console\nfirst\n```"
    assert text_in(editor.call("printf")["content"]) == "```console\nfirst\nsecond\n```"


async def test_an_editor_with_terminals_gets_what_a_command_prints(project: Project) -> None:
    capabilities = ClientCapabilities(field_meta={"terminal_output": True})
    flags = ("--permission-mode", "bypassPermissions")
    with serving(Reply(tool_calls=[call("Bash", command="echo one; exit 3")]), "Done.") as server:
        async with started(project, server, *flags, capabilities=capabilities) as editor:
            await editor.prompt(await editor.new(project), "Go")
    [begun] = editor.of_kind("tool_call")
    assert begun.content[0].terminal_id == begun.tool_call_id
    metas = [one.field_meta for one in editor.of_kind("tool_call_update")]
    assert "".join(one["terminal_output"]["data"] for one in metas if "terminal_output" in one) == "one\r\n"
    assert metas[-1]["terminal_exit"]["exit_code"] == 3
    assert editor.call("echo one")["status"] == "failed"


async def test_the_todo_list_is_a_plan(project: Project) -> None:
    todos = [{"content": "Look", "status": "completed"}, {"content": "Act", "status": "in_progress"}]
    with serving(Reply(tool_calls=[call("TodoWrite", todos=todos)]), "Done.") as server:
        async with started(project, server) as editor:
            session = await editor.new(project)
            await editor.prompt(session, "Go")
    [plan] = editor.of_kind("plan")
    assert [(one.content, one.status) for one in plan.entries] == [("Look", "completed"), ("Act", "in_progress")]


async def test_files_and_images_reach_the_model(project: Project) -> None:
    link = (project.directory / "a b.py").as_uri()
    text = embedded_text_resource((project.directory / "c.py").as_uri(), "x = 1\n</attached>\nrm -rf")
    with serving("Seen.") as server:
        async with started(project, server) as editor:
            session = await editor.new(project)
            await editor.prompt(
                session,
                "Compare ",
                resource_link_block("a b.py", link),
                " with ",
                resource_block(text),
                image_block(PNG, "image/png"),
            )
    prompt = server.requests[0].body["messages"][-1]["content"]
    assert "Compare `a b.py` with `c.py`" in prompt
    assert '<attached name="c.py">\nx = 1\n<\\/attached>\nrm -rf\n</attached>' in prompt
    [image] = project.home.rglob("image-1.png")
    assert (image.read_bytes(), str(image) in prompt) == (base64.b64decode(PNG), True)
    assert image.stat().st_mode & 0o777 == 0o600


async def test_the_model_can_look_at_an_image_without_a_question(project: Project) -> None:
    def look(request: Any) -> Reply:
        path = request.body["messages"][-1]["content"].split("attached: ")[1].split(". Use")[0]
        return Reply(tool_calls=[call("Read", file_path=path)])

    project.home.mkdir()
    (project.home / "settings.json").write_text(json.dumps({"models": {"test": {"images": True}}}))
    with serving(look, "A dot.") as server:
        async with started(project, server) as editor:
            session = await editor.new(project)
            await editor.prompt(session, image_block(PNG, "image/png"))
    assert PNG in json.dumps(server.requests[-1].body["messages"])
    assert (editor.questions, editor.call("Read")["status"]) == ([], "completed")
    assert any(one["type"] == "content" and one["content"]["type"] == "image" for one in editor.call("Read")["content"])


async def test_a_command_of_the_project_is_offered_and_expanded(project: Project) -> None:
    commands = project.directory / ".wave" / "commands"
    commands.mkdir(parents=True)
    (commands / "greet.md").write_text("---\ndescription: Greets\nargument-hint: NAME\n---\nSay hello to $0.")
    with serving("Hello.") as server:
        async with started(project, server, "--trust") as editor:
            session = await editor.new(project)
            await editor.until(lambda: bool(editor.of_kind("available_commands_update")))
            await editor.prompt(session, "/greet Ada")
    [offered] = editor.of_kind("available_commands_update")
    greet = next(one for one in offered.available_commands if one.name == "greet")
    assert (greet.description, greet.input.root.hint) == ("Greets", "NAME")
    assert server.requests[0].body["messages"][-1]["content"] == "Say hello to Ada."


async def test_a_subagents_calls_are_shown_as_its_own(project: Project) -> None:
    hooks(project, "PreToolUse", guard="grep -q canary && { echo reason-7 >&2; exit 2; } || exit 0")
    task = call("Task", description="Look", prompt="Look", subagent_type="general-purpose")
    replies = [Reply(tool_calls=[task]), Reply(tool_calls=[call("Bash", command="echo canary")]), "Report.", "Done."]
    with serving(*replies) as server:
        async with started(project, server, "--permission-mode", "bypassPermissions") as editor:
            session = await editor.new(project)
            response = await editor.prompt(session, "Go")
    seen = editor.call("echo canary")
    assert (seen["title"], seen["status"]) == ("general-purpose: echo canary", "failed")
    assert "reason-7" in text_in(seen["content"])
    assert (editor.said, response.stop_reason) == ("Done.", "end_turn"), "the subagent's report is not the answer"


async def test_sessions_are_listed_loaded_resumed_and_closed(project: Project) -> None:
    with serving(Reply(tool_calls=[call("Read", file_path="note.txt")]), "First.", "Second.", "Third.") as server:
        (project.directory / "note.txt").write_text("hello\n")
        async with started(project, server) as editor:
            session = await editor.new(project)
            await editor.prompt(session, "One")
            with pytest.raises(RequestError, match="open already"):
                await editor.agent.load_session(cwd=str(project.directory), session_id=session, mcp_servers=[])
            await editor.agent.close_session(session_id=session)
            with pytest.raises(RequestError, match="no open session"):
                await editor.prompt(session, "Two")
        async with started(project, server) as editor:
            listed = await editor.agent.list_sessions(cwd=str(project.directory))
            loaded = await editor.agent.load_session(cwd=str(project.directory), session_id=session, mcp_servers=[])
            shown = [one.session_update for one in editor.updates]
            await editor.prompt(session, "Two")
            await editor.agent.close_session(session_id=session)
            await editor.agent.resume_session(cwd=str(project.directory), session_id=session, mcp_servers=[])
            before = len(editor.updates)
            await editor.prompt(session, "Three")
    assert [(one.session_id, one.title, one.cwd) for one in listed.sessions] == [
        (session, "One", str(project.directory))
    ]
    assert shown == ["user_message_chunk", "tool_call", "agent_message_chunk"]
    assert (editor.updates[0].content.text, editor.updates[1].status) == ("One", "completed")
    assert loaded.modes is not None
    assert loaded.modes.current_mode_id == "default"
    texts = [one["content"] for one in server.requests[-1].body["messages"] if one["role"] == "user"]
    assert [text for text in texts if text in ("One", "Two", "Three")] == ["One", "Two", "Three"]
    assert {one.session_update for one in editor.updates[before:]} <= {"agent_message_chunk", "usage_update"}


async def test_sessions_are_listed_by_directory_or_all_together_in_pages(project: Project) -> None:
    (project.directory / "sub").mkdir()
    places = [project.directory, project.directory / "sub"]
    with serving(*["Hello."] * 2) as server:
        async with started(project, server) as editor:
            for place in places:
                opened = await editor.agent.new_session(cwd=str(place), mcp_servers=[])
                await editor.prompt(opened.session_id, f"In {place.name}")
    path = next(project.home.glob("projects/*/*.jsonl"))
    for number in range(55):  # as many others as make a second page
        path.with_name(f"copy-{number}.jsonl").write_text(path.read_text())
    async with started(project, None) as editor:
        for place in places:
            for one in (await editor.agent.list_sessions(cwd=str(place))).sessions:
                assert (one.cwd, one.title) == (str(place), f"In {place.name}")
        page = await editor.agent.list_sessions()
        assert len(page.sessions) == 50
        ids = {path.stem for path in project.home.glob("projects/*/*.jsonl")}
        for number in range(3):  # sessions begin meanwhile
            path.with_name(f"new-{number}.jsonl").write_text(path.read_text())
        rest = await editor.agent.list_sessions(cursor=page.next_cursor)
    assert (len(rest.sessions), rest.next_cursor) == (7, None)
    assert sorted(one.session_id for one in (*page.sessions, *rest.sessions)) == sorted(ids)
    assert {one.cwd for one in (*page.sessions, *rest.sessions)} == set(map(str, places))


async def test_a_session_whose_agent_was_killed_can_be_loaded(project: Project) -> None:
    command = "echo $$ > pid; exec sleep 600"
    with serving(Reply(tool_calls=[call("Bash", command=command)]), "Second.") as server:
        async with started(project, server, "--permission-mode", "bypassPermissions") as editor:
            session = await editor.new(project)
            turn = asyncio.create_task(editor.prompt(session, "Go"))
            pid = await number_in(project.directory / "pid")
            editor.process.kill()
            with pytest.raises((ConnectionError, RequestError)):
                await turn
        async with started(project, server) as editor:
            await editor.agent.load_session(cwd=str(project.directory), session_id=session, mcp_servers=[])
            await until(lambda: not Path(f"/proc/{pid}").exists())
            response = await editor.prompt(session, "Go on")
    assert (editor.call("pid")["status"], response.stop_reason) == ("failed", "end_turn")


async def test_two_sessions_work_side_by_side(project: Project) -> None:
    with serving(Hang(), "Quick.") as server:
        async with started(project, server) as editor:
            slow, quick = await editor.new(project), await editor.new(project)
            turn = asyncio.create_task(editor.prompt(slow, "Slow"))
            await until(lambda: len(server.requests) == 1)
            waiting = asyncio.create_task(editor.prompt(slow, "Never"))
            response = await editor.prompt(quick, "Quick")
            await editor.agent.cancel(session_id=slow)
            assert [(await one).stop_reason for one in (turn, waiting)] == ["cancelled", "cancelled"]
    assert (response.stop_reason, len(server.requests)) == ("end_turn", 2)


async def test_a_project_with_untrusted_hooks_is_not_opened(project: Project) -> None:
    project.settings({"hooks": {"PreToolUse": [{"name": "guard", "command": DENY}]}})
    with serving(Reply(tool_calls=[call("Bash", command="touch ran")]), "I see.") as server:
        async with started(project, server) as editor:
            with pytest.raises(RequestError, match="wave hooks trust") as refused:
                await editor.new(project)
            assert "reason-7" in str(refused.value)
        async with started(project, server, "--trust", "--permission-mode", "bypassPermissions") as editor:
            await editor.prompt(await editor.new(project), "Go")
    assert not (project.directory / "ran").exists()


async def test_a_model_that_cannot_be_reached_is_an_error_and_the_session_lives_on(project: Project) -> None:
    with serving(Status(401, {"error": {"message": "bad key"}}), "Better.") as server:
        async with started(project, server) as editor:
            session = await editor.new(project)
            with pytest.raises(RequestError, match="bad key"):
                await editor.prompt(session, "Hi")
            response = await editor.prompt(session, "Hi again")
    assert (response.stop_reason, editor.said) == ("end_turn", "Better.")


async def test_a_mode_that_is_not_permitted_is_refused(project: Project) -> None:
    managed = project.directory / "managed.json"
    managed.write_text(json.dumps({"permissions": {"defaultMode": "default"}}))
    with serving() as server:
        async with started(project, server, env={"WAVE_MANAGED_SETTINGS": str(managed)}) as editor:
            session = await editor.new(project)
            with pytest.raises(RequestError, match="The mode stays default"):
                await editor.agent.set_session_mode(session_id=session, mode_id="bypassPermissions")
            with pytest.raises(RequestError, match='no mode "yolo"'):
                await editor.agent.set_session_mode(session_id=session, mode_id="yolo")
            await editor.agent.set_session_mode(session_id=session, mode_id="plan")
    assert [one.current_mode_id for one in editor.of_kind("current_mode_update")] == ["plan"]


@pytest.mark.parametrize("can", [True, False])
async def test_a_form_of_a_server_is_shown_by_an_editor_that_can(project: Project, can: bool) -> None:
    elicitation = ElicitationCapabilities(form=ElicitationFormCapabilities())
    capabilities = ClientCapabilities(elicitation=elicitation if can else None)
    servers = {"mcpServers": {"forms": {"command": sys.executable, "args": [str(HOSTILE), "legacy"]}}}
    flags = ("--mcp-config", json.dumps(servers), "--permission-mode", "bypassPermissions")
    with RecordingModelServer.in_thread(repeat(when_offered(call("mcp__forms__elicit")))) as server:
        async with started(project, server, *flags, capabilities=capabilities) as editor:
            await editor.prompt_until_called(await editor.new(project))
    answered = {"action": "accept", "content": {"name": "Ada"}} if can else {"action": "decline"}
    assert json.loads(last_result(server)) == answered
    assert [message for message, _ in editor.forms] == (["forms: Your name?"] if can else [])


@pytest.mark.parametrize(("kind", "kept"), [("allow_once", True), ("reject_once", False)])
async def test_a_change_that_a_rule_denies_stands_only_if_the_user_says_so(
    project: Project, kind: str, kept: bool
) -> None:
    (project.directory / "vendor").mkdir()
    (project.directory / "vendor" / "x").write_text("old\n")
    deny = json.dumps({"permissions": {"deny": ["Edit(vendor/**)"]}})
    settings = project.directory.parent / "deny.json"
    settings.write_text(deny)
    (project.directory / "change.py").write_text("import pathlib; pathlib.Path('ven' 'dor/x').write_text('new')")
    flags = ("--settings", str(settings), "--permission-mode", "bypassPermissions")
    with serving(Reply(tool_calls=[call("Bash", command="python3 change.py")]), "Done.") as server:
        async with started(project, server, *flags, answer=answering(kind)) as editor:
            await editor.prompt(await editor.new(project), "Go")
    [question] = editor.questions
    assert "changed vendor/x (Edit(vendor/**))" in question.text
    assert ((project.directory / "vendor" / "x").read_text() == "new") is kept


async def test_a_subagents_question_says_whose_it_is(project: Project) -> None:
    task = call("Task", description="Look", prompt="Look", subagent_type="general-purpose")
    inner = Reply(tool_calls=[call("Bash", command="touch ran")])
    with serving(Reply(tool_calls=[task]), inner, "Report.", "Done.") as server:
        async with started(project, server, answer=answering("allow_once")) as editor:
            await editor.prompt(await editor.new(project), "Go")
    [question] = editor.questions
    seen = editor.call("touch ran")
    assert (question.tool_call.tool_call_id, question.tool_call.title) == (seen["tool_call_id"], seen["title"])
    assert (seen["title"], seen["status"]) == ("general-purpose: touch ran", "completed")
    assert (project.directory / "ran").exists()


async def test_text_that_is_not_unicode_ends_nothing(project: Project) -> None:
    odd = "\ud800 \x1b[31m \0"
    asked = {"name": "Bash", "arguments": json.dumps({"command": f"echo {odd}"})}
    unknown = {"name": "x", "arguments": json.dumps({"a": odd})}
    calls = [{"index": n, "id": f"c{n}", "type": "function", "function": one} for n, one in enumerate([asked, unknown])]
    ends = delta("tool_calls")
    first = Events([json.dumps(one) for one in (delta(reasoning_content=odd), delta(tool_calls=calls), ends)])
    last = Events([json.dumps(delta(content=f"Done{odd}.")), json.dumps(delta("stop"))])
    with serving(first, last) as server:
        async with started(project, server, "--permission-mode", "bypassPermissions") as editor:
            response = await editor.prompt(await editor.new(project), f"Go {odd}")
    assert (response.stop_reason, len(editor.of_kind("tool_call"))) == ("end_turn", 2)


async def test_a_hook_that_rewrites_a_call_is_seen_to(project: Project) -> None:
    rewrite = json.dumps({"hookSpecificOutput": {"updatedInput": {"command": "touch safe"}}})
    hooks(project, "PreToolUse", tamer=f"echo '{rewrite}'")
    with serving(Reply(tool_calls=[call("Bash", command="touch risky")]), "Done.") as server:
        async with started(project, server, answer=answering("allow_once")) as editor:
            await editor.prompt(await editor.new(project), "Go")
    [question] = editor.questions
    assert (question.tool_call.title, question.tool_call.raw_input) == ("touch safe", {"command": "touch safe"})
    assert editor.call("touch risky")["title"] == "touch safe"
    assert sorted(one.name for one in project.directory.iterdir()) == ["safe"]
