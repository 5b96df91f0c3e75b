"""`wave --sandbox` as a real process."""

import asyncio
import json
import os
import shlex
import socket
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.sandboxes import ESCAPEE, is_held, open_sandbox
from tests.waiting import until
from wave_agent.testing import RecordingModelServer, Reply, call

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")


class World:
    def __init__(self, root: Path) -> None:
        self.root, self.project, self.home = root, root / "project", root / "home"
        self.project.mkdir()
        self.victim = root / "victim"
        self.victim.write_text("as it was")

    def wave(self, *arguments: str, calls: list[Any] | None = None, **environment: str) -> tuple[Any, list[str]]:
        """What came of it, and the results that the model was sent."""
        replies = [Reply(tool_calls=[one]) for one in calls or []]
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("WAVE", "OPENAI"))}
        with RecordingModelServer.in_thread([*replies, "Done."]) as server:
            done = subprocess.run(
                [WAVE, "-p", "go", "--permission-mode", "bypassPermissions", *arguments],
                cwd=self.project,
                env={
                    **kept,
                    "WAVE_BASE_URL": server.base_url,
                    "WAVE_MODEL": "m",
                    "WAVE_HOME": str(self.home),
                    "NO_PROXY": "127.0.0.1",
                    **environment,
                },
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            sent = server.requests[-1].body["messages"] if server.requests else []
        return done, [message["content"] for message in sent if message["role"] == "tool"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def confined(world: World) -> World:
    open_sandbox(world.project, world.home).close()  # skips where there is none
    return world


def test_commands_and_edits_stay_in_the_project_even_where_everything_is_permitted(confined: World):
    victim, settings = str(confined.victim), str(confined.project / ".wave" / "settings.json")
    done, results = confined.wave(
        "--sandbox",
        calls=[
            call("Bash", command=f"echo gotcha > {victim}; echo 1 > inside"),
            call("Write", file_path=str(confined.root / "new"), content="gotcha"),
            call("Write", file_path=settings, content="{}"),
            call("Write", file_path="written", content="ok"),
        ],
    )
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert "outside the directories that are writable in the sandbox" in results[1]
    assert "is protected, and read-only in the sandbox" in results[2]
    assert confined.victim.read_text() == "as it was"
    assert not (confined.root / "new").exists()
    assert sorted(os.listdir(confined.project)) == ["inside", "written"]


def test_an_added_directory_can_be_written(confined: World):
    added = confined.root / "added"
    added.mkdir()
    confined.wave(
        "--sandbox",
        *("--add-dir", str(added)),
        calls=[call("Bash", command=f"echo 1 > {added}/a"), call("Write", file_path=str(added / "b"), content="2")],
    )
    assert sorted(os.listdir(added)) == ["a", "b"]


@pytest.mark.parametrize("trusted", [True, False])
def test_the_network_is_a_setting_that_an_untrusted_project_cannot_make(confined: World, trusted: bool):
    (confined.project / ".wave").mkdir()
    (confined.project / ".wave" / "settings.json").write_text(json.dumps({"sandbox": {"network": True}}))
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = f"exec 3<> /dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo reached"
        done, (result,) = confined.wave(
            "--sandbox", *(["--trust"] if trusted else []), calls=[call("Bash", command=command)]
        )
    assert ("reached" in result) is trusted
    assert ("sandbox" in done.stderr) is not trusted


def test_what_rules_deny_is_out_of_reach_of_commands_that_no_rule_understands(confined: World):
    (confined.project / ".env").write_text("canary-7f3a")
    (confined.project / "vendor").mkdir()
    (confined.project / "vendor" / "lib.py").write_text("as it was")
    log = confined.root / "log"
    settings = {
        "permissions": {"deny": ["Read(.env)", "Edit(vendor/**)"]},
        "hooks": {"PreToolUse": [{"hooks": [{"command": f"cat .env > {log}"}]}]},
    }
    (confined.root / "settings.json").write_text(json.dumps(settings))
    scripts = [
        "import os; print(open('.e' + 'nv').read())",
        "import os; open(os.path.join('vend' + 'or', 'lib.py'), 'w').write('gotcha')",
    ]
    for number, script in enumerate(scripts):
        (confined.project / f"{number}.py").write_text(script)
    flags = ("--sandbox", "--settings", str(confined.root / "settings.json"))
    _, results = confined.wave(*flags, calls=[call("Bash", command=f"/usr/bin/python3 {n}.py") for n in range(2)])
    assert "Permission denied" in results[0]
    assert "Read-only file system" in results[1]
    assert log.read_text() == "canary-7f3a"  # hooks run outside
    assert (confined.project / "vendor" / "lib.py").read_text() == "as it was"
    assert sorted(os.listdir(confined.project)) == [".env", "0.py", "1.py", "vendor"]


def test_with_a_list_of_hosts_commands_reach_these_and_no_others(confined: World):
    (confined.root / "settings.json").write_text(json.dumps({"sandbox": {"network": ["localhost"]}}))
    flags = ("--sandbox", "--settings", str(confined.root / "settings.json"))
    with RecordingModelServer.in_thread([]) as server:
        url = server.base_url.replace("127.0.0.1", "localhost")
        lines = [f"curl -sS {url}/models", "curl -sS http://evil.example/", f"curl -sS --noproxy '*' {url}/models"]
        _, results = confined.wave(*flags, calls=[call("Bash", command=line) for line in lines])
    assert "there is no GET /v1/models here" in results[0]  # the server itself answers
    assert "Wave's sandbox refused evil.example:80: it is not listed in the setting sandbox.network" in results[1]
    assert "Couldn't connect" in results[2] or "Failed to connect" in results[2]


@pytest.mark.parametrize(
    ("network", "refusal"),
    [
        (False, "127.0.0.1 must not be reached: the sandbox has no network (setting sandbox.network)"),
        (["docs.example"], "127.0.0.1 must not be reached: it is not listed in the setting sandbox.network"),
        (["127.0.0.1"], ""),
        (True, ""),
    ],
)
def test_pages_are_read_only_from_hosts_that_commands_may_reach(confined: World, network: Any, refusal: str):
    """Whatever hooks and rules permit: the agent must not be a way out of the sandbox."""
    allow = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}
    settings = {
        "sandbox": {"network": network},
        # `Net` opens private addresses, and the sandbox for this host; `WebFetch` only spares the question.
        "permissions": {"allow": ["WebFetch" if refusal else "Net(127.0.0.1)"]},
        "hooks": {"PreToolUse": [{"hooks": [{"command": f"echo {shlex.quote(json.dumps(allow))}"}]}]},
    }
    (confined.root / "settings.json").write_text(json.dumps(settings))
    with RecordingModelServer.in_thread([]) as server:
        flags = ("--sandbox", "--settings", str(confined.root / "settings.json"))
        _, (result,) = confined.wave(*flags, calls=[call("WebFetch", url=f"{server.base_url}/models", prompt="x")])
    assert (refusal or "there is no GET /v1/models here") in result
    assert result.startswith("Not run: ") is bool(refusal)


def test_hooks_run_outside(confined: World):
    """They are the user's own code, and may have to write a log or ask a service."""
    log = confined.root / "log"
    settings = {"hooks": {"PreToolUse": [{"hooks": [{"command": f"echo ran > {log}"}]}]}}
    (confined.root / "settings.json").write_text(json.dumps(settings))
    flags = ("--sandbox", "--settings", str(confined.root / "settings.json"))
    confined.wave(*flags, calls=[call("Bash", command="true")])
    assert log.read_text() == "ran\n"


def test_the_model_is_told(confined: World):
    with RecordingModelServer.in_thread(["Done."]) as server:
        environment = {**os.environ, "WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "m", "NO_PROXY": "127.0.0.1"}
        environment["WAVE_HOME"] = str(confined.home)
        subprocess.run([WAVE, "-p", "hi", "--sandbox"], cwd=confined.project, env=environment, check=True, timeout=60)
        assert "sandbox" in server.requests[0].body["messages"][0]["content"]


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_without_bubblewrap_nothing_is_run(world: World, output_format: str):
    empty = world.root / "bin"
    empty.mkdir()
    done, results = world.wave(
        *("--sandbox", "--output-format", output_format), calls=[call("Bash", command="touch gotcha")], PATH=str(empty)
    )
    told = done.stderr if output_format == "text" else json.loads(done.stdout)["error"]
    assert (done.returncode, results) == (1, [])
    assert "Install the package bubblewrap" in told
    assert "Traceback" not in done.stderr
    assert os.listdir(world.project) == []


def test_where_namespaces_are_forbidden_bubblewrap_is_quoted(world: World):
    program = world.root / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)
    done, results = world.wave(
        "--sandbox", calls=[call("Bash", command="touch gotcha")], PATH=f"{program.parent}:{os.environ['PATH']}"
    )
    assert (done.returncode, results, os.listdir(world.project)) == (1, [], [])
    assert "setting up uid map: Permission denied" in done.stderr
    assert "Without --sandbox" in done.stderr


def test_it_is_opt_in(world: World):
    world.wave(calls=[call("Bash", command=f"echo changed > {world.victim}")])
    assert world.victim.read_text() == "changed\n"


def test_neither_bubblewrap_nor_rg_is_taken_from_the_project(confined: World):
    """A virtual environment in the project is often on PATH, and a command could put anything there."""
    for name in ("bwrap", "rg"):
        fake = confined.project / "bin" / name
        fake.parent.mkdir(exist_ok=True)
        fake.write_text(f"#!/bin/sh\ntouch {confined.root}/ran-unconfined\n")
        fake.chmod(0o755)
    for number in range(100):  # enough that rg would be worth it
        (confined.project / f"file{number}").write_text("needle")
    _, results = confined.wave(
        "--sandbox",
        calls=[call("Bash", command="command -v bwrap rg; cat /proc/1/comm"), call("Grep", pattern="needle")],
        PATH=f"{confined.project}/bin:{os.environ['PATH']}",
    )
    assert results[0].splitlines() == [*(str(confined.project / "bin" / name) for name in ("bwrap", "rg")), "bwrap"]
    assert "file99" in results[1]
    assert not (confined.root / "ran-unconfined").exists()


async def test_when_the_agent_is_killed_its_commands_die_with_it(confined: World):
    with RecordingModelServer.in_thread([Reply(tool_calls=[call("Bash", command=f"{ESCAPEE} & sleep 60")])]) as server:
        environment = {**os.environ, "WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "m", "NO_PROXY": "127.0.0.1"}
        process = await asyncio.create_subprocess_exec(
            *(WAVE, "-p", "go", "--sandbox", "--permission-mode", "bypassPermissions"),
            cwd=confined.project,
            env={**environment, "WAVE_HOME": str(confined.home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        await until(lambda: is_held(confined.project))
        process.kill()
        await process.wait()
    await until(lambda: not is_held(confined.project))
