"""The runner's promises, each kept with real processes."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.descriptors import open_descriptors
from wave_agent.hooks.execution import HookExecutionResult, HookJob
from wave_agent.hooks.runners.command import Cancellation, ProcessRunner

MIB = 1 << 20
PROC = Path("/proc/self/stat").exists()
ENV = {"PATH": os.environ["PATH"]}

needs_proc = pytest.mark.skipif(not PROC, reason="looks at processes through /proc")
needs_user = pytest.mark.skipif(os.geteuid() == 0, reason="root may enter any directory")


PIDFD_OR_POLLING = [True, pytest.param(False, marks=pytest.mark.thorough)]
"""Systems without pidfd are polled."""


@pytest.fixture(params=PIDFD_OR_POLLING, ids=["pidfd", "polling"])
def runner(request: pytest.FixtureRequest) -> ProcessRunner:
    return ProcessRunner(use_pidfd=request.param)


def make_job(
    cwd: Path | str,
    command: str,
    *,
    args: tuple[str, ...] | None = None,
    arguments: tuple[str, ...] = (),
    stdin: bytes = b"",
    env: Mapping[str, str] = ENV,
    timeout: float = 30,
) -> HookJob:
    return HookJob(command=command, args=args, arguments=arguments, stdin=stdin, env=env, cwd=str(cwd), timeout=timeout)


def run(runner: ProcessRunner, job: HookJob) -> HookExecutionResult:
    return asyncio.run(runner.run(job))


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def stat_of(pid: int | str) -> list[str]:
    """State, parent, group, session."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]


def is_alive(pid: int) -> bool:
    try:
        return stat_of(pid)[0] != "Z" if PROC else os.kill(pid, 0) is None
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    """For what happens in another process; the test's own time limit ends a wait in vain."""
    while not condition():
        time.sleep(0.002)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - no event comes from another process
        await asyncio.sleep(0.002)


def pids_in(directory: Path) -> list[int]:
    """The processes that have announced themselves with `echo PID > NAME.pid`."""
    return [int(text) for path in directory.glob("*.pid") if (text := path.read_text()).endswith("\n")]


def children() -> set[int]:
    """Of this process, zombies included."""
    found: set[int] = set()
    for name in filter(str.isdigit, os.listdir("/proc") if PROC else []):
        try:
            if stat_of(name)[1] == str(os.getpid()):
                found.add(int(name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


@contextmanager
def nothing_left_behind() -> Generator[None]:
    """No descriptor, no child, no zombie that was not there before."""
    descriptors, processes = len(open_descriptors()), children()
    yield
    assert len(open_descriptors()) == descriptors
    assert children() <= processes


def in_another_python(code: str, *values: object) -> str:
    """The output of a program of its own, for what would spoil this one: limits, signals, exit."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, values)],
        env={**ENV, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=50,
        check=True,
    )
    return done.stdout.strip()


PREAMBLE = """
import asyncio, os, resource, signal, sys, threading, time
from pathlib import Path
from wave_agent.hooks.execution import HookJob
from wave_agent.hooks.runners.command import Cancellation, ProcessRunner
directory, use_pidfd = sys.argv[1], sys.argv[2] == "True"
runner = ProcessRunner(use_pidfd=use_pidfd)
def job(command, timeout=30):
    return HookJob(command=command, env=dict(os.environ), cwd=directory, timeout=timeout)
def run(command, timeout=30):
    return asyncio.run(runner.run(job(command, timeout)))
"""


# How a command is started


def test_a_command_yields_its_exit_code_and_both_streams_trimmed(runner: ProcessRunner, tmp_path: Path) -> None:
    result = run(runner, make_job(tmp_path, "echo; echo ' out '; echo err >&2; exit 3"))

    assert (result.exit_code, result.stdout, result.stderr) == (3, "out", "err")
    assert not result.success
    assert not result.timed_out
    assert result.signal is None
    assert result.error is None
    assert result.duration > 0


def test_stdin_is_given_whole_and_closed(runner: ProcessRunner, tmp_path: Path) -> None:
    result = run(runner, make_job(tmp_path, "cat", stdin=b'{"prompt": "\xc3\xa4"}'))

    assert result.success
    assert result.stdout == '{"prompt": "ä"}'


def test_an_empty_stdin_is_closed_at_once(runner: ProcessRunner, tmp_path: Path) -> None:
    assert run(runner, make_job(tmp_path, "cat; exit 4")).exit_code == 4


def test_a_command_may_use_bash(tmp_path: Path) -> None:
    result = run(ProcessRunner(), make_job(tmp_path, "[[ abc == a* ]] && echo yes"))

    assert result.stdout == "yes"


def test_another_shell_may_be_chosen(tmp_path: Path) -> None:
    assert run(ProcessRunner(shell="/bin/sh"), make_job(tmp_path, "echo $0")).stdout == "/bin/sh"


def test_arguments_reach_the_script_as_they_are(runner: ProcessRunner, tmp_path: Path) -> None:
    path = script(tmp_path / "show.sh", '#!/bin/sh\nprintf "<%s>" "$#" "$1" "$2" "$3"\n')
    odd = "a b\n$HOME `id` \"quoted\" 'single' * \\ ä 🎉"

    result = run(runner, make_job(tmp_path, str(path), arguments=("Bash", odd, "")))

    assert result.stdout == f"<3><Bash><{odd}><>"


def test_a_command_with_args_is_started_without_a_shell(runner: ProcessRunner, tmp_path: Path) -> None:
    result = run(runner, make_job(tmp_path, "printf", args=("<%s>", "$HOME", "*", "a  b")))

    assert result.stdout == "<$HOME><*><a  b>"


def test_empty_args_still_mean_no_shell(tmp_path: Path) -> None:
    assert run(ProcessRunner(), make_job(tmp_path, "exit 0", args=())).error is not None


def test_a_program_is_looked_up_in_the_path_and_the_directory_of_the_hook(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin" / "guard", "#!/bin/sh\necho found\n")

    assert run(ProcessRunner(), make_job(tmp_path, "guard", args=(), env={"PATH": "/nowhere:bin"})).stdout == "found"
    assert run(ProcessRunner(), make_job(tmp_path, "./bin/guard", args=())).stdout == "found"


def test_the_hook_runs_in_its_directory_and_leads_a_session_of_its_own(runner: ProcessRunner, tmp_path: Path) -> None:
    code = "import os; print(os.getcwd(), os.getpid() == os.getsid(0) == os.getpgrp())"

    result = run(runner, make_job(tmp_path, sys.executable, args=("-c", code)))

    assert result.stdout == f"{tmp_path.resolve()} True"


def test_the_environment_is_exactly_the_jobs(tmp_path: Path) -> None:
    env = {"ONE": "1", "TWO": "a b\nc", "PATH": ""}

    result = run(ProcessRunner(), make_job(tmp_path, "/usr/bin/env", args=("-0",), env=env))

    assert dict(line.split("=", 1) for line in result.stdout.rstrip("\0").split("\0")) == env


@needs_proc
def test_the_hook_inherits_no_descriptor_but_three(runner: ProcessRunner, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        command = "for n in {3..99}; do if [ -e /proc/$$/fd/$n ]; then echo $n; fi; done"
        result = run(runner, make_job(tmp_path, command))

    assert result.success
    assert result.stdout == ""


# Pipes


def test_a_large_payload_that_is_never_read_is_no_error(runner: ProcessRunner, tmp_path: Path) -> None:
    result = run(runner, make_job(tmp_path, "exit 2", stdin=b"x" * MIB))

    assert result.exit_code == 2
    assert result.error is None


def test_a_hook_that_sits_on_its_unread_payload_times_out(runner: ProcessRunner, tmp_path: Path) -> None:
    result = run(runner, make_job(tmp_path, "sleep 60", stdin=b"x" * MIB, timeout=0.1))

    assert result.timed_out
    assert result.exit_code is None


def test_output_before_input_is_read_is_no_deadlock(runner: ProcessRunner, tmp_path: Path) -> None:
    command = f"head -c {MIB} /dev/zero | tr '\\0' x; wc -c >&2"

    result = run(runner, make_job(tmp_path, command, stdin=b"y" * MIB))

    assert result.exit_code == 0
    assert len(result.stdout) == MIB
    assert result.stderr.strip() == str(MIB)


def test_a_flood_is_capped_and_counted_and_its_exit_code_kept(runner: ProcessRunner, tmp_path: Path) -> None:
    command = "head -c 50000000 /dev/zero | tr '\\0' x; head -c 2000000 /dev/zero | tr '\\0' y >&2; exit 2"

    result = run(runner, make_job(tmp_path, command))

    assert result.exit_code == 2
    assert result.stdout == "x" * MIB
    assert result.stdout_dropped == 50_000_000 - MIB
    assert result.stderr == "y" * MIB
    assert result.stderr_dropped == 2_000_000 - MIB


def test_output_of_just_the_cap_is_not_truncated(tmp_path: Path) -> None:
    assert run(ProcessRunner(cap=5), make_job(tmp_path, "printf 12345")).stdout_dropped == 0
    result = run(ProcessRunner(cap=5), make_job(tmp_path, "printf 123456"))
    assert (result.stdout, result.stdout_dropped) == ("12345", 1)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_a_decision_in_another_encoding_is_read(runner: ProcessRunner, tmp_path: Path, encoding: str) -> None:
    (tmp_path / "out").write_bytes('{"decision": "block", "reason": "é"}'.encode(encoding))
    result = run(runner, make_job(tmp_path, "cat out"))
    assert result.stdout.removeprefix("\ufeff") == '{"decision": "block", "reason": "é"}'


def test_bytes_that_are_not_utf8_lose_no_exit_code(runner: ProcessRunner, tmp_path: Path) -> None:
    result = run(runner, make_job(tmp_path, r"printf '\377\376 no' | tee /dev/stderr; exit 2"))

    assert (result.exit_code, result.stdout, result.stderr) == (2, "\ufffd\ufffd no", "\ufffd\ufffd no")


def test_a_background_child_that_holds_the_pipes_is_not_waited_for_and_left_alone(
    runner: ProcessRunner, tmp_path: Path
) -> None:
    with nothing_left_behind():
        result = run(runner, make_job(tmp_path, "sleep 60 & echo $!; exit 2", stdin=b"x" * MIB))

    child = int(result.stdout)
    assert is_alive(child)
    os.kill(child, signal.SIGKILL)
    assert result.exit_code == 2
    assert not result.timed_out


def test_a_background_child_that_floods_does_not_hold_the_run(runner: ProcessRunner, tmp_path: Path) -> None:
    result = run(runner, make_job(tmp_path, "yes & echo $! >&2; exit 2"))

    assert result.exit_code == 2
    wait_until(lambda: not is_alive(int(result.stderr)))  # Of SIGPIPE, now that nobody reads.


# How it ends


def test_death_by_a_signal_is_no_exit(runner: ProcessRunner, tmp_path: Path) -> None:
    result = run(runner, make_job(tmp_path, "echo partial; kill -KILL $$"))

    assert (result.exit_code, result.signal, result.stdout) == (None, signal.SIGKILL, "partial")
    assert not result.success


def test_a_timeout_kills_the_grandchildren(runner: ProcessRunner, tmp_path: Path) -> None:
    command = "(sleep 60 & echo $! > b.pid; wait) & echo $! > a.pid; echo begun; wait"

    with nothing_left_behind():
        result = run(runner, make_job(tmp_path, command, timeout=0.7))

    assert result.timed_out
    assert result.exit_code is None
    assert result.signal == signal.SIGTERM
    assert result.stdout == "begun"
    assert result.error is None
    assert [is_alive(pid) for pid in pids_in(tmp_path)] == [False, False]


def test_a_hook_that_ignores_sigterm_is_killed(runner: ProcessRunner, tmp_path: Path) -> None:
    with nothing_left_behind():
        result = run(runner, make_job(tmp_path, "trap '' TERM; echo begun; sleep 60", timeout=0.7))

    assert result.timed_out
    assert result.signal == signal.SIGKILL
    assert result.stdout == "begun"


def test_a_grandchild_that_ignores_sigterm_is_killed_after_its_parent_is_gone(
    runner: ProcessRunner, tmp_path: Path
) -> None:
    command = "(trap '' TERM; exec sleep 60) > /dev/null 2>&1 & echo $! > a.pid; wait"

    result = run(runner, make_job(tmp_path, command, timeout=0.7))

    assert result.timed_out
    assert result.signal == signal.SIGTERM
    assert [is_alive(pid) for pid in pids_in(tmp_path)] == [False]


def test_a_hook_may_clean_up_after_sigterm(runner: ProcessRunner, tmp_path: Path) -> None:
    command = "trap 'touch cleaned; echo bye; exit 0' TERM; sleep 60 & wait"

    result = run(runner, make_job(tmp_path, command, timeout=0.7))

    assert (tmp_path / "cleaned").exists()
    assert result.stdout == "bye"
    assert result.timed_out
    assert result.exit_code is None
    assert result.signal is None
    assert not result.success


def test_a_hook_that_fills_its_pipe_after_sigterm_can_still_clean_up(runner: ProcessRunner, tmp_path: Path) -> None:
    command = "trap 'head -c 300000 /dev/zero; touch cleaned; exit 0' TERM; sleep 60 & wait"

    result = run(runner, make_job(tmp_path, command, timeout=0.7))

    assert (tmp_path / "cleaned").exists()
    assert len(result.stdout) == 300_000


def test_a_timeout_may_be_endless(runner: ProcessRunner, tmp_path: Path) -> None:
    assert run(runner, make_job(tmp_path, "exit 7", timeout=float("inf"))).exit_code == 7
    assert run(runner, make_job(tmp_path, "exit 7", timeout=1e12)).exit_code == 7


@needs_proc
@pytest.mark.parametrize("use_pidfd", PIDFD_OR_POLLING)
def test_an_exit_that_comes_together_with_the_deadline_counts(use_pidfd: bool, tmp_path: Path) -> None:
    # The runner sleeps through both, and must then find the exit first.
    code = PREAMBLE + "print(run('echo $$ > a.pid; until [ -e gate ]; do sleep 0.01; done; exit 2', 1).exit_code)"
    sleeper = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, tmp_path, str(use_pidfd)],
        env={**ENV, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: len(pids_in(tmp_path)) == 1)
    began = time.monotonic()
    sleeper.send_signal(signal.SIGSTOP)
    (tmp_path / "gate").touch()
    wait_until(lambda: not is_alive(pids_in(tmp_path)[0]))
    wait_until(lambda: time.monotonic() > began + 1.1)
    sleeper.send_signal(signal.SIGCONT)

    assert sleeper.communicate(timeout=50)[0].strip() == "2"


@pytest.mark.parametrize("use_pidfd", PIDFD_OR_POLLING)
def test_a_status_that_cannot_be_known_is_no_success(use_pidfd: bool, tmp_path: Path) -> None:
    code = PREAMBLE + (
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "for code in (0, 2):\n"
        "    result = run(f'exit {code}')\n"
        "    print(result.exit_code, result.signal, result.success, 'status is unknown' in result.error)\n"
        "print(run('sleep 60', 0.1).timed_out)\n"
    )

    assert in_another_python(code, tmp_path, use_pidfd).splitlines() == ["None None False True"] * 2 + ["True"]


def test_a_hook_does_not_outlive_a_failure_of_the_runner_itself(runner: ProcessRunner, tmp_path: Path) -> None:
    with nothing_left_behind():
        result = run(runner, make_job(tmp_path, "sleep 60", timeout=float("nan")))  # Nothing can count to that.

    assert result.error is not None
    assert not result.success


# Cancelling


LINGER = "trap '' TERM; sleep 60 & echo $! > b.pid; echo $$ > a.pid; wait"


async def started(runner: ProcessRunner, job: HookJob, processes: int) -> asyncio.Task[HookExecutionResult]:
    task = asyncio.create_task(runner.run(job))
    await until(lambda: len(pids_in(Path(job.cwd))) == processes)
    return task


async def test_cancelling_kills_the_group_and_waits_for_it(runner: ProcessRunner, tmp_path: Path) -> None:
    with nothing_left_behind():
        task = await started(runner, make_job(tmp_path, LINGER), 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert [is_alive(pid) for pid in pids_in(tmp_path)] == [False, False]


async def test_cancelling_again_does_not_cut_the_wait_short(runner: ProcessRunner, tmp_path: Path) -> None:
    with nothing_left_behind():
        task = await started(runner, make_job(tmp_path, LINGER), 2)
        for _ in range(5):
            task.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await task

    assert [is_alive(pid) for pid in pids_in(tmp_path)] == [False, False]


async def test_cancelling_while_the_payload_is_fed_works_too(runner: ProcessRunner, tmp_path: Path) -> None:
    with nothing_left_behind():
        task = await started(runner, make_job(tmp_path, "echo $$ > a.pid; sleep 60", stdin=b"x" * MIB), 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert [is_alive(pid) for pid in pids_in(tmp_path)] == [False]


async def test_cancelling_at_any_moment_of_the_start_leaves_nothing(runner: ProcessRunner, tmp_path: Path) -> None:
    with nothing_left_behind():
        for moment in range(60):
            task = asyncio.create_task(runner.run(make_job(tmp_path, "sleep 60")))
            for _ in range(moment % 4):
                await asyncio.sleep(0)
            await asyncio.sleep(moment / 20_000 if moment >= 4 else 0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


async def test_twenty_can_be_cancelled_at_once(runner: ProcessRunner, tmp_path: Path) -> None:
    with nothing_left_behind():
        command = "sleep 60 & echo $! > $$.pid; wait"
        tasks = [asyncio.create_task(runner.run(make_job(tmp_path, command))) for _ in range(20)]
        await until(lambda: len(pids_in(tmp_path)) == 20)
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)

    assert {type(end) for end in ends} == {asyncio.CancelledError}
    assert not any(is_alive(pid) for pid in pids_in(tmp_path))


async def test_a_task_may_go_on_after_a_cancelled_run(runner: ProcessRunner, tmp_path: Path) -> None:
    with nothing_left_behind():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(runner.run(make_job(tmp_path, "sleep 60")), 0.1)
        assert (await runner.run(make_job(tmp_path, "exit 5"))).exit_code == 5


def test_a_run_cancelled_before_its_start_starts_nothing(runner: ProcessRunner, tmp_path: Path) -> None:
    with nothing_left_behind():
        cancel = Cancellation()
        cancel.request()
        result = runner.execute(make_job("/no/such/directory", "true"), cancel)

    assert result.cancelled
    assert not result.success
    assert result.error is None  # It did not even try.


def test_a_cancelled_run_says_so_and_tells_the_signal(runner: ProcessRunner, tmp_path: Path) -> None:
    with nothing_left_behind():
        cancel = Cancellation()
        canceller = threading.Thread(target=lambda: (wait_until(lambda: bool(pids_in(tmp_path))), cancel.request()))
        canceller.start()
        result = runner.execute(make_job(tmp_path, "echo $$ > a.pid; exec sleep 60"), cancel)
        canceller.join()
        cancel.request()

    assert result.cancelled
    assert not result.timed_out
    assert result.exit_code is None
    assert result.signal == signal.SIGTERM


def test_a_closing_loop_ends_its_hooks(runner: ProcessRunner, tmp_path: Path) -> None:
    tasks: list[asyncio.Task[HookExecutionResult]] = []

    async def leave_in_the_middle() -> None:
        tasks.append(await started(runner, make_job(tmp_path, LINGER), 2))

    with nothing_left_behind():
        asyncio.run(leave_in_the_middle())

    assert tasks[0].cancelled()
    assert [is_alive(pid) for pid in pids_in(tmp_path)] == [False, False]


def test_a_loop_that_dies_takes_its_hooks_along(runner: ProcessRunner, tmp_path: Path) -> None:
    def say_nothing(_loop: asyncio.AbstractEventLoop, _context: dict[str, object]) -> None: ...

    descriptors = len(open_descriptors())
    with nothing_left_behind():
        loop = asyncio.new_event_loop()
        coroutine = runner.run(make_job(tmp_path, LINGER))
        task = loop.create_task(coroutine)
        loop.run_until_complete(until(lambda: len(pids_in(tmp_path)) == 2))
        loop.set_exception_handler(say_nothing)  # asyncio would remark that the task was pending.
        loop.close()
        coroutine.close()
        del task
        wait_until(lambda: len(open_descriptors()) == descriptors)  # It closes them last, in its thread.

    assert [is_alive(pid) for pid in pids_in(tmp_path)] == [False, False]


@pytest.mark.parametrize("use_pidfd", PIDFD_OR_POLLING)
def test_a_hanging_hook_does_not_hold_up_the_exit_of_the_program(use_pidfd: bool, tmp_path: Path) -> None:
    code = PREAMBLE + (
        "loop = asyncio.new_event_loop()\n"
        "task = loop.create_task(runner.run(job('echo $$ > a.pid; exec sleep 60 > /dev/null 2>&1')))\n"
        "async def until_started():\n"
        "    while not Path(directory, 'a.pid').exists(): await asyncio.sleep(0.002)\n"
        "loop.run_until_complete(until_started())\n"
        "print('leaving', flush=True)\n"
        "os.close(2)\n"  # asyncio's remark on the pending task goes there.
        "raise KeyboardInterrupt\n"
    )

    with pytest.raises(subprocess.CalledProcessError) as ended:
        in_another_python(code, tmp_path, use_pidfd)

    assert ended.value.output == "leaving\n"
    assert ended.value.returncode in (1, -signal.SIGINT)
    for pid in pids_in(tmp_path):
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


# What cannot be started


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"args": (), "command": "no-such-program"}, "Program 'no-such-program' cannot be started: it was not found"),
        ({"args": (), "command": "./nothing"}, "Program './nothing' cannot be started: it was not found"),
        ({"args": (), "command": "./plain"}, "Program './plain' cannot be started: it is not a file with permission"),
        ({"args": (), "command": "/tmp"}, "Program '/tmp' cannot be started: it is not a file with permission"),
        ({"args": (), "command": "./orphan"}, "Program './orphan' cannot be started: the interpreter named in its"),
        ({"args": (), "command": "./formless"}, "Program './formless' cannot be started: the system cannot execute"),
        ({"arguments": ("x" * 200_000,)}, "cannot be started: its arguments or its environment are too long"),
        ({"env": {"BIG": "x" * 200_000}}, "cannot be started: its arguments or its environment are too long"),
        ({"command": "echo \0"}, "cannot be started: its arguments, environment or directory are invalid"),
        ({"arguments": ("a\0b",)}, "are invalid (embedded null byte)"),
        ({"env": {"A": "\0"}}, "are invalid (embedded null byte)"),
        ({"env": {"A=B": "c"}}, "are invalid (illegal environment variable name)"),
        ({"cwd": "a\0b"}, "are invalid (embedded null byte)"),
        ({"args": ("\ud800",), "command": "echo"}, "surrogates not allowed"),
        ({"args": (), "command": "./\ud800"}, "Program './\\ud800' cannot be started"),
        ({"cwd": "/no/such/directory"}, "Working directory '/no/such/directory' does not exist"),
        ({"cwd": "/no/such/directory", "args": (), "command": "echo"}, "Working directory '/no/such/directory' does"),
        ({"cwd": "/dev/null"}, "Working directory '/dev/null' cannot be entered: Not a directory"),
    ],
)
def test_what_cannot_be_started_becomes_a_clear_error(
    runner: ProcessRunner, tmp_path: Path, fields: dict[str, object], message: str
) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    script(tmp_path / "orphan", "#!/no/such/interpreter\n")
    script(tmp_path / "formless", "echo hello\n")
    job = {"command": "true", "cwd": str(tmp_path), "env": ENV, "timeout": 30.0, **fields}

    with nothing_left_behind():
        result = run(runner, HookJob(**job))  # pyright: ignore[reportArgumentType]

    assert result.error is not None
    assert message in result.error
    assert result.exit_code is None
    assert not result.success
    assert not result.timed_out
    result.error.encode()


@needs_user
def test_a_directory_that_may_not_be_entered_is_named(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)

    error = run(ProcessRunner(), make_job(tmp_path / "closed", "true")).error

    assert error == f"Working directory '{tmp_path / 'closed'}' cannot be entered: Permission denied"


@needs_proc
@pytest.mark.parametrize("use_pidfd", PIDFD_OR_POLLING)
def test_too_few_descriptors_become_an_error_and_leak_none(use_pidfd: bool, tmp_path: Path) -> None:
    code = PREAMBLE + (
        "async def main():\n"
        "    await runner.run(job('exit 3'))\n"
        "    before = os.listdir('/proc/self/fd')\n"
        "    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "    for spare in range(14):\n"
        "        resource.setrlimit(resource.RLIMIT_NOFILE, (len(before) - 1 + spare, hard))\n"
        "        result = await runner.run(job('exit 3'))\n"
        "        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
        "        print(result.exit_code or 'open files' in result.error, os.listdir('/proc/self/fd') == before)\n"
        "asyncio.run(main())\n"
    )

    lines = in_another_python(code, tmp_path, use_pidfd).splitlines()

    assert set(lines) == {"True True", "3 True"}
    assert lines == sorted(lines, reverse=True)
    assert lines.count("True True") == 10


@needs_proc
def test_a_thread_that_cannot_be_started_becomes_an_error(tmp_path: Path) -> None:
    code = PREAMBLE + (
        "size = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()\n"
        "threading.stack_size(1 << 30)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size + (200 << 20), -1))\n"
        "before = os.listdir('/proc/self/fd')\n"
        "print(run('true').error)\n"
        "print(os.listdir('/proc/self/fd') == before)\n"
    )

    assert in_another_python(code, tmp_path, True).splitlines() == [
        "The hook cannot be started: can't start new thread",
        "True",
    ]


# Many, and beside others


async def test_five_hundred_runs_leave_nothing(runner: ProcessRunner, tmp_path: Path) -> None:
    with nothing_left_behind():
        results = await asyncio.gather(*(runner.run(make_job(tmp_path, f"exit {n % 200}")) for n in range(500)))

    assert [result.exit_code for result in results] == [n % 200 for n in range(500)]


async def test_no_more_run_at_once_than_allowed_and_each_gets_its_turn(tmp_path: Path) -> None:
    runner = ProcessRunner(at_once=2)
    command = "for n in 1 2; do if mkdir $n; then sleep 0.02; rmdir $n; exit 0; fi; done; exit 1"

    results = await asyncio.gather(*(runner.run(make_job(tmp_path, command)) for _ in range(10)))

    assert all(result.success for result in results)


async def test_a_run_that_waits_for_its_turn_can_be_cancelled(tmp_path: Path) -> None:
    runner = ProcessRunner(at_once=1)
    first = await started(runner, make_job(tmp_path, "echo $$ > a.pid; until [ -e gate ]; do sleep 0.01; done"), 1)
    second = asyncio.create_task(runner.run(make_job(tmp_path, "touch started")))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    (tmp_path / "gate").touch()

    assert (await first).success
    assert not (tmp_path / "started").exists()


def test_a_runner_serves_one_loop_after_another(tmp_path: Path) -> None:
    runner = ProcessRunner(at_once=1)

    async def two() -> list[HookExecutionResult]:
        return await asyncio.gather(*(runner.run(make_job(tmp_path, "true")) for _ in range(2)))

    assert all(result.success for _ in range(2) for result in asyncio.run(two()))


def test_waiting_takes_no_processor_time(tmp_path: Path) -> None:
    before = time.process_time()
    held = run(ProcessRunner(), make_job(tmp_path, "sleep 60 & echo $!"))
    os.kill(int(held.stdout), signal.SIGKILL)
    cancel = Cancellation()
    canceller = threading.Timer(0.2, cancel.request)
    canceller.start()
    killed = ProcessRunner().execute(make_job(tmp_path, "trap '' TERM; sleep 60"), cancel)
    canceller.join()

    assert killed.cancelled
    assert (time.process_time() - before) * 1000 < (held.duration + killed.duration) / 4


async def test_the_loop_goes_on_while_a_hook_runs(runner: ProcessRunner, tmp_path: Path) -> None:
    async def tick() -> None:
        for _ in range(1000):
            await asyncio.sleep(0)
        (tmp_path / "gate").touch()

    # The hook waits for the loop: if that stood still, neither would end.
    hook = runner.run(make_job(tmp_path, "until [ -e gate ]; do sleep 0.01; done; exit 6"))
    result, _ = await asyncio.gather(hook, tick())

    assert result.exit_code == 6
