"""The journal of hook runs as a hash chain: any line removed, inserted, moved or altered is detected.

Each `hook_run` line ends with two extra fields:

    {"type":"system","subtype":"hook_run",…,"run":7,"chain":"<sha256 in hex>"}

`run` numbers them within the session, from 1. `chain` is the SHA-256 of the previous chain value (for the first one,
the SHA-256 of the session id), in hex, followed by the line as it is in the file without `,"chain":"…"`. Bytes are
hashed, so that JSON libraries cannot disagree about them. Every line names the previous one (`parentUuid`), which
ties the journal to its place between the other lines.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex

_CHAIN = lazy_regex(rb',"chain":"([0-9a-f]{64})"\}$')


class Link(Struct, frozen=True):
    """The current end of the chain."""

    run: int
    chain: str


class ChainFault(Struct, frozen=True):
    """A deviation from the transcript as it was written."""

    line: int
    kind: str
    """`altered record`, `removed record`, `reordered record`, `inserted record` or `unreadable line`"""
    message: str


class ChainReport(Struct, frozen=True):
    """The result of checking a whole transcript."""

    head: Link
    chains: frozenset[str]
    """All chain values in the transcript: any head noted earlier must be among them."""
    findings: tuple[ChainFault, ...] = ()


def seed(session_id: str) -> Link:
    """The start of a session's chain."""
    return Link(0, hashlib.sha256(session_id.encode()).hexdigest())


def following(before: Link, line: bytes) -> Link:
    """The link of a line that is complete except for its chain."""
    return Link(before.run + 1, hashlib.sha256(before.chain.encode() + line).hexdigest())


class _JournalLine(Struct, frozen=True):
    """A journal line as read from the file."""

    line: int
    run: int
    chain: str
    body: bytes


def check(lines: Sequence[bytes], session_id: str) -> ChainReport:
    """Checks every line."""
    found: list[ChainFault] = []
    runs: list[_JournalLine] = []
    places: dict[Any, int] = {}
    records = [(number, line, _record(line)) for number, line in enumerate(lines, 1) if line.strip()]
    for number, _, record in records:
        if record is not None and isinstance(name := record.get("uuid"), str):
            places.setdefault(name, number)
    parent: Any = None
    for number, line, record in records:
        if record is None:
            found.append(ChainFault(number, "unreadable line", "not a JSON object: torn by a crash, or overwritten"))
        elif number == 1 and record.get("type") == "session":
            found += _head(record, session_id)
        else:
            found += _place(number, record, parent, places)
            parent = record.get("uuid", parent)
            if record.get("subtype") == "hook_run" or _CHAIN.search(line):  # whatever type a chained line claims
                found += _collect(number, line, record, runs)
    found += _links(runs, session_id)
    head = max(runs, key=lambda run: run.run, default=None)
    # If a line shows the same defect twice, the chain's message is more precise than its neighbours'.
    distinct = {(finding.line, finding.kind): finding for finding in found}
    return ChainReport(
        head=seed(session_id) if head is None else Link(head.run, head.chain),
        chains=frozenset(run.chain for run in runs),
        findings=tuple(sorted(distinct.values(), key=lambda finding: finding.line)),
    )


def last_link(lines: Iterable[bytes]) -> Link | None:
    """Where a resumed session continues. The value is taken as it is: checking it is up to `check`."""
    runs: list[_JournalLine] = []
    for number, line in enumerate(lines, 1):
        if b'"hook_run"' in line and (record := _record(line)) is not None:
            _collect(number, line, record, runs)
    return _link(runs[-1] if runs else None)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        found: object = msgspec.json.decode(line)
    except (ValueError, RecursionError):  # four times as fast, but takes less than the recorder can write
        found = _unusual(line)
    return cast(dict[str, Any], found) if isinstance(found, dict) else None


def _unusual(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _head(record: dict[str, Any], session_id: str) -> list[ChainFault]:
    named = record.get("session_id")
    return [] if named == session_id else [ChainFault(1, "altered record", f"it belongs to another session: {named}")]


def _place(number: int, record: dict[str, Any], parent: Any, places: Mapping[Any, int]) -> list[ChainFault]:
    """Every line names the one before it."""
    if number == 1:
        return [ChainFault(1, "removed record", "the first line of the session is missing")]
    if not isinstance(record.get("uuid"), str):
        return [ChainFault(number, "inserted record", "it has no uuid, so this program did not write it")]
    named = record.get("parentUuid")
    if named == parent:
        return []
    if named is not None and not isinstance(named, str):
        return [ChainFault(number, "altered record", "its parentUuid is not a uuid")]
    place = 1 if named is None else places.get(named)
    if place is None:
        return [ChainFault(number, "removed record", "the line that its parentUuid names is missing")]
    if place > number:
        return [ChainFault(number, "reordered record", f"its parentUuid names line {place}, not the line before it")]
    return [ChainFault(number, "inserted record", f"its parentUuid names line {place}, not the line before it")]


def _collect(number: int, line: bytes, record: dict[str, Any], runs: list[_JournalLine]) -> list[ChainFault]:
    found, run = _CHAIN.search(line), record.get("run")
    if found is None or not isinstance(run, int) or run < 1:
        return [ChainFault(number, "inserted record", "a hook run that is not part of the chain")]
    runs.append(_JournalLine(number, run, found[1].decode(), line[: found.start()] + b"}"))
    return []


def _links(runs: Sequence[_JournalLine], session_id: str) -> list[ChainFault]:
    """The chain itself. A link is checked against its predecessor's value, wherever that line is now."""
    first: dict[int, _JournalLine] = {}
    for run in runs:
        first.setdefault(run.run, run)
    findings: list[ChainFault] = []
    highest = 0
    for run in runs:
        before = seed(session_id) if run.run == 1 else _link(first.get(run.run - 1))
        if first[run.run] is not run:
            message = f"hook run {run.run} is already in line {first[run.run].line}"
            findings.append(ChainFault(run.line, "inserted record", message))
        elif before is None:
            missing = max((known for known in first if known < run.run), default=0) + 1
            which = f"{missing}" if missing == run.run - 1 else f"{missing} to {run.run - 1}"
            findings.append(ChainFault(run.line, "removed record", f"before hook run {run.run}, {which} is missing"))
        elif following(before, run.body).chain != run.chain:
            findings.append(ChainFault(run.line, "altered record", f"hook run {run.run} does not match its chain"))
        elif run.run < highest:
            findings.append(ChainFault(run.line, "reordered record", f"hook run {run.run} comes after {highest}"))
        highest = max(highest, run.run)
    return findings


def _link(run: _JournalLine | None) -> Link | None:
    return None if run is None else Link(run.run, run.chain)
