"""Python functions in files: warm, isolated, and a failure like any other when they go wrong."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.checkouts import Checkout
from tests.spec.world import is_gone
from tests.waiting import number_in, until
from wave_agent import Agent, UntrustedHooksError
from wave_agent.hooks.execution import HookExecutionResult, HookJob, HookKind
from wave_agent.hooks.runners.worker_pool import Limits, WorkerPool
from wave_agent.hooks.runners.worker_program import pack
from wave_agent.system.orphans import Leftovers
from wave_agent.testing import Reply, ScriptedModel, call

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")


class Workshop:
    """A project with one file of hook functions, and a pool to call them."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.pool = WorkerPool()

    def write(self, text: str, name: str = "guard.py") -> None:
        """In place of what is there, as editors do it: another file under the same name."""
        new = self.project / f"{name}.new"
        new.write_text(text)
        os.replace(new, self.project / name)

    async def run(self, function: str = "check", **facts: Any) -> HookExecutionResult:
        return await self.pool.run(self.job(function, **facts))

    def job(self, function: str = "check", *, timeout: float = 30, **facts: Any) -> HookJob:
        extra = facts.pop("env", {})
        return HookJob(
            kind=HookKind.PYTHON,
            command=function if ":" in function else f"guard.py:{function}",
            stdin=json.dumps({"hook_event_name": "PreToolUse", **facts}).encode(),
            env={**os.environ, **extra},
            cwd=str(self.project),
            timeout=timeout,
        )


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    found = Workshop(tmp_path)
    yield found
    await found.pool.close()


def answer_of(result: HookExecutionResult) -> Any:
    assert result.exit_code == 0, result
    return json.loads(result.stdout)


# ------------------------------------------------------------------------------------------------------ what is called


async def test_a_function_gets_the_event_and_its_answer_is_the_output(workshop: Workshop) -> None:
    workshop.write("from wave_agent.hooks import deny\ndef check(call):\n    return deny(call.tool + call['x'])\n")
    result = await workshop.run(tool_name="Bash", x="!")
    assert answer_of(result) == {"decision": "block", "reason": "Bash!"}


@pytest.mark.parametrize(
    ("body", "stdout"),
    [("return None", ""), ("return {'systemMessage': 'é'}", '{"systemMessage": "\\u00e9"}'), ("pass", "")],
)
async def test_a_function_may_return(workshop: Workshop, body: str, stdout: str) -> None:
    workshop.write(f"def check(call):\n    {body}\n")
    result = await workshop.run()
    assert (result.exit_code, result.stdout) == (0, stdout)


async def test_an_async_function_is_awaited_and_its_loop_stays(workshop: Workshop) -> None:
    workshop.write(
        "import asyncio\nseen = set()\nasync def check(call):\n    await asyncio.sleep(0)\n"
        "    seen.add(id(asyncio.get_running_loop()))\n    return {'systemMessage': str(len(seen))}\n"
    )
    assert [answer_of(await workshop.run())["systemMessage"] for _ in range(3)] == ["1", "1", "1"]


async def test_a_function_of_a_class_is_found_by_its_dotted_name(workshop: Workshop) -> None:
    workshop.write("class Guard:\n    @staticmethod\n    def check(call):\n        return {'systemMessage': 'here'}\n")
    assert answer_of(await workshop.run("Guard.check")) == {"systemMessage": "here"}


async def test_its_directory_is_first_on_the_path_and_the_project_is_where_it_works(workshop: Workshop) -> None:
    (workshop.project / "hooks").mkdir()
    (workshop.project / "hooks" / "beside.py").write_text("WORD = 'beside'\n")
    workshop.write(
        "import os, sys, beside\ndef check(call):\n"
        "    return {'systemMessage': f'{beside.WORD} {os.getcwd()} {sys.path[0]}'}\n",
        "hooks/guard.py",
    )
    told = answer_of(await workshop.run("hooks/guard.py:check"))["systemMessage"]
    assert told == f"beside {workshop.project} {workshop.project}/hooks"


async def test_each_call_has_the_environment_of_its_event(workshop: Workshop) -> None:
    workshop.write("import os\ndef check(call):\n    return {'systemMessage': os.environ.get('HOOK_TOOL_NAME', '-')}\n")
    told = [
        answer_of(await workshop.run(env=env))["systemMessage"]
        for env in ({"HOOK_TOOL_NAME": "Bash"}, {"HOOK_TOOL_NAME": "Read"}, {})
    ]
    assert told == ["Bash", "Read", "-"]


async def test_what_a_function_prints_is_no_part_of_its_answer(workshop: Workshop) -> None:
    workshop.write(
        "import os, sys\ndef check(call):\n    print('{\"decision\": \"allow\"}')\n    os.write(1, b'raw ')\n"
        "    os.system('echo child')\n    print('err', file=sys.stderr)\n"
        "    return {'decision': 'block', 'reason': 'no'}\n"
    )
    result = await workshop.run()
    assert answer_of(result) == {"decision": "block", "reason": "no"}
    assert all(word in result.stderr for word in ("raw", "child", "err", "allow"))


async def test_a_function_may_print_more_than_a_pipe_holds(workshop: Workshop) -> None:
    workshop.write("def check(call):\n    print('x' * 3_000_000)\n    return {'systemMessage': 'done'}\n")
    assert answer_of(await workshop.run()) == {"systemMessage": "done"}
    assert answer_of(await workshop.run()) == {"systemMessage": "done"}


async def test_a_long_answer_is_whole_and_one_beyond_all_measure_a_failure(workshop: Workshop) -> None:
    workshop.write("def check(call):\n    return {'decision': 'block', 'reason': 'x' * call['length']}\n")
    assert len(answer_of(await workshop.run(length=2_000_000))["reason"]) == 2_000_000
    await workshop.pool.close()
    workshop.pool = WorkerPool(cap=1 << 20)
    result = await workshop.run(length=2_000_000)
    assert (result.exit_code, result.error) == (None, "its answer is longer than 1 MiB")
    assert answer_of(await workshop.run(length=1)) == {"decision": "block", "reason": "x"}


async def test_what_a_call_does_to_the_environment_is_gone_at_the_next(workshop: Workshop) -> None:
    workshop.write(
        "import os\ndef check(call):\n    found = (os.environ.pop('HOME', None), os.environ.get('WAVE_SESSION_ID'))\n"
        "    os.environ['WAVE_SESSION_ID'] = 'forged'\n    return {'systemMessage': repr(found)}\n"
    )
    told = [answer_of(await workshop.run(env={"HOME": "/h", "WAVE_SESSION_ID": "s"}))["systemMessage"] for _ in "12"]
    assert told == ["('/h', 's')"] * 2


@pytest.mark.parametrize("does", ["pass", "os.environ['B'] = 'forged'; os.environ.pop('A', 0)", "os.environ = {}"])
async def test_variables_come_change_and_go_from_call_to_call(workshop: Workshop, does: str) -> None:
    workshop.write(
        "import os\ndef check(call):\n    found = {name: os.environ[name] for name in 'ABC' if name in os.environ}\n"
        f"    {does}\n    return found\n"
    )
    given: list[dict[str, str]] = [{"A": "1"}, {"A": "1"}, {"A": "2", "B": "3"}, {"B": "3", "C": "é"}, {}]
    assert [answer_of(await workshop.run(env=env)) for env in given] == given


# ------------------------------------------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("raise ValueError('odd')", "ValueError: odd (guard.py, line 2)"),
        ("raise SystemExit(2)", "SystemExit: 2 (guard.py, line 2)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt (guard.py, line 2)"),
        ("return 5", "a hook function must return None, a dict or an answer, not int"),
        ("return {'a': float('nan')}", "the hook function returned something that is not JSON: "),
        ("return {'a': object()}", "the hook function returned something that is not JSON: "),
    ],
)
async def test_what_a_function_cannot_do_is_a_failure_and_the_worker_stays(
    workshop: Workshop, body: str, told: str
) -> None:
    workshop.write(
        f"def check(call):\n    {body}\nimport os\ndef pid(call):\n    return {{'systemMessage': str(os.getpid())}}\n"
    )
    before = answer_of(await workshop.run("pid"))
    result = await workshop.run()
    assert result.exit_code == 1
    assert result.stderr.startswith(told)
    assert answer_of(await workshop.run("pid")) == before


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "guard.py cannot be read: No such file or directory"),
        ("def check(:\n", "guard.py cannot be loaded: SyntaxError: "),
        ("import nothing_like_it\n", "cannot be loaded: ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("raise SystemExit\n", "guard.py cannot be loaded: SystemExit (guard.py, line 1)"),
        ("check = 5\n", 'guard.py has no function "check"'),
    ],
)
async def test_what_cannot_be_called_could_not_be_started(workshop: Workshop, text: str | None, told: str) -> None:
    if text is not None:
        workshop.write(text)
    result = await workshop.run()
    assert result.exit_code is None
    assert told in (result.error or "")
    workshop.write("def check(call):\n    return {'systemMessage': 'repaired'}\n")
    assert answer_of(await workshop.run()) == {"systemMessage": "repaired"}


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("os.kill(os.getpid(), 9)", {"signal": signal.SIGKILL}),
        ("os._exit(0)", {"exit_code": 1, "stderr": "its worker ended with exit code 0 before it answered"}),
        ("os._exit(2)", {"exit_code": 1, "stderr": "its worker ended with exit code 2 before it answered"}),
    ],
)
async def test_a_crash_is_a_failure_and_the_next_call_has_a_new_worker(
    workshop: Workshop, body: str, result: dict[str, Any]
) -> None:
    workshop.write(f"import os\ndef check(call):\n    {body}\ndef fine(call):\n    return {{'systemMessage': 'ok'}}\n")
    crashed = await workshop.run()
    assert {name: getattr(crashed, name) for name in result} == result
    assert not crashed.success
    assert answer_of(await workshop.run("fine")) == {"systemMessage": "ok"}


@needs_proc
async def test_cancelling_ends_a_worker_that_has_closed_its_line(workshop: Workshop) -> None:
    workshop.write(
        "import os, signal, time\ndef check(call):\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    open('pid', 'w').write(f'{os.getpid()}\\n')\n    os.closerange(3, 9999)\n    time.sleep(600)\n"
    )
    running = asyncio.create_task(workshop.run())
    pid = await number_in(workshop.project / "pid")
    await until(lambda: max(map(int, os.listdir(f"/proc/{pid}/fd"))) < 3)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert is_gone(pid)


async def test_a_function_that_closes_the_line_is_told_as_that(workshop: Workshop) -> None:
    workshop.write("import os, time\ndef check(call):\n    os.closerange(3, 9999)\n    time.sleep(60)\n")
    result = await workshop.run()
    assert (result.exit_code, result.signal) == (1, None)
    assert result.stderr == "its worker closed its connection to the agent"


@needs_proc
async def test_a_timeout_kills_the_worker_with_its_tree(workshop: Workshop) -> None:
    workshop.write(
        "import os, subprocess, signal\ndef check(call):\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    child = subprocess.Popen(['sleep', '600'])\n"
        "    open('pids', 'w').write(f'{os.getpid()} {child.pid}\\n')\n    child.wait()\n"
    )
    result = await workshop.run(timeout=1.5)
    assert result.timed_out
    pids = (workshop.project / "pids").read_text().split()
    assert [is_gone(int(pid)) for pid in pids] == [True, True]


@needs_proc
async def test_a_cancelled_call_is_over_when_the_cancellation_comes_through(workshop: Workshop) -> None:
    workshop.write(
        "import os, time\ndef check(call):\n    open('pid', 'w').write(f'{os.getpid()}\\n')\n    time.sleep(600)\n"
    )
    task = asyncio.create_task(workshop.run())
    pid = await number_in(workshop.project / "pid")
    task.cancel()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert is_gone(pid)


@pytest.mark.parametrize(
    "end", ["raise ValueError", "return {'decision': 'approve'}", "sys.exit(0)", "os.execvp('no-such-program', ['x'])"]
)
async def test_only_the_worker_itself_answers_not_a_fork_of_it(workshop: Workshop, end: str) -> None:
    workshop.write(
        "import os, sys, time\n"
        "def check(call):\n"
        "    reader, writer = os.pipe()\n"
        "    if (child := os.fork()) == 0:\n"
        f"        {end}\n"
        "    os.close(writer)\n"
        "    os.read(reader, 1)\n"  # until the child has ended, or gone on with what is not its own
        "    return {'decision': 'block', 'reason': call['number']}\n"
    )
    for number in "1234":
        assert answer_of(await workshop.run(number=number, timeout=20)) == {"decision": "block", "reason": number}


async def test_an_answer_to_another_call_is_a_failure_and_costs_the_worker(workshop: Workshop) -> None:
    workshop.write(
        "import os\nfrom __main__ import pack\n"
        "def check(call):\n"
        "    line = next(int(one) for one in os.listdir('/proc/self/fd') if 'socket' in link(one))\n"
        "    os.write(line, pack({'exit': 0, 'call': 99, 'memory': 0}, b'{}'))\n"
        "def link(one):\n"
        "    try: return os.readlink('/proc/self/fd/' + one)\n"
        "    except OSError: return ''\n"
        "def other(call):\n    return {'systemMessage': 'fine'}\n"
    )
    assert (await workshop.run()).error == "its worker answered a different call"
    assert answer_of(await workshop.run("other")) == {"systemMessage": "fine"}


async def test_an_interpreter_that_is_not_there_is_told(workshop: Workshop) -> None:
    workshop.write("def check(call): pass\n")
    pool = WorkerPool(python="/nowhere/python")
    result = await pool.run(workshop.job())
    await pool.close()
    assert result.error == "Program '/nowhere/python' cannot be started: it was not found"


# ---------------------------------------------------------------------------------------------------- how long it stays

PID = "import os\ndef check(call):\n    return {'systemMessage': str(os.getpid())}\n"


async def test_one_worker_serves_every_function_of_a_file_one_call_at_a_time(workshop: Workshop) -> None:
    workshop.write(f"{PID}def other(call):\n    return check(call)\n")
    results = await asyncio.gather(*(workshop.run(name) for name in ["check", "other"] * 5))
    assert len({result.stdout for result in results}) == 1


GATED = (
    "import os, time\n"
    "def slow(call):\n"
    "    open('entered', 'w').close()\n"
    "    while not os.path.exists('gate'): time.sleep(0.005)\n"
    "def quick(call):\n    return {'systemMessage': 'quick'}\n"
)


async def test_the_time_of_a_call_runs_while_it_waits_for_its_turn(workshop: Workshop) -> None:
    workshop.write(GATED)
    first = asyncio.create_task(workshop.run("slow"))
    await until((workshop.project / "entered").exists)
    late = await workshop.run("quick", timeout=0.2)
    assert (late.timed_out, late.stderr) == (True, "it waited for another hook in the same file to finish")
    (workshop.project / "gate").touch()
    assert (await first).exit_code == 0
    assert answer_of(await workshop.run("quick")) == {"systemMessage": "quick"}


async def test_a_guard_does_not_wait_for_what_runs_beside(workshop: Workshop) -> None:
    workshop.write(GATED)
    beside = asyncio.create_task(workshop.pool.run(replace(workshop.job("slow"), is_waited_for=False)))
    await until((workshop.project / "entered").exists)
    assert answer_of(await workshop.run("quick")) == {"systemMessage": "quick"}
    assert not beside.done()
    (workshop.project / "gate").touch()
    assert (await beside).exit_code == 0


async def test_who_had_to_wait_is_looked_at_again(workshop: Workshop) -> None:
    workshop.write(GATED)
    first = asyncio.create_task(workshop.run("slow"))
    await until((workshop.project / "entered").exists)
    second = asyncio.create_task(workshop.pool.run(replace(workshop.job("quick"), look_again=lambda: "it has changed")))
    await asyncio.sleep(0)
    (workshop.project / "gate").touch()
    refused = await second
    assert (refused.error, refused.is_refused, refused.exit_code) == ("it has changed", True, None)
    assert (await first).exit_code == 0


async def test_who_comes_between_two_others_had_to_wait_too(workshop: Workshop) -> None:
    workshop.write(GATED)

    async def twice() -> HookExecutionResult:
        await workshop.run("slow")
        # The lock has just been released, and the other call has not taken it yet.
        return await workshop.pool.run(replace(workshop.job("quick"), look_again=lambda: "it has changed"))

    both = asyncio.create_task(twice())
    await until((workshop.project / "entered").exists)
    other = asyncio.create_task(workshop.run("quick"))
    await asyncio.sleep(0)
    (workshop.project / "gate").touch()
    assert (await both).error == "it has changed"
    assert (await other).exit_code == 0


async def test_a_module_that_is_edited_twice_in_a_second_is_loaded_anew(workshop: Workshop) -> None:
    workshop.write("import helper\ndef check(call):\n    return {'systemMessage': helper.WORD}\n")
    for word in ("one", "two", "six"):
        workshop.write(f"WORD = {word!r}\n", "helper.py")
        os.utime(workshop.project / "helper.py", (1_700_000_000, 1_700_000_000))
        assert answer_of(await workshop.run(env={"PYTHONDONTWRITEBYTECODE": ""})) == {"systemMessage": word}
    assert not (workshop.project / "__pycache__").exists()


@needs_proc
async def test_a_fork_of_the_agent_leaves_the_workers_to_it(workshop: Workshop) -> None:
    workshop.write("import os\ndef check(call):\n    return {'systemMessage': str(os.getpid())}\n")
    first = answer_of(await workshop.run())

    def in_fork() -> None:
        pid = os.fork()
        if pid == 0:
            try:
                asyncio.run(workshop.pool.close())
                other = json.loads(asyncio.run(workshop.run()).stdout)
                os._exit(0 if other != first else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    await asyncio.to_thread(in_fork)
    assert answer_of(await workshop.run()) == first


async def test_a_file_that_changed_is_loaded_anew(workshop: Workshop) -> None:
    workshop.write("WORD = 'old'\ndef check(call):\n    return {'systemMessage': WORD}\n")
    assert answer_of(await workshop.run()) == {"systemMessage": "old"}
    workshop.write("WORD = 'new'\ndef check(call):\n    return {'systemMessage': WORD}\n")
    assert answer_of(await workshop.run()) == {"systemMessage": "new"}


async def test_a_module_of_the_project_that_changed_is_loaded_anew_also_if_it_came_late(workshop: Workshop) -> None:
    workshop.write("WORD = 'old'\n", "words.py")
    workshop.write("def check(call):\n    import words\n    return {'systemMessage': words.WORD}\n")
    assert answer_of(await workshop.run()) == {"systemMessage": "old"}
    workshop.write("WORD = 'newer'\n", "words.py")
    assert answer_of(await workshop.run()) == {"systemMessage": "newer"}


async def test_a_worker_is_replaced_after_so_many_calls(workshop: Workshop) -> None:
    workshop.write(PID)
    workshop.pool = WorkerPool(limits=Limits(calls=2))
    pids = [(await workshop.run()).stdout for _ in range(5)]
    assert [pids.index(pid) for pid in pids] == [0, 0, 2, 2, 4]


async def test_a_worker_is_replaced_when_it_has_grown(workshop: Workshop) -> None:
    workshop.write(f"{PID}kept = []\ndef grow(call):\n    kept.append(bytearray(64 << 20))\n    return check(call)\n")
    workshop.pool = WorkerPool(limits=Limits(memory=64 << 20))
    pids = [(await workshop.run(name)).stdout for name in ("check", "grow", "check")]
    assert pids[0] == pids[1] != pids[2]


@needs_proc
async def test_a_worker_that_died_between_two_calls_is_replaced_without_a_word(workshop: Workshop) -> None:
    workshop.write(PID)
    pid = int(answer_of(await workshop.run())["systemMessage"])
    os.kill(pid, signal.SIGKILL)
    await until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    assert int(answer_of(await workshop.run())["systemMessage"]) != pid


@needs_proc
async def test_closing_ends_every_worker_and_the_next_call_starts_one(workshop: Workshop) -> None:
    workshop.write(PID)
    pid = int(answer_of(await workshop.run())["systemMessage"])
    await workshop.pool.close()
    assert is_gone(pid)
    assert int(answer_of(await workshop.run())["systemMessage"]) != pid


@needs_proc
async def test_a_worker_is_known_to_whoever_ends_what_a_killed_agent_leaves(workshop: Workshop, tmp_path: Path) -> None:
    workshop.write(PID)
    home = tmp_path / "home"
    leftovers = Leftovers(home, home / "session.jsonl")
    leftovers.open()
    workshop.pool = WorkerPool(ledger=leftovers.entry)
    pid = answer_of(await workshop.run())["systemMessage"]
    (file,) = (home / "running").iterdir()
    assert f"+1 {pid} " in file.read_text()
    await workshop.pool.close()
    assert file.read_text().endswith("-1\n")
    leftovers.close()


@given(st.binary(max_size=300), st.dictionaries(st.text(), st.text()))
@settings(max_examples=50)
def test_a_frame_says_how_long_its_parts_are(body: bytes, head: dict[str, str]) -> None:
    frame = pack(head, body)
    length = int.from_bytes(frame[:4], "big")
    assert json.loads(frame[8 : 8 + length]) == head
    assert (int.from_bytes(frame[4:8], "big"), frame[8 + length :]) == (len(body), body)


# ------------------------------------------------------------------------------------------------ like any other hook


class PythonCheckout(Checkout):
    """Its guard is a function in a file."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.file = self.project / ".wave" / "hooks" / "guard.py"
        self.file.write_text("def check(call):\n    return {'decision': 'block', 'reason': 'not ' + call.tool}\n")

    def settings(self, **more: Any) -> None:
        self.write_settings({"type": "python", "target": ".wave/hooks/guard.py:check", **more})


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PythonCheckout:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    return PythonCheckout(tmp_path)


async def test_a_python_hook_of_the_settings_blocks_and_is_journalled(checkout: PythonCheckout) -> None:
    checkout.settings()
    async with await checkout.agent() as agent:
        result = await agent.send_message("go")
    (run,) = result.hooks
    assert (run.name, run.command) == ("guard.py:check", ".wave/hooks/guard.py:check")
    assert (run.outcome, run.reason, run.exit_code) == ("deny", "not Bash", None)
    assert not checkout.ran


async def test_in_shadow_mode_it_only_reports(checkout: PythonCheckout) -> None:
    checkout.settings(mode="shadow")
    async with await checkout.agent() as agent:
        result = await agent.send_message("go")
    assert [(run.outcome, run.mode) for run in result.hooks] == [("deny", "shadow")]
    assert checkout.ran


@pytest.mark.parametrize(("on_failure", "ran"), [("block", False), ("continue", True)])
async def test_its_crash_is_a_failure_under_on_failure(checkout: PythonCheckout, on_failure: str, ran: bool) -> None:
    checkout.file.write_text("import os\ndef check(call):\n    os._exit(0)\n")
    checkout.settings(onFailure=on_failure)
    async with await checkout.agent() as agent:
        result = await agent.send_message("go")
    assert [(run.outcome, run.failure, run.let_through) for run in result.hooks] == [("failure", "exit", ran)]
    assert checkout.ran is ran


async def test_it_needs_trust_and_trust_is_bound_to_its_file(checkout: PythonCheckout) -> None:
    checkout.settings()
    with pytest.raises(UntrustedHooksError) as told:
        await checkout.agent(trust=False)
    assert ".wave/hooks/guard.py:check" in str(told.value.hooks)

    async with await checkout.agent() as agent:
        checkout.file.write_text("def check(call):\n    return None\n")
        result = await agent.send_message("go")
    assert [run.failure for run in result.hooks] == ["spawn"]
    assert ".wave/hooks/guard.py has changed since it was trusted" in result.hooks[0].reason
    assert not checkout.ran


async def test_its_file_is_protected(checkout: PythonCheckout) -> None:
    checkout.settings(mode="shadow")
    write = call("Write", file_path=".wave/hooks/guard.py", content="def check(call): pass\n")
    model = ScriptedModel([Reply(tool_calls=[write]), "done"])
    async with await Agent.create(
        workdir=checkout.project, model_client=model, trust=True, permission_mode="bypassPermissions"
    ) as agent:
        await agent.send_message("go")
    assert "not " in checkout.file.read_text()
