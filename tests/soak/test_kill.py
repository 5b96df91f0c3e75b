"""`kill -9` of a real `wave -p` at random moments, start-up and resumption included: nothing that it acknowledged is
lost, every session can be resumed, and what it left running ends with the next start.

A record is acknowledged once somebody outside the process could have acted on it:

- its event was printed, as a whole line of stream-json. A run of a hook on a prompt that is not yet judged is
  acknowledged with the prompt, since nothing of that may reach the disk before;
- it stood in a request that the model has got;
- the effect of a tool is there: then so is the call.
"""

import json
import os
import random
import signal
import subprocess
import sysconfig
import time
from collections import Counter
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pytest

from wave_agent.models.base import ToolCall
from wave_agent.sessions.hash_chain import check
from wave_agent.sessions.transcript import load_session
from wave_agent.testing import RecordingModelServer, Reply
from wave_agent.testing.model_server import RecordedRequest

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")

# One run in five hangs for longer than the test takes, unless the file `calm` is there.
HOOK = """#!/bin/bash
cat >/dev/null
[ -e calm ] || [ $((RANDOM % 5)) != 0 ] || sleep 600
exit 0
"""
EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")


class Model:
    """Has a file made by Bash and one by Write, both named after the call; then it is content."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self, request: RecordedRequest) -> Reply:
        if request.body["messages"][-1]["role"] == "tool":
            return Reply("It is made.")
        first, second = f"call_{next(self._numbers)}", f"call_{next(self._numbers)}"
        return Reply(
            "I make it.",
            [
                ToolCall(first, "Bash", json.dumps({"command": f"touch effect-{first}; sleep 0.05"})),
                ToolCall(second, "Write", json.dumps({"file_path": f"effect-{second}", "content": second})),
            ],
        )


class Field:
    """The project, the agents that were killed in it, and what they had acknowledged."""

    def __init__(self, directory: Path, server: RecordingModelServer) -> None:
        self.project, self.home, self.output = directory / "project", directory / "home", directory / "output"
        self.project.mkdir()
        (self.project / "hook.sh").write_text(HOOK)
        (self.project / "hook.sh").chmod(0o755)
        hooks = {event: [{"hooks": [{"command": "./hook.sh", "name": event}]}] for event in EVENTS}
        (self.project / ".wave").mkdir()
        (self.project / ".wave" / "settings.json").write_text(json.dumps({"hooks": hooks}))
        self.server = server
        self.requests = 0
        self.numbers = count(1)
        self.prompts: set[str] = set()
        self.calls: set[str] = set()
        self.results: set[str] = set()
        self.runs: Counter[tuple[str, str, str | None]] = Counter()
        self.survivors: set[tuple[int, str]] = set()
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("WAVE", "OPENAI", "COV"))}
        self.environment = {
            **kept,
            "WAVE_HOME": str(self.home),
            "WAVE_BASE_URL": server.base_url,
            "WAVE_MODEL": "any",
            "WAVE_API_KEY": "key",
            "NO_PROXY": "127.0.0.1",
        }

    def run(self, *arguments: str, seconds: float | None = None) -> int | None:
        """Its exit status, or None where it was killed. What it has to answer for is noted."""
        flags = ["--trust", "--permission-mode", "bypassPermissions", "--output-format", "stream-json", *arguments]
        with self.output.open("wb") as output:
            process = subprocess.Popen(
                [WAVE, "-p", f"Please make number {next(self.numbers)}.", *flags],
                cwd=self.project,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            try:
                _, told = process.communicate(timeout=seconds or 60)
                assert process.returncode == 0, told.decode()
                status = 0
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                status = None
            finally:
                if process.stderr is not None:
                    process.stderr.close()
        self.note(self.events())
        return status

    def events(self) -> list[dict[str, Any]]:
        whole, _, _ = self.output.read_bytes().rpartition(b"\n")
        return [json.loads(line) for line in whole.splitlines()]

    def note(self, events: list[dict[str, Any]]) -> None:
        started = next((event for event in events if event["type"] == "session_started"), None)
        if started is not None:
            left = self.survivors & self.living()
            assert left == set(), "the next start has left processes of a killed agent running"
        for at, event in enumerate(events):
            if event["type"] == "tool_started":
                self.calls.add(event["id"])
            elif event["type"] == "tool_finished":
                self.results.add(event["id"])
            elif event["type"] == "hook_finished":
                judged = any(not later["type"].startswith("hook_") for later in events[at:])
                if event["event"] != "UserPromptSubmit" or judged:
                    assert started is not None
                    self.runs[started["session_id"], event["event"], event["tool_use_id"]] += 1
        for request in self.server.requests[self.requests :]:
            for message in request.body["messages"]:
                self.calls |= {call["id"] for call in message.get("tool_calls", ())}
                if message["role"] == "tool" and "interrupted" not in message["content"]:
                    self.results.add(message["tool_call_id"])  # one that was interrupted is made for the request
                if message["role"] == "user":
                    # What the agent itself adds, such as news for a resumed session, is recorded without the mark.
                    self.prompts.add(message["content"].removeprefix("[From Wave, not from the user] "))
        self.requests = len(self.server.requests)
        self.calls |= {file.name.removeprefix("effect-") for file in self.project.glob("effect-*")}
        self.survivors |= self.living()

    def living(self) -> set[tuple[int, str]]:
        """All processes of agents with this home: number and time of birth."""
        found: set[tuple[int, str]] = set()
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                if f"WAVE_HOME={self.home}".encode() not in (directory / "environ").read_bytes().split(b"\0"):
                    continue
                fields = (directory / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in "ZX":
                found.add((int(directory.name), fields[19]))
        return found

    def transcripts(self) -> list[Path]:
        return sorted(self.home.glob("projects/*/*.jsonl"), key=lambda path: path.stat().st_mtime)

    def check(self) -> None:
        """Everything that was acknowledged so far, by whomever, is on disk."""
        prompts, calls, results = set[str](), set[str](), set[str]()
        runs: Counter[tuple[str, str, str | None]] = Counter()
        for path in self.transcripts():
            lines = path.read_bytes().splitlines()
            assert check(lines, path.stem).findings == ()
            assert load_session(path).skipped == 0
            for record in map(json.loads, lines):
                if record.get("subtype") == "hook_run":
                    runs[path.stem, record["event"], record["tool_use_id"]] += 1
                content = record.get("message", {}).get("content", [])
                prompts |= {content} if isinstance(content, str) else set()
                parts = [part for part in content if isinstance(part, dict)]
                calls |= {part["id"] for part in parts if part["type"] == "tool_use"}
                results |= {part["tool_use_id"] for part in parts if part["type"] == "tool_result"}
        assert self.prompts - prompts == set()
        assert self.calls - calls == set()
        assert self.results - results == set()
        assert self.runs - runs == Counter()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds what was left running in /proc")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_an_agent_that_is_killed_loses_nothing_and_leaves_nothing(tmp_path: Path, kills: int) -> None:
    dice = random.Random(kills)
    with RecordingModelServer.in_thread(repeat(Model())) as server:
        field = Field(tmp_path, server)
        (field.project / "calm").touch()
        started = time.monotonic()
        field.run()
        whole = time.monotonic() - started
        killed = 0
        while killed < kills:
            if dice.random() < 0.5:
                (field.project / "calm").touch()
            else:
                (field.project / "calm").unlink(missing_ok=True)
            latest = field.transcripts()[-1].stem
            arguments = ("-r", latest) if dice.random() < 0.8 else ()
            killed += field.run(*arguments, seconds=dice.uniform(0, whole)) is None
            field.check()
        (field.project / "calm").touch()
        for path in field.transcripts():
            assert field.run("-r", path.stem) == 0
        field.check()
        assert field.living() == set()
        assert list((field.home / "running").iterdir()) == []
