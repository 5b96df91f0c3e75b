"""What a hostile tester found: each stays closed."""

import asyncio
import json
import os
import signal
import subprocess
import sysconfig
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from tests.rows import rows
from tests.waiting import number_in, until
from wave_agent import Agent, SettingsError
from wave_agent.hooks.definitions import Layer
from wave_agent.rules.rule import Places, parse_rule
from wave_agent.settings.hook_entries import load_hooks, parse_settings
from wave_agent.settings.layers import merge_settings
from wave_agent.testing import RecordingModelServer, Reply, ScriptedModel, call

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")
PLACES = Places("/project", "/home/me")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


async def results(project: Path, *calls: Any, **options: Any) -> list[str]:
    model = ScriptedModel([Reply(tool_calls=calls), "done"])
    async with await Agent.create(workdir=project, model_client=model, **options) as agent:
        await agent.send_message("go")
    return [message["content"] for message in model.requests[-1].messages if message["role"] == "tool"]


async def test_a_trust_function_that_does_not_say_yes_is_no_yes(project: Path):
    (project / ".wave").mkdir()
    (project / ".wave" / "settings.json").write_text('{"hooks": {"Stop": ["touch pwned"]}}')

    async def later(_: Any) -> bool:
        return False

    for trust in (later, lambda _: "no", lambda _: None, "no", 0):
        with pytest.raises(SettingsError, match="trust"):
            await Agent.create(workdir=project, model_client=ScriptedModel([]), trust=trust)  # type: ignore[arg-type]
    assert not (project / "pwned").exists()


async def test_a_link_neither_dodges_a_deny_rule_nor_widens_an_allow_rule(project: Path):
    (project / "secrets").mkdir()
    (project / "secrets" / "key").write_text("hunter2")
    (project / "public").symlink_to("secrets")
    (project.parent / "outside").mkdir()
    (project / "src").mkdir()
    (project / "src" / "link").symlink_to(project.parent / "outside")
    rules = {"permissions": {"deny": ["Read(secrets/**)"], "allow": ["Write(src/**)"]}}
    read, wrote, fine = await results(
        project,
        call("Read", file_path="public/key"),
        call("Write", file_path="src/link/new", content="x"),
        call("Write", file_path="src/new", content="x"),
        settings=rules,
    )
    assert "Not run: denied by the permission rule" in read
    assert not (project.parent / "outside" / "new").exists()
    assert "outside the project, so Write needs confirmation, and nobody can confirm it in this run" in wrote
    assert (project / "src" / "new").exists(), fine


@rows(
    "command",
    [
        "'git' push", 'git "push"', "\\git push", "gi\\t push", "timeout 5 git push", "nice git push",
        "setsid git push", "env -i git push", "command -p git push", "time -p git push", "eval git push",
        "/usr/bin/git push", "xargs git push",
        "FOO=1 sudo env git push", "if true; then git push; fi",
    ],
)  # fmt: skip
def test_these_spellings_do_not_dodge_a_deny_rule(command: str):
    assert parse_rule("Bash(git push:*)").matches("Bash", {"command": command}, PLACES)


def test_a_long_line_of_prefixes_is_judged_in_no_time():
    started = perf_counter()
    parse_rule("Bash(git push:*)").matches("Bash", {"command": "env " * 20_000 + "ls"}, PLACES)
    assert perf_counter() - started < 5  # it took 16 seconds for a third of this


def test_a_misspelt_tool_in_a_matcher_or_a_rule_is_told():
    settings = {
        "hooks": {"PreToolUse": [{"matcher": "Bahs", "hooks": [{"command": "true"}]}]},
        "permissions": {"deny": ["Bsh"]},
    }
    found = merge_settings([parse_settings(json.dumps(settings), Layer.USER, "s.json")])
    assert ['did you mean "Bash"' in issue.message for issue in found.issues] == [True, True]
    known = load_hooks(
        [parse_settings('{"hooks": {"PreToolUse": [{"matcher": "bash|mcp__x__y", "hooks": []}]}}', Layer.USER, "s")]
    )
    assert known.issues == ()


def test_a_variable_that_cannot_be_set_is_told_and_left_out():
    found = merge_settings([parse_settings('{"env": {"A=B": "x", "C": "y"}}', Layer.USER, "s.json")])
    assert dict(found.env) == {"C": "y"}
    assert "environment variable" in found.issues[0].message


async def test_an_argument_that_is_cut_is_told(project: Path):
    (project / "guard.sh").write_text("#!/bin/sh\nexit 0\n")
    (project / "guard.sh").chmod(0o755)
    model = ScriptedModel(["done"])
    async with await Agent.create(
        workdir=project, model_client=model, hooks={"UserPromptSubmit": [{"hooks": ["./guard.sh"]}]}
    ) as agent:
        await agent.send_message("x" * 110_000)
    assert "truncated to 100 KiB" in str(agent.messages)


async def test_a_second_cancel_still_waits_for_the_hook_to_be_gone(project: Path):
    stubborn = 'trap "" TERM; echo $$ > pid; while :; do sleep 0.05; done'
    async with await Agent.create(
        workdir=project, model_client=ScriptedModel([]), hooks={"UserPromptSubmit": [{"hooks": [stubborn]}]}
    ) as agent:
        turn = asyncio.create_task(agent.send_message("go"))
        pid = await number_in(project / "pid")
        turn.cancel()
        await asyncio.sleep(0)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        with pytest.raises(TypeError, match="string"):
            await agent.send_message(None)  # type: ignore[arg-type]


async def test_a_transcript_that_is_partly_unreadable_resumes_with_a_notice(project: Path):
    async with await Agent.create(workdir=project, model_client=ScriptedModel(["hello"])) as agent:
        await agent.send_message("hi")
    transcript = Path(agent.transcript_path)
    transcript.write_text(transcript.read_text() + "garbage\n")
    async with await Agent.create(
        workdir=project, model_client=ScriptedModel(["again"]), resume=agent.session_id
    ) as agent:
        await agent.send_message("more")
    assert "1 lines of the transcript could not be read" in str(agent.messages)


def runs(pid: int) -> bool:
    """Whoever adopted it may be slow to reap it: a zombie does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wave(project: Path, server: RecordingModelServer, command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "m", "NO_PROXY": "127.0.0.1"}
    return subprocess.run(
        ["sh", "-c", command, "sh", WAVE],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_json_comes_whatever_characters_are_in_it_and_closed_streams_cost_no_traceback(project: Path):
    odd = Reply(tool_calls=[call("Bash", command="echo \ud800")])
    with RecordingModelServer.in_thread([odd, "fine", "é", "a", "b", "c"]) as server:
        done = wave(project, server, '"$1" -p hi --output-format json </dev/null')
        assert json.loads(done.stdout)["result"] == "fine"
        assert wave(project, server, 'PYTHONIOENCODING=ascii "$1" -p hi </dev/null').stdout == "?\n"
        for closed in ("<&-", "</dev/null 2>&-", "</dev/null >&-"):
            done = wave(project, server, f'"$1" -p hi {closed}')
            assert "Traceback" not in done.stderr
            assert done.stdout or closed.endswith(">&-")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds its children in /proc")
def test_a_second_ctrl_c_takes_a_stubborn_hook_with_it(project: Path):
    (project / "s.json").write_text(
        json.dumps(
            {
                "hooks": {
                    "UserPromptSubmit": [
                        'trap "touch heard" TERM; trap "" INT; echo $$ > pid; while :; do sleep 0.05; done'
                    ]
                }
            }
        )
    )
    process = subprocess.Popen([WAVE, "-p", "hi", "--settings", "s.json"], cwd=project, stdin=subprocess.DEVNULL)
    pid = asyncio.run(number_in(project / "pid"))
    process.send_signal(signal.SIGINT)
    asyncio.run(until((project / "heard").exists))  # two signals in one moment would be one
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    asyncio.run(until(lambda: not runs(pid)))


def test_a_directory_that_is_gone_is_told(project: Path):
    gone = project / "gone"
    command = f'mkdir "{gone}" && cd "{gone}" && rmdir "{gone}" && "$1" -p hi'
    done = subprocess.run(["sh", "-c", command, "sh", WAVE], capture_output=True, text=True, check=False)
    assert (done.returncode, "no longer exists" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("script", "ran"), [('[[ "$2" != *forbidden* ]] || exit 2\n', False), ("cat > /dev/null\n", True)]
)
async def test_a_guard_that_judges_by_a_cut_argument_has_failed(tmp_path: Path, script: str, ran: bool) -> None:
    """What it looks for may stand further back; whoever reads stdin has seen it all."""
    guard = tmp_path / "guard.sh"
    guard.write_text(f"#!/bin/bash\n{script}")
    guard.chmod(0o755)
    hooks = {"PreToolUse": [{"hooks": [{"command": str(guard), "onFailure": "block"}]}]}
    asked = call("Bash", description="a" * 110_000, command="touch forbidden")
    model = ScriptedModel([Reply(tool_calls=[asked]), "Done."])
    async with await Agent.create(
        workdir=tmp_path, model_client=model, hooks=hooks, setting_sources=[], permission_mode="bypassPermissions"
    ) as agent:
        await agent.send_message("Go.")
        assert ran or "did not read its stdin" in str(agent.messages)
    assert (tmp_path / "forbidden").exists() is ran
