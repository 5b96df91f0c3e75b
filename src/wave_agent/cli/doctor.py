"""`wave doctor`: check that everything a session needs is in place."""

import asyncio
import json
from collections.abc import Callable

import click

from wave_agent.agent.model_choice import ModelWishes
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.models.apis import APIS
from wave_agent.text import strip_controls
from wave_agent.workshop.doctor import CheckedSession, CheckResult, examine


@click.command()
@cwd_option
@click.option("--model", metavar="NAME", help="The model to use (WAVE_MODEL).")
@click.option("--base-url", metavar="URL", help="The endpoint (WAVE_BASE_URL).")
@click.option("--api", metavar="API", type=click.Choice(APIS), help="The endpoint's API (WAVE_API).")
@json_option
def doctor(cwd: str | None, model: str | None, base_url: str | None, api: str | None, as_json: bool) -> int:
    """Check settings, hooks, sandbox, telemetry, endpoint and model

    Reads all settings, looks for problems that would keep hooks from starting, and sends the model two short prompts:
    one for an answer, one for a tool call. Exit status 1 if a check fails. On the screen, /doctor does the same.
    """
    session = CheckedSession(cwd=cwd, model=model, wishes=ModelWishes(base_url=base_url, api=api))
    findings = asyncio.run(_all(session, _silent if as_json else _show))
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in findings]))
    return 1 if any(finding.status == "failed" for finding in findings) else 0


async def _all(session: CheckedSession, tell: Callable[[CheckResult], None]) -> list[CheckResult]:
    findings: list[CheckResult] = []
    async for finding in examine(session):
        findings.append(finding)
        tell(finding)
    return findings


def _show(finding: CheckResult) -> None:
    mark = {"ok": "ok", "warning": "!!", "failed": "NO", "skipped": "--"}[finding.status]
    click.echo(f"{mark}  {finding.check:<12} {strip_controls(finding.detail)}")
    if finding.fix:
        click.echo(f"{'':<17}{strip_controls(finding.fix)}")


def _silent(_: CheckResult) -> None:
    pass
