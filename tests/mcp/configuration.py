"""A project with servers, and what a session there would make of them."""

import json
import os
from pathlib import Path
from typing import Any

from wave_agent.mcp.consent import ConsentStore
from wave_agent.mcp.file_digests import LookLimits
from wave_agent.mcp.servers import Configured, WaitingServer, configured_servers
from wave_agent.settings.mcp_sources import has_servers
from wave_agent.settings.sources import SourceChoice, gather_settings
from wave_agent.system.project import Project


class Place:
    """`project/` and everything around it, below one directory."""

    def __init__(self, directory: Path) -> None:
        self.project, self.home = directory / "project", directory / "home"
        self.managed, self.claude = directory / "etc" / "settings.json", directory / "user" / ".claude"
        self.managed_mcp = directory / "etc" / "managed-mcp.json"
        for one in (self.project, self.home, self.managed.parent, self.claude):
            one.mkdir(parents=True)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(directory / "user")}
        self.start = str(self.project)
        self.limits = LookLimits()

    @property
    def store(self) -> ConsentStore:
        return ConsentStore(self.home)

    @property
    def place(self) -> Project:
        return Project(str(self.project), self.start, str(self.project))

    def write(self, name: str, content: Any = "") -> Path:
        file = self.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def servers(self, entries: dict[str, Any], name: str = ".mcp.json") -> None:
        self.write(name, {"mcpServers": entries})

    def user(self, settings: dict[str, Any]) -> None:
        (self.home / "settings.json").write_text(json.dumps(settings))

    def choice(self, **wanted: Any) -> SourceChoice:
        return SourceChoice(
            managed_file=self.managed, managed_mcp_file=self.managed_mcp, claude_home=self.claude, **wanted
        )

    def configured(self, **wanted: Any) -> Configured:
        choice = self.choice(**wanted)
        gathered = gather_settings(self.home, self.place, choice)
        return configured_servers(
            gathered,
            project=self.place,
            home=self.home,
            choice=choice,
            environment=self.environment,
            limits=self.limits,
        )

    def has_servers(self, **wanted: Any) -> bool:
        choice = self.choice(**wanted)
        return has_servers(gather_settings(self.home, self.place, choice), self.place, self.home, choice)

    def running(self, **wanted: Any) -> list[str]:
        return [server.name for server in self.configured(**wanted).servers]

    def waiting(self, name: str) -> WaitingServer:
        found = self.configured().get(name)
        assert isinstance(found, WaitingServer), found
        return found

    def agree(self, name: str) -> None:
        """The user says yes."""
        found = self.waiting(name)
        self.store.grant(found.server, found.binding)
