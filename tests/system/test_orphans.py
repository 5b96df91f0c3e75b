"""What a killed agent leaves running: found at the next start, and never mistaken for somebody else's."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spec.world import is_gone
from tests.waiting import until
from wave_agent import Agent
from wave_agent.hooks.execution import HookJob
from wave_agent.hooks.runners.command import ProcessRunner
from wave_agent.models.scripted import Reply, ScriptedModel, call
from wave_agent.system.orphans import Leftovers, holder_of

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as what it tests does")

SESSION = "the-session"
MINE = {**os.environ, "WAVE_SESSION_ID": SESSION}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    return tmp_path / "home"


def run_file(home: Path) -> Path:
    (path,) = (home / "running").iterdir()
    return path


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def sleeper(started: list[subprocess.Popen[bytes]], environment: dict[str, str] | None = None) -> int:
    process = subprocess.Popen(["sleep", "600"], start_new_session=True, env=environment or dict(os.environ))
    started.append(process)
    return process.pid


def born(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def left_behind(home: Path, *lines: str) -> Path:
    """The run file of an agent that is dead."""
    path = home / "running" / f"{SESSION}.0011"
    path.parent.mkdir(parents=True, exist_ok=True)
    header = json.dumps({"pid": 1, "transcript": f"/somewhere/{SESSION}.jsonl"})
    path.write_text("\n".join([header, *lines]))
    return path


def opened(home: Path) -> int:
    """How many groups the next start of an agent has ended."""
    leftovers = Leftovers(home, Path("/somewhere/new.jsonl"))
    ended = leftovers.open()
    leftovers.close()
    assert not (home / "running").exists() or list((home / "running").iterdir()) == []
    return ended


KILLED = """
import asyncio, sys
from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call

async def main():
    hangs = "trap '' TERM; echo $$ > $HOOK_EVENT.pid; sleep 600 & echo $! > $HOOK_EVENT.child; wait; wait"
    hooks = {"Stop": [{"hooks": [{"command": hangs}]}]} if sys.argv[1] == "hook" else {}
    background = call("Bash", command="echo $$ > background.pid; sleep 600; true", run_in_background=True)
    wait = "while [ ! -e background.pid ]; do sleep 0.01; done; "
    calls = [background, call("Bash", command=wait + "echo $$ > command.pid; sleep 600; true")]
    model = ScriptedModel(["Done."] if hooks else [Reply(tool_calls=calls)])
    async with await Agent.create(model_client=model, hooks=hooks, permission_mode="bypassPermissions") as agent:
        print(agent.session_id, flush=True)
        await agent.send_message("go")

asyncio.run(main())
"""


def agent_in(project: Path, what: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, what], cwd=project, env=environment, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize(
    ("what", "names"), [("hook", ["Stop.pid", "Stop.child"]), ("tool", ["command.pid", "background.pid"])]
)
@pytest.mark.parametrize("same_session", [True, False])
async def test_what_a_killed_agent_had_running_ends_when_the_next_one_starts(
    tmp_path: Path, home: Path, what: str, names: list[str], same_session: bool
) -> None:
    project = tmp_path / "project"
    killed = agent_in(project, what)
    files = [project / name for name in names]
    await until(lambda: all(file.exists() and file.read_text().endswith("\n") for file in files))
    killed.send_signal(signal.SIGKILL)
    session_id, _ = killed.communicate()
    processes = [int(file.read_text()) for file in files]
    assert not any(map(is_gone, processes))

    resume = session_id.strip() if same_session else None
    async with await Agent.create(workdir=project, model_client=ScriptedModel(["Hi."]), resume=resume) as agent:
        result = await agent.send_message("there?")

    assert all(map(is_gone, processes))
    assert result.status == "completed"
    notes = [
        block for message in agent.messages for block in message.blocks if "left behind by a killed agent" in str(block)
    ]
    assert len(notes) == 1
    assert list((home / "running").iterdir()) == []


async def test_what_a_living_agent_has_running_is_left_alone(tmp_path: Path, home: Path) -> None:
    project = tmp_path / "project"
    background = call("Bash", command="echo $$ > pid; sleep 600; true", run_in_background=True)
    model = ScriptedModel([Reply(tool_calls=[background]), "Done."])
    options = {"workdir": project, "permission_mode": "bypassPermissions"}
    async with await Agent.create(model_client=model, **options) as first:
        await first.send_message("go")
        await until(lambda: (project / "pid").exists() and (project / "pid").read_text().endswith("\n"))
        async with await Agent.create(model_client=ScriptedModel(["Hi."]), **options) as second:
            await second.send_message("go")
        assert not is_gone(int((project / "pid").read_text()))
    assert is_gone(int((project / "pid").read_text()))


async def test_a_run_is_noted_before_it_starts_and_when_it_has_ended(tmp_path: Path, home: Path) -> None:
    leftovers = Leftovers(home, tmp_path / f"{SESSION}.jsonl")
    leftovers.open()
    job = HookJob(command=f"cat {run_file(home)}; echo $$", env=dict(os.environ), cwd=str(tmp_path), timeout=60)
    result = await ProcessRunner(ledger=leftovers.entry).run(job)
    header, begun, *_, pid = result.stdout.splitlines()
    facts = json.loads(header)
    assert (facts["pid"], facts["transcript"]) == (os.getpid(), str(tmp_path / f"{SESSION}.jsonl"))
    assert (facts["project"], facts["unattended"]) == ("", True)
    assert begun.startswith("?1 ")
    _, _, running, ended = run_file(home).read_text().splitlines()
    assert running.split()[:2] == ["+1", pid]
    assert ended == "-1"
    leftovers.close()
    leftovers.close()
    assert list((home / "running").iterdir()) == []


async def test_a_program_that_cannot_be_started_is_noted_as_ended(tmp_path: Path, home: Path) -> None:
    leftovers = Leftovers(home, tmp_path / f"{SESSION}.jsonl")
    leftovers.open()
    job = HookJob(command="/nowhere", args=(), env={}, cwd=str(tmp_path), timeout=60)
    assert (await ProcessRunner(ledger=leftovers.entry).run(job)).error
    assert run_file(home).read_text().splitlines()[-1] == "-1"
    leftovers.close()


async def test_the_file_does_not_grow_for_ever(tmp_path: Path, home: Path) -> None:
    leftovers = Leftovers(home, tmp_path / f"{SESSION}.jsonl")
    leftovers.open()
    for _ in range(5000):
        with leftovers.entry() as note:
            note(1)
    assert run_file(home).stat().st_size < 100_000
    leftovers.close()


def test_a_group_whose_leader_was_born_when_the_file_says_so_is_ended(
    home: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    pid = sleeper(started)
    left_behind(home, f"?1 {born(pid)}", f"+1 {pid} {born(pid)}")
    assert opened(home) == 1
    assert is_gone(pid)


def test_a_process_that_was_about_to_start_is_known_by_its_session(
    home: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    """The agent was killed after it had started it and before it could note its number."""
    ours, other = sleeper(started, MINE), sleeper(started)
    left_behind(home, f"?1 {born(ours)}")
    assert opened(home) == 1
    assert is_gone(ours)
    assert not is_gone(other)


def test_a_process_of_the_session_that_started_much_later_is_somebodys_own(
    home: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    """A terminal that a hook has opened gives its environment to every shell in it."""
    pid = sleeper(started, MINE)
    left_behind(home, f"?1 {born(pid) - 1000}")
    assert opened(home) == 0
    assert not is_gone(pid)


def test_a_group_without_its_leader_is_known_by_its_session(
    home: Path, started: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/child"
    leader = subprocess.Popen(["sh", "-c", script], start_new_session=True, env=MINE)
    leader.wait()
    child = int((tmp_path / "child").read_text())
    left_behind(home, f"?1 {born(child)}", f"+1 {leader.pid} {born(child)}")
    assert opened(home) == 1
    assert is_gone(child)


@pytest.mark.parametrize(
    "lines",
    [
        ["?1 {before}", "+1 {pid} {before}"],
        ["?1 {before}", "+1 {pid} {before}", "?2 {born}"],
        ["?1 {born}", "+1 {pid} {born}", "-1"],
        ["?1 {born}", "+1 0 {born}"],
        ["?1 {born}", "+1 {pid}"],
        ["?1 {after}"],
        ["nonsense", "+7 {pid} {born}", "?", "? x", "-9", "\\xff"],
    ],
    ids=["number given away", "and another start", "ended", "no group", "half a line", "too old", "nonsense"],
)
def test_a_process_that_is_not_surely_ours_is_left_alone(
    home: Path, started: list[subprocess.Popen[bytes]], lines: list[str]
) -> None:
    pid = sleeper(started)
    ticks = born(pid)
    left_behind(home, *(line.format(pid=pid, born=ticks, before=ticks - 100, after=ticks + 100) for line in lines))
    assert opened(home) == 0
    assert not is_gone(pid)


@pytest.mark.parametrize("content", [b"", b"not json\n", b"[]\n?1 5\n", b'{"transcript":5}\n', b"\0\0\0"])
def test_a_run_file_that_cannot_be_read_is_removed(home: Path, content: bytes) -> None:
    left_behind(home).write_bytes(content)
    assert opened(home) == 0


def test_a_home_that_takes_no_file_costs_the_net_and_not_the_agent(tmp_path: Path) -> None:
    (tmp_path / "running").write_text("a file")
    leftovers = Leftovers(tmp_path, Path("/somewhere/new.jsonl"))
    assert leftovers.open() == 0
    with leftovers.entry() as note:
        note(1)
    leftovers.close()
    assert holder_of(tmp_path, Path("/somewhere/new.jsonl")) is None


def test_only_a_living_agent_holds_a_transcript(home: Path) -> None:
    leftovers = Leftovers(home, Path("/somewhere/new.jsonl"))
    leftovers.open()
    leftovers.open()
    assert holder_of(home, Path("/somewhere/new.jsonl")) == os.getpid()
    assert holder_of(home, Path("/elsewhere/new.jsonl")) is None
    leftovers.close()
    left_behind(home)
    assert holder_of(home, Path(f"/somewhere/{SESSION}.jsonl")) is None


async def test_many_agents_that_start_at_once_do_not_take_each_other_for_dead(tmp_path: Path) -> None:
    files = [Leftovers(tmp_path, Path(f"/somewhere/{number}.jsonl")) for number in range(32)]
    await asyncio.gather(*(asyncio.to_thread(file.open) for file in files))
    assert len(list((tmp_path / "running").iterdir())) == 32
    for file in files:
        file.close()
