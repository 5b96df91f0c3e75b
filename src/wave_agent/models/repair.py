"""Recovers tool calls that small models write as text or malformed JSON.

Ambiguous text is rejected: then the model gets an error and tries again, while a wrong guess could run a command, or
write a file, that no one asked for. So an unfinished string is never closed, quotes inside quotes are never guessed,
and a call in an answer is used only if the answer ends with it.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from wave_agent.models.almost_json import WRAPPERS, Arguments, LenientReader, UnclearError, read_arguments, unfenced

Call = tuple[str, Arguments]


def repair_arguments(text: str) -> Arguments | None:
    """The object that `text` means; None if that is not certain.

    Valid JSON is read as it is, except with a duplicate key, which gives None. Beyond JSON, this accepts fences and
    prose around the object, comments, trailing commas, unquoted keys, other quotes, Python literals, line breaks in
    strings, missing brackets at the end, JSON inside a JSON string, `key="value"` lists, and XML with one tag per
    argument. XML values are always strings, since XML cannot distinguish `10` from `"10"`.
    """
    try:
        return read_arguments(text)
    except (UnclearError, RecursionError):
        return None


def calls_in_text(
    text: str, known: Collection[str], required: Mapping[str, Collection[str]], *, seen: Iterable[str] = ()
) -> tuple[str, list[Call]]:
    """The calls an answer makes in its text, and the remaining text for the user.

    A call is the whole answer, apart from leading reasoning, or comes at its end in a form made for calls. Every call
    must name a known tool and be readable; otherwise none is used and the text is returned unchanged. A call without
    such a form must have all arguments that `required` lists for the tool.

    `seen` are texts the model was shown, such as tool results: a call that appears in one of them is a quotation.
    """
    if not any(name in text for name in known):
        return text, []
    try:
        prose, found, marked = _found(_after_reasoning(text))
    except (UnclearError, RecursionError):
        return text, []
    shown = [_flat(other) for other in seen]
    calls: list[Call] = []
    for source, (written, arguments) in found:
        name = written if written in known else written.removeprefix("functions.").removesuffix(".call")
        complete = marked or set(required.get(name, ())) <= set(arguments)
        if name not in known or not complete or any(_flat(source) in other for other in shown):
            return text, []
        calls.append((name, arguments))
    return prose.strip(), calls


def is_call_attempt(text: str, known: Collection[str], *, cut: bool = False) -> bool:
    """Whether the answer is a call, or announces one and ends with it, in a form that could not be read.

    `cut`: the answer is incomplete, and no call in it was read.
    """
    whole = unfenced(_after_reasoning(text).strip())
    opens = _OPENS.search(whole)
    if opens is not None:
        before, after = whole[: opens.end()], whole[opens.end() :]
        line = _last_line(before)
        meant = not before.strip() or ((cut or _INTENDS.search(line) is not None) and not _is_quoting(line))
        return meant and (_UNMISTAKABLE.match(after) is not None or any(name in after[:200] for name in known))
    if not whole.startswith(("{", "[")) or not any(f'"{name}"' in whole[:200] for name in known):
        return False
    return any(f'"{key}"' in whole for key in _ARGUMENTS) and (cut or not _is_json(whole))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _flat(text: str) -> str:
    return " ".join(text.split())


_NAMES = frozenset({"name", "tool", "tool_name", "function", "function_name", "action"})
_ARGUMENTS = frozenset({*WRAPPERS, "tool_input", "action_input"})
_BESIDE = frozenset({"id", "type", "index", "call_id", "tool_call_id"})
_AROUND = ("tool_calls", "tool_call", "function_call", "function")

_NAME = r"(?P<name>[\w.-]+)"
_BODY = r"(?P<body>.*?)"
_TAGGED_FORMS = (
    (
        r"<(?P<tag>(?:\w+:)?(?:tool_calls?|function_?calls?|tools|tool_use))>",
        rf"{_BODY}(?:</(?P=tag)>|\Z)",
    ),
    (r"<function=", rf"{_NAME}>{_BODY}(?:</function>|\Z)"),
    (r"<(?:\w+:)?(?:invoke|function)\s+name=", rf"[\"']{_NAME}[\"']>{_BODY}</(?:\w+:)?(?:invoke|function)>"),
    (r"Action:", rf"[ \t]*{_NAME}[ \t]*\n\s*Action[ _]Input:{_BODY}(?=\n\s*(?:Thought|Action):|\Z)"),
    (r"Action:", rf"\s*(?=```){_BODY}\Z"),
    (r">>>(?=\w)", rf"{_NAME}\n{_BODY}(?=\n>>>\w|\Z)"),
    (r"```(?:tool_calls?|tool_code|function_call|tool_use)\s", rf"{_BODY}(?:\n```|\Z)"),
)
_TOKEN_FORMS = (
    (
        r"\[TOOL_CALLS\]",
        rf"\s*(?:{_NAME}(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?(?=\s*\{{))?{_BODY}(?=\[TOOL_CALLS\]|</s>|\Z)",
    ),
    (r"<\|python_tag\|>", rf"{_BODY}(?=<\|\w+\|>|\Z)"),
    (r"<\|tool_call\|>", rf"{_BODY}(?:<\|/tool_call\|>|(?=<\|\w+\|>)|\Z)"),
    (r"(?:<\|from\|>assistant\s*)?<\|recipient\|>", rf"\s*{_NAME}\s*<\|content\|>{_BODY}(?=<\||\Z)"),
    (r"<\|channel\|>commentary to=", rf"{_NAME}\s*(?:<\|constrain\|>)?\w*<\|message\|>{_BODY}(?=<\||\Z)"),
    (
        r"<\|tool_call_begin\|>",
        rf"\s*{_NAME}(?::\d+)?\s*<\|tool_call_argument_begin\|>{_BODY}(?:<\|tool_call_end\|>|\Z)",
    ),
    (
        r"<｜tool▁call▁begin｜>",  # noqa: RUF001
        rf"(?:function<｜tool▁sep｜>)?{_NAME}(?:<｜tool▁sep｜>|\n){_BODY}(?:<｜tool▁call▁end｜>|\Z)",  # noqa: RUF001
    ),
)
_FRAME = (
    r"<｜tool▁calls▁(?:begin|end)｜>|<｜end▁of▁sentence｜>|<\|tool_calls_section_(?:begin|end)\|>|<\|start\|>assistant"  # noqa: RUF001
)
_PYTHON_CALL = re.compile(rf"{_NAME}\((?=\s*(?:\w+\s*=[^=]|\)))")
_BARE = re.compile(rf"\{{|\[\s*\{{|\[?\s*{_PYTHON_CALL.pattern}")
_GLM_CALL = re.compile(rf"{_NAME}\s*(?P<body><arg_key>.*)", re.DOTALL)
_BESIDE_VALUES = re.compile(r"(?:[\s,;]|```\w*)*")
_FORMS = tuple(re.compile(opening + rest, re.DOTALL) for opening, rest in (*_TAGGED_FORMS, *_TOKEN_FORMS))
_OPENS = re.compile(
    r"(?:^ {0,3}|(?<=[.!?:] ))(?=" + "|".join(opening for opening, _ in _TAGGED_FORMS) + ")"
    r"|(?<![`'\"“])(?=" + "|".join(opening for opening, _ in _TOKEN_FORMS) + "|" + _FRAME + ")",
    re.MULTILINE,
)
"""Where calls may start. Tags and words must start a line or sentence; a model's own tokens may appear anywhere."""
_BETWEEN = re.compile(rf"(?:\s|{_FRAME}|</(?:\w+:)?\w+_?calls?>|</s>|<\|(?:im_end|eo[tm]_id|end|call|stop|start)\|>)*")

_UNMISTAKABLE = re.compile(r"<\|?(?:\w+:)?(?:tool_?call|function_?call)|\[TOOL_CALLS\]|<｜tool|```(?:tool_|function_)")  # noqa: RUF001
"""Openings that are always a call, whatever follows."""

_HARMONY = "<|channel|>analysis<|message|>"
_REASONING = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]"), (_HARMONY, "<|end|>"))
_REASONING_ENDS = re.compile(r"^</think(?:ing)?>", re.MULTILINE)
_EXPLAINS = re.compile(
    r"\bexample|\be\.g\.|\binstance\b|\bsuch as\b|\blooks? like\b|\blike (?:this|so)\b|\bshow you\b|\bquot"
    r"|\b(?:format|syntax|schema)\b|\byou(?:'d)? (?:can|could|would|might|may|should|need|call|use|write)\b"
    r"|\bwould (?:be|look|call|use|write|run)\b|\b(?:do not|don't|never|not to|instead of) (?:run|call|us|execut|do)",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\b(?:contain|sa(?:ys?|id)\b|reads?\b|shows?\b|returned\b|printed\b|wrote\b|found\b|(?:output|result|response)\b).*:$",
    re.IGNORECASE,
)
_INTENDS = re.compile(
    r"\b(?:I'll|I’ll|I will|I'm going to|I am going to|I need to|let me|let's|calling|running)\b", re.I
)
_CODE_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_LAST_FENCE = re.compile(r"^```(?:json|python)?\n(?P<body>(?:(?!```).)*)```\s*\Z", re.MULTILINE | re.DOTALL)
_XML_TAG = re.compile(r"<(/?)([A-Za-z_][\w:-]*+)[^<>]*+>")


def _after_reasoning(text: str) -> str:
    for opening, closing in _REASONING:
        if text.lstrip().startswith(opening):
            return text.partition(closing)[2]
    end = _REASONING_ENDS.search(text)  # some servers drop the opening tag
    if end is None or _BARE.match(text.strip()) or _OPENS.search(text, 0, end.start()):
        return text
    return text[end.end() :]


def _found(text: str) -> tuple[str, list[tuple[str, Call]], bool]:
    """The text before the calls; the calls, each with its source; and whether they use a form made for calls."""
    whole = unfenced(text.strip())
    if _BARE.match(whole):
        return "", [(whole, call) for call in _payload(whole)], False
    text = text if "```" in whole else whole
    if opens := _OPENS.search(text):
        prose = text[: opens.end()]
        if _is_open(prose) or _is_quoting(_last_line(prose)):
            raise UnclearError
        return prose, _marked(text[opens.end() :]), True
    fence = _LAST_FENCE.search(text)
    prose = text[: fence.start()] if fence else ""
    if fence is None or _is_open(prose) or _EXPLAINS.search(prose) or not _INTENDS.search(_last_line(prose)):
        raise UnclearError
    return prose, [(fence["body"], call) for call in _payload(fence["body"])], False


def _last_line(prose: str) -> str:
    return prose.rstrip()[-400:].rpartition("\n")[2]


def _is_quoting(line: str) -> bool:
    reports = _REPORTS.search(line) and not _INTENDS.search(line)
    return bool(_EXPLAINS.search(line) or reports or line.lstrip().startswith(">"))


def _is_open(prose: str) -> bool:
    """Whether something opened here is not closed, so that the rest is inside it: code, a quotation, a file's text."""
    count = Counter(prose)
    if any(count[opening] != count[closing] for opening, closing in ("{}", "[]", "()")) or count['"'] % 2:
        return True
    tags = Counter(name if not closes else f"/{name}" for closes, name in _XML_TAG.findall(prose))
    unclosed = any(tags[f"/{name}"] < number for name, number in tags.items() if not name.startswith("/"))
    return unclosed or len(_CODE_FENCE.findall(prose)) % 2 == 1


def _marked(text: str, *, nested: bool = False) -> list[tuple[str, Call]]:
    """The calls in a text that consists only of forms made for calls."""
    reader = LenientReader(text.strip())
    found: list[tuple[str, Call]] = []
    while reader.take(_BETWEEN).end() < len(reader.text):
        match = next(filter(None, (form.match(reader.text, reader.at) for form in _FORMS)), None)
        if match is None:
            raise UnclearError
        reader.at = match.end()
        name, body = match.groupdict().get("name"), match["body"].strip()
        if not name:
            found += [(match[0], call) for call in _payload(body, nested=nested)]
        else:
            found.append((match[0], (name, read_arguments(body, alone=True) if body else {})))
    if not found:
        raise UnclearError
    return found


def _payload(text: str, *, nested: bool = True) -> list[Call]:
    """Calls as JSON, as Python, or (unless `nested`) in another form made for calls."""
    text = unfenced(text.strip())
    if glm := _GLM_CALL.match(text):
        return [(glm["name"], read_arguments(glm["body"], alone=True))]
    if text.startswith("<") and not nested:
        return [call for _, call in _marked(text, nested=True)]
    if text.startswith("[") and text.endswith("]") and _PYTHON_CALL.match(text[1:].lstrip()):
        text = text[1:-1]
    reader = LenientReader(text)
    found: list[Call] = []
    while reader.take(_BESIDE_VALUES).end() < len(text):
        if call := _PYTHON_CALL.match(text, reader.at):
            reader.at = call.end()
            found.append((call["name"], reader.members(")")))
        else:
            found += _calls_of(reader.value())
    if not found:
        raise UnclearError
    return found


def _calls_of(value: Any) -> list[Call]:
    """The calls that a JSON value describes."""
    if isinstance(value, list):
        return [call for item in cast(list[Any], value) for call in _calls_of(item)]
    if not isinstance(value, dict):
        raise UnclearError
    parts = {key: part for key, part in cast(Arguments, value).items() if key not in _BESIDE}
    if len(parts) == 1 and next(iter(parts)) in _AROUND:
        return _calls_of(*parts.values())
    names, arguments = parts.keys() & _NAMES, parts.keys() & _ARGUMENTS
    if len(names) != 1 or len(arguments) != 1 or len(parts) != 2:
        raise UnclearError
    name, given = parts[names.pop()], parts[arguments.pop()]
    if isinstance(given, str):
        given = read_arguments(given, alone=True) if given.strip() else {}
    if not isinstance(name, str) or not isinstance(given, dict):
        raise UnclearError
    given = cast(Arguments, given)
    if {"type", "properties"} <= given.keys():  # the definition of a tool
        raise UnclearError
    return [(name, given)]
