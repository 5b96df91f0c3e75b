"""What guards decided, as each host gets it."""

import json
from typing import Any

from tests.rows import rows
from wave_agent.guard.answers import HostAnswer, HostReply, degraded, failed, reply, together
from wave_agent.guard.hosts import HOSTS, Form, Verb
from wave_agent.hooks.events import EVENTS, HookEvent

BEFORE = {row.name: row.installed[0] for row in HOSTS.values()}
"""Each host's event before a tool."""
DENY = HostAnswer(verb=Verb.DENY, reason="no")
ASK = HostAnswer(verb=Verb.ASK, reason="sure?", why="a rule asks")
REWRITE = HostAnswer(tool_input={"command": "ls"}, advice='{"command": "ls"}')
BY_EXIT_CODE = ("claude", "codex", "gemini", "qwen", "kimi")


def is_deny(host: str, given: HostReply) -> bool:
    if host in BY_EXIT_CODE:
        return given.status == 2 and bool(given.stderr.strip()) and not given.stdout
    found = json.loads(given.stdout or "{}")
    words = (found.get(key) for key in ("decision", "permission", "permissionDecision"))
    return given.status == 0 and ("deny" in words or "deny" in found)


@rows("host", HOSTS)
def test_a_deny_is_a_deny_with_a_reason(host: str) -> None:
    given = reply(host, BEFORE[host], DENY)
    assert is_deny(host, given)
    assert "no" in given.stdout + given.stderr
    assert is_deny(host, reply(host, BEFORE[host], HostAnswer(verb=Verb.DENY)))


@rows("host", HOSTS)
def test_nothing_to_say_prints_nothing(host: str) -> None:
    for name in HOSTS[host].events:
        assert reply(host, name, HostAnswer()) == HostReply()
        assert reply(host, name, HostAnswer(verb=Verb.ALLOW, reason="fine")) == HostReply()


@rows("host", HOSTS)
def test_a_guard_that_could_not_judge_denies_before_a_tool(host: str) -> None:
    assert is_deny(host, failed(host, BEFORE[host], "it crashed"))
    assert is_deny(host, failed(host, "no such event", "it crashed"))


def test_a_guard_that_could_not_judge_says_so_elsewhere() -> None:
    assert failed("claude", "Stop", "it crashed") == HostReply(0, "", "wave guard: it crashed\n")


@rows("host", HOSTS)
def test_a_question_is_asked_or_denied(host: str) -> None:
    given = reply(host, BEFORE[host], ASK)
    if Verb.ASK in HOSTS[host].enforces[HookEvent.PRE_TOOL_USE]:
        assert '"ask"' in given.stdout
    else:
        assert is_deny(host, given)
        assert "This run is not interactive" in given.stdout + given.stderr


@rows("host", HOSTS)
def test_a_rewrite_is_made_or_denied_with_the_rewritten_form(host: str) -> None:
    given = reply(host, BEFORE[host], REWRITE)
    if Verb.REWRITE in HOSTS[host].enforces[HookEvent.PRE_TOOL_USE]:
        assert not is_deny(host, given)
        assert {"command": "ls"} in _values(json.loads(given.stdout))
    else:
        assert is_deny(host, given)
        assert "Repeat it like this" in given.stdout + given.stderr


@rows("host", HOSTS)
def test_an_end_before_a_tool_is_at_least_a_deny(host: str) -> None:
    assert is_deny(host, reply(host, BEFORE[host], HostAnswer(verb=Verb.END, reason="enough")))


def _values(found: Any) -> list[Any]:
    if not isinstance(found, dict):
        return []
    return [*found.values(), *(deeper for one in found.values() for deeper in _values(one))]


def hook(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


EXACT = [
    ("claude", "PreToolUse", ASK, hook("PreToolUse", permissionDecision="ask", permissionDecisionReason="sure?")),
    ("claude", "PreToolUse", REWRITE, hook("PreToolUse", updatedInput={"command": "ls"})),
    (
        "claude",
        "PreToolUse",
        HostAnswer(context="c", message="m"),
        {**hook("PreToolUse", additionalContext="c"), "systemMessage": "m"},
    ),
    ("claude", "PermissionRequest", DENY, hook("PermissionRequest", decision={"behavior": "deny", "message": "no"})),
    ("claude", "PostToolUse", HostAnswer(replacement="r"), hook("PostToolUse", updatedToolOutput="r")),
    (
        "claude",
        "PostToolUse",
        HostAnswer(verb=Verb.DENY, replacement="r"),
        {**hook("PostToolUse", updatedToolOutput="r"), "decision": "block", "reason": "Denied by wave guard."},
    ),
    ("claude", "Stop", HostAnswer(verb=Verb.END), {"continue": False, "stopReason": "Stopped by a guard."}),
    (
        "qwen",
        "PostToolUse",
        HostAnswer(replacement="r"),
        hook("PostToolUse", additionalContext="Use this in place of the tool's result: r"),
    ),
    ("gemini", "BeforeTool", REWRITE, hook("BeforeTool", tool_input={"command": "ls"})),
    (
        "gemini",
        "AfterAgent",
        HostAnswer(verb=Verb.END, reason="e", message="m"),
        {"continue": False, "stopReason": "e", "systemMessage": "m"},
    ),
    ("gemini", "SessionStart", HostAnswer(context="c"), hook("SessionStart", additionalContext="c")),
    ("vibe", "pre_tool", REWRITE, {"hook_specific_output": {"tool_input": {"command": "ls"}}}),
    (
        "vibe",
        "post_tool",
        HostAnswer(replacement="", message="m"),
        {"decision": "deny", "reason": "(withheld by a guard)", "system_message": "m"},
    ),
    ("vibe", "post_tool", DENY, {"hook_specific_output": {"additional_context": "no"}, "system_message": "no"}),
    ("vibe", "post_agent", DENY, {"decision": "deny", "reason": "no"}),
    ("cursor", "beforeSubmitPrompt", DENY, {"continue": False, "user_message": "no"}),
    ("cursor", "beforeReadFile", ASK, {"permission": "ask", "user_message": "sure?", "agent_message": "sure?"}),
    ("copilot", "sessionStart", HostAnswer(context="c"), {"additionalContext": "c"}),
    ("copilot", "preToolUse", REWRITE, {"modifiedArgs": {"command": "ls"}}),
    ("opencode", "tool.execute.after", HostAnswer(replacement="r"), {"output": "r"}),
    ("opencode", "tool.execute.before", REWRITE, {"input": {"command": "ls"}}),
]


@rows("host, name, answer, printed", EXACT, ids=lambda one: str(one)[:30])
def test_the_exact_form(host: str, name: str, answer: HostAnswer, printed: dict[str, Any]) -> None:
    given = reply(host, name, answer)
    assert (given.status, json.loads(given.stdout), given.stderr) == (0, printed, "")


@rows("host, name", [("codex", "PostToolUse"), ("gemini", "AfterTool")])
def test_where_the_reason_replaces_the_result_it_is_the_replacement(host: str, name: str) -> None:
    both = HostAnswer(verb=Verb.DENY, reason="no", context="c", replacement="r")
    assert reply(host, name, both) == HostReply(2, "", "r\nno\nc\n")
    assert reply(host, name, HostAnswer(replacement="")) == HostReply(2, "", "(withheld by a guard)\n")


ALLOWED = [
    ("claude", "PreToolUse", hook("PreToolUse", permissionDecision="allow", permissionDecisionReason="ok")),
    ("claude", "PermissionRequest", hook("PermissionRequest", decision={"behavior": "allow"})),
    ("gemini", "BeforeTool", {"decision": "allow", "reason": "ok"}),
    ("cursor", "beforeShellExecution", {"permission": "allow", "user_message": "ok", "agent_message": "ok"}),
    ("copilot", "preToolUse", {"permissionDecision": "allow", "permissionDecisionReason": "ok"}),
]


@rows("host, name, printed", ALLOWED, ids=lambda one: str(one)[:30])
def test_an_allow_is_passed_on_only_if_wanted(host: str, name: str, printed: dict[str, Any]) -> None:
    allow = HostAnswer(verb=Verb.ALLOW, reason="ok")
    assert reply(host, name, allow) == HostReply()
    assert json.loads(reply(host, name, allow, pass_allow=True).stdout) == printed


def test_a_host_that_cannot_allow_gets_no_allow() -> None:
    assert reply("kimi", "PreToolUse", HostAnswer(verb=Verb.ALLOW), pass_allow=True) == HostReply()


def test_ending_a_turn_that_ends_anyway_says_nothing() -> None:
    assert reply("codex", "Stop", HostAnswer(verb=Verb.END, reason="enough")) == HostReply()


def test_feedback_of_a_host_that_reads_none_is_dropped() -> None:
    assert reply("kimi", "PostToolUse", DENY) == HostReply()


def test_context_beside_a_deny_is_part_of_the_reason() -> None:
    given = reply("claude", "PreToolUse", HostAnswer(verb=Verb.DENY, reason="no", context="use x"))
    assert given == HostReply(2, "", "no\nuse x\n")


def test_a_deny_beside_a_rewrite_stays_as_it_is() -> None:
    answer = HostAnswer(verb=Verb.DENY, reason="no", tool_input={"command": "ls"})
    assert degraded(answer, HookEvent.PRE_TOOL_USE, frozenset({Verb.DENY})).reason == "no"


def test_long_texts_are_cut() -> None:
    given = reply("claude", "PreToolUse", HostAnswer(verb=Verb.DENY, reason="x" * 20_000))
    assert len(given.stderr) < 11_000
    assert given.stderr.endswith("(cut)\n")


def test_every_host_can_deny_before_a_tool_and_every_form_is_used() -> None:
    assert {row.form for row in HOSTS.values()} == set(Form)
    for row in HOSTS.values():
        assert Verb.DENY in row.enforces[HookEvent.PRE_TOOL_USE]
        assert set(row.enforces) <= set(EVENTS)


def test_several_answers_are_the_strictest_with_all_reasons() -> None:
    allow, none = HostAnswer(verb=Verb.ALLOW, reason="a"), HostAnswer(context="c", message="m", replacement="r")
    other = HostAnswer(verb=Verb.DENY, reason="never")
    assert together([allow]) == allow
    assert together([allow, allow]).verb is Verb.ALLOW
    assert together([allow, none]) == HostAnswer(context="c", message="m", replacement="r")
    assert together([ASK, none]).verb is Verb.ASK
    assert together([ASK, HostAnswer(verb=Verb.END)]).verb is Verb.END
    found = together([ASK, DENY, none, other])
    assert (found.verb, found.reason, found.context) == (Verb.DENY, "no\nnever", "c")
