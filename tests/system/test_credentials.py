"""The agent's own keys stay its own: whoever it starts, whatever it prints, wherever it writes."""

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from wave_agent.system.credentials import without_credentials, without_userinfo
from wave_agent.testing import RecordingModelServer, Reply, call
from wave_agent.testing.model_server import Status

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")
KEY, PASSWORD = "sk-very-secret-key", "very-secret-password"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/v1", "https://host/v1"),
        ("https://me:pw@host:1/v1?x=a@b", "https://host:1/v1?x=a@b"),
        ("https://me:p@w@host", "https://host"),
        ("me:pw@host/v1", "host/v1"),
        ("", ""),
    ],
)
def test_a_url_is_shown_without_user_and_password(url: str, shown: str):
    assert without_userinfo(url) == shown


def test_what_hooks_and_tools_get_holds_no_credentials():
    url = f"https://me:{PASSWORD}@host/v1?key={KEY}"
    own = {"WAVE_API_KEY": KEY, "OPENAI_API_KEY": KEY, "WAVE_BASE_URL": url, "A": "1"}
    own |= {"OTEL_EXPORTER_OTLP_HEADERS": f"key={KEY}", "OTEL_SDK_DISABLED": "true"}
    assert without_credentials(own) == {"WAVE_BASE_URL": "https://host/v1", "A": "1"}


class World:
    def __init__(self, root: Path) -> None:
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir()

    def wave(self, server: RecordingModelServer, *arguments: str) -> Any:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("WAVE", "OPENAI"))}
        own = {"WAVE_API_KEY": KEY, "OPENAI_API_KEY": KEY, "WAVE_HOME": str(self.home), "WAVE_MODEL": "m"}
        own |= {
            name: server.base_url.replace("//", f"//me:{PASSWORD}@") for name in ("WAVE_BASE_URL", "OPENAI_BASE_URL")
        }
        return subprocess.run(
            [WAVE, *arguments], cwd=self.project, env={**kept, **own, "NO_PROXY": "127.0.0.1"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def everything(self) -> str:
        """All that was written to disk."""
        files = [path for root in (self.project, self.home) for path in root.rglob("*") if path.is_file()]
        return "\n".join(path.read_text() for path in files)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def is_clean(text: str) -> bool:
    return KEY not in text and PASSWORD not in text


@pytest.mark.parametrize("output_format", ["text", "json", "stream-json"])
def test_no_process_that_is_started_has_them(world: World, output_format: str):
    (world.project / ".wave").mkdir()
    told = {"hooks": [{"command": "env | tee hook.txt"}]}
    settings = {"hooks": {"UserPromptSubmit": [told], "PreToolUse": [told], "Stop": [told]}}
    (world.project / ".wave" / "settings.json").write_text(json.dumps(settings))
    calls = [
        Reply(tool_calls=[call("Bash", command="env | tee tool.txt")]),
        Reply(tool_calls=[call("Bash", command="env > background.txt", run_in_background=True)]),
        Reply(tool_calls=[call("Bash", command="while ! [ -s background.txt ]; do sleep 0.01; done")]),
        "Done.",
    ]
    flags = ("--trust", "--allowed-tools", "Bash", "--debug", "hooks", "--output-format", output_format)
    with RecordingModelServer.in_thread(calls) as server:
        done = world.wave(server, "-p", "go", *flags)
        sent = json.dumps([request.body for request in server.requests])
    assert done.returncode == 0, done.stderr
    for name in ("hook.txt", "tool.txt", "background.txt"):
        assert "WAVE_BASE_URL=http://127.0.0.1" in (world.project / name).read_text()
    assert is_clean(done.stdout + done.stderr)
    assert is_clean(world.everything())
    assert is_clean(sent)


@pytest.mark.parametrize("status", [401, 404, 500])
def test_no_error_repeats_them(world: World, status: int):
    refusal = Status(status, {"error": {"message": f"no: {KEY} {PASSWORD}"}})
    with RecordingModelServer.in_thread([refusal] * 12) as server:
        done = world.wave(server, "-p", "go", "--output-format", "json")
        assert is_clean(done.stdout + done.stderr + world.everything())
        assert done.returncode == 1


def test_the_doctor_does_not_show_them(world: World):
    with RecordingModelServer.in_thread(["ready", "pong"]) as server:
        for arguments in (("doctor",), ("doctor", "--json")):
            done = world.wave(server, *arguments)
            assert "127.0.0.1" in done.stdout
            assert "Traceback" not in done.stderr
            assert is_clean(done.stdout + done.stderr)
    done = world.wave(server, "doctor")  # nobody listens there any more
    assert is_clean(done.stdout + done.stderr)
    assert "Traceback" not in done.stderr


def test_what_the_settings_put_into_the_environment_is_the_users_wish(world: World):
    """Somebody who works on a program that needs such a key says so there."""
    (world.home).mkdir()
    (world.home / "settings.json").write_text(json.dumps({"env": {"OPENAI_API_KEY": "another one"}}))
    with RecordingModelServer.in_thread(
        [Reply(tool_calls=[call("Bash", command="echo $OPENAI_API_KEY > seen")]), "Done."]
    ) as server:
        world.wave(server, "-p", "go", "--allowed-tools", "Bash")
    assert (world.project / "seen").read_text() == "another one\n"
