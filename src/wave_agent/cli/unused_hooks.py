"""What is told once in a project: it has hooks for other agents, which do not run."""

from wave_agent.agent import Agent
from wave_agent.errors import SettingsError
from wave_agent.trust import TrustStore

_TOLD = """This project has hooks for other agents, which do not run here:
{hooks}
To have them run where they stand, set {{"compat": {{"claude": true}}}} in your settings; to copy them, run
wave hooks import; false leaves them alone. This is told once."""


def unused_hooks(agent: Agent) -> str:
    """What to tell; empty if there is nothing, or it is known."""
    if not agent.unused_hooks:
        return ""
    try:
        is_news = TrustStore(agent.home).remember_told(agent.project)
    except SettingsError:  # cannot be remembered: then it is told again
        is_news = True
    return _TOLD.format(hooks="\n".join(f"  {hook}" for hook in agent.unused_hooks)) if is_news else ""
