"""`wave demo --screen`: the recording of the screen is played with its timing, and is what the program shows."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import sysconfig
import termios
import xml.etree.ElementTree as ET
from io import StringIO
from pathlib import Path
from time import monotonic

import pytest
from rich.color import ColorSystem

from wave_agent.cli.demo_project import HOOKS, scenes
from wave_agent.cli.demo_screen import play, printed
from wave_agent.cli.recording import demo_recording, plain

ROOT = Path(__file__).parent.parent.parent
WAVE = Path(sysconfig.get_path("scripts")) / "wave"
PICTURE = ROOT / "docs" / "images" / "demo.svg"
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
RECORDING = demo_recording()
OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Makes the terminal that of the process, so that Ctrl-C reaches it, and becomes the program."""


def drawn(output: str) -> list[str]:
    """What a terminal shows after this output: the rows that were written last, without their styles."""
    rows = [""] * RECORDING.height
    for number, text in re.findall(r"\x1b\[(\d+);1H((?:(?!\x1b\[\d+;1H|\x1b\[0m\x1b\[\?25h).)*)", output, re.DOTALL):
        rows[int(number) - 1] = re.sub(r"\x1b\[[\d;]*m", "", text).rstrip()
    return rows


class Terminal:
    """A real process on a terminal of its own."""

    def __init__(self, columns: int, lines: int, **environment: str) -> None:
        self._side, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL, WAVE, "demo", "--screen"],
            **{"stdin": inner, "stdout": inner, "stderr": inner, "start_new_session": True},
            env={**kept, "TERM": "xterm-256color", **environment},
        )
        os.close(inner)
        self.output = ""

    def read_until(self, text: str | None) -> str:
        """Up to this text, or all of it."""
        deadline = monotonic() + 100
        while (text is None or text not in self.output) and monotonic() < deadline:
            try:
                part = os.read(self._side, 65536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not part:
                break
            self.output += part.decode(errors="replace")
        assert text is None or text in self.output
        return self.output

    def press(self, keys: bytes) -> None:
        os.write(self._side, keys)

    def status(self) -> int:
        self.read_until(None)
        os.close(self._side)
        return self.process.wait(20)


def test_the_recording_shows_scenes_of_the_demo_with_the_words_of_its_hooks(tmp_path: Path) -> None:
    prompts = {scene.title: scene.prompt for scene in scenes(tmp_path)}
    screens = list(RECORDING.screens())
    text = " ".join(" ".join("\n".join(printed(RECORDING)).split()).split())
    assert len(RECORDING.scenes) == 3
    for scene in RECORDING.scenes:
        shown = "\n".join(map(plain, screens[scene.last]))
        assert f"> {prompts[scene.title]}" in shown
    for script in ("no-rm-rf.sh", "check-syntax.sh", "tests-pass.sh"):
        assert script in HOOKS
        assert f"⊘ {script} on " in text
    (reason,) = re.findall(r'echo "(rm -rf .*?)" >&2', HOOKS["no-rm-rf.sh"])
    assert reason in text


def test_the_recording_fits_a_small_terminal_and_is_as_long_as_a_reader_stays() -> None:
    assert (RECORDING.width, RECORDING.height) == (80, 24)
    assert 10 < RECORDING.seconds < 45
    assert [frame.at for frame in RECORDING.frames] == sorted(frame.at for frame in RECORDING.frames)


@pytest.mark.parametrize("colors", [ColorSystem.TRUECOLOR, ColorSystem.STANDARD, None], ids=str)
def test_what_is_played_ends_as_the_last_screen_and_leaves_the_terminal_as_it_was(colors: ColorSystem | None) -> None:
    terminal, slept = StringIO(), list[float]()
    play(RECORDING, terminal, slept.append, colors)
    output = terminal.getvalue()
    assert output.startswith(ENTER)
    assert output.endswith(LEAVE)
    *_, last = RECORDING.screens()
    assert drawn(output) == [plain(row) for row in last]
    assert max(slept) == pytest.approx(RECORDING.seconds, abs=5)
    assert (re.search(r"\x1b\[[1-9][\d;]*m", output) is not None) is (colors is not None)


def test_an_interrupt_leaves_the_second_screen() -> None:
    terminal = StringIO()

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(RECORDING, terminal, interrupted, None)
    assert terminal.getvalue().endswith(LEAVE)


def test_without_a_terminal_the_scenes_are_printed_as_text() -> None:
    ran = subprocess.run([WAVE, "demo", "--screen"], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\x1b" not in ran.stdout
    titles = [f"{number}. {scene.title}" for number, scene in enumerate(RECORDING.scenes, 1)]
    assert [line for line in ran.stdout.splitlines() if line in titles] == titles
    assert "no-rm-rf.sh on PreToolUse denied" in ran.stdout


def test_a_terminal_that_cannot_move_its_cursor_gets_the_same_text() -> None:
    terminal = Terminal(80, 24, TERM="dumb")
    assert terminal.status() == 0
    assert "\x1b" not in terminal.output
    assert "no-rm-rf.sh on PreToolUse denied" in terminal.output


def test_ctrl_c_ends_the_recording_and_gives_the_terminal_back() -> None:
    terminal = Terminal(80, 24)
    terminal.read_until("Say what to do.")
    terminal.press(b"typed meanwhile\x03")
    assert terminal.status() == 130
    assert LEAVE in terminal.output
    assert "Traceback" not in terminal.output
    assert "typed meanwhile" not in terminal.output


def test_a_terminal_that_is_too_small_is_told_the_size_that_is_needed() -> None:
    terminal = Terminal(60, 20)
    assert terminal.status() == 1
    assert "at least 80×24 characters, and this one has 60×20" in " ".join(terminal.output.split())
    assert ENTER not in terminal.output


def test_the_recording_is_played_to_its_end_in_about_its_own_time() -> None:
    began = monotonic()
    terminal = Terminal(100, 30, NO_COLOR="1")
    assert terminal.status() == 0
    assert monotonic() - began >= RECORDING.seconds
    *_, last = RECORDING.screens()
    assert drawn(terminal.output) == [plain(row) for row in last]
    assert "That was a recording." in terminal.output.rpartition(LEAVE)[2]


def test_a_recording_has_no_project_to_keep() -> None:
    command = [WAVE, "demo", "--screen", "--keep"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--keep" in ran.stderr


def test_the_picture_is_made_from_the_recording_and_needs_nothing_else() -> None:
    code = (
        "from animated_svg import animated_svg; from wave_agent.cli.recording import demo_recording; "
        "print(animated_svg(demo_recording()), end='')"
    )
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "scripts", capture_output=True, text=True, check=True
    )
    picture = PICTURE.read_text()
    assert picture == made.stdout
    assert len(picture.encode()) < 300_000
    tree = ET.fromstring(picture)
    assert {element.tag.rpartition("}")[2] for element in tree.iter()} <= {
        *("svg", "title", "style", "rect", "circle", "text", "g")
    }
    assert re.findall(r"https?://[^\"]*", picture) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"@import|url\(|href", picture)
    assert "rm -rf is not allowed here." in " ".join(tree.itertext())
