"""Whatever a hook, a tool, the model, a file or a setting says: nothing of it commands the terminal."""

import errno
import json
import os
import pty
import re
import stat
import subprocess
import sysconfig
import tty
from pathlib import Path
from typing import Any

import pytest

from wave_agent.testing import RecordingModelServer, Reply, call
from wave_agent.testing.model_server import Status

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")
HOSTILE = (
    "before\x1b]52;c;Z290Y2hh\x07\x1b]0;title\x1b\\\x1b[2J\x1b[31m\x1bPq\x1b\\\x1b(0\x1bc"  # clipboard, title, screen
    "\x9b31m\x9d0;t\x9c\x85\x90"  # C1
    "\rover\x08\x07\x00\x7f\x0b\x0c\x0e\u202ereversed\u2066\u200bafter"
)
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
PRINTED = "".join(f"\\{byte:03o}" for byte in HOSTILE.replace("\x00", "").encode())
"""For printf."""


class Terminal:
    """`wave` on a terminal that passes on every byte as it is."""

    def __init__(self, root: Path) -> None:
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir()
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("WAVE", "OPENAI"))}
        self.environment = {**kept, "WAVE_HOME": str(self.home), "NO_PROXY": "127.0.0.1", "TERM": "xterm"}

    def settings(self, settings: dict[str, Any]) -> None:
        (self.project / ".wave").mkdir(exist_ok=True)
        (self.project / ".wave" / "settings.json").write_text(json.dumps(settings))

    def wave(self, *arguments: str, replies: list[Any] | None = None) -> str:
        """All that came to the terminal."""
        with RecordingModelServer.in_thread(replies or []) as server:
            environment = {**self.environment, "WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "m"}
            master, slave = pty.openpty()
            tty.setraw(slave)
            process = subprocess.Popen(
                [WAVE, *arguments], cwd=self.project, env=environment, stdin=slave, stdout=slave, stderr=slave
            )
            os.close(slave)
            shown = bytearray()
            while part := _read(master):
                shown += part
            process.wait(timeout=60)
            os.close(master)
        return shown.decode()


def _read(master: int) -> bytes:
    try:
        return os.read(master, 1 << 16)
    except OSError as error:
        if error.errno != errno.EIO:  # that is how a terminal ends
            raise
        return b""


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def harmless(shown: str) -> bool:
    found = FORBIDDEN.search(shown)
    assert found is None, ascii(shown[max(0, found.start() - 80) : found.end() + 20])
    return True


def hook(command: str, **more: Any) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, **more}]}


SCENES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "the model": ({}, [Reply(text=HOSTILE, reasoning=HOSTILE)]),
    "a tool": ({}, [Reply(tool_calls=[call("Bash", command=f"printf '{PRINTED}'; exit 3")]), "done"]),
    "a command": ({}, [Reply(tool_calls=[call("Bash", command=f"true # {HOSTILE}")]), "done"]),
    "the name of a tool": ({}, [Reply(tool_calls=[call(f"Bash{HOSTILE}", command="true")]), "done"]),
    "a path": ({}, [Reply(tool_calls=[call("Read", file_path=f"/nowhere/{HOSTILE}")]), "done"]),
    "the name of a file": ({}, [Reply(tool_calls=[call("Glob", pattern="**/*")]), "done"]),
    "a call that must be asked for": (
        {},
        [Reply(tool_calls=[call("Write", file_path="/x" + HOSTILE, content="")]), "d"],
    ),
    "a hook that blocks the prompt": ({"UserPromptSubmit": [hook(f"printf '{PRINTED}' >&2; exit 2")]}, ["done"]),
    "a hook that blocks a call": (
        {"PreToolUse": [hook(f"printf '{PRINTED}' >&2; exit 2")]},
        [Reply(tool_calls=[call("Bash", command="true")]), "done"],
    ),
    "a hook that stops": (
        {"Stop": [hook(f"""printf '%s' '{json.dumps({"continue": False, "stopReason": HOSTILE})}'""")]},
        ["done"],
    ),
    "a hook that tells the user": (
        {"UserPromptSubmit": [hook(f"""printf '%s' '{json.dumps({"systemMessage": HOSTILE})}'""")]},
        ["done"],
    ),
    "a hook that fails": ({"UserPromptSubmit": [hook(f"printf '{PRINTED}' >&2; exit 1")]}, ["done"]),
    "a hook that cannot be found": ({"UserPromptSubmit": [hook(f"/nowhere/{HOSTILE}".replace("\x00", ""))]}, ["done"]),
    "the name of a hook": ({"UserPromptSubmit": [hook("exit 1", name=HOSTILE)]}, ["done"]),
    "an event": ({HOSTILE: [hook("true")]}, ["done"]),
}


@pytest.mark.parametrize("output_format", ["text", "json", "stream-json"])
@pytest.mark.parametrize("scene", SCENES)
def test_nothing_commands_the_terminal(terminal: Terminal, scene: str, output_format: str):
    hooks, replies = SCENES[scene]
    (terminal.project / HOSTILE.replace("\x00", "").replace("/", "")).touch()
    terminal.settings({"hooks": hooks, "permissions": {"allow": ["Bash", "Read", "Glob"]}, f"odd{HOSTILE}": 1})
    shown = terminal.wave(
        *("-p", f"prompt {HOSTILE}".replace("\x00", ""), "--trust", "--debug", "hooks"),
        *("--output-format", output_format),
        replies=replies,
    )
    assert shown
    assert "Traceback" not in shown
    assert harmless(shown)


def test_nor_does_a_session_that_is_looked_at_later(terminal: Terminal):
    prompt = f"prompt {HOSTILE}".replace("\x00", "")
    terminal.wave("-p", prompt, "--allowed-tools", "Bash", replies=list(SCENES["a tool"][1]))
    (session,) = (path.stem for path in terminal.home.rglob("*.jsonl"))
    for command in ((), ("--json",), ("show", session), ("show", "--json", session), ("export", session)):
        shown = terminal.wave("sessions", *command)
        assert "over" in shown
        assert harmless(shown)
    terminal.wave("sessions", "export", session, "-o", "out.md")
    assert harmless((terminal.project / "out.md").read_text())


@pytest.mark.parametrize(
    "settings",
    [
        {"hooks": {"Stop": [hook(f"./missing{HOSTILE}")]}},
        {"hooks": {HOSTILE: []}},
        {"permissions": {"deny": [HOSTILE]}},
        {"permissions": {"defaultMode": HOSTILE}},
        {"model": HOSTILE, "baseUrl": f"http://127.0.0.1:9/{HOSTILE}"},
        {HOSTILE: HOSTILE},
    ],
)
@pytest.mark.parametrize("command", [("doctor",), ("doctor", "--json"), ("-p", "hi"), ("-p", "hi", "--trust")])
def test_nor_does_a_setting(terminal: Terminal, settings: dict[str, Any], command: tuple[str, ...]):
    terminal.settings(settings)
    assert harmless(terminal.wave(*command, replies=[HOSTILE, HOSTILE]))


def test_nor_do_settings_that_are_not_json(terminal: Terminal):
    (terminal.project / ".wave").mkdir()
    (terminal.project / ".wave" / "settings.json").write_text(f'{{"a{HOSTILE}": {HOSTILE}}}')
    for command in (("doctor",), ("-p", "hi")):
        shown = terminal.wave(*command)
        assert "settings.json" in shown
        assert harmless(shown)


def test_nor_does_an_error_of_the_server(terminal: Terminal):
    for status in (400, 401):
        shown = terminal.wave("-p", "hi", replies=[Status(status, {"error": {"message": HOSTILE}})])
        assert "over" in shown
        assert harmless(shown)


def test_whatever_is_kept_on_disk_is_the_users_alone(terminal: Terminal):
    long = "head -c 20000 /dev/zero | tr '\\0' x"
    terminal.settings({"hooks": {"UserPromptSubmit": [hook(long)]}})
    calls = [
        Reply(tool_calls=[call("Bash", command="seq 1 20000")]),
        Reply(tool_calls=[call("Bash", command="echo hello", run_in_background=True)]),
        "done",
    ]
    before = os.umask(0)
    try:
        terminal.wave("-p", "hi", "--trust", "--allowed-tools", "Bash", replies=calls)
    finally:
        os.umask(before)
    kept = [terminal.home, *terminal.home.rglob("*")]
    names = {path.name.partition("-")[0] for path in kept}
    assert {"bash", "background", "hook"} <= names
    for path in kept:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.skipif(os.geteuid() != 0, reason="only for root")
@pytest.mark.parametrize(("mode", "warned"), [("bypassPermissions", True), ("default", False)])
def test_root_is_warned_at_a_terminal_if_nothing_would_ask(terminal: Terminal, mode: str, warned: bool):
    shown = terminal.wave("-p", "hi", "--permission-mode", mode, replies=["done"])
    assert "done" in shown
    assert ("You are root" in shown) is warned
