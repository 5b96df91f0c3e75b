"""Sandboxes for tests, on machines that can have them."""

import fcntl
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from wave_agent.errors import SandboxError
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.permissions.protected_paths import protected_paths
from wave_agent.permissions.sandbox import Sandbox

ESCAPEE = """setsid sh -c 'trap "" TERM HUP; exec 9>>held; flock 9; while :; do sleep 1; done'"""
"""A command that leaves its session and hears no signal but the last. As long as it lives, it holds a lock."""


def is_held(project: Path) -> bool:
    """Whether an `ESCAPEE` lives."""
    with (project / "held").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def open_sandbox(
    project: Path,
    state: Path,
    *,
    directories: Sequence[Path] = (),
    hooks: Sequence[HookDefinition] = (),
    network: bool = False,
    home: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Sandbox:
    """A real one; the test is skipped where there is none to be had."""
    try:
        return Sandbox.open(
            project=str(project),
            directories=[str(directory) for directory in directories],
            protected=protected_paths(str(project), state, hooks, home),
            state=state,
            outputs=state / "projects" / "this" / "session",
            network=network,
            environment=environment or os.environ,
        )
    except SandboxError as error:
        pytest.skip(f"no sandbox on this machine: {error}")
