"""The process that speaks the protocol: started beside, restarted once, and never outlived by what it started."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.mcp.conftest import new_host, stdio, text_of
from tests.sandboxes import open_sandbox
from tests.waiting import until
from wave_agent.mcp.values import McpError
from wave_agent.system.orphans import Leftovers, live_processes


def lives(pid: int) -> bool:
    return any(process.pid == pid for process in live_processes())


def children_of(pid: int) -> list[int]:
    return [process.pid for process in live_processes() if process.parent == pid]


def process_of() -> int:
    """The pid of the only such process of ours."""
    [found] = [pid for pid in children_of(os.getpid()) if b"host_program" in command_of(pid)]
    return found


def command_of(pid: int) -> bytes:
    """Its command line. For a moment after the start, a process has none yet."""
    patience = time.monotonic() + 1
    while not (found := Path(f"/proc/{pid}/cmdline").read_bytes()) and time.monotonic() < patience:
        pass
    return found


async def test_closing_ends_servers_that_ignore_it_and_daemons_that_hide(tmp_path: Path) -> None:
    host = new_host(tmp_path)
    stubborn = stdio("legacy", "ignore_end")
    await host.connect(stubborn, deadline=20)
    for name, hides in (("daemon", False), ("hidden", True)):
        await host.call(stdio("modern"), "daemon", {"file": str(tmp_path / name), "hides": hides})
    pids = [int((tmp_path / name).read_text()) for name in ("daemon", "hidden")]
    program = process_of()
    pids += [program, *children_of(program)]
    assert [lives(pid) for pid in pids] == [True] * 7  # two daemons, twice, as children and by their number
    begun = time.monotonic()
    await host.close()
    assert time.monotonic() - begun < 4
    assert not any(map(lives, pids))
    with pytest.raises(McpError, match="The session has ended"):
        await host.call(stubborn, "echo", {})
    await host.close()  # once more does no harm


async def test_closing_a_process_that_is_still_loading_takes_no_time(tmp_path: Path) -> None:
    host = new_host(tmp_path)
    begun = time.monotonic()
    host.begin()
    host.begin()
    assert time.monotonic() - begun < 0.2
    program = process_of()
    await host.close()
    assert time.monotonic() - begun < 0.5
    assert not lives(program)


@pytest.mark.thorough
async def test_a_lost_process_fails_its_calls_and_is_started_again_once(tmp_path: Path) -> None:
    host = new_host(tmp_path)
    try:
        one = stdio("modern")
        for _ in range(2):
            await host.connect(one, deadline=20)
            await host.call(one, "daemon", {"file": str(tmp_path / "daemon")})
            daemon = int((tmp_path / "daemon").read_text())
            call = asyncio.create_task(host.call(one, "hang", {}))
            await asyncio.sleep(0)
            os.kill(process_of(), signal.SIGKILL)
            with pytest.raises(McpError, match="may have run"):
                await call
            await until(lambda pid=daemon: not lives(pid))
            (tmp_path / "daemon").unlink()
        with pytest.raises(McpError, match="It is not started again in this session"):
            await host.connect(one, deadline=20)
    finally:
        await host.close()


@pytest.mark.thorough
def test_everything_ends_with_an_agent_that_is_killed(tmp_path: Path) -> None:
    script = f"""
    import asyncio, os, signal
    from pathlib import Path
    from tests.mcp.conftest import new_host, stdio
    async def main():
        host = new_host(Path({str(tmp_path)!r}))
        await host.connect(stdio("legacy", "ignore_end"), deadline=20)
        for name, hides in (("daemon", False), ("hidden", True)):
            await host.call(stdio("modern"), "daemon", {{"file": {str(tmp_path)!r} + "/" + name, "hides": hides}})
        os.kill(os.getpid(), signal.SIGKILL)
    asyncio.run(main())
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False, timeout=60)
    assert ran.returncode == -signal.SIGKILL
    pids = [int((tmp_path / name).read_text()) for name in ("daemon", "hidden")]
    limit = time.monotonic() + 10
    while any(map(lives, pids)):
        assert time.monotonic() < limit
        time.sleep(0.02)


async def test_the_ledger_knows_every_process_and_none_shows_a_secret(tmp_path: Path) -> None:
    ledger = Leftovers(tmp_path, tmp_path / "s-1.jsonl")
    ledger.open()
    host = new_host(tmp_path, ledger=ledger.entry)
    try:
        await host.connect(stdio("modern"), deadline=20)
        [file] = (tmp_path / "running").iterdir()
        noted = [int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith("+")]
        program = process_of()
        assert noted == [program, *children_of(program)]
        assert b"sk-secret" not in Path(f"/proc/{program}/environ").read_bytes()
        assert all(b"OF_ITS_OWN" not in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in noted)
    finally:
        await host.close()
    assert file.read_text().splitlines()[-1].startswith("-")
    ledger.close()


def test_without_the_extra_a_sentence_says_what_to_install(tmp_path: Path) -> None:
    script = f"""
    import asyncio, sys
    sys.modules["mcp"] = None
    from pathlib import Path
    from tests.mcp.conftest import new_host, stdio
    async def main():
        host = new_host(Path({str(tmp_path)!r}))
        host.begin()
        try:
            await host.connect(stdio("modern"), deadline=20)
        except Exception as error:
            print(error)
    asyncio.run(main())
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert ran.stdout == "MCP servers need the extra: pip install 'wave-agent[mcp]'\n"


@pytest.mark.parametrize("network", [False, ("example.org",)], ids=["no network", "some hosts"])
async def test_in_a_sandbox_servers_run_inside(tmp_path: Path, network: bool | tuple[str, ...]) -> None:
    project, state = tmp_path / "project", tmp_path / "state"
    project.mkdir()
    sandbox = open_sandbox(project, state, network=network)
    host = new_host(state, sandbox=sandbox)
    try:
        one = stdio("modern", directory=str(project))
        inside, outside = project / "inside", tmp_path / "outside"  # the latter only in a /tmp of its own
        for file in (inside, outside):
            await host.call(one, "daemon", {"file": str(file)})
        assert (inside.exists(), outside.exists()) == (True, False)
        env = text_of(await host.call(one, "env", {}))
        assert ("HTTP_PROXY" in env) == bool(network)
    finally:
        await host.close()
        sandbox.close()


async def test_every_start_of_a_program_is_asked_for(tmp_path: Path) -> None:
    reasons = {"legacy": "It has changed."}
    asked: list[str] = []

    def why_not(name: str) -> str | None:
        asked.append(name)
        return reasons.get(name)

    host = new_host(tmp_path, why_not=why_not)
    server = stdio("legacy")
    try:
        with pytest.raises(McpError, match=r"It has changed\."):
            await host.connect(server, deadline=20)
        reasons.clear()
        await host.connect(server, deadline=20)
        assert not (await host.call(server, "echo", {})).is_error
        assert asked == ["legacy", "legacy"]  # it runs: nobody is asked for a call
        with pytest.raises(McpError):
            await host.call(server, "crash", {})
        reasons["legacy"] = "It has changed again."
        with pytest.raises(McpError, match=r"It has changed again\."):
            await host.call(server, "echo", {})
    finally:
        await host.close()
