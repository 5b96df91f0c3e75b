"""Hooks that ask a service: what is sent, what counts as an answer, and which hosts and variables may be used."""

import asyncio
import json
import os
import shutil
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.checkouts import Checkout
from tests.rows import rows
from tests.waiting import until
from wave_agent import UntrustedHooksError
from wave_agent.formats.strict_json import Document
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.dialects import Dialect
from wave_agent.hooks.execution import BodyFormat, HookExecutionResult, HookJob, HookKind
from wave_agent.hooks.kinds import is_listed
from wave_agent.hooks.runners.http import HttpRunner
from wave_agent.settings.hook_entries import SettingsSource
from wave_agent.settings.layers import merge_settings

HERE = Path(__file__).parent
DENY = {"decision": "block", "reason": "the policy says no"}


class PolicyServer:
    """A real HTTP server on loopback: answers what it is told to, and remembers requests and connections."""

    def __init__(self) -> None:
        self.status, self.body, self.headers = 200, json.dumps({}).encode(), ""
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.connections = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.hang_up = False
        """Close the connection after the next answer without having said so."""
        self.behind = b""
        """Sent with an answer, and no part of it."""
        self.port = 0
        self._writer: asyncio.StreamWriter | None = None
        self.serving: set[asyncio.Task[Any] | None] = set()

    def answers(self, body: Any, status: int = 200, headers: str = "") -> None:
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.status, self.headers = status, headers

    def url(self, path: str = "/decide") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def send(self, data: bytes) -> None:
        """At once, on the latest connection."""
        assert self._writer is not None
        self._writer.get_extra_info("socket")._sock.send(data)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.serving.add(asyncio.current_task())
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().strip().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
                body = await reader.readexactly(int(headers["content-length"]))
                self.requests.append((first, headers, body))
                await self.gate.wait()
                answer = f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(self.body)}\r\n{self.headers}\r\n".encode()
                writer.write(answer + self.body + self.behind)
                self._writer = writer
                await writer.drain()
                if self.hang_up:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def policy() -> AsyncIterator[PolicyServer]:
    server = PolicyServer()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    yield server
    server.gate.set()
    listening.close()
    await listening.wait_closed()
    await asyncio.gather(*(task for task in server.serving if task is not None))


@asynccontextmanager
async def runner(hosts: tuple[str, ...] = ("127.0.0.1",), variables: tuple[str, ...] = ()) -> AsyncIterator[HttpRunner]:
    made = HttpRunner(hosts=hosts, variables=variables, environment={})
    try:
        yield made
    finally:
        await made.close()


def job(url: str, **more: Any) -> HookJob:
    facts: dict[str, Any] = {"stdin": b'{"tool_name": "Bash"}', "env": {}, "cwd": "/", "timeout": 30, **more}
    return HookJob(kind=HookKind.HTTP, command=url, **facts)


async def ask(policy: PolicyServer, **more: Any) -> HookExecutionResult:
    async with runner() as http:
        return await http.run(job(policy.url(), **more))


# ------------------------------------------------------------------------------------------------------- what is sent


async def test_the_stdin_object_is_posted_and_a_json_object_is_the_output(policy: PolicyServer) -> None:
    policy.answers(DENY, status=201)
    result = await ask(policy)
    ((first, headers, body),) = policy.requests
    assert (first, headers["content-type"]) == ("POST /decide HTTP/1.1", "application/json")
    assert body == b'{"tool_name": "Bash"}'
    assert (result.exit_code, json.loads(result.stdout)) == (0, DENY)


async def test_connections_are_kept_and_one_that_the_service_dropped_is_no_failure(policy: PolicyServer) -> None:
    async with runner() as http:
        for _ in range(3):
            assert (await http.run(job(policy.url()))).success
        assert policy.connections == 1
        policy.hang_up = True
        for _ in range(3):
            assert (await http.run(job(policy.url()))).success
    assert len(policy.requests) == 6


async def test_headers_get_the_variables_that_are_listed(policy: PolicyServer) -> None:
    headers = (("Authorization", "Bearer $TOKEN"), ("X-Price", "5$$ ${ZONE}s $ 1"))
    async with runner(variables=("TOKEN", "ZONE")) as http:
        result = await http.run(job(policy.url(), headers=headers, env={"TOKEN": "secret", "ZONE": "eu"}))
    assert result.success
    assert policy.requests[0][1]["authorization"] == "Bearer secret"
    assert policy.requests[0][1]["x-price"] == "5$ eus $ 1"


@pytest.mark.parametrize("value", ["tök", "a\udcff", "a\nb: c", "\x01", "\x7f", "€"])
async def test_a_header_that_cannot_be_sent_is_a_failure(policy: PolicyServer, value: str) -> None:
    async with runner(variables=("TOKEN",)) as http:
        result = await http.run(job(policy.url(), headers=(("X-Key", "$TOKEN"),), env={"TOKEN": value}))
    assert result.error == "header X-Key contains invalid characters: only visible ASCII and spaces are allowed"
    assert policy.requests == []


async def test_blanks_around_a_header_are_left_out_and_it_may_be_empty(policy: PolicyServer) -> None:
    async with runner(variables=("TOKEN",)) as http:
        headers = (("X-Key", "Bearer $TOKEN"), ("X-Other", " a b "))
        assert (await http.run(job(policy.url(), headers=headers, env={"TOKEN": ""}))).success
    assert (policy.requests[0][1]["x-key"], policy.requests[0][1]["x-other"]) == ("Bearer", "a b")


@pytest.mark.parametrize("at_once", [True, False])
async def test_an_answer_that_nobody_asked_for_answers_nothing(policy: PolicyServer, at_once: bool) -> None:
    """A second one behind the first, in the same packet or while the agent is busy with something else."""
    approval = b'{"decision": "approve"}'
    unasked = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(approval), approval)
    policy.answers(DENY)
    async with runner() as http:
        if at_once:
            policy.behind = unasked
        assert json.loads((await http.run(job(policy.url()))).stdout) == DENY
        if not at_once:
            policy.send(unasked)  # read by nobody before the next request is made: nothing is awaited in between
        assert json.loads((await http.run(job(policy.url()))).stdout) == DENY
    assert policy.connections == 2


@pytest.mark.parametrize(
    ("variables", "told"),
    [((), "which is not listed in httpHooks.env"), (("TOKEN",), "which is not set")],
)
async def test_a_variable_that_cannot_be_used_is_a_failure_and_nothing_is_sent(
    policy: PolicyServer, variables: tuple[str, ...], told: str
) -> None:
    env = {} if variables else {"TOKEN": "secret"}
    async with runner(variables=variables) as http:
        result = await http.run(job(policy.url(), headers=(("Authorization", "Bearer ${TOKEN}"),), env=env))
    assert result.error == f"header Authorization uses $TOKEN, {told}"
    assert "secret" not in str(result)
    assert policy.requests == []


async def test_a_host_that_is_not_listed_is_not_asked(policy: PolicyServer) -> None:
    async with runner(hosts=("policy.example.com", "127.0.0.1:1")) as http:
        result = await http.run(job(policy.url()))
    assert result.error == f"{policy.url()}: its host is not listed in httpHooks.hosts"
    assert policy.connections == 0


@rows(
    ("url", "hosts", "listed"),
    [
        ("http://localhost:8181/v1", ["localhost"], True),
        ("http://localhost:8181/v1", ["localhost:8181"], True),
        ("http://localhost:8181/v1", ["localhost:80"], False),
        ("http://localhost/v1", ["LocalHost:80"], True),
        ("https://localhost/v1", ["localhost:443"], True),
        ("https://LOCALHOST./v1", ["localhost"], True),
        ("https://a.b.example.com", ["*.example.com"], True),
        ("https://example.com", ["*.example.com"], False),
        ("https://badexample.com", ["*.example.com"], False),
        ("https://example.com.evil.org", ["example.com", "*.example.com"], False),
        ("http://[::1]:81/", ["[::1]:81"], True),
        ("http://[::1]:81/", ["::1"], True),
        ("http://[::1]:81/", ["[::1]:82"], False),
        ("http://example.com@evil.org/", ["example.com"], False),
        ("http://localhost/", [], False),
        ("http://localhost/", [""], False),
    ],
)
def test_an_entry_of_hosts_is_a_host_or_a_domain_with_or_without_a_port(
    url: str, hosts: list[str], listed: bool
) -> None:
    assert is_listed(url, hosts) is listed


@given(st.from_regex(r"[a-z]{1,8}(\.[a-z]{1,5}){0,2}", fullmatch=True), st.integers(1, 65535))
def test_a_host_is_listed_by_itself_and_by_nothing_that_it_only_begins_or_ends_like(host: str, port: int) -> None:
    assert is_listed(f"http://{host}:{port}/x", [f"{host}:{port}"])
    assert not is_listed(f"http://x{host}:{port}/", [host, f"*.{host}"])
    assert not is_listed(f"http://{host}.x0:{port}/", [host, f"*.{host}"])


# ------------------------------------------------------------------------------------------------- what is no answer


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"{}", 500, "the service answered 500: {}"),
        (b"", 404, "the service answered 404"),
        (b"{}", 302, "the service answered 302: {}"),
        (b"", 204, "the service sent an empty response"),
        (b"no", 200, "the service's response is not JSON: no"),
        (b"[]", 200, "the service's response is a list, not an object"),
        (b"true", 200, "the service's response is true or false, not an object"),
        (b"[" * 100_000, 200, "the service's response is not JSON: " + "[" * 200),
        (b'{"a": "' + b"x" * (1 << 20) + b'"}', 200, "the service's response is longer than 1 MiB"),
        (b"\x1b[31mred", 503, "the service answered 503: "),
    ],
)
async def test_everything_but_a_2xx_with_an_object_is_a_failure(
    policy: PolicyServer, body: bytes, status: int, told: str
) -> None:
    policy.answers(body, status)
    result = await ask(policy)
    assert (result.exit_code, result.stdout, result.by_service) == (None, "", True)
    assert result.error is not None
    assert result.error.startswith(told)
    assert "\x1b" not in result.error


async def test_a_service_that_is_not_there_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/decide"
        async with runner() as http:
            result = await http.run(job(url))
    assert "(connection refused)" in (result.error or "")
    assert result.exit_code is None


async def test_a_service_that_does_not_answer_times_out(policy: PolicyServer) -> None:
    policy.gate.clear()
    result = await ask(policy, timeout=0.2)
    assert result.timed_out
    assert result.exit_code is None


async def test_a_cancelled_request_is_dropped(policy: PolicyServer) -> None:
    policy.gate.clear()
    async with runner() as http:
        task = asyncio.create_task(http.run(job(policy.url())))
        await until(lambda: len(policy.requests) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


# ------------------------------------------------------------------------------------------------- Open Policy Agent

POLICY = HERE / "policies" / "wave.rego"
EXCHANGE = json.loads((HERE / "policies" / "exchange.json").read_text())


async def test_with_the_format_opa_the_input_is_wrapped_and_the_result_taken(policy: PolicyServer) -> None:
    policy.answers({"result": DENY, "decision_id": "x"})
    result = await ask(policy, body_format=BodyFormat.OPA)
    assert json.loads(policy.requests[0][2]) == {"input": {"tool_name": "Bash"}}
    assert json.loads(result.stdout) == DENY


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({}, 'the response has no "result": the policy is not defined for this input'),
        ([], "the service's response is a list, not an object"),
        (
            b'{"result": {"decision": "block"}, "result": {}}',
            'the service\'s response is not strict JSON: duplicate key "result"',
        ),
        (
            b'{"result": {"decision": "block", "decision": "approve"}}',
            'the service\'s response is not strict JSON: duplicate key "decision"',
        ),
        ({"result": True}, '"result" is true or false, not an object: name the rule that decides'),
        ({"result": None}, '"result" is null, not an object: name the rule that decides'),
    ],
)
async def test_a_policy_that_decides_nothing_is_a_failure(policy: PolicyServer, answer: Any, told: str) -> None:
    policy.answers(answer)
    result = await ask(policy, body_format=BodyFormat.OPA)
    assert (result.exit_code, result.error, result.by_service) == (None, told, True)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@asynccontextmanager
async def open_policy_agent(policy: PolicyServer) -> AsyncIterator[str]:
    """The URL of the rule, served by Open Policy Agent if it is installed, else as its REST API is documented."""
    program = shutil.which("opa")
    if program is None:
        policy.answers(EXCHANGE["response"])
        yield policy.url(EXCHANGE["path"])
        assert [json.loads(body).keys() for _, _, body in policy.requests] == [EXCHANGE["request"].keys()]
        return
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        program, "run", "--server", "--addr", f"127.0.0.1:{port}", str(POLICY), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await until(lambda: not socket.socket().connect_ex(("127.0.0.1", port)))
        yield f"http://127.0.0.1:{port}{EXCHANGE['path']}"
    finally:
        process.terminate()
        await process.wait()


async def test_a_policy_of_open_policy_agent_blocks_a_call(policy: PolicyServer) -> None:
    async with open_policy_agent(policy) as url, runner() as http:
        stdin = json.dumps(EXCHANGE["request"]["input"]).encode()
        result = await http.run(job(url, stdin=stdin, body_format=BodyFormat.OPA))
    assert json.loads(result.stdout) == EXCHANGE["response"]["result"]


# ------------------------------------------------------------------------------------------------ like any other hook


class HttpCheckout(Checkout):
    """Its guard is a service."""

    def settings(self, url: str, *, http: Mapping[str, Any] | None = None, **more: Any) -> None:
        hosts = {"hosts": ["127.0.0.1"]} if http is None else http
        self.write_settings({"type": "http", "url": url, **more}, httpHooks=hosts)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HttpCheckout:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return HttpCheckout(tmp_path)


async def test_an_http_hook_of_the_settings_blocks_and_is_journalled(
    checkout: HttpCheckout, policy: PolicyServer
) -> None:
    policy.answers(DENY)
    checkout.settings(policy.url())
    async with await checkout.agent() as agent:
        result = await agent.send_message("go")
    (run,) = result.hooks
    assert (run.name, run.command, run.exit_code) == ("decide", policy.url(), None)
    assert (run.outcome, run.reason) == ("deny", "the policy says no")
    assert json.loads(policy.requests[0][2])["tool_input"] == {"command": "touch ran"}
    assert not checkout.ran


@pytest.mark.parametrize(("on_failure", "ran"), [("block", False), ("continue", True)])
async def test_an_answer_that_is_none_is_a_failure_under_on_failure(
    checkout: HttpCheckout, policy: PolicyServer, on_failure: str, ran: bool
) -> None:
    policy.answers(b"{}", status=500)
    checkout.settings(policy.url(), onFailure=on_failure)
    async with await checkout.agent() as agent:
        result = await agent.send_message("go")
    assert [(run.failure, run.let_through) for run in result.hooks] == [("http", ran)]
    assert checkout.ran is ran


async def test_in_shadow_mode_it_only_reports(checkout: HttpCheckout, policy: PolicyServer) -> None:
    policy.answers(DENY)
    checkout.settings(policy.url(), mode="shadow")
    async with await checkout.agent() as agent:
        result = await agent.send_message("go")
    assert [(run.outcome, run.mode) for run in result.hooks] == [("deny", "shadow")]
    assert checkout.ran


async def test_it_needs_trust(checkout: HttpCheckout, policy: PolicyServer) -> None:
    checkout.settings(policy.url())
    with pytest.raises(UntrustedHooksError) as told:
        await checkout.agent(trust=False)
    assert policy.url() in str(told.value.hooks)


async def test_a_host_that_no_setting_lists_is_told_at_the_start(checkout: HttpCheckout, policy: PolicyServer) -> None:
    checkout.settings(policy.url(), http={})
    async with await checkout.agent() as agent:
        (issue,) = agent.settings.issues
    assert issue.message == "its host is not listed in httpHooks.hosts, so the hook cannot run"
    assert issue.path == ("hooks", "PreToolUse", 0, "hooks", 0, "url")


@pytest.mark.parametrize(("listed", "told"), [(["OTHER"], True), (["TOKEN"], False), (["WAVE_API_KEY"], True)])
async def test_a_variable_that_no_setting_lists_is_told_at_the_start(
    checkout: HttpCheckout, policy: PolicyServer, listed: list[str], told: bool
) -> None:
    name = "WAVE_API_KEY" if "WAVE_API_KEY" in listed else "TOKEN"
    http = {"hosts": ["127.0.0.1"], "env": listed}
    checkout.settings(policy.url(), http=http, headers={"X-Key": f"5$$ ${{{name}}}"})
    async with await checkout.agent() as agent:
        notes = [issue.message for issue in agent.settings.issues]
    assert notes == (
        [f"${name} is not listed in httpHooks.env, or is one of the agent's own keys, so the hook cannot run"]
        if told
        else []
    )


async def test_the_agents_own_key_cannot_be_put_into_a_header(
    checkout: HttpCheckout, policy: PolicyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVE_API_KEY", "sk-own")
    http = {"hosts": ["127.0.0.1"], "env": ["WAVE_API_KEY"]}
    checkout.settings(policy.url(), http=http, headers={"X-Key": "$WAVE_API_KEY"})
    async with await checkout.agent() as agent:
        result = await agent.send_message("go")
    assert result.hooks[0].failure == "spawn"
    assert policy.requests == []
    assert os.environ["WAVE_API_KEY"] not in str(result.hooks)


# ------------------------------------------------------------------------------------------------- for other agents


@pytest.mark.parametrize("body", [b"", b"plain text", b"[1]", json.dumps(DENY).encode()])
async def test_the_answer_to_a_hook_for_another_agent_is_its_output_as_it_is(policy: PolicyServer, body: bytes) -> None:
    policy.answers(body)
    async with runner(hosts=()) as http:
        result = await http.run(job(policy.url(), names_its_services=True))
    assert (result.exit_code, result.stdout) == (0, body.decode())


@pytest.mark.parametrize(("body", "status"), [(b"no", 403), (b"x" * (1 << 20) + b"x", 200)])
async def test_a_refusal_or_a_flood_is_a_failure_there_too(policy: PolicyServer, body: bytes, status: int) -> None:
    policy.answers(body, status)
    async with runner(hosts=()) as http:
        assert (await http.run(job(policy.url(), names_its_services=True))).by_service


async def test_it_names_its_own_variables_and_never_the_agents_keys(policy: PolicyServer) -> None:
    env = {"A": "a", "B": "b", "WAVE_API_KEY": "key"}
    headers = (("X-All", "[$A|$B|$UNSET]"),)
    async with runner(hosts=()) as http:
        wanted = job(policy.url(), names_its_services=True, headers=headers, header_env=("A", "UNSET"), env=env)
        assert (await http.run(wanted)).success
        own = replace(wanted, headers=(("X-Key", "$WAVE_API_KEY"),), header_env=("WAVE_API_KEY",))
        assert "is never sent" in str((await http.run(own)).error)
    assert [request[1]["x-all"] for request in policy.requests] == ["[a||]"]


@pytest.mark.parametrize(
    ("limit", "told"),
    [("http_hosts", "its host is not listed in httpHooks.hosts"), ("http_env", "$A, which is not listed")],
)
async def test_managed_limits_hold_for_it(policy: PolicyServer, limit: str, told: str) -> None:
    http = HttpRunner(hosts=(), variables=(), environment={}, limits={limit})
    wanted = job(policy.url(), names_its_services=True, headers=(("X-A", "$A"),), header_env=("A",), env={"A": "a"})
    assert told in str((await http.run(wanted)).error)
    await http.close()
    assert policy.requests == []
    source = SettingsSource(Layer.USER, "theirs", Document({"hooks": {"Stop": [ENTRY]}}, {}), dialect=Dialect.CLAUDE)
    managed = SettingsSource(Layer.MANAGED, "managed", Document({"httpHooks": {"hosts": [], "env": []}}, {}))
    assert merge_settings([source]).issues == ()
    assert len(merge_settings([source, managed]).issues) == 2


ENTRY = {"type": "http", "url": "http://policy/", "headers": {"X-A": "$A"}, "allowedEnvVars": ["A"]}
