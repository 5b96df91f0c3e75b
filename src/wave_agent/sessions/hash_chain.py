"""The journal of hook runs as a chain: what is taken out, put in, moved or altered shows.

Each `hook_run` line ends in two fields of its own:

    {"type":"system","subtype":"hook_run",…,"run":7,"chain":"<sha256 in hex>"}

`run` counts them in the session from 1. `chain` is the SHA-256 of the chain before it (for the first one, of the
SHA-256 of the session id), in hex, followed by the line as it stands in the file without `,"chain":"…"`. The bytes are
hashed, so that no two JSON libraries can disagree about them. Every line names the one before it (`parentUuid`), which
ties the journal to its place between the others.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

_CHAIN = re.compile(rb',"chain":"([0-9a-f]{64})"\}$')


class Link(Struct, frozen=True):
    """Where the chain has got to."""

    run: int
    chain: str


class ChainFault(Struct, frozen=True):
    """Something in a transcript that its writer has not left so."""

    line: int
    kind: str
    """`altered record`, `removed record`, `reordered record`, `inserted record` or `unreadable line`"""
    message: str


class ChainReport(Struct, frozen=True):
    """What a look at a whole transcript has found."""

    head: Link
    chains: frozenset[str]
    """All that the transcript states: a head that was noted once must be among them."""
    findings: tuple[ChainFault, ...] = ()


def seed(session_id: str) -> Link:
    """Where the chain of a session begins."""
    return Link(0, hashlib.sha256(session_id.encode()).hexdigest())


def following(before: Link, line: bytes) -> Link:
    """The link of a line that is complete but for its chain."""
    return Link(before.run + 1, hashlib.sha256(before.chain.encode() + line).hexdigest())


class _JournalLine(Struct, frozen=True):
    """A line of the journal as it stands there."""

    line: int
    run: int
    chain: str
    body: bytes


def check(lines: Sequence[bytes], session_id: str) -> ChainReport:
    """Looks at every line."""
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
            if record.get("subtype") == "hook_run" or _CHAIN.search(line):  # whatever a chained line claims to be
                found += _collect(number, line, record, runs)
    found += _links(runs, session_id)
    head = max(runs, key=lambda run: run.run, default=None)
    # Where a line shows the same defect twice, the chain knows more about it than its neighbours do.
    distinct = {(finding.line, finding.kind): finding for finding in found}
    return ChainReport(
        head=seed(session_id) if head is None else Link(head.run, head.chain),
        chains=frozenset(run.chain for run in runs),
        findings=tuple(sorted(distinct.values(), key=lambda finding: finding.line)),
    )


def last_link(lines: Iterable[bytes]) -> Link | None:
    """Where a session that is resumed goes on. What stands there is taken as it is: to judge it is for `check`."""
    runs: list[_JournalLine] = []
    for number, line in enumerate(lines, 1):
        if b'"hook_run"' in line and (record := _record(line)) is not None:
            _collect(number, line, record, runs)
    return _link(runs[-1] if runs else None)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], found) if isinstance(found, dict) else None


def _head(record: dict[str, Any], session_id: str) -> list[ChainFault]:
    named = record.get("session_id")
    return [] if named == session_id else [ChainFault(1, "altered record", f"it is of another session: {named}")]


def _place(number: int, record: dict[str, Any], parent: Any, places: Mapping[Any, int]) -> list[ChainFault]:
    """Every line names the one before it."""
    if number == 1:
        return [ChainFault(1, "removed record", "the first line of the session is missing")]
    if not isinstance(record.get("uuid"), str):
        return [ChainFault(number, "inserted record", "it has no uuid, so this program has not written it")]
    named = record.get("parentUuid")
    if named == parent:
        return []
    if named is not None and not isinstance(named, str):
        return [ChainFault(number, "altered record", "what it names as the line before it is no uuid")]
    place = 1 if named is None else places.get(named)
    if place is None:
        return [ChainFault(number, "removed record", "the line that it names as the one before it is missing")]
    if place > number:
        return [ChainFault(number, "reordered record", f"the line that it names as the one before it is line {place}")]
    return [ChainFault(number, "inserted record", f"the line that it names as the one before it is line {place}")]


def _collect(number: int, line: bytes, record: dict[str, Any], runs: list[_JournalLine]) -> list[ChainFault]:
    found, run = _CHAIN.search(line), record.get("run")
    if found is None or not isinstance(run, int) or run < 1:
        return [ChainFault(number, "inserted record", "a hook run that is no part of the chain")]
    runs.append(_JournalLine(number, run, found[1].decode(), line[: found.start()] + b"}"))
    return []


def _links(runs: Sequence[_JournalLine], session_id: str) -> list[ChainFault]:
    """The chain itself. A link is held against what its predecessor states, wherever that stands now."""
    first: dict[int, _JournalLine] = {}
    for run in runs:
        first.setdefault(run.run, run)
    findings: list[ChainFault] = []
    highest = 0
    for run in runs:
        before = seed(session_id) if run.run == 1 else _link(first.get(run.run - 1))
        if first[run.run] is not run:
            message = f"hook run {run.run} stands already in line {first[run.run].line}"
            findings.append(ChainFault(run.line, "inserted record", message))
        elif before is None:
            missing = max((known for known in first if known < run.run), default=0) + 1
            which = f"{missing}" if missing == run.run - 1 else f"{missing} to {run.run - 1}"
            findings.append(ChainFault(run.line, "removed record", f"before hook run {run.run}, {which} is missing"))
        elif following(before, run.body).chain != run.chain:
            findings.append(ChainFault(run.line, "altered record", f"hook run {run.run} does not fit its chain"))
        elif run.run < highest:
            findings.append(ChainFault(run.line, "reordered record", f"hook run {run.run} stands after {highest}"))
        highest = max(highest, run.run)
    return findings


def _link(run: _JournalLine | None) -> Link | None:
    return None if run is None else Link(run.run, run.chain)
