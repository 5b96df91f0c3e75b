"""What a call to a tool that does not exist was probably meant to be."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from wave_agent.text import nearest
from wave_agent.tools.base import Tool

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
    "WebFetch": "fetch fetchurl urlfetch fetchpage fetchwebpage fetchwebcontent readurl openurl browse browser httpget "
    "curl wget webbrowser",
    "BashOutput": "getoutput readoutput shelloutput taskoutput",
    "KillShell": "kill killbash killprocess killtask stop",
}
"""Other agents' names for these tools, used by models that learnt them: lower case, letters and digits only."""
_ANSWERS = (
    "answer finalanswer final respond reply message say attemptcompletion complete finish done submit askuser "
    "askfollowupquestion sendmessage"
)
"""Other agents' names for what needs no tool here."""
_FIELDS_ELSEWHERE = {
    "file_path": "path file filename filepath file_name absolute_path target_file relative_workspace_path uri",
    "command": "cmd script commands shell_command code bash_command",
    "content": "contents text file_text data code body",
    "old_string": "old_str old old_text search find original",
    "new_string": "new_str new new_text replace replacement updated",
    "pattern": "query regex regexp glob search search_term glob_pattern",
    "path": "directory dir folder root dir_path",
}
"""Other agents' names for input fields."""
_FILE_NAMES = re.compile(r"(?<![.\)\]])\*|^[\w./-]+\.\w{1,4}$")
"""A pattern for names of files, such as `src/**/*.py` or `setup.py`, rather than for text in them."""


_EDITORS = ("Edit", "Write")
_LEAVES_PLAN = "exitplanmode"
_FEW = 8
"""Tools that are listed to a model that has seen the whole list."""


class Circumstances(Struct, frozen=True):
    """What the advice depends on, besides the call."""

    in_plan_mode: bool = False
    is_subagent: bool = False
    again: bool = False
    """The model has been given such advice in this session."""


NO_CIRCUMSTANCES = Circumstances()


def advice(
    name: str, known: Mapping[str, Tool], given: Mapping[str, Any], here: Circumstances = NO_CIRCUMSTANCES
) -> str:
    """What to do instead: a model that is only told that a tool does not exist often tries the next one that does not.

    `known` are the tools by name, `given` is the input of the call.
    """
    if name.startswith("mcp__"):
        return _of_server(name, known)
    names = _names(known, here)
    if _plain(name) in _ANSWERS.split():
        return f"To answer the user, write text without calling a tool. The tools are {names}."
    if _plain(name) == _LEAVES_PLAN:
        return "End your turn with the plan." if here.in_plan_mode else "You are not in plan mode: do the work."
    of_servers = _same_on_servers(name, known)
    meant = of_servers[0] if of_servers else _likeliest(name, known, given)
    if why_not := _cannot_edit(_by_name(name, known), meant, known, here):
        return f"{why_not} The tools are {names}."
    if meant is None:
        hint = "Bash runs any command." if "Bash" in known else ""
        return f"Call one of these now: {names}. {hint}".rstrip()
    needed = meant.schema().get("required", ())
    hint = f"The likeliest is {meant.name}{f', which needs {_listed(needed)}' if needed else ''}."
    if others := ", ".join(tool.name for tool in of_servers[1:]):
        hint += f" Other servers have one as well: {others}."
    return hint if here.again else f"Call one of these now: {names}. {hint}"


def _names(known: Iterable[str], here: Circumstances) -> str:
    names = list(known)
    if not here.again or len(names) <= _FEW:
        return ", ".join(names)
    return f"{', '.join(names[:_FEW])} and {len(names) - _FEW} more"


def _same_on_servers(name: str, known: Mapping[str, Tool]) -> list[Tool]:
    """The tools of MCP servers with this name: models often leave out where a tool comes from."""
    wanted = {_plain(name), _last(name)}
    parts = {one: one.split("__", 2)[1:] for one in known if one.startswith("mcp__")}
    return [known[one] for one, part in parts.items() if wanted & {_plain(part[-1]), _plain("".join(part))}]


def _cannot_edit(named: str | None, meant: Tool | None, known: Iterable[str], here: Circumstances) -> str:
    """Why a call that was meant to edit has no tool that does. A way around, such as Bash, is not advised."""
    wants = meant.name if meant is not None else named
    if wants not in _EDITORS:
        return ""
    if here.in_plan_mode:
        return "Plan mode only lets you read: put the change into the plan."
    if set(_EDITORS).isdisjoint(known):
        whom = "in your report" if here.is_subagent else "to the user"
        return f"You have no tool that edits files: describe the change {whom} instead."
    return ""


def _of_server(name: str, known: Iterable[str]) -> str:
    """No other tool is suggested: the user may have decided that this one is not offered."""
    server = name.split("__")[1]
    same = [one for one in known if one.startswith(f"mcp__{server}__")]
    offered = f"The tools of that server are {', '.join(same)}." if same else "That server has no tools here."
    why = "A rule of the user may deny it, or it waits until the user has reviewed it."
    return f"{offered} {why} Do without it, or tell the user."


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _likeliest(name: str, known: Mapping[str, Tool], given: Mapping[str, Any]) -> Tool | None:
    """A known name decides, unless the input fits only another tool; then the input; then a similar name."""
    fitting = [tool for tool in known.values() if _fits(tool.schema(), given)]
    named = _by_name(name, known)
    if fitting and (named is None or known.get(named) not in fitting):
        return _by_pattern(fitting, given) or fitting[0]
    meant = named or nearest(_last(name), known)
    return None if meant is None else known.get(meant)


def _by_name(name: str, known: Iterable[str]) -> str | None:
    """The tool that has this name elsewhere. It may not be among the known ones."""
    by_plain = {_plain(one): one for one in known}
    for elsewhere in (_plain(name), _last(name)):
        if elsewhere in by_plain:
            return by_plain[elsewhere]
        for tool, others in _KNOWN_ELSEWHERE.items():
            if elsewhere in (_plain(tool), *others.split()):
                return tool
    return None


def _last(name: str) -> str:
    """Some models prepend a namespace: functions.Bash, default_api:Read."""
    return _plain(re.split(r"[.:/]", name)[-1])


def _fits(schema: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether this input, with other names for the same fields, has all fields that the tool needs and no others."""
    fields: Mapping[str, Any] = schema.get("properties", {})
    meant = {_field(key, fields) for key in given}
    return bool(given) and None not in meant and meant.issuperset(schema.get("required", ()))


def _field(key: str, fields: Iterable[str]) -> str | None:
    known = list(fields)
    if key in known:
        return key
    meant = (field for field, others in _FIELDS_ELSEWHERE.items() if field in known and key in others.split())
    return next(meant, None)


def _by_pattern(fitting: Sequence[Tool], given: Mapping[str, Any]) -> Tool | None:
    """File names (`*.py`) and text (`def .*`) are searched for with different tools, whose input is alike."""
    names = [str(value) for key, value in given.items() if _field(key, ("pattern",))]
    wanted = "Glob" if any(_FILE_NAMES.search(one) for one in names) else "Grep"
    return next((tool for tool in fitting if names and tool.name == wanted), None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
