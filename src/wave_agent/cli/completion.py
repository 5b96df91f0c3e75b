"""`wave completion SHELL`: print the shell completion script for `wave`."""

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
    bash   add   eval "$(wave completion bash)"     to ~/.bashrc
    zsh    add   eval "$(wave completion zsh)"      to ~/.zshrc
    fish   add   wave completion fish | source      to ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None  # click knows the three
    click.echo(kind(ctx.find_root().command, {}, "wave", "_WAVE_COMPLETE").source())
    return 0
