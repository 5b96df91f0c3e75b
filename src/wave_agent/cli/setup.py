"""`wave setup`: find a model, try it, and store the choice in the user's settings."""

import asyncio
import difflib
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from wave_agent.agent.model_choice import (
    ModelEndpoint,
    ModelWishes,
    client_of,
    endpoint_for,
    model_name_for,
    wants_tokens,
)
from wave_agent.cli.server_choice import FoundKey, SetupChoice, SetupFlags, choose, key_from_stdin, say
from wave_agent.models.apis import APIS
from wave_agent.models.nearby import ModelServer, origin_of
from wave_agent.models.tool_call_trial import ToolCallTrial, try_tool_call
from wave_agent.settings.layers import Settings
from wave_agent.settings.places import MANAGED_FILE, read_managed
from wave_agent.settings.stored_keys import forget_key, put_into_keyring, store_key, stored_key, stored_origins
from wave_agent.settings.user_settings import UserSettings, read_user_settings
from wave_agent.system.ancestry import require_no_agent
from wave_agent.system.credentials import AGENT_KEYS, ENDPOINTS, public_url
from wave_agent.system.private_files import wave_home

PATIENCE = 180.0
"""Seconds for the first answer: a local server may have to load the model first."""


@click.command()
@click.option("--base-url", metavar="URL", help="The server, such as http://127.0.0.1:11434/v1.")
@click.option("--model", metavar="NAME", help="The model.")
@click.option("--api", type=click.Choice(APIS), help="The server's API, if its URL does not show it.")
@click.option("--api-key-stdin", is_flag=True, help="Read the server's key from stdin and store it.")
@click.option("--no-check", is_flag=True, help="Do not try the model.")
@click.option("--forget", metavar="URL", help="Forget the key that is stored for this server, and do nothing else.")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
def setup(*, api_key_stdin: bool, no_check: bool, forget: str | None, **given: Any) -> int:
    """Choose a model and store it in your settings

    Looks for model servers on this machine (Ollama, LM Studio, llama.cpp, vLLM) and for keys in the environment, lists
    their models, tries one tool call and shows the change before writing WAVE_HOME/settings.json. Services on the
    internet are contacted only after you choose one. Running it again changes only what you choose.

    A key that you enter is stored in the system's keyring if the keyring package is installed, otherwise in
    WAVE_HOME/keys.json, which only you can read. It is sent only to the server it was entered for. A key in the
    environment takes precedence over a stored one.

    \b
    wave setup                                                       answer questions
    wave setup --base-url http://127.0.0.1:11434/v1 --model qwen3-coder --yes
    wave setup --base-url https://api.mistral.ai/v1 --model devstral-medium-latest --api-key-stdin --yes < key.txt
    wave setup --forget https://api.mistral.ai/v1                    forget its key
    """
    require_no_agent(os.environ, "wave setup")
    if forget is not None:
        if api_key_stdin or no_check or any(given[name] for name in ("base_url", "model", "api")):
            raise click.UsageError("--forget cannot be combined with other options.")
        return _forget(forget)
    return run_setup(SetupFlags(**given, check=not no_check, key=key_from_stdin() if api_key_stdin else None))


def _forget(url: str) -> int:
    home, origin = wave_home(os.environ), origin_of(url)
    if not origin:
        raise click.UsageError(f'--forget: "{url}" is not a URL; expected something like https://api.example.com/v1')
    try:
        where = forget_key(home, origin)
    except KeyError:
        stored = ", ".join(stored_origins(home))
        others = f"Keys are stored for: {stored}." if stored else "No keys are stored."
        say(f"No key is stored for {origin}. {others}", err=True)
        return 1
    say(f"Removed the key for {origin} from {where}. If others may have seen it, revoke it at the provider as well.")
    return 0


def offer_setup() -> bool:
    """Asks a user whose `wave` has no model whether to set one up now. False: there is still none, and how to do it
    later has been said."""
    click.echo("No model is configured yet.")
    if click.confirm("Set one up now (wave setup)?", default=True) and run_setup(SetupFlags()) == 0:
        return True
    click.echo(
        "A session needs a model. To set one up later: wave setup. Without a model, wave demo shows hooks at work."
    )
    return False


def run_setup(flags: SetupFlags) -> int:
    home = wave_home(os.environ)
    settings = read_user_settings(home)
    _require_answers(flags)
    _show_present(settings)
    choice = choose(flags, settings)
    if flags.check:
        choice, trial = asyncio.run(_try(choice))
        if not _is_kept(choice, trial, yes=flags.yes):
            click.echo("Nothing has changed.")
            return 1
    return _finish(choice, settings, home, yes=flags.yes)


# ---------------------------------------------------------------------------------------------------- what is there now


def _require_answers(flags: SetupFlags) -> None:
    """Raises `click.UsageError` if questions are left, and this run is not interactive."""
    streams: tuple[Any, Any] = (sys.stdin, sys.stdout)  # None if the caller closed them
    if all(stream is not None and stream.isatty() for stream in streams):
        return
    needed = {"--base-url": flags.base_url, "--model": flags.model, "--yes": flags.yes}
    missing = [name for name, given in needed.items() if not given]
    if missing:
        key = "" if flags.key else " If the server needs a key, add --api-key-stdin."
        raise click.UsageError(f"Not interactive: rerun with {' and '.join(missing)}.{key} wave models lists models.")


def _show_present(settings: UserSettings) -> None:
    model, url = settings.values.get("model"), settings.values.get("baseUrl")
    if isinstance(url, str) or isinstance(model, str):
        where = f" at {public_url(str(url))}" if url else ""
        say(f"Now: {model or 'no model'}{where} ({settings.file})")
    managed = [source.document.value for source in read_managed(MANAGED_FILE, os.environ.get("WAVE_MANAGED_SETTINGS"))]
    fixed = [key for key in ("baseUrl", "model", "api") if any(key in values for values in managed)]
    if fixed:
        say(f"Managed settings set {' and '.join(fixed)}, which takes precedence over what you choose here.")


# ------------------------------------------------------------------------------------------------------------ the trial


async def _try(choice: SetupChoice) -> tuple[SetupChoice, ToolCallTrial]:
    """What came back, and the choice with the API that the server turned out to speak."""
    say(f"Trying one tool call with {choice.model} …")
    server, key = choice.server, choice.key
    is_token = bool(key and key.bearer) or wants_tokens(server.base_url)
    endpoint = ModelEndpoint(server.base_url, key and key.key, server.api, bearer=is_token, assumed=choice.assumed)
    client = client_of(endpoint, Settings(), os.environ)
    try:
        trial = await try_tool_call(client, choice.model, PATIENCE)
    finally:
        await client.close()
    if client.api == server.api:
        return choice, trial
    say(f"The server speaks {client.api}.")
    return replace(choice, server=replace(server, api=client.api), api=client.api), trial


def _is_kept(choice: SetupChoice, trial: ToolCallTrial, *, yes: bool) -> bool:
    """Says what came back. Whether to go on."""
    took = f"({trial.seconds:.1f} s)"
    match trial.outcome:
        case "call":
            say(f"ok: {choice.model} called the tool: {trial.detail} {took}")
            return True
        case "text":
            say(f"No tool call: {choice.model} answered in words: {trial.detail} {took}")
        case "nothing":
            say(f"No tool call: {choice.model} gave an empty answer {took}")
        case "error":
            say(f"Error: {trial.detail}", err=True)
            if yes:
                return False
    if trial.outcome != "error":
        click.echo("An agent needs tool calls, so this model may not work well.")
    return yes or click.confirm("Use it anyway?", default=False)


# ---------------------------------------------------------------------------------------------------------- the writing


def _finish(choice: SetupChoice, settings: UserSettings, home: Path, *, yes: bool) -> int:
    after = settings.text_with(choice.changes())
    key = choice.key
    keeps = key is not None and (key.typed or (not yes and _wants_stored(key, choice.server, home)))
    for line in difflib.unified_diff(
        settings.text.splitlines(), after.splitlines(), str(settings.file), str(settings.file), lineterm=""
    ):
        say(line)
    if after == settings.text and not keeps:
        click.echo("There is nothing to change.")
        _tell_what_wins(choice, settings)
        return 0
    if not yes and not click.confirm(_question(settings, changed=after != settings.text, keeps=keeps), default=True):
        click.echo("Nothing has changed.")
        return 1
    origin = origin_of(choice.server.base_url)
    in_keyring = key is not None and keeps and put_into_keyring(origin, key.key)
    with _uninterrupted():
        if key is not None and keeps:
            file = store_key(home, origin, None if in_keyring else key.key)
            where = "the system's keyring" if in_keyring else f"{file}, which only you can read"
            click.echo(f"Stored the key in {where}. It is sent only to {origin}.")
        if after != settings.text:
            settings.write(after)
            click.echo(f"Wrote {settings.file}.")
    _tell_what_wins(choice, settings)
    click.echo('Try it: wave -p "What does this project do?"')
    return 0


def _wants_stored(key: FoundKey, server: ModelServer, home: Path) -> bool:
    if not key.variable or stored_key(home, server.base_url) == key.key:
        return False
    words = f"The key is in {key.variable}. Also store it, for runs without that variable?"
    return click.confirm(words, default=False)


def _question(settings: UserSettings, *, changed: bool, keeps: bool) -> str:
    what = [f"write this to {settings.file}"] if changed else []
    what += ["store the key"] if keeps else []
    joined = " and ".join(what)
    return f"{joined[0].upper()}{joined[1:]}?"


def _tell_what_wins(choice: SetupChoice, settings: UserSettings) -> None:
    """Variables that would make a session use something else than what was chosen."""
    helper = settings.values.get("apiKeyHelper")
    own = Settings(base_url=choice.server.base_url, model=choice.model, api=choice.api, api_key_helper=helper)
    used = endpoint_for(ModelWishes(), own, os.environ, model=choice.model)
    others = [] if model_name_for(None, own, os.environ) == choice.model else ["WAVE_MODEL"]
    if used is None or used.url != choice.server.base_url:
        others += [name for name in ENDPOINTS if os.environ.get(name)]
    elif used.api != choice.server.api:
        others.append("WAVE_API")
    elif choice.key is not None and used.key != choice.key.key and not helper:
        others += [name for name in AGENT_KEYS if os.environ.get(name) == used.key]
    if others:
        verb = "is" if len(others) == 1 else "are"
        click.echo(f"{' and '.join(others)} {verb} set in the environment, which takes precedence: unset to use this.")


@contextmanager
def _uninterrupted() -> Generator[None]:
    """Ctrl-C waits until both files are written: it never leaves one of them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
