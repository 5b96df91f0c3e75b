"""The file of a session: whose it is, who may read it, and what a full or broken disk does to it."""

import asyncio
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread, get_ident
from time import sleep
from typing import Any

import pytest

from tests.waiting import until
from wave_agent import Agent, Result
from wave_agent.agent.options import Options
from wave_agent.agent.result import Callbacks
from wave_agent.errors import SessionError
from wave_agent.events import Error, Event
from wave_agent.models.scripted import Reply, ScriptedModel, call
from wave_agent.sessions.recorder import FileSessionStore, load_session, transcript_file
from wave_agent.system.fairness import fairness
from wave_agent.system.private_files import keep_private, make_private, open_private
from wave_agent.tools.custom import tool


def child(program: str, *arguments: str, **more: Any) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more,
    )  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- privacy


@pytest.fixture(params=[0, 0o022, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def stored(path: Path) -> Path:
    store = FileSessionStore(path)
    store.append({"n": 1})
    store.close()
    return path


def test_the_file_and_every_directory_that_had_to_be_made_are_private(tmp_path: Path, umask: None) -> None:
    path = stored(tmp_path / "home" / "projects" / "here" / "s.jsonl")
    assert mode(path) == 0o600
    assert [oct(mode(directory)) for directory in list(path.parents)[:3]] == ["0o700"] * 3


def test_a_file_that_was_open_to_others_is_closed_to_them(tmp_path: Path) -> None:
    path = stored(tmp_path / "here" / "s.jsonl")
    path.chmod(0o644)
    assert mode(stored(path)) == 0o600


def test_a_directory_that_was_there_keeps_its_mode_whatever_is_stored_in_it(tmp_path: Path) -> None:
    """It may be anybody's: only the agent knows which directories are its own."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(0o755)
    stored(tmp_path / "home" / "s.jsonl")
    stored(tmp_path / "home" / "here" / "s.jsonl")
    assert mode(tmp_path / "home") == 0o755


async def test_directories_of_the_agents_own_that_were_open_to_others_are_closed_to_them(
    tmp_path: Path, home: Path
) -> None:
    options: dict[str, Any] = {"workdir": tmp_path / "project", "resume": None}
    own: list[Path] = []
    for _ in range(2):  # begun and resumed
        async with await Agent.create(model_client=ScriptedModel(["Hello."]), **options) as agent:
            await agent.send_message("hi")
        own = [home / "running", home / "projects", Path(agent.transcript_path).parent]
        assert {oct(mode(directory)) for directory in own} == {"0o700"}
        for directory in (home, *own):
            directory.chmod(0o755)
        options["resume"] = agent.session_id
    async with await Agent.create(model_client=ScriptedModel(["Hello."]), **options) as agent:
        await agent.send_message("hi")
    assert {oct(mode(directory)) for directory in own} == {"0o700"}
    assert mode(home) == 0o755, "that one may hold what others are to read"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may change everything")
def test_what_belongs_to_somebody_else_stays_as_it_is() -> None:
    keep_private(Path("/usr"))
    os.close(open_private(Path("/etc/passwd"), os.O_RDONLY))
    assert mode(Path("/usr")) == 0o755


async def test_whatever_an_agent_leaves_below_its_home_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: None
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    make_private(project)
    monkeypatch.setenv("WAVE_HOME", str(home))
    long = "yes 0123456789 | head -n 5000"
    hooks = {"PostToolUse": [{"hooks": [{"command": f"{long}; echo >&2; {long} >&2; exit 2"}]}]}
    calls = [call("Bash", command=long), call("Bash", command="echo", run_in_background=True)]
    async with await Agent.create(
        workdir=project,
        model_client=ScriptedModel([Reply(tool_calls=calls), "Done."]),
        hooks=hooks,
        permission_mode="bypassPermissions",
    ) as agent:
        await agent.send_message("go")
    files = [path for path in home.rglob("*") if path.is_file()]
    kept = {path.name.partition("-")[0] for path in files}
    assert kept >= {"bash", "hook"}
    assert "background" not in kept, "a hook decides over each piece of it"
    assert {oct(mode(path)) for path in files} == {"0o600"}
    assert {oct(mode(path)) for path in home.rglob("*") if path.is_dir()} == {"0o700"}


def test_no_process_that_the_agent_starts_inherits_the_file(tmp_path: Path) -> None:
    """A hook could write into it otherwise, and would keep its lock."""
    store = FileSessionStore(tmp_path / "s.jsonl")
    store.append({})
    listed = subprocess.run(
        ["sh", "-c", "ls -l /proc/self/fd"], capture_output=True, text=True, close_fds=False, check=False
    )
    store.close()
    assert str(store.path) not in listed.stdout


# ------------------------------------------------------------------------------------------------------ bad directories


def test_a_file_in_place_of_the_directory_is_an_error_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "projects").write_text("")
    path = tmp_path / "projects" / "here" / "s.jsonl"
    with pytest.raises(SessionError, match=re.escape(str(path))):
        FileSessionStore(path).append({})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_to_is_an_error_with_the_path(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    path = tmp_path / "here" / "s.jsonl"
    with pytest.raises(SessionError, match=re.escape(str(path))):
        FileSessionStore(path).append({})


def test_a_store_that_was_never_used_makes_no_file_and_closes(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path / "here" / "s.jsonl")
    store.sync()
    store.close()
    store.close()
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------------------- the lock

HOLDS = """
import sys
from pathlib import Path
from wave_agent.sessions.recorder import FileSessionStore
store = FileSessionStore(Path(sys.argv[1]))
store.append({"n": 1})
print("held", flush=True)
sys.stdin.read()
"""


def test_only_one_process_writes_a_session_and_a_dead_one_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    second = FileSessionStore(path, holder=lambda _: 4711)
    with child(HOLDS, str(path)) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        with pytest.raises(SessionError, match="The session s is in use by process 4711"):
            second.append({"n": 2})
        assert path.read_bytes() == b'{"n":1}\n'
        first.send_signal(signal.SIGKILL)
        first.wait()
    second.append({"n": 3})
    second.close()
    assert path.read_bytes() == b'{"n":1}\n{"n":2}\n{"n":3}\n'


def test_whoever_has_closed_the_session_no_longer_holds_it(tmp_path: Path) -> None:
    first, second = FileSessionStore(tmp_path / "s.jsonl"), FileSessionStore(tmp_path / "s.jsonl")
    first.append({})
    with pytest.raises(SessionError, match="in use by another process"):
        second.open(resumed=True)
    first.close()
    second.open(resumed=True)
    second.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    return tmp_path / "home"


LIVES = """
import asyncio, sys
from wave_agent import Agent
from wave_agent.testing import ScriptedModel

async def main():
    async with await Agent.create(model_client=ScriptedModel(["Hello."]), workdir=sys.argv[1]) as agent:
        await agent.send_message("hi")
        print(agent.session_id, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


async def test_a_session_that_another_live_agent_has_cannot_be_resumed_or_deleted(tmp_path: Path, home: Path) -> None:
    project = tmp_path / "project"
    with child(LIVES, str(project)) as first:
        assert first.stdout is not None
        assert first.stdin is not None
        session_id = first.stdout.readline().strip()
        with pytest.raises(SessionError, match=f"is in use by process {first.pid}: end that first"):
            await Agent.create(workdir=project, model_client=ScriptedModel([]), resume=session_id)
        deleted = wave(project, "sessions", "delete", "--yes", session_id)
        assert (deleted.returncode, f"in use by process {first.pid}" in deleted.stderr) == (1, True)
        asked = wave(project, "-p", "hi", "-r", session_id)
        assert (asked.returncode, f"in use by process {first.pid}" in asked.stderr) == (1, True)
        assert wave(project, "sessions", "show", session_id).returncode == 0
        assert wave(project, "sessions", "verify", session_id).returncode == 0
        first.stdin.close()
        first.wait()
    async with await Agent.create(workdir=project, model_client=ScriptedModel(["Yes."]), resume=session_id) as agent:
        assert (await agent.send_message("there?")).status == "completed"


async def test_an_agent_that_was_not_closed_is_named_as_the_one_that_has_the_session(
    tmp_path: Path, home: Path
) -> None:
    options: dict[str, Any] = {"workdir": tmp_path / "project", "model_client": ScriptedModel(["Hello."])}
    async with await Agent.create(**options) as agent:
        await agent.send_message("hi")
        with pytest.raises(SessionError, match="in this process: close the agent"):
            await Agent.create(**options, resume=agent.session_id)


def wave(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; from wave_agent.cli.main import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=project, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "x" * 5000, "", "a b"])
async def test_an_id_that_is_none_is_refused_wherever_it_is_given(tmp_path: Path, home: Path, name: str) -> None:
    project = tmp_path / "project"
    for arguments in (("-p", "hi", "-r", name), ("sessions", "show", name), ("sessions", "delete", "--yes", name)):
        done = wave(project, *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert "is not a session id" in done.stderr
        assert len(done.stderr) < 300
    with pytest.raises(SessionError, match="is not a session id"):
        await Agent.create(workdir=project, model_client=ScriptedModel([]), resume=name)


# -------------------------------------------------------------------------------------------------------- the full disk


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_a_full_disk_is_an_error_with_the_path_and_the_reason() -> None:
    store = FileSessionStore(Path("/dev/full"))
    with pytest.raises(SessionError, match="/dev/full cannot be written: No space left"):
        store.append({})
    store.close()


FILLS_THE_DISK = """
import resource, sys
from pathlib import Path
from wave_agent.errors import SessionError
from wave_agent.sessions.recorder import FileSessionStore

store = FileSessionStore(Path(sys.argv[1]))
store.append({"n": 1})
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, most))
for text in ("x" * 200, "y" * 200):
    try:
        store.append({"n": text})
    except SessionError as error:
        print(error)
print(Path(sys.argv[1]).read_text(), end="")
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
store.append({"n": 2})
"""


def test_a_record_that_fits_only_in_part_is_taken_back_and_written_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with child(FILLS_THE_DISK, str(path)) as ran:
        printed, _ = ran.communicate(timeout=60)
    why = f"The transcript {path} cannot be written: File too large\n"
    assert printed == f'{why}{why}{{"n":1}}\n'
    assert [json.loads(line)["n"] for line in path.read_text().splitlines()] == [1, "x" * 200, "y" * 200, 2]


AGENT_ON_A_FULL_DISK = """
import asyncio, json, os, resource, sys
from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call

_, most = resource.getrlimit(resource.RLIMIT_FSIZE)

def fill(request):
    size = os.path.getsize(agent.transcript_path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[2]), most))
    return Reply("I make it.", [call("Bash", command="touch made; yes | head -c 9000")])

async def main():
    global agent
    model = ScriptedModel(["Hello.", fill, "Never asked.", "Good."])
    async with await Agent.create(
        workdir=sys.argv[1], model_client=model, permission_mode="bypassPermissions"
    ) as agent:
        results = [await agent.send_message(prompt) for prompt in ("one", "two", "three")]
        asked = len(model.requests)
        if sys.argv[3] == "room":
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            results.append(await agent.send_message("four"))
        shown = [(result.status, result.error) for result in results]
        print(json.dumps([agent.session_id, agent.transcript_path, shown, asked]))

asyncio.run(main())
"""


@pytest.mark.parametrize("bytes_left", [0, 1, 200, 4000])
@pytest.mark.parametrize("then", ["room", "death"])
async def test_a_disk_that_fills_up_ends_the_turn_with_its_reason_and_loses_nothing_that_was_acknowledged(
    tmp_path: Path, home: Path, bytes_left: int, then: str
) -> None:
    project = tmp_path / "project"
    with child(AGENT_ON_A_FULL_DISK, str(project), str(bytes_left), then) as ran:
        printed, _ = ran.communicate(timeout=60)
    session_id, path, results, asked = json.loads(printed.splitlines()[-1])
    why = f"The transcript {path} cannot be written: File too large"
    after = [["completed", None]] if then == "room" else []
    assert results == [["completed", None], ["error", why], ["error", why], *after]
    assert asked == 2, "a prompt that cannot be recorded must not reach the model"
    assert (project / "made").exists() is (bytes_left == 4000), "a call that cannot be recorded must not run"
    read = load_session(Path(path))
    assert read.skipped == 0
    assert Path(path).read_bytes().endswith(b"\n")
    said = [message.text for message in read.messages if message.role == "user"]
    assert said == (["one", "two", "four"] if then == "room" else ["one", "two"])
    model = ScriptedModel(["Here."])
    async with await Agent.create(workdir=project, model_client=model, resume=session_id) as agent:
        assert (await agent.send_message("again?")).status == "completed"
    assert wave(project, "sessions", "verify", session_id).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
@pytest.mark.parametrize("command", ["text", "json"])
def test_the_command_line_says_that_the_disk_is_full(tmp_path: Path, home: Path, command: str) -> None:
    """From the very first record on."""
    home.mkdir()
    (home / "projects").write_text("not a directory")
    done = wave(tmp_path / "project", "-p", "hi", "--output-format", command)
    told = json.loads(done.stdout)["error"] if command == "json" else done.stderr
    assert done.returncode == 1
    assert "cannot be written: Not a directory" in told


# ----------------------------------------------------------------------------------------------------- the power cut


class Watched(FileSessionStore):
    """A store that tells when it was synchronised, and how much stood in it then."""

    def __init__(self, path: Path, **more: Any) -> None:
        super().__init__(path, **more)
        self.synced: list[str] = []
        self.threads: list[int] = []

    def sync(self) -> None:
        super().sync()
        self.synced.append(self.path.read_text())
        self.threads.append(get_ident())


class Broken(FileSessionStore):
    def sync(self) -> None:
        raise SessionError(f"The transcript {self.path} cannot be written: Input/output error")


async def with_store(
    project: Path, made: list[Any], kind: type[FileSessionStore], *replies: Any, heard: list[Event] | None = None
) -> tuple[Result, FileSessionStore]:
    """One prompt, with a tool that notes how much of the transcript was safe when it ran."""
    stores: list[FileSessionStore] = []

    def make(path: Path, **more: Any) -> FileSessionStore:
        stores.append(kind(path, **more))
        return stores[0]

    @tool
    def act(what: str) -> str:
        """Does something."""
        made.append(stores[0].synced[-1] if isinstance(stores[0], Watched) else what)
        return "done"

    options = Options(
        workdir=project,
        model_client=ScriptedModel(replies),
        tools=[act],
        permission_mode="bypassPermissions",
        callbacks=Callbacks(on_event=(heard if heard is not None else list[Event]()).append),
    )
    async with Agent.from_options(options, store=make) as agent:
        return await agent.send_message("go"), stores[0]


@contextmanager
def agents_beside(number: int) -> Generator[None]:
    """That many other agents are at work on this event loop."""
    with ExitStack() as working:
        for _ in range(number):
            working.enter_context(fairness().at_work())
        yield


@pytest.mark.parametrize("others", [0, 1])
async def test_a_call_is_on_disk_before_its_effect_and_everything_at_the_end_of_the_turn(
    tmp_path: Path, home: Path, others: int
) -> None:
    made: list[Any] = []
    asked = Reply("I act.", [call("act", what="it")])
    with agents_beside(others):
        result, store = await with_store(tmp_path / "project", made, Watched, asked, "Done.")
    assert isinstance(store, Watched)
    is_beside = store.threads[0] != get_ident()  # of later ones, the time that the first one took decides
    assert is_beside == bool(others), "one that is alone is not woken by a thread; others go on meanwhile"
    assert result.status == "completed"
    assert '"name":"act","input":{"what":"it"}' in made[0]
    assert "Done." not in made[0]
    assert '"text":"Done."' in store.synced[1]


class Slow(Watched):
    def sync(self) -> None:
        sleep(0.06)  # what is measured
        super().sync()


async def test_a_slow_disk_keeps_nothing_else_waiting_after_the_first_time(tmp_path: Path, home: Path) -> None:
    asked = [Reply("I act.", [call("act", what=str(time))]) for time in range(2)]
    _, store = await with_store(tmp_path / "project", [], Slow, *asked, "Done.")
    assert isinstance(store, Slow)
    assert set(store.threads) - {get_ident()}


def test_a_record_that_is_written_during_a_sync_is_not_taken_for_safe(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path / "a.jsonl")
    store.append({"type": "one"})
    store.sync()
    syncing = [Thread(target=store.sync) for _ in range(4)]
    for number, thread in enumerate(syncing):
        store.append({"type": str(number)})
        thread.start()
    for thread in syncing:
        thread.join()
    store.sync()
    store.close()
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 5


async def test_a_tool_that_only_reads_waits_for_no_disk(tmp_path: Path, home: Path) -> None:
    reads = Reply("I look.", [call("Glob", pattern="*")])
    _, store = await with_store(tmp_path / "project", [], Watched, reads, "Done.")
    assert isinstance(store, Watched)
    assert len(store.synced) == 2, "at the end of the turn, and of the agent"


@pytest.mark.parametrize("others", [0, 1])
async def test_what_cannot_be_brought_to_disk_is_told_and_the_tool_does_not_run(
    tmp_path: Path, home: Path, others: int
) -> None:
    made: list[Any] = []
    heard: list[Event] = []
    asked = Reply("I act.", [call("act", what="it")])
    with agents_beside(others):
        result, _ = await with_store(tmp_path / "project", made, Broken, asked, "Done.", heard=heard)
    assert made == []
    assert result.status == "error"
    assert "Input/output error" in str(result.error)
    assert any(isinstance(event, Error) and "Input/output error" in event.content for event in heard)


class DeafToAsyncHooks(FileSessionStore):
    def append(self, record: dict[str, Any]) -> None:
        if record.get("is_async"):
            raise SessionError("Input/output error")
        super().append(record)


async def test_a_failure_that_only_an_async_hook_has_met_keeps_tools_from_running_too(
    tmp_path: Path, home: Path
) -> None:
    agent: Agent

    async def wait(call: Any) -> None:
        await until(lambda: any(run.is_async for run in agent.hook_runs))

    options = Options(
        workdir=tmp_path / "project",
        model_client=ScriptedModel([Reply(tool_calls=[call("Bash", command="touch made")]), "Done."]),
        hooks={
            "UserPromptSubmit": [{"hooks": [{"command": "true", "async": True}]}],
            "PreToolUse": [{"hooks": [wait]}],
        },
        permission_mode="bypassPermissions",
    )
    agent = Agent.from_options(options, store=DeafToAsyncHooks)
    async with agent:
        result = await agent.send_message("go")
    assert (result.status, result.error) == ("error", "Input/output error")
    assert not (tmp_path / "project" / "made").exists()


async def test_a_turn_that_its_caller_gives_up_is_on_disk_too(tmp_path: Path, home: Path) -> None:
    stores: list[Watched] = []

    def make(path: Path, **more: Any) -> Watched:
        stores.append(Watched(path, **more))
        return stores[0]

    never = asyncio.Event()
    model = ScriptedModel([Reply("Hm.", gate=never)])
    options = Options(workdir=tmp_path / "project", model_client=model)
    async with Agent.from_options(options, store=make) as agent:
        turn = asyncio.create_task(agent.send_message("go"))
        await until(lambda: len(model.requests) == 1)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert '"content":"go"' in stores[0].synced[-1]


def test_a_file_that_cannot_be_synchronised_is_an_error_with_the_path() -> None:
    """No power cut can reach /dev/null, and fdatasync says so in its way."""
    store = FileSessionStore(Path("/dev/null"))
    store.append({})
    with pytest.raises(SessionError, match="/dev/null cannot be written"):
        store.sync()
    store.close()


def test_a_session_killed_before_its_first_record_can_be_resumed(tmp_path: Path, home: Path) -> None:
    path = transcript_file(home, str(tmp_path / "project"), "empty")
    stored(path).write_bytes(b"")
    done = wave(tmp_path / "project", "-p", "hi", "-r", "empty")
    assert "No model is configured" in done.stderr
    assert json.loads(path.read_text().splitlines()[0])["type"] == "session"
    assert wave(tmp_path / "project", "sessions", "verify", "empty").returncode == 0
