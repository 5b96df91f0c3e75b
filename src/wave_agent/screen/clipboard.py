"""Copies text: without frames, gutters and line numbers, as the model or the tool wrote it."""

import asyncio
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from wave_agent.messages import Message, TextBlock
from wave_agent.screen.answer import parser

PATIENCE = 3.0
"""Seconds that a program may take to accept the text."""
_PROGRAMS: Sequence[tuple[str, Sequence[str]]] = (
    ("TMUX", ("tmux", "load-buffer", "-w", "-")),
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("WSL_DISTRO_NAME", ("clip.exe",)),
    ("HOME", ("pbcopy",)),  # macOS
)
"""Programs that set the clipboard, each with the variable that says that there is one. Many terminals accept the text
themselves (OSC 52), but tmux only passes it on if it is configured to, and some terminals never do."""


def programs(environment: Mapping[str, str]) -> list[Sequence[str]]:
    """Those that are installed."""
    path = environment.get("PATH", "")
    return [words for variable, words in _PROGRAMS if variable in environment and shutil.which(words[0], path=path)]


async def hand_over(text: str, environment: Mapping[str, str]) -> None:
    """Gives the text to every program that sets a clipboard here. One that fails or hangs is given up."""
    await asyncio.gather(*(_feed(command, text.encode(), environment) for command in programs(environment)))


async def _feed(command: Sequence[str], text: bytes, environment: Mapping[str, str]) -> None:
    with suppress(OSError):
        program = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, env=dict(environment), start_new_session=True
        )
        try:
            await asyncio.wait_for(program.communicate(text), PATIENCE)
        except TimeoutError:
            program.kill()
            await program.wait()


def last_answer(messages: Sequence[Message]) -> str | None:
    """What the model said last, in Markdown."""
    return next((text.strip("\n") for message in reversed(messages) for text in reversed(_answers(message))), None)


def code_blocks(messages: Iterable[Message]) -> list[str]:
    """The code blocks of all answers, oldest first."""
    tokens = [token for message in messages for text in _answers(message) for token in parser().parse(text)]
    return [token.content.rstrip("\n") for token in tokens if token.type in ("fence", "code_block")]


def _answers(message: Message) -> list[str]:
    texts = [block for block in message.blocks if isinstance(block, TextBlock) and block.source == "model"]
    return [block.content for block in texts if block.content.strip()]
