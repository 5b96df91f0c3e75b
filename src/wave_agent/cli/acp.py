"""`wave acp`: the agent in an editor, over the Agent Client Protocol."""

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from wave_agent.agent.options import Options
from wave_agent.cli.flags import check_rules, options_from
from wave_agent.cli.main import wave
from wave_agent.cli.quick import DEFAULTS, complain
from wave_agent.errors import SettingsError
from wave_agent.system.ancestry import handed_down
from wave_agent.system.extras import install_extra
from wave_agent.text import strip_controls

NOT_HERE = frozenset(
    {"prompt", "output_format", "cwd", "no_hooks", "go_on", "resume", "plain", "debug_topics", "version", "help"}
)
"""Options of `wave` that the editor decides, or that need a terminal."""


def serve_editor(**flags: Any) -> int:
    serve = _server()
    check_rules(flags)
    environment = dict(os.environ)
    if handed_down(environment):  # the agent itself would answer its questions
        raise SettingsError("wave acp needs an editor with a person, but another agent started it. Use wave -p.")
    options = options_from({**DEFAULTS, **flags})
    streams: tuple[Any, Any] = (sys.stdin, sys.stdout)  # None if the caller closed them
    if None in streams:
        raise SettingsError("wave acp speaks to an editor on stdin and stdout, and one of them is closed.")
    if sys.stdin.isatty():
        complain("waiting for an editor's messages, one JSON object a line. See wave acp --help; Ctrl-D ends.")
    return serve(options, environment, lambda line: complain(strip_controls(line)))


def _server() -> Callable[[Options, Mapping[str, str], Callable[[str], None]], int]:
    try:
        from wave_agent.acp.server import serve  # lazy: the SDK takes half a second to load
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "acp":
            raise SettingsError(f"Editors need the extra: {install_extra('acp')}") from None
        raise
    return serve


acp = click.Command(
    "acp",
    callback=serve_editor,
    params=[one for one in wave.params if one.name not in NOT_HERE],
    help="""Work in an editor, over the Agent Client Protocol

    Your editor starts this like a language server, and talks to it over stdin and stdout. Needs the extra:
    pip install 'wave-agent[acp]'. In Zed's settings.json:

    \b
    {"agent_servers": {"Wave": {"type": "custom", "command": "wave", "args": ["acp"]}}}

    The editor shows what the agent says, plans and changes, and asks you when a hook, a rule or the permission mode
    asks. Hooks, rules, trust, model and sandbox are those of wave. A project with hooks that are not trusted yet is
    refused until you run wave hooks trust in it, or add --trust or --no-project-hooks to the args.

    Exit status: 0 the editor closed the connection, 1 failed, 2 usage, 130, 143 or 129 ended by a signal.
    """,
)
