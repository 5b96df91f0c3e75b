"""`wave --plain` on a real terminal: what a user types, and the lines that come."""

import errno
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import sysconfig
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from wave_agent.testing import RecordingModelServer, Reply, call

WAVE = Path(sysconfig.get_path("scripts")) / "wave"
PATIENCE = 60.0
TAKES_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Ctrl-C reaches the programs whose terminal it is."""
NOT_PLAIN = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u2500-\u259f\u2800-\u28ff]")
"""Whatever moves the cursor, colours, draws boxes or spins. The terminal itself writes each newline with a `\\r`."""


class Session:
    """A program on a terminal, and everything that came to it."""

    def __init__(self, command: Sequence[str | Path], project: Path, environment: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
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
        directory = self.home if home else self.project / ".wave"
        directory.mkdir(exist_ok=True)
        (directory / "settings.json").write_text(json.dumps(settings))

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


def hook(command: str, **more: Any) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, **more}]}


GUARD = {
    **hook("grep -q '\"rm ' && { echo no rm here >&2; exit 2; } || exit 0", name="guard.sh"),
    "matcher": "Bash",
}


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
        wave.sees("More than one line came at once, which is no answer.")
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


def test_an_edit_is_shown_with_line_numbers_before_it_is_made(place: Place) -> None:
    (place.project / "a.txt").write_text("one\ntwo\n")
    edit = call("Edit", file_path=str(place.project / "a.txt"), old_string="two", new_string="2")
    with place.wave([Reply(tool_calls=[call("Read", file_path=str(place.project / "a.txt")), edit]), "ok"]) as wave:
        wave.sees("You: ")
        wave.enter("Edit.")
        wave.sees("Question: May Edit a.txt run?")
        wave.sees("      1  one\n      2 -two\n      2 +2\n")
        wave.sees("Answer, 1 to ")
        wave.enter("2")
        wave.sees("  result: changed, +1 -1\n")
        wave.sees("Wave: ok\n")


def test_a_project_with_hooks_asks_for_trust(place: Place) -> None:
    place.settings({"hooks": {"PreToolUse": [GUARD]}}, home=False)
    with place.wave(["Hello."]) as wave:
        wave.sees("Question: Do you trust this project?")
        wave.sees("It has hooks: commands that run on your machine")
        wave.sees("4. Leave\n")
        wave.enter("1")
        wave.sees("You: ")
        wave.enter("/status")
        wave.sees("Hooks: 1 of the project skipped\n")
        wave.enter("Hi.")
        wave.sees("Wave: Hello.\n")
        wave.enter("/exit")
        assert wave.ends() == 0
    with place.wave([]) as wave:
        wave.sees("Answer, 1 to 4: ")
        wave.type("\x04")
        assert wave.ends() == 0


def test_ctrl_c_interrupts_and_twice_leaves(place: Place) -> None:
    replies = [Reply("I wait.", tool_calls=[call("Bash", command="echo $$ > pid; sleep 600")]), "Never."]
    with place.wave(replies, "--allowed-tools", "Bash") as wave:
        wave.sees("You: ")
        wave.enter("Wait.")
        wave.sees("Bash: echo $$ > pid; sleep 600\n")
        wave.enter("And then this.")
        wave.sees("Queued: it is sent when this turn has ended.\n")
        wave.type("\x03")
        wave.sees("Interrupting. Ctrl-C again leaves.\n")
        wave.sees("Interrupted.\n")
        wave.sees("Dropped what was queued.\n")
        wave.sees("You: ")
        wave.type("\x03\x03")
        assert wave.ends() == 0
        assert "Traceback" not in wave.shown


def test_a_turned_away_question_interrupts(place: Place) -> None:
    with place.wave([Reply(tool_calls=[call("Bash", command="touch made")]), "Never."]) as wave:
        wave.sees("You: ")
        wave.enter("Make it.")
        wave.sees("Answer, 1 to ")
        wave.type("\x03")
        wave.sees("Turned away. Ctrl-C again leaves.\n")
        wave.sees("Interrupted.\n")
        wave.sees("You: ")
    assert not (place.project / "made").exists()


def test_a_prompt_may_have_many_lines(place: Place) -> None:
    with place.wave(["One.", "Two.", "Three.", "Four."]) as wave:
        wave.sees("You: ")
        wave.enter("first\\")
        wave.sees("More: ")
        wave.enter("second")
        wave.sees("Wave: One.\n")
        wave.sees("You: ")
        wave.type("!rm\n\n/exit\nlast")  # a paste without a newline at its end
        wave.sees("3 lines, not sent yet. An empty line sends them, Ctrl-C drops them.\n")
        wave.sees("More: ")
        wave.enter(" line")
        wave.sees("More: ")
        wave.enter("")
        wave.sees("Wave: Two.\n")
        wave.sees("You: ")
        wave.type('"""\na\n')
        wave.sees("More: ")
        wave.type('\nb\n"""\n')
        wave.sees("Wave: Three.\n")
        wave.sees("You: ")
        wave.enter("x" * 5000)
        wave.sees("The terminal cut this line after 4,095 bytes, so it was not sent.")
    sent = [request.body["messages"][-1]["content"] for request in place.requests]
    assert sent == ["first\nsecond", "!rm\n\n/exit\nlast line", "a\n\nb"]


def test_commands(place: Place) -> None:
    with place.wave([Reply("Hello.")], "--no-project-hooks") as wave:
        wave.sees("You: ")
        for typed, told in (
            ("/help", "/resume [ID]: resume another session of this project\n"),
            ("/model", "The model is small. Change it with /model NAME.\n"),
            ("/model large", "Using large from the next prompt on.\n"),
            ("/mode plan", "The mode is plan."),
            ("/mode default", "The mode is default."),
            ("/mode bypassPermissions", "There is no mode"),
            ("/permissions", "Mode: default\nDeny: none\n"),
            ("/hooks", "No hooks.\n"),
            ("/hooks trace", "No hook has run yet.\n"),
            ("/output", "There is no such call."),
            ("/cost", "0 tokens in, 0 out"),
            ("/sessions", ""),
            ("/undo", "No changes to files to undo."),
            ("/theme", "/theme needs the full screen: wave without --plain.\n"),
            ("/mcp", "/mcp needs the full screen: wave without --plain, or in a shell: wave mcp.\n"),
            ("/nonsense", "There is no command /nonsense; /help lists them.\n"),
            ("!echo shouted", "\nshouted\n"),
            ("Hi.", "Wave: Hello.\n"),
            ("/export out.md", "Wrote "),
            ("/clear", "New session. To go back to the old one: /resume.\n"),
            ("/resume", "Question: Which session?\n"),
        ):
            wave.enter(typed)
            wave.sees(told)
            wave.sees("Answer, 1 to 1: " if typed == "/resume" else "You: ")
        wave.enter("1")
        wave.sees("Switched session.\n")
        wave.sees("Resumed a session of 2 messages.\nYou: Hi.\nWave: Hello.\n")
        wave.sees("You: ")
        wave.enter("/exit")
        assert wave.ends() == 0
    assert place.requests[0].body["model"] == "large"
    assert "shouted" in place.requests[0].body["messages"][-1]["content"]
    assert (place.project / "out.md").exists()


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


def test_a_plan_is_accepted_with_a_number(place: Place) -> None:
    with place.wave(["The plan.", "Done."], "--permission-mode", "plan") as wave:
        wave.sees("You: ")
        wave.enter("Plan.")
        wave.sees("Question: Accept this plan?")
        wave.sees("Answer, 1 to 3: ")
        wave.enter("1")
        wave.sees("Wave: Done.\n")
        wave.sees("You: ")
        wave.enter("/mode")
        wave.sees("The mode is default.")


def test_a_todo_list_and_failures_have_words(place: Place) -> None:
    todos = [
        {"content": "Look", "status": "completed", "activeForm": "Looking"},
        {"content": "Mend", "status": "in_progress", "activeForm": "Mending"},
        {"content": "Rest", "status": "pending", "activeForm": "Resting"},
    ]
    replies = [
        Reply(tool_calls=[call("TodoWrite", todos=todos), call("Bash", command="seq 9; exit 3")]),
        "Done.",
    ]
    with place.wave(replies, "--allowed-tools", "Bash") as wave:
        wave.sees("You: ")
        wave.enter("Go.")
        wave.sees("Todo list: 1 of 3 done\n  done: Look\n  in progress: Mend\n  to do: Rest\n")
        wave.sees("  failed: ")
        wave.sees("more lines: /output\n")
        wave.sees("Wave: Done.\n")


def test_hooks_that_change_or_add_something_are_lines_too(place: Place) -> None:
    rewrite = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "echo other"}}}
    hooks = {
        "UserPromptSubmit": [hook("echo remember the milk", name="milk")],
        "PreToolUse": [hook(f"echo '{json.dumps(rewrite)}'", name="other", statusMessage="Looking at it")],
        "PostToolUse": [hook("exit 1", name="broken")],
    }
    place.settings({"hooks": hooks})
    with place.wave([Reply(tool_calls=[call("Bash", command="echo one")]), "Done."], "--allowed-tools", "Bash") as wave:
        wave.sees("You: ")
        wave.enter("Go.")
        wave.sees('Hook "milk" on UserPromptSubmit added context')
        wave.sees("Hook other runs: Looking at it\n")
        wave.sees('Hook "other" on PreToolUse rewrote the input')
        wave.sees('Hook "broken" on PostToolUse failed with exit code 1 and was let through')
        wave.sees("Wave: Done.\n")


def test_a_blocked_prompt_is_not_kept(place: Place) -> None:
    place.settings({"hooks": {"UserPromptSubmit": [hook("echo not that >&2; exit 2", name="guard")]}})
    with place.wave([]) as wave:
        wave.sees("You: ")
        wave.enter("My password is 12345.")
        wave.sees('Hook "guard" blocked the prompt: not that\n')
        wave.sees("The prompt was not sent, and is not kept.\n")
        wave.sees("You: ")
        wave.type("\x04")
        assert wave.ends() == 0
    assert not [file for file in place.home.rglob("*") if file.is_file() and b"12345" in file.read_bytes()]


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


def test_nothing_of_what_others_say_commands_the_terminal(place: Place) -> None:
    hostile = "a\x1b]52;c;Z290Y2hh\x07\x1b[2J\x1b[31m\x9b31m\rb\x08\u202ec"
    place.settings({"hooks": {"UserPromptSubmit": [hook(f"printf '%s' '{json.dumps({'systemMessage': hostile})}'")]}})
    replies = [
        Reply(hostile + "\nnext", tool_calls=[call(f"Bash{hostile}", command=hostile), call("Bash", command=hostile)]),
        hostile,
    ]
    with place.wave(replies) as wave:
        wave.sees("You: ")
        wave.enter("Go.")
        wave.sees("Answer, 1 to ")
        wave.enter("n")
        wave.sees("Wave: a")
        wave.sees("You: ")
        assert NOT_PLAIN.search(wave.shown) is None, ascii(wave.shown)
