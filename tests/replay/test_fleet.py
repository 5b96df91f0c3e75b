"""`wave hooks backtest --scheduler`: the workers of a real Dask cluster, some of which are lost."""

import json
import os
import pickle
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.replay.recorded import GUARD, WAVE, compared, complaint, report, sessions, settings, wait_until, wave_hooks


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for temporary files, also for workers that are started here."""
    directory = tmp_path / "tmp"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", str(tmp_path / "dask"))
    return directory


@contextmanager
def cluster_of(workers: int, **options: Any) -> Iterator[Any]:
    from distributed import LocalCluster  # slow to import

    with LocalCluster(
        n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", **options
    ) as cluster:
        yield cluster


@pytest.fixture
def scheduler() -> Iterator[str]:
    """A cluster in the process of the tests."""
    with cluster_of(2, processes=False, protocol="tcp") as cluster:
        yield cluster.scheduler_address


def test_a_cluster_finds_what_one_process_finds(project: Path, tmp_path: Path, scheduler: str) -> None:
    (project / "allowed.txt").write_text("x")
    user = tmp_path / "user"
    user.mkdir()
    (user / "guard.sh").write_text(f"#!/bin/sh\ntest -e allowed.txt || exit 3\ntouch made\n{GUARD}\n")
    (user / "guard.sh").chmod(0o755)
    new = settings(tmp_path / "new.json", PreToolUse=[{"command": "~/guard.sh"}])
    asked = ("--from", str(sessions(tmp_path / "old", 6)), "--settings", str(new))
    alone = report(project, *asked, "--jobs", "1", HOME=str(user))
    assert alone["totals"]["newly blocked"] == 24
    assert alone["findings"][0]["reason"] == f"rm -rf in {project} is not allowed"
    assert compared(report(project, *asked, "--scheduler", scheduler, HOME=str(user))) == compared(alone)
    assert sorted(os.listdir(project)) == ["allowed.txt"]


class Sizes:
    """A plugin of the scheduler: how much each task was sent with, before it is forgotten."""

    def __init__(self) -> None:
        self.of: dict[str, int] = {}

    def transition(self, key: str, start: str, finish: str, *_: Any, **__: Any) -> None:
        if finish == "processing":
            self.of[key] = len(pickle.dumps(self.scheduler.tasks[key].run_spec))

    async def start(self, scheduler: Any) -> None:
        self.scheduler = scheduler


def test_a_session_that_is_replayed_in_parts_is_sent_once(project: Path, tmp_path: Path) -> None:
    from distributed import SchedulerPlugin  # slow to import

    old = sessions(tmp_path / "old", 1, calls=40, padding=20_000)
    asked = ("--from", str(old), "--settings", str(settings(tmp_path / "new.json", PreToolUse=[{"command": GUARD}])))
    with cluster_of(2, processes=False, protocol="tcp") as cluster:
        sizes: Any = type("Plugin", (Sizes, SchedulerPlugin), {})()
        sizes.scheduler = cluster.scheduler
        cluster.scheduler.add_plugin(sizes)
        found = report(project, *asked, "--scheduler", cluster.scheduler_address)
    assert compared(found) == compared(report(project, *asked, "--jobs", "1"))
    whole = sum(file.stat().st_size for file in old.glob("*.jsonl"))
    ours = {key: size for key, size in sizes.of.items() if key.startswith("wave-backtest-")}
    assert len(ours) > 8
    assert whole > 500_000
    assert whole < sum(ours.values()) < 1.2 * whole


def parents_of(process: int) -> set[int]:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in map(str.split, listed.splitlines())}
    found: set[int] = set()
    while (process := parents.get(process, 0)) > 1:
        found.add(process)
    return found


def test_no_scheduler_is_told_in_a_sentence(project: Path, tmp_path: Path) -> None:
    old = sessions(tmp_path / "old", 1)
    done = wave_hooks(project, "backtest", "--from", str(old), "--scheduler", "127.0.0.1:nonsense")
    status, said = complaint(done)
    assert status == 1
    assert said.startswith("wave: There is no Dask scheduler at 127.0.0.1:nonsense")


def test_without_the_extra_it_says_how_to_install_it(project: Path, tmp_path: Path) -> None:
    old = sessions(tmp_path / "old", 1)
    (tmp_path / "shadow" / "distributed").mkdir(parents=True)
    (tmp_path / "shadow" / "fsspec").mkdir(parents=True)
    for name in ("distributed", "fsspec"):
        (tmp_path / "shadow" / name / "__init__.py").write_text("raise ImportError('not installed')")
    given = {"PYTHONPATH": str(tmp_path / "shadow")}
    done = wave_hooks(project, "backtest", "--from", str(old), "--scheduler", "local", **given)
    wanted = "pip install 'wave-agent[fleet]'"
    assert complaint(done) == (1, f"wave: A Dask cluster needs the extra: {wanted}")
    done = wave_hooks(project, "backtest", "--from", "s3://bucket/x", **given)
    assert complaint(done) == (1, f"wave: Transcripts at a URL need the extra: {wanted}")


def test_a_killed_worker_changes_nothing_in_the_result(project: Path, tmp_path: Path, temporary: Path) -> None:
    gate = tmp_path / "gate"
    # The hook reports which process it is, and so which worker is busy: it is one of its parents.
    reports = f"echo $$ > {tmp_path}/$$; mv {tmp_path}/$$ {tmp_path}/busy"
    waits = f"{reports}; while test ! -e {gate}; do sleep 0.05; done; {GUARD}"
    new = settings(tmp_path / "new.json", PreToolUse=[{"name": "guard", "command": waits}])
    asked = ("--from", str(sessions(tmp_path / "old", 12, calls=5)), "--settings", str(new))
    with cluster_of(2) as cluster:
        command = [WAVE, "hooks", "backtest", "--json", *asked, "--scheduler", cluster.scheduler_address]
        running = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until((tmp_path / "busy").exists)
        workers = {worker.pid for worker in cluster.workers.values()}
        [busy] = parents_of(int((tmp_path / "busy").read_text())) & workers
        os.kill(busy, signal.SIGKILL)
        gate.touch()
        said, complaints = running.communicate(timeout=100)
        assert running.returncode == 1, complaints
    alone = report(project, *asked, "--jobs", "1")
    assert compared(json.loads(said)) == compared(alone)
    assert alone["totals"]["newly blocked"] == 12
    assert list(temporary.glob("wave-backtest-*")) == []  # what the killed one left was removed by the run after it


def test_an_interrupt_ends_what_workers_do_and_leaves_nothing_there(
    project: Path, tmp_path: Path, temporary: Path, scheduler: str
) -> None:
    proof = tmp_path / "proof"
    hang = f"trap 'echo ended > {proof}; exit' TERM; touch {tmp_path}/started; while :; do sleep 0.05; done"
    new = settings(tmp_path / "new.json", PreToolUse=[{"name": "hang", "command": hang}])
    old = sessions(tmp_path / "old", 1, calls=2)
    command = [WAVE, "hooks", "backtest", "--json", "--from", str(old), "--settings", str(new)]
    running = subprocess.Popen([*command, "--scheduler", scheduler], cwd=project, stdout=subprocess.PIPE)
    wait_until((tmp_path / "started").exists)
    running.send_signal(signal.SIGINT)
    said, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert (json.loads(said)["interrupted"], json.loads(said)["pending"]) == (True, 1)
    assert proof.read_text() == "ended\n"
    wait_until(lambda: not list(temporary.glob("wave-backtest-*")))


def test_what_a_killed_run_left_on_a_cluster_is_removed_by_the_next(project: Path, tmp_path: Path) -> None:
    waits = f"touch {tmp_path}/started; while test ! -e {tmp_path}/gate; do sleep 0.05; done"
    new = settings(tmp_path / "new.json", PreToolUse=[{"name": "waits", "command": waits}])
    asked = ["--from", str(sessions(tmp_path / "old", 1, calls=1)), "--settings", str(new)]
    with cluster_of(1, processes=False, protocol="tcp") as cluster:

        def left() -> list[str]:
            return [name for name in cluster.scheduler.worker_plugins if name.startswith("wave-")]

        command = [WAVE, "hooks", "backtest", *asked, "--scheduler", cluster.scheduler_address]
        running = subprocess.Popen(command, cwd=project, stderr=subprocess.DEVNULL)
        wait_until((tmp_path / "started").exists)
        running.kill()
        running.wait()
        assert len(left()) == 1
        wait_until(lambda: not any(name.startswith("Client") for name in cluster.scheduler.clients))
        (tmp_path / "gate").touch()
        report(project, *asked, "--scheduler", cluster.scheduler_address, status=0)
        assert left() == []
