"""The journal as a chain: every way to tamper with it shows, each by its name."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.sessions.hash_chain import Link, check, following, last_link, seed
from wave_agent.sessions.transcript import encode

Lines = list[bytes]


def journal(runs: int, session_id: str = "s") -> Lines:
    """A transcript with a message after every hook run."""
    lines = [encode({"type": "session", "version": 1, "session_id": session_id})]
    link, parent = seed(session_id), None
    for number in range(1, runs + 1):
        run: dict[str, Any] = {"type": "system", "subtype": "hook_run", "name": f"hook {number}", "exit_code": 0}
        run |= {"uuid": f"run {number}", "parentUuid": parent, "run": number}
        link = following(link, encode(run))
        said = {"type": "assistant", "uuid": f"said {number}", "parentUuid": f"run {number}"}
        lines += [encode({**run, "chain": link.chain}), encode(said)]
        parent = f"said {number}"
    return lines


def found(lines: Lines, session_id: str = "s") -> list[tuple[int, str]]:
    return [(finding.line, finding.kind) for finding in check(lines, session_id).findings]


def test_a_journal_that_nobody_touched_is_sound_and_tells_its_head() -> None:
    lines = journal(3)
    report = check(lines, "s")
    assert report.findings == ()
    assert (report.head.run, report.head.chain) == (3, json.loads(lines[5])["chain"])
    assert last_link(lines) == report.head
    assert report.chains == {json.loads(line)["chain"] for line in lines[1::2]}


def test_the_chain_can_be_computed_with_nothing_but_the_documentation() -> None:
    chain = hashlib.sha256(b"s").hexdigest()
    for line in journal(3)[1::2]:
        body, _, rest = line.rpartition(b',"chain":"')
        chain = hashlib.sha256(chain.encode() + body + b"}").hexdigest()
        assert rest == chain.encode() + b'"}'


@pytest.mark.parametrize("lines", [[], [b""], journal(0), [*journal(0), b"", b"  "]])
def test_a_session_without_hooks_is_sound(lines: Lines) -> None:
    report = check(lines, "s")
    assert (report.findings, report.head) == ((), seed("s"))
    assert last_link(lines) is None


def edited(line: bytes, **changes: Any) -> bytes:
    return encode({**json.loads(line), **changes})


def moved(lines: Lines) -> Lines:
    return [*lines[:1], *lines[3:5], *lines[1:3], *lines[5:]]


TAMPERED: dict[str, tuple[Callable[[Lines], Lines], list[tuple[int, str]]]] = {
    "a result altered": (
        lambda lines: [*lines[:3], edited(lines[3], exit_code=1), *lines[4:]],
        [(4, "altered record")],
    ),
    "one byte more": (
        lambda lines: [*lines[:3], lines[3].replace(b":", b": ", 1), *lines[4:]],
        [(4, "altered record")],
    ),
    "a chain altered": (
        lambda lines: [*lines[:3], edited(lines[3], chain="0" * 64), *lines[4:]],
        [(4, "altered record"), (6, "altered record")],
    ),
    "a chain taken away": (
        lambda lines: [*lines[:3], edited(lines[3], chain=None), *lines[4:]],
        [(4, "inserted record"), (6, "removed record")],
    ),
    "a number that is none": (
        lambda lines: [*lines[:5], edited(lines[5], run="x"), *lines[6:]],
        [(6, "inserted record")],
    ),
    "a run taken out": (
        lambda lines: [*lines[:3], *lines[4:]],
        [(4, "removed record"), (5, "removed record")],
    ),
    "two runs taken out, with what stands between": (
        lambda lines: [*lines[:1], *lines[5:]],
        [(2, "removed record")],
    ),
    "the last run taken out, but not what follows": (lambda lines: [*lines[:5], *lines[6:]], [(6, "removed record")]),
    "a message taken out": (lambda lines: [*lines[:2], *lines[3:]], [(3, "removed record")]),
    "the first line taken out": (lambda lines: lines[1:], [(1, "removed record")]),
    "runs put in another order": (
        moved,
        [(2, "reordered record"), (4, "inserted record"), (4, "reordered record"), (6, "inserted record")],
    ),
    "a run put in": (
        lambda lines: [*lines[:3], b'{"subtype":"hook_run","uuid":"x","parentUuid":"said 1"}', *lines[3:]],
        [(4, "inserted record"), (5, "inserted record")],
    ),
    "a run put in twice": (
        lambda lines: [*lines[:3], lines[1], *lines[3:]],
        [(4, "inserted record"), (5, "inserted record")],
    ),
    "a line of nobody": (lambda lines: [*lines, b'{"type":"summary"}'], [(8, "inserted record")]),
    "a parent that is none": (
        lambda lines: [*lines, b'{"type":"user","uuid":"x","parentUuid":5}'],
        [(8, "altered record")],
    ),
    "a line torn": (lambda lines: [*lines, b'{"type":"us'], [(8, "unreadable line")]),
    "a line that is no object": (lambda lines: [*lines, b"[]"], [(8, "unreadable line")]),
    "zeros": (lambda lines: [*lines, b"\0\0\0"], [(8, "unreadable line")]),
    "a line nested beyond reason": (lambda lines: [*lines, b"[" * 100_000], [(8, "unreadable line")]),
}  # fmt: skip


@rows(("tamper", "expected"), TAMPERED.values(), ids=TAMPERED.keys())
def test_what_was_done_to_a_journal_is_named_with_its_line(
    tamper: Callable[[Lines], Lines], expected: list[tuple[int, str]]
) -> None:
    assert found(tamper(journal(3))) == expected


def test_a_transcript_under_another_name_is_not_that_session() -> None:
    assert found(journal(2), "other") == [(1, "altered record"), (2, "altered record")]


def test_how_many_runs_are_missing_is_told_without_counting_to_a_number_that_somebody_made_up() -> None:
    lines = journal(5)
    (finding,) = [one for one in check([*lines[:3], lines[9]], "s").findings if "hook run" in one.message]
    assert finding.message == "before hook run 5, 2 to 4 is missing"
    huge = b'{"subtype":"hook_run","uuid":"x","parentUuid":"said 5","run":' + b"9" * 40 + lines[1][-77:]
    assert found([*lines, huge]) == [(12, "removed record")]


def test_where_the_tail_was_cut_off_only_a_head_that_was_noted_tells() -> None:
    noted = check(journal(3), "s").head.chain
    cut = check(journal(3)[:3], "s")
    assert cut.findings == ()
    assert noted not in cut.chains


@given(st.integers(0, 4), st.data())
def test_no_single_byte_of_a_run_can_be_changed_unseen(runs: int, data: st.DataObject) -> None:
    lines = journal(runs + 1)
    at = data.draw(st.sampled_from(range(1, len(lines), 2)))
    place = data.draw(st.integers(0, len(lines[at]) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != lines[at][place] and byte not in b"\r\n"))
    changed = lines[at][:place] + bytes([byte]) + lines[at][place + 1 :]
    assert found([*lines[:at], changed, *lines[at + 1 :]]) != []


@given(st.lists(st.binary(max_size=80).filter(lambda line: b"\n" not in line), max_size=5))
def test_whatever_stands_there_a_look_at_it_ends(lines: Lines) -> None:
    check(lines, "s")
    assert last_link(lines) is None or isinstance(last_link(lines), Link)
