"""The user's own editor, which gets the terminal until it ends."""

import asyncio
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from textual.app import App, SuspendNotSupported

from wave_agent.errors import WaveError

NONE_SET = "No editor is set. Set $VISUAL or $EDITOR before you start wave, for example: export EDITOR=nano"
_TAKES_LINE = frozenset({"vi", "vim", "nvim", "nano", "emacs", "emacsclient", "kak", "micro", "joe", "jed", "mg", "ne"})
"""Editors that understand `+LINE`."""


def editor_words(environment: Mapping[str, str], file: str, line: int = 1) -> list[str]:
    """The command line that edits the file. Raises `WaveError`."""
    name, text = next(
        ((name, text) for name in ("VISUAL", "EDITOR") if (text := environment.get(name, "").strip())), ("", "")
    )
    if not text:
        raise WaveError(NONE_SET)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise WaveError(f"${name} cannot be read: {str(error).lower()} in: {text}") from None
    if not words:
        raise WaveError(NONE_SET)
    at = [f"+{line}"] if line > 1 and os.path.basename(words[0]) in _TAKES_LINE else []
    return [*words, *at, file]


async def run_editor(app: App[Any], words: Sequence[str], environment: Mapping[str, str], directory: str) -> int:
    """The exit status. The agent works on meanwhile; nothing is drawn. Raises `WaveError` if it cannot be started."""
    status: int | None = None
    problem: BaseException | None = None
    with app.batch_update():  # what is drawn while the terminal belongs to the editor would block
        try:
            with _handed_over(app):  # must not be left by an exception: the terminal would not be taken back
                try:
                    status = await _run(words, environment, directory)
                except (OSError, asyncio.CancelledError) as error:
                    problem = error
        except SuspendNotSupported:
            raise WaveError("This terminal cannot be handed over to an editor.") from None
    app.refresh(layout=True)
    if isinstance(problem, OSError):
        raise WaveError(f"{words[0]} cannot be started: {problem.strerror or problem}")
    if problem is not None:
        raise problem
    return status or 0


def _handed_over(app: App[Any]) -> AbstractContextManager[None]:
    """Without a terminal there is none to hand over."""
    return nullcontext() if app.is_headless else app.suspend()


async def _run(words: Sequence[str], environment: Mapping[str, str], directory: str) -> int:
    process = await asyncio.create_subprocess_exec(*words, env=environment, cwd=directory)
    try:
        return await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
