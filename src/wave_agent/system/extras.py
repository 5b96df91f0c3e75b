"""How an extra is installed, by the tool that installed Wave: another one would put it where Wave does not look."""

import sys
from pathlib import PurePath


def install_extra(extra: str, prefix: str = sys.prefix) -> str:
    """The command, such as `pipx install --force 'wave-agent[mcp]'`."""
    package = f"'wave-agent[{extra}]'"
    parts = PurePath(prefix).parts
    if parts[-3:-1] == ("pipx", "venvs"):
        return f"pipx install --force {package}"
    if parts[-3:-1] == ("uv", "tools"):
        return f"uv tool install {package}"
    return f"pip install {package}"
