"""The first request: its bytes are those that h11 writes, and they are sent before h11 is loaded."""

import subprocess
import sys
from pathlib import Path

import h11
import pytest

from wave_agent.http.connections import plain_head
from wave_agent.testing.model_server import RecordedRequest, RecordingModelServer


def by_h11(target: str, headers: list[tuple[str, str]], length: int) -> bytes | None:
    message = h11.Request(method="POST", target=target, headers=[*headers, ("Content-Length", str(length))])
    return h11.Connection(h11.CLIENT).send(message)


@pytest.mark.parametrize("target", ["/v1/chat/completions", "http://[::1]:8080/v1?key=a%20b&c=~!$'()*,;@:", "/"])
@pytest.mark.parametrize("length", [0, 1, 123456789])
@pytest.mark.parametrize(
    "headers",
    [
        [],
        [
            ("User-Agent", "wave-agent"),
            ("Accept", "text/event-stream, application/json"),
            ("Authorization", "Bearer k"),
        ],
        [("x-api-key", 'a "quoted" \\ value'), ("X-Api-Key", "twice"), ("anthropic-version", "2023-06-01")],
        [("Odd", "".join(map(chr, range(33, 127)))), ("Cookie", "a=b;  c=d")],
    ],
)
def test_plain_headers_are_written_as_h11_writes_them(target: str, length: int, headers: list[tuple[str, str]]) -> None:
    given = [("Host", "example.org:8080"), *headers]
    assert plain_head(target, given, length) == by_h11(target, given, length) is not None


@pytest.mark.parametrize(
    "more",
    [
        *[("X", value) for value in ("", " a", "a ", "a\r\nB: c", "a\tb", "ä", "a\x7f", "a\0", "\u2028")],
        *[(name, "x") for name in ("", "A B", "A:", "A\r\n", "Ä", "-", "--", "A_B")],
        *[(name, "1") for name in ("Content-Length", "host", "Transfer-Encoding", "connection", "Expect", "Upgrade")],
    ],
)
def test_any_other_header_is_left_to_h11(more: tuple[str, str]) -> None:
    assert plain_head("/", [("Host", "a"), more], 1) is None


def test_an_odd_target_or_host_is_left_to_h11() -> None:
    assert plain_head("/a b", [("Host", "a")], 1) is None
    assert plain_head("", [("Host", "a")], 1) is None
    assert plain_head("/", [("Host", "a\r\nX: y")], 1) is None
    assert plain_head("/", [("X", "a"), ("Host", "a")], 1) is None


WAITS_FOR_THE_SERVER = """
import sys, time
from pathlib import Path
class Gate:
    def find_spec(self, name, path=None, target=None):
        if name == "h11":
            ends = time.monotonic() + 20
            while not Path({gate!r}).exists():
                assert time.monotonic() < ends, "h11 was loaded before the request had arrived"
                time.sleep(0.001)
sys.meta_path.insert(0, Gate())
sys.argv[1:] = ["-p", "Hi", "--cwd", {cwd!r}]
from wave_agent.__main__ import main
sys.exit(main())
"""


def test_the_first_request_arrives_before_h11_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = tmp_path / "arrived"

    def answer(_: RecordedRequest) -> str:
        gate.touch()
        return "Hello."

    with RecordingModelServer.in_thread([answer]) as server:
        monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("WAVE_BASE_URL", server.base_url)
        monkeypatch.setenv("WAVE_MODEL", "any")
        program = WAITS_FOR_THE_SERVER.format(gate=str(gate), cwd=str(tmp_path))
        ran = subprocess.run(
            [sys.executable, "-c", program],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Hello.\n", "")
