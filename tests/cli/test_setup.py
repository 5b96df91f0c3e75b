"""`wave setup`, as a real process against real servers: what they were sent, what is written, what is shown."""

import errno
import json
import os
import pty
import re
import select
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Any, Self

import pytest

from tests.cli.project import WAVE, Project, serving
from tests.test_docs import blocks, shows
from wave_agent.models.facts import MODELS
from wave_agent.testing import RecordingModelServer, Reply, call
from wave_agent.testing.model_server import Hang, RecordedRequest, Status

KEY = "sk-0123456789-very-secret"
LIST = {"data": [{"id": "small-coder"}, {"id": "large-coder", "max_model_len": 65536}, {"id": "embedder"}]}
CALLS = Reply(tool_calls=[call("ping", word="hello")])
PROVIDER_KEYS = ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "MISTRAL_API_KEY")


def listing(*replies: Any, models: Any = None) -> Any:
    """A server with a list of models."""
    return serving(*replies, elsewhere={"GET /v1/models": LIST if models is None else models})


def port_of(server: RecordingModelServer) -> str:
    return server.base_url.removesuffix("/v1").rpartition(":")[2]


def ports(*servers: RecordingModelServer, names: tuple[str, ...] = ("Ollama", "vLLM", "LM Studio")) -> Any:
    stated = ",".join(f"{name}={port_of(server)}" for name, server in zip(names, servers, strict=False))
    return {"WAVE_LOCAL_PORTS": stated, **dict.fromkeys(PROVIDER_KEYS, "")}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def written(project: Project) -> dict[str, Any]:
    return json.loads((project.home / "settings.json").read_text())


def files(project: Project) -> set[str]:
    return {path.name for path in project.home.rglob("*")} if project.home.exists() else set()


# ----------------------------------------------------------------------------------------------------------- in scripts


def test_flags_choose_try_and_write(project: Project) -> None:
    with listing(CALLS) as server:
        done = project.wave("setup", "--base-url", server.base_url, "--model", "m", "--yes", **ports())
    assert done.returncode == 0, done.stderr
    (request,) = server.requests
    assert request.body["model"] == "m"
    assert [tool["function"]["name"] for tool in request.body["tools"]] == ["ping"]
    assert "authorization" not in request.headers
    assert written(project) == {"baseUrl": server.base_url, "model": "m"}
    assert 'm called the tool: ping {"word": "hello"}' in done.stdout
    assert f'+  "baseUrl": "{server.base_url}"' in done.stdout
    assert stat.S_IMODE((project.home / "settings.json").stat().st_mode) == 0o600


def test_the_api_that_the_server_turns_out_to_speak_is_written(project: Project) -> None:
    class Messages(RecordingModelServer):
        def refusal(self, request: RecordedRequest) -> Status | None:
            if request.api != "anthropic":
                return Status(404, {"detail": "Not Found"})
            return None if request.body else Status(400, {"error": {"message": "messages: Field required"}})

    with Messages.in_thread([CALLS, "Hello."]) as server:
        done = project.wave("setup", "--base-url", server.base_url, "--model", "m", "--yes", **ports())
        assert "The server speaks anthropic." in done.stdout
        assert written(project) == {"baseUrl": server.base_url, "model": "m", "api": "anthropic"}
        asked = len(server.requests)
        assert project.wave("-p", "hi").stdout == "Hello.\n"
    assert [request.api for request in server.requests[asked:]] == ["anthropic"]
    assert not (project.home / "apis.json").exists()


def test_a_key_from_stdin_is_stored_privately_and_used_by_sessions_for_that_server_alone(project: Project) -> None:
    with listing(CALLS, "Hello.", "Hello.") as server, listing("Hi.") as other:
        chosen = ("setup", "--base-url", server.base_url, "--model", "m", "--yes")
        done = project.wave(*chosen, "--api-key-stdin", piped=f"{KEY}\n", **ports())
        assert done.returncode == 0, done.stderr
        assert project.wave("-p", "hi").stdout == "Hello.\n"
        assert project.wave("-p", "hi", "--base-url", other.base_url).stdout == "Hi.\n"
        assert project.wave("-p", "hi", WAVE_API_KEY="from-the-environment").returncode == 0
    assert [one.headers["authorization"] for one in server.requests] == [
        f"Bearer {KEY}",
        f"Bearer {KEY}",
        "Bearer from-the-environment",
    ]
    assert "authorization" not in other.requests[0].headers
    assert stat.S_IMODE((project.home / "keys.json").stat().st_mode) == 0o600
    assert KEY not in (project.home / "settings.json").read_text() + done.stdout + done.stderr
    holding = [path.name for path in project.home.rglob("*") if path.is_file() and KEY in path.read_text()]
    assert holding == ["keys.json"]


def test_a_stored_key_can_be_forgotten(project: Project) -> None:
    forget = ("setup", "--forget")
    with listing("Hello.") as server:
        chosen = ("setup", "--base-url", server.base_url, "--model", "m", "--yes", "--no-check")
        assert project.wave(*chosen, "--api-key-stdin", piped=f"{KEY}\n", **ports()).returncode == 0
        unknown = project.wave(*forget, "https://api.example.com/v1")
        assert unknown.returncode == 1
        origin = server.base_url.removesuffix("/v1")
        assert unknown.stderr == f"No key is stored for https://api.example.com. Keys are stored for: {origin}.\n"
        done = project.wave(*forget, server.base_url)
        assert done.returncode == 0
        assert done.stdout.startswith(f"Removed the key for {origin} from {project.home}/keys.json.")
        assert project.wave("-p", "hi").stdout == "Hello.\n"
    assert "authorization" not in server.requests[0].headers
    assert not (project.home / "keys.json").exists()
    assert "No keys are stored." in project.wave(*forget, server.base_url).stderr
    for wrong in ((*forget, "nonsense"), (*forget, server.base_url, "--model", "m")):
        assert project.wave(*wrong).returncode == 2


def test_the_keys_in_the_environment_of_other_services_are_not_sent(project: Project) -> None:
    keys = {name: f"sk-of-{name}" for name in (*PROVIDER_KEYS, "OPENAI_API_KEY")}
    with listing(CALLS) as server:
        done = project.wave("setup", "--base-url", server.base_url, "--model", "m", "--yes", **(ports() | keys))
    assert done.returncode == 0, done.stderr
    assert "sk-of" not in json.dumps([one.headers for one in (*server.requests, *server.other_requests)])
    assert files(project) == {"settings.json"}


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ((), "--base-url and --model and --yes"),
        (("--model", "m"), "--base-url and --yes"),
        (("--base-url", "http://127.0.0.1:9/v1", "--yes"), "--model"),
    ],
)
def test_without_a_terminal_the_missing_flags_are_named(project: Project, arguments: tuple[str, ...], missing: str):
    done = project.wave("setup", *arguments, **ports())
    assert done.returncode == 2
    assert f"Not interactive: rerun with {missing}. If the server needs a key, add --api-key-stdin." in done.stderr
    assert files(project) == set()


@pytest.mark.parametrize(
    ("arguments", "piped", "said"),
    [
        (("--base-url", "ollama"), "", '"ollama" is not a base URL'),
        (("--base-url", "http://me:secret-word@127.0.0.1:9/v1"), "", "contains a user and password"),
        (("--base-url", "http://127.0.0.1:9/v1?key=secret-word"), "", "contains a query"),
        (("--base-url", "http://127.0.0.1:9/v1", "--api-key-stdin"), "\n", "The key is empty."),
        (("--base-url", "http://127.0.0.1:9/v1", "--api-key-stdin"), f"{KEY} {KEY}\n", "contains spaces"),
        (("--base-url", "http://127.0.0.1:9/v1", "--api", "soap"), "", "'soap' is not one of"),
    ],
)
def test_wrong_flags_are_usage_errors(project: Project, arguments: tuple[str, ...], piped: str, said: str) -> None:
    done = project.wave("setup", "--model", "m", "--yes", *arguments, piped=piped, **ports())
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not {KEY, "secret-word"} & set(re.findall(r"[\w-]+", done.stderr + done.stdout))
    assert files(project) == set()


def test_a_model_that_answers_in_words_is_written_with_a_warning(project: Project) -> None:
    with listing("Pong!") as server:
        done = project.wave("setup", "--base-url", server.base_url, "--model", "m", "--yes", **ports())
    assert done.returncode == 0
    assert "No tool call: m answered in words: Pong!" in done.stdout
    assert "may not work well" in done.stdout
    assert written(project)["model"] == "m"


def test_after_an_error_a_script_has_changed_nothing(project: Project) -> None:
    refusal = Status(401, {"error": {"message": f"wrong key {KEY}"}})
    with listing(refusal) as server:
        chosen = ("--base-url", server.base_url, "--model", "m", "--yes", "--api-key-stdin")
        done = project.wave("setup", *chosen, piped=f"{KEY}\n", **ports())
    assert done.returncode == 1
    assert "answered 401: wrong key" in done.stderr
    assert "Nothing has changed." in done.stdout
    assert KEY not in done.stdout + done.stderr
    assert files(project) == set()


def test_an_unreachable_server_can_be_written_unchecked(project: Project) -> None:
    chosen = ("setup", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--yes")
    assert project.wave(*chosen, **ports()).returncode == 1
    assert files(project) == set()
    assert project.wave(*chosen, "--no-check", **ports()).returncode == 0
    assert written(project)["baseUrl"] == "http://127.0.0.1:9/v1"


def test_a_named_api_is_tried_written_and_forgotten_with_another_server(project: Project) -> None:
    with listing(CALLS, CALLS) as server:
        chosen = ("setup", "--base-url", server.base_url, "--model", "m", "--yes")
        done = project.wave(*chosen, "--api", "anthropic", "--api-key-stdin", piped=KEY, **ports())
        assert done.returncode == 0, done.stdout
        assert written(project) == {"baseUrl": server.base_url, "model": "m", "api": "anthropic"}
        assert project.wave(*chosen, **ports()).returncode == 0
    assert [one.path for one in server.requests] == ["/v1/messages", "/v1/chat/completions"]
    assert server.requests[0].headers["x-api-key"] == KEY
    assert server.requests[1].headers["authorization"] == f"Bearer {KEY}"  # the stored one
    assert written(project) == {"baseUrl": server.base_url, "model": "m"}


def test_again_changes_only_what_is_chosen(project: Project) -> None:
    project.home.mkdir()
    file = project.home / "settings.json"
    text = '{\n    "permissions": {"deny": ["Read(.env)"]},\n    "model": "old", "baseUrl": "http://old/v1"\n}\n'
    file.write_text(text)
    with listing(CALLS, CALLS, CALLS) as server:
        chosen = ("setup", "--base-url", server.base_url, "--model", "m", "--yes")
        first = project.wave(*chosen, **ports())
        assert "Now: old at http://old/v1" in first.stdout
        assert file.read_text() == text.replace('"old"', '"m"').replace("http://old/v1", server.base_url)
        again = project.wave(*chosen, WAVE_MODEL="other", **ports())
        assert (again.returncode, "There is nothing to change." in again.stdout) == (0, True)
        assert "WAVE_MODEL is set in the environment, which takes precedence" in again.stdout
        assert "---" not in again.stdout


def test_invalid_settings_are_refused_before_anything_is_asked(project: Project) -> None:
    project.home.mkdir()
    (project.home / "settings.json").write_text('{\n  "model": "x"\n  "baseUrl": 5\n}')
    with listing(CALLS) as server:
        done = project.wave("setup", "--base-url", server.base_url, "--model", "m", "--yes", **ports())
    assert done.returncode == 1
    assert "settings.json:3:3" in done.stderr
    assert (server.requests, server.other_requests) == ([], [])
    assert (project.home / "settings.json").read_text() == '{\n  "model": "x"\n  "baseUrl": 5\n}'


def test_a_home_that_cannot_be_written_is_said(project: Project) -> None:
    home = "/proc/wave-home" if sys.platform == "linux" else "/dev/null/wave-home"
    with listing(CALLS) as server:
        chosen = ("setup", "--base-url", server.base_url, "--model", "m", "--yes", "--api-key-stdin")
        done = project.wave(*chosen, piped=KEY, **ports(), WAVE_HOME=home)
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert KEY not in done.stdout + done.stderr


def test_a_full_disk_leaves_what_was_there(project: Project) -> None:
    project.home.mkdir()
    (project.home / "settings.json").write_text('{"model": "old"}')
    with listing(CALLS) as server:
        arguments = ["setup", "--base-url", server.base_url, "--model", "m", "--yes"]
        done = subprocess.run(
            ["/bin/sh", "-c", f"ulimit -f 0; exec {shlex.join([WAVE, *arguments])}"],
            cwd=project.directory,
            env=project.environment(None, **ports(), PYTHONDONTWRITEBYTECODE="1"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, "cannot be written" in done.stderr) == (1, True), done.stderr
    assert (project.home / "settings.json").read_text() == '{"model": "old"}'
    assert files(project) == {"settings.json"}


def test_an_agent_cannot_change_the_users_choice(project: Project) -> None:
    with listing(CALLS) as server:
        command = shlex.join([WAVE, "setup", "--base-url", server.base_url, "--model", "m", "--yes"])
        script = [Reply(tool_calls=[call("Bash", command=command)]), "Done."]
        with serving(*script) as model:
            done = project.wave("-p", "Set it up.", "--permission-mode", "bypassPermissions", server=model, **ports())
    assert done.returncode == 0, done.stderr
    assert "wave setup" in model.requests[1].body["messages"][-1]["content"]
    assert "settings.json" not in files(project)
    assert server.requests == []


# -------------------------------------------------------------------------------------------------------- on a terminal


class Dialogue:
    """`wave` in the foreground of a terminal of its own."""

    def __init__(self, project: Project, *arguments: str, **environment: str) -> None:
        self._master, slave = pty.openpty()
        line = f"exec {shlex.join([WAVE, *arguments])} <>{os.ttyname(slave)} >&0 2>&0"
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", line],
            cwd=project.directory,
            env=project.environment(None, TERM="xterm", **environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._slave = slave
        self.shown = ""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._slave)
        os.close(self._master)

    def expect(self, text: str) -> None:
        """Waits until this is shown, after what was expected before."""
        ends = monotonic() + 30
        while text not in self.shown[self._seen :]:
            ended = self._process.poll() is not None
            if not self._read(0.1):
                assert not ended, f"it ended without {text!r}: {self.shown[self._seen :]!r}"
            assert monotonic() < ends, f"{text!r} never came: {self.shown[self._seen :]!r}"
        self._seen = self.shown.index(text, self._seen) + len(text)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def answer(self, question: str, text: str) -> None:
        self.expect(question)
        self.type(f"{text}\n")

    def interrupt(self) -> int:
        """Ctrl-C, as often as it takes: Python may miss one in the moment before it waits for input."""
        for _ in range(5):
            self.type("\x03")
            ends = monotonic() + 5
            while monotonic() < ends:
                if self._process.poll() is not None:
                    return self.end()
                self._read(0.1)
        return self.end()

    def end(self) -> int:
        ends = monotonic() + 30
        while self._process.poll() is None:
            assert monotonic() < ends, self.shown
            self._read(0.1)
        while self._read(0):
            pass
        return self._process.returncode

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            part = os.read(self._master, 1 << 16)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        self.shown += part.decode(errors="replace").replace("\r\n", "\n")
        return bool(part)


def test_a_local_server_is_found_chosen_and_tried(project: Project) -> None:
    with listing(CALLS) as server, Dialogue(project, "setup", **ports(server)) as dialogue:
        dialogue.expect(f" 1  Ollama      {server.base_url}")
        dialogue.expect("3 models")
        dialogue.answer("Which server? [1]:", "")
        dialogue.expect("large-coder  (65,536 tokens)")
        dialogue.answer("Which model?", "coder")
        dialogue.answer("Which model?", "large")
        dialogue.expect("large-coder called the tool")
        dialogue.answer("settings.json? [Y/n]:", "")
        assert dialogue.end() == 0
    assert written(project) == {"baseUrl": server.base_url, "model": "large-coder"}
    assert [request.path for request in server.other_requests] == ["/v1/models"]
    assert server.requests[0].body["model"] == "large-coder"


def test_the_documentation_shows_a_dialogue_as_it_is(project: Project) -> None:
    page = Path(__file__).parents[2] / "docs" / "models.md"
    (picture,) = (block.text for block in blocks(page) if block.text.startswith("$ wave setup\n"))
    models = {"data": [{"id": "qwen3-coder:30b"}, {"id": "llama3.2:3b"}]}
    with (
        listing(CALLS, models=models) as server,
        Dialogue(project, "setup", **{**ports(server), "ANTHROPIC_API_KEY": "sk-x"}) as dialogue,
    ):
        dialogue.answer("Which server? [1]: ", "1")
        dialogue.answer("Which model? A number, a name or a part of one: ", "qwen")
        dialogue.answer("[Y/n]: ", "y")
        assert dialogue.end() == 0
        shown = dialogue.shown.replace(port_of(server), "11434")
    others = ", LM Studio (1234), llama.cpp (8080), vLLM (8000)"
    assert shows(picture.partition("\n")[2].replace(others, ""), shown), shown


def test_numbers_names_and_wrong_answers(project: Project) -> None:
    with listing(CALLS) as server, Dialogue(project, "setup", **ports(server)) as dialogue:
        dialogue.answer("Which server?", "99")
        dialogue.answer("Type a number from 1 to 7.", "x")
        dialogue.answer("Which server?", "1")
        dialogue.answer("Which model?", "gpt")
        dialogue.answer('"gpt" is not listed. Use it anyway?', "n")
        dialogue.answer("Which model?", "2")
        dialogue.answer("Write this to", "n")
        assert dialogue.end() == 1
        assert "Nothing has changed." in dialogue.shown
    assert server.requests[0].body["model"] == "large-coder"
    assert files(project) == set()


def test_without_any_server_or_key_setup_says_what_to_start_or_to_have_ready(project: Project) -> None:
    with Dialogue(project, "setup", **ports()) as dialogue:
        dialogue.expect("No server found, and no key in the environment.")
        dialogue.expect("have its key ready")
        dialogue.expect("Which server?")
        assert dialogue.interrupt() == 130
    assert files(project) == set()


def test_a_long_list_is_shortened_and_filtered(project: Project) -> None:
    many = {"data": [{"id": f"model-{number}"} for number in range(1000)]}
    with listing(CALLS, models=many) as server, Dialogue(project, "setup", **ports(server)) as dialogue:
        dialogue.answer("Which server?", "1")
        dialogue.expect("and 980 more: type a part of the name")
        assert "model-20\n" not in dialogue.shown
        dialogue.answer("Which model?", "model-77")
        dialogue.answer("Write this", "y")
        assert dialogue.end() == 0
    assert written(project)["model"] == "model-77"


def test_a_server_that_wants_a_key_gets_the_one_that_is_typed_unseen(project: Project) -> None:
    wants_key = Status(401, "")
    with (
        serving(CALLS, elsewhere={"GET /v1/models": wants_key}) as server,
        Dialogue(project, "setup", **ports(server)) as dialogue,
    ):
        dialogue.expect("needs a key")
        dialogue.answer("Which server?", "1")
        dialogue.answer("API key for Ollama (not shown): ", "with blank")
        dialogue.expect("The key contains spaces")
        dialogue.answer("API key for Ollama (not shown): ", KEY)
        dialogue.expect("refused the key")
        dialogue.answer("API key for Ollama (not shown): ", KEY)
        dialogue.answer("Which model?", "m")
        dialogue.answer("and store the key?", "y")
        dialogue.expect("Stored the key in")
        assert dialogue.end() == 0
        assert KEY not in dialogue.shown
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY in (project.home / "keys.json").read_text()
    assert KEY not in (project.home / "settings.json").read_text()


def test_odd_ports_are_named_and_hide_no_other(project: Project) -> None:
    page = Status(200, "<html>Welcome to my app</html>")
    with (
        listing(CALLS) as good,
        listing(models=page) as odd,
        Dialogue(project, "setup", **ports(good, odd)) as dialogue,
    ):
        dialogue.expect("Something listens on vLLM's port, but it answered with something other than a list of models.")
        dialogue.answer("Which server? [1]:", "")
        dialogue.answer("Which model?", "small-coder")
        dialogue.answer("Write this", "y")
        assert dialogue.end() == 0
    assert written(project)["baseUrl"] == good.base_url


def test_another_server_is_named_by_its_url_and_v1_may_be_forgotten(project: Project) -> None:
    with listing(CALLS) as server, Dialogue(project, "setup", **ports()) as dialogue:
        dialogue.answer("Which server?", "6")
        dialogue.answer("Its base URL", "my server")
        dialogue.answer("is not a base URL", server.base_url.removesuffix("/v1"))
        dialogue.answer("Which model?", "1")
        dialogue.answer("Write this", "y")
        assert dialogue.end() == 0
    assert written(project) == {"baseUrl": server.base_url, "model": "small-coder"}


def test_services_are_listed_and_not_contacted(project: Project) -> None:
    """Whatever leaves this machine would go through the proxy, which is a server that records."""
    with (
        serving() as proxy,
        Dialogue(project, "setup", **{**ports(), "https_proxy": proxy.base_url, "MISTRAL_API_KEY": "sk-m"}) as dialogue,
    ):
        dialogue.expect("https://api.anthropic.com")
        dialogue.expect("key in MISTRAL_API_KEY")
        dialogue.expect("Which server? [5]:")
        assert dialogue.interrupt() == 130
        assert "sk-m" not in dialogue.shown
    assert (proxy.requests, proxy.other_requests) == ([], [])


QUESTIONS = ("Which server?", "Which model?", "Trying one tool call", "Write this to")


@pytest.mark.parametrize("question", QUESTIONS)
def test_ctrl_c_at_any_moment_writes_nothing(project: Project, question: str) -> None:
    project.home.mkdir()
    (project.home / "settings.json").write_text('{"model": "old"}')
    before = {path: path.read_text() for path in project.home.iterdir()}
    answers = {"Which server?": "1\n", "Which model?": "1\n", "Trying one tool call": ""}
    reply = Hang() if question == "Trying one tool call" else CALLS
    with listing(reply) as server, Dialogue(project, "setup", **ports(server)) as dialogue:
        for asked in QUESTIONS:
            dialogue.expect(asked)
            if asked == question:
                break
            dialogue.type(answers[asked])
        assert dialogue.interrupt() == 130
        assert "Traceback" not in dialogue.shown
    assert {path: path.read_text() for path in project.home.iterdir()} == before


def test_a_session_without_a_model_offers_setup(project: Project) -> None:
    with listing(CALLS) as server, Dialogue(project, **ports(server)) as dialogue:
        dialogue.answer("Set one up now (wave setup)? [Y/n]:", "y")
        dialogue.answer("Which server? [1]:", "1")
        dialogue.answer("Which model?", "1")
        dialogue.answer("Write this", "y")
        dialogue.expect("small-coder")
        dialogue.expect("\x1b[")  # the screen
        dialogue.type("\x04")
        dialogue.type("\x03\x03")
    assert written(project)["model"] == "small-coder"


def test_without_a_model_there_is_no_session(project: Project) -> None:
    with Dialogue(project, **ports()) as dialogue:
        dialogue.answer("Set one up now (wave setup)? [Y/n]:", "n")
        dialogue.expect("To set one up later: wave setup.")
        assert dialogue.end() == 1
        assert "\x1b[?" not in dialogue.shown, "no screen is opened"


def test_without_a_model_one_prompt_says_what_to_run(project: Project) -> None:
    done = project.wave("-p", "hi", **ports())
    assert done.returncode == 1
    assert "No model is configured. Run wave setup, or set WAVE_BASE_URL and WAVE_MODEL" in done.stderr


# ---------------------------------------------------------------------------------------------------------- wave models


def test_models_come_from_settings_the_configured_server_and_this_machine(project: Project) -> None:
    project.home.mkdir()
    facts = {"small-coder": {"contextWindow": 4096, "prices": {"input": 1, "output": 2.5}}, "other": {"images": True}}
    with listing() as configured, listing(models={"data": [{"id": "local"}]}) as local, listing(models=[]) as odd:
        settings = {"baseUrl": configured.base_url, "model": "small-coder", "models": facts}
        (project.home / "settings.json").write_text(json.dumps(settings))
        done = project.wave("models", "--json", **ports(local, odd))
        shown = project.wave("models", **ports(local, odd))
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    first = found["models"][0]
    assert first == {
        "name": "small-coder",
        "base_url": configured.base_url,
        "server": "",
        "api": "openai-chat",
        "context_window": 4096,
        "prices": {"input": 1, "output": 2.5},
        "current": True,
        "source": "server",
    }
    assert [(one["name"], one["source"], one["context_window"]) for one in found["models"][1:]] == [
        ("large-coder", "server", 65536),
        ("embedder", "server", None),
        ("local", "local", None),
        ("other", "settings", None),
    ]
    assert [(one["name"], one["models"], bool(one["error"])) for one in found["sources"]] == [
        ("server", 3, False),
        ("Ollama", 1, False),
        ("vLLM", 0, True),
    ]
    assert re.search(r"^\*  small-coder +4,096 +\$1 / \$2.5  openai-chat", shown.stdout, re.MULTILINE)
    assert "vLLM" in shown.stderr


def test_what_neither_settings_nor_server_say_comes_from_the_built_in_table(project: Project) -> None:
    project.home.mkdir()
    rows = [
        {"id": "claude-haiku-4-5"},
        {"id": "anthropic/claude-haiku-4.5", "context_length": 1000, "pricing": {"prompt": "0.1", "completion": "1"}},
        {"id": "gpt-5"},
    ]
    with listing(models={"data": rows}) as server:
        stated = {"gpt-5": {"prices": {"input": 3, "output": 4}}, "gemini-2.5-pro": {"images": True}}
        settings = {"baseUrl": server.base_url, "models": stated}
        (project.home / "settings.json").write_text(json.dumps(settings))
        done = project.wave("models", "--json", **ports())
    found = {one["name"]: (one["context_window"], one["prices"]) for one in json.loads(done.stdout)["models"]}
    haiku, gemini = MODELS["claude-haiku-4-5"], MODELS["gemini-2.5-pro"]
    assert found == {
        "claude-haiku-4-5": (haiku.window, {"input": haiku.prices.input, "output": haiku.prices.output}),
        "anthropic/claude-haiku-4.5": (1000, {"input": 100_000, "output": 1_000_000}),
        "gpt-5": (MODELS["gpt-5"].window, {"input": 3, "output": 4}),
        "gemini-2.5-pro": (gemini.window, {"input": gemini.prices.input, "output": gemini.prices.output}),
    }


def test_one_source_that_fails_hides_no_other(project: Project) -> None:
    project.home.mkdir()
    (project.home / "settings.json").write_text("{,}")
    with listing() as local:
        done = project.wave("models", **ports(local))
    assert done.returncode == 0
    assert "large-coder" in done.stdout
    assert "settings.json:1:2" in done.stderr
    (project.home / "settings.json").write_text('{"baseUrl": "http://127.0.0.1:9/v1", "model": "mine"}')
    with listing() as local:
        done = project.wave("models", **ports(local))
    assert re.search(r"^\*  mine ", done.stdout, re.MULTILINE)
    assert "large-coder" in done.stdout
    assert "127.0.0.1:9/v1): it cannot be reached" in done.stderr


def test_without_any_model_the_list_says_what_to_do(project: Project) -> None:
    done = project.wave("models", **ports())
    assert (done.returncode, done.stdout) == (1, "")
    assert "wave setup" in done.stderr
    assert json.loads(project.wave("models", "--json", **ports()).stdout) == {"models": [], "sources": []}


def test_an_untrusted_project_does_not_say_where_the_key_goes(project: Project) -> None:
    with listing() as elsewhere:
        project.settings({"baseUrl": elsewhere.base_url, "model": "x"})
        done = project.wave("models", **ports(), WAVE_API_KEY=KEY)
    assert "Traceback" not in done.stderr
    assert elsewhere.other_requests == []


def test_nor_does_it_tell_the_doctor(project: Project) -> None:
    with listing() as elsewhere:
        project.settings({"baseUrl": elsewhere.base_url, "model": "x"})
        done = project.wave("doctor", **ports(), WAVE_API_KEY=KEY, WAVE_BASE_URL="")
    assert "Traceback" not in done.stderr
    assert (elsewhere.requests, elsewhere.other_requests) == ([], [])
