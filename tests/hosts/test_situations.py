"""The table of situations, and how a run is judged. No host is needed."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.hosts.adapters import ADAPTERS, NativeHook
from tests.hosts.arena import Seen
from tests.hosts.checks import faults, outcome
from tests.hosts.dialects import BEFORE, DIALECTS
from tests.hosts.install import NODE, packages
from tests.hosts.results import read
from tests.hosts.situations import Expected, Hook, Situation, inexpressible, load
from tests.rows import rows
from wave_agent.guard.entries import entries
from wave_agent.guard.hosts import HOSTS
from wave_agent.guard.places import PLACES

SITUATIONS = load()


def seen(**changed: Any) -> Seen:
    found: dict[str, Any] = {
        "requests": ["first", "second"],
        "waits": [],
        "files": [],
        "unchanged": [],
        "hook_runs": {"0": ["{}"]},
        "seconds": 1.0,
        "exit_code": 0,
        "output": "",
    }
    return Seen(**{**found, **changed})


def test_every_situation_has_a_name_of_its_own_and_expects_something() -> None:
    names = [situation.name for situation in SITUATIONS]
    assert len(set(names)) == len(names) >= 25
    assert all(situation.expect != Expected() for situation in SITUATIONS)


def test_every_word_can_be_said_in_some_host_and_in_ours() -> None:
    ours = DIALECTS["wave"]({})
    for situation in SITUATIONS:
        for hook in situation.hooks:
            assert set(hook.words) <= set(ours[hook.event])
        assert not all(inexpressible(situation, host, guarded=False) for host in ADAPTERS.values())


def test_what_cannot_be_expressed() -> None:
    prompt = Situation("", "", "", Expected(), hooks=[Hook(event="prompt", script="say block")])
    rewrite = Situation("", "", "", Expected(), hooks=[Hook(script="say rewrite")])
    assert inexpressible(prompt, ADAPTERS["vibe"], guarded=True) == "no such event"
    assert inexpressible(rewrite, ADAPTERS["kimi"], guarded=False) == "no such answer"
    assert inexpressible(rewrite, ADAPTERS["kimi"], guarded=True) == ""


def test_every_host_is_pinned_and_is_one_of_the_guards_hosts() -> None:
    pinned = packages()
    assert set(pinned) - {NODE} == set(ADAPTERS)
    assert all(package.version[0].isdigit() for package in pinned.values())
    for name, adapter in ADAPTERS.items():
        assert set(adapter.events.values()) <= set(HOSTS[name].events)
        assert adapter.hooks_file == f"{PLACES[name].directory}/{PLACES[name].user}"


def test_the_results_are_about_the_versions_and_situations_of_today() -> None:
    """A changed version or situation needs a new run of `make test-hosts`."""
    names = [situation.name for situation in SITUATIONS]
    for name, found in read().hosts.items():
        assert found.version == packages()[name].version
        if not found.trouble:
            assert list(found.situations) == names, name


@rows("name", list(ADAPTERS))
def test_hooks_are_written_as_the_host_reads_them(name: str, tmp_path: Path) -> None:
    adapter = ADAPTERS[name]
    event = adapter.events[BEFORE]
    file = tmp_path / f"{name}{Path(adapter.hooks_file).suffix}"
    adapter.write_hooks(file, [NativeHook(event=event, command=f"echo {number}", timeout=2) for number in (1, 2)])
    found = [(hook.event, hook.command) for hook in entries(name, file.read_text())]
    assert found == [(event, "echo 1"), (event, "echo 2")]


EXPECTED = [
    (Expected(absent=["ran"]), {"files": ["ran"]}, ["runs it"]),
    (Expected(absent=["rewritten"]), {"files": ["rewritten"]}, ["runs the rewritten call"]),
    (Expected(absent=["ran"]), {"files": ["other"]}, []),
    (Expected(present=["ran"]), {}, ["does not run it"]),
    (Expected(told=["reason-7"]), {}, ["the model is not told"]),
    (Expected(told=["reason-7"]), {"requests": ["x reason-7"]}, []),
    (Expected(untold=["canary"]), {"requests": ["canary"]}, ["the model sees it"]),
    (Expected(unchanged=["HOOKS"]), {}, ["writes it"]),
    (Expected(unchanged=["HOOKS"]), {"unchanged": ["HOOKS"]}, []),
    (Expected(either="rewritten"), {}, ["neither rewrites it nor says so"]),
    (Expected(either="rewritten"), {"requests": ["touch rewritten"]}, []),
    (Expected(most_requests=0), {}, ["the model gets it"]),
    (Expected(most_requests=1), {}, ["goes on for 2 requests"]),
    (Expected(least_requests=3), {}, ["does not go on"]),
]


@rows("expect, changed, found", EXPECTED)
def test_faults(expect: Expected, changed: dict[str, Any], found: list[str]) -> None:
    assert faults(expect, seen(**changed)) == found


def test_a_host_that_did_nothing_does_not_pass_for_a_careful_one() -> None:
    situation = Situation("", "", "", Expected(absent=["ran"]), hooks=[Hook(script="exit 2")])
    assert outcome(situation, seen(), guarded=False).is_good
    assert outcome(situation, seen(hook_runs={}, output="a\nno key\n"), guarded=False).trouble == "no hook ran: no key"
    assert outcome(situation, seen(requests=[]), guarded=False).trouble == "the model was not asked: no output"
    assert outcome(situation, seen(exit_code=None), guarded=False).faults == ["has to be ended after 60 s"]


@rows("name", list(DIALECTS))
def test_answers_are_json_objects(name: str) -> None:
    for found in DIALECTS[name]({"command": "x"}).values():
        assert all(isinstance(json.loads(json.dumps(answer)), dict) for answer in found.values())


def test_an_unknown_key_in_a_situation_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"script": "x", "scirpt": "y"}, Hook)
