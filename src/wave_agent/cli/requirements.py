"""What Wave needs to run at all. Old interpreters load this module, so its syntax and names are theirs."""

OLDEST_PYTHON = (3, 11)

_WINDOWS = """\
wave: Wave runs on Linux and macOS, not on Windows itself. Use it in WSL, the Windows Subsystem for Linux:
  1. In PowerShell:               wsl --install
  2. In the terminal of Linux:    sudo apt install pipx && pipx install wave-agent
"""
_PYTHON = """\
wave: Wave needs Python {oldest} or newer, and this is Python {version}.
Install it with a newer one, such as:    pipx install --python python{oldest} wave-agent
"""


def missing_requirement(platform: str, version: "tuple[int, ...]") -> str:
    """What to tell a user whose system cannot run Wave; an empty string if it can.

    `platform` is like `sys.platform`, and `version` like `sys.version_info`.
    """
    if platform == "win32":
        return _WINDOWS
    if tuple(version[:2]) < OLDEST_PYTHON:
        return _PYTHON.format(oldest="{}.{}".format(*OLDEST_PYTHON), version=".".join(map(str, version[:3])))
    return ""
