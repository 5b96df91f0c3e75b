"""Environment variables that decide which code a hook runs.

Settings, hooks that export variables, and commands that start another agent can set these for commands. Hooks always
get the values the agent itself was started with.
"""

import os
import re
from collections.abc import Mapping

_PINNED = re.compile(
    r"PATH|HOME|XDG_CONFIG_HOME|CDPATH|IFS|ENV|PS4|GLOBIGNORE|SHELLOPTS|BASHOPTS"
    r"|BASH_(?:ENV|FUNC_.*|LOADABLES_PATH|XTRACEFD)|(?:LD|DYLD)_\w+"
    r"|PYTHON(?:PATH|HOME|STARTUP|USERBASE|PLATLIBDIR|INSPECT|WARNINGS|BREAKPOINT|EXECUTABLE|PYCACHEPREFIX|SAFEPATH)"
    r"|NODE_(?:OPTIONS|PATH)|PERL(?:5LIB|LIB|5OPT|5DB|_USE_UNSAFE_INC)|RUBY(?:LIB|OPT)|GCONV_PATH"
    r"|GIT_(?:CONFIG\w*|EXEC_PATH|DIR|WORK_TREE|COMMON_DIR|INDEX_FILE|OBJECT_DIRECTORY|EXTERNAL_DIFF|SSH\w*|PAGER|EDITOR"
    r"|SEQUENCE_EDITOR|PROXY_COMMAND|TEMPLATE_DIR|ASKPASS|ALLOW_PROTOCOL)",
    re.DOTALL,
)


def is_pinned(name: str) -> bool:
    """Whether settings and hooks must not change this variable for hooks."""
    return _PINNED.fullmatch(name) is not None


def search_path(environment: Mapping[str, str]) -> str:
    """PATH for hooks. Relative directories are dropped, since they would point into the project."""
    directories = environment.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(one for one in directories if one.startswith("/")) or os.defpath
