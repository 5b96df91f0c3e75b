"""`disableAllHooks` in settings: which hooks it disables, depending on whose settings they are.

A project, a plugin or a file named on the command line can only disable the hooks that it brings along, and nothing but
managed settings disables managed hooks. So none of them can remove a guard that someone else has put there.
"""

from collections.abc import Iterable, Mapping

from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.hooks.dialects import Dialect
from wave_agent.settings.hook_entries import SettingsSource, load_hooks
from wave_agent.settings.layers import without_hooks
from wave_agent.text import reveal

KEY = "disableAllHooks"
REACH: Mapping[Layer, frozenset[Layer]] = {
    Layer.MANAGED: frozenset(Layer),
    Layer.USER: frozenset({Layer.USER, Layer.PROJECT, Layer.LOCAL}),
}
"""The layers whose hooks a layer can disable. Others can disable only those in the same file."""


class DisabledHooks:
    """What the settings of one start disable, and which hooks that was."""

    def __init__(self, sources: Iterable[SettingsSource]) -> None:
        self._layers: dict[Layer, str] = {}
        """Layers that are disabled as a whole, with the file that says so."""
        self._found: dict[str, list[HookDefinition]] = {}
        for source in sources:
            # Settings for other agents speak for themselves only.
            if _disables(source) and source.dialect is Dialect.WAVE:
                self._layers |= dict.fromkeys(REACH.get(source.layer, ()), source.name)

    @property
    def layers(self) -> frozenset[Layer]:
        """Those whose hooks are all disabled."""
        return frozenset(self._layers)

    def take(self, sources: Iterable[SettingsSource]) -> list[SettingsSource]:
        """These settings without their disabled hooks."""
        return [self._taken(source) for source in sources]

    def _taken(self, source: SettingsSource) -> SettingsSource:
        by = self._layers.get(source.layer) or (source.name if _disables(source) else None)
        if by is None:
            return source
        self._found.setdefault(by, []).extend(load_hooks([source]).hooks)
        return without_hooks(source)

    @property
    def hooks(self) -> tuple[HookDefinition, ...]:
        """Those that were taken away so far."""
        return tuple(hook for hooks in self._found.values() for hook in hooks)

    @property
    def notices(self) -> list[str]:
        """For the user and the transcript."""
        return [
            f"{KEY} in {file}: these hooks do not run in this session: {_names(hooks)}. Rules still apply."
            for file, hooks in self._found.items()
        ]


def _disables(source: SettingsSource) -> bool:
    """Anything but `true` is reported when the settings are merged, and disables nothing."""
    return source.document.value.get(KEY) is True


def _names(hooks: Iterable[HookDefinition]) -> str:
    return ", ".join(reveal(f"{hook.name} ({hook.event})") for hook in hooks) or "there are none"
