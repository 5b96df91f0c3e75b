"""A real terminal to run `wave` in: tmux, typed into and read from."""

import os
import subprocess
from pathlib import Path
from time import monotonic, sleep


class Terminal:
    """One tmux server of its own, with one window."""

    def __init__(self, directory: Path) -> None:
        self._socket = str(directory / "tmux.sock")

    def tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", self._socket, "-f", "/dev/null", *arguments]
        # A user whose own shell is nologin could start nothing, and in CI nobody sits at a terminal.
        person = {**os.environ, "SHELL": "/bin/sh", "CI": ""}
        return subprocess.run(command, env=person, capture_output=True, text=True, timeout=30, check=False).stdout

    def start(self, command: str, project: Path, environment: dict[str, str]) -> None:
        settings = [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
        size = ("-x", "100", "-y", "30", "-c", str(project))
        self.tmux("new-session", "-d", *size, *settings, f"{command}; echo status $?; exec cat")

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def sees(self, text: str, seconds: float = 60) -> None:
        deadline = monotonic() + seconds
        while text not in self.screen:
            assert monotonic() < deadline, f"{text!r} never came; the screen shows\n{self.screen}"
            sleep(0.05)
