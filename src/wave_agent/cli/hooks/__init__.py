"""`wave hooks`: commands to write, test, check and manage hooks."""

import click

from wave_agent.cli.main import CommandSource, LazyGroup

COMMANDS = {
    "import": CommandSource("wave_agent.cli.hooks.import_hooks:import_hooks", "Copy hooks written for other agents"),
    "explain": CommandSource("wave_agent.cli.hooks.explain:explain", "Show which hooks an event would run, and why"),
    "list": CommandSource(
        "wave_agent.cli.hooks.list_hooks:list_hooks", "List every hook, where it is defined and how it is read"
    ),
    "schema": CommandSource(
        "wave_agent.cli.hooks.schema:schema", "Print or install the JSON Schema of settings or hook JSON"
    ),
    "test": CommandSource("wave_agent.cli.hooks.test:test", "Run hooks on an event and see what they do"),
    "backtest": CommandSource(
        "wave_agent.cli.hooks.backtest:backtest", "Replay recorded sessions against the current hooks"
    ),
    "stats": CommandSource("wave_agent.cli.hooks.stats:stats", "Show what each hook cost and did"),
    "export": CommandSource("wave_agent.cli.hooks.export:export", "Export hook runs, tool calls and sessions"),
    "report": CommandSource("wave_agent.cli.hooks.report_page:report", "Write a page with plots of what hooks did"),
    "trace": CommandSource("wave_agent.cli.hooks.trace:trace", "Show a session as a timeline"),
    "lint": CommandSource("wave_agent.cli.hooks.lint:lint", "Find mistakes in hooks and their scripts"),
    "new": CommandSource("wave_agent.cli.hooks.new:new", "Create a hook: script, cases and settings"),
    "recipes": CommandSource("wave_agent.cli.hooks.recipes:recipes", "Show hooks to start from"),
    "trust": CommandSource("wave_agent.cli.hooks.trust:trust", "Review a project's hooks and trust them"),
}


@click.group(cls=LazyGroup, sources=COMMANDS)
def hooks() -> None:
    """Test, check and manage hooks

    Exit status: 0 success, 1 an unmet expectation or a finding, 2 usage.
    """
