"""The flags of `wave` as the options of an agent: what `Agent.create` builds from its arguments."""

import os
from collections.abc import Mapping
from typing import Any

import click
from msgspec.structs import replace

from wave_agent.agent.options import Options, locate_for
from wave_agent.rules.rule import Purpose, RuleError, parse_rule
from wave_agent.sessions.index import find_session, latest_session

SESSION_ID = 36
"""Characters of a session's id."""


def options_from(flags: Mapping[str, Any]) -> Options:
    """What the flags ask for. Rules and switches become settings that the user named.

    Raises `SessionError` if the session to resume is not found.
    """
    named: dict[str, Any] = {
        "permissions": {
            "allow": list(flags["allowed_tools"]),
            "deny": list(flags["disallowed_tools"]),
            "additionalDirectories": [os.path.abspath(directory) for directory in flags["add_dirs"]],
        }
    }
    if flags["strict_hooks"]:
        named["strictHooks"] = True
    same = ("model", "base_url", "permission_mode", "append_system_prompt", "trust", "trust_ref", "no_hooks", "sandbox")
    options = Options(
        **{name: flags[name] for name in (*same, "plugins", "max_turns", "resume")},
        workdir=flags["cwd"],
        overlays=[*flags["settings"], named],
        project_hooks=not flags["no_project_hooks"],
    )
    if options.resume is None and not flags["go_on"]:
        return options
    if options.resume is not None and not 0 < len(options.resume) < SESSION_ID:
        return options
    place, home = locate_for(options, os.environ)
    if options.resume is None:
        return replace(options, resume=latest_session(home, place.directory))
    return replace(options, resume=find_session(home, place.directory, options.resume).stem)


def check_rules(flags: Mapping[str, Any]) -> None:
    """Raises `click.UsageError` for an invalid rule: in a settings file it would be reported and ignored."""
    for flag, name, purpose in (
        ("--allowed-tools", "allowed_tools", Purpose.PERMIT),
        ("--disallowed-tools", "disallowed_tools", Purpose.RESTRICT),
    ):
        for rule in flags[name]:
            try:
                parse_rule(rule, purpose)
            except RuleError as error:
                raise click.UsageError(f"{flag}: {error}.") from None
