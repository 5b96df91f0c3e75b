"""What a background hook reports when no turn is left that could tell the model."""

from pathlib import Path

import pytest

from tests.waiting import until
from wave_agent import Agent
from wave_agent.agent.result import Callbacks
from wave_agent.events import Event, ModelWoken, Notice
from wave_agent.testing import ScriptedModel


@pytest.mark.parametrize("is_closing", [False, True])
async def test_the_user_learns_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_closing: bool) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    heard: list[Event] = []
    late = {"command": "until test -e go; do sleep 0.02; done; echo Too late. >&2; exit 2", "asyncRewake": True}
    agent = await Agent.create(
        workdir=tmp_path,
        model_client=ScriptedModel(["Done."]),
        hooks={"Stop": [{"hooks": [late]}]},
        callbacks=Callbacks(on_event=heard.append),
    )
    await agent.send_message("Go.")
    (tmp_path / "go").touch()
    if not is_closing:
        await until(lambda: any(isinstance(event, ModelWoken) for event in heard))
    await agent.close()
    notices = [event.content for event in heard if isinstance(event, Notice)]
    assert [text for text in notices if "so the model has not seen this: Too late." in text] == [notices[-1]]
