"""What an agent is put together from: settings that count, a mode, a model."""

import asyncio
import inspect
import os
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from wave_agent.calls import Approver
from wave_agent.errors import ModelError, SettingsError, UntrustedHooksError
from wave_agent.hooks.config import SettingsSource, hooks_in_code
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.hooks.execution import HookRunner
from wave_agent.models.base import Model, ModelRequest
from wave_agent.models.windows import Window
from wave_agent.permissions import PermissionMode
from wave_agent.result import Callbacks
from wave_agent.settings import (
    DEFAULT_SOURCES,
    Settings,
    merge_settings,
    only_restrictions,
    read_source,
    settings_files,
    without_hooks,
)
from wave_agent.strictjson import Document
from wave_agent.text import strip_controls
from wave_agent.tools.base import Tool

Trust = bool | Callable[[Sequence[HookDefinition]], bool]
Overlay = str | os.PathLike[str] | Mapping[str, Any]


class Options(Struct, frozen=True, kw_only=True):
    """Everything that can be said about an agent before there is one."""

    workdir: str | os.PathLike[str] | None = None
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = None
    hooks: Mapping[str, Any] | None = None
    tools: Sequence[Tool] = ()
    system_prompt: str | None = None
    append_system_prompt: str = ""
    permission_mode: str | None = None
    can_use_tool: Approver | None = None
    callbacks: Callbacks = Callbacks()
    overlays: Sequence[Overlay] = ()
    """Settings files and objects that the user named."""
    setting_sources: Sequence[str] | None = None
    trust: Trust = False
    project_hooks: bool = True
    """False: the project's own hooks are left out, whether trusted or not."""
    max_turns: int | None = None
    resume: str | None = None
    model_client: Model | None = None
    hook_runner: HookRunner | None = None


def find_places(workdir: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> tuple[str, Path]:
    """The project's real path, and the directory of the agent's own state."""
    try:
        project = os.path.realpath(workdir or os.getcwd())
    except FileNotFoundError:
        raise SettingsError("The current directory no longer exists.") from None
    if not os.path.isdir(project):
        raise SettingsError(f"There is no directory {project} to work in.")
    return project, Path(environment.get("WAVE_HOME") or Path.home() / ".wave").absolute()


def gather_settings(
    home: Path,
    project: str,
    *,
    layers: Sequence[str] | None,
    overlays: Sequence[Overlay] = (),
    hooks: Mapping[str, Any] | None = None,
    trust: Trust = False,
    project_hooks: bool = True,
) -> tuple[list[SettingsSource], list[str]]:
    """The settings of all layers, and what the user is told about those that were left out."""
    # What is managed is always read: nobody below can leave it out.
    wanted = DEFAULT_SOURCES if layers is None else (Layer.MANAGED, *map(_layer, layers))
    files = settings_files(home, project)
    found = [source for layer in dict.fromkeys(wanted) if (source := read_source(layer, files[layer])) is not None]
    if not project_hooks:
        found = [without_hooks(source) if source.layer in _OF_THE_PROJECT else source for source in found]
    theirs = [source for source in found if source.layer in _OF_THE_PROJECT]
    notices: list[str] = []
    if theirs and not _trusted(theirs, trust):
        for source in theirs:
            kept, dropped = only_restrictions(source)
            found[found.index(source)] = kept
            if dropped:
                notices.append(f"{source.name}: not trusted, so ignored: {', '.join(dropped)}")
    found += map(_overlay, overlays)
    if hooks is not None:
        found.append(hooks_in_code(hooks))
    return found, notices


_OF_THE_PROJECT = (Layer.PROJECT, Layer.LOCAL)


def _overlay(overlay: Overlay) -> SettingsSource:
    if isinstance(overlay, Mapping):
        return SettingsSource(Layer.FLAG, "settings", Document(overlay, {}))
    found = read_source(Layer.FLAG, Path(overlay))
    if found is None:
        raise SettingsError(f"There is no settings file {overlay}.")
    return found


def _trusted(sources: Sequence[SettingsSource], trust: Trust) -> bool:
    """Whether the project's own settings count. Raises `UntrustedHooksError` if it has hooks and they do not."""
    if trust is True:
        return True
    if trust is not False and not callable(trust):
        raise SettingsError(f"trust must be True, False or a function, not {trust!r}.")
    hooks = merge_settings(sources).hooks.hooks
    if hooks and trust is not False:
        answer: Any = trust(hooks)
        if inspect.iscoroutine(answer):
            answer.close()
        if not isinstance(answer, bool):
            raise SettingsError(f"The trust function must return True or False, not {type(answer).__name__}.")
        if answer:
            return True
    if hooks:
        raise UntrustedHooksError([strip_controls(_described(hook)) for hook in hooks])
    return False


def _described(hook: HookDefinition) -> str:
    """All that would be run, and where it is written."""
    command = shlex.join([hook.command, *hook.args]) if hook.args is not None else hook.shown_command
    return f"{hook.event}: {command} ({hook.source}:{hook.line})"


def _layer(name: str) -> Layer:
    known = [layer.value for layer in DEFAULT_SOURCES]
    if name not in known:
        raise SettingsError(f'"{name}" is not a source of settings; known are {", ".join(known)}.')
    return Layer(name)


def limit_for(asked: int | None) -> int | None:
    if asked is not None and asked < 1:
        raise SettingsError(f"max_turns must be at least 1, not {asked}.")
    return asked


def mode_for(asked: str | None, settings: Settings) -> PermissionMode:
    if asked is None:
        return settings.default_mode
    known = [mode.value for mode in PermissionMode]
    if asked not in known:
        raise SettingsError(f'"{asked}" is not a permission mode; known are {", ".join(known)}.')
    return PermissionMode(asked)


def model_for(base_url: str | None, api_key: str | None, settings: Settings, environment: Mapping[str, str]) -> Model:
    url = base_url or environment.get("WAVE_BASE_URL") or environment.get("OPENAI_BASE_URL") or settings.base_url
    key = api_key or environment.get("WAVE_API_KEY") or environment.get("OPENAI_API_KEY")
    if url is None and key is None:
        return _NoModel()
    from wave_agent.models.openai_chat import OpenAIChatModel  # lazy: an agent with its own model never needs it

    return OpenAIChatModel(base_url=url or "https://api.openai.com/v1", api_key=key, environment=environment)


class WindowFinder:
    """How much the model can take in: what the settings say, else what its server tells.

    The server is asked once, beside the first request: nobody waits for it.
    """

    def __init__(self, model: Model, name: str, settings: Settings, tell: Callable[[str], None]) -> None:
        self._known: int | None = settings.models.get(name, {}).get("contextWindow")
        self._ask: Callable[[str], Awaitable[Window | None]] | None = getattr(model, "context_window", None)
        self._name = name
        self._tell = tell
        self._asking: asyncio.Task[None] | None = None

    def __call__(self) -> int | None:
        if self._known is None and self._asking is None and self._ask is not None:
            self._asking = asyncio.ensure_future(self._find(self._ask))
        return self._known

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    async def _find(self, ask: Callable[[str], Awaitable[Window | None]]) -> None:
        found = await ask(self._name)
        if found is not None:
            self._known = found.tokens
            if found.warning:
                self._tell(found.warning)


class _NoModel:
    """No endpoint is known. Said when the first answer is wanted, since creating an agent needs none."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        from wave_agent.models.probe import advice  # lazy: looks at ports

        what = "Set WAVE_BASE_URL and WAVE_MODEL, and WAVE_API_KEY where the server wants a key."
        raise ModelError(f"No model is configured. {what} {await asyncio.to_thread(advice)}")
        yield

    async def close(self) -> None:
        pass
