"""The flags of `wave` as the options of an agent: what `Agent.create` builds from its arguments."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from wave_agent.agent.options import Options, locate_for
from wave_agent.rules.rule import RuleError, parse_rule

SESSION_ID = 36
"""Characters of a session's id."""


def options_from(flags: Mapping[str, Any]) -> Options:
    """What the flags ask for. Rules and switches become settings that the user named.

    Raises `SessionError` if the session to resume is not found.
    """
    named: dict[str, Any] = {
        "permissions": {
            "allow": _rules(flags["allowed_tools"]),
            "deny": _rules(flags["disallowed_tools"]),
            "additionalDirectories": [os.path.abspath(directory) for directory in flags["add_dirs"]],
        }
    }
    if flags["strict_hooks"]:
        named["strictHooks"] = True
    same = ("model", "base_url", "api", "permission_mode", "append_system_prompt", "trust", "trust_ref", "no_hooks")
    limits = ("max_turns", "max_cost", "max_output_tokens", "effort", "fallback_model")
    options = Options(
        **{
            name: flags[name]
            for name in (*same, *limits, "sandbox", "plugins", "resume", "mcp_config", "strict_mcp_config")
        },
        workdir=flags["cwd"],
        overlays=[*flags["settings"], named],
        project_hooks=not flags["no_project_hooks"],
    )
    if options.resume is None and not flags["go_on"]:
        return options
    if options.resume is not None and not 0 < len(options.resume) < SESSION_ID:
        return options
    from wave_agent.sessions.index import find_session, latest_session  # lazy: most sessions are new

    place, home = locate_for(options, os.environ)
    if options.resume is None:
        return replace(options, resume=latest_session(home, place.directory))
    return replace(options, resume=find_session(home, place.directory, options.resume).stem)


def check_rules(flags: Mapping[str, Any]) -> None:
    """Raises `click.UsageError` for an invalid rule: in a settings file it would be reported and ignored."""
    for flag, name in (("--allowed-tools", "allowed_tools"), ("--disallowed-tools", "disallowed_tools")):
        for rule in _rules(flags[name]):
            try:
                parse_rule(rule)
            except RuleError as error:
                from click import UsageError  # lazy: only to explain a mistake

                end = "" if str(error).endswith("?") else "."
                raise UsageError(f"{flag}: {error}{end}") from None


def _rules(values: Iterable[str]) -> list[str]:
    """Each value is a rule, or several with commas between them. A comma inside of parentheses belongs to its rule."""
    return [rule for value in values for rule in (_split(value) if "," in value else (value,))]


def _split(value: str) -> list[str]:
    parts, depth = [""], 0
    for character in value:
        depth += (character == "(") - (character == ")")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    parts = [part.strip() for part in parts if part.strip()]
    try:
        for part in parts:
            parse_rule(part)
    except RuleError:
        return [value]  # one rule whose parentheses do not match, or none
    return parts
