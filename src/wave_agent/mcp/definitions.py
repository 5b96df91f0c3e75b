"""A tool's definition on its way from its server to the model: hashed whole, then named, cleaned and cut.

Everything a server says is data. It cannot take the name of another tool, nor imitate what the agent itself says.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast

from msgspec import Struct

from wave_agent.formats.readable import readable_text
from wave_agent.lazy_regex import lazy_regex
from wave_agent.marks import without_own_mark
from wave_agent.mcp.values import NAME_CHARACTERS, ToolDefinition
from wave_agent.text import one_line, reveal, strip_controls

LONGEST_TOOL_NAME = 64
LONGEST_DESCRIPTION = 2048
"""Bytes of a description, and of each text in a schema."""
LARGEST_DEFINITION = 64 << 10
"""Bytes of a whole definition."""
PREFIX = "mcp__"
_HASH = 8
_DEEPEST = 48
_LONGEST_KEY = 128
_CUT = " … [cut]"
_LETTERS = lazy_regex(r"[\W_]+")
# What `strip_controls` leaves: joiners, fillers and selectors that hide text from people but not from models.
_HIDDEN = lazy_regex(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_TAGS = (
    "hook|system-reminder|system_reminder|system|tool_results?|tool_use|function_calls|function_results?|invoke|antml"
    "|task-notification|local-command-stdout|from-an-mcp-server"
)
_TAG = lazy_regex(rf"<\s*/?\s*(?:{_TAGS})\b[^<>]*>", re.IGNORECASE)
_TAG_START = lazy_regex(rf"<(?=\s*/?\s*(?:{_TAGS})\b)", re.IGNORECASE)
_MARKS = lazy_regex(r"<\|[^|<>\n]{0,40}\|>|\[/?INST\]|<</?SYS>>|\[From Wave, not from the user\]", re.IGNORECASE)
_TEXT_KEYS = frozenset({"description", "title", "$comment", "markdownDescription", "enumDescriptions", "examples"})
_VALUE_KEYS = frozenset({"enum", "const", "default"})
_NAMED_KEYS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


class OfferedTool(Struct, frozen=True, kw_only=True):
    """A tool as the model sees it."""

    name: str
    """`mcp__server__tool`."""
    plain: str
    """The same before it was made unique and cut: restrictive rules for this name hold for the tool too."""
    definition: ToolDefinition
    """As the server sent it. Its `name` is the one to call."""
    title: str = ""
    """For people."""
    description: str = ""
    input_schema: Mapping[str, Any] = {}


def offer(tool: ToolDefinition, name: str, plain: str) -> OfferedTool:
    """The tool under this name, cleaned. Raises `ValueError` with the reason if it cannot be offered."""
    execution: Any = tool.other.get("execution")
    if isinstance(execution, Mapping) and cast(Mapping[str, Any], execution).get("taskSupport") == "required":
        raise ValueError("it can only be run as a task, which is not supported")
    title: Any = tool.title or tool.annotations.get("title") or ""
    return OfferedTool(
        name=name,
        plain=plain,
        definition=tool,
        title=one_line(clean_text(title), 120) if isinstance(title, str) else "",
        description=clean_text(tool.description),
        input_schema=clean_schema(tool.input_schema),
    )


def definition_digest(tool: ToolDefinition) -> str:
    """Of the complete definition, before anything is cut. Raises `ValueError` if it is not plain JSON, or too large."""
    encoded = _encoded(tool)
    if len(encoded) > LARGEST_DEFINITION:
        raise ValueError(
            f"its definition has {len(encoded) >> 10:,} KiB, at most {LARGEST_DEFINITION >> 10} are offered"
        )
    return hashlib.sha256(encoded).hexdigest()


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _encoded(tool: ToolDefinition) -> bytes:
    parts = [
        *(tool.name, tool.title, tool.description, tool.input_schema, tool.output_schema),
        *(tool.annotations, tool.meta, tool.other),
    ]
    try:
        return json.dumps(parts, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, RecursionError):
        raise ValueError("its definition is not plain JSON") from None


def definition_text(tool: ToolDefinition) -> str:
    """The complete definition for a person who has to judge it; invisible characters are spelt out."""
    parts: list[str] = [f"name: {tool.name}"]
    parts += [f"title: {tool.title}"] if tool.title else []
    parts += ["description:", *(f"  {line}" for line in tool.description.split("\n"))] if tool.description else []
    for label, value in (
        ("input", tool.input_schema),
        ("output", tool.output_schema),
        ("annotations", tool.annotations),
        ("meta", tool.meta),
        ("other", tool.other),
    ):
        if value:
            text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, default=str)
            parts += [f"{label}:", *(f"  {line}" for line in text.split("\n"))]
    return "\n".join(map(reveal, parts))


def plain_name(server: str, tool: str) -> str:
    """`mcp__server__tool`, with other characters replaced; it may be too long, and another tool's as well."""
    valid = (
        tool if NAME_CHARACTERS.issuperset(tool) else "".join(one if one in NAME_CHARACTERS else "_" for one in tool)
    )
    return f"{PREFIX}{server}__{valid}"


def tool_names(server: str, tools: Iterable[str]) -> Mapping[str, str]:
    """The server's own names → `mcp__server__tool`, unique and valid. Their order does not matter. A tool whose name
    cannot be made unique is left out.

    Of tools whose names would be the same, the one that is really called so keeps it: a hook for that name must not
    miss it because the server has another one. The others get a hash each. If several are called so, but for upper and
    lower case, none of them is offered.
    """
    names = {tool: plain_name(server, tool) for tool in dict.fromkeys(tools) if tool}
    counts = Counter(map(str.casefold, names.values()))
    exact = Counter(name.casefold() for tool, name in names.items() if name.endswith(f"__{tool}"))
    found: dict[str, str] = {}
    for tool, name in names.items():
        is_alone, is_exact = counts[name.casefold()] == 1, name.endswith(f"__{tool}")
        if is_exact and exact[name.casefold()] > 1:
            continue
        is_kept = (is_alone or is_exact) and len(name) <= LONGEST_TOOL_NAME
        found[tool] = name if is_kept else _hashed(name, tool)
    finally_ = Counter(map(str.casefold, found.values()))
    return {tool: name for tool, name in found.items() if finally_[name.casefold()] == 1}


def _hashed(name: str, tool: str) -> str:
    return f"{name[: LONGEST_TOOL_NAME - _HASH - 1]}_{text_digest(tool)[:_HASH]}"


def clean_text(text: str, limit: int = LONGEST_DESCRIPTION) -> str:
    """A server's text for the model: no control characters, no tags that only the agent uses; cut at `limit` bytes."""
    looked_at = text[: limit * 8]
    cleaned = strip_controls(readable_text(looked_at))
    # Most texts have none of this, and compiling the expressions takes a good part of a start.
    cleaned = cleaned if cleaned.isascii() else _HIDDEN.sub("", cleaned)
    if "<" in cleaned or "[" in cleaned:
        cleaned = without_own_mark(_TAG_START.sub("&lt;", _MARKS.sub("", _TAG.sub("", cleaned))))
    cleaned = cleaned.strip()
    encoded = cleaned.encode()
    if len(encoded) <= limit and looked_at == text:
        return cleaned
    return encoded[: limit - len(_CUT.encode())].decode(errors="ignore") + _CUT


def is_clean(text: str) -> bool:
    """Whether a text that must stay as it is, such as the name of a parameter, can be shown to the model."""
    return (
        len(text) <= LONGEST_DESCRIPTION and clean_text(text, len(text.encode("utf-8", "replace")) + 16) == text.strip()
    )


def clean_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with its texts cleaned, and without what only repeats names. What it accepts stays the same. Raises
    `ValueError` with the reason if that is impossible."""
    kind = schema.get("type", "object")
    if kind != "object":
        raise ValueError("its input is not an object")
    found = {**cast(dict[str, Any], _cleaned(schema, 0)), "type": "object"}
    return {key: value for key, value in found.items() if key not in ("$schema", "title")}


def _without_title(name: str, schema: Any) -> Any:
    """A title that libraries generate says nothing: `Repo Path` for `repo_path`."""
    if not isinstance(schema, dict):
        return schema
    fields = cast(dict[str, Any], schema)
    title = fields.get("title")
    if isinstance(title, str) and _LETTERS.sub("", title).casefold() == _LETTERS.sub("", name).casefold():
        return {key: value for key, value in fields.items() if key != "title"}
    return fields


def _cleaned(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError("its schema is nested too deep")
    if isinstance(value, list):
        return [_cleaned(one, depth + 1) for one in cast(list[Any], value)]
    if not isinstance(value, Mapping):
        return value
    found: dict[str, Any] = {}
    for key, inner in cast(Mapping[str, Any], value).items():
        if len(key) > _LONGEST_KEY or not is_clean(key):
            raise ValueError("its schema has a key with hidden characters or tags")
        if key in _NAMED_KEYS and isinstance(inner, Mapping):  # a parameter may be called `description`
            names = cast(Mapping[str, Any], inner)
            if not all(len(name) <= _LONGEST_KEY and is_clean(name) for name in names):
                raise ValueError("the name of a parameter has hidden characters or tags, or is too long")
            found[key] = {name: _without_title(name, _cleaned(one, depth + 2)) for name, one in names.items()}
        elif key in _TEXT_KEYS:
            found[key] = _clean_texts(inner, depth)
        elif key in _VALUE_KEYS:
            _require_clean(inner, depth)
            found[key] = inner
        elif isinstance(inner, str):
            found[key] = inner if is_clean(inner) else clean_text(inner)
        else:
            found[key] = _cleaned(inner, depth + 1)
    return found


def _clean_texts(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError("its schema is nested too deep")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean_texts(one, depth + 1) for one in cast(list[Any], value)]
    if isinstance(value, Mapping):
        pairs = cast(Mapping[str, Any], value).items()
        return {clean_text(key, _LONGEST_KEY): _clean_texts(one, depth + 1) for key, one in pairs}
    return value


def _require_clean(value: Any, depth: int) -> None:
    """A value that the tool accepts, or would use, cannot be changed."""
    if depth > _DEEPEST:
        raise ValueError("its schema is nested too deep")
    inner: Iterable[Any] = ()
    if isinstance(value, str):
        if not is_clean(value.replace("\r", "")):
            raise ValueError("a value in its schema has hidden characters or tags, or is too long")
    elif isinstance(value, list):
        inner = cast(list[Any], value)
    elif isinstance(value, Mapping):
        pairs = cast(Mapping[str, Any], value)
        inner = [*pairs, *pairs.values()]
    for one in inner:
        _require_clean(one, depth + 1)
