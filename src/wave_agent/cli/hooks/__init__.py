"""`wave hooks`: a project's hooks, from the outside."""

import click

from wave_agent.cli.main import CommandSource, LazyGroup

COMMANDS = {
    "import": CommandSource("wave_agent.cli.hooks.import_hooks:import_hooks", "Copy hooks written for other agents"),
    "explain": CommandSource("wave_agent.cli.hooks.explain:explain", "Tell which hooks an event would run, and why"),
    "list": CommandSource(
        "wave_agent.cli.hooks.list_hooks:list_hooks", "List every hook, where it stands and how it is read"
    ),
    "schema": CommandSource("wave_agent.cli.hooks.schema:schema", "Print the JSON Schema of settings or hook JSON"),
    "test": CommandSource("wave_agent.cli.hooks.test:test", "Run hooks on an event and see what they do"),
    "backtest": CommandSource(
        "wave_agent.cli.hooks.backtest:backtest", "Replay recorded sessions against hooks as they are now"
    ),
    "stats": CommandSource("wave_agent.cli.hooks.stats:stats", "Tell what each hook has cost and done"),
    "trace": CommandSource("wave_agent.cli.hooks.trace:trace", "Show the life of a session on a time line"),
    "lint": CommandSource("wave_agent.cli.hooks.lint:lint", "Find mistakes in hooks and their scripts"),
    "new": CommandSource("wave_agent.cli.hooks.new:new", "Write a new hook: script, cases and settings"),
    "recipes": CommandSource("wave_agent.cli.hooks.recipes:recipes", "Show hooks to start from"),
    "trust": CommandSource("wave_agent.cli.hooks.trust:trust", "Look at a project's hooks and trust them"),
}


@click.group(cls=LazyGroup, sources=COMMANDS)
def hooks() -> None:
    """Look after hooks

    Exit status: 0 fine, 1 an expectation or a finding failed, 2 usage.
    """
