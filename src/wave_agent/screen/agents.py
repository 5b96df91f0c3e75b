"""Creates the screen's agents, one at a time, all with the same flags and trust."""

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from wave_agent.agent.agent import Agent
from wave_agent.agent.options import Options
from wave_agent.agent.result import Callbacks
from wave_agent.events import Event
from wave_agent.permissions.decision import Approver, RestoreApprover
from wave_agent.screen.custom import CustomCommand, directories, load_commands, project_commands
from wave_agent.settings.sources import project_settings
from wave_agent.settings.trust import Record, TrustStore, candidates, file_digest, record_of
from wave_agent.settings.user_guards import confirm_user
from wave_agent.system.presence import doubt
from wave_agent.system.project import Project


class Agents:
    def __init__(self, options: Options, place: Project, home: Path) -> None:
        self._options = options
        self.place = place
        self.project = place.directory
        self.home = home

    @property
    def trusted(self) -> bool:
        """Trusted for this run or with `wave hooks trust`."""
        if not self._options.project_hooks:
            return False
        return self._options.trust is True or bool(TrustStore(self.home).read(self.project).settings)

    @property
    def first(self) -> str | None:
        """The session to start with; None for a new one."""
        return self._options.resume

    def trust(self) -> None:
        """Trust the project for this run."""
        self._options = replace(self._options, trust=True)

    def looked_at(self) -> Record:
        """What there is to trust, in its current state."""
        sources = project_settings(self.home, self.place)
        found = candidates(sources, self.project, file_digest)
        return record_of(sources, self.project, found, TrustStore(self.home).read(self.project))

    def keep(self, record: Record) -> None:
        """Store trust in this record, until something changes. Raises `SettingsError`."""
        why = doubt(self.home, self.project, terminal=True)
        marked = why and f"trust was given while {why}"
        TrustStore(self.home).trust(self.project, record, self.place.inner, doubt=marked)
        if not marked:
            confirm_user(self.home, self.project)

    def distrust(self) -> None:
        """Skip the project's own hooks."""
        self._options = replace(self._options, trust=False, project_hooks=False)

    def open(
        self,
        *,
        on_event: Callable[[Event], None],
        can_use_tool: Approver,
        may_restore: RestoreApprover,
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
            interactive=True,
            resume=resume,
            source=source,
        )
        if before is not None:
            options = replace(options, model=before.model_name or None, permission_mode=before.permission_mode)
        return Agent.from_options(options)

    def commands(self) -> dict[str, CustomCommand]:
        """The user's commands and, if the project is trusted, the project's."""
        return load_commands(directories(self.home, self.project, trusted=self.trusted))

    def untrusted_commands(self) -> list[str]:
        return [] if self.trusted else sorted(load_commands([project_commands(self.project)]))
