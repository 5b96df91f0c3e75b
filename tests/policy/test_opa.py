"""The policy in docs/policy.md on a real Open Policy Agent: fetched as a bundle, asked by a hook, its decisions logged.

Opt-in: `make test-opa` installs the server.
"""

import gzip
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.test_http_hooks import free_port
from tests.test_docs import ROOT, blocks
from tests.waiting import until
from wave_agent import Agent
from wave_agent.agent.result import Result
from wave_agent.testing import Reply, ScriptedModel, call

OPA = os.environ.get("WAVE_OPA")
pytestmark = [pytest.mark.opa, pytest.mark.skipif(OPA is None, reason="make test-opa installs it")]

PAGE = {block.file or block.language: block.text for block in blocks(ROOT / "docs" / "policy.md")}
SETTINGS = next(json.loads(block.text) for block in blocks(ROOT / "docs" / "policy.md") if '"httpHooks"' in block.text)


class Policies(ThreadingHTTPServer):
    """The team's own service: it serves the bundle, and collects decisions."""

    def __init__(self, bundle: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bundle = bundle
        self.decisions: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Policies  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        self._answer(self.server.bundle if self.path == "/bundles/wave.tar.gz" else b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.decisions += json.loads(gzip.decompress(body))
        self._answer(b"{}")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(policies: Policies) -> Iterator[None]:
    thread = threading.Thread(target=policies.serve_forever)
    thread.start()
    try:
        yield
    finally:
        policies.shutdown()
        thread.join()
        policies.server_close()


@contextmanager
def open_policy_agent(directory: Path, policies: Policies) -> Iterator[str]:
    """Its address, once it serves the bundle."""
    assert OPA is not None
    config = PAGE["opa.yaml"].replace("https://policies.example.com", policies.url)
    (directory / "opa.yaml").write_text(f"{config}  reporting: {{min_delay_seconds: 1, max_delay_seconds: 1}}\n")
    address = f"127.0.0.1:{free_port()}"
    flags = ["--addr", address, "--config-file", "opa.yaml", "--log-format", "json", "--disable-telemetry"]
    with subprocess.Popen(
        [OPA, "run", "--server", *flags], cwd=directory, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            assert any("Bundle loaded and activated" in line for line in process.stderr)
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield address
        finally:
            process.terminate()


@pytest.fixture
def policies(tmp_path: Path) -> Iterator[Policies]:
    assert OPA is not None
    (tmp_path / "wave.rego").write_text(PAGE["wave.rego"])
    subprocess.run([OPA, "build", "wave.rego", "-o", "wave.tar.gz"], cwd=tmp_path, check=True)
    found = Policies((tmp_path / "wave.tar.gz").read_bytes())
    with serving(found):
        yield found


async def session(project: Path, address: str, *commands: str) -> tuple[ScriptedModel, Result]:
    settings = json.loads(json.dumps(SETTINGS).replace("localhost:8181", address))
    model = ScriptedModel([*(Reply(tool_calls=[call("Bash", command=one)]) for one in commands), "Done."])
    project.mkdir()
    async with await Agent.create(
        workdir=project,
        model_client=model,
        settings=settings,
        setting_sources=[],
        permission_mode="bypassPermissions",
    ) as agent:
        return model, await agent.send_message("Go.")


async def test_the_bundle_decides_and_its_decisions_are_collected(tmp_path: Path, policies: Policies):
    with open_policy_agent(tmp_path, policies) as address:
        model, result = await session(tmp_path / "project", address, "git -C . push", "base64 < .env", "touch ran")
        await until(lambda: len(policies.decisions) == 3)
    denied, secret = (request.messages[-1]["content"] for request in model.requests[1:3])
    assert "Pushing is up to a person." in denied
    assert ".env is not for agents." in secret
    assert (tmp_path / "project" / "ran").exists()
    assert [run.outcome for run in result.hooks] == ["deny", "deny", "none"]
    logged = [(one["input"]["tool_input"]["command"], bool(one["result"])) for one in policies.decisions]
    assert sorted(logged) == [("base64 < .env", True), ("git -C . push", True), ("touch ran", False)]


async def test_without_the_server_nothing_runs(tmp_path: Path, policies: Policies):
    with open_policy_agent(tmp_path, policies) as address:
        pass
    _, result = await session(tmp_path / "project", address, "touch ran")
    assert not (tmp_path / "project" / "ran").exists()
    assert [(run.outcome, run.failure) for run in result.hooks] == [("failure", "http")]
