"""`wave guard`: hooks and rules of a project, enforced in other agents."""

import click

from wave_agent.cli.main import CommandSource, LazyGroup

COMMANDS = {
    "run": CommandSource("wave_agent.cli.guard.run:run", "Judge one event of another agent"),
}


@click.group(cls=LazyGroup, sources=COMMANDS)
def guard() -> None:
    """Enforce your hooks and rules in other agents

    HOST is claude, codex, gemini, qwen, kimi or vibe; cursor, copilot and opencode are experimental. The hooks, rules
    and trust of .wave/settings.json then apply in that agent too.

    Exit status: 0 success, 1 a finding, 2 usage; wave guard run answers as its host expects.
    """
