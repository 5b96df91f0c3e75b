"""What has no I/O: how events, calls, questions and prompts become messages, and back."""

import base64
from typing import Any

import pytest
from acp.helpers import (
    audio_block,
    embedded_blob_resource,
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
    text_block,
)
from acp.schema import (
    AcpMcpServer,
    AllowedOutcome,
    DeniedOutcome,
    EnvVariable,
    HttpHeader,
    HttpMcpServer,
    McpServerStdio,
    RequestPermissionResponse,
)
from msgspec.structs import replace

from tests.rows import rows
from wave_agent.acp.history import updates_of
from wave_agent.acp.mcp_servers import EditorServerError, servers_from
from wave_agent.acp.modes import mode_named, mode_state
from wave_agent.acp.narration import EditorNarration
from wave_agent.acp.permission import answer_to, keeps, question, restore_question
from wave_agent.acp.prompt import PromptError, place_of, read_prompt, with_attachments
from wave_agent.acp.tool_calls import ShownCall, outcome, printed
from wave_agent.events import (
    Error,
    Event,
    HookFinished,
    HookRun,
    ModelWoken,
    Notice,
    PermissionRequested,
    ReasoningDelta,
    SubagentStarted,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnEnded,
)
from wave_agent.messages import (
    HARNESS,
    ErrorBlock,
    Image,
    Message,
    NoticeBlock,
    ReasoningBlock,
    TextBlock,
    ToolBlock,
)
from wave_agent.permissions.decision import (
    Allow,
    Deny,
    PermissionMode,
    PermissionRequest,
    RestoreRequest,
    UnforeseenChange,
)

PICTURE = Image("image/png", "AA==", 1, 1)


def shown(name: str, **parameters: Any) -> ShownCall:
    return ShownCall(name=name, parameters=parameters, cwd="/p/sub", project="/p")


# --------------------------------------------------------------------------------------------------------------- calls


@rows(
    "call, kind, title, places",
    [
        (shown("Bash", command="ls\n -l"), "execute", "ls -l", []),
        (shown("Bash"), "execute", "Bash", []),
        (shown("Read", file_path="/p/a.py", offset=3), "read", "Read a.py", [("/p/a.py", 3)]),
        (shown("Read", file_path="a.py", offset="x"), "read", "Read a.py", [("/p/sub/a.py", None)]),
        (shown("Grep", pattern="x", path="../b"), "search", "Grep x", [("/p/b", None)]),
        (shown("mcp__a__b", one=1), "other", 'mcp__a__b {"one": 1}', []),
        (replace(shown("Edit", file_path=7), whose="general"), "edit", "general: Edit 7", []),
    ],
)
def test_a_call_has_a_kind_a_title_and_places(call: ShownCall, kind: str, title: str, places: list[Any]) -> None:
    assert (call.kind, call.title) == (kind, title)
    assert [(one.path, one.line) for one in call.locations()] == places


@rows(
    "call, changes",
    [
        (shown("Write", file_path="/p/a", content="new"), [("/p/a", "was", "new")]),
        (shown("Edit", file_path="/p/a", old_string="b", new_string="c"), [("/p/a", "b", "c")]),
        (
            shown("MultiEdit", file_path="/p/a", edits=[{"old_string": "b", "new_string": "c"}, "bad"]),
            [("/p/a", "b", "c")],
        ),
        (shown("MultiEdit", file_path="/p/a", edits="bad"), []),
        (shown("Edit"), []),
        (shown("Read", file_path="/p/a"), []),
    ],
)
def test_an_edit_has_changes(call: ShownCall, changes: list[Any]) -> None:
    assert [(one.path, one.old_text, one.new_text) for one in call.changes(lambda _: "was")] == changes


def test_a_finished_call_shows_its_change_or_its_words() -> None:
    edit = shown("Edit", file_path="/p/a", old_string="b", new_string="c")
    changes = edit.changes(lambda _: None)
    assert outcome(edit, "done", success=True, images=(), changes=changes) == changes
    [failed] = outcome(edit, "no \x1b[1msuch", success=False, images=(), changes=changes)
    assert failed.type == "content"
    assert failed.content == text_block("no such")
    assert outcome(edit, "", success=False, images=(), changes=()) == []
    words, picture = outcome(shown("Read"), "text", success=True, images=[PICTURE], changes=())
    assert (words, picture.type) == (printed("text"), "content")
    [long] = outcome(shown("WebFetch"), "x" * 200_000, success=True, images=(), changes=())
    assert long.type == "content"
    assert long.content.type == "text"
    assert "cut here: 100,000 of 200,000" in long.content.text


def test_output_cannot_end_its_own_block() -> None:
    block = printed("```\n# heading")
    assert block.content == text_block("````console\n```\n# heading\n````")


# -------------------------------------------------------------------------------------------------------------- events


class Listener:
    """A narration, and the conversation that it looks calls up in."""

    def __init__(self, terminals: bool = False) -> None:
        self.calls: dict[str, ToolBlock] = {}
        self.narration = EditorNarration(
            cwd="/p", project="/p", find_call=self.calls.get, former=lambda _: None, terminals=terminals
        )

    def __call__(self, *events: Event) -> list[dict[str, Any]]:
        made = [update for event in events for update in self.narration.tell(event)]
        return [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in made]


def run(**facts: Any) -> HookRun:
    usual: dict[str, Any] = {
        "event": "PreToolUse",
        "name": "guard",
        "command": "./guard",
        "layer": "project",
        "tool_use_id": "c1",
        "exit_code": 2,
        "outcome": "deny",
        "failure": None,
        "mode": "enforce",
        "look": 1,
        "rewrote": False,
        "let_through": False,
        "duration_ms": 1.0,
        "reason": "because",
    }
    return HookRun(**{**usual, **facts})


def test_what_the_model_says_and_thinks_is_passed_on_but_not_what_its_subagents_say() -> None:
    tell = Listener()
    said = tell(
        TextDelta(text="a"),
        ReasoningDelta(text="b"),
        TextDelta(text="c", agent_id="s"),
        ReasoningDelta(text="d", agent_id="s"),
        ModelWoken(event="Stop", hook="x"),
    )
    assert [(one["sessionUpdate"], one["content"]["text"]) for one in said] == [
        ("agent_message_chunk", "a"),
        ("agent_thought_chunk", "b"),
    ]


def test_calls_of_subagents_with_the_same_ids_are_told_apart() -> None:
    tell = Listener()
    tell(SubagentStarted(agent_id="s", agent_type="general", description="d", tool_use_id="t"))
    first, second = tell(
        ToolStarted(id="c1", name="Bash", parameters={"command": "ls"}),
        ToolStarted(id="c1", name="Bash", parameters={"command": "ls"}, agent_id="s"),
    )
    assert (first["toolCallId"], second["toolCallId"], second["title"]) == ("c1", "s/c1", "general: ls")
    tell(HookFinished(run=run(agent_id="s")), HookFinished(run=run(tool_use_id=None, event="Stop")))
    tell(PermissionRequested(id="c1", tool_name="Bash", tool_input={}, reason="r", agent_id="s"))
    assert tell.narration.asked_about("c1") == "s/c1"
    assert tell.narration.verdicts("c1") == {"wave": {"hooks": []}}
    assert [one.event for one in tell.narration.other_runs] == ["Stop"]
    [end] = tell(ToolFinished(id="c1", success=False, result="no", agent_id="s"))
    assert (end["toolCallId"], end["status"]) == ("s/c1", "failed")
    assert [one["reason"] for one in end["_meta"]["wave"]["hooks"]] == ["because"]
    tell.narration.begin()
    assert tell.narration.other_runs == []


def test_a_call_that_never_began_is_shown_when_it_ends() -> None:
    tell = Listener()
    assert tell(ToolFinished(id="c1", success=False, result="not run")) == []
    tell.calls["c1"] = ToolBlock("c1", "Bash", {"command": "ls"}, "not run", False, "Permission denied")
    begun, end = tell(ToolFinished(id="c1", success=False, result="not run"))
    assert (begun["title"], end["status"], end["_meta"]["wave"]["error"]) == ("ls", "failed", "Permission denied")


def test_a_plan_has_only_valid_items() -> None:
    tell = Listener()
    todos = [{"content": "a", "status": "odd"}, "bad"]
    for given, entries in ((todos, [("a", "pending")]), ("bad", [])):
        tell(ToolStarted(id="c1", name="TodoWrite", parameters={"todos": given}))
        _, plan = tell(ToolFinished(id="c1", success=True, result="ok"))
        assert [(one["content"], one["status"]) for one in plan["entries"]] == entries


def test_output_is_what_a_terminal_would_show() -> None:
    tell = Listener()
    event = ToolOutput(id="c1", text="10%\r20%\r")
    assert tell.narration.progress(event) is None
    tell(ToolStarted(id="c1", name="Bash", parameters={"command": "x"}))
    assert tell.narration.progress(event) is None
    tell(event, ToolOutput(id="c1", text="done\n"))
    progress = tell.narration.progress(event)
    assert progress is not None
    assert progress.content == [printed("done")]
    tell(ToolStarted(id="t1", name="Task", parameters={}), ToolOutput(id="t1", text="Read: a"))
    assert tell.narration.progress(ToolOutput(id="t1", text="")) is None


def test_an_editor_with_terminals_gets_output_as_it_was_printed() -> None:
    tell = Listener(terminals=True)
    event = ToolOutput(id="c1", text="one\n\x1b[1mtwo")
    [begun] = tell(ToolStarted(id="c1", name="Bash", parameters={"command": "x"}))
    assert begun["content"] == [{"type": "terminal", "terminalId": "c1"}]
    assert begun["_meta"] == {"terminal_info": {"terminal_id": "c1", "cwd": "/p"}}
    tell(event)
    progress = tell.narration.progress(event)
    assert progress is not None
    assert progress.field_meta == {"terminal_output": {"terminal_id": "c1", "data": "one\r\n\x1b[1mtwo"}}
    allowed = tell.narration.permitted("c1", shown("Bash", command="y"), [])
    assert allowed.model_dump(by_alias=True)["content"][0]["terminalId"] == "c1"
    tell(ToolOutput(id="c1", text="3"))
    [end] = tell(ToolFinished(id="c1", success=False, result="one\ntwo3\n[exit code 7]"))
    assert (end["content"], end["status"]) == (begun["content"], "failed")
    assert end["_meta"]["terminal_output"]["data"] == "3"
    assert end["_meta"]["terminal_exit"] == {"terminal_id": "c1", "exit_code": 7, "signal": None}


@rows(
    "printed_text, outcome_of_hook, success, kinds, code",
    [
        ("", "none", True, ["content"], "missing"),
        ("", "deny", False, ["content"], "missing"),
        ("x", "none", True, ["terminal"], 0),
        ("x", "none", False, ["terminal"], None),
        ("x", "block", True, ["terminal", "content"], 0),
    ],
)
def test_a_terminal_does_not_hide_what_is_not_printed(
    printed_text: str, outcome_of_hook: str, success: bool, kinds: list[str], code: Any
) -> None:
    tell = Listener(terminals=True)
    tell(ToolStarted(id="c1", name="Bash", parameters={"command": "x"}), HookFinished(run=run(outcome=outcome_of_hook)))
    if printed_text:
        tell(ToolOutput(id="c1", text=printed_text))
    [end] = tell(ToolFinished(id="c1", success=success, result="result"))
    assert [one["type"] for one in end["content"]] == kinds
    assert end["_meta"].get("terminal_exit", {"exit_code": "missing"})["exit_code"] == code


def test_a_rewritten_call_is_shown_as_what_was_allowed() -> None:
    tell = Listener()
    tell(ToolStarted(id="c1", name="Bash", parameters={"command": "rm"}))
    update = tell.narration.permitted("c1", shown("Bash", command="ls"), [])
    assert (update.status, update.title) == ("in_progress", "ls")  # pyright: ignore[reportAttributeAccessIssue]
    assert tell.narration.permitted("gone", shown("Bash", command="ls"), []) is not None


def test_a_call_that_a_hook_rewrote_is_shown_as_it_would_run() -> None:
    tell = Listener()
    tell(ToolStarted(id="c1", name="Edit", parameters={"file_path": "/p/a", "old_string": "b", "new_string": "c"}))
    rewritten = {"file_path": "/p/z", "old_string": "b", "new_string": "d"}
    [update] = tell(HookFinished(run=run(outcome="none", rewrote=True, after=rewritten)))
    assert (update["title"], update["content"][0]["newText"], update["rawInput"]) == ("Edit z", "d", rewritten)
    assert tell(HookFinished(run=run(mode="shadow", after={"file_path": "/p/y"}))) == []
    [end] = tell(ToolFinished(id="c1", success=True, result="ok"))
    assert end["content"][0]["path"] == "/p/z"


def test_notices_and_errors_are_quoted_and_an_error_is_told_once() -> None:
    tell = Listener()
    [said] = tell(Notice(content="one\ntwo\x1b[1m", level="warning"))
    assert said["content"]["text"] == "\n\n> **Wave:** one\n> two\n\n"
    assert said["_meta"] == {"wave": {"notice": "warning"}}
    tell(SubagentStarted(agent_id="s", agent_type="general", description="d", tool_use_id="t"))
    assert tell(Error(content="broken", agent_id="s")) == []
    assert tell(HookFinished(run=run())) == []
    late, text = tell(TextDelta(text="go on"))
    assert ("Subagent general: broken" in late["content"]["text"], text["content"]["text"]) == (True, "go on")
    tell(Error(content="broken"), TurnEnded(status="error"))
    assert tell.narration.last("broken") == []
    tell(Error(content="broken"))
    assert len(tell.narration.last("something else")) == 1


def test_a_recorded_conversation_is_shown_as_it_was() -> None:
    blocks = (
        TextBlock("said", "model"),
        ReasoningBlock("thought"),
        ReasoningBlock(""),
        ToolBlock("c1", "Edit", {"file_path": "/p/a", "old_string": "b", "new_string": "c"}, "ok", True),
        ToolBlock("c2", "Bash", {"command": "x"}, "because", False, "Hook blocked tool execution"),
        ToolBlock("c3", "Bash", {"command": "y"}),
        ToolBlock("c4", "TodoWrite", {"todos": [{"content": "a", "status": "completed"}]}, "ok", True),
        ErrorBlock("broken"),
        NoticeBlock("note", "info"),
        TextBlock("from wave", "hook", HARNESS),
    )
    messages = [Message("user", (TextBlock("asked", "user"),)), Message("assistant", blocks)]
    runs = [run(tool_use_id="c2"), run(tool_use_id=None), run(agent_id="s")]
    made = [
        one.model_dump(mode="json", by_alias=True, exclude_none=True)
        for one in updates_of(messages, runs, cwd="/p", project="/p")
    ]
    assert [one["sessionUpdate"] for one in made] == [
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        *["tool_call"] * 4,
        *["agent_message_chunk"] * 2,
        "plan",
    ]
    edit, denied, unfinished, _ = made[3:7]
    assert (edit["status"], edit["content"][0]["newText"]) == ("completed", "c")
    assert (denied["status"], denied["_meta"]["wave"]["error"]) == ("failed", "Hook blocked tool execution")
    assert [one["name"] for one in denied["_meta"]["wave"]["hooks"]] == ["guard"]
    assert "has no result" in unfinished["content"][0]["content"]["text"]
    assert list(updates_of([], [], cwd="/p", project="/p")) == []


# ----------------------------------------------------------------------------------------------------------- questions


def asked(**facts: Any) -> PermissionRequest:
    usual: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "x"}, "reason": "why", "by": "mode default"}
    return PermissionRequest(**{**usual, **facts})


def put(request: PermissionRequest, changes: Any = ()) -> Any:
    call = shown("Bash", command="x")
    return question(request, session_id="s", key="c1", call=call, changes=changes, facts={"wave": {"hooks": []}})


@rows(
    "request, words, options",
    [
        (asked(), "Asked by mode default: why", ["allow", "reject"]),
        (asked(by="", reason=""), "Asked.", ["allow", "reject"]),
        (asked(question="May it?", does="writes a"), "May it?\n\nAsked by mode default: why\n\nIt writes a.", None),
        (asked(suggestions=("Bash(x)",), together=("A", "B")), None, ["allow", "always-1", "always-2", "reject"]),
        (asked(by="hook guard", suggestions=("Bash(x)",)), None, ["allow", "reject"]),
    ],
)
def test_a_question_says_who_asks_and_offers_a_rule_only_if_one_can_answer(
    request: PermissionRequest, words: str | None, options: list[str] | None
) -> None:
    made = put(request)
    assert words in (None, made.tool_call.content[0].content.text)
    assert options in (None, [one.option_id for one in made.options])


def test_what_an_edit_does_is_not_said_beside_its_change() -> None:
    changes = shown("Edit", file_path="/p/a", old_string="b", new_string="c").changes(lambda _: None)
    first, second = put(asked(does="writes a"), changes).tool_call.content
    assert ("It writes" in first.content.text, second) == (False, changes[0])


def selected(option: str) -> RequestPermissionResponse:
    return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option))


@rows(
    "option, allows, rules",
    [
        ("allow", True, ()),
        ("always-1", True, ("Bash(x)",)),
        ("always-2", True, ("A", "B")),
        ("always-3", False, ()),
        ("reject", False, ()),
        ("yes", False, ()),
    ],
)
def test_only_an_option_that_was_offered_allows(option: str, allows: bool, rules: tuple[str, ...]) -> None:
    answer = answer_to(asked(suggestions=("Bash(x)",), together=("A", "B")), selected(option))
    assert answer is not None
    assert (isinstance(answer.decision, Allow), answer.rules) == (allows, rules)


def test_turning_away_is_no_answer() -> None:
    assert answer_to(asked(), RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))) is None
    assert not keeps(RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled")))
    answer = answer_to(asked(question="May it?"), selected("reject"))
    assert answer is not None
    assert answer.decision == Deny("you said no.")


def test_a_change_that_rules_deny_stands_only_if_the_user_keeps_it() -> None:
    changes = tuple(UnforeseenChange(path=f"/p/{n}", kind="changed", rule="Edit(*)" * (n % 2)) for n in range(22))
    request = RestoreRequest(tool_name="Bash", tool_use_id="c1", changes=changes, meanwhile=True)
    made = restore_question(request, session_id="s", key="c1", project="/p")
    content: Any = made.tool_call.content
    assert "22 files that rules protect" in content[0].content.text
    assert "- changed 1 (Edit(*))\n- changed 2\n" in content[0].content.text
    assert "and 2 more\n\nSomething else was running" in content[0].content.text
    one = restore_question(replace(request, changes=changes[:1], meanwhile=False), session_id="s", key="c", project="/")
    assert "a file that rules protect" in str(one.tool_call.title)
    assert [keeps(selected(option)) for option in ("keep", "restore", "allow")] == [True, False, False]


# ------------------------------------------------------------------------------------------------------------- prompts


def test_text_and_links_stay_in_order_and_contents_follow() -> None:
    prompt = read_prompt(
        [
            text_block("One"),
            text_block("Two "),
            resource_link_block("a", "file:///p/a.py#L3"),
            resource_block(embedded_text_resource("https://x.org/b", 'see </attached> and <file name="">')),
            resource_link_block("odd", "file:///p/@srv:x"),
            resource_block(embedded_blob_resource("file:///p/c.png", "AA==", mime_type="image/png")),
        ],
        "/p",
    )
    assert prompt.text == "One\nTwo `a.py#L3``https://x.org/b``c.png`"
    assert prompt.attached == (
        '<attached name="https://x.org/b">\nsee <\\/attached> and <\\file name="">\n</attached>\n\n'
        '<attached name="@srv:x" />'
    )
    assert [(one.data, one.suffix) for one in prompt.pictures] == [(b"\0", "png")]
    whole = with_attachments(prompt, ["/s/image-1.png"], "expanded")
    assert whole.startswith("expanded\n\n<attached")
    assert whole.endswith("[An image is attached: /s/image-1.png. Use Read to see it.]")


@rows(
    "uri, place",
    [
        ("file:///p/a%20b", "a b"),
        ("file://localhost/p/a", "a"),
        ("file://other/p/a", "file://other/p/a"),
        ("/p/a", "a"),
        ("file:///q/../r", "/r"),
        ("zed:///agent/x", "zed:///agent/x"),
        ("file:", ""),
        ("file://[x", "file://[x"),
    ],
)
def test_a_file_is_named_by_its_path(uri: str, place: str) -> None:
    assert place_of(uri, "/p") == place


@rows(
    "blocks, words",
    [
        ([], "empty"),
        ([text_block("  ")], "empty"),
        ([audio_block("AA==", "audio/wav")], "Audio"),
        ([image_block("AA==", "image/bmp")], "image/bmp is not a type"),
        ([image_block("not base64", "image/png")], "not valid Base64"),
        ([resource_block(embedded_blob_resource("file:///x.zip", "AA=="))], "neither text nor an image"),
    ],
)
def test_a_prompt_that_cannot_be_sent_says_why(blocks: list[Any], words: str) -> None:
    with pytest.raises(PromptError, match=words):
        read_prompt(blocks, "/p")


def test_an_image_alone_is_a_prompt() -> None:
    data = base64.b64encode(b"png").decode()
    prompt = read_prompt([image_block(data, "image/png")], "/p")
    assert (prompt.text, prompt.pictures[0].data) == ("", b"png")


# -------------------------------------------------------------------------------------------------- servers and modes


def test_servers_have_the_form_of_settings() -> None:
    stdio = McpServerStdio(name="a", command="x", args=["-y"], env=[EnvVariable(name="K", value="v")])
    http = HttpMcpServer(type="http", name="b", url="https://x", headers=[HttpHeader(name="H", value="w")])
    assert servers_from([stdio, http]) == {
        "a": {"command": "x", "args": ["-y"], "env": {"K": "v"}},
        "b": {"type": "http", "url": "https://x", "headers": {"H": "w"}},
    }
    assert servers_from(None) == {}
    with pytest.raises(EditorServerError, match="inside the editor"):
        servers_from([AcpMcpServer(type="acp", name="c", server_id="1")])


def test_every_permission_mode_is_a_mode() -> None:
    state = mode_state("plan")
    assert [one.id for one in state.available_modes] == [mode.value for mode in PermissionMode]
    assert (state.current_mode_id, mode_named("plan"), mode_named("x")) == ("plan", PermissionMode.PLAN, None)
