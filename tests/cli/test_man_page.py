"""The manual page and the completion of a shell: both know every command and option that click knows."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from wave_agent.cli.main import wave

SHARE = Path(__file__).parent.parent.parent / "share"
PAGE = SHARE / "man" / "man1" / "wave.1"


def commands(
    command: click.Command = wave, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command, **command.context_settings)):
            inner = command.get_command(click.Context(command, **command.context_settings), name)
            assert inner is not None
            yield from commands(inner, (*path, name))


def long_options(command: click.Command) -> set[str]:
    return {
        name
        for one in command.params
        if isinstance(one, click.Option) and not one.hidden
        for name in (*one.opts, *one.secondary_opts)
        if name.startswith("--")
    }


def sections() -> dict[str, str]:
    """The part of the page about each command, by its name; that about `wave` itself has an empty name."""
    text = PAGE.read_text().replace("\\-", "-")
    parts = re.split(r"^\.SS wave ", text, flags=re.MULTILINE)
    return {"": parts[0], **{" ".join(re.findall(r"^[a-z ]+\b", part)[:1]).strip(): part for part in parts[1:]}}


def test_the_manual_page_lists_every_command_with_every_option() -> None:
    found = sections()
    every = {" ".join(path): command for path, command in commands()}
    assert len(every) > 40
    assert found.keys() == every.keys()
    for name, command in every.items():
        missing = {one for one in long_options(command) if not re.search(rf"^\.B .*{one}\b", found[name], re.MULTILINE)}
        assert missing == set(), name


def test_tab_completes_every_command_and_every_option() -> None:
    for path, command in commands():
        shell = ShellComplete(wave, {}, "wave", "_WAVE_COMPLETE")
        options = {item.value for item in shell.get_completions([*path], "--")}
        assert long_options(command) <= options, path
        if isinstance(command, click.Group):
            names = {item.value for item in shell.get_completions([*path], "")}
            assert set(command.list_commands(click.Context(command, **command.context_settings))) <= names, path


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("bash", "bash-completion/completions/wave"),
        ("zsh", "zsh/site-functions/_wave"),
        ("fish", "fish/vendor_completions.d/wave.fish"),
    ],
)
def test_the_installed_completion_is_what_the_command_prints(
    shell: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wave.main(["completion", shell], prog_name="wave", standalone_mode=False)
    assert (SHARE / file).read_text() == capsys.readouterr().out


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_formats_the_manual_page_without_a_warning() -> None:
    ran = subprocess.run(["groff", "-man", "-Tutf8", "-ww", PAGE], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "guarded by hooks" in ran.stdout
