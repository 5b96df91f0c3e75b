"""Whether an agent's tool has started this process.

An agent marks what its tools start with an environment variable. A command can take that away from its children, or set
another one, so on Linux the environments of all processes above are looked at as well. A process that has cut itself
loose from all of them is out of sight here: see `presence`.
"""

import os
from collections.abc import Iterator, Mapping

from wave_agent.errors import SettingsError

VARIABLE = "WAVE_PARENT"
OTHER_AGENTS: Mapping[str, str] = {"CLAUDECODE": "Claude Code", "GEMINI_CLI": "Gemini CLI"}
"""Variables by which agents mark the commands that they run."""
_ENTRY = f"{VARIABLE}=".encode()
_ANCESTORS = 64


def handed_down(environment: Mapping[str, str]) -> list[str]:
    """What the agents above have written into the variable, the nearest first, each once."""
    own = environment.get(VARIABLE)
    found = ([own] if own else []) + list(_of_ancestors())
    return [text for text in dict.fromkeys(found) if text]


def agent_above(environment: Mapping[str, str]) -> str | None:
    """The name of the agent whose tool has started this process; None if there is none."""
    if handed_down(environment):
        return "another agent"
    return next((name for variable, name in OTHER_AGENTS.items() if environment.get(variable)), None)


def require_no_agent(environment: Mapping[str, str], what: str) -> None:
    """Raises `SettingsError` below an agent: this is a person's to do."""
    if name := agent_above(environment):
        raise SettingsError(f"{what} is for a person, and {name} has started this program: nothing was changed.")


def _of_ancestors() -> Iterator[str]:
    """The variable in the environments of the processes above, the nearest first. Nothing where there is no /proc."""
    pid = os.getppid()
    for _ in range(_ANCESTORS):
        if pid <= 1:
            return
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment, open(f"/proc/{pid}/stat", "rb") as facts:
                found = [entry for entry in environment.read().split(b"\0") if entry.startswith(_ENTRY)]
                pid = int(facts.read().rpartition(b")")[2].split()[1])
        except OSError:  # gone, or another user's
            return
        yield from (entry.removeprefix(_ENTRY).decode(errors="replace") for entry in found)
