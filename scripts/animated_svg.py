"""A recording of the screen as a picture that moves: one SVG file without scripts, fonts or anything else to fetch."""

from collections.abc import Iterator, Sequence
from html import escape

from rich.color import Color
from rich.style import Style

from wave_agent.cli.recording import Frame, Row, ScreenRecording

CELL = 8.4
LINE = 17
FONT = 14
MARGIN = 14
TITLE = 34
"""The height of the window's title bar."""
STEP = 0.12
"""Seconds: frames that follow faster are drawn as one."""
BACKGROUND = "#15191f"
FOREGROUND = "#d8dee9"

Span = tuple[int, int]
"""The numbers of the first frame that shows something, and of the first one that no longer does."""


LABEL = "A session of wave: hooks block rm -rf, report a syntax error, and keep the agent working until the tests pass"


def animated_svg(recording: ScreenRecording) -> str:
    """Loops for ever. Readers who want no motion, and viewers that know none, get the last frame."""
    recording = _slower(recording)
    spans = _spans(recording)
    width = round(recording.width * CELL + 2 * MARGIN)
    height = recording.height * LINE + TITLE + MARGIN
    end = len(recording.frames)
    groups = sorted(spans, key=lambda span: (span[1] == end, span))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" xml:space="preserve">',
        f"<title>{escape(LABEL)}</title>",
        f"<style>{''.join(_css(recording, groups))}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
        *(f'<circle cx="{20 + 18 * at}" cy="17" r="5.5" fill="{color}"/>' for at, color in enumerate(LIGHTS)),
        f'<text x="{width // 2}" y="22" text-anchor="middle" fill="#8a94a6">wave</text>',
        f'<g transform="translate({MARGIN},{TITLE})">',
        *(_group(number, span, spans[span], recording) for number, span in enumerate(groups)),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


LIGHTS = ("#e06c75", "#d7af5f", "#87c38a")


def _slower(recording: ScreenRecording) -> ScreenRecording:
    """The same with fewer frames."""
    frames: list[Frame] = []
    for frame in recording.frames:
        if frames and frame.at - frames[-1].at < STEP:
            frames[-1] = Frame(frames[-1].at, {**frames[-1].rows, **frame.rows})
        else:
            frames.append(frame)
    return ScreenRecording(recording.width, recording.height, recording.styles, frames, ())


def _spans(recording: ScreenRecording) -> dict[Span, dict[int, Row]]:
    """The rows that appear and vanish together."""
    shown: dict[int, tuple[int, Row]] = {}
    found: dict[Span, dict[int, Row]] = {}
    for at, frame in enumerate(recording.frames):
        for number, row in frame.rows.items():
            if number in shown:
                since, before = shown[number]
                found.setdefault((since, at), {})[number] = before
            shown[number] = at, row
    for number, (since, row) in shown.items():
        found.setdefault((since, len(recording.frames)), {})[number] = row
    return found


def _css(recording: ScreenRecording, groups: Sequence[Span]) -> Iterator[str]:
    fonts = "ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace"
    yield f"text{{font:{FONT}px {fonts};white-space:pre}}"
    for number, name in enumerate(recording.styles):
        yield f".s{number}{{{_declarations(Style.parse(name))}}}"
    seconds = recording.seconds
    yield f".f{{visibility:hidden;animation:{seconds:g}s step-end infinite}}.last{{visibility:visible}}"
    end = len(recording.frames)
    for number, (first, gone) in enumerate(groups):
        steps = [(recording.frames[first].at, "visible")]
        steps = steps if first == 0 else [(0.0, "hidden"), *steps]
        steps = steps if gone == end else [*steps, (recording.frames[gone].at, "hidden")]
        frames = "".join(f"{at / seconds * 100:.5g}%{{visibility:{state}}}" for at, state in steps)
        yield f"@keyframes k{number}{{{frames}}}.k{number}{{animation-name:k{number}}}"
    yield "@media(prefers-reduced-motion:reduce){.f{animation:none}}"


def _declarations(style: Style) -> str:
    found = [f"fill:{_colors(style)[0]}"]
    found += ["font-weight:bold"] if style.bold else []
    found += ["font-style:italic"] if style.italic else []
    found += ["text-decoration:underline"] if style.underline else []
    found += ["opacity:.6"] if style.dim else []
    return ";".join(found)


def _colors(style: Style) -> tuple[str, str]:
    foreground, background = _hex(style.color, FOREGROUND), _hex(style.bgcolor, BACKGROUND)
    return (background, foreground) if style.reverse else (foreground, background)


def _hex(color: Color | None, default: str) -> str:
    return default if color is None or color.is_default else color.get_truecolor().hex


def _group(number: int, span: Span, rows: dict[int, Row], recording: ScreenRecording) -> str:
    last = " last" if span[1] == len(recording.frames) else ""
    drawn = "".join(part for at, row in sorted(rows.items()) for part in _row(at, row, recording))
    return f'<g class="f k{number}{last}">{drawn}</g>'


def _row(number: int, row: Row, recording: ScreenRecording) -> Iterator[str]:
    """Backgrounds first, so that they cover no letter of a neighbour."""
    column, texts = 0, list[str]()
    for style, text in row:
        background = _colors(Style.parse(recording.styles[style]))[1]
        if background != BACKGROUND:
            place = f'x="{column * CELL:g}" y="{number * LINE}" width="{len(text) * CELL:g}" height="{LINE}"'
            yield f'<rect {place} fill="{background}"/>'
        if words := text.strip():
            x = (column + len(text) - len(text.lstrip())) * CELL
            place = f'x="{x:g}" y="{number * LINE + FONT}" textLength="{len(words) * CELL:g}"'
            texts.append(f'<text {place} class="s{style}">{escape(words, quote=False)}</text>')
        column += len(text)
    yield from texts
