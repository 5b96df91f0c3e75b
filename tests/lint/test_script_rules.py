"""Rules for scripts: each finds what it is for, and leaves alone what is sound."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.lint.workbench import Workbench
from wave_agent.lint.codes import CODES
from wave_agent.recipes import LANGUAGES, load_recipe, recipe_names, settings_group

BASH = "#!/usr/bin/env bash\n"
SH = "#!/bin/sh\n"
PYTHON = "#!/usr/bin/env -S python3 -I\nimport json\nimport sys\n"
NODE = '#!/usr/bin/env node\nconst { readFileSync } = require("fs");\n'

BLOCKS = "if [[ $x == *rm* ]]; then echo no >&2; exit 2; fi\n"
JQ = "command -v jq >/dev/null || exit 2\n"

SHELL: list[tuple[str, str, str, str]] = [
    # code, "" if nothing is to be found; event; what it is about; script
    ("W201", "PreToolUse", "jq without a check", "x=$(jq -r .tool_input.command)\n"),
    ("", "PreToolUse", "jq with a check", JQ + "x=$(jq -r .tool_input.command)\n"),
    ("", "PreToolUse", "jq found by which", "which jq >/dev/null || exit 2\nx=$(jq -r .a)\n"),
    ("", "PreToolUse", "jq whose failure is handled", "x=$(jq -r .a) || { echo no >&2; exit 2; }\n"),
    ("", "PreToolUse", "jq whose failure is tested", "if ! x=$(jq -r .a); then exit 2; fi\n"),
    ("", "PreToolUse", "jq in a string", "cat >/dev/null; echo 'jq is a program'\n"),
    ("", "PreToolUse", "jq in a comment", "cat >/dev/null # jq would do\n"),
    ("W204", "PreToolUse", "set -e before jq", "set -euo pipefail\n" + JQ + "x=$(jq -r .a)\n" + BLOCKS),
    ("W204", "PreToolUse", "errexit before grep", "set -o errexit\nx=$(grep -o a)\n" + BLOCKS),
    ("", "PreToolUse", "set -e with a trap", "set -e\ntrap 'exit 2' ERR\n" + JQ + "x=$(jq -r .a)\n" + BLOCKS),
    ("", "PreToolUse", "set -u", "set -u\n" + JQ + "x=$(jq -r .a)\n" + BLOCKS),
    ("", "PreToolUse", "set -e where everything is tested", "set -e\n" + JQ + "x=$(jq -r .a) || exit 2\n" + BLOCKS),
    ("", "PostToolUse", "set -e in a formatter", "set -e\n" + JQ + "x=$(jq -r .a)\n"),
    ("W205", "PreToolUse", "a guard on a variable", "if [[ $TOOL_INPUT == *rm* ]]; then exit 2; fi\n"),
    ("W216", "PreToolUse", "a guard on what may be cut", 'case "$2" in *rm*) exit 2 ;; esac\n'),
    ("W216", "PreToolUse", "the same through a pipe", 'if printf %s "${2}" | grep -q rm; then exit 2; fi\n'),
    ("W216", "UserPromptSubmit", "a prompt", "if [[ $1 == *key* ]]; then exit 2; fi\n"),
    ("", "PreToolUse", "a guard on the tool's name", "if [[ $1 == Bash ]]; then exit 2; fi\n"),
    ("", "PostToolUse", "what blocks nothing", 'echo "$2" >> log\n'),
    ("W216", "PreToolUse", "a guard on its arguments", "COMMAND=$2\nif [[ $COMMAND == *rm* ]]; then exit 2; fi\n"),
    ("", "PreToolUse", "a guard that reads", "COMMAND=$(cat)\nif [[ $COMMAND == *rm* ]]; then exit 2; fi\n"),
    ("", "PreToolUse", "a guard on a file", "[ ! -f .frozen ] || exit 2\n"),
    ("W207", "PostToolUse", "a variable nobody sets", 'prettier --write "$CLAUDE_FILE_PATHS"\n'),
    ("W207", "PostToolUse", "also with a default", 'x="${CLAUDE_TOOL_INPUT:-}"\n'),
    ("", "PostToolUse", "one that it sets itself", 'CLAUDE_TOOL_INPUT=$(cat)\necho "$CLAUDE_TOOL_INPUT" >&2\n'),
    ("", "PostToolUse", "one that agents set", 'echo "$CLAUDE_PROJECT_DIR" "$CLAUDE_SESSION_ID" >&2\n'),
    ("", "PostToolUse", "one in a comment", "cat >/dev/null # not $CLAUDE_FILE_PATHS\n"),
    ("W208", "PreToolUse", "curl before a call", "cat >/dev/null\ncurl -s https://example.com/judge\n"),
    ("", "PreToolUse", "curl with a limit", "cat >/dev/null\ncurl --max-time 2 https://example.com/judge\n"),
    ("", "PreToolUse", "curl to this machine", "cat >/dev/null\ncurl -s http://localhost:8080/judge\n"),
    ("", "PreToolUse", "curl in the background", "cat >/dev/null\ncurl -s https://example.com/log &\n"),
    ("", "PreToolUse", "curl as a word", "x=$(cat)\nif [[ $x == *'curl http'* ]]; then echo no >&2; exit 2; fi\n"),
    ("", "PostToolUse", "curl after a call", "cat >/dev/null\ncurl -s https://example.com/log\n"),
    ("W209", "Stop", "a Stop that never ends", "cat >/dev/null\nmake test || { echo broken >&2; exit 2; }\n"),
    ("", "Stop", "one that ends", "x=$(cat)\n[[ $x == *stop_hook_active*true* ]] && exit 0\necho no >&2\nexit 2\n"),
    ("", "Stop", "one that counts", "x=$(cat)\n[[ $x == *stop_block_count*3* ]] && exit 0\necho no >&2\nexit 2\n"),
    ("", "Stop", "one that only tells", "cat >/dev/null\necho done\n"),
    (
        "W210",
        "PreToolUse",
        "BLOCKED and exit 1",
        'x=$(cat)\nif [ "$x" ]; then\n  echo "BLOCKED: no" >&2\n  exit 1\nfi\n',
    ),
    ("W210", "PreToolUse", "in one line", 'x=$(cat)\n[ -z "$x" ] || { echo "not allowed" >&2; exit 1; }\n'),
    (
        "W210",
        "PreToolUse",
        "a function that blocks",
        'x=$(cat)\nblock() {\n  echo "$1" >&2\n  exit 1\n}\n[[ $x ]] || block a\n',
    ),
    (
        "",
        "PreToolUse",
        "a function that fails",
        'x=$(cat)\nfail() {\n  echo "$1" >&2\n  exit 1\n}\n[[ $x ]] || fail a\n',
    ),
    ("", "PreToolUse", "BLOCKED and exit 2", 'x=$(cat)\nif [ "$x" ]; then\n  echo "BLOCKED: no" >&2\n  exit 2\nfi\n'),
    ("", "PreToolUse", "another failure", "x=$(cat)\necho 'no configuration' >&2\nexit 1\n"),
    ("", "SessionStart", "where nothing can be blocked", "cat >/dev/null\necho 'Access denied' >&2\nexit 1\n"),
    ("W210", "PreToolUse", "in a here-document", "x=$(cat)\ncat >&2 <<'END'\nBLOCKED: no\nEND\nexit 1\n"),
    ("", "PreToolUse", "a here-document on stderr", "x=$(cat)\ncat <<'END' >&2\nno rm\nEND\nexit 2\n"),
    (
        "W210",
        "PreToolUse",
        "stderr named first, exit 1",
        "x=$(cat)\nif [[ $x ]]; then\n  echo >&2 'BLOCKED'\n  exit 1\nfi\n",
    ),
    ("", "PreToolUse", "a status of the printing", "x=$(cat)\nprintf '%s' \"$x\" || exit 2\n"),
    ("W212", "PreToolUse", "a here-document on stdout", "x=$(cat)\ncat <<'END'\nno rm\nEND\nexit 2\n"),
    ("", "PreToolUse", "jq, perhaps looked for elsewhere", "source ./lib.sh\nx=$(jq -r .a)\n"),
    ("W211", "PostToolUse", "tool_output", JQ + "x=$(jq -r '.tool_output')\n"),
    ("", "PostToolUse", "tool_response", JQ + "x=$(jq -r '.tool_response.stdout // .tool_output')\n"),
    ("", "PostToolUse", "a transcript", JQ + "t=$(jq -r .transcript_path)\njq -r '.tool_result' \"$t\"\n"),
    ("W212", "PreToolUse", "the reason on stdout", "x=$(cat)\nif [[ $x ]]; then\n  echo 'no rm'\n  exit 2\nfi\n"),
    ("", "PreToolUse", "the reason on stderr", "x=$(cat)\nif [[ $x ]]; then\n  echo 'no rm' >&2\n  exit 2\nfi\n"),
    ("", "PreToolUse", "stderr named first", "x=$(cat)\nif [[ $x ]]; then\n  printf >&2 '%s' no\n  exit 2\nfi\n"),
    ("", "PreToolUse", "a block on stderr", "x=$(cat)\n{\n  echo 'no rm'\n  exit 2\n} >&2\n"),
    ("", "PreToolUse", "JSON on stdout", 'x=$(cat)\necho \'{"decision":"block"}\'\nexit 2\n'),
    ("W202", "PreToolUse", "approve", 'cat >/dev/null\necho \'{"decision": "approve"}\'\n'),
    ("W202", "Stop", "a word that is none", 'x=$(cat) # stop_hook_active\necho \'{"decision": "continue"}\'\n'),
    ("", "PostToolUse", "block", 'cat >/dev/null\necho \'{"decision": "block", "reason": "x"}\'\n'),
    ("", "PreToolUse", "the new words", 'cat >/dev/null\necho \'{"permissionDecision": "allow"}\'\n'),
    ("W217", "PreToolUse", "a misspelt decision", 'cat >/dev/null\necho \'{"decison": "block"}\'\n'),
    ("W217", "PreToolUse", "a misspelt object", 'cat >/dev/null\necho \'{"hookSpecificOuput": {"a": 1}}\'\n'),
    ("W217", "PreToolUse", "in jq's words", JQ + "cat >/dev/null\njq -n '{permission_decision: \"deny\"}'\n"),
    ("", "PreToolUse", "a key of another agent", 'cat >/dev/null\necho \'{"permission": "deny", "precision": {}}\'\n'),
    ("", "PreToolUse", "both", 'cat >/dev/null\necho \'{"Decision": "deny", "decision": "block"}\'\n'),
    ("W214", "PreToolUse", "a syntax error", "cat >/dev/null\nif true; then\n"),
    ("W214", "PreToolUse", "one after which bash -n exits with 0", "cat >/dev/null\nexit 0\nif [[ x; then\n"),
    ("", "PreToolUse", "a warning of bash -n", "cat <<END >/dev/null\nx\n"),
]


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


def ids(rows: list[Any]) -> list[str]:
    return [f"{row[2]}: {row[0] or 'nothing'}" for row in rows]


@pytest.mark.parametrize(("code", "event", "about", "text"), SHELL, ids=ids(SHELL))
def test_shell_scripts(bench: Workbench, code: str, event: str, about: str, text: str) -> None:
    found = bench.script(BASH + text, event)
    assert [one for one in found if not one.startswith("SC")] == ([code] if code else []), about


@pytest.mark.parametrize(
    ("head", "command", "text", "found"),
    [
        (SH, "./hook.sh", 'x=$(cat)\nif [[ "$x" == *a* ]]; then exit 2; fi\n', True),
        (SH, "./hook.sh", "x=$(cat)\ncat <<<a\n", True),
        (SH, "./hook.sh", "set -o pipefail\ncat >/dev/null\n", True),
        (SH, "./hook.sh", "x=$(cat)\necho ${x,,}\n", True),
        (SH, "./hook.sh", "function f() { cat; }\nf\n", True),
        (BASH, "sh ./hook.sh", "x=$(cat)\n[[ $x ]]\n", True),
        (SH, "bash ./hook.sh", "x=$(cat)\n[[ $x ]]\n", False),
        (SH, "./hook.sh", 'x=$(cat)\nif [ "$x" = a ]; then exit 1; fi\necho ${x:-0} ${x#c} ${1:-2}\n', False),
        (SH, "./hook.sh", "x=$(cat)\necho ${x:0:3}\n", True),
        (SH, "./hook.sh", "cat >/dev/null\necho '[[ is Bash ]]'\n", False),
    ],
)
def test_bash_under_sh(bench: Workbench, head: str, command: str, text: str, found: bool) -> None:
    bench.write("hook.sh", head + text)
    bench.hook(command, "PostToolUse")
    assert ("W213" in bench.codes()) is found


LOAD = "event = json.load(sys.stdin)\n"
TRIED = "try:\n    event = json.load(sys.stdin)\nexcept ValueError:\n    sys.exit(2)\n"
DENY = "if 'rm' in event['tool_input']['command']:\n    print('no', file=sys.stderr)\n    sys.exit(2)\n"
PYTHONS: list[tuple[str, str, str, str]] = [
    ("W203", "PreToolUse", "json.load alone", LOAD + DENY),
    ("W203", "PreToolUse", "json.loads of stdin", "event = json.loads(sys.stdin.read())\n" + DENY),
    ("", "PreToolUse", "json.load in a try", TRIED + DENY),
    ("", "PreToolUse", "a function called in a try",
     "def main():\n    event = json.load(sys.stdin)\n    if event:\n        sys.exit(2)\n"
     "try:\n    main()\nexcept ValueError:\n    sys.exit(2)\n"),
    ("", "PostToolUse", "json.load of a formatter", LOAD + "print(event)\n"),
    ("W206", "PreToolUse", "everything is fine",
     "try:\n    event = json.load(sys.stdin)\n    if event:\n        sys.exit(2)\nexcept Exception:\n    sys.exit(0)\n"),
    ("W206", "PreToolUse", "everything passes",
     "event = {}\ntry:\n    event = json.load(sys.stdin)\nexcept:\n    pass\n" + DENY),
    ("W206", "PreToolUse", "a main function that is content",
     "def main():\n    try:\n        event = json.load(sys.stdin)\n    except Exception:\n        return 0\n    return 2\n"
     "sys.exit(main())\n"),
    ("", "PreToolUse", "everything blocks",
     "try:\n    event = json.load(sys.stdin)\nexcept Exception:\n    sys.exit(2)\n" + DENY),
    ("", "PreToolUse", "only what is expected",
     TRIED + "try:\n    import tomllib\nexcept ImportError:\n    pass\n" + DENY),
    ("W205", "PreToolUse", "nothing is read",
     "import os\ntool_input = os.environ.get('X', '')\nif 'rm' in tool_input:\n    sys.exit(2)\n"),
    ("", "PreToolUse", "a module of one's own may read", "from mine import tool_input\nif tool_input:\n    sys.exit(2)\n"),
    ("W207", "PostToolUse", "environ", "import os\nprint(os.environ['CLAUDE_FILE_PATHS'])\n"),
    ("W207", "PostToolUse", "environ.get", "import os\nprint(os.environ.get('CLAUDE_TOOL_NAME', ''))\n"),
    ("", "PostToolUse", "the project", "import os\nprint(os.environ.get('CLAUDE_PROJECT_DIR'))\n"),
    ("W208", "PreToolUse", "urlopen", TRIED + "from urllib.request import urlopen\nurlopen('https://example.com')\n"),
    ("W208", "PreToolUse", "requests", TRIED + "import requests\nrequests.post('https://example.com', json=event)\n"),
    ("", "PreToolUse", "with a timeout",
     TRIED + "from urllib.request import urlopen\nurlopen('https://example.com', timeout=1)\n"),
    ("", "PreToolUse", "a class", TRIED + "import requests\nprint(requests.Session)\n"),
    ("W209", "Stop", "a Stop that never ends", TRIED + "print('go on', file=sys.stderr)\nsys.exit(2)\n"),
    ("", "Stop", "one that ends", TRIED + "if not event.get('stop_hook_active'):\n    sys.exit(2)\n"),
    ("W210", "PreToolUse", "BLOCKED and exit 1",
     TRIED + "if event:\n    print('BLOCKED', file=sys.stderr)\n    sys.exit(1)\n"),
    ("W210", "PreToolUse", "raised", TRIED + "if event:\n    print('Not allowed')\n    raise SystemExit(1)\n"),
    ("W210", "PreToolUse", "a function that blocks",
     TRIED + "def block(why):\n    print(why, file=sys.stderr)\n    sys.exit(1)\nif event:\n    block('a')\n"),
    ("", "PreToolUse", "a function that fails",
     TRIED + "def fail(why):\n    print(why, file=sys.stderr)\n    sys.exit(1)\nif event:\n    fail('a')\n"),
    ("", "PreToolUse", "another failure", TRIED + "if event:\n    print('no file', file=sys.stderr)\n    sys.exit(1)\n"),
    ("W211", "PostToolUse", "tool_result", TRIED + "print(event.get('tool_result'))\n"),
    ("", "PostToolUse", "either", TRIED + "print(event.get('tool_response') or event.get('tool_result'))\n"),
    ("W212", "PreToolUse", "the reason on stdout", TRIED + "if event:\n    print('no rm')\n    sys.exit(2)\n"),
    ("", "PreToolUse", "the reason on stderr", TRIED + "if event:\n    print('no', file=sys.stderr)\n    sys.exit(2)\n"),
    ("", "PreToolUse", "JSON", TRIED + "if event:\n    print(json.dumps({'decision': 'block'}))\n    sys.exit(2)\n"),
    ("W202", "PreToolUse", "approve", TRIED + "print(json.dumps({'decision': 'approve'}))\n"),
    ("", "PreToolUse", "a variable called decision", TRIED + "decision = event.get('x')\nprint(decision == 'approved')\n"),
    ("W214", "PreToolUse", "a syntax error", "if:\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "more", "code"),
    [
        ("#!/usr/bin/env python3", "", "W215"),
        ("#!/usr/bin/python3", "from os import path\n", "W215"),
        ("#!/usr/bin/env -S python3 -I", "", ""),
        ("#!/usr/bin/python3 -sP", "", ""),
        ("#!/usr/bin/env python3", "import mine\n", ""),
        ("#!/usr/bin/env python3", "from . import mine\n", ""),
        ("#!/usr/bin/env -S uv run --script python", "", ""),
    ],
)
def test_a_python_guard_is_isolated_unless_it_needs_its_neighbours(
    bench: Workbench, first: str, more: str, code: str
) -> None:
    text = f"{first}\nimport json, sys\n{more}{TRIED}if event:\n    print('no', file=sys.stderr)\n    sys.exit(2)\n"
    assert [one for one in bench.script(text, "PreToolUse", name="hook.py") if one == "W215"] == (
        [code] if code else []
    )


@pytest.mark.parametrize(("code", "event", "about", "text"), PYTHONS, ids=ids(PYTHONS))
def test_python_scripts(bench: Workbench, code: str, event: str, about: str, text: str) -> None:
    assert bench.script(PYTHON + text, event, name="hook.py") == ([code] if code else []), about


PARSE = 'const event = JSON.parse(readFileSync(0, "utf8"));\n'
PARSED = "let event;\ntry { event = JSON.parse(readFileSync(0)); } catch { process.exit(2); }\n"
NO = 'if (event.tool_input.command.includes("rm")) { console.error("no"); process.exit(2); }\n'
NODES: list[tuple[str, str, str, str]] = [
    ("W203", "PreToolUse", "JSON.parse alone", PARSE + NO),
    ("", "PreToolUse", "JSON.parse in a try", PARSED + NO),
    ("W206", "PreToolUse", "everything is fine", PARSED.replace("exit(2)", "exit(0)") + NO),
    ("W205", "PreToolUse", "nothing is read", "const tool_input = globalThis.x;\nif (tool_input) process.exit(2);\n"),
    ("W207", "PostToolUse", "env", "console.log(process.env.CLAUDE_FILE_PATHS);\n"),
    ("", "PostToolUse", "env of an agent", "console.log(process.env.CLAUDE_PROJECT_DIR);\n"),
    ("W208", "PreToolUse", "fetch", PARSED + 'fetch("https://example.com/judge");\n'),
    ("", "PreToolUse", "with a limit",
     PARSED + 'fetch("https://example.com/judge", { signal: AbortSignal.timeout(500) });\n'),
    ("W209", "Stop", "a Stop that never ends", PARSED + 'console.error("go on"); process.exit(2);\n'),
    ("W210", "PreToolUse", "BLOCKED and exit 1",
     PARSED + 'if (event.x) {\n  console.error("BLOCKED");\n  process.exit(1);\n}\n'),
    ("W210", "PreToolUse", "a function that blocks",
     PARSED + 'function block(reason) {\n  console.error(reason);\n  process.exit(1);\n}\nif (event.x) block("a");\n'),
    ("", "PreToolUse", "after a function that blocks",
     PARSED + 'const block = (why) => {\n  process.exit(2);\n}\nif (event.x) {\n  process.exit(1);\n}\n'),
    ("W211", "PostToolUse", "tool_output", PARSE + "console.log(event.tool_output);\n"),
    ("W212", "PreToolUse", "the reason on stdout",
     PARSED + '\n\n\nif (event.x) {\n  console.log("no");\n  process.exit(2);\n}\n'),
    ("W202", "PreToolUse", "approve", PARSED + 'console.log(JSON.stringify({ decision: "approve" }));\n'),
]  # fmt: skip


@pytest.mark.parametrize(("code", "event", "about", "text"), NODES, ids=ids(NODES))
def test_node_scripts(bench: Workbench, code: str, event: str, about: str, text: str) -> None:
    assert bench.script(NODE + text, event, name="hook.js") == ([code] if code else []), about


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hook.sh", BASH + "set -e\n" + JQ + "x=$(jq -r .a)\n" + BLOCKS),
        ("hook.py", PYTHON + LOAD + DENY),
        ("hook.js", NODE + PARSE + NO),
    ],
)
def test_a_guard_whose_failure_blocks_may_fail(bench: Workbench, name: str, text: str) -> None:
    assert bench.script(text, name=name, onFailure="block") == []


def test_every_recipe_is_clean(bench: Workbench) -> None:
    groups: dict[str, list[Any]] = {}
    for name in recipe_names():
        recipe = load_recipe(name)
        for language, text in recipe.scripts.items():
            file = f".wave/hooks/{name}.{LANGUAGES[language]}"
            bench.write(file, text)
            groups.setdefault(recipe.event, []).append(settings_group(recipe.entry, file))
    bench.settings(groups)
    report = bench.check()
    assert [(one.file, one.line, one.code, one.reason) for one in report.findings] == []
    assert len(report.files) == 1 + sum(len(load_recipe(name).scripts) for name in recipe_names())


def test_every_code_has_an_example_that_has_it_and_one_that_has_not() -> None:
    tested = {row[0] for table in (SHELL, PYTHONS, NODES) for row in table} | {"W213", "W215"}
    assert {code for code in CODES if code.startswith("W2")} <= tested


def test_a_comment_switches_a_finding_off_for_its_line_or_alone_for_the_file(bench: Workbench) -> None:
    text = 'echo "$CLAUDE_FILE_PATHS" >&2\n'
    assert bench.script(BASH + text, "PostToolUse") == ["W207"]
    assert bench.script(BASH + text[:-1] + " # wave: ignore W207\n", "PostToolUse") == []
    assert bench.script(BASH + text[:-1] + " # wave: ignore W201\n", "PostToolUse") == ["W207"]
    assert bench.script(BASH + "# wave: ignore W201, W207\n" + text, "PostToolUse") == []
    assert bench.script(NODE + "// wave: ignore W207\nx(process.env.CLAUDE_FILE);\n", "PostToolUse", name="a.js") == []


def test_a_finding_names_its_line(bench: Workbench) -> None:
    bench.script(BASH + "\n\nx=$(jq -r .a)\n", "PostToolUse")
    (one,) = bench.check().findings
    assert (one.file, one.line) == (str(bench.project / "hook.sh"), 4)


def test_a_script_that_several_hooks_run_is_told_once(bench: Workbench) -> None:
    bench.write("hook.sh", BASH + "x=$(jq -r .a)\n")
    hooks = [{"command": "./hook.sh"}, {"command": "bash ./hook.sh"}]
    bench.settings({"PreToolUse": [{"hooks": hooks}], "Stop": [{"hooks": hooks}]})
    assert bench.codes() == ["W201"]


def test_what_is_no_script_is_left_alone(bench: Workbench) -> None:
    bench.write("data.bin", "\0\0")
    (bench.project / "raw.sh").write_bytes(b"\xff\xfe")
    bench.hook("cat data.bin raw.sh")
    assert bench.codes() == []


def test_shellcheck_is_asked_where_it_is_installed(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of that name stands in for it: what counts is what is made of its answer."""
    programs = tmp_path / "programs"
    programs.mkdir()
    said = '[{"line": 2, "level": "warning", "code": 2086, "message": "Double quote to prevent globbing."}]'
    (programs / "shellcheck").write_text(
        f"#!/bin/sh\ncat >/dev/null\necho \"$@\" > '{tmp_path}/asked'\necho '{said}'\nexit 1\n"
    )
    (programs / "shellcheck").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{Path(str(shutil.which('sh'))).parent}")
    bench.write("hook.sh", BASH + "cat $HOME/x\n")
    bench.hook("./hook.sh", "PostToolUse")
    (one,) = bench.check().findings
    assert (one.code, one.line, one.level, one.reason) == (
        *("SC2086", 2, "warning", "Double quote to prevent globbing."),
    )
    assert "--severity=warning" in (tmp_path / "asked").read_text()
    assert bench.script(BASH + "# wave: ignore SC2086\ncat $HOME/x\n", "PostToolUse") == []
    (programs / "shellcheck").write_text("#!/bin/sh\ncat >/dev/null\necho broken\n")
    assert bench.script(BASH + "cat $HOME/x\n", "PostToolUse") == []
