"""The hooks in the definitions of a project's subagents: they need trust like the hooks in its settings.

Trust in a definition covers its text. Trust in its hooks also covers the files that they name and the programs that
they run.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

from wave_agent.formats.front_matter import FrontMatterError, parse_front_matter
from wave_agent.hooks.dialects import Dialect
from wave_agent.settings.agent_definitions import DefinitionSource, hooks_as_settings
from wave_agent.settings.extension_files import FoundExtension
from wave_agent.settings.extensions import why_untrusted
from wave_agent.settings.hook_entries import SettingsSource
from wave_agent.settings.places import OF_THE_PROJECT, ExtensionKind
from wave_agent.settings.trust import Digest, Record, TrustCandidate, candidates


def definition_candidates(
    texts: Iterable[FoundExtension],
    project: str,
    digest: Digest,
    *,
    path: str | None = None,
    digest_of_program: Digest | None = None,
) -> tuple[TrustCandidate, ...]:
    """The hooks in the project's definitions among these: see `candidates`."""
    theirs = [one for one in texts if one.place.layer in OF_THE_PROJECT]
    return tuple(
        candidate
        for source in definition_sources(theirs)  # each by itself: they never run together
        for candidate in candidates([source], project, digest, path=path, digest_of_program=digest_of_program)
    )


def definition_sources(texts: Iterable[FoundExtension]) -> Iterator[SettingsSource]:
    """The hooks of each definition in the form of settings. One that cannot be used is skipped, and reported when it is
    loaded."""
    for one in texts:
        if one.place.kind is ExtensionKind.AGENTS and not one.problem:
            with suppress(UnicodeDecodeError, FrontMatterError):
                if (source := hooks_in_definition(one)) is not None:
                    yield source


def hooks_in_definition(found: FoundExtension) -> SettingsSource | None:
    """None if it has none. Raises `UnicodeDecodeError` and `FrontMatterError`."""
    place = found.place
    front = parse_front_matter(found.content.decode(), forgiving=place.dialect is not Dialect.WAVE)
    events: Any = front.values.get("hooks")
    if not isinstance(events, Mapping):
        return None
    source = DefinitionSource(
        name=found.path, layer=place.layer, dialect=place.dialect, lines=front.document.lines, inner=place.inner
    )
    return hooks_as_settings(str(front.values.get("name") or found.stem), cast(Mapping[str, Any], events), source)


def of_trusted_texts(
    found: Iterable[TrustCandidate], texts: Iterable[FoundExtension], record: Record, project: str
) -> list[TrustCandidate]:
    """The hooks whose definitions are trusted. Others are left out together with their definition."""
    why_not = why_untrusted(record, project)
    trusted = {one.path for one in texts if why_not(one) is None}
    return [one for one in found if one.hook.source in trusted]
