"""`wave hooks`: a project's hooks, from the outside."""

import click

from wave_agent.cli.main import CommandSource, LazyGroup

COMMANDS = {
    "import": CommandSource("wave_agent.cli.hooks_import:import_hooks", "Copy hooks written for other agents"),
    "trust": CommandSource("wave_agent.cli.hooks_trust:trust", "Look at a project's hooks and trust them"),
}


@click.group(cls=LazyGroup, sources=COMMANDS)
def hooks() -> None:
    """Look after hooks

    Exit status: 0 fine, 1 an expectation or a finding failed, 2 usage.
    """
