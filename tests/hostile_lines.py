"""Lines of Bash that are made to keep whoever judges them busy: repeats, nesting and mixes of everything there is."""

from random import Random

_PIECES = [
    *("a ", "a;", "a\n", "a|", "a&&", "$a ", "${a} ", "${a:-b} ", "$a$b", "a$a", '"$a"', "$(a) ", "`a`", "$((a)) "),
    *("'a' ", '"a" ', "''", "$'a'", "\\a", "\\\n", "#a\n", "!", "! ", "1", "1>", "w", "é", "\u2028", "\0", "@P}", "_"),
    *("{a,b}", "{1..9}", "{a,{b,c}}", "{,", ",", "[", "[a]", "a[", "x[$(", "[[", "[!a]*", "*", "* ", "*/", "**/", "?/"),
    *("x=a ", "x=$x;", "x+=$x;", "export a=b;", "declare a=b;", "alias a=b;", "f(){ a; };", "set -- a;", "read x;"),
    *(
        "(a);",
        "{ a; };",
        "((a));",
        "[[ a ]];",
        "if a; then b; fi;",
        "for x in a b; do $x; done;",
        "until a; do b; done;",
    ),
    *("case x in (a|b) c;; esac;", "cat <<E\na\nE\n", "cat <<'E'\n$(a)\nE\n", "cat <<< a;", "> a;", "a > b;"),
    *("<", "until a; do b; done;"),
    *("a <(b) ", "a >(b) ", "coproc a;", "trap a EXIT;", "source a;", "eval ", "sudo ", "env ", "time ", "nohup "),
    *("bash -c a;", "bash -c 'a;b';", "sh ", "ssh h a;", "docker run a ", "bwrap ", "setpriv docker run ", "xargs a;"),
    *("echo a|sh;", "echo a|xargs b;", "find . -exec a;", "python3 -c 'a.b/c' ", "perl -e a;", "vim +w a;", "sed w;"),
    *("rm a;", "rm *;", "rm a* b? ", "rm -r a/*/b/*/c;", "cp a b;", "mv a b;", "tee a b c;", "dd of=a;", "tar cf a b;"),
    *("cd a;", "a/../", "../", "./", "~/", "~", "/a", "//", "git ", "git -", "git a;", "git status;", "git stash;"),
    *("git push;", "git\tpush\n", "'git push' ", "git -c a=b c;", "git checkout -- a;", "git * ", "-a ", "a:b=c,d "),
]
_AROUND = [
    *[("(", ")"), ("{ ", "; }"), ("$(", ")"), ("`", "`"), ('"', '"'), ("'", "'"), ("${x:-", "}"), ("$((", "))")],
    *[("if a; then ", "; fi"), ("while a; do ", "; done"), ("case a in b) ", ";; esac"), ("f() { ", "; }")],
    *[
        ("eval '", "'"),
        ('bash -c "', '"'),
        ("<(", ")"),
        (">(", ")"),
        ("cat <<E\n", "\nE\n"),
        ("x=(", ")"),
        ("[[ ", " ]]"),
    ],
    *[("sudo ", ""), ("! ", ""), ("time ", ""), ("echo ", "|sh"), ("find . -exec ", " \\;"), ("trap '", "' EXIT")],
    *[("git -c alias.x='!", "' x"), ("x=", "; $x"), ("a | ", ""), ("$'", "'"), ("{a,", "}"), ("${a[", "]}")],
]
_BEFORE = ["", "", "", "x=a;", "cd a;", "f(){ git $1; };", "alias a=b;", ": $(a);"]
_BEHIND = ["", "git push", "rm -rf x", "$x", "'", "`", ")", "\n"]
LENGTHS = (300, 1500, 5000, 19_000, 19_900, 19_990, 60_000, 131_072)
"""Around what is parsed, and beyond it."""


def hostile_line(random: Random) -> str:
    """One of them."""
    length = random.choice(LENGTHS)
    make = random.choice([_repeated, _repeated, _repeated, _mixed, _nested, _nested, _parted])
    front, behind = random.choice(_BEFORE), random.choice(_BEHIND)
    return front + make(random, length)[: length - len(front) - len(behind)] + behind


def _unit(random: Random) -> str:
    return "".join(random.choices(_PIECES, k=random.choice([1, 1, 1, 2, 2, 3, 4])))


def _repeated(random: Random, length: int) -> str:
    unit = _unit(random)
    return unit * (length // len(unit) + 1)


def _mixed(random: Random, length: int) -> str:
    return "".join(random.choices(_PIECES, k=length // 3))


def _nested(random: Random, length: int) -> str:
    text, usual = _unit(random), random.choice(_AROUND)
    for _ in range(random.choice([3, 8, 20, 28, 60, 200, 1000, 4000])):
        opening, closing = usual if random.random() < 0.7 else random.choice(_AROUND)
        text = opening + text + closing
        if len(text) > length:
            break
    return text * (length // len(text) + 1)


def _parted(random: Random, length: int) -> str:
    (opening, closing), third = random.choice(_AROUND), length // 3
    return _repeated(random, third)[:third] + opening + _repeated(random, third)[:third] + closing
