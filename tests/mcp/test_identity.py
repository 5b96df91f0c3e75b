"""Consent is bound to everything that a server would run: whoever changes it has to ask again."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.configuration import Place
from tests.rows import rows


def program(place: Place, name: str) -> None:
    file = place.write(name, "#!/bin/sh\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


@rows(
    ("entry", "files", "changed"),
    [
        # named
        ({"command": "python3", "args": ["server.py"]}, ["server.py"], "server.py"),
        ({"command": "python3", "args": ["-u", "./a/server.py"]}, ["a/server.py"], "a/server.py"),
        ({"command": "./run"}, ["run"], "run"),
        ({"command": "x", "args": ["--config=conf/a.json"]}, ["conf/a.json"], "conf/a.json"),
        ({"command": "x", "args": ["--config", "a.json"]}, [], "a.json"),
        ({"command": "x", "args": ["-fa.json"]}, ["a.json"], "a.json"),
        ({"command": "x", "args": ["@a.json"]}, ["a.json"], "a.json"),
        ({"command": "x", "args": ["file://{project}/a%20b.json"]}, ["a b.json"], "a b.json"),
        ({"command": "x", "args": ["{project}/a.json"]}, ["a.json"], "a.json"),
        ({"command": "x", "env": {"CONFIG": "conf/a.json"}}, ["conf/a.json"], "conf/a.json"),
        ({"command": "x", "args": ["${WAVE_PROJECT_DIR}/a.json"]}, ["a.json"], "a.json"),
        # directories with code
        ({"command": "node", "args": ["."]}, ["package.json", "lib/deep/x.js"], "lib/deep/x.js"),
        ({"command": "node", "args": ["srv"]}, ["srv/index.js", "srv/data.bin"], "srv/data.bin"),
        ({"command": "python3", "args": ["srv"]}, ["srv/__main__.py"], "srv/other.py"),
        ({"command": "python3", "args": ["server.py", "plugins"]}, ["server.py", "plugins/a"], "plugins/b"),
        # modules
        ({"command": "python3", "args": ["-m", "srv"]}, ["srv/__init__.py", "srv/a.py"], "srv/a.py"),
        ({"command": "python3", "args": ["-m", "srv"]}, [], "srv.py"),
        ({"command": "python3", "args": ["-msrv.main"]}, ["srv/main.py"], "srv/main.py"),
        ({"command": "python3", "args": ["-um", "srv"]}, [], "srv/__main__.py"),
        ({"command": "python3.12", "args": ["-m", "srv"]}, ["srv.py"], "json.py"),
        ({"command": "python3", "args": ["-m", "srv"], "env": {"PYTHONPATH": "lib"}}, ["lib/srv.py"], "lib/srv.py"),
        ({"command": "python3", "args": ["-c", "import srv; srv.main()"]}, ["srv.py"], "srv.py"),
        # code in arguments
        ({"command": "node", "args": ["-e", 'require("foo")']}, ["node_modules/foo/index.js"], "node_modules/foo/x.js"),
        ({"command": "node", "args": ["-e", "spawn('s'+'.py')"]}, ["s.py"], "s.py"),
        ({"command": "node", "args": ["-pe", "1"]}, ["s.py"], "s.py"),
        ({"command": "node", "args": ["--import=foo", "/opt/x.js"]}, [], "node_modules/foo/index.js"),
        ({"command": "perl", "args": ["-wE", "exec('python3', 's'.'.py')"]}, ["s.py"], "s.py"),
        ({"command": "ruby", "args": ["-e", "load 's'+'.rb'"]}, ["s.rb"], "s.rb"),
        ({"command": "php", "args": ["-r", "include 's'.'.php';"]}, ["s.php"], "s.php"),
        ({"command": "deno", "args": ["eval", "import('./s'+'.ts')"]}, ["s.ts"], "s.ts"),
        ({"command": "bun", "args": ["-e", "1"]}, ["s.ts"], "s.ts"),
        ({"command": "lua", "args": ["-e", "dofile('s'..'.lua')"]}, ["s.lua"], "s.lua"),
        ({"command": "git", "args": ["-c", "alias.x=!./w", "x"]}, ["w"], "w"),
        ({"command": "awk", "args": ['BEGIN{system("sh s" ".sh")}']}, ["s.sh"], "s.sh"),
        ({"command": "java", "args": ["-cp", ".:lib/*", "Main"]}, ["Main.class"], "Main.class"),
        ({"command": "java", "args": ["-cp", "/opt/x:lib/*", "Main"]}, ["lib/a.jar"], "lib/b.jar"),
        ({"command": "turbo", "args": ["run", "mcp"]}, ["turbo.json", "a.js"], "a.js"),
        # what a script loads
        ({"command": "python3", "args": ["a/server.py"]}, ["a/server.py"], "a/json.py"),
        ({"command": "node", "args": ["a/server.js"]}, ["a/server.js"], "a/helper.mjs"),
        ({"command": "node", "args": ["server"]}, ["server.js"], "server.js"),
        # launchers
        ({"command": "npx", "args": ["-y", "@scope/srv@1.2"]}, [], "node_modules/.bin/srv"),
        ({"command": "npx", "args": ["-y", "srv"]}, ["node_modules/srv/a.js"], "node_modules/srv/a.js"),
        ({"command": "npx", "args": ["srv"]}, [], ".npmrc"),
        ({"command": "npx", "args": ["srv"]}, ["package.json"], "package.json"),
        ({"command": "npm", "args": ["exec", "srv"]}, [], "package-lock.json"),
        ({"command": "npm", "args": ["--prefix", "sub", "start"]}, ["sub/package.json"], "sub/package.json"),
        ({"command": "pnpm", "args": ["dlx", "srv"]}, [], ".pnpmfile.cjs"),
        ({"command": "yarn", "args": ["srv"]}, [], ".yarnrc.yml"),
        ({"command": "bunx", "args": ["srv"]}, [], "bunfig.toml"),
        ({"command": "bun", "args": ["run", "srv.ts"]}, ["srv.ts"], "srv.ts"),
        ({"command": "uvx", "args": ["--from", "./srv", "srv"]}, ["srv/a.py"], "srv/a.py"),
        ({"command": "uv", "args": ["run", "srv.py"]}, ["srv.py"], "srv.py"),
        ({"command": "uv", "args": ["run", "srv"]}, [], "uv.lock"),
        ({"command": "uv", "args": ["--directory", "sub", "run", "srv.py"]}, ["sub/srv.py"], "sub/srv.py"),
        ({"command": "uv", "args": ["run", "--directory", "sub", "srv"]}, ["sub/x"], "sub/pyproject.toml"),
        ({"command": "deno", "args": ["run", "-A", "srv.ts"]}, ["srv.ts"], "deno.json"),
        ({"command": "docker", "args": ["compose", "run", "srv"]}, [], "compose.override.yaml"),
        ({"command": "docker", "args": ["compose", "-f", "dev.yml", "up"]}, ["dev.yml"], "dev.yml"),
        ({"command": "make", "args": ["srv"]}, ["Makefile"], "Makefile"),
        ({"command": "go", "args": ["run", "."]}, ["main.go"], "internal/x.go"),
        ({"command": "/usr/bin/env", "args": ["-S", "node", "a.js"]}, ["a.js"], "a.js"),
        # shells
        ({"command": "sh", "args": ["-c", "exec node a/b.js"]}, ["a/b.js"], "a/b.js"),
        ({"command": "bash", "args": ["-c", "cd sub && python3 srv.py"]}, ["sub/srv.py"], "sub/srv.py"),
        ({"command": "bash", "args": ["-c", "cd sub && npx srv"]}, ["sub/x"], "sub/.npmrc"),
        ({"command": "bash", "args": ["-lc", ". ./env.sh; srv"]}, ["env.sh"], "env.sh"),
        ({"command": "sh", "args": ["start.sh"]}, ["start.sh"], "start.sh"),
        ({"command": "env", "args": ["A=1", "python3", "srv.py"]}, ["srv.py"], "srv.py"),
        ({"command": "timeout", "args": ["9", "sh", "-c", "python3 srv.py"]}, ["srv.py"], "srv.py"),
        ({"command": "npx", "args": ["-c", "node tool.js"]}, ["tool.js"], "tool.js"),
        # programs that are handed on
        ({"command": "npx", "args": ["-y", "tsx", "src"]}, ["src/index.ts"], "src/index.ts"),
        ({"command": "npx", "args": ["ts-node", "srv"]}, ["srv.ts"], "srv.ts"),
        ({"command": "bunx", "args": ["tsx", "."]}, ["index.ts", "package.json"], "index.ts"),
        ({"command": "npx", "args": ["-y", "mcp-proxy", "--", "node", "srv"]}, ["srv/index.js"], "srv/index.js"),
        ({"command": "npx", "args": ["-y", "supergateway", "--stdio=python -m srv"]}, ["srv.py"], "srv.py"),
        ({"command": "npx", "args": ["-y", "srv@file:./srv"]}, ["srv/index.js"], "srv/index.js"),
        ({"command": "uvx", "args": ["--with", "mcp", "python3.12", "-m", "srv"]}, ["srv.py"], "srv.py"),
        ({"command": "uvx", "args": ["mcp-proxy", "python", "-c", "import srv"]}, ["srv.py"], "srv.py"),
        ({"command": "uv", "args": ["tool", "run", "python", "srv"]}, ["srv/__main__.py"], "srv/a.py"),
        ({"command": "conda", "args": ["run", "-n", "x", "python", "-m", "srv"]}, ["srv.py"], "srv.py"),
        ({"command": "strace", "args": ["-f", "/usr/bin/python3", "-m", "srv"]}, ["srv.py"], "srv.py"),
        ({"command": "x", "env": {"SERVER": "python -m srv"}}, ["srv.py"], "srv.py"),
        ({"command": "x", "env": {"SERVER": "./run --fast"}}, ["run"], "run"),
        ({"command": "x", "args": ['{"command": "python", "args": ["-m", "srv"]}']}, ["srv.py"], "srv.py"),
        ({"command": "x", "args": ["--config=run: {command: ./a, args: []}"]}, ["b"], "b"),
        # programs that run what is there
        ({"command": "fastmcp", "args": ["run"]}, ["fastmcp.json", "server.py"], "server.py"),
        ({"command": "flask", "args": ["run"]}, ["app.py"], "lib.py"),
        ({"command": "invoke", "args": ["mcp"]}, ["tasks.py"], "lib.py"),
        ({"command": "coverage", "args": ["run", "-m", "srv"]}, ["srv.py"], "srv.py"),
        ({"command": "R", "args": ["-e", "source(paste0('s', '.R'))"]}, ["s.R"], "s.R"),
        # directories with code
        ({"command": "x", "args": ["--plugin-dir", "more"]}, ["more/a.py"], "more/b.py"),
        ({"command": "x", "args": ["--extensions=more"]}, ["more/a.py"], "more/a.py"),
        ({"command": "x", "env": {"PLUGINS": "more"}}, ["more/a.py"], "more/a.py"),
        ({"command": "x", "env": {"PYENV_ROOT": "tools"}}, ["tools/shims/x"], "tools/shims/x"),
        # variables that make programs load code
        ({"command": "node", "args": ["a.js"], "env": {"NODE_OPTIONS": "--require ./x/y.js"}}, ["x/y.js"], "x/y.js"),
        ({"command": "x", "env": {"NODE_OPTIONS": "--require=./y.js"}}, [], "y.js"),
        ({"command": "x", "env": {"PYTHONPATH": "lib:other"}}, ["other/a/b.py"], "other/a/b.py"),
        ({"command": "x", "env": {"PYTHONSTARTUP": "boot.py"}}, ["boot.py"], "boot.py"),
        ({"command": "x", "env": {"LD_PRELOAD": "./evil.so"}}, [], "evil.so"),
        ({"command": "bash", "args": ["-c", "x"], "env": {"BASH_ENV": "rc"}}, ["rc"], "rc"),
        ({"command": "x", "env": {"RUBYOPT": "-r./boot.rb"}}, ["boot.rb"], "boot.rb"),
        # PATH of the entry
        ({"command": "srv", "env": {"PATH": "bin:/usr/bin"}}, [], "bin/srv"),
        ({"command": "npx", "args": ["srv"], "env": {"PATH": "tools:/usr/bin:/bin"}}, [], "tools/node"),
        # a remote server's helper
        ({"type": "http", "url": "https://x.example/", "headersHelper": "./token.sh"}, ["token.sh"], "token.sh"),
        ({"type": "http", "url": "https://x.example/", "headersHelper": "cd a && python3 t.py"}, ["a/t.py"], "a/t.py"),
    ],
)
def test_a_change_of_what_a_server_runs_needs_a_new_consent(
    fresh: Callable[[], Place], entry: dict[str, Any], files: list[str], changed: str
) -> None:
    place = fresh()
    entry = json.loads(json.dumps(entry).replace("{project}", str(place.project)))
    for name in files:
        program(place, name)
    place.servers({"srv": entry})
    assert place.waiting("srv").binding.unbound == ""
    place.agree("srv")
    before = place.configured()
    assert [one.name for one in before.servers] == ["srv"]
    assert before.why_changed("srv", place.place) is None

    file = place.write(changed, f"{(place.project / changed).read_text() if changed in files else ''}\n# changed\n")
    file.chmod(0o755)

    waiting = place.waiting("srv")
    assert os.path.normpath(changed) in waiting.why
    assert waiting.is_changed
    why = before.why_changed("srv", place.place)
    assert why is not None
    assert changed in why


def test_the_project_can_change_unless_a_server_runs_code_of_it(place: Place) -> None:
    entries = {
        "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", ".", "docs"]},
        "git": {"command": "uvx", "args": ["mcp-server-git", "--repository", "."]},
        "box": {"command": "docker", "args": ["run", "-i", "--rm", "-v", ".:/work", "mcp/git"]},
        "proxy": {"command": "npx", "args": ["-y", "mcp-remote", "https://x.example/mcp", "--allow-http"]},
        "inside": {"command": "docker", "args": ["run", "-i", "-v", ".:/work", "python:3", "python", "-m", "srv"]},
        "words": {"command": "uvx", "args": ["srv", "--lang", "go", "--on", "node", "x"], "env": {"A": "go on"}},
        "script": {"command": "python3", "args": ["tools/server.py", "."]},
    }
    place.servers(entries)
    place.write("tools/server.py", "import helper\n")
    place.write("docs/a.md")
    place.write("compose.yaml")
    place.write("package.json", "{}")
    place.write(".wave/settings.local.json", "{}")
    for name in entries:
        place.agree(name)
    place.write("docs/a.md", "changed")
    place.write("README.md", "new")
    place.write("data/rows.csv", "new")
    place.write(".wave/settings.local.json", {"permissions": {"allow": ["Bash(ls)"]}})
    place.servers({"new": {"command": "x"}, **entries})
    assert place.running() == [*entries]
    place.write("src/main.py", "new")
    assert place.running() == [*entries][:-1]
    assert place.waiting("script").why == "changed since you trusted it: src/main.py"


@rows(
    ("arguments", "content"),
    [
        (["mcpo", "--config", "all.json"], '{"mcpServers": {"a": {"command": "python", "args": ["-m", "srv"]}}}'),
        (["mcp-proxy", "--named-server-config=all.yaml"], "a:\n  command: python\n  args: [-m, srv]\n"),
        (["proxy", "all.toml"], 'cmd = "python -m srv"\n'),
        (
            ["mcp-proxy", "--named-server-config=all.yaml"],
            f"{'#' * (1 << 20)}\na:\n  command: python\n  args: [-m, srv]\n",
        ),
    ],
    ids=["json", "yaml", "toml", "more than is read"],
)
def test_a_file_that_says_what_to_start_binds_a_server_to_all_code(
    fresh: Callable[[], Place], arguments: list[str], content: str
) -> None:
    place = fresh()
    name = next(one for one in ("all.json", "all.yaml", "all.toml") if arguments[-1].endswith(one))
    place.write(name, content)
    place.write("srv.py", "")
    place.servers({"srv": {"command": "uvx", "args": arguments}})
    place.user({"mcpServers": {"own": {"command": "uvx", "args": arguments}}})
    assert name in place.waiting("own").why
    place.agree("srv")
    place.write("srv.py", "changed")
    assert "srv.py" in place.waiting("srv").why


def test_imports_are_followed(place: Place) -> None:
    place.write("server.py", "from pkg.tools import run\nimport other.deep as d\n")
    place.write("pkg/__init__.py")
    place.write("pkg/tools.py", "from . import sibling\nfrom .inner.x import y\n")
    place.write("pkg/sibling.py")
    place.write("pkg/inner/x.py")
    place.write("other/deep.py")
    place.write("srv/index.js", "import a from './lib/a';\nconst b = require('../shared/b.js');\n")
    place.write("srv/lib/a.ts", "export * from './c.js'")
    place.write("srv/lib/c.ts")
    place.write("shared/b.js")
    place.write("run.sh", "#!/bin/sh\nset -e\nexec python3 scripts/go.py\n")
    place.write("scripts/go.py", "import json\n")
    place.servers(
        {
            "py": {"command": "python3", "args": ["server.py"]},
            "js": {"command": "node", "args": ["srv/index.js"]},
            "sh": {"command": "sh", "args": ["run.sh"]},
        }
    )
    files = {name: set(place.waiting(name).binding.files) for name in ("py", "js", "sh")}
    assert {"pkg/tools.py", "pkg/sibling.py", "pkg/inner/x.py", "other/deep.py"} <= files["py"]
    assert {"srv/lib/a.ts", "srv/lib/c.ts", "shared/b.js"} <= files["js"]
    assert "scripts/go.py" in files["sh"]


def test_a_link_is_bound_to_where_it_leads(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("1")
    (place.project / "server.py").symlink_to(outside)
    place.servers({"srv": {"command": "python3", "args": ["server.py"]}})
    place.agree("srv")
    outside.write_text("2")
    assert "server.py" in place.waiting("srv").why

    place.agree("srv")
    other = tmp_path / "other.py"
    other.write_text("2")
    (place.project / "server.py").unlink()
    (place.project / "server.py").symlink_to(other)
    assert "server.py" in place.waiting("srv").why


def test_a_script_outside_the_project_is_bound_too(place: Place, tmp_path: Path) -> None:
    script = tmp_path / "elsewhere" / "server.py"
    script.parent.mkdir()
    script.write_text("1")
    place.servers({"srv": {"command": "python3", "args": [str(script)]}})
    place.agree("srv")
    script.write_text("2")
    assert "server.py" in place.waiting("srv").why


def test_an_entry_or_a_value_that_changes_needs_a_new_consent(place: Place) -> None:
    place.environment["TOKEN"] = "first"
    place.servers({"srv": {"command": "x", "args": ["a"], "env": {"T": "${TOKEN}"}}})
    place.agree("srv")
    place.environment["TOKEN"] = "second"
    assert place.waiting("srv").why == "changed since you trusted it: the value of TOKEN"
    place.agree("srv")
    assert "second" not in place.store.file.read_text()
    place.servers({"srv": {"command": "x", "args": ["b"], "env": {"T": "${TOKEN}"}}})
    assert place.waiting("srv").why == "changed since you trusted it: its entry"


def many(place: Place) -> None:
    for at in range(2001):
        place.write(f"srv/{at}.txt")


def large(place: Place) -> None:
    with (place.project / "srv" / "big").open("wb") as file:
        file.truncate((64 << 20) + 1)


def pipe(place: Place) -> None:
    os.mkfifo(place.project / "srv" / "pipe")


@pytest.mark.parametrize("fill", [many, large, pipe])
def test_what_cannot_be_bound_is_asked_for_in_each_session(place: Place, fill: Callable[[Place], None]) -> None:
    place.write("srv/index.js")
    fill(place)
    place.servers({"srv": {"command": "node", "args": ["srv"]}})
    configured = place.configured()
    waiting = configured.waiting[0]
    assert "asked in each session" in waiting.why
    with pytest.raises(Exception, match="cannot be stored"):
        place.store.grant(waiting.server, waiting.binding)
    agreed = configured.agreed(["SRV"])
    assert [one.name for one in agreed.servers] == ["srv"]
    assert agreed.waiting == ()


@rows(
    ("entry", "planted"),
    [
        ({"command": "npx", "args": ["-y", "srv"]}, ".npmrc"),
        ({"command": "npx", "args": ["-y", "@x/srv@latest"]}, "node_modules/.bin/srv"),
        ({"command": "python3", "args": ["-m", "srv"]}, "srv.py"),
        ({"command": "python3", "args": ["server.py"]}, "server.py"),
        ({"command": "uv", "args": ["run", "srv.py"]}, "srv.py"),
        ({"command": "sh", "args": ["-c", "exec npx srv"]}, ".npmrc"),
        ({"command": "node", "args": ["-e", "require('foo')"]}, "node_modules/foo/index.js"),
        ({"command": "java", "args": ["-cp", ".:lib/*", "Main"]}, "lib/a.jar"),
        ({"command": "git", "args": ["-c", "alias.x=!./w", "x"]}, "w"),
        ({"command": "awk", "args": ["-f", "f.awk"]}, "f.awk"),
        ({"command": "npx", "args": ["-y", "tsx", "src"]}, "src/index.ts"),
        ({"command": "uvx", "args": ["mcp-proxy", "python", "-m", "srv"]}, "srv.py"),
        ({"command": "fastmcp", "args": ["run"]}, "fastmcp.json"),
        ({"command": "deno"}, "deno.json"),
    ],
)
def test_a_server_of_the_user_does_not_run_code_of_a_project_unasked(
    fresh: Callable[[], Place], entry: dict[str, Any], planted: str
) -> None:
    place = fresh()
    place.user({"mcpServers": {"srv": entry}})
    place.write("package.json", {"name": "p", "dependencies": {"left-pad": "1"}})
    before = place.configured()
    assert [one.name for one in before.servers] == ["srv"]

    place.write(planted, "registry=https://evil.example/\n")

    assert planted in (before.why_changed("srv", place.place) or "")
    assert planted in place.waiting("srv").why
    place.agree("srv")
    assert place.running() == ["srv"]
    place.write(planted, "registry=https://worse.example/\n")
    assert planted in place.waiting("srv").why


def test_a_user_with_the_projects_environment_on_path_is_not_asked_for_their_own_servers(place: Place) -> None:
    program(place, ".venv/bin/python3")
    place.environment["PATH"] = f"{place.project}/.venv/bin:{place.environment['PATH']}"
    place.user({"mcpServers": {"srv": {"command": "uvx", "args": ["mcp-server-time"]}}})
    assert place.running() == ["srv"]
    place.servers({"own": {"command": "uvx", "args": ["mcp-server-time"]}})
    place.agree("own")
    place.write(".venv/bin/python3", "#!/bin/sh\nevil\n")
    assert ".venv/bin/python3" in place.waiting("own").why


def test_a_server_of_the_user_that_loads_no_modules_of_the_project_needs_no_consent(place: Place) -> None:
    place.user({
        "mcpServers": {
            "isolated": {"command": "python3", "args": ["-I", "-m", "mcp_server_time"]},
            "safe": {"command": "python3", "args": ["-Pm", "mcp_server_time"]},
            "plain": {"command": "python3", "args": ["-m", "mcp_server_time"]},
        }
    })  # fmt: skip
    place.write("utils.py", "")
    place.write("mcp_server_time.py", "")
    assert place.running() == ["isolated", "safe"]


def test_a_script_of_the_user_elsewhere_needs_no_consent(place: Place) -> None:
    place.user({
        "mcpServers": {
            "node": {"command": "node", "args": ["/opt/server.js"]},
            "shell": {"command": "sh", "args": ["-c", "exec node /opt/server.js"]},
            "tsx": {"command": "npx", "args": ["-y", "tsx", "/opt/server.ts"]},
            "mcp": {"command": "uvx", "args": ["mcp", "run", "/opt/server.py"]},
            "here": {"command": "node", "args": ["."]},
        }
    })  # fmt: skip
    place.write("package.json", {"name": "p", "main": "index.js", "scripts": {"start": "node index.js"}})
    place.write("index.js", "")
    place.write("app.py", "")
    assert place.running() == ["node", "shell", "tsx", "mcp"]
