"""`wave guard`: hooks and rules of a project, enforced in other agents."""
