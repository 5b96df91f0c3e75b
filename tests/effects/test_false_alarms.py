"""Commands that look as if they touched more than they do."""

from tests.rows import rows
from wave_agent.effects.calls import effects_of
from wave_agent.effects.surroundings import Surroundings

HERE = Surroundings(directory="/p", project="/p")


@rows("line", ["eslint .", "eslint . --fix", "ruff check --fix .", "black .", "prettier --write ."])
def test_tools_for_sources_do_not_look_into_hidden_files(line: str) -> None:
    effects = effects_of("Bash", {"command": line}, HERE)
    assert "/p/**/[!.]*" in effects.reads
    assert "/p/**" not in (*effects.reads, *effects.writes)
    assert not effects.complete


def test_a_file_that_is_named_is_read_even_if_it_is_hidden() -> None:
    assert "/p/.env" in effects_of("Bash", {"command": "prettier --write .env"}, HERE).writes


@rows(
    ("line", "writes"),
    [
        ("git restore --staged .", False),
        ("git restore -S a", False),
        ("git restore --staged --worktree .", True),
        ("git restore -SW a", True),
        ("git restore .", True),
    ],
)
def test_restoring_the_index_leaves_files_alone(line: str, writes: bool) -> None:
    assert bool(effects_of("Bash", {"command": line}, HERE).writes) is writes
