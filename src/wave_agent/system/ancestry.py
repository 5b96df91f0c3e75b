"""Whether an agent's tool has started this process.

An agent marks everything its tools start with an environment variable. A command can remove or replace that variable
for its children, so on Linux the environments of all parent processes are checked too. A process that has detached
itself from all of them is not detected here: see `presence`.
"""

import os
from collections.abc import Iterator, Mapping

from wave_agent.errors import SettingsError

VARIABLE = "WAVE_PARENT"
OTHER_AGENTS: Mapping[str, str] = {"CLAUDECODE": "Claude Code", "GEMINI_CLI": "Gemini CLI"}
"""Variables that agents set for the commands they run."""
CLIENT_VARIABLE = "WAVE_GUARD_CLIENT"
"""The process on whose behalf this one works: its parents are checked as well as our own."""
_ENTRY = f"{VARIABLE}=".encode()
_ANCESTORS = 64


def handed_down(environment: Mapping[str, str]) -> list[str]:
    """The variable's values from parent agents, the nearest first, each once."""
    own = environment.get(VARIABLE)
    found = [*([own] if own else []), *_of_ancestors(os.getppid())]
    client = environment.get(CLIENT_VARIABLE, "")
    if client.isascii() and client.isdecimal():
        found += _of_ancestors(int(client))
    return [text for text in dict.fromkeys(found) if text]


def agent_above(environment: Mapping[str, str]) -> str | None:
    """The name of the agent whose tool started this process; None if there is none."""
    if handed_down(environment):
        return "another agent"
    return next((name for variable, name in OTHER_AGENTS.items() if environment.get(variable)), None)


def require_no_agent(environment: Mapping[str, str], what: str) -> None:
    """Raises `SettingsError` below an agent: only a person may do this."""
    if name := agent_above(environment):
        raise SettingsError(f"{what} is for a person, but {name} started this program: nothing was changed.")


def _of_ancestors(pid: int) -> Iterator[str]:
    """The variable in the environments of a process and its parents, the nearest first. Nothing without /proc."""
    for _ in range(_ANCESTORS):
        if pid <= 1:
            return
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment, open(f"/proc/{pid}/stat", "rb") as facts:
                found = [entry for entry in environment.read().split(b"\0") if entry.startswith(_ENTRY)]
                pid = int(facts.read().rpartition(b")")[2].split()[1])
        except OSError:  # exited, or another user's
            return
        yield from (entry.removeprefix(_ENTRY).decode(errors="replace") for entry in found)
