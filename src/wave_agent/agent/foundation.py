"""What applies to an agent, `Foundation`: settings, mode, limits and model, from its options."""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.model_choice import endpoint_for, model_name_for
from wave_agent.agent.model_windows import known_prices
from wave_agent.agent.options import Options, start_of
from wave_agent.agent.spending import Spending
from wave_agent.errors import SettingsError, WaveError
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.hooks.pinned import search_path
from wave_agent.models.base import EFFORTS
from wave_agent.permissions.decision import NOT_LOOSER, PermissionMode
from wave_agent.sessions.transcript import transcript_file
from wave_agent.settings.inheritance import Budget, Inheritance, inherited, restricted, steering, this_process
from wave_agent.settings.layers import Settings
from wave_agent.settings.mcp_sources import claude_state_file
from wave_agent.settings.places import OF_THE_PROJECT, LayerFile, drop_ins, managed_files, project_places
from wave_agent.settings.snapshot import Snapshot
from wave_agent.settings.sources import Gathered, gather_settings, is_config_file, locate, read_overlay
from wave_agent.settings.trust import Record, TrustStore, file_digest, rest_digest
from wave_agent.system.private_files import STORED_KEYS, STORED_LOGINS, wave_home
from wave_agent.system.project import Project
from wave_agent.system.real_files import is_below, resolve_or_keep

if TYPE_CHECKING:
    from wave_agent.permissions.hosts import Network
    from wave_agent.permissions.protected_paths import ProtectedPaths
    from wave_agent.permissions.sandbox import Sandbox
    from wave_agent.settings.agent_definitions import AgentDefinition
    from wave_agent.settings.session_agents import SessionAgents

_SOURCES: Mapping[str, str] = {
    Layer.MANAGED: "policy_settings",
    Layer.USER: "user_settings",
    Layer.PROJECT: "project_settings",
    Layer.LOCAL: "local_settings",
}
"""The names ConfigChange hooks use for these files."""


class Foundation(Struct, frozen=True, kw_only=True):
    """The basis of an agent: where it works, its effective settings, what it may do."""

    options: Options
    """As given; below another agent, only what that one permits. Where a field below has the same name, it applies."""
    place: Project
    home: Path
    environment: Mapping[str, str]
    gathered: Gathered
    mode: PermissionMode
    max_turns: int | None
    max_cost: float | None = None
    directories: tuple[str, ...]
    """The directories considered inside the project, as real paths."""
    handed_down: Inheritance | None = None
    """Limits for agents started by its tools."""
    above: Inheritance | None = None
    """Limits for this agent, if another agent's tool started it."""
    sandbox: bool = False
    snapshot: Snapshot = Snapshot()
    agents: "Mapping[str, AgentDefinition]" = {}
    """Types of subagents, besides those that are built in."""
    withheld_agents: tuple[str, ...] = ()
    """Built-in types that this session does not have."""
    notices: tuple[str, ...] = ()

    def in_session(self, session_id: str) -> "Foundation":
        """Agents below it get the session's share, if any hook is rolled out."""
        hooks = (*self.settings.hooks.hooks, *(hook for one in self.agents.values() for hook in one.hooks))
        if self.handed_down is None or self.above is not None or all(hook.rollout is None for hook in hooks):
            return self
        from wave_agent.hooks.rollout import share_of  # lazy: few hooks are

        return replace(self, handed_down=replace(self.handed_down, share=share_of(session_id)))

    @property
    def settings(self) -> Settings:
        return self.gathered.settings

    @property
    def claude_home(self) -> Path | None:
        """Where the user stores settings and instructions for other agents, if those are used."""
        return self.options.claude if self.gathered.foreign else None

    @property
    def guards(self) -> tuple[HookDefinition, ...]:
        """Hooks whose files are protected. Includes hooks disabled for this run: the next run needs them."""
        of_subagents = (hook for one in self.agents.values() for hook in one.hooks)
        return (*self.settings.hooks.hooks, *self.gathered.silenced, *of_subagents)

    @property
    def hook_environment(self) -> Mapping[str, str]:
        """The environment of hooks: a command that starts an agent must not control where its hooks find programs."""
        return self.environment if self.above is None else self.above.hook_environment(self.environment)

    @property
    def project(self) -> str:
        """The project's directory."""
        return self.place.directory

    @property
    def protected(self) -> "ProtectedPaths":
        """The files through which the agent could rewrite its own guards."""
        from wave_agent.permissions.protected_paths import protected_paths  # lazy: for the first call

        # Servers in there start without consent: they are the user's, or were named on the command line.
        others = [os.path.abspath(one) for one in self.options.mcp_config if is_config_file(one)]
        others += [str(claude_state_file(self.options))] if self.gathered.foreign else []
        if self.gathered.extensions is not None:
            # Their directories are protected, but a file may be a link to elsewhere.
            others += [one.path for one in self.gathered.extensions.files]
        inner = [os.path.join(level, name) for level in self.place.levels[1:] for name in (".wave", ".claude")]
        return protected_paths(
            self.project,
            self.home,
            self.guards,
            settings=[*self.snapshot.files, *others],
            drop_ins=[str(drop_ins(self.options.managed_file))],
            extended_by=[*inner, *([str(self.claude_home)] if self.claude_home else [])],
            start=self.place.start,
        )


def lay_foundation(options: Options, environment: Mapping[str, str]) -> Foundation:
    """Reads and merges the settings. Raises `SettingsError` and `UntrustedHooksError`."""
    above = inherited(environment)
    if above is not None:
        above.require_complete()
        above.require_same_guards(os.path.realpath(Path.home()), file_digest)
        environment = {**environment, "WAVE_HOME": above.home}
    start, home = start_of(options.workdir), wave_home(environment)
    options, notices = _permitted(options.in_environment(environment), above, start)
    project = locate(start, home, options)
    if options.no_hooks:
        from wave_agent.settings.no_hooks import (  # lazy: only for users who are locked out
            require_own_terminal,
            require_person,
        )

        require_person(environment)
        require_own_terminal(home, project.directory)
    if above is not None:
        project = above.project_for(project)
        path = search_path(above.hook_environment(environment))
        options = replace(options, record=_inherited_record(above, project, home), search_path=path)
    gathered = gather_settings(home, project, options)
    if os.path.exists(home / STORED_KEYS) or os.path.exists(home / STORED_LOGINS):
        from wave_agent.settings.stored_keys import hiding_keys  # lazy: few people have any

        gathered = replace(gathered, settings=hiding_keys(gathered.settings, home))
    settings = gathered.settings
    settings.require_usable()
    mode, limited = mode_for(options.permission_mode, settings, above)
    limit = limit_for(options.max_turns)
    cost = options.max_cost if above is None else above.restricted_cost(options.max_cost)
    _require_usable_models(options, settings, environment, cost)
    directories = real_directories(project.directory, (project.directory, *settings.additional_directories))
    agents = _agents(options, gathered)
    if agents is not None:
        gathered = replace(gathered, silenced=(*gathered.silenced, *agents.silenced))
    own = project_places(home, project)
    base = Foundation(
        options=options,
        place=project,
        home=home,
        environment=environment,
        gathered=gathered,
        mode=mode,
        max_turns=limit if above is None else above.restricted_turns(limit),
        max_cost=cost,
        directories=directories if above is None else above.restricted_directories(directories),
        # Inside a sandbox everything already runs in it, and cannot create another one.
        sandbox=options.sandbox and not (above and above.sandbox),
        above=above,
        snapshot=Snapshot(gathered.files, _known_as(home, options.managed_file, own)),
        agents=agents.definitions if agents else {},
        withheld_agents=tuple(agents.withheld) if agents else (),
        notices=(
            *(*notices, *gathered.notices, *limited, *map(str, settings.issues)),
            *(agents.notices if agents else ()),
        ),
    )
    return replace(base, handed_down=_handed_down(base, own))


def _agents(options: Options, gathered: Gathered) -> "SessionAgents | None":
    """The types of subagents in files and in code; None if there are none."""
    if gathered.extensions is None and not options.agents:
        return None
    from wave_agent.settings.session_agents import session_agents  # lazy: many projects have none

    return session_agents(gathered, options.agents)


def _known_as(home: Path, managed: Path, own: Iterable[LayerFile]) -> Mapping[str, str]:
    places = [LayerFile(Layer.USER, home / "settings.json")]
    places += [LayerFile(Layer.MANAGED, file) for file in managed_files(managed)]
    return {str(place.file): _SOURCES[place.layer] for place in (*places, *own)}


def _inherited_record(above: Inheritance, project: Project, home: Path) -> Record | None:
    """What the agent above has trusted in this project. It has not seen settings in the project's other directories;
    the user's own record applies to those."""
    if project.directory != above.project:
        return None
    stored = TrustStore(home).read(project.directory)
    return above.record.laid_over(stored.only(stored.directories - set(above.inner)))


def _permitted(options: Options, above: Inheritance | None, start: str) -> tuple[Options, list[str]]:
    """Which settings to use, and notices about what is ignored. Below another agent, the caller can only tighten."""
    if above is None:
        return options, []
    above.require_inside(start)
    kept, dropped = restricted([read_overlay(one) for one in options.overlays])
    refused = [*dict.fromkeys(dropped)]
    refused += ["trust"] if options.trust or options.trust_ref else []
    refused += ["plugins"] if options.plugins else []
    refused += ["managed settings"] if options.added_managed not in (None, above.added_managed) else []
    servers = [one for one in options.mcp_config if one not in above.mcp_config]
    refused += ["MCP servers"] if servers or options.mcp_servers else []
    refused += ["no project hooks"] if above.project_hooks and not options.project_hooks else []
    inherited_rules = {"permissions": {"deny": [*above.deny], "ask": [*above.ask]}, "strictHooks": above.strict}
    notice = f"This agent was started by another agent, whose limits apply. Ignored: {', '.join(refused)}."
    return replace(
        options,
        setting_sources=None,
        overlays=[*above.overlays, inherited_rules, *kept],
        trust=False,
        trust_ref=None,
        project_hooks=above.project_hooks,
        added_managed=above.added_managed,
        plugins=above.plugins,
        mcp_config=above.mcp_config,
        mcp_servers=None,
        strict_mcp_config=above.strict_mcp_config or options.strict_mcp_config,
        claude_home=Path(above.claude_home) if above.claude_home else options.claude_home,
    ), [notice] if refused else []


def _handed_down(base: Foundation, own: Iterable[LayerFile]) -> Inheritance:
    options, gathered, above = base.options, base.gathered, base.above
    settings, project = base.settings, base.project
    innermost = os.path.normpath(
        os.path.join(project, max((one.inner for one in gathered.sources), key=len, default=""))
    )
    theirs = [source for source in gathered.sources if source.layer in OF_THE_PROJECT]
    own_files = {str(place.file) for place in own}
    elsewhere = {name: digest for name, digest in base.snapshot.digests.items() if name not in own_files}
    in_code = any(hook.layer is Layer.CODE for hook in settings.hooks.hooks)
    return Inheritance(
        mode=base.mode,
        home=str(base.home),
        project=project,
        inner=base.place.inner,
        # An agent started further out would not read the settings that apply to this one.
        directories=tuple(
            innermost if is_below(one, project) and is_below(innermost, one) else one for one in base.directories
        ),
        max_turns=base.max_turns,
        max_cost=base.max_cost,
        budgets=(
            *(() if above is None else above.budgets),
            Budget(str(base.home / "budgets" / os.urandom(16).hex()), base.max_turns, base.max_cost),
        ),
        overlays=tuple(options.overlays),
        deny=tuple(text for rule in settings.rules.deny for text in rule.spelt),
        ask=tuple(text for rule in settings.rules.ask for text in rule.spelt),
        strict=settings.strict_hooks,
        share=0.0 if above is None else above.share,
        project_hooks=options.project_hooks,
        sandbox=base.sandbox or bool(above and above.sandbox),
        record=Record(
            hooks=gathered.trust.record,
            shown=gathered.trust.shown,
            programs=gathered.trust.programs,
            settings={os.path.relpath(source.name, project): rest_digest(source) for source in theirs},
            extensions={} if gathered.extensions is None else gathered.extensions.record,
        ),
        added_managed=options.added_managed,
        plugins=tuple(os.fspath(directory) for directory in options.plugins),
        # Servers given as text or in code may contain secrets, and every command sees what is handed down.
        mcp_config=tuple(os.fspath(one) for one in options.mcp_config if is_config_file(one)),
        strict_mcp_config=options.strict_mcp_config,
        claude_home=str(options.claude_home or ""),
        user_home=os.path.realpath(Path.home()) if above is None else above.user_home,
        files=elsewhere if above is None else above.files,
        environment=steering(base.environment) if above is None else above.environment,
        process=this_process() if above is None else above.process,
        hidden="hooks in code, which cannot be handed down" if in_code else "",
    )


def lacks_model(options: Options, environment: Mapping[str, str]) -> bool:
    """Whether an agent with these options would have no model to ask. False if it could not be created at all: the
    attempt will say why."""
    if options.model_client is not None:
        return False
    try:
        if endpoint_for(options.wishes, Settings(), environment) is not None:
            return False
        return endpoint_for(options.wishes, lay_foundation(options, environment).settings, environment) is None
    except WaveError:
        return False


def limit_for(asked: int | None) -> int | None:
    if asked is not None and asked < 1:
        raise SettingsError(f"max_turns must be at least 1, not {asked}.")
    return asked


def _require_usable_models(
    options: Options, settings: Settings, environment: Mapping[str, str], cost: float | None
) -> None:
    """Raises `SettingsError` if the options about models contradict each other or what is known."""
    if options.effort not in (None, *EFFORTS):
        raise SettingsError(f'"{options.effort}" is not an effort; expected one of {", ".join(EFFORTS)}.')
    if options.max_output_tokens is not None and options.max_output_tokens < 1:
        raise SettingsError(f"max_output_tokens must be at least 1, not {options.max_output_tokens}.")
    if cost is not None and not 0 < cost < float("inf"):
        raise SettingsError(f"max_cost must be a number of US dollars greater than 0, not {cost}.")
    name = model_name_for(options.model, settings, environment)
    if options.fallback_model and options.fallback_model == name:
        raise SettingsError(f"The fallback model must be another one than the model itself, {name}.")
    spending = Spending(partial(known_prices, settings), cost)
    for one in (name, *filter(None, [options.fallback_model])):
        spending.require_prices(one, wave_home(environment))


def mode_for(
    asked: str | None, settings: Settings, above: Inheritance | None = None
) -> tuple[PermissionMode, tuple[str, ...]]:
    """The mode, and notices if it is not the requested one."""
    known = [mode.value for mode in PermissionMode]
    if asked is not None and asked not in known:
        raise SettingsError(f'"{asked}" is not a permission mode; expected one of {", ".join(known)}.')
    wanted = settings.default_mode if asked is None else PermissionMode(asked)
    mode, why = wanted, ""
    if "default_mode" in settings.managed and mode not in NOT_LOOSER[settings.default_mode]:
        mode, why = settings.default_mode, "limited by managed settings"
    if above is not None and above.restricted_mode(mode) is not mode:
        mode, why = above.restricted_mode(mode), "limited by the agent that started this one"
    return mode, (f"The permission mode is {mode}, not {wanted}: {why}.",) if why else ()


def real_directories(project: str, directories: Sequence[str]) -> tuple[str, ...]:
    """Directories as written in settings, resolved to absolute paths without symlinks."""
    return tuple(resolve_or_keep(os.path.join(project, os.path.expanduser(one))) for one in directories)


def sandbox_for(foundation: Foundation, session_id: str) -> "Sandbox":
    """Raises `SandboxError` if no sandbox is available."""
    from wave_agent.permissions.sandbox import SETTINGS_DIRECTORIES, Sandbox  # lazy: only with --sandbox

    project, home, settings = foundation.project, foundation.home, foundation.settings
    inner = [os.path.join(level, name) for level in foundation.place.levels[1:] for name in SETTINGS_DIRECTORIES]
    return Sandbox.open(
        project=project,
        directories=real_directories(project, settings.additional_directories),
        protected=replace(foundation.protected, directories=(*foundation.protected.directories, *inner)),
        state=home,
        outputs=transcript_file(home, project, session_id).with_suffix(""),
        network=_sandbox_network(settings),
        environment=foundation.environment,
        denied=settings.rules.deny,
    )


def _sandbox_network(settings: Settings) -> "Network":
    """What commands can reach: what the setting says, and the hosts that allow rules name. Managed settings stay."""
    network = settings.sandbox_network
    if network is True or "sandbox_network" in settings.managed:
        return network
    from wave_agent.permissions.hosts import allowed_hosts  # lazy: only with --sandbox

    return (*(network or ()), *allowed_hosts(settings.rules.allow)) or False
