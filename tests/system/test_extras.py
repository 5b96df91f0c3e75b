"""An extra is installed by what installed Wave."""

import pytest

from wave_agent.system.extras import install_extra


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/me/.local/share/pipx/venvs/wave-agent", "pipx install --force 'wave-agent[mcp]'"),
        ("/home/me/.local/pipx/venvs/wave-agent", "pipx install --force 'wave-agent[mcp]'"),
        ("/home/me/.local/share/uv/tools/wave-agent", "uv tool install 'wave-agent[mcp]'"),
        ("/home/me/project/.venv", "pip install 'wave-agent[mcp]'"),
        ("/usr", "pip install 'wave-agent[mcp]'"),
        ("/", "pip install 'wave-agent[mcp]'"),
    ],
)
def test_the_command_fits_the_place(prefix: str, command: str) -> None:
    assert install_extra("mcp", prefix) == command
