"""Two readers of Bash for restrictions: what they do not agree on restricts, and ordinary commands they agree on."""

import tomllib
from pathlib import Path

import pytest

from tests.rows import rows
from wave_agent.rules.rule import Places, parse_rule
from wave_agent.shell.doubt import could_run, forms, may_make
from wave_agent.shell.grammar import LONGEST
from wave_agent.shell.reader import read_line, read_writes
from wave_agent.shell.simple import SimpleReading
from wave_agent.shell.sources import reports

PLACES = Places("/srv/project", "/home/me")
CLASSES = Path(__file__).parents[1] / "attacks" / "classes"


def restricts(rule: str, command: str) -> bool:
    return parse_rule(f"Bash({rule})").matches("Bash", {"command": command}, PLACES)


def attempts() -> list[str]:
    names = ("two_readers", "unknown_command_words", "text_that_reaches_a_shell")
    read = [tomllib.loads((CLASSES / f"{name}.toml").read_text()) for name in names]
    return [attempt["line"] for one in read for attempt in one["attempt"]]


@rows("line", attempts())
def test_a_rule_sees_each_of_the_attacks(line: str) -> None:
    assert restricts("git push:*", line)


@rows("line", attempts())
def test_a_rule_sees_each_of_them_in_a_line_that_is_too_long_for_the_grammar(line: str) -> None:
    assert restricts("git push:*", f"{line}\ncat > f <<'END OF IT'\n{'text ' * (LONGEST // 5)}\nEND OF IT\n")


ORDINARY = [
    'git commit -m "don\'t git push yet"',
    "git commit -m 'Describe rm -rf in the docs'",
    'git tag -a v1.0 -m "release $(date +%F)"',
    "git stash push -m wip",
    'for f in *.py; do black "$f"; done',
    "for f in $(git ls-files '*.c'); do clang-format -i \"$f\"; done",
    'while read -r line; do echo "$line"; done < input.txt',
    "until curl -sf http://localhost:8080/health; do echo waiting; sleep 2; done",
    'echo "$(date)" > x',
    'export NVM_DIR="$HOME/.nvm" && [ -s "$NVM_DIR/nvm.sh" ] && . "$NVM_DIR/nvm.sh"',
    'docker run --rm -it -v "$(pwd)":/app -w /app node:18 sh -c "npm ci && npm test"',
    "docker build -t myapp:$(git rev-parse --short HEAD) .",
    "docker rm $(docker ps -aq)",
    "npm run build && git add -A",
    "python3 - <<'EOF'\nimport os\nprint(os.getcwd())\nEOF",
    "find . -type f -name '*.js' -not -path './node_modules/*' -exec sed -i 's/foo/bar/g' {} +",
    "grep -E '^(foo|bar)\\b' file | awk '{print $2}' | sort -u",
    "cat > config.yaml <<EOF\nname: $NAME\nversion: 1\nEOF",
    "cat <<'EOF' > notes.md\nRun `git push` and then $(make deploy); \"don't\" forget `rm -rf dist`.\nEOF",
    "curl -fsSL https://example.org/setup | sudo -E bash -",
    "bash <(curl -s https://example.org/bash)",
    'sh -c "$(curl -fsSL https://example.org/install.sh)"',
    'eval "$(ssh-agent -s)"',
    "eval $(minikube docker-env)",
    "source <(kubectl completion bash)",
    "$(go env GOPATH)/bin/golangci-lint run",
    '"$(npm bin)"/jest --coverage',
    "if [ -f .env ]; then export $(grep -v '^#' .env | xargs); fi",
    "if ! command -v jq >/dev/null 2>&1; then echo 'jq is missing' >&2; exit 1; fi",
    'if [[ "$OSTYPE" == "darwin"* ]]; then brew install x; else sudo apt-get install -y x; fi',
    "ps aux | grep '[n]ode' | awk '{print $2}' | xargs kill -9",
    "kill $(lsof -t -i:8080)",
    "nohup python app.py > app.log 2>&1 &",
    "(cd frontend && npm run dev) & (cd backend && flask run) & wait",
    'SCRIPT_DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"',
    "FILES=$(git diff --name-only HEAD~1 | grep '\\.py$' || true); [ -z \"$FILES\" ] || flake8 $FILES",
    "diff <(sort a.txt) <(sort b.txt)",
    "trap 'kill $PID' EXIT; ./server & PID=$!; sleep 1; curl localhost:80",
    'case "$1" in start) ./start.sh ;; stop) ./stop.sh ;; *) echo "usage"; exit 1 ;; esac',
    'run() { echo "+ $*"; "$@"; }; run make test',
    "x=5; y=$((x * 2 + 1)); echo $y",
    'arr=(a b c); for x in "${arr[@]}"; do echo "$x"; done; echo ${#arr[@]}',
    'find . -type f | while read -r f; do mv "$f" "${f// /_}"; done',
    'rm "$(git ls-files -o --exclude-standard | head -1)"',
    "rm ${TMPDIR:-/tmp}/foo.*",
    'rm "${file%.gz}"',
    "gh pr create --title Fix --body \"$(cat <<'EOF'\n- don't `git push` twice\n- rm -rf is gone\nEOF\n)\"",
    "timeout 30 bash -c 'until nc -z localhost 3306; do sleep 1; done'",
    "cat urls.txt | xargs -P 8 -n 1 curl -O",
    "alias ll='ls -la'",
    'read -p "Continue? [y/N] " -n 1 -r; [[ $REPLY =~ ^[Yy]$ ]] && echo ok',
    '"${PYTHON:-python3}" -m pip install --upgrade pip',
    "$CC -O2 -o hello hello.c",
    '"$JAVA_HOME/bin/java" -jar app.jar',
    "./scripts/$ENV.sh --verbose",
    "kubectl exec -it $(kubectl get pod -l app=web -o name | head -1) -- bash",
    "exec 3>&1; exec 3>&-",
    "case x in a | b) ;; esac; ls",
    "f() { ls; }\nfunction g() { ls; }\nf; g",
    "a=(\n  1 # one\n  2\n)\nls",
]


@rows("line", ORDINARY)
@rows("rule", ["git push:*", "rm -rf:*"])
def test_an_ordinary_command_is_let_pass(rule: str, line: str) -> None:
    assert not restricts(rule, line)


def test_a_long_document_that_only_mentions_it_is_let_pass() -> None:
    document = 'Then `git push`; or (git push) && "don\'t".\n' * 1000
    line = f"cat > notes.md <<'EOF'\n{document}EOF\nls {{a,b}}; echo $HOME > $x; A=1 make | tee log"
    assert len(line) > LONGEST
    assert read_line(line).understood
    assert not restricts("git push:*", line)
    assert [write.pattern for write in read_writes(line, {}, "/p")][:1] == ["/p/notes.md"]


@rows(
    "line",
    [
        "$x push",
        "x=git; $x push",
        "GIT_EDITOR='git push' git commit --amend",
        "echo git push | sh",
        "bash <<'E'\ngit push\nE",
        "y={a,b}" + "{a,b}" * 500,
        "{a,b}" * 500 + " x",
        "'unclosed; git push",
    ],
)
def test_a_line_that_is_too_long_for_the_grammar_is_read_by_the_simple_reader(line: str) -> None:
    assert restricts(
        "git push:*",
        f"cat <<'END'\n{'text ' * 5000}\nEND\n{line}\ngit push"
        if "y=" in line
        else f"cat <<'END'\n{'text ' * 5000}\nEND\n{line}",
    )


def test_a_line_of_128_kb_is_given_up_after_a_bounded_number_of_words() -> None:
    for unit in ("$x ", "'a' ", "`", "(", "a=b ", "<(", "$'a'", "${x:-", "$((", '"$x" ', "\\a "):
        reading = SimpleReading(unit * (131_072 // len(unit)))
        assert not reading.exact
        assert reading.parts <= 6001
        assert len(reading.commands) <= 801
    many = SimpleReading("a;" * 65_000)
    assert (many.exact, len(many.commands)) == (False, 801)


UNSURE = [
    "((a",
    "for ((i=0) x; do :; done",
    "case x in a|) b;; esac",
    "a[1 + 2]=x",
    "for",
    "for x in a | b; do :; done",
    "for x in a",
    "case x",
    "case x of a) ;; esac",
    "case x in a; esac",
    "[[ a",
    "cat <",
    "cat <<$(x)\nE",
    "cat <<E",
    "cat <<E\nno end",
    "echo a(b)",
    "a b ()",
    ")",
    ";;",
    "(a",
    "echo 'a",
    'echo "a',
    "echo $'a",
    "echo `a",
    "echo $[1]",
    "echo ${x",
    "echo $((1)",
    "echo ${x:-'a'}",
    "echo $(( 'a' ))",
    "((a b))",
    "done x",
    "coproc x",
    "time (x)",
    "in x",
    "echo " + "$(" * 40 + ")" * 40,
    "( " * 40 + ")" * 40,
    "((a); b)",
    "((1) )",
    "&",
    "> ;",
]


@rows("line", UNSURE[:-4])
def test_the_simple_reader_knows_where_it_is_not_sure(line: str) -> None:
    assert not SimpleReading(line).exact


SURE = {
    "a 'b c' \"d\\\"e\" f\\ g $'\\x41' $\"h\" #i": [("a", "b c", 'd"e', "f g", "A", "h")],
    "a \\\n b; # c\nd": [("a", "b"), ("d",)],
    "for x; do a; done": [("a",)],
    "for ((i=0;i<1;i++)); do a; done": [("a",)],
    "for x in <(a) b; do c $x; done": [("a",), ("c", None)],
    "select x in a; do b; done": [("b",)],
    "case $(a) in (b|c) d ;; *) e ;& f) g;; esac; h": [("a",), ("d",), ("e",), ("g",), ("h",)],
    "case a in b) c\nesac": [("c",)],
    "case a in esac": [],
    "[[ a < b && ( c =~ ^(d|e)$ ) && $(f) ]] && g <(h)": [("f",), ("h",), ("g", None)],
    "x=(1 # one\n $(a)) y=b c": [("a",), ("c",)],
    "declare -a x=(1)": [],
    "x=(#one\n1); a": [("a",)],
    "f() { a; }; function g { b; }; function h() { c; }": [("a",), ("b",), ("c",)],
    "if a; then b; elif c; then d; else e; fi > f": [("a",), ("b",), ("c",), ("d",), ("e",), (">", "f")],
    "while a; do b; done; until c; do d; done": [("a",), ("b",), ("c",), ("d",)],
    "{ { a; } }; ! b; time c": [("a",), ("b",), ("time", "c")],
    "a <<-E | b\n\tx $(c) \\$ `d`\n\tE\ne": [("a",), ("<<", "E"), ("b",), ("c",), ("d",), ("e",)],
    "a <<'E'\n$(b)\nE": [("a",), ("<<", "'E'")],
    "a `b \\`c\\`` \"`d \\\"e\\\"`\"": [("c",), ("b", None), ("d", "e"), ("a", None, None)],
    "a $((1 + (2) + $(b))) ${x:-$(c)} ${x} $x $ $1": [("b",), ("c",), ("a", None, None, None, None, "$", None)],
    "((x = 1)); $( (a) )": [("a",), (None,)],
    "a 2>&1 &> b {fd}> c >| d <<< e >&- | f &": [
        *[("a",), (">&", "1"), ("&>", "b"), (">", "c"), (">|", "d"), ("<<<", "e"), (">&", "-"), ("f",)],
    ],
}  # fmt: skip


@rows("line", SURE)
def test_the_simple_reader_finds_every_command(line: str) -> None:
    reading = SimpleReading(line)
    assert (reading.signature(), reading.exact) == (SURE[line], True)


@rows("line", [*UNSURE, *SURE])
def test_whatever_the_simple_reader_makes_of_a_line_a_rule_sees_what_follows(line: str) -> None:
    assert restricts("git push:*", f"{line}\ngit push") or "<<" in line


@rows(
    ("pattern", "line"),
    [
        ("git push:*", "x git -C . -c a=b push"),
        ("git push*", "git pushd"),
        ("git push:*", "$x push"),
        ("git push:*", "git $x"),
        ("git push:*", "g''it pu\\sh"),
        ("git push:*", "git {push,}"),
        ("git push:*", "x=git; $x push"),
        ("git push:*", "$'\\x67it' push"),
        ("git push:*", "git >f push"),
        ("git push:*", "git -c 'a=;b' push"),
        ("curl *| sh*", "x curl y | sh"),
        ("* --force", "a b --force"),
        ("rm:*", "( rm x"),
    ],
)
def test_a_text_in_doubt_could_run(pattern: str, line: str) -> None:
    assert could_run(pattern, list(forms(line)))


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("git push:*", "git status; docker push x"),
        ("git push:*", "agit push"),
        ("git push:*", "git log push"),
        ("rm:*", "$x y"),
        ("rm -rf:*", "rm $x"),
        ("curl *| sh*", "curl y | cat"),
    ],
)
def test_a_text_in_doubt_could_not_run(pattern: str, line: str) -> None:
    assert not could_run(pattern, list(forms(line)))


def test_a_text_in_doubt_may_make_a_command() -> None:
    assert all(map(may_make, ["( $(x) )", "eval $x", "x | sh", "coproc ${!x}", "time ${x:1} y"]))
    assert not any(map(may_make, ["coproc ls", "echo $(x)", "time (ls)"]))


@rows(
    ("words", "first", "expected"),
    [
        (["curl", "url"], True, True),
        (["/usr/bin/curl", "url"], True, True),
        (["curl", "x", "-w", "%{x}"], True, False),
        (["date"], True, True),
        (["date", "+%s"], True, True),
        (["date", "+%s;x"], True, False),
        (["cat"], True, False),
        (["cat", "file"], True, True),
        (["grep", "x"], True, False),
        (["grep", "word", "file"], True, True),
        (["rev"], True, False),
        (["docker", "run", "x"], True, False),
        (["grep", "x"], False, True),
        (["rev"], False, False),
    ],
)
def test_which_programs_report_what_they_find_elsewhere(words: list[str], first: bool, expected: bool) -> None:
    assert reports(words, first=first) is expected


ANYTHING = [
    "$(rev <<< x)",
    "x=$(rev <<< x); $x",
    "$(<file)",
    "$(cat file)",
    "eval \"$(rev <<< x)\"",
    "eval \"$(< <(rev <<< x))\"",
    "eval \"$(cat <<< x)\"",
    "eval \"$(curl x | rev)\"",
    "eval \"$(a; b)\"",
    "eval \"$(if a; then b; fi)\"",
    "hash -p /x y",
    "enable -f ./x y",
    "BASH_CMDS[x]=y",
    "echo() { :; }",
    "f() { $1; }; f \"$(rev <<< x)\"",
    "set -- \"$(rev <<< x)\"; \"$@\"",
    "printf -v x '%d' 1; $x",
    "printf '%s' " + "a " * 300 + "| sh",
    "x=$(cat f); ${x:1}",
    "x=abc; ${x#*b}",
    "rev <<< x | xargs -I% sh -c %",
    "eval " * 130 + "x",
    "nice " * 40 + "x",
    "`a \\\\`;" * 140,
    "eval 'a';" * 140,
    "/proc/self/fd/3 $(rev <<< x) | sh -c \"$(rev <<< x)\"",
]  # fmt: skip


@rows("line", ANYTHING)
def test_what_a_line_puts_together_itself_may_be_any_command(line: str) -> None:
    assert read_line(line).anything
    assert restricts("terraform apply:*", line)


def test_a_file_that_bash_reads_at_its_start_may_hold_any_command() -> None:
    assert restricts("terraform apply:*", "BASH_ENV=$(rev <<< x) bash -c :")


@rows(
    "line",
    [
        "echo 'git push' | xargs -d, env",
        "echo 'git,push' | xargs -d , env",
        'echo "git push \'" | xargs env',
        "xargs -a list git",
        "find . | xargs -I{} sh -c 'git push {}'",
        "echo 'gi\\t push' | sh",
        "printf '%s ' git push | sh",
        "printf '%%%s\\n' x; printf 'git push\\n' x | sh",
        "time -p x='git push'; $x",
        "! echo 'git push' | sh",
        "alias g='git ' p=push; g p",
        "exec <<< 'git push'; sh",
        "echo git push > s; bash ./s",
        "dir=/x; $y/git push",
        "~/bin/git push",
        "$(pwd)/git push",
        "rm $(find . -name git) && git push",
        "$(printf '%%'); git push",
        "coproc a $(b $(c $(d $(e $(f))))); git push",
    ],
)
def test_more_ways_to_hand_text_to_a_shell(line: str) -> None:
    assert restricts("git push:*", line)


@pytest.mark.parametrize(
    "line", ["coproc sh; rm {a,b}c", "coproc " + "env " * 40 + "rm ac", "coproc rm ac", "time { eval 'rm ac'; }"]
)
def test_what_a_line_that_is_not_understood_writes_to_is_searched_for(line: str) -> None:
    assert not read_line(line).understood
    assert "/p/ac" in [write.pattern for write in read_writes(line, {}, "/p")] or " env env" in line


def test_what_is_made_may_be_an_option_too() -> None:
    assert restricts("rm -rf:*", "rm $(rev <<< fr-) x")
    assert restricts("rm -rf:*", "rev <<< fr- | xargs rm")
    assert not restricts("rm -rf:*", "find . | xargs rm")
    assert not restricts("rm -rf:*", "rm $(mktemp)")


@rows(
    ("line", "matches"),
    [
        ("fc -s", True),
        ("fc", True),
        ("fc -e vi 1", True),
        ("fc -l", False),
        ("fc -ln -5", False),
        ("set -H; ls", True),
        ("set -o histexpand", True),
        ("set -e; ls", False),
        ("history -s git push; fc -s", True),
        ("echo 'git push' > p.sh; bash p*", True),
        ("echo 'git push' > p.sh; bash q*", False),
        ("echo 'git push' > p.sh; ./p*", True),
        ('echo "git push" > p.sh; bash "$X"', True),
        ('curl x > p.sh; "$X" build', False),
        ('"$X" build > p.sh; "$X" build', False),
        ("echo 'git push' > .bashrc; HOME=$PWD bash -i", True),
        ("echo 'git push' > .profile; env HOME=. sh -l", True),
        ("echo 'ls' > .bashrc; bash -i", False),
        ("echo 'git push' > .bashrc", False),
        (": git; $_ push", True),
        ("ls git; cd $_", False),
        ("git subtree --prefix=x push y z", True),
        ("git subtree -P x push y z", True),
        ("git subtree --prefix=x pull y z", False),
        ("git subtree", False),
        ("printf '%s\\n' --checkpoint=1 '--checkpoint-action=exec=git push' | tar cf x -T -", True),
        ("printf '%s\\n' a b | tar cf x -T -", False),
        ("echo x | tar xf -", False),
    ],
)
def test_what_the_line_itself_has_put_somewhere_is_run(line: str, matches: bool) -> None:
    assert restricts("git push:*", line) is matches
