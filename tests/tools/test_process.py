"""How commands end: by themselves, by a timeout, by a cancellation."""

import asyncio
from pathlib import Path

import pytest

from tests.descriptors import open_descriptors
from tests.tools.processes import PROC, children_of_ours, is_alive
from tests.tools.session import Session
from tests.waiting import number_in, until
from wave_agent.tools.base import ToolInterrupted
from wave_agent.tools.process import Launch, Process


async def test_a_timeout_kills_everything_and_says_so(session: Session, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    result = await session.bash(f"sleep 1000 & echo $! > {pid}; echo started; wait", timeout=2000)
    assert (result.success, result.ran, result.response["interrupted"]) == (False, True, True)
    assert result.content.startswith("started\n[Timed out after 2 s")
    assert not is_alive(await number_in(pid))


async def test_what_ignores_sigterm_is_killed(session: Session, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    call = asyncio.create_task(session.bash(f"trap '' TERM; echo $$ > {pid}; while :; do sleep 1; done"))
    leader = await number_in(pid)
    call.cancel()
    await asyncio.wait([call])
    assert not is_alive(leader)


async def test_what_cleans_up_on_sigterm_has_time_for_it(session: Session, tmp_path: Path) -> None:
    pid, cleaned = tmp_path / "pid", tmp_path / "cleaned"
    call = asyncio.create_task(
        session.bash(f"trap 'touch {cleaned}; exit' TERM; echo $$ > {pid}; while :; do sleep 0.01; done")
    )
    await number_in(pid)
    call.cancel()
    await asyncio.wait([call])
    assert cleaned.exists()


async def test_a_timeout_beyond_the_cap_is_the_cap(session: Session) -> None:
    assert (await session.bash("true", timeout=10**12)).success


async def test_a_cancelled_command_keeps_what_it_printed_and_says_who_ended_it(
    session: Session, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    call = asyncio.create_task(
        session.bash(
            f"printf '10%%\\r50%%'; trap 'echo; echo cleaned up; exit' TERM; echo $$ > {pid}; sleep 1000 & wait"
        )
    )
    await number_in(pid)
    call.cancel()
    with pytest.raises(ToolInterrupted) as interrupted:
        await call
    result = interrupted.value.result
    assert result.content.startswith("50%\ncleaned up\n[Interrupted by the user after ")
    assert (result.success, result.ran, result.response["interrupted"]) == (False, True, True)


@pytest.mark.parametrize("times", [1, 3])
async def test_cancelling_kills_the_group_and_waits_for_it(session: Session, tmp_path: Path, times: int) -> None:
    pid = tmp_path / "pid"
    call = asyncio.create_task(session.bash(f"trap '' TERM; sleep 1000 & echo $! > {pid}; wait"))
    child = await number_in(pid)
    for _ in range(times):
        call.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not is_alive(child)


async def test_a_background_child_that_holds_the_pipes_does_not_hold_us(session: Session, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    result = await session.bash(f"sleep 1000 & echo $! > {pid}; echo done")
    child = await number_in(pid)
    assert result.content.startswith("done\n[Left running")
    assert is_alive(child)


@pytest.mark.skipif(not PROC, reason="looks at processes through /proc")
async def test_neither_zombies_nor_descriptors_are_left(session: Session) -> None:
    await session.bash("true")  # whatever the first call sets up for good
    before, others = open_descriptors(), set(children_of_ours())
    for _ in range(5):
        await session.bash("echo hi; seq 1 10000")
        await session.bash("sleep 1000", timeout=1)
        call = asyncio.create_task(session.bash("sleep 1000"))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
    await session.bash("echo hi", run_in_background=True)
    await session.close()
    assert open_descriptors() == before
    assert set(children_of_ours()) <= others


async def test_a_loop_that_dies_takes_the_command_with_it(session: Session, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    child: list[int] = []

    async def leave() -> None:
        asyncio.create_task(session.bash(f"echo $$ > {pid}; sleep 1000")).add_done_callback(lambda _: None)
        child.append(await number_in(pid))

    await asyncio.to_thread(asyncio.run, leave())
    await until(lambda: not is_alive(child[0]))


@pytest.mark.parametrize("whole_group", [True, False])
async def test_where_a_process_cannot_be_polled_it_is_asked_again_and_again(
    session: Session, whole_group: bool
) -> None:
    received = bytearray()
    launch = Launch(
        argv=["/bin/sh", "-c", "echo hi; exit 5"],
        cwd="/",
        environment=session.environment,
        whole_group=whole_group,
        use_pidfd=False,
    )
    ending = await Process(launch, lambda _, data: received.extend(data)).run()
    assert (ending.exit_code, bytes(received)) == (5, b"hi\n")
