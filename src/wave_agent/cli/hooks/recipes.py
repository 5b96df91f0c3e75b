"""`wave hooks recipes`: hooks to start from."""

import json
from typing import Any

import click
import msgspec

from wave_agent.cli.options import json_option
from wave_agent.recipes import LANGUAGES, Recipe, load_recipe, recipe_names, settings_group
from wave_agent.text import did_you_mean


@click.command()
@click.argument("name", required=False)
@click.option("--lang", "language", type=click.Choice(list(LANGUAGES)), help="Show the script in this language.")
@json_option
def recipes(name: str | None, language: str | None, as_json: bool) -> int:
    """Show hooks to start from

    Without NAME, lists all recipes. With NAME, shows its script, settings and cases. `wave hooks new` adds one to a
    project.
    """
    if name is None:
        found = [load_recipe(one) for one in recipe_names()]
        _show_list(found, as_json=as_json)
        return 0
    recipe = recipe_named(name)
    if language is not None and language not in recipe.scripts:
        raise click.UsageError(f"{name} is available in {', '.join(recipe.scripts)}.")
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(recipe)))
    else:
        _show(recipe, language)
    return 0


def recipe_named(name: str) -> Recipe:
    """Raises a usage error that suggests the closest name."""
    known = recipe_names()
    if name not in known:
        raise click.UsageError(
            f'There is no recipe "{name}"{did_you_mean(name, known)}; available: {", ".join(known)}.'
        )
    return load_recipe(name)


def _summary(recipe: Recipe) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "title": recipe.title,
        "summary": recipe.summary,
        "event": recipe.event,
        "matcher": recipe.entry.get("matcher", ""),
        "languages": list(recipe.scripts),
        "cases": len(recipe.cases["cases"]),
    }


def _show_list(found: list[Recipe], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"recipes": [_summary(recipe) for recipe in found]}))
        return
    wide = max(len(recipe.name) for recipe in found)
    events = max(len(recipe.event) for recipe in found)
    for recipe in found:
        languages = ", ".join(recipe.scripts)
        click.echo(f"{recipe.name:<{wide}}  {recipe.event:<{events}}  {recipe.title} ({languages})")
    click.echo("\nwave hooks recipes NAME shows one, wave hooks new NAME --recipe RECIPE adds it to the project.")


def _show(recipe: Recipe, language: str | None) -> None:
    chosen, text = recipe.script(language)
    file = f".wave/hooks/{recipe.name}.{LANGUAGES[chosen]}"
    group = settings_group(recipe.entry, file)
    click.echo(f"{recipe.title} ({', '.join(recipe.scripts)})\n{recipe.summary}\n")
    click.echo(f"--- {file}\n{text}")
    settings = {"hooks": {recipe.event: [group]}}
    click.echo(f"--- .wave/settings.json\n{json.dumps(settings, indent=2, ensure_ascii=False)}\n")
    click.echo(f"--- cases\n{_cases(recipe)}\n")
    click.echo(f"wave hooks new {recipe.name} --recipe {recipe.name} adds it to the project.")


def _cases(recipe: Recipe) -> str:
    lines: list[str] = []
    for case in recipe.cases["cases"]:
        expected = case["expect"]
        word = expected if isinstance(expected, str) else expected["outcome"]
        lines.append(f"{word:<8}  {case['name']}")
    return "\n".join(lines)
