"""The guards in the user's own settings, as they were when an unattended session started.

The user's settings need no trust: a person may change them at any time. But if they differ when an unattended session
ends, or after it was killed, the next start asks whether the user changed them.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from wave_agent.errors import SettingsError
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.hooks.dialects import Dialect
from wave_agent.hooks.named_files import hook_files
from wave_agent.settings.hook_entries import SettingsSource, load_hooks
from wave_agent.settings.other_agents import as_foreign
from wave_agent.settings.places import ExtensionKind, read_source
from wave_agent.settings.trust import (
    SourceGuards,
    TrustStore,
    UserRecord,
    file_digest,
    fingerprint,
    holds,
    rest_digest,
    restrictions_of,
)
from wave_agent.system.orphans import guards_noted
from wave_agent.system.real_files import is_below
from wave_agent.text import reveal

_SCRIPTS = (".bash", ".cjs", ".js", ".mjs", ".php", ".pl", ".py", ".rb", ".sh", ".ts", ".zsh")
_MOST_FILES = 2_000
"""Files, and directories, compared in one directory of agents, skills or commands."""
_UNREADABLE = SourceGuards(rest="cannot be read")


def guards_in(
    sources: Iterable[SettingsSource], own: Path, project: str, claude_home: Path | None = None
) -> dict[str, SourceGuards]:
    """The guards to remember: from the user's own settings file, existing or not, and from those for other agents
    that are used. The user's agents, skills and commands are among them: they have hooks, or steer the model.
    `claude_home` is the user's directory for another agent, if what is in there is used."""
    found = {str(own): SourceGuards()}
    for home in (own.parent, *([] if claude_home is None else [claude_home])):
        found |= {_directory(home, kind): _texts_in(_directory(home, kind)) for kind in ExtensionKind}
    return found | {source.name: _guards_of(source, project) for source in sources if source.layer is Layer.USER}


def _directory(home: Path, kind: ExtensionKind) -> str:
    return f"{home / kind}{os.sep}"


def _texts_in(directory: str) -> SourceGuards:
    """The files in a directory of agents, skills or commands. Links are followed: what they lead to is used."""
    if not os.path.isdir(directory):
        return SourceGuards()
    places = islice(os.walk(directory, followlinks=True), _MOST_FILES)  # links may lead round in circles
    listed = sorted(islice((os.path.join(base, name) for base, _, names in places for name in names), _MOST_FILES + 1))
    found = {path: file_digest(path) for path in listed[:_MOST_FILES]}
    return SourceGuards(
        hooks={f"{path} {digest}": os.path.relpath(path, directory) for path, digest in found.items()},
        rest="more than are compared" if len(listed) > _MOST_FILES else "",
    )


def guards_now(
    before: Mapping[str, SourceGuards], own: Path, project: str, sources: Iterable[SettingsSource] = ()
) -> dict[str, SourceGuards]:
    """The same files as they are now. `sources` have just been read, so they are not read again."""
    known = {source.name: source for source in sources if source.layer is Layer.USER}
    return {file: _look(file, one, str(own), project, known.get(file)) for file, one in before.items()}


def _look(file: str, before: SourceGuards, own: str, project: str, source: SettingsSource | None) -> SourceGuards:
    if file.endswith(os.sep):
        return _texts_in(file)
    try:
        found = source or _read(file, own)
    except SettingsError:
        return _UNREADABLE
    guards = SourceGuards() if found is None else _guards_of(found, project)
    return replace(guards, files={path: file_digest(path) for path in before.files})


def _read(file: str, own: str) -> SettingsSource | None:
    found = read_source(Layer.USER, Path(file))
    return found if found is None or file == own else as_foreign(found)


def _guards_of(source: SettingsSource, project: str) -> SourceGuards:
    hooks = [hook for hook in load_hooks([source]).hooks if hook.enabled]
    files = {path for hook in hooks for path in hook_files(hook, project) if _is_script(path, hook, project)}
    return SourceGuards(
        hooks={fingerprint(hook, source): f"{hook.event}: {hook.shown_command}" for hook in hooks},
        rules=tuple(rule for rules in restrictions_of([source], project).values() for rule in rules),
        # Other agents write to their own settings while they work.
        rest=rest_digest(source) if source.dialect is Dialect.WAVE else "",
        files={path: file_digest(path) for path in sorted(files)},
    )


def _is_script(path: str, hook: HookDefinition, project: str) -> bool:
    """Whether the hook runs this file, rather than just receiving it as an argument, such as a log. Files in the
    project change with the work there and are not included."""
    if is_below(path, project):
        return False
    runs = hook.command.split(None, 1)[0].strip("\"'") if hook.command.strip() else ""
    return path.endswith(_SCRIPTS) or os.path.basename(path) == os.path.basename(runs)


def changes(
    before: Mapping[str, SourceGuards], now: Mapping[str, SourceGuards], confirmed: Mapping[str, str]
) -> list[str]:
    """Descriptions of the differences, except in files that a person has `confirmed` in their current state."""
    found: list[str] = []
    for file, was in before.items():
        if now[file] != was and digest_of_guards(now[file]) != confirmed.get(file):
            found += [f"{one} ({file})" for one in _differences(was, now[file])]
    return list(dict.fromkeys(found))


def _differences(was: SourceGuards, now: SourceGuards) -> list[str]:
    found = [f"removed or disabled: {name}" for key, name in was.hooks.items() if key not in now.hooks]
    found += [f"removed: the rule {rule}" for rule in was.rules if not holds(rule, now.rules)]
    found += [
        f"{'removed' if now.files.get(path) is None else 'changed'}: {path}"
        for path, digest in was.files.items()
        if now.files.get(path) != digest
    ]
    found += [f"new: {name}" for key, name in now.hooks.items() if key not in was.hooks]
    found += ["changed: settings other than hooks and rules"] if now.rest != was.rest and now.rest else []
    return found


def digest_of_guards(guards: SourceGuards) -> str:
    import hashlib  # lazy: only needed after a change

    return hashlib.sha256(msgspec.json.encode(guards, order="sorted")).hexdigest()


class UserVigil:
    """Watches the user's own settings during an unattended session. Never raises."""

    def __init__(self, home: Path, project: str, before: Mapping[str, SourceGuards]) -> None:
        """`before` are their guards when the session started; empty if nothing is to be watched."""
        self._home, self._project, self._before = home, project, before

    def end(self) -> str:
        """What changed; empty if nothing. The change is stored until a person confirms it."""
        store = TrustStore(self._home)
        with suppress(SettingsError):
            known = store.user
            now = guards_now(self._before, own_file(self._home), self._project)
            if changes(self._before, now, known.confirmed):
                store.remember_user(replace(known, before={**self._before, **known.before}))
                return "your own settings were changed while a session ran unattended"
        return ""


def own_file(home: Path) -> Path:
    return home / "settings.json"


def user_alarms(home: Path, project: str, sources: Iterable[SettingsSource] = ()) -> list[str]:
    """Changes to the user's own settings by unattended sessions that no person has confirmed yet. `sources` are the
    settings that have just been read.

    The guards from the start of a killed session are stored, since its own note is deleted at the next start. Raises
    `SettingsError`.
    """
    store = TrustStore(home)
    known = store.user
    begun = [known.before, *noted(guards_noted(home))]
    own = own_file(home)
    read = [*sources]
    changed = [one for one in begun if changes(one, guards_now(one, own, project, read), known.confirmed)]
    kept = {file: guards for one in reversed(changed) for file, guards in one.items()}
    with suppress(SettingsError):  # below an agent nothing is stored
        store.remember_user(replace(known, before=kept))
    found = changes(kept, guards_now(kept, own, project, read), known.confirmed)
    return [reveal(f"your own settings, while a session ran unattended: {one}") for one in found]


def confirm_user(home: Path, project: str) -> None:
    """A person has reviewed the changes. Raises `SettingsError`."""
    store = TrustStore(home)
    before: dict[str, SourceGuards] = {}
    for begun in (*noted(guards_noted(home)), store.user.before):
        before |= begun
    if before:
        now = guards_now(before, own_file(home), project)
        store.remember_user(UserRecord(confirmed={file: digest_of_guards(one) for file, one in now.items()}))


def noted(facts: Iterable[Any]) -> list[dict[str, SourceGuards]]:
    """The guards other sessions started with, from their notes. Unreadable notes are ignored."""
    found: list[dict[str, SourceGuards]] = []
    for one in facts:
        try:
            found.append(msgspec.convert(one, type=dict[str, SourceGuards]))
        except msgspec.ValidationError:
            continue
    return found
