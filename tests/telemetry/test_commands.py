"""`wave -p` with telemetry: what arrives, and what it never delays."""

import json
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.cli.project import Project
from tests.telemetry.receiver import receiving
from tests.waiting import until
from wave_agent.testing import RecordingModelServer, Reply, call

SLACK = 3.0
"""Seconds for a busy machine, besides the one that telemetry may take."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "TRACEPARENT"):
        monkeypatch.delenv(name, raising=False)
    return Project(tmp_path)


@pytest.fixture
def deaf() -> Iterator[str]:
    """A receiver that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def seconds(project: Project, **environment: str) -> float:
    """How long one prompt takes."""
    with RecordingModelServer.in_thread(["Hello."]) as server:
        started = monotonic()
        done = project.wave("-p", "Hi", server=server, **environment)
        took = monotonic() - started
    assert (done.returncode, done.stdout) == (0, "Hello.\n"), done.stderr
    assert "Traceback" not in done.stderr
    return took


def test_a_prompt_arrives_with_the_server_it_went_to(project: Project) -> None:
    with receiving() as receiver, RecordingModelServer.in_thread(["Hello."] * 5) as server:
        for _ in range(5):  # on a busy machine the SDK may not be loaded within the second that it gets
            done = project.wave(
                "-p", "Hi", server=server, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, OTEL_SERVICE_NAME="my-ci"
            )
            assert (done.returncode, done.stdout) == (0, "Hello.\n")
            if not done.stderr:
                break
            assert "did not answer within 1 s" in done.stderr
    chat = receiver.span("chat test")
    assert chat.attributes["gen_ai.provider.name"] == "openai"
    assert chat.attributes["server.address"] == "127.0.0.1"
    assert f":{chat.attributes['server.port']}" in server.base_url
    assert receiver.resource["service.name"] == "my-ci"
    assert receiver.points["wave.sessions"]


def test_a_receiver_that_hangs_delays_the_end_by_a_second_at_most(project: Project, deaf: str) -> None:
    usual = seconds(project)
    assert seconds(project, OTEL_EXPORTER_OTLP_ENDPOINT=deaf) < usual + 1 + SLACK


def test_a_receiver_that_hangs_is_one_notice(project: Project, deaf: str) -> None:
    with RecordingModelServer.in_thread(["Hello."]) as server:
        done = project.wave("-p", "Hi", server=server, OTEL_EXPORTER_OTLP_ENDPOINT=deaf)
    assert done.stdout == "Hello.\n"
    assert done.stderr == (
        f"wave: Telemetry was not sent: {deaf}/v1/traces and {deaf}/v1/metrics did not answer within 1 s\n"
    )


def test_a_receiver_that_is_not_there_is_one_notice(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    started = monotonic()
    with RecordingModelServer.in_thread(["Hello."]) as server:
        done = project.wave("-p", "Hi", server=server, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}")
    assert monotonic() - started < 2 + SLACK
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    where = f"http://127.0.0.1:{port}/v1/traces"
    assert done.stderr == f"wave: Telemetry was not sent: {where} cannot be reached (connection refused)\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupt_still_sends_what_there_is_and_waits_for_no_receiver(
    number: signal.Signals, project: Project, deaf: str
) -> None:
    gate = project.directory / "gate"
    replies = [Reply(tool_calls=[call("Bash", command="touch gate; sleep 60")]), "Done."]
    with receiving() as receiver:
        for url in (receiver.url, deaf):
            gate.unlink(missing_ok=True)
            with RecordingModelServer.in_thread(replies) as server:
                process = project.command(
                    *("-p", "Hi", "--permission-mode", "bypassPermissions"),
                    server=server,
                    env={"OTEL_EXPORTER_OTLP_ENDPOINT": url},
                )
                await until(gate.exists)
                started = monotonic()
                process.send_signal(number)
                _, stderr = process.communicate(timeout=30)
            assert monotonic() - started < 1 + SLACK
            assert process.returncode == 128 + number
            assert "Traceback" not in stderr
    assert receiver.span("invoke_agent wave").attributes["wave.status"] == "interrupted"
    assert receiver.span("execute_tool Bash").is_error


def test_without_the_extra_one_notice_names_the_command(project: Project, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    missing.mkdir()
    (missing / "sitecustomize.py").write_text(
        "import sys\nsys.modules['opentelemetry'] = None  # as if it were not installed\n"
    )
    with RecordingModelServer.in_thread(["Hello."]) as server:
        done = project.wave(
            "-p", "Hi", server=server, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9", PYTHONPATH=str(missing)
        )
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert done.stderr == "wave: Telemetry is off: it needs an extra: pip install 'wave-agent[otel]'\n"


def test_a_protocol_that_is_not_supported_is_one_notice(project: Project) -> None:
    with RecordingModelServer.in_thread(["Hello."]) as server:
        done = project.wave(
            *("-p", "Hi"),
            server=server,
            OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4317",
            OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
        )
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert done.stderr == (
        "wave: Telemetry is off: OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported, only http/protobuf (usually on "
        "port 4318).\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_hooks_tools_and_servers_get_no_otel_variable(project: Project) -> None:
    project.settings({"hooks": {"Stop": [{"command": "env > hook.env"}]}, "env": {"OTEL_FOR_TESTS": "mine"}})
    replies = [Reply(tool_calls=[call("Bash", command="env > bash.env")]), "Done."]
    with receiving() as receiver, RecordingModelServer.in_thread(replies) as server:
        done = project.wave(
            *("-p", "Hi", "--trust", "--permission-mode", "bypassPermissions"),
            server=server,
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
            OTEL_EXPORTER_OTLP_HEADERS="key=secret-7",
        )
    assert done.returncode == 0, done.stderr
    for name in ("hook.env", "bash.env"):
        found = (project.directory / name).read_text().splitlines()
        assert [line for line in found if line.startswith("OTEL")] == ["OTEL_FOR_TESTS=mine"]


def test_doctor_says_whether_telemetry_is_on_and_whether_the_receiver_answers(project: Project) -> None:
    def told(**environment: str) -> tuple[str, str]:
        done = project.wave("doctor", "--json", server=None, **environment)
        [found] = [one for one in json.loads(done.stdout) if one["check"] == "telemetry"]
        return found["status"], found["detail"]

    status, detail = told()
    assert (status, detail[:4]) == ("skipped", "off:")
    with receiving() as receiver:
        status, detail = told(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
        assert (status, detail) == (
            "ok",
            f"on, without content: {receiver.url}/v1/traces answers 200; {receiver.url}/v1/metrics answers 200",
        )
        assert receiver.spans == []
        receiver.status = 401
        status, detail = told(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
        assert (status, "/v1/traces answers 401" in detail) == ("warning", True)
    status, detail = told(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert (status, "connection refused" in detail) == ("warning", True)
