"""Environment variables that decide which code a hook runs.

Settings, hooks that export variables, and commands that start another agent can set these for commands. Hooks always
get the values the agent itself was started with.
"""

import os
from collections.abc import Mapping

_PINNED = frozenset(
    {
        *("PATH", "HOME", "XDG_CONFIG_HOME", "CDPATH", "IFS", "ENV", "PS4", "GLOBIGNORE", "SHELLOPTS", "BASHOPTS"),
        *("BASH_ENV", "BASH_LOADABLES_PATH", "BASH_XTRACEFD", "GCONV_PATH", "NODE_OPTIONS", "NODE_PATH"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONINSPECT"),
        *("PYTHONWARNINGS", "PYTHONBREAKPOINT", "PYTHONEXECUTABLE", "PYTHONPYCACHEPREFIX", "PYTHONSAFEPATH"),
        *("PERL5LIB", "PERLLIB", "PERL5OPT", "PERL5DB", "PERL_USE_UNSAFE_INC", "RUBYLIB", "RUBYOPT"),
        *("GIT_EXEC_PATH", "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"),
        *("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PROXY_COMMAND"),
        *("GIT_TEMPLATE_DIR", "GIT_ASKPASS", "GIT_ALLOW_PROTOCOL"),
    }
)
_PINNED_PREFIXES = ("BASH_FUNC_", "LD_", "DYLD_", "GIT_CONFIG", "GIT_SSH")
# No regular expression: compiling one with this many names takes a tenth of an interpreter's start.


def is_pinned(name: str) -> bool:
    """Whether settings and hooks must not change this variable for hooks."""
    return name in _PINNED or name.startswith(_PINNED_PREFIXES)


def search_path(environment: Mapping[str, str]) -> str:
    """PATH for hooks. Relative directories are dropped, since they would point into the project."""
    directories = environment.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(one for one in directories if one.startswith("/")) or os.defpath
