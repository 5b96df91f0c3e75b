"""Questions with numbered answers."""

import asyncio
from collections.abc import Iterator, Sequence

from wave_agent.cli.plain.terminal import LineTerminal
from wave_agent.screen.changes import places
from wave_agent.screen.dialogs import DIFF, TELL, Choice, Dialog
from wave_agent.screen.forms import SKIP, VALUE, FormField

_NUMBER_WIDTH = 5


def text_of(dialog: Dialog) -> str:
    """What a question says above its choices."""
    return "".join(numbered(part.text) if part.style == DIFF else part.text for part in dialog.parts).strip("\n")


def numbered(diff: str) -> str:
    """A diff with line numbers; `+` and `-` say what is new and what goes."""
    return "\n".join(f"{number:>{_NUMBER_WIDTH}} {line}" for number, line in places(diff))


class Questions:
    """One question at a time. What was typed before a question was there does not answer it."""

    def __init__(self, terminal: LineTerminal) -> None:
        self._terminal = terminal
        self._turn = asyncio.Lock()
        self._line: asyncio.Future[str | None] | None = None

    @property
    def is_open(self) -> bool:
        return self._line is not None

    def answer(self, lines: Sequence[str]) -> None:
        """Lines that were entered together: several of them were pasted, and answer nothing."""
        if self._line is None or self._line.done():
            return
        if len(lines) > 1:
            self._terminal.say("Expected one line as the answer, got several.")
            self._terminal.ask_for("Answer: ")
            return
        self._line.set_result(lines[0].strip())

    def turn_away(self) -> None:
        if self._line is not None and not self._line.done():
            self._line.set_result(None)

    async def ask(self, dialog: Dialog, field: FormField | None = None) -> str | None:
        """The value of a choice, or of a `field` without choices what was entered. None: the user turned away."""
        async with self._turn:
            try:
                return await self._ask(dialog, field)
            finally:
                self._line = None

    async def _ask(self, dialog: Dialog, field: FormField | None) -> str | None:
        lines = ["", f"Question: {dialog.title}"]  # below what may have been typed
        lines += [f"  {line}".rstrip() for line in text_of(dialog).split("\n") if line.strip()]
        lines += [f"{number}. {choice.label}" for number, choice in enumerate(dialog.choices, 1)]
        self._terminal.forget_typed()
        self._terminal.say("\n".join(lines))
        if field is not None and not dialog.choices:
            return await self._value(field)
        while True:
            answer = await self._entered(f"Answer, 1 to {len(dialog.choices)}: ")
            if answer is None:
                return None
            chosen = _chosen(answer, dialog.choices)
            if chosen is None:
                self._terminal.say(f"Type a number from 1 to {len(dialog.choices)}. Ctrl-C dismisses the question.")
            elif chosen.value == TELL:
                words = await self._entered("Message for the model: ")
                return None if words is None else f"{TELL}:{words}"
            else:
                return chosen.value

    async def _value(self, field: FormField) -> str | None:
        default = "" if field.default is None else str(field.default)
        hints = [f"Enter alone takes {default}"] if default else [] if field.is_required else ["Enter alone skips it"]
        hint = f" ({'; '.join(hints)})" if hints else ""
        entered = await self._entered(f"{field.title}{hint}: ")
        if entered is None:
            return None
        text = entered or default
        return SKIP if not text and not field.is_required else f"{VALUE}{text}"

    async def _entered(self, prompt: str) -> str | None:
        self._line = asyncio.get_running_loop().create_future()
        self._terminal.ask_for(prompt)
        return await self._line


def _chosen(answer: str, choices: Sequence[Choice]) -> Choice | None:
    """By its number or its letter."""
    return next(_matching(answer, choices), None)


def _matching(answer: str, choices: Sequence[Choice]) -> Iterator[Choice]:
    for number, choice in enumerate(choices, 1):
        if answer.lower().rstrip(".") in {str(number), choice.key} - {""}:
            yield choice
