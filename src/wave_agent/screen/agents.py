"""Creates the screen's agents, one at a time, all with the same flags and trust."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from wave_agent.agent.agent import Agent
from wave_agent.agent.options import Options
from wave_agent.agent.result import Callbacks
from wave_agent.errors import SettingsError
from wave_agent.events import Event
from wave_agent.permissions.decision import Approver, RestoreApprover
from wave_agent.settings.definition_hooks import definition_candidates
from wave_agent.settings.extensions import trusted_record, why_untrusted
from wave_agent.settings.mcp_sources import has_servers
from wave_agent.settings.sources import gather_settings, project_extensions, project_settings
from wave_agent.settings.trust import Record, TrustStore, candidates, file_digest, record_of
from wave_agent.settings.user_guards import confirm_user
from wave_agent.system.presence import doubt
from wave_agent.system.project import Project
from wave_agent.text import reveal

if TYPE_CHECKING:
    from wave_agent.agent.extension_review import ExtensionReview
    from wave_agent.mcp.servers import WaitingServer
    from wave_agent.mcp.values import Elicit


class Agents:
    def __init__(self, options: Options, place: Project, home: Path) -> None:
        self._options = options
        self.place = place
        self.project = place.directory
        self.home = home

    @property
    def first(self) -> str | None:
        """The session to start with; None for a new one."""
        return self._options.resume

    @property
    def options(self) -> Options:
        """Those that every agent of this screen is created with."""
        return self._options

    def trust(self) -> None:
        """Trust the project for this run."""
        self._options = replace(self._options, trust=True)

    def looked_at(self) -> Record:
        """What there is to trust, in its current state."""
        sources = project_settings(self.home, self.place)
        before, texts = TrustStore(self.home).read(self.project), project_extensions(self.home, self.place)
        found = candidates(sources, self.project, file_digest)
        found += definition_candidates(texts, self.project, file_digest)
        return record_of(sources, self.project, found, before, extensions=trusted_record(texts, self.project))

    def waiting_servers(self) -> "tuple[WaitingServer, ...]":
        """The project's MCP servers that must not start without the user's consent, in their current state."""
        if self._options.trust is True:
            return ()
        choice = replace(self._options.in_environment(os.environ), project_hooks=False)
        try:
            gathered = gather_settings(self.home, self.place, choice)
            if not has_servers(gathered, self.place, self.home, choice):
                return ()
            from wave_agent.mcp.servers import configured_servers  # lazy: most projects have none

            return configured_servers(
                gathered, project=self.place, home=self.home, choice=choice, environment=os.environ
            ).waiting
        except SettingsError:  # reported when the agent is created
            return ()

    def keep(self, record: Record, servers: "Sequence[WaitingServer]" = ()) -> None:
        """Store trust in this record and consent to these servers, until something changes. Raises `SettingsError`."""
        why = doubt(self.home, self.project, terminal=True)
        marked = why and f"trust was given while {why}"
        TrustStore(self.home).trust(self.project, record, self.place.inner, doubt=marked)
        if not marked:
            confirm_user(self.home, self.project)
        if servers and marked:  # what is stored about a server cannot be marked, so it holds for this run only
            self.trust()
        elif servers:
            from wave_agent.mcp.consent import ConsentStore  # lazy: see above

            for one in servers:
                ConsentStore(self.home).grant(one.server, one.binding)

    def distrust(self) -> None:
        """Skip the project's own hooks."""
        self._options = replace(self._options, trust=False, project_hooks=False)

    def open(
        self,
        *,
        on_event: Callable[[Event], None],
        can_use_tool: Approver,
        may_restore: RestoreApprover,
        elicit: "Elicit",
        resume: str | None = None,
        source: str = "startup",
        before: Agent | None = None,
    ) -> Agent:
        """Raises `UntrustedHooksError`, among others. The new agent takes over the model and mode of `before`."""
        options = replace(
            self._options,
            callbacks=Callbacks(on_event=on_event),
            can_use_tool=can_use_tool,
            may_restore=may_restore,
            elicit=elicit,
            interactive=True,
            resume=resume,
            source=source,
        )
        if before is not None:
            options = replace(options, model=before.model_name or None, permission_mode=before.permission_mode)
        return Agent.from_options(options)

    def untrusted_extensions(self) -> list[str]:
        """Descriptions of the project's agents, skills and commands that must not be used without the user's
        consent."""
        if self._options.trust is not False or self._options.trust_ref or not self._options.project_hooks:
            return []
        try:
            record = TrustStore(self.home).read(self.project)
            texts = project_extensions(self.home, self.place)
        except SettingsError:  # reported when the agent is created
            return []
        from wave_agent.agent.extension_review import review  # lazy: only for what is not trusted

        why_not, found = why_untrusted(record, self.project), review(texts, self.project)
        waiting = [(one, why) for one in texts if (why := why_not(one)) is not None]
        if all(found[one.path].left_out for one, _ in waiting):
            return []
        return [
            reveal(line) for one, why in waiting for line in _described(one.shown(self.project), why, found[one.path])
        ]


def _described(path: str, why: str, found: "ExtensionReview") -> Iterator[str]:
    if found.left_out:
        yield f"{path}: left out, {found.left_out}"
        return
    yield f"{path} ({why}): {found.description}".rstrip(": ")
    yield from (f"  {line}" for line in found.may)
