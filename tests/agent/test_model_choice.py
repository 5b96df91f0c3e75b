"""Which API, URL and key flags, environment and settings choose together."""

from pathlib import Path
from typing import Any

import pytest

from tests.rows import rows
from wave_agent.agent.model_choice import ModelEndpoint, ModelWishes, endpoint_for, model_for
from wave_agent.errors import ModelError, SettingsError
from wave_agent.models.apis import APIS, PROVIDERS
from wave_agent.models.base import ModelRequest
from wave_agent.settings.layers import Settings
from wave_agent.system.credentials import AGENT_KEYS, ENDPOINTS
from wave_agent.testing.model_server import RecordingModelServer, Status

ANTHROPIC = "https://api.anthropic.com"
OPENAI = "https://api.openai.com/v1"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"
OPENROUTER = "https://openrouter.ai/api/v1"
MISTRAL = "https://api.mistral.ai/v1"
LOCAL = "http://127.0.0.1:8080/v1"
ALL = {one.keys[0]: f"{one.name}-key" for one in PROVIDERS}


def chosen(environment: dict[str, str], settings: Settings | None = None, **wishes: Any) -> ModelEndpoint | None:
    return endpoint_for(ModelWishes(**wishes), settings or Settings(), environment, model="m")


def test_a_second_key_is_mentioned_unless_a_server_was_named() -> None:
    both = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}
    found = chosen(both)
    assert found is not None
    assert found.hint == f"OPENAI_API_KEY is set, too: --base-url {OPENAI} uses it."
    alone, named = chosen({"ANTHROPIC_API_KEY": "a"}), chosen({**both, "WAVE_BASE_URL": ANTHROPIC})
    assert alone is not None
    assert named is not None
    assert (alone.hint, named.hint) == ("", "")


Case = tuple[dict[str, str], dict[str, Any], tuple[str, str | None, str]]
CASES: dict[str, Case] = {
    "all": (ALL, {}, (ANTHROPIC, "Anthropic-key", "anthropic")),
    "OpenAI": ({"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "g"}, {}, (OPENAI, "k", "openai-chat")),
    "Gemini": ({"GEMINI_API_KEY": "k", "OPENROUTER_API_KEY": "o"}, {}, (GEMINI, "k", "openai-chat")),
    "OpenRouter": ({"OPENROUTER_API_KEY": "k", "MISTRAL_API_KEY": "m"}, {}, (OPENROUTER, "k", "openai-chat")),
    "Mistral": ({"MISTRAL_API_KEY": "k"}, {}, (MISTRAL, "k", "openai-chat")),
    "--api before the order of providers": (
        ALL,
        {"api": "openai-responses"},
        (OPENAI, "OpenAI-key", "openai-responses"),
    ),
    "--api openai-chat": (ALL, {"api": "openai-chat"}, (OPENAI, "OpenAI-key", "openai-chat")),
    "WAVE_API": ({**ALL, "WAVE_API": "openai-chat"}, {}, (OPENAI, "OpenAI-key", "openai-chat")),
    "--api over WAVE_API": (
        {**ALL, "WAVE_API": "openai-chat"},
        {"api": "anthropic"},
        (ANTHROPIC, "Anthropic-key", "anthropic"),
    ),
    "WAVE_* over all": ({**ALL, "WAVE_BASE_URL": LOCAL, "WAVE_API_KEY": "w"}, {}, (LOCAL, "w", "openai-chat")),
    "no key for another host": ({**ALL, "WAVE_BASE_URL": LOCAL}, {}, (LOCAL, None, "openai-chat")),
    "no key over plain http": (
        {**ALL, "WAVE_BASE_URL": "http://api.openai.com/v1"},
        {},
        ("http://api.openai.com/v1", None, "openai-chat"),
    ),
    "no key for a host that looks alike": (
        {**ALL, "WAVE_BASE_URL": "https://api.openai.com.evil.example/v1"},
        {},
        ("https://api.openai.com.evil.example/v1", None, "openai-chat"),
    ),
    "no key for a host behind a user": (
        {**ALL, "WAVE_BASE_URL": "https://api.openai.com@evil.example/v1"},
        {},
        ("https://api.openai.com@evil.example/v1", None, "openai-chat"),
    ),
    "the key of the URL's provider": ({**ALL, "WAVE_BASE_URL": GEMINI}, {}, (GEMINI, "Gemini-key", "openai-chat")),
    "the flag's provider": (ALL, {"base_url": MISTRAL}, (MISTRAL, "Mistral-key", "openai-chat")),
    "its own variable names another host": (
        {"ANTHROPIC_BASE_URL": LOCAL, "ANTHROPIC_API_KEY": "k"},
        {},
        (LOCAL, "k", "anthropic"),
    ),
    "the same host by the flag": (
        {"OPENAI_BASE_URL": LOCAL, "OPENAI_API_KEY": "k"},
        {"base_url": LOCAL},
        (LOCAL, "k", "openai-chat"),
    ),
    "and then no longer for its usual host": (
        {"OPENAI_BASE_URL": LOCAL, "OPENAI_API_KEY": "k"},
        {"base_url": OPENAI},
        (OPENAI, None, "openai-chat"),
    ),
    "a key alone goes where it always went": ({"WAVE_API_KEY": "w"}, {}, (OPENAI, "w", "openai-chat")),
    "a key and an API": ({"WAVE_API_KEY": "w"}, {"api": "anthropic"}, (ANTHROPIC, "w", "anthropic")),
    "the path names the API": (
        {"WAVE_BASE_URL": "http://127.0.0.1:1/v1/messages"},
        {},
        ("http://127.0.0.1:1/v1/messages", None, "anthropic"),
    ),
    "the path of Responses": (
        {"WAVE_BASE_URL": "http://127.0.0.1:1/v1/responses?x=1"},
        {},
        ("http://127.0.0.1:1/v1/responses?x=1", None, "openai-responses"),
    ),
    "a place named anthropic": (
        {"WAVE_BASE_URL": "https://api.example.com/anthropic/"},
        {},
        ("https://api.example.com/anthropic/", None, "anthropic"),
    ),
    "not a URL": ({"WAVE_BASE_URL": "http://[broken"}, {}, ("http://[broken", None, "openai-chat")),
}


@rows("case", CASES)
def test_the_choice(case: str) -> None:
    environment, wishes, expected = CASES[case]
    found = chosen(environment, **wishes)
    assert found is not None
    assert (found.url, found.key, found.api) == expected


@pytest.mark.parametrize(
    ("settings", "environment", "expected"),
    [
        (Settings(api="anthropic"), {"WAVE_BASE_URL": LOCAL}, (LOCAL, "anthropic")),
        (
            Settings(api="anthropic", models={"m": {"api": "openai-responses"}}),
            {"WAVE_BASE_URL": LOCAL},
            (LOCAL, "openai-responses"),
        ),
        (
            Settings(models={"m": {"api": "openai-responses"}}),
            {"WAVE_BASE_URL": LOCAL, "WAVE_API": "anthropic"},
            (LOCAL, "anthropic"),
        ),
        (
            Settings(api="openai-chat", managed=frozenset({"api"})),
            {"WAVE_BASE_URL": LOCAL, "WAVE_API": "anthropic"},
            (LOCAL, "openai-chat"),
        ),
        # A key in the environment does not override where the settings say the model is.
        (Settings(base_url=LOCAL), ALL, (LOCAL, "openai-chat")),
        (Settings(base_url=LOCAL), {"OPENAI_BASE_URL": OPENAI}, (OPENAI, "openai-chat")),
        (Settings(base_url=LOCAL, managed=frozenset({"base_url"})), {"WAVE_BASE_URL": OPENAI}, (LOCAL, "openai-chat")),
        (Settings(api_key_helper="true", api="anthropic"), {}, (ANTHROPIC, "anthropic")),
    ],
)
def test_settings(settings: Settings, environment: dict[str, str], expected: tuple[str, str]) -> None:
    found = chosen(environment, settings)
    assert found is not None
    assert (found.url, found.api) == expected


@pytest.mark.parametrize(
    ("environment", "bearer"),
    [
        ({"OPENROUTER_API_KEY": "k", "WAVE_API": "anthropic"}, True),
        ({"WAVE_API_KEY": "k", "WAVE_BASE_URL": f"{OPENROUTER}/", "WAVE_API": "anthropic"}, True),
        ({"OPENROUTER_API_KEY": "k", "OPENROUTER_BASE_URL": LOCAL, "WAVE_API": "anthropic"}, True),
        ({"ANTHROPIC_API_KEY": "k"}, False),
        ({"ANTHROPIC_AUTH_TOKEN": "k"}, True),
    ],
)
def test_a_provider_gets_its_key_in_the_header_that_it_reads(environment: dict[str, str], bearer: bool) -> None:
    found = chosen(environment)
    assert found is not None
    assert (found.api, found.key, found.bearer) == ("anthropic", "k", bearer)


def test_nothing_set_chooses_nothing() -> None:
    assert chosen({}) is None
    assert chosen({"OPENAI_API_KEY": "k"}, api="anthropic") is None
    assert chosen(dict.fromkeys((*AGENT_KEYS, *ENDPOINTS), "")) is None


async def test_without_a_key_the_first_request_names_the_one_that_fits() -> None:
    model = model_for(ModelWishes(api="anthropic"), Settings(), {"OPENAI_API_KEY": "k"})
    with pytest.raises(ModelError, match="such as ANTHROPIC_API_KEY"):
        async for _ in model.stream(ModelRequest(model="m", messages=[])):
            pass


@pytest.mark.parametrize(
    ("environment", "wishes", "message"),
    [
        ({"WAVE_BASE_URL": MISTRAL}, {"api": "anthropic"}, 'api.mistral.ai does not speak the API "anthropic"'),
        ({"WAVE_BASE_URL": OPENAI}, {"api": "anthropic"}, "only openai-chat and openai-responses"),
        ({"WAVE_BASE_URL": ANTHROPIC}, {"api": "openai-responses"}, "Change --api"),
        ({"WAVE_API": "antropic"}, {}, '"antropic" is not an API'),
    ],
)
def test_what_does_not_fit_together(environment: dict[str, str], wishes: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        chosen({"WAVE_API_KEY": "k", **environment}, **wishes)


async def test_a_key_that_belongs_elsewhere_is_named_when_one_is_missing() -> None:
    async with RecordingModelServer([Status(401, {"error": "no key"})]) as server:
        model = model_for(ModelWishes(base_url=server.base_url), Settings(), {"OPENAI_API_KEY": "k"})
        with pytest.raises(ModelError, match=r"OPENAI_API_KEY is set, but is sent only to api\.openai\.com"):
            async for _ in model.stream(ModelRequest(model="m", messages=[])):
                pass
        await model.close()
    assert "authorization" not in server.requests[0].headers


async def test_an_auth_token_is_a_bearer_token() -> None:
    async with RecordingModelServer(["Hi."]) as server:
        environment = {"ANTHROPIC_AUTH_TOKEN": "token-1", "ANTHROPIC_BASE_URL": server.base_url}
        model = model_for(ModelWishes(), Settings(), environment)
        async for _ in model.stream(ModelRequest(model="m", messages=[])):
            pass
        await model.close()
    assert server.requests[0].headers["authorization"] == "Bearer token-1"


async def test_models_of_one_session_may_speak_different_apis() -> None:
    settings = Settings(models={"claude": {"api": "anthropic"}, "gpt": {"api": "openai-responses"}})
    async with RecordingModelServer(["Hi."] * 4) as server:
        model = model_for(ModelWishes(base_url=server.base_url), settings, {}, model="claude")
        for name in ("claude", "gpt", "other", "claude"):
            async for _ in model.stream(ModelRequest(model=name, messages=[])):
                pass
        await model.close()
    assert [request.api for request in server.requests] == [
        "anthropic",
        "openai-responses",
        "openai-chat",
        "anthropic",
    ]
    assert repr(model).startswith("AnthropicModel(")


def test_hooks_and_tools_see_no_key_of_any_provider() -> None:
    assert {name for one in PROVIDERS for name in one.keys} <= {*AGENT_KEYS}
    assert {one.url_variable for one in PROVIDERS} <= {*ENDPOINTS}


def test_every_provider_speaks_known_apis() -> None:
    assert {api for one in PROVIDERS for api in one.apis} == {*APIS}


# ----------------------------------------------------------------------------------------------------------- the helper


async def asked(server: RecordingModelServer, helper: str, *, managed: bool = False, **environment: str) -> str:
    settings = Settings(api_key_helper=helper, managed=frozenset({"api_key_helper"} if managed else ()))
    model = model_for(ModelWishes(base_url=server.base_url), settings, {"PATH": "/usr/bin:/bin", **environment})
    try:
        return "".join([getattr(one, "text", "") async for one in model.stream(ModelRequest(model="m", messages=[]))])
    finally:
        await model.close()


def sent_keys(server: RecordingModelServer) -> list[str | None]:
    return [request.headers.get("authorization") for request in server.requests]


async def test_the_helpers_key_is_asked_for_once_and_again_when_it_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    helper = f'echo run >> {log}; echo "key-number-$(wc -l < {log} | tr -d " ")"'
    async with RecordingModelServer([Status(401, "expired"), "Hi."]) as server:
        assert await asked(server, helper) == "Hi."
    assert sent_keys(server) == ["Bearer key-number-1", "Bearer key-number-2"]


async def test_a_connection_that_was_made_before_there_was_a_key_gets_it() -> None:
    async with RecordingModelServer(["Hi."]) as server:
        settings = Settings(api_key_helper="echo from-helper")
        model: Any = model_for(ModelWishes(base_url=server.base_url), settings, {"PATH": "/usr/bin:/bin"})
        await model.prepare()
        async for _ in model.stream(ModelRequest(model="m", messages=[])):
            pass
        await model.close()
    assert sent_keys(server) == ["Bearer from-helper"]


async def test_a_refused_key_is_named_by_where_it_comes_from() -> None:
    async with RecordingModelServer([Status(401, "bad")]) as server:
        environment = {"ANTHROPIC_API_KEY": "bad-key-1", "ANTHROPIC_BASE_URL": server.base_url}
        model = model_for(ModelWishes(), Settings(), environment)
        with pytest.raises(ModelError, match="Check the key in ANTHROPIC_API_KEY"):
            async for _ in model.stream(ModelRequest(model="m", messages=[])):
                pass
        await model.close()


@pytest.mark.parametrize("status", [401, 403])
async def test_a_new_key_is_tried_only_once(tmp_path: Path, status: int) -> None:
    log = tmp_path / "log"
    async with RecordingModelServer([Status(status, "bad key-number-7")] * 3) as server:
        with pytest.raises(ModelError) as refused:
            await asked(server, f"echo run >> {log}; echo key-number-7")
    assert len(server.requests) == 2
    assert log.read_text().count("run") == 2
    assert "key-number-7" not in str(refused.value)


async def test_a_key_in_the_environment_is_used_instead_unless_the_helper_is_managed(tmp_path: Path) -> None:
    async with RecordingModelServer(["Hi.", "Hi."]) as server:
        await asked(server, "echo from-helper", WAVE_API_KEY="from-environment")
        await asked(server, "echo from-helper", WAVE_API_KEY="from-environment", managed=True)
    assert sent_keys(server) == ["Bearer from-environment", "Bearer from-helper"]


@pytest.mark.parametrize(
    ("helper", "message"),
    [
        ("echo oh no >&2; exit 3", "apiKeyHelper ended with status 3: oh no"),
        ("echo + key=hunter2 >&2; echo oh no >&2; exit 3", "apiKeyHelper ended with status 3: oh no"),
        ("true", "must print the key and nothing else"),
        ("yes | tr -d '\\n' | head -c 20000", "must print the key and nothing else"),
        ("echo two words", "must print the key and nothing else"),
        ("printf 'k\\001y'", "invalid characters"),
    ],
)
async def test_a_helper_that_fails_is_reported(helper: str, message: str) -> None:
    async with RecordingModelServer([]) as server:
        with pytest.raises(ModelError, match=message):
            await asked(server, helper)
    assert server.requests == []


async def test_what_a_helper_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with RecordingModelServer(["Hi."]) as server:
        await asked(server, f"(setsid sh -c 'until [ -e {gate} ]; do sleep 0.05; done' &); echo from-helper")
    gate.touch()
    assert sent_keys(server) == ["Bearer from-helper"]


def test_a_wrong_api_in_the_environment_is_named() -> None:
    with pytest.raises(SettingsError, match=r'^WAVE_API: "nonsense" is not an API; expected one of'):
        endpoint_for(ModelWishes(), Settings(), {"WAVE_API": "nonsense"})


@pytest.mark.parametrize(
    ("environment", "settings", "named"),
    [
        ({"WAVE_BASE_URL": "ollama"}, Settings(base_url="http://h/v1"), "WAVE_BASE_URL: "),
        ({"OPENAI_BASE_URL": "ollama"}, Settings(), "OPENAI_BASE_URL: "),
        ({}, Settings(base_url="ollama"), "The setting baseUrl: "),
    ],
    ids=["variable", "variable of a provider", "setting"],
)
def test_an_error_about_a_url_says_where_it_was_set(
    environment: dict[str, str], settings: Settings, named: str
) -> None:
    with pytest.raises(ModelError, match=f'^{named}"ollama" is not a base URL'):
        model_for(ModelWishes(), settings, environment)
    with pytest.raises(ModelError, match=r'^"ollama" is not a base URL'):
        model_for(ModelWishes(base_url="ollama"), settings, environment)


async def test_a_model_without_a_server() -> None:
    model = model_for(ModelWishes(), Settings(), {"WAVE_LOCAL_PORTS": ""}, model="m")
    with pytest.raises(ModelError, match=r"^No server is configured for the model m\. Run wave setup"):
        _ = [delta async for delta in model.stream(ModelRequest(model="m", messages=[]))]
