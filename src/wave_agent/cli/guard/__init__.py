"""`wave guard`: hooks and rules of a project, enforced in other agents."""

import click

from wave_agent.cli.main import CommandSource, LazyGroup

COMMANDS = {
    "doctor": CommandSource("wave_agent.cli.guard.doctor:doctor", "Check that the installed guard answers and denies"),
    "install": CommandSource("wave_agent.cli.guard.install:install", "Install the guard in another agent"),
    "log": CommandSource("wave_agent.cli.guard.log:log", "Show what the guard decided in other agents"),
    "status": CommandSource(
        "wave_agent.cli.guard.status:status", "Show where the guard is installed and what is enforced"
    ),
    "uninstall": CommandSource("wave_agent.cli.guard.install:uninstall", "Remove the guard from another agent"),
    "run": CommandSource("wave_agent.cli.guard.run:run", "Judge one event of another agent"),
}


@click.group(cls=LazyGroup, sources=COMMANDS)
def guard() -> None:
    """Enforce your hooks and rules in other agents

    HOST is claude, codex, gemini, qwen, kimi or vibe; cursor, copilot and opencode are experimental. The hooks, rules
    and trust of .wave/settings.json then apply in that agent too.

    Exit status: 0 success, 1 a finding, 2 usage; wave guard run answers as its host expects.
    """
