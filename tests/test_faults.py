"""What goes wrong around the agent, and what must hold all the same.

Each test looks, in this order, at the request that the model got, the hook's own log, the side effect on disk,
`agent.messages`, and the saved transcript.
"""

import asyncio
import json
import os
import pty
import resource
import shutil
import subprocess
import sysconfig
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.spec.world import World, errors, is_gone, make, notices, records, results_in, tools, transcript
from tests.waiting import number_in, until
from wave_agent import Agent, Result, tool
from wave_agent.events import ToolFinished
from wave_agent.testing import RecordingModelServer, Reply, call
from wave_agent.testing.model_server import Events, RecordedRequest, ServerScript, delta

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")
INTERRUPTED = "Interrupted by the user before it was done."
NOT_BEGUN = "Not run: the turn was interrupted before this call began."

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at processes through /proc")


class Served(World):
    """A project whose agents talk to a real server on loopback."""

    def __init__(self, project: Path, home: Path) -> None:
        super().__init__(project, home)
        self.servers: list[RecordingModelServer] = []

    async def agent_for(self, *replies: ServerScript, **options: Any) -> Agent:
        server = await RecordingModelServer(replies).__aenter__()
        self.servers.append(server)
        chosen: dict[str, Any] = {"permission_mode": "bypassPermissions", "trust": True, **options}
        agent = await Agent.create(workdir=self.project, base_url=server.base_url, model="m", **chosen)
        self.agents.append(agent)
        return agent

    @property
    def asked(self) -> list[RecordedRequest]:
        return self.servers[-1].requests

    def told_model(self, number: int = -1) -> list[str]:
        """The results of tools in this request."""
        return [one["content"] for one in self.asked[number].body["messages"] if one["role"] == "tool"]


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    # Or the server would be asked for it beside the turn, on a connection that is closed at any time.
    (tmp_path / "home" / "settings.json").write_text(json.dumps({"models": {"m": {"contextWindow": 100_000}}}))
    served = Served((tmp_path / "project").resolve(), tmp_path / "home")
    yield served
    for agent in served.agents:
        await agent.close()
    for server in served.servers:
        await server.__aexit__()


def work() -> list[ServerScript]:
    """A model that calls a tool once, and then answers."""
    return [Reply(tool_calls=[make()]), "done"]


def saved_results(agent: Agent) -> list[str]:
    return [part["content"] for part in results_in(transcript(agent))]


# -------------------------------------------------------------------------------------------------------- interruptions

HOLDS = "echo $$ > held.pid; trap '' TERM; until [ -e gate ]; do sleep 0.01; done"


async def twice_interrupted(agent: Agent, begun: Any) -> Result:
    turn = asyncio.create_task(agent.send_message("go"))
    await begun
    agent.interrupt()
    await asyncio.sleep(0)
    agent.interrupt()
    return await turn


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "Stop"])
async def test_a_second_interrupt_while_a_hook_dies_leaves_neither_it_nor_an_open_call(world: Served, event: str):
    world.settings({event: [world.hook("slow", f"[ -e held.pid ] && exit 0; {HOLDS}")]})
    agent = await world.agent_for(*work(), "later", "and later")

    result = await twice_interrupted(agent, number_in(world.project / "held.pid"))

    assert len(world.asked) == (2 if event == "Stop" else 1)
    assert len(world.log("slow")) == 1
    assert is_gone(int((world.project / "held.pid").read_text()))
    assert world.exists() is (event != "PreToolUse")
    assert (result.status, notices(agent)) == ("interrupted", ["Interrupted."])
    assert [block.result is not None for block in tools(agent)] == [True]
    assert len(saved_results(agent)) == 1
    after = await agent.send_message("again")
    assert after.status == "completed"
    assert [one["role"] for one in world.asked[-1].body["messages"]][1:4] == ["user", "assistant", "tool"]


async def test_a_second_interrupt_while_a_command_dies_waits_for_its_end(world: Served):
    agent = await world.agent_for(Reply(tool_calls=[call("Bash", command=f"{HOLDS}; touch late")]), "later")

    result = await twice_interrupted(agent, number_in(world.project / "held.pid"))

    assert len(world.asked) == 1
    (world.project / "gate").touch()
    assert is_gone(int((world.project / "held.pid").read_text()))
    assert not world.exists("late")
    assert result.status == "interrupted"
    (said,) = [block.result for block in tools(agent)]
    assert (said or "").startswith("(no output)\n[Interrupted by the user after ")
    assert saved_results(agent) == [said]
    assert (await agent.send_message("again")).status == "completed"
    assert world.told_model() == [said]


async def test_an_interrupt_between_two_calls_keeps_the_first_and_does_not_begin_the_second(world: Served):
    def between(event: Any) -> None:
        if isinstance(event, ToolFinished):
            agent.interrupt()

    calls = [make("first"), make("second")]
    agent = await world.agent_for(Reply(tool_calls=calls), "later", callbacks={"on_event": between})

    result = await agent.send_message("go")

    assert len(world.asked) == 1
    assert (world.exists("first"), world.exists("second")) == (True, False)
    assert result.status == "interrupted"
    assert [block.success for block in tools(agent)] == [True, False]
    assert saved_results(agent)[1] == NOT_BEGUN
    assert (await agent.send_message("again")).status == "completed"
    assert len(world.told_model()) == 2


async def test_a_write_that_has_begun_is_whole_and_not_later_however_often_it_is_interrupted(world: Served):
    (world.project / "f").write_text("old")
    calls = [call("Read", file_path="f"), call("Write", file_path="f", content="new" * 2_500_000)]
    agent = await world.agent_for(Reply(tool_calls=calls))
    turn = asyncio.create_task(agent.send_message("go"))
    await until(lambda: any(world.project.glob(".wave-*.tmp")))
    while not turn.done():
        agent.interrupt()
        await asyncio.sleep(0)
    left = {path.name: path.stat().st_size for path in world.project.iterdir()}

    assert len(world.asked) == 1
    assert left == {"f": 7_500_000}
    assert (await turn).status == "interrupted"
    assert all(block.result is not None for block in tools(agent))
    assert len(saved_results(agent)) == 2


# ---------------------------------------------------------------------------------------------------- resources run out


@contextmanager
def few_descriptors(spare: int) -> Iterator[None]:
    """No more than `spare` can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.dup(0) for _ in range(spare + 1)]
    for descriptor in free:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(free), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("spare", [0, 3], ids=["none left", "too few for a hook"])
@pytest.mark.parametrize("on_failure", ["block", "continue"])
async def test_without_descriptors_a_guard_denies_or_its_failure_is_counted_and_told(
    world: Served, on_failure: str, spare: int
):
    world.settings({"PreToolUse": [world.hook("guard", "", onFailure=on_failure)]})
    limit = few_descriptors(spare)

    def starve(_: RecordedRequest) -> Reply:
        limit.__enter__()
        return Reply(tool_calls=[call("TodoWrite", todos=[])])

    def feed(_: RecordedRequest) -> Reply:
        limit.__exit__(None, None, None)
        return Reply(tool_calls=[make()])

    agent = await world.agent_for(starve, feed, "done")

    result = await agent.send_message("go")

    # Without a single one nobody can tell whether the project's hook is still what was trusted.
    let_through = on_failure == "continue" and spare > 0
    denied = "too many open files" in world.told_model(1)[0].lower()
    assert denied is not let_through
    assert len(world.log("guard")) == 1  # that of the second call: the agent works again
    assert world.exists()
    assert result.status == "completed"
    assert [run.failure for run in result.hooks] == ["spawn", None]
    assert sum(run.let_through for run in result.hooks) == let_through
    assert any("too many open files" in text.lower() for text in [*errors(agent), *notices(agent)])
    assert [run["let_through"] for run in records(agent, "hook_run")] == [let_through, False]


async def test_without_descriptors_a_command_fails_as_a_result_and_the_next_one_runs(world: Served):
    limit = few_descriptors(1)

    def starve(_: RecordedRequest) -> Reply:
        limit.__enter__()
        return Reply(tool_calls=[make("first"), call("Write", file_path="w", content="x"), call("Read", file_path="r")])

    def feed(_: RecordedRequest) -> Reply:
        limit.__exit__(None, None, None)
        return Reply(tool_calls=[make("second")])

    (world.project / "r").write_text("readable")
    agent = await world.agent_for(starve, feed, "done")

    result = await agent.send_message("go")

    assert result.status == "completed", result.error
    assert "open files" in world.told_model(1)[0]
    assert (world.exists("first"), world.exists("second")) == (False, True)
    assert not list(world.project.glob(".wave-*"))
    assert result.status == "completed"
    assert all(block.result is not None for block in tools(agent))
    assert len(saved_results(agent)) == 4


@pytest.mark.parametrize("on_failure", ["block", "continue"])
async def test_an_environment_that_is_too_long_denies_or_is_counted_and_told(world: Served, on_failure: str):
    guard = world.hook("guard", "", onFailure=on_failure)
    world.settings({"PreToolUse": [guard]}, env={"BIG": "x" * 200_000})
    agent = await world.agent_for(Reply(tool_calls=[call("Write", file_path="made.txt", content="x")]), "done")

    result = await agent.send_message("go")

    assert ("too long" in world.told_model()[0]) is (on_failure == "block")
    assert world.log("guard") == []
    assert world.exists() is (on_failure == "continue")
    assert any("too long" in text for text in [*errors(agent), *notices(agent), *world.told_model()])
    assert [run["failure"] for run in records(agent, "hook_run")] == ["spawn"]
    assert sum(run.let_through for run in result.hooks) == (on_failure == "continue")


async def test_a_command_that_is_too_long_is_a_result_with_advice(world: Served):
    agent = await world.agent_for(Reply(tool_calls=[call("Bash", command=f"touch made.txt # {'x' * 200_000}")]), "done")

    result = await agent.send_message("go")

    assert "too long" in world.told_model()[0]
    assert not world.exists()
    assert (result.status, [block.success for block in tools(agent)]) == ("completed", [False])
    assert "too long" in saved_results(agent)[0]


# ----------------------------------------------------------------------------------------------- the project disappears


@pytest.mark.parametrize("on_failure", ["block", "continue"])
async def test_a_project_that_is_gone_before_a_hook_denies(world: Served, on_failure: str):
    world.settings({"PreToolUse": [world.hook("guard", "", onFailure=on_failure)]})

    def vanish(_: RecordedRequest) -> Reply:
        shutil.rmtree(world.project)
        return Reply(tool_calls=[call("TodoWrite", todos=[]), make()])

    agent = await world.agent_for(vanish, "done")

    result = await agent.send_message("go")

    assert all("has been deleted" in text for text in world.told_model())
    assert not world.project.exists()
    assert result.status == "completed"
    assert [run.failure for run in result.hooks] == ["spawn", "spawn"]
    assert not any(run.let_through for run in result.hooks)
    assert len(saved_results(agent)) == 2


async def test_a_project_that_is_gone_before_a_prompt_blocks_it_where_a_guard_must_not_fail(world: Served):
    world.settings({"UserPromptSubmit": [world.hook("guard", "", onFailure="block")]})
    agent = await world.agent_for("never")
    shutil.rmtree(world.project)

    result = await agent.send_message("a secret prompt")

    assert world.asked == []
    assert result.status == "blocked"
    assert any("has been deleted" in text for text in errors(agent))
    assert world.files_with("a secret prompt") == []


async def test_a_project_that_comes_back_is_worked_in_again(world: Served):
    agent = await world.agent_for(*work(), *work())
    shutil.rmtree(world.project)
    first = await agent.send_message("go")
    world.project.mkdir()
    second = await agent.send_message("go on")

    assert "does not exist" in world.told_model(1)[0]
    assert world.exists()
    assert (first.status, second.status) == ("completed", "completed")
    assert [block.success for block in tools(agent)] == [False, True]
    assert len(saved_results(agent)) == 2


# ------------------------------------------------------------------------------------------------- hooks that misbehave


async def test_a_hook_that_edits_the_settings_changes_nothing_in_this_session(world: Served):
    edit = "rm -f guard.sh.log; printf '{\"hooks\": {}}' > .wave/settings.json"
    world.settings(
        {"UserPromptSubmit": [world.hook("editor", edit)], "PreToolUse": [world.hook("guard", "echo no >&2; exit 2")]}
    )
    agent = await world.agent_for(*work())

    await agent.send_message("go")

    assert "no" in world.told_model()[0]
    assert len(world.log("guard")) == 1
    assert (world.project / ".wave" / "settings.json").read_text() == '{"hooks": {}}'
    assert not world.exists()
    assert [block.success for block in tools(agent)] == [False]
    assert [run["name"] for run in records(agent, "hook_run")] == ["editor", "guard"]


async def test_a_guard_that_deletes_itself_denies_to_the_end_and_then_fails_closed(world: Served):
    guard = world.hook("guard", 'rm "$0"; echo no >&2; exit 2', onFailure="block")
    world.settings({"PreToolUse": [guard]})
    agent = await world.agent_for(Reply(tool_calls=[make("a"), make("b")]), "done")

    result = await agent.send_message("go")

    first, second = world.told_model()
    assert "no" in first
    assert len(world.log("guard")) == 1
    assert (world.exists("a"), world.exists("b")) == (False, False)
    assert [run.outcome for run in result.hooks] == ["deny", "failure"], second
    assert [run["failure"] for run in records(agent, "hook_run")] == [None, "spawn"]


def unmeasured() -> dict[str, str]:
    """The environment for a process that is not allowed to write where coverage keeps its data."""
    return {key: value for key, value in os.environ.items() if not key.startswith("COV")}


STRANGE = {
    "closes its descriptors": "exec 0<&- 1>&- 2>&-; exit 2",
    "leaves daemons": "for n in 1 2 3; do (trap '' HUP TERM; setsid sleep 5) >/dev/null 2>&1 & done; exit 2",
    "fills stdout": "head -c 3000000 /dev/zero; exit 2",
    "fills both streams": "yes | head -c 3000000 >&2 & yes | head -c 3000000; wait; exit 2",
    "rewrites itself": 'echo "exit 0" > "$0"; exit 2',
    "changes limits and mask": "ulimit -n 5; umask 777; cd /; exit 2",
}


@pytest.mark.parametrize("body", STRANGE.values(), ids=STRANGE)
async def test_a_guard_denies_whatever_else_it_does(world: Served, body: str):
    world.settings({"PreToolUse": [world.hook("guard", body)]})
    agent = await world.agent_for(*work())

    result = await agent.send_message("go")

    assert "PreToolUse" in world.told_model()[0]
    assert len(world.log("guard")) == 1
    assert not world.exists()
    assert [block.success for block in tools(agent)] == [False]
    assert [run["outcome"] for run in records(agent, "hook_run")] == ["deny"]
    assert result.status == "completed"


@needs_proc
async def test_the_timeout_kills_a_hook_that_has_stopped_itself(world: Served):
    world.settings(
        {"PreToolUse": [world.hook("guard", "echo $$ > a.pid; kill -STOP $$", timeout=0.5, onFailure="block")]}
    )
    agent = await world.agent_for(*work())

    result = await agent.send_message("go")

    assert "timed out" in world.told_model()[0]
    assert len(world.log("guard")) == 1
    assert is_gone(int((world.project / "a.pid").read_text()))
    assert not world.exists()
    assert [run.failure for run in result.hooks] == ["timeout"]
    assert [run["failure"] for run in records(agent, "hook_run")] == ["timeout"]


# --------------------------------------------------------------------------------------------------- the command itself


def wave(world: Served, url: str, *arguments: str) -> list[str]:
    return [WAVE, "-p", "go", "--trust", "--base-url", url, "--model", "m", *arguments]


def lines_on_disk(world: Served) -> list[dict[str, Any]]:
    (file,) = world.home.rglob("*.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


async def test_a_hook_that_terminates_the_agent_ends_it_in_order(world: Served):
    world.settings({"PreToolUse": [world.hook("guard", "kill -TERM $PPID; sleep 60")]})
    with RecordingModelServer.in_thread(work()) as server:
        done = await asyncio.to_thread(
            subprocess.run, wave(world, server.base_url), cwd=world.project, capture_output=True, text=True, check=False
        )

    assert len(server.requests) == 1
    assert len(world.log("guard")) == 1
    assert not world.exists()
    assert (done.returncode, "Traceback" in done.stderr) == (143, False)
    assert [part["content"] for part in results_in(lines_on_disk(world))] == [NOT_BEGUN]


@pytest.mark.skipif(shutil.which("setsid") is None, reason="gives the agent a terminal by setsid")
async def test_a_hook_has_no_terminal_to_change(world: Served):
    world.settings({"PreToolUse": [world.hook("guard", "stty raw -echo < /dev/tty; echo $? > stty")]})
    parent, child = pty.openpty()
    before = termios.tcgetattr(child)
    with RecordingModelServer.in_thread(work()) as server:
        process = await asyncio.to_thread(
            subprocess.run,
            ["setsid", "--ctty", "--wait", *wave(world, server.base_url, "--permission-mode", "bypassPermissions")],
            cwd=world.project,
            stdin=child,
            capture_output=True,
            check=False,
        )
    after = termios.tcgetattr(child)
    os.close(parent)
    os.close(child)

    assert len(server.requests) == 2
    assert int((world.project / "stty").read_text()) != 0
    assert after == before
    assert world.exists(), process.stderr
    assert process.returncode == 0


# ---------------------------------------------------------------------------------------------------------- a full disk

FULL = """
import asyncio, gc, json, os, resource, sys
from pathlib import Path
from wave_agent import Agent
from wave_agent.sessions.recorder import load_session
from wave_agent.testing import Reply, ScriptedModel, call

project, shape = Path(sys.argv[1]), sys.argv[2]
HOOKS = {"plain": ["true"], "async": [{"hooks": [{"command": "true", "async": True}]}],
         "interrupted": [{"hooks": [{"command": "[ -e begun ] && exit; touch begun; exec sleep 60"}]}]}

def limit(size):
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size is None else size, hard))

async def once(size):
    calls = [call("TodoWrite", todos=[]), call("Glob", pattern="*")]
    model = ScriptedModel([Reply("hm", tool_calls=calls), "done", "again", "more"])
    (project / "begun").unlink(missing_ok=True)
    agent = await Agent.create(workdir=project, model_client=model, hooks={"PreToolUse": HOOKS[shape]})
    async with agent:
        limit(size)
        turn = asyncio.create_task(agent.send_message("one"))
        while shape == "interrupted" and not (turn.done() or (project / "begun").exists()):
            await asyncio.sleep(0.002)
        agent.interrupt() if shape == "interrupted" else None
        first = await turn
        (project / "begun").touch()
        results = [first, await agent.send_message("two"), await agent.send_message("three")]
        limit(None)
    blocks = [block for message in agent.messages for block in message.blocks]
    return {
        "statuses": [result.status for result in results],
        "told": [result.error for result in results if result.error],
        "open": sum(getattr(block, "result", "") is None for block in blocks),
        "size": os.path.getsize(agent.transcript_path),
        "skipped": load_session(Path(agent.transcript_path)).skipped,
        "limit": size,
    }

async def main():
    print(json.dumps(whole := await once(1 << 30)))
    for size in range(0, whole["size"] - 50, whole["size"] // 24):
        print(json.dumps(await once(size)))
    gc.collect()

asyncio.run(main())
"""


@pytest.mark.parametrize("shape", ["plain", "async", "interrupted"])
async def test_wherever_the_disk_is_full_prompts_end_with_the_error_and_what_was_said_is_written_later(
    world: Served, shape: str
):
    done = await asyncio.to_thread(
        subprocess.run,
        [Path(WAVE).with_name("python"), "-W", "error", "-c", FULL, world.project, shape],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stderr == ""
    whole, *cut = [json.loads(line) for line in done.stdout.splitlines()]
    assert (whole["told"], whole["open"]) == ([], 0)
    for one in cut:
        assert one["open"] == 0
        assert one["statuses"].count("error") == len(one["told"])
        begun = one["statuses"].index("error") if one["told"] else 3
        assert set(one["statuses"][begun:]) <= {"error"}  # nothing runs that cannot be recorded
        assert one["told"] or one["size"] <= one["limit"] or shape == "async"
        assert one["skipped"] == 0  # what did not fit was written when there was room again
        assert all("cannot be written" in text for text in one["told"])


async def test_a_full_disk_leaves_the_old_file_whole_and_costs_only_the_copy_of_an_output(world: Served):
    old = "a\n" * 20_000
    (world.project / "kept.txt").write_text(old)
    calls = [
        call("Read", file_path="kept.txt"),
        call("Edit", file_path="kept.txt", old_string="a", new_string="b" * 40, replace_all=True),
        call("Bash", command="head -c 800000 /dev/zero | tr '\\0' z"),
    ]
    with RecordingModelServer.in_thread([Reply(tool_calls=calls), "done"]) as server:
        command = wave(world, server.base_url, "--permission-mode", "bypassPermissions")
        done = await asyncio.to_thread(
            subprocess.run,
            ["bash", "-c", 'ulimit -f 400; exec "$@"', "bash", *command],  # in KiB
            cwd=world.project,
            env=unmeasured(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    told = [one["content"] for one in server.requests[1].body["messages"] if one["role"] == "tool"]
    assert "cannot be written: File too large" in told[1]
    assert "characters omitted here" in told[2]
    assert [path.name for path in world.project.iterdir()] == ["kept.txt"]
    assert (world.project / "kept.txt").read_text() == old
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert len(results_in(lines_on_disk(world))) == 3


# -------------------------------------------------------------------------------------------- no process can be started

CROWDED = """
import asyncio, json, resource, sys, threading
from wave_agent import Agent
from wave_agent.events import ToolStarted

url, project, spare = sys.argv[1], sys.argv[2], int(sys.argv[3])
def limit(number):
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    resource.setrlimit(resource.RLIMIT_NPROC, (hard if number is None else number, hard))

def heard(event):
    if isinstance(event, ToolStarted):
        limit(threading.active_count() + spare if event.parameters["todos"] == [] else None)

async def main():
    async with await Agent.create(workdir=project, base_url=url, model="m", trust=True, system_prompt="",
                                  callbacks={"on_event": heard}) as agent:  # ours would leave a thread to use again
        result = await agent.send_message("go")
        print(json.dumps({"status": result.status, "let_through": result.hooks_failed_open,
                          "failures": [run.failure for run in result.hooks], "messages": str(agent.messages)}))

asyncio.run(main())
"""


def as_somebody_else(world: Served) -> list[str]:
    """The limit does not count for root. Somebody else may still read where this Python is installed."""
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv, or an ordinary user")
    somebody = 50_000 + os.getpid() % 10_000  # nobody else's: all processes of a user count together
    for path in (world.home, world.project, *world.project.rglob("*")):
        os.chown(path, somebody, somebody)
    may_read = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    return ["setpriv", f"--reuid={somebody}", f"--regid={somebody}", "--clear-groups", *may_read]


@needs_proc
@pytest.mark.parametrize("on_failure", ["block", "continue"])
@pytest.mark.parametrize("spare", [0, 1], ids=["no thread", "no process"])
async def test_where_no_process_can_be_started_a_guard_denies_or_its_failure_is_counted_and_told(
    world: Served, on_failure: str, spare: int
):
    if spare and os.getuid() != 0:
        pytest.skip("other processes of this user would count too")
    world.settings({"PreToolUse": [world.hook("guard", "", onFailure=on_failure)]})
    other = as_somebody_else(world) if os.getuid() == 0 else []
    crowded, alone = [], [{"content": "x", "status": "pending"}]
    calls = [Reply(tool_calls=[call("TodoWrite", todos=todos)]) for todos in (crowded, alone)]
    with RecordingModelServer.in_thread([*calls, "done"]) as server:
        done = await asyncio.to_thread(
            subprocess.run,
            [*other, Path(WAVE).with_name("python"), "-c", CROWDED, server.base_url, world.project, str(spare)],
            env=unmeasured(),
            capture_output=True,
            text=True,
            check=False,
        )

    assert done.stderr == ""
    first, _ = [one["content"] for one in server.requests[2].body["messages"] if one["role"] == "tool"]
    assert ("cannot be started" in first) is (on_failure == "block")
    assert len(world.log("guard")) == 1  # that of the second call: the agent works again
    found = json.loads(done.stdout)
    assert (found["status"], found["failures"]) == ("completed", ["spawn", None])
    assert found["let_through"] == (on_failure == "continue")
    assert "cannot be started" in found["messages"]
    assert ("Resource temporarily unavailable" if spare else "start new thread") in found["messages"]
    assert [line["failure"] for line in lines_on_disk(world) if line.get("subtype") == "hook_run"] == ["spawn", None]


# --------------------------------------------------------------------------------------------------- the model's server


async def test_an_answer_that_dies_in_its_middle_keeps_its_text_and_runs_nothing(world: Served):
    world.settings({"PreToolUse": [world.hook("guard", "")]})
    begun = {"index": 0, "id": "c", "function": {"name": "Bash", "arguments": '{"command": "touch made.txt"}'}}
    agent = await world.agent_for(
        Events([delta(content="Let me"), delta(tool_calls=[begun])], end="cut"), " finish.", "later"
    )

    result = await agent.send_message("go")

    assert len(world.asked) == 2  # the rest is asked for
    assert world.log("guard") == []
    assert not world.exists()
    assert (result.status, result.text) == ("completed", "Let me finish.")
    assert tools(agent) == []
    assert [line["message"]["content"] for line in transcript(agent) if line["type"] == "assistant"] == [
        [{"type": "text", "text": "Let me"}],
        [{"type": "text", "text": " finish."}],
    ]
    assert (await agent.send_message("again")).status == "completed"
    said = [one["content"] for one in world.asked[-1].body["messages"]][1:]
    assert [*said[:2], *said[3:]] == ["go", "Let me", " finish.", "again"]
    assert "Your answer broke off" in said[2]


GARBAGE = {
    "bytes that are no text": [b"\xff\xfe\0\0data: \xff\n\n"],
    "JSON that is something else": ["[1, 2]", "null", '"text"', "{}"],
    "numbers in place of words": [{"choices": [{"delta": {"content": 7, "tool_calls": [3, {"function": 5}]}}]}],
    "a call to nothing": [delta(tool_calls=[{"index": 0, "function": {"name": "", "arguments": "}{"}}]), delta("stop")],
    "a number beyond all": ['{"choices": [{"delta": {"content": "x"}}], "usage": {"prompt_tokens": 1e999}}'],
}


@pytest.mark.parametrize("events", GARBAGE.values(), ids=GARBAGE)
async def test_whatever_a_server_sends_the_turn_ends_and_the_next_one_works(world: Served, events: list[Any]):
    agent = await world.agent_for(Events(events), *["later"] * 9)

    result = await agent.send_message("go")

    assert result.status in ("error", "completed")
    assert all(block.result is not None for block in tools(agent))
    assert len(saved_results(agent)) == len(tools(agent))
    assert (await agent.send_message("again")).text == "later"
    assert world.asked[-1].body["messages"][-1] == {"role": "user", "content": "again"}


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
async def test_a_number_that_no_guard_could_be_shown_reaches_no_tool(world: Served, number: str):
    """JSON has no infinity: a hook would judge null in its place."""
    world.settings({"PreToolUse": [world.hook("guard", "")]})
    ran: list[float] = []

    @tool
    def measure(seconds: float) -> str:
        """Measures."""
        ran.append(seconds)
        return "measured"

    asked = {"index": 0, "id": "c", "function": {"name": "measure", "arguments": f'{{"seconds": {number}}}'}}
    agent = await world.agent_for(Events([delta(tool_calls=[asked]), delta("tool_calls")]), "done", tools=[measure])

    result = await agent.send_message("go")

    assert "out of range" in world.told_model()[0]
    assert world.log("guard") == []
    assert ran == []
    assert (result.status, [block.success for block in tools(agent)]) == ("completed", [False])
    assert "out of range" in saved_results(agent)[0]
