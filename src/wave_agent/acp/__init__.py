"""`wave acp`: the agent in an editor, over the Agent Client Protocol.

The only room that imports the SDK of that protocol, which the extra `wave-agent[acp]` brings; `cli.acp` loads it.
"""
