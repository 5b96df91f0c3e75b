"""The job of one hook run: what a runner gets."""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from wave_agent.formats.readable import readable, readable_text
from wave_agent.hooks.definitions import HookDefinition, with_project
from wave_agent.hooks.execution import HookJob
from wave_agent.hooks.stage import Stage

ARGUMENT_LIMIT = 100 * 1024
"""Maximum bytes of one argument; the system allows 128 KiB."""


def job_for(
    hook: HookDefinition,
    stage: Stage,
    *,
    variables: Mapping[str, str],
    directory: str,
    project: str,
    look_again: Callable[[], str | None],
) -> HookJob:
    """`directory` is the one the hook runs in; `look_again` says why the hook must not run any more, or None. Pure."""
    here, command, args = stage.occurrence, hook.command, hook.args
    if args is not None:
        command, args = with_project(command, project), tuple(with_project(one, project) for one in args)
    return HookJob(
        kind=hook.kind,
        command=command,
        args=args,
        arguments=tuple(_argument(stage.payload, path) for path in here.row.arguments) if hook.gets_arguments else (),
        stdin=stage.stdin(hook.dialect),
        env=variables,
        cwd=directory,
        timeout=here.seconds(hook.timeout),
        is_waited_for=here.waits_for(hook),
        look_again=look_again,
        headers=hook.headers,
        header_env=hook.header_env if hook.columns.names_its_services else (),
        names_its_services=hook.columns.names_its_services,
        body_format=hook.body_format,
    )


def has_cut_arguments(hook: HookDefinition, stage: Stage) -> bool:
    """Whether an argument of the hook's command is truncated."""
    if not hook.gets_arguments:
        return False
    texts = (_argument(stage.payload, path) for path in stage.occurrence.row.arguments)
    return any(len(text.encode()) > ARGUMENT_LIMIT - 4 for text in texts)  # truncation may drop a whole character


def _argument(payload: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """One value of the payload as a command-line argument."""
    value: Any = payload
    for step in path:
        value = cast(Mapping[str, Any], value).get(step, "") if isinstance(value, Mapping) else ""
    value = readable_text(value.replace("\0", "")) if isinstance(value, str) else readable(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode()[:ARGUMENT_LIMIT].decode(errors="ignore")
