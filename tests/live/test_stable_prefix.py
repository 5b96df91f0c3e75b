"""A provider's prompt cache serves what a request shares with an earlier one, from its first byte on.

Otherwise every turn pays for the whole conversation again.
"""

import json
from collections.abc import Callable, Iterator
from itertools import chain, pairwise, repeat
from typing import Any

from tests.cli.project import Project
from wave_agent.models.base import Usage
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import RecordedRequest, RecordingModelServer

BYPASS = ("--permission-mode", "bypassPermissions")
EAST, WEST = "Pacific/Kiritimati", "Etc/GMT+12"
"""Two places that never have the same date."""


def parts(body: dict[str, Any]) -> list[bytes]:
    """The request in the order in which models read it: tools, system message, the rest."""
    return [json.dumps(part, sort_keys=True).encode() for part in (body["tools"], *body["messages"])]


class Cache:
    """Keeps every request, and finds how much of a new one it has seen."""

    def __init__(self) -> None:
        self.before = 0
        """Bytes that were sent before, over all requests."""
        self.missed = 0
        """How many of them no earlier request began with."""
        self._seen: list[bytes] = []

    def read(self, request: RecordedRequest) -> Usage:
        sent = b"\n".join(parts(request.body))
        served = max((_common(sent, seen) for seen in self._seen), default=0)
        if self._seen:
            again = min(len(self._seen[-1]), len(sent))
            self.before += again
            self.missed += max(again - served, 0)
        self._seen.append(sent)
        return Usage(len(sent) // 4, 10, cache_read_tokens=served // 4)


def _common(one: bytes, other: bytes) -> int:
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    return next(at for at in range(length) if one[at] != other[at])


def answering(cache: Cache, replies: Iterator[Reply]) -> Iterator[Callable[[RecordedRequest], Reply]]:
    def answer(request: RecordedRequest) -> Reply:
        usage = cache.read(request)
        reply = next(replies)
        return Reply(reply.text, reply.tool_calls, usage=usage)

    return repeat(answer)


def turn(number: int) -> list[Reply]:
    return [
        Reply(tool_calls=[call("TodoWrite", todos=[{"content": f"step {number}", "status": "in_progress"}])]),
        Reply(tool_calls=[call("Write", file_path=f"new{number}.txt", content=f"{number}\n" * 20)]),
        Reply("Looking.", [call("Bash", command=f"cat new{number}.txt"), call("Read", file_path=f"new{number}.txt")]),
        Reply(tool_calls=[call("Bash", command="true", run_in_background=True)]),
        Reply(tool_calls=[call("Bash", command="exit 3"), call("Edit", file_path="missing", old_string="a")]),
        Reply("Not done yet."),  # a hook keeps it working once
        Reply(f"Done with {number}."),
    ]


HOOKS = {
    "SessionStart": ["echo the branch is green"],
    "UserPromptSubmit": ["date +%N"],
    "PreToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": "exit 2"}]}],
    "PostToolUse": [
        {
            "matcher": "Write",
            "hooks": [
                {"type": "command", "command": """echo '{"hookSpecificOutput":{"additionalContext":"formatted"}}'"""}
            ],
        }
    ],
    "Stop": ["grep -q '\"stop_hook_active\":true' || { echo go on >&2; exit 2; }"],
}


def test_turns_resumed_sessions_hooks_and_changes_around_them_resend_what_no_cache_serves(project: Project) -> None:
    project.settings({"hooks": HOOKS})
    instructions = project.directory / "AGENTS.md"
    instructions.write_text("Use tabs.\n")
    cache = Cache()
    runs: list[tuple[tuple[str, ...], dict[str, str]]] = [
        (BYPASS, {"TZ": EAST}),
        (("-c", "--permission-mode", "acceptEdits", "--append-system-prompt", "Be brief."), {"TZ": WEST}),
        (("-c", *BYPASS), {"TZ": WEST}),
        (("-c", *BYPASS, "--model", "other"), {"TZ": EAST}),
        (("-c", *BYPASS), {"TZ": EAST}),
    ]
    replies = chain.from_iterable(turn(number) for number in range(len(runs)))
    with RecordingModelServer.in_thread(answering(cache, replies)) as server:
        for number, (flags, environment) in enumerate(runs):
            ran = project.wave(
                "-p", f"Prompt {number}.", "--trust", "--output-format", "json", *flags, server=server, **environment
            )
            result = json.loads(ran.stdout)
            assert (ran.returncode, result["status"], result["turns"]) == (0, "completed", 7), ran.stderr
            assert result["usage"]["cache_read_tokens"] > 0
            instructions.write_text(f"Use {number} spaces.\n")
    requests = [parts(request.body) for request in server.requests]
    assert len(requests) == 35
    for number, (before, after) in enumerate(pairwise(requests)):
        assert after[: len(before)] == before, f"request {number + 1}"
    assert cache.missed / cache.before <= 0.05
    # What changed reaches the model all the same, each thing once.
    said = [message["content"] for message in server.requests[-1].body["messages"] if message["role"] == "user"]
    news = [text for text in said if text.startswith("[From Wave, not from the user] This has changed")]
    assert [[word for word in ("AGENTS.md", "Additional", "Be brief.", "Date") if word in text] for text in news] == [
        ["AGENTS.md", "Additional", "Be brief.", "Date"],
        ["AGENTS.md", "Additional"],
        ["AGENTS.md", "Date"],
        ["AGENTS.md"],
    ]
    assert "Use 3 spaces." in news[-1]
    modes = [text.partition(". ")[0].split()[-1] for text in said if "permission mode is now" in text]
    assert modes == ["acceptEdits", "bypassPermissions"]


def test_a_summary_leaves_the_model_with_what_was_true_days_ago(project: Project) -> None:
    """The cache cannot serve that request anyway, so it starts with what is true now."""
    instructions = project.directory / "AGENTS.md"
    instructions.write_text("Use tabs.\n")
    project.settings({"models": {"test": {"contextWindow": 12000, "profile": "full"}}})
    big = Reply(tool_calls=[call("Write", file_path="big.txt", content="word " * 6000)])
    with RecordingModelServer.in_thread([big, "Done.", "SUMMARY", "Hello.", "Hello again."]) as server:
        project.wave("-p", "Write much.", "--trust", *BYPASS, server=server)
        instructions.write_text("Use spaces.\n")
        project.wave("-c", "-p", "Go on, please. " * 300, "--trust", *BYPASS, server=server)
        project.wave("-c", "-p", "Once more.", "--trust", *BYPASS, server=server)
    first, _, summary, after, resumed = (request.body["messages"] for request in server.requests)
    assert summary[0] == first[0]
    assert "Use tabs." in first[0]["content"]
    assert "Use spaces." in after[0]["content"]
    assert "Use tabs." not in after[0]["content"]
    assert resumed[: len(after)] == after
