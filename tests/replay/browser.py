"""A real browser without a window, driven over a pipe: Chromium's own protocol, JSON ended by NUL."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find_browser() -> str | None:
    return os.environ.get("WAVE_TEST_BROWSER") or next(filter(None, map(shutil.which, PROGRAMS)), None)


_MIDDLE = """
selector => {
  const element = document.querySelector(selector);
  element.scrollIntoView({block: "center"});
  const box = element.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}
"""


class Tab:
    """One page. What it complains about is kept in `complaints`."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._buffer = b""
        self._sent = 0
        self._session: str | None = None
        self._loaded = False
        self.complaints: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> Any:
        self._sent += 1
        session = {} if self._session is None else {"sessionId": self._session}
        message = {"id": self._sent, "method": method, "params": parameters, **session}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._sent:
                assert "error" not in answer, answer
                return answer["result"]
            self._hear(answer)

    def open(self, file: Path) -> None:
        self._loaded = False
        self.send("Page.navigate", url=file.as_uri())
        while not self._loaded:
            self._hear(self._read())

    def evaluate(self, expression: str) -> Any:
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def click(self, selector: str) -> None:
        """With the mouse, where the element is."""
        box = self.evaluate(f"({_MIDDLE})({json.dumps(selector)})")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._answers, 1 << 16)
            assert data, "the browser has ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _hear(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(parameters))
        elif method == "Network.requestWillBeSent" and parameters["request"]["url"].startswith(("http", "ws")):
            self.complaints.append(parameters["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append("a dialog")


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Tab]:
    commands_out, commands = os.pipe()
    answers, answers_in = os.pipe()
    # The browser reads commands from descriptor 3 and answers on 4.
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{commands_out} 4>&{answers_in}', "bash", program, "--headless", "--no-sandbox",
         "--disable-gpu", "--remote-debugging-pipe", "--disable-dev-shm-usage", f"--user-data-dir={profile}"],
        pass_fds=(commands_out, answers_in),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(commands_out)
    os.close(answers_in)
    try:
        yield Tab(commands, answers)
    finally:
        os.close(commands)
        os.close(answers)
        process.terminate()
        process.wait(10)
