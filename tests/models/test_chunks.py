"""The body of a chunked response: the same bytes as h11 reads, in whatever portions they come."""

from itertools import pairwise

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wave_agent.http.chunks import ChunkError, ChunkReader

PARTS = st.lists(st.binary(min_size=1, max_size=40), max_size=12)
CUTS = st.lists(st.integers(0, 400), max_size=12)


def chunked(parts: list[bytes], trailer: bytes = b"") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n" + trailer + b"\r\n"


def portions(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


@given(PARTS, CUTS, st.sampled_from([b"", b"X-Sum: 1\r\n", b"A: b\r\nC: d\r\n"]), st.binary(max_size=9))
def test_whatever_the_portions_the_body_is_the_same(
    parts: list[bytes], cuts: list[int], trailer: bytes, more: bytes
) -> None:
    reader = ChunkReader()
    body = b"".join(reader.feed(portion) for portion in portions(chunked(parts, trailer) + more, cuts))
    assert (body, reader.ended, reader.rest) == (b"".join(parts), True, more)


def by_h11(data: bytes) -> tuple[bytes, bool] | None:
    """What h11 makes of a chunked body; None if it refuses it."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    client.send(h11.EndOfMessage())
    client.receive_data(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + data)
    body, ended = b"", False
    try:
        client.next_event()
        while (event := client.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            body += bytes(event.data) if isinstance(event, h11.Data) else b""
            if ended := isinstance(event, h11.EndOfMessage):
                break
    except h11.RemoteProtocolError:
        return None
    return body, ended


@given(st.lists(st.sampled_from([b"0", b"1", b"2", b"a", b"\r\n", b"\r", b"\n", b";x=1", b" ", b"zz"]), max_size=14))
@example([b"0", b"\r\n", b"\n"])
@example([b"0", b"\r\n", b"a", b"\n", b"\r\n"])
def test_what_h11_refuses_is_refused_and_what_it_takes_is_the_same(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    expected = by_h11(data)
    reader = ChunkReader()
    try:
        found = reader.feed(data)
    except ChunkError:
        assert expected is None
    else:
        # Trailers are not looked at here: h11 may find fault with them.
        assert expected is None or (found, reader.ended) == expected


@pytest.mark.parametrize("data", [b"zz\r\n", b"\r\n", b"-1\r\n", b"2\r\nabc\r\n", b"1" * 17 + b"\r\n", b"1" * 20_000])
def test_what_is_no_chunked_body_is_an_error(data: bytes) -> None:
    with pytest.raises(ChunkError):
        ChunkReader().feed(data)
