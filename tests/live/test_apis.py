"""Some sessions of this directory on each of the other APIs. `make test-all` runs all of them there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.project import SWITCH, Project
from tests.live import test_cut_answers, test_gates
from wave_agent.models.apis import APIS

SESSIONS: list[Callable[..., None]] = [
    test_cut_answers.test_half_a_file_is_written_because_the_answer_was_cut,
    test_gates.test_a_gate_that_the_model_satisfies_lets_it_end,
    test_gates.test_a_line_of_chatter_does_not_cost_a_deny,
]


@pytest.mark.parametrize("api", [api for api in APIS if api != "openai-chat"])
@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.__name__)
def test_a_session(
    session: Callable[[Project], None], api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, api)
    session(Project(tmp_path))
