"""What a run costs, in things that can be counted: they are the same on every machine, unlike times.

`make bench` measures times. A figure here that has to grow should say in its commit what it buys.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

import pytest

from wave_agent import Agent
from wave_agent.agent.options import Options
from wave_agent.hooks.execution import HookJob
from wave_agent.hooks.runners.command import ProcessRunner
from wave_agent.messages import Message, TextBlock
from wave_agent.models.base import Delta, ModelRequest, Text, ToolCall
from wave_agent.models.conversion import Converter
from wave_agent.models.encoded_messages import EncodedMessages
from wave_agent.models.openai_chat import OpenAIChat
from wave_agent.sessions.store import FileSessionStore
from wave_agent.settings import hook_entries
from wave_agent.shell.reader import forget, read_placed
from wave_agent.testing import RecordingModelServer, Reply, ScriptedModel, call

WAVE = Path(sysconfig.get_path("scripts")) / "wave"
UNMEASURED = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
"""Coverage imports half of the standard library."""


NOTES = """
import sys
connected, sent, called = [], [], []
def note(event, facts):
    if event == "socket.connect" and not connected:
        connected.extend(sys.modules)
    elif event == "import" and facts[0] == "h11" and not sent:
        sent.extend(sys.modules)  # the first request is written before it is loaded
    elif event == "ctypes.dlsym":
        called.append(facts[1])
sys.addaudithook(note)
"""
"""Notes the modules that are loaded when a program connects to a server and when it has sent its first request, and the
functions it calls in C libraries."""


def modules_of(code: str, **environment: str) -> set[str]:
    """The modules that a program has loaded at its end."""
    return printed_by(code, "sys.modules", **environment)


def printed_by(code: str, what: str, **environment: str) -> set[str]:
    """The words in a list at the end of a program."""
    program = f"import sys\n{code}\nprint(*{what}, file=sys.stderr)"
    process = subprocess.run(
        [sys.executable, "-c", program],
        env={**UNMEASURED, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return set(process.stderr.splitlines()[-1].split())


RUN = "sys.argv[1:] = {arguments}\nfrom wave_agent.__main__ import main\nmain()"
NEVER = {
    "click",
    "httpcore",
    "rich",
    "textual",
    "tree_sitter",
    "pydantic",
    "anyio",
    "cProfile",
    "typing_extensions",
    "unittest",
    "multiprocessing",
}
"""What no start needs."""


def test_importing_the_package_loads_one_module_of_it() -> None:
    bare, loaded = modules_of(""), modules_of("import wave_agent")
    assert loaded - bare == {"wave_agent"}


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_load_four_modules_of_the_package_and_no_other(flag: str) -> None:
    loaded = modules_of(RUN.format(arguments=[flag])) - modules_of("")
    assert loaded <= {"wave_agent", "wave_agent.__main__", "wave_agent.cli", "wave_agent.cli.quick", "gc", "__future__"}


def test_one_prompt_loads_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    with RecordingModelServer.in_thread(["Hello."]) as server:
        loaded = printed_by(
            NOTES + RUN.format(arguments=["-p", "Hi", "--cwd", str(tmp_path)]),
            "connected",
            WAVE_HOME=str(tmp_path),
            WAVE_BASE_URL=server.base_url,
            WAVE_MODEL="any",
        )
    unused = {
        *(
            "wave_agent.hooks.runners.worker_pool",
            "wave_agent.hooks.runners.http",
            "wave_agent.settings.git_refs",
            "wave_agent.models.repair",
            "wave_agent.models.anthropic",
            "wave_agent.models.openai_responses",
            "wave_agent.models.key_helper",
            "wave_agent.tools.changes.watcher",
            "wave_agent.permissions.hosts",
            "wave_agent.permissions.denied_files",
            "wave_agent.permissions.network_proxy",
            "wave_agent.permissions.sandbox",
            "wave_agent.models.probe",
            "wave_agent.sessions.index",
            "wave_agent.http.exchanges",
            "wave_agent.http.chunks",
            "wave_agent.http.sse",
            "wave_agent.models.chat_stream",
            "wave_agent.agent.call_stages",
            "wave_agent.agent.call_judge",
            "wave_agent.agent.asking",
            "wave_agent.hooks.semantics",
            "wave_agent.hooks.runners.command",
            "wave_agent.permissions.protected_paths",
            "wave_agent.cli.hook_reports",
        ),
        *("h11", "dataclasses"),
        *("wave_agent.testing.model_server", "wave_agent.testing", "wave_agent.models.scripted", "wave_agent.cli.demo"),
    }
    assert loaded.isdisjoint(NEVER | unused)
    assert not [name for name in loaded if name.startswith("wave_agent.effects")]
    rooms = {name.rpartition(".")[0] for name in loaded}  # packages, each with a docstring and nothing else
    assert len([name for name in loaded - rooms if name.startswith("wave_agent")]) <= 126
    # Some distributions have a `sitecustomize`; the standard library of 3.13 has more modules for the same work.
    assert len(loaded - {"sitecustomize"}) <= (318 if sys.version_info < (3, 13) else 323)


def test_servers_with_cached_tools_load_little_before_the_first_request(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    for place in (home, project):
        place.mkdir()
    # Copied, since an argument with a blank, as in the path of some checkouts, is also read as a line of Bash.
    server_file = shutil.copy(Path(__file__).parent / "mcp" / "servers" / "notes.py", tmp_path)
    entry = {"command": sys.executable, "args": ["-I", str(server_file), str(tmp_path / "log")]}
    (home / "settings.json").write_text(json.dumps({"mcpServers": {"notes": entry}}))
    run = NOTES + RUN.format(arguments=["-p", "Hi", "--cwd", str(project)])
    with RecordingModelServer.in_thread(["Hello.", "Hello."]) as server:
        given = {"WAVE_HOME": str(home), "WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "any"}
        printed_by(run, "sent", **given)  # connects, and fills the cache
        loaded = printed_by(run, "sent", **given)
        offered = [tool["function"]["name"] for tool in server.requests[-1].body["tools"]]
    assert [name for name in offered if name.startswith("mcp__notes__")]
    assert loaded.isdisjoint(NEVER)
    rooms = ("wave_agent.mcp", "wave_agent.hooks.runners", "wave_agent.tools.images", "importlib.util")
    found = {name.removeprefix("wave_agent.mcp.") for name in loaded if name.startswith(rooms)}
    assert found <= {
        *("wave_agent.mcp", "values", "entries", "sources", "servers", "session", "server_status", "tools"),
        *("cache", "consent", "pins", "definitions", "identity", "file_digests", "loaded_files", "bound_files"),
        *("launchers", "package_files", "host_on_demand"),
        "mentions",  # this server has instructions, which are marked,
        "resource_reader",  # and resources
    }


def test_no_garbage_is_looked_for_while_an_agent_is_made(tmp_path: Path) -> None:
    """It loads modules, in a session with servers two dozen."""
    code = """
import gc
seen = []
def note(event, facts):
    if event == "socket.connect" or (event == "import" and facts[0] == "wave_agent.agent.mcp_servers"):
        seen.append(f"{event}:{gc.isenabled()}")
sys.addaudithook(note)
"""
    settings = {"mcpServers": {"notes": {"command": "notes", "disabled": True}}}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    with RecordingModelServer.in_thread(["Hello."]) as server:
        found = printed_by(
            code + RUN.format(arguments=["-p", "Hi", "--cwd", str(tmp_path)]),
            "seen",
            WAVE_HOME=str(tmp_path),
            WAVE_BASE_URL=server.base_url,
            WAVE_MODEL="any",
        )
    assert found == {"import:False", "socket.connect:True"}


def test_one_prompt_looks_for_no_module_beside_its_script(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "wave"
    script.parent.mkdir()
    (script.parent / "asyncio.py").write_text("raise SystemExit('this is no module of ours')")
    script.write_text(WAVE.read_text())
    (tmp_path / "link").symlink_to(script)
    with RecordingModelServer.in_thread(["Hello."]) as server:
        environment = {"WAVE_HOME": str(tmp_path), "WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "any"}
        process = subprocess.run(
            [sys.executable, tmp_path / "link", "-p", "Hi", "--cwd", str(tmp_path)],
            env={**UNMEASURED, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (process.returncode, process.stdout) == (0, "Hello.\n"), process.stderr


def test_a_session_that_only_reads_watches_no_files(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("x")
    calls = [call("Read", file_path="notes"), call("Bash", command="ls"), call("TodoWrite", todos=[])]
    with RecordingModelServer.in_thread([Reply(tool_calls=calls), "Done."]) as server:
        called = printed_by(
            NOTES + RUN.format(arguments=["-p", "Hi", "--cwd", str(tmp_path)]),
            "called",
            WAVE_HOME=str(tmp_path / "home"),
            WAVE_BASE_URL=server.base_url,
            WAVE_MODEL="any",
        )
        assert len(server.requests[-1].body["messages"]) == 6  # three results
    assert not [name for name in called if name.startswith("inotify")]


def test_telemetry_that_is_off_costs_no_module_no_thread_and_no_connection(tmp_path: Path) -> None:
    notes = """
import sys, threading
places = []
sys.addaudithook(lambda event, facts: places.append(str(facts[1])) if event == "socket.connect" else None)
"""
    with RecordingModelServer.in_thread(["Hello."]) as server:
        found = printed_by(
            notes + RUN.format(arguments=["-p", "Hi", "--cwd", str(tmp_path)]),
            '["at:" + place.replace(" ", "") for place in places]'
            '+ ["on:" + one.name for one in threading.enumerate()] + list(sys.modules)',
            WAVE_HOME=str(tmp_path / "home"),
            WAVE_BASE_URL=server.base_url,
            WAVE_MODEL="any",
        )
        port = server.base_url.rpartition(":")[2].partition("/")[0]
    assert not [name for name in found if name.startswith(("opentelemetry", "wave_agent.telemetry", "requests"))]
    assert "wave_agent.agent.telemetry" not in found
    assert {name for name in found if name.startswith("at:")} == {f"at:('127.0.0.1',{port})"}
    assert "on:wave-telemetry" not in found


def test_the_sdk_is_loaded_after_the_first_request_was_sent(tmp_path: Path) -> None:
    with RecordingModelServer.in_thread(["Hello."]) as server:
        loaded = printed_by(
            NOTES + RUN.format(arguments=["-p", "Hi", "--cwd", str(tmp_path)]),
            "connected",
            WAVE_HOME=str(tmp_path / "home"),
            WAVE_BASE_URL=server.base_url,
            WAVE_MODEL="any",
            OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
        )
    code = ("opentelemetry.sdk", "opentelemetry.trace", "opentelemetry.metrics", "requests", "google")
    assert not [name for name in loaded if name.startswith(code)]
    assert "wave_agent.telemetry.agent_trace" in loaded


async def test_a_turn_connects_once_and_asks_once_for_each_answer(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("x")
    replies = [Reply(tool_calls=[call("Read", file_path="notes")]), "Done."]
    async with (
        RecordingModelServer(replies) as server,
        await Agent.create(workdir=tmp_path, base_url=server.base_url, model="any", setting_sources=[]) as agent,
    ):
        assert (await agent.send_message("go")).status == "completed"
    asked = [request for request in server.requests if request.path.endswith("/chat/completions")]
    assert len(asked) == 2


class CountingStore(FileSessionStore):
    """Counts how often records are appended, and brought to the disk."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.counts = {"append": 0, "sync": 0}

    def append(self, record: Any) -> None:
        self.counts["append"] += 1
        super().append(record)

    def sync(self) -> None:
        self.counts["sync"] += 1
        super().sync()


async def test_a_turn_with_one_command_writes_five_records_and_syncs_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    stores: list[CountingStore] = []

    def store(*given: Any, **named: Any) -> CountingStore:
        stores.append(CountingStore(*given, **named))
        return stores[-1]

    turn = [Reply(tool_calls=[call("Bash", command="true")]), "Done."]
    options = Options(workdir=tmp_path, model_client=ScriptedModel(turn * 2), permission_mode="bypassPermissions")
    async with Agent.from_options(options, store=store) as agent:
        await agent.send_message("go")
        before = dict(stores[0].counts)
        await agent.send_message("go")
        after = dict(stores[0].counts)
    spent = {name: after[name] - before[name] for name in after}
    assert spent == {
        "append": 5,
        "sync": 2,
    }  # prompt, call, result, answer, usage; before the command acts, and at the end


def loads_at_a_start(options: Options) -> Counter[str]:
    """How often the hook entries of each source of settings are read, by watching the calls of one function."""
    loads = Counter[str]()
    reading = getattr(hook_entries, "_EntryLoader").load.__code__  # noqa: B009 (private, and only watched)

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is reading:
            loads[frame.f_locals["self"].source.name] += 1

    sys.setprofile(watch)
    try:
        agent = Agent.from_options(options)
    finally:
        sys.setprofile(None)
    asyncio.run(agent.close())
    return loads


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param({"trust": True}, id="trusted"),
        pytest.param({"trust": lambda _hooks, _missing: True}, id="asked"),
        pytest.param({"project_hooks": False}, id="without the project's hooks"),
    ],
)
def test_the_hooks_of_each_file_are_loaded_once_per_start(
    chosen: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    monkeypatch.setenv("WAVE_HOME", str(home))
    settings = {"hooks": {"PreToolUse": ["true"]}, "permissions": {"allow": ["Read"], "deny": ["Write"]}}
    files = [tmp_path / "managed.json", home / "settings.json"]
    files += [project / ".wave" / name for name in ("settings.json", "settings.local.json")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings))
    options = Options(
        workdir=project,
        model_client=ScriptedModel([]),
        managed_file=files[0],
        overlays=[settings],
        hooks=settings["hooks"],
        **chosen,
    )
    assert loads_at_a_start(options) == dict.fromkeys([*map(str, files), "settings", "hooks"], 1)


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes through /proc")
async def test_a_hook_is_one_process(tmp_path: Path) -> None:
    """`bash -c` becomes the one command that it is given."""
    script = tmp_path / "hook.sh"
    script.write_text('#!/bin/sh\nread -r _ _ _ parent _ < "/proc/$$/stat"\necho "$parent"\n')
    script.chmod(0o755)
    job = HookJob(command=str(script), env=dict(os.environ), cwd=str(tmp_path), timeout=30)
    assert (await ProcessRunner().run(job)).stdout == str(os.getpid())


@pytest.mark.skipif(sys.platform != "linux", reason="only there is a shell done without")
@pytest.mark.parametrize(("command", "shells"), [("./hook.sh", 0), ("sh hook.sh", 0), ("./hook.sh; true", 1)])
async def test_a_command_of_plain_words_starts_no_shell(command: str, shells: int, tmp_path: Path) -> None:
    log, shell, script = tmp_path / "log", tmp_path / "bash", tmp_path / "hook.sh"
    script.write_text("#!/bin/sh\n")
    shell.write_text(f'#!/bin/sh\necho started >> {log}\nexec /bin/bash "$@"\n')
    for file in (script, shell):
        file.chmod(0o755)
    log.touch()
    job = HookJob(command=command, env={"PATH": os.environ["PATH"]}, cwd=str(tmp_path), timeout=30)
    assert (await ProcessRunner(shell=str(shell)).run(job)).exit_code == 0
    assert len(log.read_text().splitlines()) == shells


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, processes are looked for differently")
def test_a_hook_opens_no_file(tmp_path: Path) -> None:
    """With 50 of them in parallel, one more call of the system for each can be measured."""
    code = f"""
import asyncio, os
from wave_agent.hooks.execution import HookJob
from wave_agent.hooks.runners.command import ProcessRunner
job = HookJob(command="true; true", stdin=b"x", env=dict(os.environ), cwd={str(tmp_path)!r}, timeout=60)
async def main():
    runner = ProcessRunner()
    await runner.run(job)  # loads what it needs
    sys.addaudithook(lambda event, facts: opened.append(facts[0]) if event == "open" else None)
    assert (await runner.run(job)).exit_code == 0
opened = []
asyncio.run(main())
opened = [sum(isinstance(one, str) for one in opened)]  # not its pipes, which are numbers
"""
    assert printed_by(code, "opened") == {"0"}


@pytest.mark.skipif(sys.platform != "linux", reason="counts with the kernel's figures")
def test_a_command_wakes_its_process_three_times() -> None:
    """When it has been started, when it ends, and when the event loop gets its ending."""
    code = """
import asyncio, os, re
from pathlib import Path
from wave_agent.tools.process import Launch, Process
def wakes():
    statuses = (thread.joinpath("status").read_text() for thread in Path("/proc/self/task").iterdir())
    return sum(int(re.search(r"^voluntary_ctxt_switches:\\s+(\\d+)", status, re.MULTILINE)[1]) for status in statuses)
async def main():
    launch = Launch(argv=["/bin/sh", "-c", "true"], cwd="/", environment=dict(os.environ), seconds=60)
    taken = []
    for _ in range(20):
        before = wakes()
        assert (await Process(launch, print).run()).exit_code == 0
        await asyncio.sleep(0.002)  # until the thread is idle: one more
        taken.append(wakes() - before - 1)
    return min(taken)  # other work on the machine can only add to it
taken = [asyncio.run(main())]
"""
    assert int(printed_by(code, "taken").pop()) <= 3


async def test_connecting_goes_on_while_the_first_hooks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook ends only when the server has been connected to; else it fails the prompt."""
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    gate = tmp_path / "connected"
    left = asyncio.Event()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gate.touch()
        try:
            await converse(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()
            left.set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        answer = json.dumps({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}\r\n\r\n"
        writer.write(head.encode() + answer)
        await reader.read()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    wait = f"until [ -e {gate} ]; do sleep 0.01; done"
    hooks = {"UserPromptSubmit": [{"command": wait, "timeout": 20, "onFailure": "block"}]}
    async with await Agent.create(
        workdir=tmp_path, base_url=f"http://127.0.0.1:{port}", model="any", setting_sources=[], hooks=hooks
    ) as agent:
        result = await agent.send_message("go")
    await left.wait()
    server.close()
    await server.wait_closed()
    assert (result.status, result.text) == ("completed", "Hi")


class Growing:
    """A model that calls a tool many times, and counts the agent's function calls between its requests."""

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self._since = 0
        self._count = 0
        self.counts: list[int] = []

    def note(self, _frame: FrameType, event: str, _: object) -> None:
        self._count += event == "call"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        self.counts.append(self._count - self._since)
        number = len(self.counts)
        self._since = self._count
        if number <= self._calls:
            yield ToolCall(id=str(number), name="Read", arguments=json.dumps({"file_path": "notes", "limit": number}))
        else:
            yield Text("Done.")

    async def close(self) -> None:
        pass


async def test_a_call_takes_no_more_work_late_in_a_session_than_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    (tmp_path / "notes").write_text("x\n")
    model = Growing(120)
    async with await Agent.create(workdir=tmp_path, model_client=model, setting_sources=[]) as agent:
        before = sys.getprofile()
        sys.setprofile(model.note)
        try:
            await agent.send_message("go")
        finally:
            sys.setprofile(before)
    early, late = median(model.counts[15:25]), median(model.counts[105:115])
    assert late <= 1.05 * early


def test_a_request_runs_no_line_for_a_message_that_was_in_the_one_before() -> None:
    """Calls of functions do not show this: a loop within one runs lines too."""
    converter, api, encoded = Converter(), OpenAIChat(), EncodedMessages()

    def request(number: int) -> None:
        conversation = [Message("user", (TextBlock(str(one), "user"),)) for one in range(number)]
        for shown in (conversation[:-1], conversation):
            lines.clear()
            sent = converter.convert(shown, system="You are an agent.")
            body = api.body(ModelRequest(model="any", messages=sent))
            encoded.encode(body["messages"])

    lines = Counter[str]()
    counts: list[int] = []
    for number in (20, 600):
        with counted(lines):
            request(number)
        counts.append(lines.total())
    assert counts[1] == counts[0], lines.most_common(3)


def test_a_line_of_bash_that_was_just_read_is_found_without_looking_at_others() -> None:
    """Hooks, rules and the tool ask for it one after another."""
    lines = Counter[str]()
    counts: list[int] = []
    forget()
    for number in range(60):
        read_placed(f"echo {number}", {}, "/")
        lines.clear()
        with counted(lines):
            read_placed(f"echo {number}", {}, "/")
        counts.append(lines.total())
    assert counts[-1] == counts[0]


@contextmanager
def counted(lines: Counter[str]) -> Generator[None]:
    """Counts the lines of Python that run meanwhile."""

    def trace(frame: FrameType, event: str, _: object) -> Any:
        lines[f"{frame.f_code.co_filename}:{frame.f_lineno}"] += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def test_what_the_first_command_needs_is_loaded_while_the_model_works(tmp_path: Path) -> None:
    code = f"""
import asyncio, sys
import wave_agent.agent.arguments  # only `Agent.create` needs it
from wave_agent import Agent
from wave_agent.agent.loading_ahead import load_ahead
from wave_agent.testing import Reply, ScriptedModel, call
async def main():
    load_ahead()
    while "wave_agent.tools.terminal" not in sys.modules:
        await asyncio.sleep(0)
    global before
    before = set(sys.modules)
    replies = [Reply(tool_calls=[call("Bash", command="true")]), "Done."]
    async with await Agent.create(
        workdir={str(tmp_path)!r}, model_client=ScriptedModel(replies), permission_mode="bypassPermissions",
        setting_sources=[],
    ) as agent:
        await agent.send_message("go")
asyncio.run(main())
"""
    late = printed_by(code, "set(sys.modules) - before", WAVE_HOME=str(tmp_path / "home"))
    assert not [name for name in late if name.startswith(("wave_agent", "tree_sitter", "ctypes"))]


def test_an_answer_stops_the_loading() -> None:
    code = """
import asyncio
from wave_agent.agent.loading_ahead import load_ahead
async def main():
    load_ahead()()
    later = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.02, later.set_result, None)  # twice as late as the first step
    await later
asyncio.run(main())
"""
    assert modules_of(code).isdisjoint({"tree_sitter", "wave_agent.shell.grammar"})


def test_what_the_first_call_would_wait_for_is_prepared_when_all_is_loaded() -> None:
    code = """
import asyncio
from wave_agent.agent.loading_ahead import load_ahead
prepared = []
async def main():
    done = asyncio.Event()
    def prepare():
        prepared.append("wave_agent.tools.terminal" in sys.modules)
        done.set()
        raise RuntimeError("the call itself reports it")
    load_ahead(prepare)
    await asyncio.wait_for(done.wait(), 30)
    await asyncio.sleep(0)
asyncio.run(main())
"""
    assert printed_by(code, "prepared") == {"True"}
