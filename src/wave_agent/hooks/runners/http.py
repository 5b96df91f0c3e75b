"""Hooks that ask a service: the stdin object is posted, and what comes back is read like the output of a command.

Loaded when the settings have such a hook.
"""

import asyncio
import json
import re
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from wave_agent.errors import ModelError
from wave_agent.formats.strict_json import StrictJSONError, parse_object, type_name
from wave_agent.hooks.execution import BodyFormat, HookExecutionResult, HookJob
from wave_agent.hooks.kinds import HEADER_VARIABLE, is_listed
from wave_agent.http.retries import RequestFailure
from wave_agent.http.routes import endpoint_at, proxy_for
from wave_agent.http.transport import Response, Transport
from wave_agent.system.credentials import AGENT_KEYS
from wave_agent.text import strip_controls

_CAP = 1 << 20
"""Bytes of an answer. A longer one is a failure: half a decision is none."""
_CONNECT = 10.0
_FAILED = 1
"""The exit code that a wrong answer amounts to: a failure, never a block of its own."""
_VISIBLE = re.compile(r"[\t\x20-\x7e]*")
_SHOWN = 200

Headers = tuple[tuple[str, str], ...]


class _RefusedError(Exception):
    """The request must not, or cannot, be sent."""


class HttpRunner:
    """Runs hooks of the kind `http`, over connections that are kept."""

    def __init__(
        self,
        *,
        hosts: Sequence[str],
        variables: Sequence[str],
        environment: Mapping[str, str],
        limits: Collection[str] = (),
    ) -> None:
        """`hosts` may be asked, and `variables` may stand in headers. `environment` names proxies and certificates.

        A hook written for another agent may ask its own host and name its own variables, unless `limits` says that
        `http_hosts` or `http_env` hold for it too.
        """
        self._hosts = hosts
        self._variables = variables
        self._environment = environment
        self._limits = limits
        self._transports: dict[tuple[str, Headers], Transport] = {}

    async def run(self, job: HookJob) -> HookExecutionResult:
        """Raises nothing but `CancelledError`."""
        started = time.monotonic()
        exit_code, stdout, stderr, error, timed_out = None, "", "", None, False
        try:
            async with asyncio.timeout(job.timeout):
                stdout = await self._ask(job, started + job.timeout)
            exit_code = 0
        except TimeoutError:
            timed_out = True
        except _WrongResponseError as wrong:
            exit_code, stderr = _FAILED, strip_controls(str(wrong))
        except (_RefusedError, ModelError) as refused:
            error = str(refused)
        except RequestFailure as failure:
            error = f"{failure.reason}. {failure.advice}".strip() if failure.advice else failure.reason
        return HookExecutionResult(
            exit_code=exit_code,
            stdout=stdout,
            stderr=stderr,
            error=error,
            timed_out=timed_out,
            duration=(time.monotonic() - started) * 1000,
        )

    async def close(self) -> None:
        transports = [*self._transports.values()]
        self._transports.clear()
        for transport in transports:
            await transport.close()

    async def _ask(self, job: HookJob, ends: float) -> str:
        before, after = _AROUND[job.body_format]
        async with self._transport(job).post(before + (job.stdin or b"{}") + after, job.timeout, ends) as response:
            body = await response.body(job.timeout, _CAP + 1)
        if encoding := response.unasked_encoding:
            raise _WrongResponseError(f"the service compressed its answer ({encoding}), unasked")
        if job.names_its_services and 200 <= response.status < 300 and len(body) <= _CAP:
            return body.decode(errors="replace")  # as it is at home: nothing and plain text are outputs as well
        return _output(response, body, job.body_format)

    def _transport(self, job: HookJob) -> Transport:
        """Made anew only if the headers have changed: the connections stay."""
        anywhere = job.names_its_services and "http_hosts" not in self._limits
        if not anywhere and not is_listed(job.command, self._hosts):
            raise _RefusedError(f"{job.command}: its host is not listed in httpHooks.hosts")
        headers = tuple((name, _sendable(name, self._filled(name, value, job))) for name, value in job.headers)
        found = self._transports.get((job.command, headers))
        if found is None:
            endpoint = endpoint_at(job.command)
            proxy = proxy_for(endpoint.place, self._environment)
            sent = [
                ("Content-Type", "application/json"),
                ("Accept", "application/json"),
                ("Accept-Encoding", "identity"),
                *headers,
            ]
            found = Transport(endpoint, proxy, self._environment, sent, _CONNECT)
            self._transports[job.command, headers] = found
        return found

    def _filled(self, name: str, value: str, job: HookJob) -> str:
        """The value of a header with its variables put in: `$NAME` or `${NAME}`, and `$$` for a dollar.

        Of a hook for another agent, what it does not list or what is not set stands for nothing, as at home.
        """
        of_its_own = job.names_its_services and "http_env" not in self._limits

        def fill(match: re.Match[str]) -> str:
            if match[1]:
                return "$"
            variable = match[2] or match[3]
            if variable in AGENT_KEYS:
                raise _RefusedError(f"header {name} names ${variable}, which is the agent's own and is never sent")
            if of_its_own:
                return job.env.get(variable, "") if variable in (*job.header_env, *self._variables) else ""
            if variable not in self._variables:
                raise _RefusedError(f"header {name} names ${variable}, which is not listed in httpHooks.env")
            if variable not in job.env:
                raise _RefusedError(f"header {name} names ${variable}, which is not set")
            return job.env[variable]

        return HEADER_VARIABLE.sub(fill, value)


def _sendable(name: str, value: str) -> str:
    value = value.strip(" \t")
    if not _VISIBLE.fullmatch(value):
        raise _RefusedError(f"header {name} has characters that cannot be sent: only visible ASCII and blanks can")
    return value


_AROUND: Mapping[BodyFormat, tuple[bytes, bytes]] = {
    BodyFormat.PLAIN: (b"", b""),
    BodyFormat.OPA: (b'{"input":', b"}"),
}


class _WrongResponseError(Exception):
    """The service answered, but not with an output."""


def _output(response: Response, body: bytes, body_format: BodyFormat) -> str:
    """The hook's output in an answer. Raises `_WrongResponseError`."""
    text = body.decode(errors="replace")
    if not 200 <= response.status < 300:
        raise _WrongResponseError(f"the service answered {response.status}: {text[:_SHOWN]}".rstrip(": \n"))
    if len(body) > _CAP:
        raise _WrongResponseError("the service's answer is longer than 1 MiB")
    if not text.strip():
        raise _WrongResponseError("the service answered with nothing")
    try:
        answer: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise _WrongResponseError(f"the service answered with something that is not JSON: {text[:_SHOWN]}") from None
    if not isinstance(answer, dict):
        raise _WrongResponseError(f"the service answered with {type_name(answer)}, not an object")
    if body_format is BodyFormat.OPA:
        return _result_of(text)
    return text  # as it came: how it has to be read, and what it must not hold twice, is decided elsewhere


def _result_of(text: str) -> str:
    try:
        answer = parse_object(text.strip())
    except StrictJSONError as error:  # what stands twice would count by chance
        raise _WrongResponseError(f"the service's answer is not strict JSON: {error}") from None
    if "result" not in answer:
        raise _WrongResponseError('the answer has no "result": the policy is not defined for this input')
    result: Any = answer["result"]
    if not isinstance(result, dict):
        raise _WrongResponseError(f'"result" is {type_name(result)}, not an object: name the rule that decides')
    return json.dumps(result)
