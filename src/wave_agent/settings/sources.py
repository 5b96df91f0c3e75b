"""Which settings apply: managed ones always, then the user's, the trusted ones of the project, those named by the
caller, and those in code."""

import inspect
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeGuard, cast

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import MissingPathError, SettingsError, UntrustedHooksError
from wave_agent.formats.strict_json import Document
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.hooks.events import HookEventName
from wave_agent.hooks.execution import HookKind
from wave_agent.hooks.named_files import misplaced_file
from wave_agent.permissions.decision import PermissionMode
from wave_agent.settings.hook_entries import Issue, SettingsSource, hooks_in_code, load_hooks
from wave_agent.settings.layers import (
    Settings,
    merge_settings,
    only_restrictions,
    wants_foreign,
    wants_managed_hooks_only,
    why_never,
    without_hooks,
    without_servers,
)
from wave_agent.settings.other_agents import (
    PLUGIN_FILE,
    PROJECT_FILES,
    claude_home,
    foreign_files,
    look_at_foreign,
    read_foreign,
    read_plugin,
)
from wave_agent.settings.places import (
    DEFAULT_SOURCES,
    MANAGED_FILE,
    OF_THE_PROJECT,
    OWN_FILES,
    LayerFile,
    extension_places,
    has_settings,
    managed_files,
    project_places,
    read_managed,
    read_place,
    read_source,
)
from wave_agent.settings.trust import (
    CHANGED,
    ProjectTrust,
    Record,
    SourceGuards,
    TrustCandidate,
    TrustStore,
    candidates,
    file_digest,
    record_of,
)
from wave_agent.settings.user_guards import guards_in, own_file, user_alarms
from wave_agent.settings.values import MCP_KEYS
from wave_agent.system.project import Project, find_project
from wave_agent.text import reveal

if TYPE_CHECKING:  # loaded only if there are any
    from wave_agent.settings.extension_files import FoundExtension
    from wave_agent.settings.extensions import Extensions

Trust = (
    bool
    | Callable[[Sequence[HookDefinition]], bool]
    | Callable[[Sequence[HookDefinition], Sequence[str]], bool]
    | Callable[[Sequence[HookDefinition], Sequence[str], Sequence[str]], bool]
)
"""A function that takes two arguments is also asked about missing guards; one that takes three, about agents, skills
and commands as well, which are left out otherwise."""
_NOT_MANAGED = frozenset(Layer) - {Layer.MANAGED}
_GONE = "removed or disabled: "
Overlay = str | os.PathLike[str] | Mapping[str, Any]


def is_config_file(config: Overlay) -> TypeGuard[str | os.PathLike[str]]:
    """Whether this is the name of a file with MCP servers, and not the servers themselves, as text or as an object."""
    return not isinstance(config, Mapping) and not os.fspath(config).lstrip().startswith("{")


class SourceChoice(Struct, frozen=True, kw_only=True):
    """What the caller asks for in matters of settings: the part of an agent's options that decides which are read."""

    setting_sources: Sequence[str] | None = None
    """Which layers to read; managed ones are always read."""
    overlays: Sequence[Overlay] = ()
    """Settings files and objects that the user named."""
    hooks: Mapping[str, Any] | Mapping[HookEventName, Any] | None = None
    trust: Trust = False
    trust_ref: str | None = None
    """Trust exactly what is in this git ref."""
    project_hooks: bool = True
    """False: the project's own hooks do not run, even if trusted."""
    no_hooks: bool = False
    """Disables all hooks except managed ones: `--no-hooks`, for a person at a terminal. Refused to anyone else."""
    plugins: Sequence[str | os.PathLike[str]] = ()
    """Plugin directories whose hooks also run."""
    managed_file: Path = MANAGED_FILE
    mcp_config: Sequence[Overlay] = ()
    """MCP servers that the user named: files, JSON texts and objects of the form of `.mcp.json`."""
    strict_mcp_config: bool = False
    """Only the servers of `mcp_config` and `mcp_servers` are used; managed lists still hold."""
    mcp_servers: Mapping[str, Any] | None = None
    """MCP servers in code: name → entry."""
    managed_mcp_file: Path = Path("/etc/claude-code/managed-mcp.json")
    """If it exists and settings for other agents are used, only its servers and other managed ones run."""

    # Callers leave the rest alone: it comes from the environment, or from an agent above.

    added_managed: str | None = None
    """One more managed file."""
    claude_home: Path | None = None
    """The user's directory of settings for other agents; None: the default."""
    record: Record | None = None
    """Trust exactly this, regardless of the store."""
    search_path: str | None = None
    """PATH of the hooks; None: that of this process."""

    def in_environment(self, environment: Mapping[str, str]) -> Self:
        """The same choice with what the environment adds to it, and with absolute paths."""
        return replace(
            self,
            overlays=[one if isinstance(one, Mapping) else os.path.abspath(one) for one in self.overlays],
            plugins=[os.path.abspath(directory) for directory in self.plugins],
            mcp_config=[os.path.abspath(one) if is_config_file(one) else one for one in self.mcp_config],
            added_managed=environment.get("WAVE_MANAGED_SETTINGS") or None,
            claude_home=claude_home(environment),
        )

    @property
    def wanted(self) -> tuple[Layer, ...]:
        return DEFAULT_SOURCES if self.setting_sources is None else tuple(map(_layer, self.setting_sources))

    @property
    def claude(self) -> Path:
        return self.claude_home or claude_home(os.environ)


class Gathered(Struct, frozen=True, kw_only=True):
    """The settings that apply, and what a session has to know about their sources."""

    settings: Settings = Settings()
    """All of them merged."""
    sources: tuple[SettingsSource, ...] = ()
    notices: tuple[str, ...] = ()
    """About sources that are ignored."""
    trust: ProjectTrust = ProjectTrust()
    """The trust in the project's hooks."""
    files: tuple[Path, ...] = ()
    """Places where settings that apply may be."""
    unused: tuple[str, ...] = ()
    """The project's hooks for other agents, if `compat.claude` is not set yet."""
    foreign: bool = False
    """Settings for other agents are used."""
    silenced: tuple[HookDefinition, ...] = ()
    """Hooks that do not run because the user, or the file they are in, has disabled them."""
    hooks_disabled: bool = False
    """The user's or managed settings disable all hooks, except managed ones."""
    layers_without_hooks: frozenset[Layer] = frozenset()
    """None of the hooks of these layers run, whether in settings or in the definition of a subagent."""
    left_out: int = 0
    """Number of project hooks that do not run because the user disabled them all."""
    user_guards: Mapping[str, SourceGuards] = {}
    """The guards in the user's own settings, by file."""
    extensions: "Extensions | None" = None
    """Agents, skills and commands; None if there are none."""
    mcp: tuple[SettingsSource, ...] = ()
    """The settings about MCP servers, of every layer: consent to each server takes the place of trust in the file."""


def locate(start: str, home: Path, choice: SourceChoice | None = None) -> Project:
    """The project around a directory. Settings for other agents mark a project directory too, if they are used.

    Raises `SettingsError`.
    """
    choice = choice or SourceChoice()
    user = os.path.realpath(Path.home())
    try:  # A directory with trusted guards is a project, even if all its settings were deleted.
        guarded = TrustStore(home).guarded()
    except SettingsError:  # reported when the settings are read
        guarded = frozenset[str]()
    found = find_project(start, lambda one: one in guarded or has_settings(one, home, OWN_FILES), user)

    def has_any(directory: str) -> bool:
        foreign = (name for name in PROJECT_FILES if (Path(directory) / name).parent != choice.claude)
        return directory in guarded or has_settings(directory, home, (*OWN_FILES, *foreign))

    wider = find_project(start, has_any, user)
    if wider.directory == found.directory:
        return found
    sources = _named_and_own(home, project_places(home, wider), choice)
    return wider if _wants_foreign(sources, wider, TrustStore(home), choice) else found


def _named_and_own(home: Path, places: Iterable[LayerFile], choice: SourceChoice) -> list[SettingsSource]:
    """The settings of all layers; the project's, which are in these places, unfiltered."""
    own = [read_place(place) for place in places if place.layer in choice.wanted]
    user = read_source(Layer.USER, home / "settings.json") if Layer.USER in choice.wanted else None
    return [
        *read_managed(choice.managed_file, choice.added_managed),
        *(source for source in (user, *own) if source is not None),
        *map(read_overlay, choice.overlays),
    ]


def gather_settings(home: Path, project: Project, choice: SourceChoice | None = None) -> Gathered:
    """Reads every layer. Raises `SettingsError`, and `UntrustedHooksError` for hooks that may not run."""
    choice = choice or SourceChoice()
    wanted = choice.wanted
    own = project_places(home, project)
    files = [*managed_files(choice.managed_file), home / "settings.json", *(place.file for place in own)]
    store = TrustStore(home)
    sources = _named_and_own(home, own, choice)
    managed_only = wants_managed_hooks_only([source for source in sources if source.layer is Layer.MANAGED])
    kept = store.read(project.directory)
    if Layer.USER in wanted and (allowed := kept.allow if not kept.doubt or choice.trust is True else ()):
        document = Document({"permissions": {"allow": list(allowed)}}, {})
        sources.append(SettingsSource(Layer.USER, str(store.file), document))
    elsewhere = [one for one in foreign_files(home, project, choice.claude) if one.layer in wanted]
    foreign = _wants_foreign(sources, project, store, choice)
    if foreign:
        sources += read_foreign(elsewhere, files)
    about_servers = tuple(one for one in sources if not one.document.value.keys().isdisjoint(MCP_KEYS))
    theirs = [without_servers(source) for source in sources if source.layer in OF_THE_PROJECT]
    own_settings = [source for source in sources if source.name != str(store.file)]
    user_guards = (
        guards_in(own_settings, own_file(home), project.directory, choice.claude if foreign else None)
        if Layer.USER in wanted
        else {}
    )
    plugins, notices = _plugins(choice.plugins, home)
    silenced: tuple[HookDefinition, ...] = ()
    if choice.no_hooks:
        sources, plugins, silenced, notice = _silenced(sources, plugins)
        notices = [notice, *notices]
    sources = [source for source in sources if source.layer not in OF_THE_PROJECT]
    in_code = [] if choice.hooks is None else [hooks_in_code(choice.hooks)]
    # Before trust is judged: a guard that its own file disables is missing, like one that was removed.
    off, (theirs, sources, plugins, in_code) = _without_disabled(theirs, sources, plugins, in_code)
    silenced, notices = (*silenced, *off.hooks), [*off.notices, *notices]
    silent = off.layers | (_NOT_MANAGED if choice.no_hooks or managed_only else frozenset[Layer]())
    with_hooks = choice.project_hooks and Layer.PROJECT not in silent
    left_out = 0 if choice.project_hooks else len(load_hooks(theirs).hooks)
    theirs = theirs if with_hooks else [without_hooks(source) for source in theirs]
    watched = user_guards and choice.record is None and not choice.no_hooks
    users = user_alarms(home, project.directory, own_settings) if watched else []
    texts = _found_extensions(home, project, choice, foreign=bool(foreign))
    record = Record() if choice.trust is True else _record(project, store, choice, foreign=bool(foreign), texts=texts)
    judged, ignored, trust, extensions = _judge(
        theirs, project, store, choice, users, texts=texts, record=record, with_hooks=with_hooks
    )
    sources += [*judged, *plugins, *in_code]
    more = [*_named_files(choice), *(one.file for one in elsewhere if foreign), *(Path(one.name) for one in plugins)]
    return Gathered(
        settings=_merged(sources, project),
        sources=tuple(sources),
        notices=(*ignored, *notices, *(extensions.notices if extensions else ())),
        trust=trust,
        files=(*files, *more),
        unused=_unused(elsewhere, files) if with_hooks and foreign is None else (),
        foreign=bool(foreign),
        silenced=silenced,
        hooks_disabled=Layer.USER in off.layers,
        layers_without_hooks=silent,
        left_out=left_out,
        user_guards=user_guards,
        mcp=about_servers,
        extensions=extensions,
    )


def _named_files(choice: SourceChoice) -> list[Path]:
    """The settings files that the user named for this run."""
    return [Path(one) for one in (*choice.overlays, choice.added_managed) if one and not isinstance(one, Mapping)]


def _found_extensions(
    home: Path, project: Project, choice: SourceChoice, *, foreign: bool
) -> "tuple[FoundExtension, ...]":
    """The agents, skills and commands of all layers. A project's are left out with its hooks."""
    layers = [one for one in choice.wanted if one not in OF_THE_PROJECT or choice.project_hooks]
    places = extension_places(home, project, layers, choice.claude if foreign else None)
    if not places:
        return ()
    from wave_agent.settings.extension_files import find_extensions  # lazy: many projects have none

    return tuple(find_extensions(places))


def project_extensions(home: Path, project: Project) -> "tuple[FoundExtension, ...]":
    """The project's own agents, skills and commands, trusted or not."""
    foreign = wants_foreign(_named_and_own(home, project_places(home, project), SourceChoice()))
    choice = SourceChoice(setting_sources=[Layer.PROJECT])
    return _found_extensions(home, project, choice, foreign=bool(foreign))


def _silenced(
    sources: list[SettingsSource], plugins: list[SettingsSource]
) -> tuple[list[SettingsSource], list[SettingsSource], tuple[HookDefinition, ...], str]:
    """Both without hooks, except managed ones, those hooks, and a notice."""
    from wave_agent.settings.no_hooks import notice_of, silence  # lazy: rarely used

    everything, silenced = silence([*sources, *plugins])
    return everything[: len(sources)], everything[len(sources) :], silenced, notice_of(silenced)


class _Disabled(Struct, frozen=True):
    """What `disableAllHooks` in settings has disabled."""

    hooks: tuple[HookDefinition, ...] = ()
    notices: tuple[str, ...] = ()
    layers: frozenset[Layer] = frozenset()
    """Those without any hooks."""


def _without_disabled(*groups: list[SettingsSource]) -> tuple[_Disabled, Sequence[list[SettingsSource]]]:
    """These settings without the hooks that they disable."""
    sources = [source for group in groups for source in group]
    if not any("disableAllHooks" in source.document.value for source in sources):
        return _Disabled(), groups
    from wave_agent.settings.disabled_hooks import DisabledHooks  # lazy: rarely used

    off = DisabledHooks(sources)
    kept = [off.take(group) for group in groups]
    return _Disabled(off.hooks, tuple(off.notices), off.layers), kept


def _merged(sources: Iterable[SettingsSource], project: Project) -> Settings:
    """These settings combined, with the problems that can be found on disk."""
    settings = merge_settings(sources)
    return replace(settings, issues=(*settings.issues, *_misplaced(settings.hooks.hooks, project.directory)))


def _misplaced(hooks: Iterable[HookDefinition], project: str) -> Iterator[Issue]:
    """Hooks that worked while their directory was a separate project. Their guards would be lost."""
    for hook in hooks:
        file = misplaced_file(hook, project) if hook.enabled else None
        if file is not None:
            message = (
                f"names {file}, which is not in {project}, where this project's hooks run; "
                f"write {os.path.join(hook.inner, file)}"
            )
            yield Issue(source=hook.source, path=hook.path, line=hook.line, message=message, fatal=True)


def _wants_foreign(
    sources: Iterable[SettingsSource], project: Project, store: TrustStore, choice: SourceChoice
) -> bool | None:
    return wants_foreign(source for source in sources if _may_say(source, project, store, choice))


def _plugins(directories: Iterable[str | os.PathLike[str]], home: Path) -> tuple[list[SettingsSource], list[str]]:
    """Their hooks, and notices about plugins without any."""
    found = [(directory, read_plugin(os.fspath(directory), home)) for directory in directories]
    empty = [f"{directory} has no {PLUGIN_FILE}; it is ignored." for directory, source in found if not source]
    return [source for _, source in found if source is not None], empty


def _unused(elsewhere: Iterable[LayerFile], known: Iterable[Path]) -> tuple[str, ...]:
    """Descriptions of the project's hooks for other agents."""
    found = look_at_foreign([one for one in elsewhere if one.layer in OF_THE_PROJECT], known)
    return tuple(reveal(describe(hook)) for hook in load_hooks(found).hooks)


def _may_say(source: SettingsSource, project: Project, store: TrustStore, choice: SourceChoice) -> bool:
    """Whether this file can enable hooks of other agents: the user's can, a project's only if it is trusted."""
    if source.layer not in OF_THE_PROJECT or "compat" not in source.document.value or choice.trust is not False:
        return True  # a function that decides is asked for those hooks too
    return _record(project, store, choice, foreign=False).covers(source, project.directory)


def project_settings(home: Path, project: Project) -> list[SettingsSource]:
    """The project's own settings, trusted or not, without the hooks that they disable themselves. Includes those for
    other agents, if they would be used."""
    places = project_places(home, project)
    sources = _named_and_own(home, places, SourceChoice())
    own = [source for source in sources if source.layer in OF_THE_PROJECT]
    if wants_foreign(sources):
        elsewhere = project_places(home, project, PROJECT_FILES)
        own += read_foreign(elsewhere, [place.file for place in places])
    return _without_disabled(own)[1][0]


def _judge(
    theirs: list[SettingsSource],
    project: Project,
    store: TrustStore,
    choice: SourceChoice,
    users: list[str],
    *,
    texts: "Sequence[FoundExtension]",
    record: Record,
    with_hooks: bool,
) -> "tuple[list[SettingsSource], list[str], ProjectTrust, Extensions | None]":
    """The project's settings without the untrusted parts, notices about these, the trust in its hooks, and what is used
    of the agents, skills and commands in `texts`.

    `users` are problems with the user's own settings. `record` is what is trusted, unless everything is.

    `with_hooks` False: its hooks are always skipped."""
    _check_trust(choice.trust)
    # Read only once: the hooks that are judged are the ones that get pinned.
    found = candidates(theirs, project.directory, file_digest, path=choice.search_path)
    of_agents = _of_agents(texts, project, choice) if with_hooks else ()
    everything = record_of(theirs, project.directory, (*found, *of_agents), extensions=_all_of(texts, project))
    record = everything if choice.trust is True else record
    judged = (*found, *_in_use(of_agents, texts, record, project))
    doubts = [(candidate.hook, why) for candidate in judged if (why := record.why_not(candidate)) is not None]
    all_read = with_hooks and set(OF_THE_PROJECT) <= set(choice.wanted)
    alarms = [*users, *(_alarms(record, everything, project, store, choice) if all_read else [])]
    notices: list[str] = []
    waiting = _waiting(texts, record, project.directory) if callable(choice.trust) else []
    if choice.trust is True:
        notices = [f"Trusted for this run only, though not as you left it: {one}" for one in alarms]
    elif callable(choice.trust) and (doubts or alarms or (waiting and _takes(choice.trust) == 3)):
        left_out = [one.hook for one in of_agents if one not in judged] if _takes(choice.trust) == 3 else []
        agreed = _says_yes(choice.trust, [*(hook for hook, _ in doubts), *left_out], alarms, waiting)
        if agreed:
            seen = everything.extensions if _takes(choice.trust) == 3 else record.extensions
            record, doubts, alarms = replace(everything, extensions=seen), [], []
    if choice.trust is not True and (doubts or alarms):
        untrusted = [reveal(f"{describe(hook)}: {_compared(why, choice.trust_ref)}") for hook, why in doubts]
        raise _refusal(untrusted, alarms, choice, users)
    kept: list[SettingsSource] = []
    for source in theirs:
        used, ignored = _used(source, record, project.directory)
        kept.append(used)
        notices += ignored
    pinned = (*found, *_in_use(of_agents, texts, record, project))
    trust = ProjectTrust(pinned, project=project.directory, path=choice.search_path)
    return kept, notices, trust, _used_extensions(texts, record, project, choice)


def _of_agents(texts: "Sequence[FoundExtension]", project: Project, choice: SourceChoice) -> tuple[TrustCandidate, ...]:
    """The hooks in the project's definitions of subagents."""
    if not texts:
        return ()
    from wave_agent.settings.definition_hooks import definition_candidates  # lazy: see above

    return definition_candidates(texts, project.directory, file_digest, path=choice.search_path)


def _in_use(
    found: Sequence[TrustCandidate], texts: "Sequence[FoundExtension]", record: Record, project: Project
) -> Sequence[TrustCandidate]:
    """Those whose definitions this record trusts."""
    if not found:
        return ()
    from wave_agent.settings.definition_hooks import of_trusted_texts  # lazy: see above

    return of_trusted_texts(found, texts, record, project.directory)


def _all_of(texts: "Sequence[FoundExtension]", project: Project) -> Mapping[str, Mapping[str, str]]:
    if not texts:
        return {}
    from wave_agent.settings.extensions import trusted_record  # lazy: see above

    return trusted_record(texts, project.directory)


def _waiting(texts: "Sequence[FoundExtension]", record: Record, project: str) -> list[str]:
    """The project's agents, skills and commands that are not trusted."""
    if not texts:
        return []
    from wave_agent.settings.extensions import why_untrusted  # lazy: see above

    why_not = why_untrusted(record, project)
    theirs = [(one, why_not(one)) for one in texts if one.place.layer in OF_THE_PROJECT and not one.problem]
    return [reveal(f"{one.shown(project)}: {why}") for one, why in theirs if why is not None]


def _used_extensions(
    texts: "Sequence[FoundExtension]", record: Record, project: Project, choice: SourceChoice
) -> "Extensions | None":
    if not texts:
        return None
    from wave_agent.settings.extensions import load_extensions, why_untrusted  # lazy: see above

    why_not = why_untrusted(record, project.directory)
    return load_extensions(texts, project.directory, why_not, comparing=choice.trust_ref or "")


def _compared(why: str, ref: str | None) -> str:
    """With `--trust-ref` nothing was trusted by a user: hooks are compared with the ref."""
    return why if ref is None else why.replace(CHANGED, f"differs from {ref}")


def _refusal(
    hooks: list[str], alarms: list[str], choice: SourceChoice, users: list[str]
) -> SettingsError | UntrustedHooksError:
    if hooks or users or choice.trust_ref is None:
        return UntrustedHooksError(hooks, alarms, ref=choice.trust_ref)
    message = f"--trust-ref {choice.trust_ref}: guards at this ref were removed or disabled here:"
    return SettingsError(message, [alarm.removeprefix(_GONE) for alarm in alarms])


def _alarms(record: Record, now: Record, project: Project, store: TrustStore, choice: SourceChoice) -> list[str]:
    """Problems with the trust for this run, whatever it is based on."""
    if choice.trust_ref is not None or choice.record is not None:
        return _gone(record, now, project)
    return alarms_of(store.read(project.directory), now, project, store)


def alarms_of(record: Record, now: Record, project: Project, store: TrustStore) -> list[str]:
    """Problems with what the user trusted: missing guards, and trust in doubt."""
    alarms = [reveal(f"{record.doubt}: please confirm again")] if record.doubt else []
    alarms += _gone(record, now, project)
    for inner, level in zip(project.inner[1:], project.levels[1:], strict=True):
        alarms += _gone(store.read(level).moved_to(inner), now, project)
    return alarms


def _gone(record: Record, now: Record, project: Project) -> list[str]:
    """Descriptions of guards that are in the record but missing in the project."""
    return [_GONE + reveal(one) for one in record.only(project.inner).gone(now)]


def _used(source: SettingsSource, record: Record, project: str) -> tuple[SettingsSource, list[str]]:
    """The settings used from one project file, and notices about the rest."""
    if record.covers(source, project):
        used, dropped = _without_bypass(source)
        return used, [f"{source.name}: ignored: {name}: a project cannot set this" for name in dropped]
    used, dropped = only_restrictions(source, keep_hooks=True)
    never = {name: why for name in dropped if (why := why_never(source, name))}
    waiting = [name for name in dropped if name not in never]
    notices = [f"{source.name}: not trusted, so ignored: {', '.join(waiting)} (wave hooks trust)"] if waiting else []
    notices += [f"{source.name}: ignored: {name}: {why}" for name, why in never.items()]
    return used, notices


def _record(
    project: Project,
    store: TrustStore,
    choice: SourceChoice,
    *,
    foreign: bool,
    texts: "Sequence[FoundExtension]" = (),
) -> Record:
    if choice.record is not None:
        return choice.record
    if choice.trust_ref is not None:
        from wave_agent.settings.git_refs import record_at  # lazy: runs git

        return record_at(choice.trust_ref, project, store.file.parent, foreign=foreign, texts=texts)
    return store.read(project.directory)


def _check_trust(trust: Any) -> None:
    if not isinstance(trust, bool) and not callable(trust):
        raise SettingsError(f"trust must be True, False or a function, not {trust!r}.")


def _says_yes(
    trust: Callable[..., bool], hooks: Sequence[HookDefinition], alarms: Sequence[str], waiting: Sequence[str]
) -> bool:
    """A function that takes only hooks cannot approve missing guards: it does not see them."""
    wanted = _takes(trust)
    if alarms and wanted < 2:
        return False
    answer: Any = trust(*(hooks, alarms, waiting)[:wanted])
    if inspect.iscoroutine(answer):
        answer.close()
    if not isinstance(answer, bool):
        raise SettingsError(f"The trust function must return True or False, not {type(answer).__name__}.")
    return answer


def _takes(function: Callable[..., Any]) -> int:
    """How many arguments the function gets: 1, 2 or 3. They must be required: optional ones were meant for something
    else."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C, without a signature
        return 1
    placed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = sum(one.kind in placed and one.default is one.empty for one in parameters)
    return required if required in (2, 3) else 1


def _without_bypass(source: SettingsSource) -> tuple[SettingsSource, tuple[str, ...]]:
    """No project, however trusted, can turn off all questions."""
    settings = cast(Mapping[str, Any], source.document.value)
    permissions: Any = settings.get("permissions")
    if not isinstance(permissions, Mapping) or "defaultMode" not in permissions:
        return source, ()
    rules = cast(Mapping[str, Any], permissions)
    if rules["defaultMode"] != PermissionMode.BYPASS:
        return source, ()
    kept = {**settings, "permissions": {key: value for key, value in rules.items() if key != "defaultMode"}}
    return source.with_settings(kept), (f"permissions.defaultMode {PermissionMode.BYPASS}",)


def describe(hook: HookDefinition) -> str:
    """What it runs or asks, and where it is defined."""
    inside = f", in the subagent {hook.agent}" if hook.agent else ""
    return f"{hook.event}: {hook_in_words(hook)} ({hook.source}:{hook.line}{inside})"


def hook_in_words(hook: HookDefinition) -> str:
    """The full command, or the policy and the model that judges by it."""
    command = shlex.join([hook.command, *hook.args]) if hook.args is not None else hook.shown_command
    if hook.kind in (HookKind.PROMPT, HookKind.AGENT):
        return f"{hook.kind} hook, {f'model {hook.model}' if hook.model else 'the usual model'}: {command}"
    return command


def read_overlay(overlay: Overlay) -> SettingsSource:
    if isinstance(overlay, Mapping):
        return SettingsSource(Layer.FLAG, "settings", Document(overlay, {}))
    found = read_source(Layer.FLAG, Path(overlay))
    if found is None:
        raise MissingPathError(f"Settings file not found: {overlay}")
    return found


def _layer(name: str) -> Layer:
    known = [layer.value for layer in DEFAULT_SOURCES]
    if name not in known:
        raise SettingsError(f'"{name}" is not a settings source; expected one of {", ".join(known)}.')
    return Layer(name)
