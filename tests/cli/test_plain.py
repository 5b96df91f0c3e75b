"""`wave --plain` on a real terminal: what a user types, and the lines that come."""

import errno
import os
import re
import select
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.cli.plain_stage import GUARD, NOT_PLAIN, hook, open_terminal, write_settings
from wave_agent.testing import RecordingModelServer, Reply, call

WAVE = Path(sysconfig.get_path("scripts")) / "wave"
PATIENCE = 60.0
TAKES_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Ctrl-C reaches the programs whose terminal it is."""


class Session:
    """A program on a terminal, and everything that came to it."""

    def __init__(self, command: Sequence[str | Path], project: Path, environment: dict[str, str]) -> None:
        self._master, slave = open_terminal()
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKES_TERMINAL, *map(str, command)],
            cwd=project,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ""
        self._seen = 0

    def sees(self, text: str) -> str:
        """Waits until this text has come after what was last waited for, and returns what stood before it."""
        deadline = monotonic() + PATIENCE
        while (at := self.shown.find(text, self._seen)) < 0:
            assert monotonic() < deadline, f"{text!r} never came:\n{self.shown}"
            assert self._read(deadline), f"{text!r} never came before the end:\n{self.shown}"
        before, self._seen = self.shown[self._seen : at], at + len(text)
        return before

    def _read(self, deadline: float) -> bool:
        if not select.select([self._master], [], [], max(0.0, deadline - monotonic()))[0]:
            return True
        try:
            data = os.read(self._master, 1 << 16)
        except OSError as error:
            if error.errno != errno.EIO:  # that is how a terminal ends
                raise
            return False
        self.shown += data.decode().replace("\r\n", "\n")
        return bool(data)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def enter(self, text: str) -> None:
        self.type(f"{text}\n")

    def ends(self) -> int:
        deadline = monotonic() + PATIENCE
        while self._read(deadline):
            assert monotonic() < deadline, self.shown
        return self.process.wait(timeout=PATIENCE)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


class Place:
    def __init__(self, root: Path) -> None:
        self.project, self.home = (root / "project").resolve(), root / "home"
        self.project.mkdir()
        self.requests: list[Any] = []

    def settings(self, settings: dict[str, Any], home: bool = True) -> None:
        write_settings(self.home if home else self.project / ".wave", settings)

    @contextmanager
    def wave(
        self,
        replies: Sequence[Any],
        *arguments: str,
        command: Sequence[str | Path] = (WAVE, "--plain"),
        **environment: str,
    ) -> Iterator[Session]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("WAVE", "OPENAI", "COV", "CI"))}
        with RecordingModelServer.in_thread(replies) as server:
            told = {"WAVE_HOME": str(self.home), "WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "small"}
            told |= {"NO_PROXY": "127.0.0.1", "TERM": "xterm-256color", "LANG": "C.UTF-8"}
            session = Session([*command, *arguments], self.project, {**kept, **told, **environment})
            try:
                yield session
            finally:
                session.close()
                self.requests = server.requests


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_session_is_lines_of_text(place: Place) -> None:
    place.settings({"hooks": {"PreToolUse": [GUARD]}})
    replies = [
        Reply("I **will** try:\n\n| a | b |\n|---|---|\n", tool_calls=[call("Bash", command="rm x")]),
        Reply("Then this.", tool_calls=[call("Bash", command="seq 12", description="Count")]),
        "All\ndone.",
    ]
    with place.wave(replies, "--allowed-tools", "Bash") as wave:
        wave.sees("Wave, model small, mode default, in ")
        wave.sees("\nYou: ")
        wave.enter("Do it.")
        wave.sees("Wave: I **will** try:\n\n| a | b |\n|---|---|\n")
        wave.sees("Bash: rm x\n")
        wave.sees('Hook "guard.sh" denied Bash (rm x): no rm here\n')
        wave.sees("  result: not run\n")
        wave.sees("Wave: Then this.\n")
        wave.sees("Bash: seq 12 (Count)\n")
        wave.sees("  result: 12 lines\n")
        wave.sees("Wave: All\ndone.\n")
        wave.sees("You: ")
        wave.enter("/output")
        wave.sees("command: seq 12")
        wave.sees("\n11\n12\n")
        wave.sees("You: ")
        wave.type("\x04")
        assert wave.ends() == 0
        assert re.search(r"To resume this session: wave --plain -r \S+\n$", wave.shown)
        found = NOT_PLAIN.search(wave.shown.replace("^D", "").replace("\x08", ""))
        assert found is None, ascii(wave.shown[max(0, found.start() - 60) : found.end() + 20])
    assert place.requests[0].body["messages"][-1]["content"] == "Do it."


def test_a_question_has_numbers_and_what_was_typed_before_does_not_answer_it(place: Place) -> None:
    calls = [call("Bash", command=f"touch {name}") for name in ("one", "two", "three")]
    slow = hook("while [ ! -e gate ]; do sleep 0.05; done")
    place.settings({"hooks": {"PreToolUse": [slow]}})
    with place.wave([Reply(tool_calls=calls), "Done."]) as wave:
        wave.sees("You: ")
        wave.enter("Touch them.")
        wave.sees("Bash: touch one\n")
        wave.type("1")
        wave.sees("1")  # the terminal has it
        (place.project / "gate").touch()
        wave.sees("Question: May Bash run?\n  $ touch one\n")
        wave.sees("1. Yes, once\n2. Yes, always in this project: ")
        wave.sees("Answer, 1 to ")
        wave.enter("")
        wave.sees("Type a number from 1 to ")
        wave.enter("1\n1")
        wave.sees("Expected one line as the answer, got several.")
        wave.enter("1")
        wave.sees("  result: ")
        wave.sees("$ touch two\n")
        wave.sees("Answer, 1 to ")
        wave.enter("n")
        wave.sees("  denied: Not run: the user said no.")
        wave.sees("$ touch three\n")
        wave.sees("Answer, 1 to ")
        wave.enter("t")
        wave.sees("Message for the model: ")
        wave.enter("Use two files.")
        wave.sees("Use two files.")
        wave.sees("Wave: Done.\n")
    assert {path.name for path in place.project.iterdir()} >= {"one"}
    assert not (place.project / "two").exists()
    assert not (place.project / "three").exists()


def test_ctrl_c_interrupts_and_twice_leaves(place: Place) -> None:
    replies = [Reply("I wait.", tool_calls=[call("Bash", command="echo $$ > pid; sleep 600")]), "Never."]
    with place.wave(replies, "--allowed-tools", "Bash") as wave:
        wave.sees("You: ")
        wave.enter("Wait.")
        wave.sees("Bash: echo $$ > pid; sleep 600\n")
        wave.enter("And then this.")
        wave.sees("Queued: it will be sent after this turn.\n")
        wave.type("\x03")
        wave.sees("Interrupting. Press Ctrl-C again to quit.\n")
        wave.sees("Interrupted.\n")
        wave.sees("Discarded the queued prompt.\n")
        wave.sees("You: ")
        wave.type("\x03\x03")
        assert wave.ends() == 0
        assert "Traceback" not in wave.shown


def test_a_session_is_resumed(place: Place) -> None:
    with place.wave(["The answer is 42."]) as wave:
        wave.sees("You: ")
        wave.enter("What is it?")
        wave.sees("Wave: The answer is 42.\n")
        wave.sees("You: ")
        wave.type("\x04")
        assert wave.ends() == 0
    with place.wave([], "-c", command=(WAVE,), TERM="dumb") as wave:
        wave.sees("You: What is it?\nWave: The answer is 42.\n")
        wave.sees("You: ")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it(place: Place, number: int, status: int) -> None:
    with place.wave([]) as wave:
        wave.sees("You: ")
        wave.process.send_signal(number)
        assert wave.ends() == status
        assert "Traceback" not in wave.shown


def test_it_needs_a_person_at_a_terminal(place: Place) -> None:
    for environment, arguments in (({}, ["--plain"]), ({"TERM": "dumb"}, [])):
        ran = subprocess.run(
            [WAVE, *arguments],
            cwd=place.project,
            env={**os.environ, "WAVE_HOME": str(place.home), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 2
        assert (
            'wave --plain needs a terminal on stdin. To run a single prompt without one: wave -p "PROMPT".'
            in ran.stderr
        )


def test_it_does_not_load_the_library_of_the_screen(place: Place) -> None:
    program = (
        "import sys\nfrom wave_agent.__main__ import main\nmain()\n"
        "print('loaded', sorted({'textual', 'rich', 'markdown_it'} & set(sys.modules)))"
    )
    with place.wave(["Hello."], "--plain", command=(sys.executable, "-c", program)) as wave:
        wave.sees("You: ")
        wave.enter("Hi.")
        wave.sees("Wave: Hello.\n")
        wave.sees("You: ")
        wave.enter("/help")
        wave.sees("You: ")
        wave.type("\x04")
        wave.sees("loaded []\n")
