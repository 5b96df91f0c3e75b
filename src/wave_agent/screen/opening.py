"""The first agent of a session, and the question that comes before it in a project that is not trusted."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from wave_agent.agent.agent import Agent
from wave_agent.errors import UntrustedHooksError
from wave_agent.screen.agents import Agents
from wave_agent.screen.dialogs import KEEP, TRUST, WITHOUT, Dialog, trust_dialog
from wave_agent.text import reveal

if TYPE_CHECKING:
    from wave_agent.mcp.servers import WaitingServer
    from wave_agent.settings.trust import Record


class FirstAgent:
    """`begin`, and if it `asks`: `dialog`, then `finish` with the answer."""

    def __init__(self, agents: Agents, open_first: Callable[[], Agent]) -> None:
        self._agents = agents
        self._open_first = open_first
        self._hooks: tuple[str, ...] = ()
        self._alarms: tuple[str, ...] = ()
        self._servers: tuple[WaitingServer, ...] = ()
        self._looked_at: Record | None = None
        self.asks = False
        """The user has to be asked first. An agent that is open already must be closed."""

    def begin(self) -> Agent | None:
        """Done before anything is shown, so that errors appear in the plain terminal."""
        extensions = self._agents.untrusted_extensions()
        self._servers = self._agents.waiting_servers()
        self.asks = bool(extensions or self._servers)
        try:
            return self._open_first()
        except UntrustedHooksError as error:
            self._hooks, self._alarms = error.hooks, error.alarms
            self.asks = True
            return None

    def dialog(self) -> Dialog:
        self._looked_at = self._agents.looked_at()  # before it is shown: the user approves exactly this state
        extensions = self._agents.untrusted_extensions()
        servers = [reveal(line) for line in _described(self._servers)]
        return trust_dialog(self._agents.project, self._hooks, extensions, self._alarms, servers)

    def finish(self, answer: str | None) -> Agent | None:
        """None: the user leaves. Raises `WaveError`."""
        if answer == KEEP:
            assert self._looked_at is not None, "nothing has been shown"
            self._agents.keep(self._looked_at, self._servers)
        elif answer == TRUST:
            self._agents.trust()
        elif answer == WITHOUT:
            self._agents.distrust()
        else:
            return None
        return self._open_first()


def _described(servers: "Sequence[WaitingServer]") -> Iterator[str]:
    if servers:
        from wave_agent.mcp.secrets import target_of  # lazy: most sessions have no servers

        for one in servers:
            yield f"{one.server.name}: {target_of(one.server)} ({'; '.join(filter(None, (one.why, one.files)))})"
