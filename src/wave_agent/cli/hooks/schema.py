"""`wave hooks schema`: JSON Schemas for editors and for checking hooks."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import click

from wave_agent.hooks.events import HookEvent
from wave_agent.workshop.sample_events import SubjectError, event_named
from wave_agent.workshop.schemas import input_schema, output_schema, settings_schema

OF_AN_EVENT: Mapping[str, Callable[[HookEvent], dict[str, Any]]] = {"input": input_schema, "output": output_schema}


@click.command()
@click.argument("what", type=click.Choice(["settings", *OF_AN_EVENT]), default="settings")
@click.argument("event", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print compact JSON on one line.")
def schema(what: str, event: str | None, as_json: bool) -> int:
    """Print the JSON Schema of settings or hook JSON

    Draft 2020-12. To get completion and validation of settings in your editor, write the schema to a file and refer to
    it as "$schema" in the settings.

    \b
    wave hooks schema > .wave/settings.schema.json
    wave hooks schema input PreToolUse       what a hook reads from stdin
    wave hooks schema output PreToolUse      what it may print
    """
    click.echo(json.dumps(_schema(what, event), indent=None if as_json else 2))
    return 0


def _schema(what: str, event: str | None) -> dict[str, Any]:
    make = OF_AN_EVENT.get(what)
    if make is None:
        if event is not None:
            raise click.UsageError("The settings are the same for all events.")
        return settings_schema()
    if event is None:
        raise click.UsageError(f"Name the event, such as: wave hooks schema {what} PreToolUse")
    try:
        return make(event_named(event))
    except SubjectError as error:
        raise click.UsageError(f"{error}.") from None
