"""The one-time notice that a project has hooks for other agents, which do not run."""

from collections.abc import Sequence
from pathlib import Path

from wave_agent.errors import SettingsError
from wave_agent.settings.trust import TrustStore

_NOTICE = """This project has hooks for other agents, which do not run here:
{hooks}
To run them in place, set {{"compat": {{"claude": true}}}} in your settings; to copy them, run wave hooks import;
false ignores them. This notice is shown once."""


def unused_hooks_notice(home: Path, project: str, hooks: Sequence[str]) -> str:
    """Empty if there are none, or if the notice was already shown for this project."""
    if not hooks:
        return ""
    try:
        is_news = TrustStore(home).remember_notice(project)
    except SettingsError:  # it cannot be recorded, so the notice will be shown again
        is_news = True
    return _NOTICE.format(hooks="\n".join(f"  {hook}" for hook in hooks)) if is_news else ""
