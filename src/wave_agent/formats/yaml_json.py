"""The JSON subset of YAML: the same values, with the line of each, and no duplicate keys."""

from typing import Any, cast

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from wave_agent.formats.strict_json import MAX_DEPTH, Document, Path

MAX_VALUES = 100_000
_PLAIN = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class YAMLProblemError(ValueError):
    """Why a text cannot be used, and where."""

    def __init__(self, problem: str, line: int, column: int) -> None:
        super().__init__(problem)
        self.problem, self.line, self.column = problem, line, column


class _YAMLLoader(yaml.SafeLoader):
    """The safe loader, without dates: text that looks like one stays text."""


_YAMLLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_yaml(text: str) -> Document:
    """Raises `YAMLProblemError`."""
    try:
        loader = _YAMLLoader(text)
        node = loader.get_single_node()
        lines: dict[Path, int] = {}
        value = None if node is None else _value(loader, node, (), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise YAMLProblemError(error.problem or str(error), *place) from None
    except RecursionError:  # the parser calls itself for each level, before `_value` can look
        raise YAMLProblemError(f"nested deeper than {MAX_DEPTH}", 1, 1) from None
    except yaml.YAMLError as error:
        raise YAMLProblemError(" ".join(str(error).split()), 1, 1) from None
    return Document(value, lines)


def _value(loader: _YAMLLoader, node: Node, path: Path, lines: dict[Path, int]) -> Any:
    lines[path] = node.start_mark.line + 1
    if len(path) > MAX_DEPTH:
        raise _problem(node, f"nested deeper than {MAX_DEPTH}")
    if len(lines) > MAX_VALUES:  # aliases of aliases grow without limit
        raise _problem(node, f"more than {MAX_VALUES:,} values")
    if not isinstance(node, ScalarNode) and node.tag not in _PLAIN:
        raise _problem(node, f"{node.tag} is not a JSON value")
    if isinstance(node, MappingNode):
        return _mapping(loader, node, path, lines)
    if isinstance(node, SequenceNode):
        items = cast(list[Node], node.value)
        return [_value(loader, item, (*path, index), lines) for index, item in enumerate(items)]
    found = cast(object, loader.construct_object(node))  # pyright: ignore[reportUnknownMemberType]
    if not isinstance(found, str | int | float | bool | None):
        raise _problem(node, f"{type(found).__name__} is not a JSON value: put it in quotes")
    return found


def _mapping(loader: _YAMLLoader, node: MappingNode, path: Path, lines: dict[Path, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in cast(list[tuple[Node, Node]], node.value):
        key: Any = key_node.value if isinstance(key_node, ScalarNode) else None
        if not isinstance(key, str) or key_node.tag == "tag:yaml.org,2002:merge":
            raise _problem(key_node, "keys must be plain text")
        if key in found:
            raise _problem(key_node, f'duplicate key "{key}"')
        found[key] = _value(loader, value_node, (*path, key), lines)
        lines[(*path, key)] = key_node.start_mark.line + 1
    return found


def _problem(node: Node, what: str) -> YAMLProblemError:
    return YAMLProblemError(what, node.start_mark.line + 1, node.start_mark.column + 1)
