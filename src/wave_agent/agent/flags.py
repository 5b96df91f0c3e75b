"""The command-line flags and what they mean for an agent: shared by `wave -p` and the screen."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.options import Options, Overlay, locate_for
from wave_agent.agent.result import Callbacks
from wave_agent.events import Event
from wave_agent.sessions.index import find_session, latest_session

WHOLE = 36
"""Length of a session id, in characters."""


class Flags(Struct, frozen=True, kw_only=True):
    """The command-line flags, as passed."""

    prompt: str = ""
    output_format: str = "text"
    model: str | None = None
    base_url: str | None = None
    settings: Sequence[str] = ()
    permission_mode: str | None = None
    allowed_tools: Sequence[str] = ()
    disallowed_tools: Sequence[str] = ()
    add_dirs: Sequence[str] = ()
    max_turns: int | None = None
    append_system_prompt: str = ""
    cwd: str | None = None
    trust: bool = False
    trust_ref: str | None = None
    no_project_hooks: bool = False
    no_hooks: bool = False
    strict_hooks: bool = False
    sandbox: bool = False
    plugins: Sequence[str] = ()
    resume: str | None = None
    go_on: bool = False
    """Resume the latest session."""
    debug_hooks: bool = False


def options(flags: Flags, on_event: Callable[[Event], None]) -> Options:
    """The agent options for these flags. Rules and switches become settings named by the user."""
    named: dict[str, Any] = {
        "permissions": {
            "allow": list(flags.allowed_tools),
            "deny": list(flags.disallowed_tools),
            "additionalDirectories": [os.path.abspath(directory) for directory in flags.add_dirs],
        }
    }
    if flags.strict_hooks:
        named["strictHooks"] = True
    overlays: list[Overlay] = [*flags.settings, named]
    chosen = Options(
        workdir=flags.cwd,
        model=flags.model,
        base_url=flags.base_url,
        permission_mode=flags.permission_mode,
        callbacks=Callbacks(on_event=on_event),
        overlays=overlays,
        append_system_prompt=flags.append_system_prompt,
        trust=flags.trust,
        trust_ref=flags.trust_ref,
        project_hooks=not flags.no_project_hooks,
        no_hooks=flags.no_hooks,
        sandbox=flags.sandbox,
        plugins=flags.plugins,
        max_turns=flags.max_turns,
        resume=flags.resume,
    )
    is_short = flags.resume and len(flags.resume) < WHOLE
    if not is_short and (flags.resume is not None or not flags.go_on):
        return chosen
    place, home = locate_for(chosen, os.environ)
    if flags.resume is not None:
        return replace(chosen, resume=find_session(home, place.directory, flags.resume).stem)
    return replace(chosen, resume=latest_session(home, place.directory))
