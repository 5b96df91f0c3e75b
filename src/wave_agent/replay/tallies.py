"""The tallies of many sessions: from the index if it knows the transcript as it is, else from the transcript."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from wave_agent.replay.facts import read_facts
from wave_agent.replay.tally import SessionTally, decode, tally
from wave_agent.sessions.index import SUFFIX, stamps, transcript_ids
from wave_agent.sessions.index_file import IndexedSession, IndexFile, Stamp
from wave_agent.system.many import each

_BATCH = 256
"""Sessions that are added to the index at once. An interrupted run keeps what it has read."""

Report = Callable[[int, int], None]
"""Gets the number of sessions that are done, and of all."""


class ReadSession(Struct, frozen=True):
    """One transcript, read."""

    path: str
    stamp: Stamp
    tally: bytes
    """Empty if it could not be read."""


class Tallies:
    """Iterates over the tallies of sessions, and knows afterwards what it has left out."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.sessions = 0
        self.skipped: list[Path] = []
        """What looks like a transcript and cannot be read as one, such as a directory."""

    def of_projects(self, home: Path, directories: Sequence[Path], since: float = 0) -> Iterator[SessionTally]:
        """Those of the sessions in these directories that were used since. Brings the index up to date."""
        everything = sum(len(transcript_ids(directory)) for directory in directories)
        done = 0
        with IndexFile(home) as index:
            for directory in directories:
                ids = transcript_ids(directory)
                found = stamps(directory, ids, self.skipped)
                wanted = {one.session_id: Stamp(one.mtime_ns, one.size) for one in found if one.mtime_ns >= since * 1e9}
                done += len(ids) - len(wanted)
                gone: list[str] = []
                for one in index.tallies(directory.name):
                    if one.session_id not in ids:
                        gone.append(one.session_id)
                    elif wanted.get(one.session_id) == one.stamp and (known := decode(one.tally)) is not None:
                        del wanted[one.session_id]
                        done += 1
                        self._report(done, everything)
                        yield self._counted(known)
                index.forget(directory.name, gone)
                names = sorted(wanted, key=lambda name: wanted[name].mtime_ns)  # as the index is read
                for batch in _batches(self._read([os.path.join(directory, f"{name}{SUFFIX}") for name in names])):
                    index.put(directory.name, map(_indexed, batch))
                    for one in batch:
                        done += 1
                        self._report(done, everything)
                        if (known := decode(one.tally)) is not None:
                            yield self._counted(known)

    def of_files(self, paths: Sequence[Path]) -> Iterator[SessionTally]:
        """Those of any transcripts, without an index."""
        for number, one in enumerate(self._read([str(path) for path in paths]), 1):
            self._report(number, len(paths))
            if (known := decode(one.tally)) is not None:
                yield self._counted(known)

    def _counted(self, one: SessionTally) -> SessionTally:
        self.sessions += 1
        return one

    def _read(self, paths: Sequence[str]) -> Iterator[ReadSession]:
        for one in each(read_session, paths):
            if one.tally:
                yield one
            else:
                self.skipped.append(Path(one.path))


def read_session(path: str) -> ReadSession:
    """Reads a transcript as it is now: with the time and size that it has before."""
    try:
        with open(path, "rb") as file:
            facts = os.fstat(file.fileno())
            found = tally(read_facts(file))
    except OSError:
        return ReadSession(path, Stamp(0), b"")
    return ReadSession(path, Stamp(facts.st_mtime_ns, facts.st_size), msgspec.json.encode(found))


def _indexed(one: ReadSession) -> IndexedSession:
    return IndexedSession(os.path.basename(one.path)[: -len(SUFFIX)], one.stamp, one.tally)


def _batches(found: Iterable[ReadSession]) -> Iterator[list[ReadSession]]:
    rest = iter(found)
    while batch := list(islice(rest, _BATCH)):
        yield batch
