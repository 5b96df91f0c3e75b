"""Events of other agents, judged in this process."""

import fcntl
import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from wave_agent.guard.answers import HostReply
from wave_agent.guard.run import Asked, answer_event
from wave_agent.system.ancestry import OTHER_AGENTS


def wait_until(done: Callable[[], bool], seconds: float = 20) -> None:
    ends = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.01)


class Arena:
    """A project with settings, and the state directory of its user."""

    def __init__(self, directory: Path) -> None:
        self.project = directory / "project"
        self.home = directory / "home"
        (self.project / ".wave").mkdir(parents=True)
        self.home.mkdir()

    def resident(self) -> int | None:
        """The process id of the resident guard, once it listens."""
        guard = self.home / "guard"
        try:
            return int((guard / "lock").read_text()) if (guard / "socket").exists() else None
        except (OSError, ValueError):
            return None

    def end_resident(self) -> None:
        """Ends the resident guard that commands of a test have started."""
        lock = self.home / "guard" / "lock"
        if not lock.exists():
            return
        held = os.open(lock, os.O_RDWR)  # and stays so: one that is about to start finds it taken

        def is_ours() -> bool:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                with suppress(OSError, ValueError):
                    os.kill(int(lock.read_text()), signal.SIGTERM)
                return False
            return True

        wait_until(is_ours)

    def rules(self, **permissions: list[str]) -> None:
        """Rules of the project: restrictions need no trust."""
        (self.project / ".wave" / "settings.json").write_text(json.dumps({"permissions": permissions}))

    def hooks(self, hooks: dict[str, Any], **more: Any) -> None:
        """Hooks of the user, which are trusted."""
        (self.home / "settings.json").write_text(json.dumps({"hooks": hooks, **more}))

    def hook(self, event: str, script: str, *, matcher: str = "*", **more: Any) -> None:
        self.hooks({event: [{"matcher": matcher, "hooks": [{"command": script, "name": "guard", **more}]}]})

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith("WAVE") and key not in OTHER_AGENTS
        }
        kept.pop("CLAUDE_PROJECT_DIR", None)
        return {**kept, "WAVE_HOME": str(self.home)}

    def judge(
        self, host: str, event: str, payload: Any, *, timeout: float = 60, pass_allow: bool = False, **env: Any
    ) -> HostReply:
        asked = Asked(
            host=host,
            name=event,
            directory=str(self.project),
            environment={**self.environment, **env},
            timeout=timeout,
            pass_allow=pass_allow,
        )
        replies: list[HostReply] = []
        stdin = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        answer_event(asked, stdin, replies.append)
        (reply,) = replies
        return reply

    def bash(self, command: str, **more: Any) -> HostReply:
        """A command in Claude Code."""
        return self.judge("claude", "PreToolUse", self.call(command), **more)

    def call(self, command: str, session: str = "s1") -> dict[str, Any]:
        return {
            "session_id": session,
            "cwd": str(self.project),
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": "t1",
        }

    def journal(self, session: str = "claude-s1") -> list[dict[str, Any]]:
        (file,) = (self.home / "projects").glob(f"*/{session}.jsonl")
        return [json.loads(line) for line in file.read_text().splitlines()]
