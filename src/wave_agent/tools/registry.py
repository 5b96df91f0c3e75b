"""The built-in tools, and finding a tool by name."""

import re
from collections.abc import Iterable, Sequence

from wave_agent.text import nearest
from wave_agent.tools.base import Tool, ToolInputError
from wave_agent.tools.bash import Bash
from wave_agent.tools.bash_output import BashOutput
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.edit import Edit
from wave_agent.tools.glob import Glob
from wave_agent.tools.grep import Grep
from wave_agent.tools.kill_shell import KillShell
from wave_agent.tools.read import Read
from wave_agent.tools.shells import EarlierShell, Shells
from wave_agent.tools.todo import TodoWrite
from wave_agent.tools.write import Write


def builtin_tools(
    changes: FileChanges | None = None, earlier: Sequence[EarlierShell] = (), left: str | None = None
) -> tuple[Tool, ...]:
    """New instances for one session: they share what was read, what was changed and what runs in the background.

    `earlier` and `left` are for a resumed session: see `Shells`.
    """
    changes, shells = changes or FileChanges(), Shells(earlier, left)
    known = changes.known
    return (
        Bash(shells, known=known),
        BashOutput(shells),
        KillShell(shells),
        Read(known),
        Write(known, changes),
        Edit(known, changes),
        Glob(),
        Grep(),
        TodoWrite(),
    )


_KNOWN_ELSEWHERE = {
    "Bash": "shell sh cmd terminal console exec execute run command runcommand executecommand runshellcommand "
    "localshell runinterminal runterminalcmd shellcommand python ipython",
    "Read": "cat view open openfile readfile viewfile getfilecontents readmanyfiles showfile fileread head tail",
    "Write": "create createfile writefile writetofile savefile newfile filewrite insert",
    "Edit": "strreplace strreplaceeditor strreplacebasededittool applypatch applydiff editfile replace replaceinfile "
    "multiedit patch searchreplace notebookedit updatefile modifyfile fileedit editor texteditor",
    "Glob": "ls dir list listdir listdirectory listfiles find findfiles findbyname filesearch searchfiles "
    "tree globtool",
    "Grep": "search searchtext searchcode searchfilecontent codebasesearch codesearch ripgrep rg grepsearch "
    "findinfiles",
    "TodoWrite": "todo todos todoread updateplan plan updatetodos manageplan",
    "BashOutput": "getoutput readoutput shelloutput taskoutput",
    "KillShell": "kill killbash killprocess killtask stop",
}
"""Other agents' names for these tools, used by models that learnt them: lower case, letters and digits only."""


def find_tool(name: str, tools: Iterable[Tool]) -> Tool:
    """Raises a `ToolInputError` that names the likeliest tool and all tools."""
    by_name = {tool.name: tool for tool in tools}
    if name in by_name:
        return by_name[name]
    meant = _likeliest(name, by_name)
    advice = f" Call {meant} instead." if meant else ""
    raise ToolInputError(f'There is no tool "{name}".{advice} The tools are {", ".join(by_name)}.')


def _likeliest(name: str, known: Iterable[str]) -> str | None:
    # Some models prepend a namespace: functions.Bash, default_api:Read.
    names = [_plain(name), _plain(re.split(r"[.:/]", name)[-1])]
    by_plain = {_plain(one): one for one in known}
    for elsewhere in names:
        if elsewhere in by_plain:
            return by_plain[elsewhere]
        for tool, others in _KNOWN_ELSEWHERE.items():
            if elsewhere in others.split():
                return tool if tool in by_plain.values() else None
    return next((found for one in names if (found := nearest(one, by_plain.values())) is not None), None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
