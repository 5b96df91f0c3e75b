"""`wave demo`: five hooks at work in a temporary project, with a scripted model. No key, no network."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import click

from wave_agent.agent.agent import Agent
from wave_agent.agent.result import Callbacks
from wave_agent.cli.demo_project import FAKE_KEY, Scene, scenes, write_project
from wave_agent.events import Event, HookFinished, HookRun, ToolStarted
from wave_agent.messages import ErrorBlock, Message, NoticeBlock, TextBlock
from wave_agent.models.base import ModelRequest
from wave_agent.models.scripted import ScriptedModel
from wave_agent.text import clip, strip_controls

WIDTH = 100
NEXT = {
    "wave demo --screen": "a recorded session of the screen",
    "wave demo --keep": "keep the project, and read .wave/settings.json and .wave/hooks",
    "wave hooks new my-guard --recipe shell-guard": "a first guard for your project, with cases that test it",
    "wave hooks recipes": "other hooks to start from",
    "wave setup": "choose a model; then start a session with: wave",
}


@click.command()
@click.option("--keep", is_flag=True, help="Keep the project and print its path.")
@click.option(
    "--screen", is_flag=True, help="Play a recorded session of the interactive screen instead. Ctrl-C ends it."
)
def demo(*, keep: bool, screen: bool) -> int:
    """See hooks at work, without a key or a network

    Runs five real hook scripts in a temporary project, with a model that follows a script. For each scene, it shows
    what the hook said, what the model saw, what you would have seen, and the result on disk.
    """
    if screen and keep:
        raise click.UsageError("--screen plays a recording: there is no project to --keep.")
    if screen:
        from wave_agent.cli.demo_screen import play_demo  # lazy: the demo itself needs no colours

        return play_demo(shutil.get_terminal_size(), time.sleep)
    if keep:
        directory = tempfile.mkdtemp(prefix="wave-demo-")
        asyncio.run(tour(Path(directory)))
        click.echo(f"The project is in {directory}/project")
        look = f"cd {directory}/project && WAVE_HOME={directory}/home wave hooks trace"
        click.echo(f"Its session is in {directory}/home. Look at it with:\n  {look}")
        return 0
    with tempfile.TemporaryDirectory(prefix="wave-demo-") as directory:
        asyncio.run(tour(Path(directory)))
    return 0


async def tour(directory: Path) -> None:
    project = directory / "project"
    write_project(project)
    os.environ["WAVE_HOME"] = str(directory / "home")  # affects only this process; the user's files stay untouched
    acts = scenes(project)
    model = ScriptedModel(reply for scene in acts for reply in scene.script)
    click.echo(f"{bold('Five hooks at work')}, with a scripted model: no key, no network.")
    events: list[Event] = []
    async with await Agent.create(
        workdir=project,
        model="scripted",
        model_client=model,
        trust=True,
        permission_mode="bypassPermissions",
        callbacks=Callbacks(on_event=events.append),
    ) as agent:
        for number, scene in enumerate(acts, 1):
            requests, messages = len(model.requests), len(agent.messages)
            events.clear()
            result = await agent.send_message(scene.prompt)
            click.echo(f"\n{bold(f'{number}. {scene.title}')}")
            line("you say", scene.prompt.replace(FAKE_KEY, "sk-…"))
            story(events, agent.messages[messages:], model.requests[requests:])
            line("status", result.status)
            line("so", proof(scene, project, Path(result.transcript_path)))
    farewell()


def story(events: list[Event], messages: list[Message], requests: list[ModelRequest]) -> None:
    """What happened, based on the events, the conversation and the requests to the model."""
    for event in events:
        if isinstance(event, ToolStarted):
            line("model", f"calls {event.name} {shown(event)}")
        elif isinstance(event, HookFinished) and (event.run.outcome != "none" or event.run.rewrote):
            line("hook", said(event.run))
    for text in seen_by_model(requests[-1]) if requests else ["nothing: it was not called"]:
        line("model saw", text)
    for text in seen_by_user(messages):
        line("you saw", text)


def shown(call: ToolStarted) -> str:
    return str(call.parameters.get("command") or Path(str(call.parameters.get("file_path", ""))).name)


def said(run: HookRun) -> str:
    origin = f"{run.name} on {run.event}"
    if run.rewrote and run.after:
        return f"{origin} rewrote the input: {run.after['command']}"
    return f"{origin}, exit {run.exit_code} = {run.outcome}: {run.reason}"


def seen_by_model(request: ModelRequest) -> list[str]:
    """Hook messages to the model since the last prompt, or the results of its calls if there are none."""
    prompts = [at for at, one in enumerate(request.messages) if one["role"] == "user" and "<hook" not in one["content"]]
    since = [one["content"] for one in request.messages[prompts[-1] + 1 :] if one["role"] in ("user", "tool")]
    return [text for text in since if "<hook" in text] or since


def seen_by_user(messages: list[Message]) -> Iterator[str]:
    for block in (block for message in messages for block in message.blocks):
        if isinstance(block, ErrorBlock | NoticeBlock) or (isinstance(block, TextBlock) and block.source == "model"):
            yield block.content


def proof(scene: Scene, project: Path, transcript: Path) -> str:
    """The state on disk after the scene, read when called."""
    match scene.proof:
        case "transcript":
            kept = FAKE_KEY in transcript.read_text()
            return f"the key is {'' if kept else 'not '}in the transcript, and the model was not called"
        case "build":
            return (
                f"build/result.txt {'is still there' if (project / 'build' / 'result.txt').exists() else 'was deleted'}"
            )
        case "log":
            lines = (project / "server.log").read_text().count("\n")
            return f"server.log has {lines:,} lines; the model got the two it needed"
        case "greeting":
            return f"greeting.py {'parses' if parses(project / 'greeting.py') else 'does not parse'}"
        case _:
            ran = subprocess.run([sys.executable, "test_greeting.py"], cwd=project, capture_output=True, check=False)
            return f"the tests {'pass' if ran.returncode == 0 else 'fail'}"


def parses(file: Path) -> bool:
    try:
        compile(file.read_text(), file.name, "exec")
    except SyntaxError:
        return False
    return True


def farewell() -> None:
    click.echo(f"\n{bold('What next?')}")
    for command, meaning in NEXT.items():
        click.echo(f"  {command:<48}{meaning}")


def line(label: str, text: str) -> None:
    """One labelled paragraph."""
    plain = " ".join(strip_controls(clip(text, 300)).split())
    wrapped = textwrap.wrap(plain, WIDTH - 14) or [""]
    for at, part in enumerate(wrapped):
        click.echo(f"  {dim((label if at == 0 else '').rjust(9))}  {part}")


def bold(text: str) -> str:
    return click.style(text, bold=True) if "NO_COLOR" not in os.environ else text


def dim(text: str) -> str:
    return click.style(text, dim=True) if "NO_COLOR" not in os.environ else text
