"""A server that runs anything of the project is bound to all code of it, whatever its files seem to load."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.mcp.configuration import Place
from tests.rows import rows
from wave_agent.mcp.file_digests import FileDigests, LookLimits

BYTECODE = "cpython-311.pyc"
AT_ONCE = LookLimits(settled=0, worth_keeping=1)
"""Every digest is remembered."""


def python(*arguments: str, **more: Any) -> dict[str, Any]:
    return {"command": "python3", "args": [*arguments], **more}


def node(*arguments: str, **more: Any) -> dict[str, Any]:
    return {"command": "node", "args": [*arguments], **more}


def shell(*arguments: str, **more: Any) -> dict[str, Any]:
    return {"command": "sh", "args": [*arguments], **more}


LIB = "import sys, os\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))\nimport thing\n"
ABOVE = "import sys, os\nsys.path.insert(0, os.path.dirname(os.path.dirname(__file__)))\nfrom core import thing\n"
PACKAGE = {"server.py": "import pkg.mod\n", "pkg/__init__.py": "", "pkg/mod.py": ""}
OUTSIDE = "/usr/share/doc/server.py"
BIN = "#!/usr/bin/env node\n"


@rows(
    ("entry", "files", "changed"),
    [
        # Python: bytecode, and what takes the place of a source
        (python("server.py"), {"server.py": "import helper\n", "helper.py": ""}, f"__pycache__/helper.{BYTECODE}"),
        (python("-E", "server.py"), {"server.py": "import a\n", "a.py": ""}, f"__pycache__/a.{BYTECODE}"),
        (python("server.py"), PACKAGE, f"pkg/__pycache__/mod.{BYTECODE}"),
        (python("app"), {"app/__main__.py": "import a\n", "app/a.py": ""}, f"app/__pycache__/a.{BYTECODE}"),
        (python("server.py"), PACKAGE, "pkg/mod/__init__.pyc"),
        (python("server.py"), PACKAGE, "pkg/mod.abi3.so"),
        (python("server.py"), {"server.py": "import json\n"}, "json/__init__.abi3.so"),
        # Python: imports that are not on a line of their own, or computed
        (python("server.py"), {"server.py": "from pkg import (\n    t as u,\n)\n", "pkg/t.py": ""}, "pkg/t.py"),
        (python("server.py"), {"server.py": "import os; import lib.evil\n", "lib/evil.py": ""}, "lib/evil.py"),
        (python("server.py"), {"server.py": LIB, "lib/thing.py": ""}, "lib/thing.py"),
        (python("bin/server.py"), {"bin/server.py": ABOVE, "core/thing.py": ""}, "core/thing.py"),
        (python("app"), {"app/__main__.py": "import lib.x", "app/lib": Path("../s"), "s/x.py": ""}, "s/x.py"),
        (python("-m", "srv"), {"srv/__main__.py": "from lib.deep import h\n", "lib/deep/h.py": ""}, "lib/deep/h.py"),
        (python("-m", "srv"), {"srv/__main__.py": ""}, "json/__init__.py"),
        (python("-m", "installed"), {"README.md": ""}, "json/__init__.abi3.so"),
        (python("-c", "import runpy; runpy.run_path('l' + 'ib/s.py')"), {"lib/s.py": ""}, "lib/s.py"),
        (python("server.py"), {"server.py": "run(['sh', 'tools/run.sh'])\n", "tools/run.sh": ""}, "tools/run.sh"),
        # variables
        (python(OUTSIDE, env={"PYTHONPATH": "lib"}), {"lib/x.txt": ""}, "lib/sitecustomize.py"),
        (python(OUTSIDE, env={"PYTHONPATH": "."}), {"a.txt": ""}, "space/deep/thing.py"),
        (python(OUTSIDE, env={"HOME": "."}), {"a.txt": ""}, ".local/lib/python3.11/site-packages/x.pth"),
        (python(OUTSIDE, env={"PATH": "./bin:/usr/bin:/bin"}), {"bin/x": ""}, "bin/rg"),
        # shells and make
        (shell("run.sh"), {"run.sh": '. "$(dirname "$0")/lib/common.sh"\n', "lib/common.sh": ""}, "lib/common.sh"),
        ({"command": "./bin/run"}, {"bin/run": '#!/bin/bash\n. "$D/lib/common"\n', "lib/common": ""}, "lib/common"),
        (shell("run.sh"), {"run.sh": "for f in conf.d/*.sh; do . ./$f; done\n", "conf.d/a.sh": ""}, "conf.d/b.sh"),
        (shell("-c", "exec python3 su?/server.py"), {"sub/server.py": ""}, "sub/server.py"),
        (shell("-c", "D=sub; exec python3 $D/server.py"), {"sub/server.py": ""}, "sub/server.py"),
        ({"command": "make", "args": ["srv"]}, {"Makefile": "include $(wildcard conf/*.mk)\n"}, "conf/b.mk"),
        # Node
        (node("s.js"), {"s.js": "require('dep')", "node_modules/dep/index.js": ""}, "node_modules/dep/index.js"),
        (node("s.js"), {"s.js": "require(require('path').join(__dirname, 'lib', 'x.js'))", "lib/x.js": ""}, "lib/x.js"),
        (node("s.js"), {"s.js": "require(__dirname + '/lib/x')", "lib/x.js": ""}, "lib/x.js"),
        (node("bin/s.js"), {"bin/s.js": "require('..')", "index.js": ""}, "index.js"),
        (node("bin/s.js"), {"bin/s.js": "require('../')", "package.json": '{"main": "o/m"}', "o/m.js": ""}, "o/m.js"),
        ({"command": "./bin/cli"}, {"bin/cli": f"{BIN}require('../lib/main')", "lib/main.js": ""}, "lib/main.js"),
        (node("app"), {"app/index.js": "require('./l/x')", "app/l": Path("../s"), "s/x.js": ""}, "s/x.js"),
        (
            {"command": "npx", "args": ["--no-install", "srv"]},
            {"node_modules/.bin/srv": f"{BIN}require('../dep/m')", "node_modules/dep/m.js": ""},
            "node_modules/dep/m.js",
        ),
        (
            {"command": "npm", "args": ["-s", "start"]},
            {"package.json": '{"scripts": {"start": "node srv/main"}}', "srv/main.js": ""},
            "srv/main.js",
        ),
        (
            {"command": "npm", "args": ["--prefix", "exec", "start"]},
            {"exec/package.json": '{"scripts": {"start": "node srv/main"}}', "exec/srv/main.js": ""},
            "exec/srv/main.js",
        ),
        # programs that nobody has heard of
        ({"command": "fastmcp", "args": ["run", "srv/s.py"]}, {"srv/s.py": "", "lib/x.py": ""}, "lib/x.py"),
        ({"command": "uvx", "args": ["fastmcp", "run", "s.py:mcp"]}, {"s.py": "", "lib/x.py": ""}, "lib/x.py"),
        ({"command": "uvicorn", "args": ["app.main:app"]}, {"app/main.py": "", "lib/x.py": ""}, "lib/x.py"),
        ({"command": "uv", "args": ["run", "srv"]}, {"pyproject.toml": "[project]\n", "lib/x.py": ""}, "lib/x.py"),
    ],
)  # fmt: skip
def test_any_change_of_code_needs_a_new_consent(
    fresh: Callable[[], Place], entry: dict[str, Any], files: Mapping[str, str | Path], changed: str
) -> None:
    place = fresh()
    for name, content in files.items():
        if isinstance(content, Path):
            (place.project / name).symlink_to(content)
        else:
            place.write(name, content).chmod(0o755 if content.startswith("#!") else 0o644)
    place.servers({"srv": entry})
    place.agree("srv")
    before = place.configured()
    assert [one.name for one in before.servers] == ["srv"]
    assert before.why_changed("srv", place.place) is None

    place.write(changed, "changed").chmod(0o755)

    assert changed in place.waiting("srv").why
    assert changed in (before.why_changed("srv", place.place) or "")


def test_links_to_directories_that_are_not_looked_at_are_followed(place: Place, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (place.project / ".git" / "x").mkdir(parents=True)
    (place.project / "lib").symlink_to(tmp_path / "shared")
    (place.project / "inner").symlink_to(".git/x")
    (place.project / "all").symlink_to("..")
    place.write("server.py")
    place.servers({"srv": python("server.py")})
    for name in ("lib/x.py", "inner/x.py", ".mypy_cache/x.py"):
        place.agree("srv")
        place.write(".git/index.py", name)
        place.write(".mypy_cache/x.json", name)
        assert place.running() == ["srv"]
        place.write(name, "")
        assert name in place.waiting("srv").why


def test_what_the_agent_itself_writes_is_not_part_of_the_project(place: Place) -> None:
    place.home = place.project / "home"
    place.home.mkdir(mode=0o700)
    place.write("server.py")
    place.servers({"srv": python("server.py")})
    place.agree("srv")
    place.write("home/mcp-cache/new.json")
    assert place.running() == ["srv"]


def test_settings_of_npm_alone_do_not_bind_a_server_to_the_project(place: Place) -> None:
    """They may redirect it to another registry, so they are bound; they run nothing of the project."""
    place.write(".npmrc", "# ours\n@x:registry=https://r.example/\n//r.example/:_authToken=${T}\n")
    place.user({"mcpServers": {"srv": {"command": "npx", "args": ["-y", "@x/srv"]}}})
    place.agree("srv")
    place.write("src/main.js", "changed")
    assert place.running() == ["srv"]
    place.write(".npmrc", "node-options=--require ./src/main.js\n")
    place.agree("srv")
    place.write("src/other.js", "changed")
    assert "src/other.js" in place.waiting("srv").why


def test_a_server_of_the_user_that_runs_code_of_the_project_is_bound_to_all_of_it(place: Place) -> None:
    place.write("server.py")
    place.user({"mcpServers": {"srv": python("server.py"), "own": python("/opt/server.py")}})
    assert place.waiting("srv").why == "it would run files of this project: server.py"
    place.agree("srv")
    assert {*place.running()} == {"own", "srv"}
    place.write("lib/deep/x.py")
    assert place.running() == ["own"]


def test_bytecode_of_the_project_is_not_run(place: Place) -> None:
    """Nobody can review it. Python gets another directory for it, which only the user's own servers can choose."""
    choice = {"PYTHONPYCACHEPREFIX": "cache"}
    place.write("server.py")
    place.servers({"srv": python("server.py", env=choice), "other": python("/opt/server.py", env=choice)})
    place.user({"mcpServers": {"own": python("server.py", env=choice), "plain": python("server.py")}})
    for waiting in place.configured().waiting:
        place.agree(waiting.server.name)
    prefixes = {one.name: one.environment.get("PYTHONPYCACHEPREFIX", "") for one in place.configured().servers}
    assert set(prefixes) == {"srv", "other", "own", "plain"}
    assert prefixes["own"] == "cache"
    for name in ("srv", "plain"):
        assert prefixes[name].startswith(f"{place.home}/mcp-cache/python/")
    assert (place.home / "mcp-cache").stat().st_mode & 0o077 == 0


def test_in_a_large_project_it_is_said_what_is_not_watched(place: Place) -> None:
    place.limits = LookLimits(code_files=5)
    place.write("server.py", "import near\n")
    place.write("near.py")
    place.write("lib/far.py")
    for at in range(4):
        place.write(f"node_modules/x/{at}.js")
    place.servers({"srv": python("server.py")})
    binding = place.waiting("srv").binding
    assert binding.unwatched == (
        "the project has more than 5 files with code, so packages installed in it are not watched, "
        "unless they are listed"
    )
    assert [*binding.files] == ["lib/far.py", "near.py", binding_program(binding.files), "server.py"]

    place.agree("srv")
    for at in range(4):
        place.write(f"src/{at}.py")
    waiting = place.waiting("srv")
    assert "how much of the project is watched" in waiting.why
    assert waiting.binding.unwatched.endswith("only the files listed are watched, and what they load is not")
    assert {"server.py", "near.py"} <= {*waiting.binding.files}
    place.agree("srv")
    place.write("lib/far.py", "changed")
    assert place.running() == ["srv"]
    place.write("near.py", "changed")
    assert "near.py" in place.waiting("srv").why


def binding_program(files: Mapping[str, str]) -> str:
    return next(name for name in files if name.startswith("program "))


def test_a_remembered_digest_is_not_used_for_a_file_that_was_touched(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("first")
    facts = file.stat()
    digests = FileDigests(tmp_path / "home", "/p", AT_ONCE)
    first = digests.of(str(file), facts)
    digests.keep()
    stored = next((tmp_path / "home" / "mcp-cache").glob("*.digests.json"))
    stored.write_text(stored.read_text().replace(first, "remembered"))

    assert FileDigests(tmp_path / "home", "/p", AT_ONCE).of(str(file), file.stat()) == "remembered"
    file.write_text("other")
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # same size and time: only ctime tells
    assert FileDigests(tmp_path / "home", "/p", AT_ONCE).of(str(file), file.stat()) not in ("remembered", first)


def test_a_stored_digest_does_not_start_a_server(place: Place) -> None:
    """Whatever runs as the user could have stored it."""
    place.limits = AT_ONCE
    file = place.write("server.py", "agreed")
    place.servers({"srv": {"command": "python3", "args": ["server.py"]}})
    place.agree("srv")
    facts = file.stat()
    first = FileDigests().of(str(file), facts)
    file.write_text("edited")
    place.configured()
    stored = next((place.home / "mcp-cache").glob("*.digests.json"))
    stored.write_text(stored.read_text().replace(FileDigests().of(str(file), file.stat()), first))
    found = place.configured()
    assert [one.name for one in found.servers] == ["srv"]
    assert "server.py" in (found.why_changed("srv", place.place) or "")


def test_the_digest_of_a_file_that_has_just_changed_is_not_remembered(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("first")
    facts = file.stat()
    digests = FileDigests()
    first = digests.of(str(file), facts)
    file.write_text("other")
    assert digests.of(str(file), facts) != first  # as if the clock were too coarse to tell them apart
