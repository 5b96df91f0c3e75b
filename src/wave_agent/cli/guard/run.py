"""`wave guard run`: what a host calls for each event."""

import os

import click

from wave_agent.agent.options import wave_home
from wave_agent.cli.guard.options import host_argument
from wave_agent.guard.run import TIMEOUT, Asked, run_once


@click.command()
@host_argument
@click.argument("event")
@click.option("--timeout", type=click.FloatRange(min=1), default=TIMEOUT, help="The host's own timeout, in seconds.")
@click.option("--pass-allow", is_flag=True, help="Also pass on what your hooks and rules allow.")
@click.option("--trust-ref", metavar="REF", help="Trust only hooks as they are at this git ref.")
@click.option("--resident", is_flag=True, hidden=True, help="Start the resident guard, for the events after this one.")
def run(*, host: str, event: str, timeout: float, pass_allow: bool, trust_ref: str | None, resident: bool) -> int:
    """Judge one event of another agent

    Reads the event from stdin in the form of HOST, judges it with your hooks, rules and protected paths, and answers in
    the form that HOST enforces. Prints nothing if there is nothing to object to. wave guard install puts this command
    into the settings of HOST; run it yourself to see what an agent would get.

    Denies if the event cannot be read or judged in time, and if the project's hooks are not trusted.

    \b
    echo '{"tool_name": "Bash", "tool_input": {"command": "git push"}}' | wave guard run claude PreToolUse
    """
    asked = Asked(
        host=host,
        name=event,
        directory=os.getcwd(),
        environment=os.environ,
        timeout=timeout,
        pass_allow=pass_allow,
        trust_ref=trust_ref,
    )
    return run_once(asked, _start_resident if resident else lambda: None)


def _start_resident() -> None:
    from wave_agent.guard.resident import can_be_resident, start  # lazy: not needed for the answer

    if can_be_resident() and os.environ.get("WAVE_GUARD_RESIDENT") != "off":
        start(wave_home(os.environ))
