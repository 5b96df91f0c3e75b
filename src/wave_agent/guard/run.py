"""`wave guard run`: one event of a host in, one answer out. Fails closed.

Nothing but the answer goes to stdout: everything else that might print is sent to stderr.
"""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.foundation import Foundation, lay_foundation
from wave_agent.agent.options import Options, locate_project, wave_home
from wave_agent.errors import SessionError, UntrustedHooksError, WaveError
from wave_agent.guard.answers import HostAnswer, HostReply, degraded, failed, reply
from wave_agent.guard.calls import HostEvent, UnreadableError, read_event
from wave_agent.guard.hosts import HOSTS, Verb
from wave_agent.guard.journal import GuardJournal, earlier_for, session_name, with_id
from wave_agent.guard.judge import HostJudge
from wave_agent.guard.verdicts import JudgedEvent, JudgedHostCall
from wave_agent.hooks.events import EVENTS
from wave_agent.sessions.transcript import transcript_file
from wave_agent.system.private_files import make_private
from wave_agent.text import strip_controls

TIMEOUT = 60.0
"""Seconds within which a host wants an answer, if it does not say."""
MARGIN = 0.1
"""The part of the timeout that is left for the host's own work and for a slow machine."""
_KEPT = 90 * 86_400
"""Seconds for which the directory of a session is remembered."""
_LONGEST_EVENT = 64 << 20
"""Bytes of an event. Nothing that long is a call that anyone could judge in time."""


class Asked(Struct, frozen=True, kw_only=True):
    """What a host asks the guard."""

    host: str
    name: str
    """The host's name of the event."""
    directory: str
    """Where the host started the guard."""
    environment: Mapping[str, str]
    timeout: float = TIMEOUT
    """The host's own timeout, in seconds."""
    pass_allow: bool = False
    trust_ref: str | None = None
    """Trust exactly what is in this git ref."""

    @property
    def deadline(self) -> float:
        """Seconds until the guard must have answered."""
        return max(0.5, self.timeout - max(1.0, self.timeout * MARGIN))


def answer_event(
    asked: Asked, stdin: bytes, send: Callable[[HostReply], None], warn: Callable[[str], None] = lambda _: None
) -> None:
    """Judges an event and sends the answer, always exactly one. Hooks that are not awaited may run on after that.

    `warn` gets what a person should know and the host need not.
    """
    try:
        asyncio.run(_answer(asked, stdin, send, warn))
    except Exception as error:  # the guard itself is broken: the call does not run
        send(failed(asked.host, asked.name, strip_controls(f"internal error: {type(error).__name__}: {error}")))


async def _answer(asked: Asked, stdin: bytes, send: Callable[[HostReply], None], warn: Callable[[str], None]) -> None:
    guard: _Guard | None = None
    event: HostEvent | None = None
    try:
        async with asyncio.timeout(asked.deadline):
            event = _read(asked, stdin)
            guard = _Guard.open(asked, event)
            judged = await guard.judge.judge()
        answer = reply(asked.host, asked.name, judged.answer, pass_allow=asked.pass_allow)
    except TimeoutError:
        send(failed(asked.host, asked.name, f"the guards did not answer within {asked.deadline:g} s"))
    except (UnreadableError, WaveError) as error:
        why = strip_controls(str(error))
        if event is not None:
            _note_failure(asked, event, why)
        send(failed(asked.host, asked.name, why))
    else:
        judged = replace(judged, answer=_as_told(asked, judged.answer))
        # In the journal before the host acts on it, but a journal that cannot be written changes no verdict.
        try:
            guard.journal.write(judged)
        except SessionError as error:
            warn(str(error))
        send(answer)
    finally:
        if guard is not None:
            late = await guard.judge.close()
            with suppress(SessionError):
                if late:
                    guard.journal.add_runs(late)
            if event is not None and EVENTS[event.event].ends_session:
                guard.upload()


def _as_told(asked: Asked, answer: HostAnswer) -> HostAnswer:
    """For the journal: a question that the host cannot ask was a deny."""
    row = HOSTS[asked.host]
    event = row.events[asked.name]
    told = degraded(answer, event, row.enforces.get(event, frozenset()))
    is_deny = answer.verb is Verb.ASK and told.verb is Verb.DENY
    return replace(answer, verb=told.verb, reason=told.reason) if is_deny else answer


def _note_failure(asked: Asked, event: HostEvent, why: str) -> None:
    """What could not be judged is in the journal too, as far as the project can be found."""
    before_tool = EVENTS[event.event].has_rewrites
    answer = HostAnswer(verb=Verb.DENY if before_tool else None, reason=why)
    calls = [JudgedHostCall(call, event.call_id(number), answer) for number, call in enumerate(event.calls)]
    name = session_name(event.host, event.session_id)
    with suppress(WaveError):
        project, home = locate_project(_start(asked, event, name), asked.environment)
        transcript = transcript_file(home, project.directory, name)
        journal = GuardJournal(home, transcript, host=event.host, project=project.directory, start=project.start)
        journal.write(JudgedEvent(event=event, answer=answer, by="the guard itself", calls=tuple(calls)))


def _read(asked: Asked, stdin: bytes) -> HostEvent:
    if len(stdin) > _LONGEST_EVENT:
        raise UnreadableError(f"the event has more than {_LONGEST_EVENT >> 20} MiB")
    try:
        text = stdin.decode()
    except UnicodeDecodeError:
        raise UnreadableError("the event is not UTF-8") from None
    return read_event(HOSTS[asked.host], asked.name, text, asked.directory)


class _Guard(Struct, frozen=True):
    judge: HostJudge
    journal: GuardJournal
    foundation: Foundation
    transcript: Path

    @classmethod
    def open(cls, asked: Asked, event: HostEvent) -> "_Guard":
        """Reads the settings. Raises `SettingsError` and `UntrustedHooksError`."""
        name = session_name(event.host, event.session_id)
        environment = dict(asked.environment)
        start = _start(asked, event, name)
        options = Options(workdir=start, interactive=False, trust_ref=asked.trust_ref)
        try:
            foundation = lay_foundation(options, environment)
        except UntrustedHooksError as error:
            raise error.offering() from None
        transcript = transcript_file(foundation.home, foundation.project, name)
        earlier = earlier_for(event, transcript, foundation.settings.hooks.hooks)
        journal = GuardJournal(
            foundation.home,
            transcript,
            host=event.host,
            project=foundation.project,
            start=foundation.place.start,
            identity=foundation.settings.record_identity,
        )
        _remember(foundation, event, name)
        return cls(HostJudge(foundation, with_id(event, earlier), name, earlier), journal, foundation, transcript)

    def upload(self) -> None:
        """Sends the finished session to where `sessions.upload` says, in the background. The host has its answer."""
        url = self.foundation.settings.upload
        if url is None or not self.transcript.exists():
            return
        from wave_agent.sessions.outbox import queue, start_sending  # lazy: few sessions are collected

        with suppress(OSError):
            queue(self.foundation.home, self.transcript)
        start_sending(self.foundation.home, url, self.foundation.environment)


def _start(asked: Asked, event: HostEvent, name: str) -> str:
    """Where the session was started: a command that changes the directory must not change the guards."""
    variable = HOSTS[asked.host].project_variable
    named = asked.environment.get(variable, "") if variable else ""
    if named and os.path.isdir(named):
        return named
    if event.session_id:
        with suppress(OSError, UnicodeDecodeError):
            return _pin(wave_home(asked.environment), name).read_text()
    return event.directory


def _pin(home: Path, name: str) -> Path:
    return home / "guard" / "sessions" / name


def _remember(foundation: Foundation, event: HostEvent, name: str) -> None:
    file = _pin(foundation.home, name)
    if event.session_id and not file.exists():
        with suppress(OSError):
            make_private(file.parent)
            _forget_old(file.parent)
            file.write_text(foundation.place.start)


def _forget_old(pins: Path) -> None:
    """Sessions that began long ago have ended."""
    limit = time.time() - _KEPT
    for pin in pins.iterdir():
        if pin.stat().st_mtime < limit:
            pin.unlink()


# ------------------------------------------------------------------------------------------------------ as a process


class Watchdog:
    """Makes sure that there is one answer, and that it comes in time even if something blocks that cannot be
    cancelled."""

    def __init__(self, asked: Asked, send: Callable[[HostReply], None]) -> None:
        self._asked = asked
        self._send = send
        self._answered = threading.Lock()
        self.status = 2
        self._timer = threading.Timer(asked.deadline + min(1.0, asked.timeout * MARGIN / 2), self._give_up)
        self._timer.daemon = True

    def __call__(self, answer: HostReply) -> None:
        """Sends the answer, if it is the first."""
        if self._answered.acquire(blocking=False):
            self.status = answer.status
            self._send(answer)
            self._timer.cancel()

    def __enter__(self) -> "Watchdog":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _give_up(self) -> None:
        self(failed(self._asked.host, self._asked.name, f"the guard did not answer within {self._asked.deadline:g} s"))
        os._exit(self.status)


def run_once(asked: Asked, answered: Callable[[], None] = lambda: None) -> int:
    """Reads the event from stdin, answers on stdout, and returns the exit status. Without a resident guard.

    `answered` is called after the answer, before hooks in the background are awaited."""
    out = os.dup(1)
    os.dup2(2, 1)  # nothing but the answer is printed there

    def send(answer: HostReply) -> None:
        with suppress(OSError):
            os.write(2, answer.stderr.encode(errors="replace"))
        with suppress(OSError):
            _write(out, answer.stdout.encode(errors="replace"))
        os.close(out)
        answered()

    with Watchdog(asked, send) as guarded:
        stdin = sys.stdin.buffer.read(_LONGEST_EVENT + 1)
        answer_event(asked, stdin, guarded, lambda text: print(f"wave guard: {text}", file=sys.stderr))
    return guarded.status


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
