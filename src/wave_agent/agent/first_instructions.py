"""`/init`: the prompt that has the model write a first AGENTS.md."""

PROMPT = """\
Write a first AGENTS.md for this project, in the project directory: the instructions that every coding agent reads \
before it works here.

Find out before you write. Look at the top level, the README, the manifests (package.json, pyproject.toml, \
Cargo.toml, go.mod, Makefile and the like), the configuration of CI, linters and formatters, and instructions that are \
already there for other agents (CLAUDE.md, .cursorrules, .github/copilot-instructions.md). Look at a few source and \
test files for their conventions.

Then write it with Write, or improve it with Edit if there is one. Include only what you have seen, and what a \
newcomer could not guess:

- how to install, build, run and test, including how to run a single test, as exact commands;
- how the code is organised: the few directories and ideas that one has to know;
- conventions that differ from what is usual, and things that must not be done.

Keep it under 60 lines. Leave out generic advice, and lists of files that anyone can see. Do not run anything that \
installs or changes something else. In the end say in two sentences what you wrote and what you could not find out.\
"""
