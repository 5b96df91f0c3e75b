"""HTTP hooks: posts the stdin object to a service and treats the response like the output of a command.

Loaded only if the settings contain an HTTP hook.
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
from wave_agent.system.credentials import is_own
from wave_agent.text import strip_controls

_CAP = 1 << 20
"""Maximum bytes of a response. A longer one is a failure: half a decision is not a decision."""
_CONNECT = 10.0
_VISIBLE = re.compile(r"[\t\x20-\x7e]*")
_SHOWN = 200
_TRACE = "traceparent"

Headers = tuple[tuple[str, str], ...]


class _RefusedError(Exception):
    """The request cannot or must not be sent."""


class HttpRunner:
    """Runs hooks of kind `http` over persistent connections."""

    def __init__(
        self,
        *,
        hosts: Sequence[str],
        variables: Sequence[str],
        environment: Mapping[str, str],
        limits: Collection[str] = (),
    ) -> None:
        """Requests may go to `hosts`, and headers may use `variables`. `environment` sets proxies and certificates.

        A hook written for another agent may use its own host and variables, unless `limits` contains `http_hosts` or
        `http_env`.
        """
        self._hosts = hosts
        self._variables = variables
        self._environment = environment
        self._limits = limits
        self._transports: dict[tuple[str, Headers], Transport] = {}

    async def run(self, job: HookJob) -> HookExecutionResult:
        """Run the job. Raises only `CancelledError`."""
        started = time.monotonic()
        exit_code, stdout, error, timed_out, by_service = None, "", None, False, False
        try:
            async with asyncio.timeout(job.timeout):
                stdout = await self._ask(job, started + job.timeout)
            exit_code = 0
        except TimeoutError:
            timed_out = True
        except _WrongResponseError as wrong:
            error, by_service = strip_controls(str(wrong)), True
        except (_RefusedError, ModelError) as refused:
            error = str(refused)
        except RequestFailure as failure:
            error = f"{failure.reason}. {failure.advice}".strip() if failure.advice else failure.reason
            by_service = True
        return HookExecutionResult(
            exit_code=exit_code,
            stdout=stdout,
            error=error,
            by_service=by_service,
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
        body, traced = before + (job.stdin or b"{}") + after, _trace_header(job)
        async with self._transport(job).post(body, job.timeout, ends, traced) as response:
            body = await response.body(job.timeout, _CAP + 1)
        if encoding := response.unasked_encoding:
            raise _WrongResponseError(f"the service compressed its response ({encoding}), unasked")
        if job.names_its_services and 200 <= response.status < 300 and len(body) <= _CAP:
            return body.decode(errors="replace")  # as in the agent it was written for: empty or plain text is fine too
        return _output(response, body, job.body_format)

    def _transport(self, job: HookJob) -> Transport:
        """The transport for this job. A new one is made only if the headers change, so connections are reused."""
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
        """A header's value with its variables expanded: `$NAME` or `${NAME}`, and `$$` for a dollar.

        In a hook written for another agent, variables that are unset or not listed expand to nothing, as they do there.
        """
        of_its_own = job.names_its_services and "http_env" not in self._limits

        def fill(match: re.Match[str]) -> str:
            if match[1]:
                return "$"
            variable = match[2] or match[3]
            if is_own(variable):
                raise _RefusedError(f"header {name} uses ${variable}, which belongs to the agent and is never sent")
            if of_its_own:
                return job.env.get(variable, "") if variable in (*job.header_env, *self._variables) else ""
            if variable not in self._variables:
                raise _RefusedError(f"header {name} uses ${variable}, which is not listed in httpHooks.env")
            if variable not in job.env:
                raise _RefusedError(f"header {name} uses ${variable}, which is not set")
            return job.env[variable]

        return HEADER_VARIABLE.sub(fill, value)


def _trace_header(job: HookJob) -> Headers:
    """Unless the hook has such a header of its own."""
    if not job.traceparent or any(name.lower() == _TRACE for name, _ in job.headers):
        return ()
    return ((_TRACE, job.traceparent),)


def _sendable(name: str, value: str) -> str:
    value = value.strip(" \t")
    if not _VISIBLE.fullmatch(value):
        raise _RefusedError(f"header {name} contains invalid characters: only visible ASCII and spaces are allowed")
    return value


_AROUND: Mapping[BodyFormat, tuple[bytes, bytes]] = {
    BodyFormat.PLAIN: (b"", b""),
    BodyFormat.OPA: (b'{"input":', b"}"),
}


class _WrongResponseError(Exception):
    """The service responded, but not with a valid output."""


def _output(response: Response, body: bytes, body_format: BodyFormat) -> str:
    """The hook's output from a response. Raises `_WrongResponseError`."""
    text = body.decode(errors="replace")
    if not 200 <= response.status < 300:
        raise _WrongResponseError(f"the service answered {response.status}: {text[:_SHOWN]}".rstrip(": \n"))
    if len(body) > _CAP:
        raise _WrongResponseError("the service's response is longer than 1 MiB")
    if not text.strip():
        raise _WrongResponseError("the service sent an empty response")
    try:
        answer: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise _WrongResponseError(f"the service's response is not JSON: {text[:_SHOWN]}") from None
    if not isinstance(answer, dict):
        raise _WrongResponseError(f"the service's response is {type_name(answer)}, not an object")
    if body_format is BodyFormat.OPA:
        return _result_of(text)
    return text  # unchanged: parsing and duplicate keys are handled elsewhere


def _result_of(text: str) -> str:
    try:
        answer = parse_object(text.strip())
    except StrictJSONError as error:  # with a duplicate key, which value applies would be arbitrary
        raise _WrongResponseError(f"the service's response is not strict JSON: {error}") from None
    if "result" not in answer:
        raise _WrongResponseError('the response has no "result": the policy is not defined for this input')
    result: Any = answer["result"]
    if not isinstance(result, dict):
        raise _WrongResponseError(f'"result" is {type_name(result)}, not an object: name the rule that decides')
    return json.dumps(result)
