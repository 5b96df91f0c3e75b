"""Which servers are configured, which layer wins a name, and which may run."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.configuration import Place
from wave_agent.errors import MissingPathError, SettingsError
from wave_agent.hooks.definitions import Layer
from wave_agent.mcp.servers import Configured, RefusedServer, WaitingServer


def http(host: str) -> dict[str, Any]:
    return {"type": "http", "url": f"https://{host}.example/"}


def where(configured: Configured) -> dict[str, str]:
    """The host of each server that may run."""
    return {one.name: one.entry.url.removeprefix("https://").removesuffix(".example/") for one in configured.servers}


def test_every_layer_adds_its_servers(place: Place, tmp_path: Path) -> None:
    place.user({"mcpServers": {"user": http("user")}, "compat": {"claude": True}})
    place.managed.write_text(json.dumps({"mcpServers": {"managed": http("managed")}}))
    file = tmp_path / "named.json"
    file.write_text(json.dumps({"mcpServers": {"file": http("file")}}))
    text = json.dumps({"text": http("text")})
    (place.claude.parent / ".claude.json").write_text(
        json.dumps(
            {
                "mcpServers": {"theirs": http("theirs"), "user": http("lost")},
                "projects": {str(place.project): {"mcpServers": {"here": http("here"), "theirs": http("nearer")}}},
            }
        )
    )
    place.servers({"project": http("project")})
    place.write(".wave/settings.local.json", {"mcpServers": {"local": http("local")}})
    found = place.configured(mcp_config=[str(file), text], mcp_servers={"code": http("code")}, trust=True)
    assert where(found) == {
        **{name: name for name in ("managed", "file", "text", "code", "here", "user", "local", "project")},
        "theirs": "nearer",
    }
    assert found.issues == ()
    assert {one.name: one.layer for one in found.servers if one.name != one.layer} == {
        "file": Layer.FLAG, "text": Layer.FLAG, "theirs": Layer.USER, "here": Layer.USER,
    }  # fmt: skip
    assert [one.is_of_project for one in found.servers][-2:] == [True, True]
    strict = place.configured(mcp_config=[text], strict_mcp_config=True)
    assert where(strict) == {"managed": "managed", "text": "text"}


def test_a_projects_server_never_takes_the_name_of_another_layer(place: Place) -> None:
    place.user({"mcpServers": {"guard": http("user")}})
    place.managed.write_text(json.dumps({"mcpServers": {"Audit": http("managed")}}))
    place.servers({"GUARD": http("evil"), "guard": http("evil"), "audit": http("evil")})
    place.write(".wave/settings.json", {"mcpServers": {"guard": http("evil")}})
    place.write(".wave/settings.local.json", {"mcpServers": {"flag": http("evil")}})
    found = place.configured(mcp_config=[{"flag": http("flag")}], trust=True)
    assert where(found) == {"guard": "user", "Audit": "managed", "flag": "flag"}
    assert found.waiting == ()
    refused = [one for one in found.refused if one.layer in (Layer.PROJECT, Layer.LOCAL)]
    assert len(refused) == 5
    for one in refused:
        assert "the name is taken" in one.why
        assert any(f"MCP server {one.name} ({one.source}) is not used" in notice for notice in found.notices)
    assert isinstance(found.get("Guard"), type(found.servers[0]))


def test_a_name_is_taken_even_by_a_server_that_may_not_run(place: Place) -> None:
    """Else a broken entry, or a denied server, lets the project's take its place."""
    place.user({"mcpServers": {"a": {"command": 1}, "b": http("b")}, "deniedMcpServers": [{"serverName": "b"}]})
    place.servers({"a": http("evil"), "b": http("evil")})
    assert place.configured(trust=True).servers == ()


def test_precedence_among_the_users_own(place: Place) -> None:
    place.user({"mcpServers": {"a": http("user"), "b": http("user"), "c": http("user")}})
    place.managed.write_text(json.dumps({"mcpServers": {"c": http("managed")}}))
    config = [{"a": http("first")}, {"a": http("last")}, {"c": http("flag")}]
    found = place.configured(mcp_config=config, mcp_servers={"b": http("code")})
    assert where(found) == {"a": "last", "b": "code", "c": "managed"}
    assert [notice for notice in found.notices if "MCP server c" in notice]
    assert not [notice for notice in found.notices if "MCP server a" in notice or "MCP server b" in notice]


def test_an_inner_directory_wins_within_the_project(place: Place) -> None:
    place.start = str(place.project / "sub")
    place.servers({"a": http("outer"), "b": http("outer")})
    place.servers({"a": http("inner")}, "sub/.mcp.json")
    place.write("sub/.wave/settings.local.json", {"mcpServers": {"b": http("local")}})
    assert where(place.configured(trust=True)) == {"a": "inner", "b": "local"}
    place.write("other/.mcp.json", {"mcpServers": {"c": http("other")}})
    assert set(where(place.configured(trust=True))) == {"a", "b"}


def test_a_projects_server_never_starts_before_consent(place: Place) -> None:
    place.write(
        ".wave/settings.json",
        {
            "mcpServers": {"c": http("c")},
            "enableAllProjectMcpServers": True,
            "enabledMcpjsonServers": ["a"],
            "compat": {"claude": True},
        },
    )
    place.write(".claude/settings.json", {"enableAllProjectMcpServers": True})
    place.user({"enableAllProjectMcpServers": True, "compat": {"claude": True}})
    place.servers({"a": {"command": "x"}, "b": http("b")})
    found = place.configured()
    assert found.servers == ()
    assert {one.server.name: one.why for one in found.waiting} == dict.fromkeys("abc", "not trusted yet")
    assert len([one for one in found.notices if "wave mcp trust" in one and "does not start" in one]) == 3
    assert len([one for one in found.notices if "approvals of MCP servers in settings have no effect" in one]) == 3
    assert place.running(trust=True) == ["c", "a", "b"] or set(place.running(trust=True)) == {"a", "b", "c"}
    assert place.running() == []  # --trust is for one run
    place.agree("a")
    assert place.running() == ["a"]


def test_consent_belongs_to_one_project_and_one_name(place: Place, fresh: Callable[[], Place]) -> None:
    place.servers({"a": http("x")})
    place.agree("a")
    place.servers({"b": http("x")})
    assert isinstance(place.configured().get("b"), WaitingServer)
    other = fresh()
    other.home = place.home
    other.servers({"a": http("x")})
    assert other.running() == []


def test_disabled_servers_of_mcp_json(place: Place) -> None:
    place.user({"disabledMcpjsonServers": ["A", "u"], "mcpServers": {"u": http("u")}, "compat": {"claude": True}})
    place.servers({"a": http("a"), "b": http("b"), "c": http("c")})
    place.write(".claude/settings.local.json", {"disabledMcpjsonServers": ["b"]})
    found = place.configured(trust=True)
    assert set(where(found)) == {"u", "c"}
    refused = found.get("a")
    assert isinstance(refused, RefusedServer)
    assert "disabledMcpjsonServers" in refused.why


def test_lists_hold_whatever_the_user_asks_for(place: Place) -> None:
    place.managed.write_text(json.dumps({"deniedMcpServers": [{"serverUrl": "https://bad.example/*"}]}))
    place.user({"mcpServers": {"a": http("bad"), "b": http("good")}})
    place.servers({"p": http("bad")})
    config = {"c": http("bad"), "d": http("good")}
    assert set(where(place.configured(mcp_config=[config], trust=True))) == {"b", "d"}
    assert set(where(place.configured(mcp_config=[config], strict_mcp_config=True))) == {"d"}
    place.write(".wave/settings.json", {"allowedMcpServers": [{"serverName": "q"}]})
    found = place.configured(mcp_config=[config])
    assert set(where(found)) == {"b", "d"}
    assert any("a project's list only applies to its own servers" in one for one in found.notices)


def test_a_managed_file_of_another_agent_is_exclusive(place: Place) -> None:
    place.managed_mcp.write_text(json.dumps({"mcpServers": {"only": http("only")}}))
    place.user({"mcpServers": {"a": http("a")}, "compat": {"claude": True}})
    found = place.configured(mcp_config=[{"b": http("b")}], trust=True)
    assert where(found) == {"only": "only"}
    assert all(str(place.managed_mcp) in one.why for one in found.refused)
    place.user({"mcpServers": {"a": http("a")}})
    assert where(place.configured()) == {"a": "a"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mcpServers": []}, "must be an object of servers by name"),
        ({"mcpServers": {"a": {"url": "https://x.example"}}}, '"type": "http"'),
        ({"deniedMcpServers": "x"}, "must be a list"),
    ],
)
def test_invalid_managed_settings_stop_the_start(place: Place, settings: dict[str, Any], message: str) -> None:
    place.managed.write_text(json.dumps(settings))
    place.user({"mcpServers": {"b": http("b")}})
    with pytest.raises(SettingsError) as raised:
        place.configured()
    assert message in str(raised.value)
    assert str(place.managed) in str(raised.value)


def test_an_invalid_entry_loses_only_itself(place: Place) -> None:
    place.write(".mcp.json", '{"mcpServers": {\n"a": {"url": "https://x"},\n"b": {"command": "x"}\n}}')
    found = place.configured(trust=True)
    assert [one.name for one in found.servers] == ["b"]
    assert [str(one).partition(": ")[0] for one in found.issues] == [f"{place.project}/.mcp.json:2"]


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", ".mcp.json:1:2: not valid JSON"), ('{"mcpServers": {"a": {}, "a": {}}}', 'duplicate key "a"')],
)
def test_a_file_that_cannot_be_parsed_is_an_error(place: Place, content: str, message: str) -> None:
    place.write(".mcp.json", content)
    with pytest.raises(SettingsError, match=message):
        place.configured()


def test_a_link_out_of_the_project_is_not_read(place: Place, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text(json.dumps({"mcpServers": {"a": http("a")}}))
    (place.project / ".mcp.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(SettingsError, match="leads out of the project"):
        place.configured()


def test_a_named_file_must_exist(place: Place) -> None:
    with pytest.raises(MissingPathError, match=r"nope\.json"):
        place.configured(mcp_config=["/nope.json"])


def test_what_a_server_gets(place: Place) -> None:
    place.environment |= {"ANTHROPIC_API_KEY": "key", "OTHER": "o", "WAVE_BASE_URL": "https://u:p@m.example"}
    place.user({"env": {"SETTING": "s", "PYTHONPATH": "evil", "NODE_OPTIONS": "--require evil"}})
    place.servers({"a": {"command": "x", "env": {"A": "1", "MINE": "${ANTHROPIC_API_KEY}"}}})
    server = place.configured(trust=True).servers[0]
    environment = server.environment
    assert "ANTHROPIC_API_KEY" not in environment
    assert environment["WAVE_BASE_URL"] == "https://m.example"
    assert (environment["SETTING"], environment["OTHER"], environment["A"]) == ("s", "o", "1")
    assert environment["MINE"] == "${ANTHROPIC_API_KEY}"
    assert environment["CLAUDE_PROJECT_DIR"] == server.directory == str(place.project)
    assert not {"PYTHONPATH", "NODE_OPTIONS"} & environment.keys()


def test_the_settings_of_a_project_are_trusted_apart_from_its_servers(place: Place) -> None:
    """A new server neither voids the trust in a settings file, nor needs it."""
    from wave_agent.formats.strict_json import Document
    from wave_agent.settings.hook_entries import SettingsSource
    from wave_agent.settings.trust import rest_digest

    def digest(layer: Layer, **more: Any) -> str:
        return rest_digest(SettingsSource(layer, "f", Document({"model": "m", **more}, {})))

    servers = {"mcpServers": {"a": http("a")}}
    assert digest(Layer.PROJECT, **servers) == digest(Layer.PROJECT)
    assert digest(Layer.USER, **servers) != digest(Layer.USER)
    place.write(".wave/settings.json", servers)
    assert not [one for one in place.configured().notices if "wave hooks trust" in one]


def test_whether_there_are_servers_is_known_cheaply(place: Place) -> None:
    assert not place.has_servers()
    place.user({"deniedMcpServers": [], "compat": {"claude": True}})
    (place.claude.parent / ".claude.json").write_text('{"projects": {}}')
    assert not place.has_servers()
    assert place.has_servers(mcp_config=["x.json"])
    assert place.has_servers(mcp_servers={"a": http("a")})
    for name, content in {
        ".mcp.json": "{}",
        ".wave/settings.local.json": '{"mcpServers": {"a": {}}}',
        ".claude/settings.json": '{"mcpServers": {"a": {}}}',
    }.items():
        file = place.write(name, content)
        assert place.has_servers(), name
        file.unlink()
    (place.claude.parent / ".claude.json").write_text('{"mcpServers": {"a": {}}}')
    assert place.has_servers()
    assert not place.has_servers(strict_mcp_config=True)
    place.user({"mcpServers": {"a": {}}})
    assert place.has_servers()


def test_a_start_without_servers_loads_nothing_about_them(place: Place) -> None:
    code = (
        "import os, sys\n"
        "from wave_agent.agent.foundation import lay_foundation\n"
        "from wave_agent.agent.options import Options\n"
        "from wave_agent.settings.mcp_sources import has_servers\n"
        f"found = lay_foundation(Options(workdir={str(place.project)!r}), os.environ)\n"
        "assert not has_servers(found.gathered, found.place, found.home, found.options)\n"
        "print([name for name in sys.modules if name.startswith('wave_agent.mcp')])\n"
    )
    environment = {**os.environ, "WAVE_HOME": str(place.home), "HOME": str(place.claude.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
