"""A server at a URL that says nothing: which API it speaks is found out by asking it, and only if need be."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.apis.conftest import Opening
from tests.apis.strict import StrictServer
from wave_agent.models.api_memory import ApiMemory
from wave_agent.models.apis import APIS
from wave_agent.models.base import ModelRequest
from wave_agent.models.client import ModelClient
from wave_agent.models.openai_chat import OpenAIChatModel
from wave_agent.models.scripted import call
from wave_agent.testing.model_server import RecordedRequest, RecordingModelServer, Reply, Status

NOT_FOUND = Status(404, {"detail": "Not Found"})


class SpeaksOnly(StrictServer):
    """Has the paths of some APIs, and answers `absent` at all others."""

    def __init__(self, spoken: Sequence[str], replies: Any, absent: Status = NOT_FOUND) -> None:
        super().__init__(replies)
        self.spoken, self.absent = spoken, absent

    def refusal(self, request: RecordedRequest) -> Status | None:
        return super().refusal(request) if request.api in self.spoken else self.absent

    def log(self) -> list[str]:
        """The API of each request, with a question mark if it was empty."""
        return [request.api + ("" if request.body else "?") for request in self.requests]


ASKED = {
    "openai-chat": [],
    "openai-responses": ["openai-chat", "openai-chat?", "openai-responses?"],
    "anthropic": ["openai-chat", "openai-chat?", "openai-responses?", "anthropic?"],
}


@pytest.mark.parametrize("absent", [NOT_FOUND, Status(405, ""), Status(404, "<html>Nothing here</html>")])
async def test_the_api_that_the_server_speaks_is_found_and_remembered(
    api: str, absent: Status, open_agent: Opening
) -> None:
    replies = [Reply("See.", [call("Glob", pattern="*")]), "Done.", "And again."]
    async with SpeaksOnly([api], replies, absent) as server:
        async with await open_agent(server) as agent:
            result = await agent.send_message("Go.")
        assert (result.error, result.text) == (None, "Done.")
        async with await open_agent(server) as agent:
            assert (await agent.send_message("Go.")).text == "And again."
    assert server.log() == [*ASKED[api], api, api, api]


async def test_a_server_of_several_apis_that_has_chat_is_asked_nothing(open_agent: Opening) -> None:
    async with SpeaksOnly(APIS, ["Hi."]) as server, await open_agent(server) as agent:
        assert (await agent.send_message("Go.")).text == "Hi."
    assert server.log() == ["openai-chat"]


async def test_a_model_that_is_missing_does_not_change_the_api(open_agent: Opening) -> None:
    missing = Status(404, {"error": {"message": 'model "m" not found'}})
    async with SpeaksOnly(APIS, [missing, missing]) as server, await open_agent(server) as agent:
        result = await agent.send_message("Go.")
    assert 'model "m" not found' in str(result.error)
    assert server.log() == ["openai-chat", "openai-chat?"]


@pytest.mark.parametrize("absent", [NOT_FOUND, Status(405, {"error": "no"})])
async def test_a_server_that_speaks_none_is_reported_as_before(absent: Status, open_agent: Opening) -> None:
    async with SpeaksOnly([], [], absent) as server, await open_agent(server) as agent:
        first, second = await agent.send_message("Go."), await agent.send_message("Go.")
    assert f"answered {absent.code}" in str(first.error)
    assert server.log() == ["openai-chat", "openai-chat?", "openai-responses?", "anthropic?", "openai-chat"]
    assert second.status == "error"


@pytest.mark.parametrize("odd", [Status(200, "<html>"), Status(200, {}), Status(302, ""), Status(500, "")])
async def test_an_answer_that_says_nothing_leaves_it_at_chat(odd: Status, open_agent: Opening) -> None:
    class Odd(SpeaksOnly):
        def refusal(self, request: RecordedRequest) -> Status | None:
            return NOT_FOUND if request.api == "openai-chat" else odd

    async with Odd([], []) as server, await open_agent(server) as agent:
        assert "answered 404" in str((await agent.send_message("Go.")).error)


async def test_a_stated_api_is_not_questioned(open_agent: Opening, tmp_path: Path) -> None:
    async with SpeaksOnly(["anthropic"], []) as server:
        stated: list[dict[str, Any]] = [
            {"api": "openai-chat"},
            {"settings": {"api": "openai-chat"}},
            {"settings": {"models": {"m": {"api": "openai-chat"}}}},
        ]
        for options in stated:
            async with await open_agent(server, **options) as agent:
                assert "answered 404" in str((await agent.send_message("Go.")).error)
    assert server.log() == ["openai-chat"] * 3
    assert not (tmp_path / "home" / "apis.json").exists()


async def test_a_server_that_no_longer_speaks_what_is_remembered_is_asked_again(
    open_agent: Opening, tmp_path: Path
) -> None:
    async with SpeaksOnly(["openai-chat"], ["Hi.", "Ho."]) as server:
        ApiMemory(tmp_path / "home" / "apis.json").keep(server.base_url, "anthropic")
        for text in ("Hi.", "Ho."):
            async with await open_agent(server) as agent:
                assert (await agent.send_message("Go.")).text == text
    assert server.log() == ["anthropic", "openai-chat?", "openai-chat", "openai-chat"]


@pytest.mark.parametrize("text", ["", "[]", '{"x": {"asked": 1}}', "\0", '{"URL": {"asked": NOW, "api": "nonsense"}}'])
async def test_a_broken_memory_is_as_good_as_none(text: str, open_agent: Opening, tmp_path: Path) -> None:
    async with SpeaksOnly(["openai-chat"], ["Hi."]) as server:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "apis.json").write_text(text.replace("URL", server.base_url).replace("NOW", "4e9"))
        async with await open_agent(server) as agent:
            assert (await agent.send_message("Go.")).text == "Hi."


def test_what_a_server_speaks_is_believed_for_a_month(tmp_path: Path) -> None:
    time = [1000.0]
    memory = ApiMemory(tmp_path / "apis.json", now=lambda: time[0])
    memory.keep("http://a", "anthropic")
    assert (memory.recall("http://a"), memory.recall("http://b")) == ("anthropic", None)
    for later in (1000 + 31 * 86400, 999):
        time[0] = later
        assert memory.recall("http://a") is None
    ApiMemory(Path("/dev/null/no/apis.json")).keep("http://a", "anthropic")


async def test_a_url_without_its_version_is_reported_and_not_worked_around(open_agent: Opening) -> None:
    """Only the path of `anthropic` begins with a version that the URL may omit."""

    class Versioned(SpeaksOnly):
        @property
        def base_url(self) -> str:
            return super().base_url.removesuffix("/v1")

        def refusal(self, request: RecordedRequest) -> Status | None:
            return super().refusal(request) if request.path.startswith("/v1/") else NOT_FOUND

    async with Versioned(APIS, []) as server, await open_agent(server) as agent:
        result = await agent.send_message("Go.")
    assert "Check the model" in str(result.error)
    async with Versioned(["anthropic"], ["Hi."]) as server, await open_agent(server) as agent:
        assert (await agent.send_message("Go.")).text == "Hi."


async def test_the_key_goes_only_where_it_went_before(open_agent: Opening) -> None:
    async with SpeaksOnly(["anthropic"], ["Hi."]) as server, await open_agent(server) as agent:
        await agent.send_message("Go.")
    sent = [(one.headers.get("authorization"), one.headers.get("x-api-key")) for one in server.requests]
    assert sent == [("Bearer secret-key", None)] * 3 + [(None, "secret-key")] * 2


async def test_a_client_is_asked_for_another_api_once() -> None:
    asked: list[tuple[str, str]] = []

    async def nothing(api: str, key: str) -> None:
        asked.append((api, key))

    async with RecordingModelServer([NOT_FOUND, NOT_FOUND]) as server:
        model: ModelClient = OpenAIChatModel(base_url=server.base_url, environment={}, other_api=nothing)
        for _ in range(2):
            with pytest.raises(Exception, match="answered 404"):
                _ = [one async for one in model.stream(ModelRequest(model="m", messages=[]))]
        assert model.api == "openai-chat"
        await model.close()
    assert asked == [("openai-chat", "")]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            400,
            "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use "
            "function tools, use /v1/responses or set reasoning_effort to 'none'.",
        ),
        (404, "This model is only supported in v1/responses and not in v1/chat/completions."),
    ],
)
@pytest.mark.parametrize("effort", [None, "high"])
async def test_a_model_that_is_only_served_by_another_api_is_asked_there(
    status: int, said: str, effort: str | None, open_agent: Opening
) -> None:
    refusal = Status(status, {"error": {"message": said, "type": "invalid_request_error", "code": None}})
    replies = [Reply("See.", [call("Glob", pattern="*")]), "Done."]
    async with (
        SpeaksOnly(["openai-responses"], replies, refusal) as server,
        await open_agent(server, api="openai-chat", effort=effort) as agent,
    ):
        assert (await agent.send_message("Go.")).text == "Done."
    assert server.log() == ["openai-chat", "openai-responses", "openai-responses"]
    assert server.requests[-1].body.get("reasoning") == (effort and {"effort": effort})
