"""Posts requests to one server, and explains failures to the user. Imported on the first request."""

import errno
import re
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from wave_agent.http.connections import Connection, Pool, ProxyRefusedError, connect
from wave_agent.http.retries import RETRIED_STATUSES, BrokenConnectionError, InvalidRequestError, RequestFailure
from wave_agent.http.routes import Address, Endpoint, Headers, tls_context


class Response:
    """A response whose body is still to be read."""

    def __init__(self, connection: Connection, pool: Pool, ends: float) -> None:
        self.status = connection.status
        self.headers = connection.headers
        self._connection, self._pool, self._ends = connection, pool, ends

    async def read(self, seconds: float) -> bytes:
        """The next part of the body; empty at the end. Raises `RequestFailure` if none arrives."""
        try:
            return await self._connection.read(_within(seconds, self._ends))
        except TimeoutError:
            raise _silence(seconds, self._ends) from None
        except BrokenConnectionError as error:
            raise _broken(f"the connection broke ({error})", self._pool) from None

    async def body(self, seconds: float, limit: int, *, broken: bool = False) -> bytes:
        """The rest of the body, up to `limit` bytes; with `broken`, what arrives in `seconds` before a failure."""
        found = bytearray()
        ends = time.monotonic() + seconds
        try:
            while len(found) < limit and (part := await self.read(_within(seconds, ends) if broken else seconds)):
                found += part
                if broken and time.monotonic() > ends:
                    break
        except RequestFailure:
            if not broken:
                raise
        return bytes(found[:limit])

    @property
    def unasked_encoding(self) -> str:
        """How the server compressed the body although it was asked not to. Its real size would be unknown."""
        encoding = self.headers.get("content-encoding", "").strip().lower()
        return "" if encoding == "identity" else encoding[:40]


class Transport:
    """Posts to one server, reusing connections between requests."""

    def __init__(
        self,
        endpoint: Endpoint,
        proxy: Address | None,
        environment: Mapping[str, str],
        headers: Headers,
        connect_seconds: float,
    ) -> None:
        self._endpoint, self._proxy, self._environment = endpoint, proxy, environment
        self._connect_seconds = connect_seconds
        self._tls: ssl.SSLContext | None = None
        self._pool = Pool(self._connect)
        self._answered = False
        self._target = endpoint.target
        self._headers: Headers = [("Host", endpoint.place.authority), *headers]
        if proxy is not None and endpoint.place.scheme == "http":
            self._target = endpoint.place.origin + endpoint.target
            self._headers += [("Proxy-Authorization", proxy.authorization)] if proxy.authorization else []

    @asynccontextmanager
    async def post(
        self, body: bytes, seconds: float, ends: float, more: Sequence[tuple[str, str]] = ()
    ) -> AsyncGenerator[Response]:
        """The response to `body`, if its headers arrive within `seconds`. Leaving it early closes the connection.
        `more` are headers for this request only."""
        connection = await self._send(body, seconds, ends, more)
        self._answered = True
        try:
            yield Response(connection, self._pool, ends)
        finally:
            self._pool.give_back(connection)

    def replace_headers(self, headers: Mapping[str, str]) -> None:
        """Send these from now on, instead of those with the same names."""
        names = {name.lower() for name in headers}
        self._headers = [*(one for one in self._headers if one[0].lower() not in names), *headers.items()]

    def prepare(self) -> None:
        """Start connecting, so that the first request need not wait."""
        self._pool.prepare()

    async def close(self) -> None:
        await self._pool.close()

    async def _send(self, body: bytes, seconds: float, ends: float, more: Sequence[tuple[str, str]]) -> Connection:
        while True:
            connection = await self._take(ends)
            answered = False
            try:
                await connection.request(self._target, [*self._headers, *more], body, _within(seconds, ends))
                answered = True
            except TimeoutError:
                raise _silence(seconds, ends) from None
            except InvalidRequestError as error:
                raise RequestFailure(str(error), again=False) from None
            except BrokenConnectionError as error:
                # Not a failure on a reused connection: the server closed it just as it was used. Open a new one.
                if not connection.reused or self._pool.closed:
                    raise _broken(f"{self._endpoint.shown} does not answer ({error})", self._pool) from None
            finally:
                if not answered:
                    self._pool.give_back(connection)
            if answered:
                return connection

    async def _take(self, ends: float) -> Connection:
        try:
            return await self._pool.take()
        except TimeoutError:
            raise self._unreachable(f"within {self._connect_seconds:g} s", again=time.monotonic() < ends) from None
        except ProxyRefusedError as error:
            again = error.status in RETRIED_STATUSES
            from wave_agent.http.refusals import advice  # lazy: few connections fail

            raise self._unreachable(f"({error})", again=again, hint=advice(error.status, "")) from None
        except BrokenConnectionError as error:
            raise self._unreachable(f"({error})", again=True) from None
        except OSError as error:
            raise self._explained(error) from None

    async def _connect(self) -> Connection:
        return await connect(self._endpoint.place, self._proxy, self._tls_context, self._connect_seconds)

    def _tls_context(self) -> ssl.SSLContext:
        self._tls = self._tls or tls_context(self._environment)
        return self._tls

    def _unreachable(self, how: str, *, again: bool, hint: str = "") -> RequestFailure:
        through = f" through the proxy {self._proxy.origin}" if self._proxy else ""
        return RequestFailure(f"Could not connect to {self._endpoint.shown}{through} {how}", again=again, advice=hint)

    def _explained(self, error: OSError) -> RequestFailure:
        """Explain why a connection could not be made."""
        first = self._proxy or self._endpoint.place
        if isinstance(error, ssl.SSLCertVerificationError):
            hint = "Set SSL_CERT_FILE to a bundle that contains its certificate authority."
            return self._unreachable(f"(certificate refused: {error.verify_message})", again=False, hint=hint)
        if isinstance(error, ssl.SSLError):
            why = f"(no TLS: {error.reason or error})"
            return self._unreachable(why, again=False, hint="Does the server use http:// rather than https://?")
        if isinstance(error, socket.gaierror):
            again = error.errno == socket.EAI_AGAIN
            hint = "Check the name and the network."
            return self._unreachable(f'(unknown host "{first.host}")', again=again, hint=hint)
        if _is_refused(error):
            hint = f"Is the {'proxy' if self._proxy else 'server'} running at {first.origin}?"
            return self._unreachable("(connection refused)", again=self._answered, hint=hint)
        return self._unreachable(f"({error.strerror or error})", again=True)


def _is_refused(error: OSError) -> bool:
    """Whether every address of the host refused. For several addresses, asyncio reports that only in its message."""
    numbers = [error.errno] if error.errno is not None else map(int, re.findall(r"\[Errno (\d+)\]", str(error)))
    return set(numbers) == {errno.ECONNREFUSED}


def _broken(reason: str, pool: Pool) -> RequestFailure:
    return RequestFailure("the model was closed" if pool.closed else reason, again=not pool.closed)


def _within(seconds: float, ends: float) -> float:
    return max(0.0, min(seconds, ends - time.monotonic()))


def _silence(seconds: float, ends: float) -> RequestFailure:
    if time.monotonic() >= ends:
        return RequestFailure("the request exceeded its total deadline", again=False)
    return RequestFailure(f"no data from the server for {seconds:g} s", again=True)
