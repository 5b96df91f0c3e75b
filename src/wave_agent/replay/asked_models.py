"""Asks the models of `prompt` and `agent` hooks again, for events that were recorded. Loaded only on demand: it costs
money."""

import os
from collections.abc import Sequence
from pathlib import Path

from wave_agent.agent.hook_questions import AskedModel, ReadableProject, ReadingPlace
from wave_agent.agent.hook_thinking import HookThinker
from wave_agent.agent.model_choice import ModelWishes, model_for, model_name_for
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.execution import Opinion
from wave_agent.hooks.questions import PolicyQuestion
from wave_agent.hooks.runners.thinking import ThoughtNotes
from wave_agent.permissions.protected_paths import protected_paths
from wave_agent.settings.layers import Settings
from wave_agent.system.credentials import without_credentials
from wave_agent.system.project import Project


def asking_thinker(
    settings: Settings, hooks: Sequence[HookDefinition], *, project: str, home: Path, outputs: Path
) -> HookThinker:
    """`project` is the copy in which hooks run: models of `agent` hooks read there, as it is now."""

    readable = ReadableProject(
        place=Project.at(project),
        rules=settings.rules,
        directories=(os.path.realpath(project),),
        find_protected=lambda: protected_paths(project, home, hooks),
    )

    async def read(asked: AskedModel, question: PolicyQuestion, notes: ThoughtNotes) -> Opinion:
        from wave_agent.agent.reading_hook import read_and_judge  # lazy: few hooks read

        place = ReadingPlace(outputs=outputs, environment=without_credentials(os.environ))
        return await read_and_judge(asked, question, readable, place, notes)

    return HookThinker(
        settings,
        client=lambda name: model_for(ModelWishes(), settings, os.environ, model=name, home=home),
        usual_model=lambda: model_name_for(None, settings, os.environ),
        home=home,
        read=read,
    )
