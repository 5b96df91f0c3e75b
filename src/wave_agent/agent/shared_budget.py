"""One budget for an agent and all agents that its commands start.

Each agent has a file in which it and the agents below it write down what they use. So what is left when an agent starts
is its limit, agents side by side share it, and what they used counts for the agent above them.
"""

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from wave_agent.errors import SettingsError
from wave_agent.settings.inheritance import Budget
from wave_agent.system.private_files import keep_private, open_private


class _Entry(Struct, frozen=True, omit_defaults=True):
    by: str
    """The session that used it."""
    requests: int = 0
    dollars: float | None = 0.0
    """None: it was used by a model whose prices are unknown."""
    begins: bool = False
    """The owner of the file begins a prompt: requests are counted anew."""


class BudgetFile:
    """A file of entries, read as far as it goes."""

    def __init__(self, path: str, session: str, *, is_own: bool) -> None:
        self._path = Path(path)
        self._session = session
        self._is_own = is_own
        self._descriptor: int | None = None
        self._at = 0
        self._rest = b""
        self.requests: dict[str, int] = {}
        """The requests of each session, since the owner's prompt began."""
        self.dollars: dict[str, float | None] = {}

    def open(self) -> None:
        """Raises `OSError`."""
        if self._descriptor is None:
            if self._is_own:
                keep_private(self._path.parent)
            flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | (os.O_CREAT | os.O_EXCL if self._is_own else 0)
            self._descriptor = open_private(self._path, flags)

    def add(self, *, requests: int = 0, dollars: float | None = 0.0, begins: bool = False) -> None:
        """Raises `OSError`."""
        self.open()
        assert self._descriptor is not None
        entry = _Entry(self._session, requests, dollars, begins)
        os.write(self._descriptor, msgspec.json.encode(entry) + b"\n")

    def look(self) -> None:
        """Read what has been added. Raises `OSError`."""
        if self._descriptor is None:
            return
        if os.fstat(self._descriptor).st_size < self._at:  # somebody has cut it: what was counted stays so
            self._at, self._rest = 0, b""
        while data := os.pread(self._descriptor, 1 << 16, self._at):
            self._at += len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                with suppress(msgspec.DecodeError):
                    self._count(msgspec.json.decode(line, type=_Entry))

    def _count(self, entry: _Entry) -> None:
        if entry.begins and not self._is_own:  # the owner knows when it begins
            self.requests.clear()
        self.requests[entry.by] = max(0, self.requests.get(entry.by, 0) + entry.requests)
        before, added = self.dollars.get(entry.by, 0.0), entry.dollars
        is_known = before is not None and added is not None and math.isfinite(added)
        self.dollars[entry.by] = (before or 0.0) + max(0.0, added or 0.0) if is_known else None

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            if self._is_own:
                self._path.unlink(missing_ok=True)


class SharedBudget:
    """The files of this agent and of the agents above it."""

    def __init__(self, session: str, own: str | None = None, above: Sequence[Budget] = ()) -> None:
        """`own` is the path of this agent's file, which is created with the first entry."""
        self._session = session
        self._own = None if own is None else BudgetFile(own, session, is_own=True)
        self._above = [(budget, BudgetFile(budget.file, session, is_own=False)) for budget in above]
        self._is_uncounted = False
        """An agent above does not know all that this one has used."""
        self._taken_requests = 0
        self._taken_dollars: float | None = 0.0

    def open(self) -> None:
        """Raises `SettingsError` if a limit of an agent above could not be kept."""
        for budget, file in [*self._above]:
            try:
                file.open()
                file.look()
            except OSError as error:
                if budget.max_turns is not None or budget.max_cost is not None:
                    raise SettingsError(
                        f"Not started: the parent agent has a limit, and what this one uses cannot be counted: {error}."
                    ) from None
                self._above.remove((budget, file))

    def begin_prompt(self) -> None:
        """Requests of agents below are counted from here on."""
        self._taken_requests = 0
        if self._own is not None:
            with suppress(OSError):  # a full disk: agents below that have a limit then do not start
                self._own.look()
                self._own.requests.clear()
                self._own.add(begins=True)

    def add(self, *, requests: int = 0, dollars: float | None = 0.0) -> None:
        """This agent has used something."""
        for file in self._files():
            try:
                file.add(requests=requests, dollars=dollars)
            except OSError:  # what cannot be counted above is not used again
                self._is_uncounted = self._is_uncounted or file is not self._own

    def take_requests(self) -> int:
        """Requests that agents below have made since the last call."""
        if self._own is None:
            return 0
        self._own.look()
        made = sum(requests for by, requests in self._own.requests.items() if by != self._session)
        taken, self._taken_requests = self._taken_requests, max(made, self._taken_requests)
        return self._taken_requests - taken

    def take_dollars(self) -> float | None:
        """What agents below have spent since the last call; None: not known."""
        if self._own is None or self._taken_dollars is None:
            return 0.0
        self._own.look()
        spent = [dollars for by, dollars in self._own.dollars.items() if by != self._session]
        if None in spent:
            self._taken_dollars = None
            return None
        taken, total = self._taken_dollars, sum(one or 0.0 for one in spent)
        self._taken_dollars = max(total, taken)
        return self._taken_dollars - taken

    @property
    def turns_used_up(self) -> int | None:
        """The limit of an agent above that no further request fits into."""
        for budget, file in self._above:
            file.look()
            used = sum(file.requests.values())
            if budget.max_turns is not None and (self._is_uncounted or used >= budget.max_turns):
                return budget.max_turns
        return None

    @property
    def cost_used_up(self) -> float | None:
        """The limit of an agent above, in US dollars, that is reached."""
        for budget, file in self._above:
            file.look()
            spent = file.dollars.values()
            if budget.max_cost is None:
                continue
            if self._is_uncounted or None in spent or sum(one or 0.0 for one in spent) >= budget.max_cost:
                return budget.max_cost
        return None

    def close(self) -> None:
        for file in self._files():
            file.close()

    def _files(self) -> list[BudgetFile]:
        return [*([] if self._own is None else [self._own]), *(file for _, file in self._above)]


NOT_SHARED = SharedBudget("")
"""For an agent that starts no others."""
