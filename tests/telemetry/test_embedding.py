"""A program that has set up OpenTelemetry itself, and embeds the agent. Each runs in a process of its own: a provider
can be set once."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.telemetry.receiver import receiving

SECRET = "AKIA" + "ABCDEFGHIJKLMNOP"
PROGRAM = """
import asyncio, json, os, sys, threading
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call

exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
{setup}
before = trace.get_tracer_provider()

async def main():
    replies = [Reply(tool_calls=[call("Bash", command="echo $TRACEPARENT")]), "Done."]
    async with await Agent.create(
        model_client=ScriptedModel(replies), permission_mode="bypassPermissions", setting_sources=["user"],
        hooks={{"Stop": ["exit 1"]}},
    ) as agent:
        with trace.get_tracer("program").start_as_current_span("the program's"):
            result = await agent.send_message("canary-7f3a")
        return result.messages[1].blocks[0].result

said = asyncio.run(main())
data = reader.get_metrics_data() if {has_reader} else None
json.dump({{
    "said": said,
    "spans": [
        [one.name, one.context.span_id, one.parent and one.parent.span_id, one.status.status_code.name]
        for one in exporter.get_finished_spans()
    ],
    "attributes": [str(dict(one.attributes)) for one in exporter.get_finished_spans()],
    "metrics": sorted(
        metric.name
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ),
    "threads": [one.name for one in threading.enumerate()],
    "same": trace.get_tracer_provider() is before,
}}, sys.stdout)
"""
BOTH = """
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
metrics.set_meter_provider(MeterProvider([reader]))
"""


def run(directory: Path, setup: str = BOTH, **environment: str) -> dict[str, Any]:
    found, complaints = ran(directory, PROGRAM.format(setup=setup, has_reader="reader" in setup), **environment)
    assert complaints == ""
    return found


def ran(directory: Path, program: str, **environment: str) -> tuple[dict[str, Any], str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TRACE", "WAVE", "COV"))}
    done = subprocess.run(
        [sys.executable, "-"],
        input=program,
        cwd=directory,
        env={**kept, "WAVE_HOME": str(directory / "home"), "NO_PROXY": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_spans_and_metrics_go_through_the_programs_providers(tmp_path: Path) -> None:
    found = run(tmp_path)
    ids = {name: own for name, own, _, _ in found["spans"]}
    parents = {(name, parent) for name, _, parent, _ in found["spans"]}
    assert parents == {
        ("the program's", None),
        ("invoke_agent wave", ids["the program's"]),
        ("chat", ids["invoke_agent wave"]),
        ("execute_tool Bash", ids["invoke_agent wave"]),
        ("wave.hook Stop", ids["invoke_agent wave"]),
    }
    assert [status for name, _, _, status in found["spans"] if name == "wave.hook Stop"] == ["ERROR"]
    assert f"{ids['execute_tool Bash']:016x}" in found["said"]
    assert {"wave.sessions", "wave.tool.decisions", "gen_ai.client.operation.duration"} <= set(found["metrics"])
    assert "wave-telemetry" not in found["threads"]
    assert "canary-7f3a" not in str(found["attributes"])
    assert found["same"]


@pytest.mark.parametrize(
    ("setup", "spans", "metrics"),
    [
        pytest.param("", False, False, id="no provider"),
        pytest.param("metrics.set_meter_provider(MeterProvider([reader]))", False, True, id="only metrics"),
    ],
)
def test_what_the_program_has_not_set_up_stays_off(setup: str, spans: bool, metrics: bool, tmp_path: Path) -> None:
    found = run(tmp_path, setup)
    assert (bool(found["spans"]), bool(found["metrics"])) == (spans, metrics)
    assert found["said"] == "(no output)"  # no traceparent
    assert found["same"]


def test_the_sdk_can_be_disabled(tmp_path: Path) -> None:
    assert run(tmp_path, OTEL_SDK_DISABLED="true")["spans"] == []


def test_without_a_provider_an_endpoint_is_used_and_no_provider_is_set(tmp_path: Path) -> None:
    with receiving() as receiver:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "settings.json").write_text(json.dumps({"telemetry": {"endpoint": receiver.url}}))
        found = run(tmp_path, "")
    assert found["same"]
    assert found["spans"] == []
    assert receiver.span("invoke_agent wave").parent_id == ""


@pytest.mark.parametrize("characters", [10, 200_000])
def test_long_content_is_masked_aside_and_all_is_there_when_the_agent_is_closed(
    tmp_path: Path, characters: int
) -> None:
    notes_threads = """
from opentelemetry.sdk.trace import SpanProcessor
class Notes(SpanProcessor):
    def on_end(self, span):
        print(span.name, threading.current_thread() is threading.main_thread(), file=sys.__stderr__)
"""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.json").write_text(json.dumps({"telemetry": {"content": True}}))
    setup = notes_threads + BOTH.replace("trace.set", "provider.add_span_processor(Notes())\ntrace.set")
    program = PROGRAM.replace("canary-7f3a", f"{SECRET} {'word ' * (characters // 5)}")
    found, notes = ran(tmp_path, program.format(setup=setup, has_reader=True))
    ended_here = dict(line.rsplit(" ", 1) for line in notes.splitlines())
    assert ended_here["invoke_agent wave"] == str(characters < 1000)
    assert len(found["spans"]) == len(notes.splitlines()) == 6
    assert "[masked: an AWS key]" in str(found["attributes"])
    assert SECRET not in str(found["attributes"])


def test_a_processor_of_the_program_that_fails_costs_only_spans(tmp_path: Path) -> None:
    fails = """
from opentelemetry.sdk.trace import SpanProcessor
class Fails(SpanProcessor):
    def on_start(self, span, parent_context=None):
        if span.name != "the program's":
            raise ValueError("a bug of the program")
provider.add_span_processor(Fails())
"""
    found = run(tmp_path, BOTH + fails)
    assert [name for name, *_ in found["spans"]] == ["the program's"]
    assert found["said"] == "(no output)"
    assert "wave.sessions" in found["metrics"]
