"""The network of commands in a real sandbox, with a list of hosts. A server on this machine plays a listed host."""

import asyncio
import hashlib
import os
import shutil
import socket
import threading
from collections.abc import Generator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.sandboxes import Make, open_sandbox
from tests.waiting import until

PYTHON = "/usr/bin/python3"
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
needs_python = pytest.mark.skipif(not os.path.exists(PYTHON), reason=f"needs {PYTHON}")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


@pytest.fixture
def port(tmp_path: Path) -> Generator[int]:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "page").write_text("reached")
    with Server(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "served"))) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running.server_address[1]
        running.shutdown()


def fetch(url: str) -> str:
    code = f"import urllib.request as u; print(u.urlopen('{url}', timeout=20).read().decode())"
    return f'{PYTHON} -c "{code}"'


@needs_curl
@needs_python
async def test_programs_that_use_the_proxy_reach_a_listed_host(make: Make, port: int) -> None:
    confined = make(network=("localhost",))
    url = f"http://localhost:{port}/page"
    result = await confined.bash(f"curl -sS {url}; echo; curl -sS --proxytunnel {url}; echo; {fetch(url)}")
    assert result.content.split() == ["reached"] * 3
    assert result.success


@needs_curl
@needs_python
async def test_no_other_host_is_reached_and_the_result_names_it(make: Make, port: int) -> None:
    confined = make(network=("localhost",))
    result = await confined.bash(
        f"curl -sS http://evil.example/; curl -sS https://evil.example/; {fetch(f'http://127.0.0.1:{port}/page')};"
        f"curl -sS --noproxy '' http://127.0.0.1:{port}/page"
    )
    assert "reached" not in result.content.replace("cannot be reached", "")
    assert "it is not listed in the setting sandbox.network (localhost)" in result.content
    assert "[The sandbox refused the network: evil.example:80: " in result.content
    assert "evil.example:443: " in result.content
    assert f"127.0.0.1:{port}: " in result.content


DIRECT = """exec 3<> /dev/tcp/127.0.0.1/{port} && echo reached"""


@needs_curl
@pytest.mark.parametrize(
    "attempt",
    [
        DIRECT,
        "env -u http_proxy -u HTTP_PROXY -u ALL_PROXY -u all_proxy curl -sS http://localhost:{port}/page",
        "NO_PROXY='*' no_proxy='*' curl -sS http://localhost:{port}/page",
        "curl -sS --noproxy '*' http://localhost:{port}/page",
        "curl -sS --socks5-hostname 127.0.0.1:3128 http://localhost:{port}/page",
        "unshare -Urn curl -sS http://localhost:{port}/page",
        "nsenter --net=/proc/1/ns/net curl -sS --noproxy '*' http://127.0.0.1:{port}/page",
        "cat < /proc/1/fd/* ; ls -l /proc/*/fd | grep -c socket; false",
    ],
)
async def test_who_goes_around_the_proxy_has_no_network(make: Make, port: int, attempt: str) -> None:
    confined = make(network=("localhost",))
    result = await confined.bash(attempt.format(port=port))
    assert "reached" not in result.content
    assert not result.success


async def test_a_rule_beats_the_list(make: Make, port: int) -> None:
    confined = make(network=("localhost",), denied=["Net(localhost)"])
    result = await confined.bash(f"curl -sS http://localhost:{port}/page")
    assert "reached" not in result.content
    assert "permission rule Net" in result.content


@pytest.mark.parametrize("network", [True, ("localhost",)])
async def test_a_rule_for_all_hosts_cuts_the_network_whatever_the_setting_says(
    make: Make, port: int, network: bool | tuple[str, ...]
) -> None:
    confined = make(network=network, denied=["Net(*)"])
    assert "reached" not in (await confined.bash(DIRECT.format(port=port))).content
    assert "There is no network" in confined.sandbox.description


@needs_python
async def test_servers_of_the_command_itself_are_reached_without_the_proxy(make: Make) -> None:
    confined = make(network=("api.example.com",))
    served = await confined.bash(
        f"echo mine > page; {PYTHON} -m http.server 8765 --bind 127.0.0.1 >/dev/null 2>&1 & "
        "until (exec 3<>/dev/tcp/127.0.0.1/8765) 2>/dev/null; do sleep 0.02; done; "
        f"{fetch('http://localhost:8765/page')}"
    )
    assert served.content.split("\n")[0] == "mine"


@needs_curl
async def test_many_connections_and_a_long_download(make: Make, port: int, tmp_path: Path) -> None:
    (tmp_path / "served" / "long").write_bytes(os.urandom(1 << 20) * 8)
    confined = make(network=("localhost",))
    result = await confined.bash(
        f"for n in $(seq 40); do curl -sS http://localhost:{port}/page & done; wait; echo; "
        f"curl -sS http://localhost:{port}/long | sha256sum"
    )
    assert result.content.count("reached") == 40
    assert hashlib.sha256((tmp_path / "served" / "long").read_bytes()).hexdigest() in result.content


async def test_the_command_inherits_nothing_of_the_way_in(make: Make) -> None:
    confined = make(network=("localhost",))
    result = await confined.bash("ls /proc/self/fd; yes | head -n 1; grep SigIgn /proc/self/status")
    assert result.content.split()[:6] == ["0", "1", "2", "3", "y", "SigIgn:"]
    assert int(result.content.split()[6], 16) & (1 << 12) == 0  # SIGPIPE
    assert "Broken pipe" not in result.content


@needs_curl
async def test_in_the_background_refused_hosts_are_reported_at_the_end(make: Make, port: int) -> None:
    confined = make(network=("localhost",))
    started = await confined.bash(
        f"curl -sS http://localhost:{port}/page; curl -s http://evil.example/", run_in_background=True
    )
    name = started.response["backgroundTaskId"]

    async def shown() -> Any:
        return await confined.call("BashOutput", bash_id=name)

    texts: list[str] = []
    while (last := await shown()).response["status"] == "running":
        texts.append(last.content)
    text = "\n".join([*texts, last.content])
    assert "reached" in text
    assert "The sandbox refused the network: evil.example:80" in text


@needs_curl
async def test_when_the_proxy_is_gone_so_is_the_network(make: Make, port: int) -> None:
    confined = make(network=("localhost",))
    url = f"http://localhost:{port}/page"
    waits = "touch first; until [ -e go ]; do sleep 0.01; done"
    task = asyncio.create_task(confined.bash(f"curl -sS {url}; {waits}; curl -sS --max-time 10 {url} && echo again"))
    await until((confined.project / "first").exists)
    proxy = getattr(confined.sandbox, "_proxy")  # noqa: B009 - its end is what the test is about
    proxy.close()
    (confined.project / "go").touch()
    result = await task
    assert result.content.count("reached") == 1
    assert "again" not in result.content


async def test_nothing_is_left_of_it(make: Make) -> None:
    confined = make(network=("localhost",))
    await confined.bash("true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await confined.bash("true")
    assert len(os.listdir("/proc/self/fd")) <= before
    await confined.close()
    assert "wave-network" not in [thread.name for thread in threading.enumerate()]
    assert os.listdir(confined.project) == []
    assert not confined.outputs.exists()


@needs_python
async def test_sockets_of_other_programs_stay_out_of_reach(make: Make) -> None:
    confined = make(network=("localhost",))
    name = f"\0wave-{os.urandom(4).hex()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r}); print('reached')"
        (confined.project / "attempt.py").write_text(code)
        result = await confined.bash(f"{PYTHON} attempt.py")
    assert "ConnectionRefused" in result.content


def test_the_model_knows_which_hosts_there_are(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    sandbox = open_sandbox(tmp_path / "project", tmp_path / "state", network=("a.example", "*.b.example"))
    assert "The network is limited to a.example, *.b.example" in sandbox.description
    sandbox.close()
