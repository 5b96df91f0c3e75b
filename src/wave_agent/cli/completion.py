"""`wave completion SHELL`: what a shell needs to complete `wave`."""

import click
from click.shell_completion import get_completion_class

HOW = {
    "bash": 'eval "$(wave completion bash)"',
    "zsh": 'eval "$(wave completion zsh)"',
    "fish": "wave completion fish | source",
}


@click.command()
@click.argument("shell", type=click.Choice(sorted(HOW)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print the completion script for a shell

    \b
    bash   put   eval "$(wave completion bash)"     into ~/.bashrc
    zsh    put   eval "$(wave completion zsh)"      into ~/.zshrc
    fish   put   wave completion fish | source      into ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None  # click knows the three
    click.echo(kind(ctx.find_root().command, {}, "wave", "_WAVE_COMPLETE").source())
    return 0
