"""The environment and the directory that hooks run in."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from wave_agent.formats.readable import readable_text
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.dialects import Aside
from wave_agent.hooks.pinned import is_pinned, search_path
from wave_agent.hooks.variables import FILE_VARIABLE
from wave_agent.system.credentials import without_credentials
from wave_agent.system.private_files import make_private

if TYPE_CHECKING:
    from wave_agent.hooks.stage import Stage

_NOT_INHERITED = ("HOOK_EVENT", "HOOK_TOOL_NAME", FILE_VARIABLE, "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA")
"""Variables that only some hooks get."""


class SessionFacts(Struct, frozen=True, kw_only=True):
    """Facts about the session that every hook receives."""

    session_id: str
    transcript_path: str
    project_dir: str
    home: str
    start: str = ""
    """The directory the agent was started in, if that is not the project directory."""
    host: str = ""
    """The agent whose calls are judged, if it is another one."""


class HookEnvironment:
    """The variables of a session's hooks, and where each hook runs."""

    def __init__(
        self,
        session: SessionFacts,
        agent: Mapping[str, str],
        settings: Mapping[str, str],
        own: Callable[[HookDefinition], Mapping[str, str]],
    ) -> None:
        """`agent` is the agent's own environment, `settings` the variables in settings. `own` returns variables for one
        hook, on top of those all hooks get."""
        self.project = session.project_dir
        self.search_path = search_path(agent)
        """PATH for hooks: the agent's own, whatever settings and hooks set for commands."""
        wanted = {
            **{name: value for name, value in without_credentials(agent).items() if name not in _NOT_INHERITED},
            **{name: value for name, value in settings.items() if not is_pinned(name)},
            "PATH": self.search_path,
            "WAVE_PROJECT_DIR": session.project_dir,
            "CLAUDE_PROJECT_DIR": session.project_dir,
            "WAVE_SESSION_ID": session.session_id,
            "CLAUDE_SESSION_ID": session.session_id,
        }
        self.shared = {readable_text(name): readable_text(value) for name, value in wanted.items()}
        """The variables all hooks get."""
        self._own = own

    def variables(self, hook: HookDefinition, stage: "Stage") -> dict[str, str]:
        """All variables of this hook. Creates the directory for its plugin's data, if it has one."""
        here = stage.occurrence
        found = {**self.shared, **self._own(hook), "HOOK_EVENT": here.row.event.value}
        found |= {name: value(here.aside) for name, value in hook.columns.environment.items()}
        if here.row.has_tool:
            found["HOOK_TOOL_NAME"] = readable_text(str(stage.payload.get("tool_name", "")))
        if hook.plugin_root:
            found["CLAUDE_PLUGIN_ROOT"] = hook.plugin_root
        if hook.plugin_data:
            found["CLAUDE_PLUGIN_DATA"] = hook.plugin_data
            with suppress(OSError):  # then the hook itself fails and says why
                make_private(Path(hook.plugin_data))
        if file := here.export_file(hook.name):
            found[FILE_VARIABLE] = file
        return found

    def directory(self, hook: HookDefinition, aside: Aside) -> str:
        """The directory this hook runs in."""
        if not hook.columns.follows_session or aside.directory == self.project:
            return self.project
        from wave_agent.hooks.named_files import runs_alike  # lazy: most sessions never change directory

        return aside.directory if runs_alike(hook, self.project, aside.directory, self.search_path) else self.project
