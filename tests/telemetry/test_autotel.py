"""A receiver that others wrote: npm's `autotel-devtools`, which `make test-otel` installs."""

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project
from wave_agent.testing import RecordingModelServer, Reply, call

INSTALLED = os.environ.get("WAVE_AUTOTEL", "")
"""The path of Node, a colon, and that of the receiver's program."""
pytestmark = pytest.mark.skipif(not INSTALLED, reason="needs npm's autotel-devtools: make test-otel")


@pytest.fixture
def receiver() -> Iterator[str]:
    node, _, program = INSTALLED.partition(":")
    command = [node, program, "--host", "127.0.0.1", "--port", "24318", "--grpc-port", "24317"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        said = iter(process.stdout.readline, "")
        yield next(found[1] for line in said if (found := re.search(r"OTLP:\s+(http://\S+)/v1/traces", line)))
    finally:
        process.terminate()
        process.communicate(timeout=10)


def read_back(url: str) -> list[dict[str, Any]]:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(f"{url}/v1/traces", timeout=10) as response:
        return json.load(response)["traces"]


def test_it_reads_back_the_trace_of_a_session(receiver: str, tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.settings({"hooks": {"PreToolUse": [{"command": "true", "name": "guard"}]}})
    replies = [Reply(tool_calls=[call("Bash", command="true")]), "Done."]
    with RecordingModelServer.in_thread(replies) as server:
        done = project.wave(
            *("-p", "canary-7f3a", "--trust", "--permission-mode", "bypassPermissions"),
            server=server,
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver,
        )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    [trace] = read_back(receiver)
    names = {span["spanId"]: span["name"] for span in trace["spans"]}
    assert sorted((span["name"], names.get(span.get("parentSpanId"))) for span in trace["spans"]) == [
        ("chat test", "invoke_agent wave"),
        ("chat test", "invoke_agent wave"),
        ("execute_tool Bash", "invoke_agent wave"),
        ("invoke_agent wave", None),
        ("wave.hook PreToolUse", "execute_tool Bash"),
    ]
    assert "canary-7f3a" not in json.dumps(trace)
