"""`/skills` and `/agents`: what is loaded, from where, and what was left out and why."""

from collections.abc import Iterable, Iterator

from textual.content import Content

from wave_agent.screen.hooks_view import HookRow
from wave_agent.screen.plain import plain
from wave_agent.settings.extensions import ExtensionFile, Extensions, UnusedExtension
from wave_agent.settings.places import ExtensionKind
from wave_agent.text import one_line, reveal


def extension_rows(
    extensions: Extensions | None, kinds: Iterable[ExtensionKind], built_in: Iterable[tuple[str, str]] = ()
) -> list[HookRow]:
    """Those of these kinds. `built_in` are the names and descriptions of what the program itself brings."""
    rows = [_built_in(name, about, extensions) for name, about in built_in]
    if extensions is None:
        return rows
    for kind in kinds:
        rows += [_used(one) for one in extensions.files if one.kind is kind]
        rows += [
            _row(both.file.name, "not used", f"another one has this name: {both.by.path}", _facts(both.file))
            for both in extensions.shadowed
            if both.file.kind is kind
        ]
        rows += [_left_out(one) for one in extensions.unused if one.kind is kind]
    return rows


def _built_in(name: str, about: str, extensions: Extensions | None) -> HookRow:
    files = () if extensions is None else extensions.files
    instead = next((one for one in files if one.kind is ExtensionKind.AGENTS and one.name.casefold() == name), None)
    if instead is None:
        unused = () if extensions is None else extensions.unused
        missing = next((one for one in unused if name in map(str.casefold, one.types)), None)
        if missing is None:
            return _row(name, "built in", about, ())
        why = f"{missing.path} replaces it, but cannot be used"
        return _row(name, "not used", why, [("built in", about), ("instead", missing.path)])
    why = f"the built-in one is replaced: {instead.path}"
    return _row(name, "not used", why, [("built in", about), ("instead", instead.path)])


def _used(one: ExtensionFile) -> HookRow:
    name = (
        one.name if one.kind is ExtensionKind.AGENTS or not one.flag("user-invocable", default=True) else f"/{one.name}"
    )
    return _row(name, one.what, one.description, _facts(one))


def _left_out(one: UnusedExtension) -> HookRow:
    why = f"{one.why}: wave hooks trust" if one.untrusted else f"it {one.why}"
    return _row(one.path, "not used", why, [("file", one.path), ("problem", why)])


def _facts(one: ExtensionFile) -> Iterator[tuple[str, str]]:
    yield "from", f"{one.layer} ({one.path})"
    for key, value in one.front.items():
        yield key, one_line(str(value), 500)
    if one.others:
        yield "files", f"{len(one.others)} more"


def _row(name: str, state: str, about: str, facts: Iterable[tuple[str, str]]) -> HookRow:
    line = Content.assemble(
        plain(f"{one_line(name, 30):<31}", "bold"),
        plain(f"{state:<10}", "$text-warning" if state == "not used" else "$text-accent"),
        plain(one_line(about, 80)),
    )
    lines = [
        Content.assemble(plain(f"{one_line(key, 24):>10}  ", "$muted"), plain(reveal(text)))
        for key, text in facts
        if text
    ]
    return HookRow(line, Content("\n").join(lines) if lines else plain(about))
