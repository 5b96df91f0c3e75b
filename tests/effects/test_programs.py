"""What single commands do, where the tables of ways do not say it."""

from tests.effects.arena import surroundings
from tests.rows import rows
from wave_agent.effects.calls import effects_of
from wave_agent.effects.sed_scripts import SedScript, read_sed_script
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import Effects

AROUND = surroundings("/p")


def effects(line: str, around: Surroundings = AROUND) -> Effects:
    return effects_of("Bash", {"command": line}, around)


@rows(
    ("line", "reads", "writes", "deletes"),
    [
        ("true", "", "", ""),
        ("echo $X > /dev/null", "", "", ""),
        ("ls ~ ~/x", "", "", ""),
        ("cat ~", "/p/home", "", ""),
        ("cat ~/.ssh/id", "/p/home/.ssh/id", "", ""),
        ("cat /proc/self/root/etc/x", "/etc/x", "", ""),
        ("cat 'a*b'", "/p/a[*]b", "", ""),
        ("rg x", "/p/**/[!.]*", "", ""),
        ("rg x -g '!a'", "/p/**/[!.]*", "", ""),
        ("rg x -g '*.py' -g .env -g '**'", "/p/**/**.py /p/**/.env /p/**/**", "", ""),
        ("rg x -g 'a/b'", "/p/**", "", ""),
        ("rg x --iglob=.ENV sub", "/p/sub /p/sub/**", "", ""),
        ("rg -uu x", "/p/**", "", ""),
        ("rg -tpy x", "/p/**/[!.]* /p/**/.*.* /p/**/.*rc /p/**/.*log* /p/**/.*profile /p/**/.zshenv", "", ""),
        ("ack x", "/p/**", "", ""),
        ("echo x > .ignore; rg x", "/p/**", "/p/.ignore", ""),
        ("rg x ..", "/ /**/[!.]*", "", ""),
        ("rg x --glob '!a'", "/p/**/[!.]*", "", ""),
        ("find . -path ./a -prune -o -name b -prune -o -name c -print | xargs cat", "/p/**/c", "", ""),
        ("find . -path ./a -prune -o -name c | xargs cat", "/p/**", "", ""),
        ("find . -name a -o -name c -print | xargs cat", "/p/**", "", ""),
        ("rgrep x", "/p /p/**", "", ""),
        ("grep -r x --include='*.py' --include=b src", "/p/src /p/src/**/**.py /p/src/**/b", "", ""),
        ("grep -r x --exclude=b --include=c", "/p /p/**", "", ""),
        ("grep -r x --exclude='*.lock' --exclude-dir=.git", "/p /p/**", "", ""),
        ("grep -r x --exclude=.a", "/p /p/**/[!.]* /p/**/.[!a]* /p/**/.a?*", "", ""),
        ("grep -r x --exclude=ab", "/p /p/**/[!a]* /p/**/.* /p/**/a[!b]* /p/**/ab?* /p/**/a", "", ""),
        ("grep -r x --exclude-from=a.b", "/p /p/** /p/a.b", "", ""),
        ("diff a b", "/p/a /p/b /p/a/* /p/a/.* /p/b/* /p/b/.*", "", ""),
        ("diff -r a b", "/p/a /p/a/** /p/b /p/b/**", "", ""),
        ("diff -r --to-file=a b", "/p/a /p/a/** /p/b /p/b/**", "", ""),
        ("date -f a", "/p/a", "", ""),
        ("find . -iname 'a*' -exec cat {} +", "/p/**/[aA]*", "", ""),
        ("find . -iname '[a]' -exec cat {} +", "/p/**", "", ""),
        ("find . -name '?a' -exec cat {} +", "/p/**/**a", "", ""),
        ("fd -H a -x cat", "/p/**", "", ""),
        ("fd a sub/ --exec cat {}", "/p/{} /p/sub/**/[!.]* /p/**/[!.]*", "", ""),
        ("fd a | xargs cat", "/p/**/[!.]*", "", ""),
        ("fd -x", "", "", ""),
        ("rg -l x | xargs cat", "/p/**/[!.]*", "", ""),
        ("git diff ':!a'", "/p /p/**", "", ""),
        ("git diff -- 'src/*.py'", "/p/src /p/src/**", "", ""),
        ("git --icase-pathspecs diff -- A", "/p /p/**", "", ""),
        ("git diff --stat HEAD", "", "", ""),
        ("git show -s HEAD", "", "", ""),
        ("git show HEAD:a", "/p/a /p/a/**", "", ""),
        ("git -C sub show HEAD:a", "/p/a /p/a/** /p/sub/a /p/sub/a/**", "", ""),
        ("git log -L 1,3:a", "/p/a /p/a/**", "", ""),
        ("git log --color", "", "", ""),
        ("git blame -L 1,3 a", "/p/a /p/a/**", "", ""),
        ("git grep x -- a", "/p/a /p/a/**", "", ""),
        ("git grep --no-index x", "/p /p/**", "", ""),
        ("git grep --untracked x -- a 'b/*'", "/p/a /p/a/** /p/b /p/b/**", "", ""),
        ("git grep --no-index x -- ':!a'", "/p /p/**", "", ""),
        ("git diff --no-index a b", "/p/a /p/a/** /p/b /p/b/**", "", ""),
        ("git cat-file blob HEAD:a", "/p/a /p/a/**", "", ""),
        ("git add -A", "/p /p/**", "", ""),
        ("git add", "", "", ""),
        ("git add -f", "", "", ""),
        ("git add -f a", "/p/a /p/a/**", "", ""),
        ("git update-index --add a", "/p/a /p/a/**", "", ""),
        ("git tag -F a v1", "/p/a", "", ""),
        ("git config -f a --list", "/p/a", "", ""),
        ("git ls-files --exclude-from=a", "/p/a", "", ""),
        ("git status -s", "", "", ""),
        ("git rerere", "", "", ""),
        ("gcc --version", "", "", ""),
        ("make -v all", "", "", ""),
        ("npm --help", "", "", ""),
        ("unzip -o box.zip -d out", "/p/box.zip", "/p/out/**", ""),
        ("install -d a b", "", "/p/a /p/b", ""),
        ("mv a b/", "/p/a /p/a/**", "/p/b/a /p/b/a/**", "/p/a /p/a/**"),
        ("mv a .", "/p/a /p/a/**", "/p/a /p/a/**", "/p/a /p/a/**"),
        ("mv -t b a", "/p/a /p/a/**", "/p/b /p/b/a /p/b/** /p/b/a/**", "/p/a /p/a/**"),
        ("mktemp -t x.XXX", "", "/tmp/x.*", ""),
        ("mktemp -p sub", "", "/p/sub/tmp.*", ""),
        ("mktemp x.XXXX", "", "/p/x.*", ""),
        ("split a.txt", "/p/a.txt", "/p/x*", ""),
        ("csplit -f part a.txt 3", "/p/a.txt /p/3", "/p/part*", ""),
        ("mkdir -p a/b", "", "/p/a/b /p/a", ""),
        ("gzip -c a", "/p/a", "", ""),
        ("gzip -l a", "/p/a", "", ""),
        ("sed -i'old/*' p a/b", "/p/a/b", "/p/a/b /p/old/b", ""),
        ("sed -i.bak p a/b", "/p/a/b", "/p/a/b /p/a/b.bak", ""),
        ("rsync -a src/ dst/", "/p/src /p/src/**", "/p/dst /p/dst/** /p/dst/* /p/dst/*/**", ""),
        ("git add .", "/p /p/**", "", ""),
        ("git -C sub add x", "/p/sub/x /p/sub/x/**", "", ""),
        ("git rm --cached x", "/p/x /p/x/**", "", ""),
        ("git rm x", "/p/x /p/x/**", "", "/p/x /p/x/**"),
        ("git init", "", "", ""),
        ("git init -b main x", "", "/p/x /p/x/**", ""),
        ("install -d a/b", "", "/p/a /p/a/b", ""),
        ("git clean -n", "", "", ""),
        ("git clean -fd build", "", "", "/p/build /p/build/**"),
        ("git restore a.txt", "", "/p/a.txt /p/a.txt/**", ""),
        ("git checkout HEAD -- a.txt", "", "/p/a.txt /p/a.txt/**", ""),
        ("git log --oneline", "", "", ""),
        ("git log -p -- a.txt", "/p/a.txt /p/a.txt/**", "", ""),
        ("git stash list", "", "", ""),
        ("git remote -v", "", "", ""),
        ("git config --get x.y", "", "", ""),
        ("git", "", "", ""),
        ("git diff --output=x -- a", "/p/a /p/a/**", "/p/x /p/x/*/** /p/x/**", ""),
        ("python3 --version", "", "", ""),
        ("jq --arg a b '.x' c.json", "/p/c.json", "", ""),
        ("awk -v x=1 '{print x}' a y=2", "/p/a", "", ""),
        ("du -X list .", "/p/list", "", ""),
        ("uniq", "", "", ""),
        ("patch --dry-run a", "/p/a", "/p/a", ""),
        ("touch -m a", "", "/p/a", ""),
        ("xxd a -i", "/p/a", "/p/-i", ""),
        ("shuf -o b -n 3 a", "/p/a", "/p/b", ""),
        ("iconv -f x -t y -o b a", "/p/a /p/b", "/p/b", ""),
    ],
)
def test_complete_effects(line: str, reads: str, writes: str, deletes: str) -> None:
    found = effects(line)
    assert found.complete, found
    assert set(found.reads) == set(reads.split())
    assert set(found.writes) == set(writes.split())
    assert set(found.deletes) == set(deletes.split())


@rows(
    "line",
    [
        "unheard-of",
        "unheard-of $X",
        "cat $X",
        "cat src/$X",
        "cat -- $X",
        "cat ~someone/x",
        "cat > $X",
        'grep "$X" a.txt',
        "cd $X && cat a",
        "PATH=.:$PATH cat a",
        "env PATH=. cat a",
        "env -S 'cat a'",
        "export LD_PRELOAD=x; cat a",
        "chroot / cat a",
        "busybox cat a",
        "wc --files0-from=list",
        "md5sum -c list",
        "rg --pre x y",
        "git log -L x",
        "git status -v",
        "git rerere diff",
        "git stash show -p",
        "git stash list -p",
        "git show -s 0123abc",
        "git show $X",
        'git show -s "$X:a"',
        "git grep --recurse-submodules x",
        "git diff --submodule=diff -- a",
        "git cat-file --batch",
        "git add --pathspec-from-file=a",
        "git diff README.md",
        "npm --version x",
        "RIPGREP_CONFIG_PATH=x rg y",
        "tar -T list -cf out",
        "tar -xPf box.tar",
        "rsync --files-from=list . dst",
        "zip -@ out",
        "find -files0-from x",
        "xargs rm",
        "sed -f script a",
        'sed "$X" a',
        "sed '1e x' a",
        "awk -f script a",
        "jq -f script a",
        "jq 'include \"x\"; .' a",
        "patch -p1 < x",
        "patch a.txt x.patch",
        "less a",
        "cp -b a b",
        "install -D a b/c",
        "grep -C x a",
        "sed -l p a",
        "curl -L https://x.example",
        "curl -K x",
        "curl",
        "ssh x",
        "scp a x:",
        "docker",
        "docker ps",
        "prettier --check .",
        "vim a",
        "perl -e 1",
        "git checkout feature/x",
        "git checkout a.txt",
        "git switch x",
        "git init --template=t x",
        "git diff origin/main",
        "git diff",
        "git show",
        "git commit -F message.txt",
        "git reset --hard",
        "git restore --pathspec-from-file=x",
        "git filter-branch x",
        "git -c core.pager=x log",
        "git clone --recursive https://x.example/y",
        "git submodule update",
        "openssl rsa -in key.pem",
        "fc -s",
        "*x*",
        "$X a",
        "make",
        "x" * 20_001,
        "((",
    ],
)
def test_incomplete_effects(line: str) -> None:
    assert not effects(line, Surroundings(directory="/p", project="/p", variables={"HOME": "/h"})).complete


@rows(
    ("line", "hosts"),
    [
        ("nc -l 80", []),
        ("nc -c a.example 80", ["a.example"]),
        ("sftp -p a.example", ["a.example"]),
        ("telnet", ["*"]),
        ("git fetch --all", ["*", "evil.example"]),
        ("git push -u origin main", ["evil.example"]),
        ('git fetch "https://$X/y"', ["*"]),
        ("git clone --recursive https://a.example/y b", ["a.example", "*"]),
        ("scp -r a me@a.example:", ["a.example"]),
        ("dig @a.example x", ["a.example", "*"]),
        ("socat TCP4-CONNECT STDIO", ["*"]),
        ("rsync rsync:// .", ["*"]),
        ("curl -s http://[::1]:80/", ["::1"]),
        ("curl http://", ["*"]),
        ("openssl s_client -connect a.example:443 -out x", ["a.example"]),
        ("docker images", []),
        ("docker push a.example:5000/x", ["a.example"]),
        ("npm run x", []),
        ("pip install --index-url", ["*"]),
        ("cat a > /dev/udp/a.example/1", ["a.example"]),
        ("git remote show origin", ["evil.example"]),
        ("ssh -J jump.example me@a.example", ["a.example", "jump.example"]),
    ],
)
def test_hosts(line: str, hosts: list[str]) -> None:
    assert sorted(effects(line).hosts) == sorted(hosts)


def test_a_variable_may_name_the_registry() -> None:
    around = surroundings("/p", PIP_INDEX_URL="https://mirror.example/simple")
    assert "mirror.example" in effects("pip install x", around).hosts


def test_without_functions_nothing_is_looked_up() -> None:
    around = Surroundings(directory="/p", project="/p")
    assert not effects("bash x.sh", around).complete
    assert not effects("git alias-of-mine", around).complete
    assert effects("git fetch origin", around).hosts == ("*",)
    assert around.git_settings("/p") is None
    assert around.find_program("ls") is None
    assert not effects("cat ~/x", around).complete


def test_the_number_of_entries_is_limited() -> None:
    many = " ".join(f"f{at}" for at in range(1200))
    found = effects(f"cat {many}")
    assert len(found.reads) == 1000
    assert not found.complete
    assert not effects("cat " + "x/" * 3000).complete
    hosts = effects("ping " + " ".join(f"h{at}.example" for at in range(40)))
    assert len(hosts.hosts) == 40


def test_the_number_of_commands_and_hosts_is_limited() -> None:
    texts = {f"/p/{at}.sh": "".join(f"ping h{at}-{n}.example\n" for n in range(100)) for at in range(12)}
    around = Surroundings(directory="/p", project="/p", read_text=texts.get)
    found = effects("; ".join(f"bash {at}.sh" for at in range(12)), around)
    assert len(found.runs) == 1000
    assert len(found.hosts) == 1000
    assert not found.complete


@rows(
    ("text", "expected"),
    [
        ("", SedScript()),
        ("p", SedScript()),
        ("1,5p;$d", SedScript()),
        ("1,+3{p;d}", SedScript()),
        ("1,~4p", SedScript()),
        ("0~3p", SedScript()),
        ("/a/,/b/!d", SedScript()),
        ("\\,a,d", SedScript()),
        ("s/a/b/gI;s|x|y|2", SedScript()),
        ("s/[^a]b/c/", SedScript()),
        ("y/abc/xyz/", SedScript()),
        ("/x/a\\\nnew text", SedScript()),
        ("1i before", SedScript()),
        (":a;N;$!ba;s/\\n/ /g", SedScript()),
        ("# comment\np # more", SedScript()),
        ("q5", SedScript()),
        ("r in.txt", SedScript(reads=("in.txt",))),
        ("w out.txt\np", SedScript(writes=("out.txt",))),
        ("s/a/b/w out.txt", SedScript(writes=("out.txt",))),
        ("e", SedScript(understood=False)),
        ("1e touch x", SedScript(understood=False, runs=("touch x",))),
        ("s/a/b/e", SedScript(understood=False, runs=("b",))),
        ("s/a/b", SedScript(understood=False)),
        ("s", SedScript(understood=False)),
        ("s\\a\\b\\", SedScript(understood=False)),
        ("s/[/]/x/", SedScript(understood=False)),
        ("s/a[b/c]/x/;s/a]/x/", SedScript(understood=False)),
        ("1,p", SedScript(understood=False)),
        ("pp", SedScript(understood=False)),
        ("k", SedScript(understood=False)),
        ("1", SedScript(understood=False)),
    ],
)
def test_scripts_for_sed(text: str, expected: SedScript) -> None:
    assert read_sed_script(text) == expected


def test_a_list_of_ignored_files_may_name_a_hidden_one() -> None:
    texts = {"/p/.gitignore": "*.pyc\n!.env\n", "/p/sub/.ignore": "!build\n"}
    around = Surroundings(directory="/p/sub", project="/p", read_text=texts.get)
    assert effects("rg x", around).reads == ("/p/sub/**",)
    del texts["/p/.gitignore"]
    assert effects("rg x", around).reads == ("/p/sub/**/[!.]*",)


def test_a_file_has_no_entries_to_compare() -> None:
    around = Surroundings(directory="/p", project="/p", read_text={"/p/a": "x", "/p/b": "y"}.get)
    assert effects("diff a b", around).reads == ("/p/a", "/p/b")


@rows(
    ("line", "reads"),
    [
        ("git diff", "/p/.env /p/sub/x.key"),
        ("git diff .", "/p /p/.env /p/sub/x.key"),
        ("git diff sub", "/p/sub /p/sub/x.key"),
        ("git diff '*.key'", "/p/sub/x.key"),
        ("git diff 'su?'", "/p/sub/x.key"),
        ("git diff '[.]env'", "/p/.env /p/sub/x.key"),
        ("git diff ':!sub'", "/p/.env /p/sub/x.key"),
        ("git diff -- a.txt", "/p/a.txt"),
        ("git diff -- /out", "/out /out/**"),
        ("git diff HEAD a.txt", "/p/a.txt"),
        ("git show HEAD", "/p/old"),
        ("git diff HEAD", "/p/old"),
        ("git diff :/fix", "/p/old"),
        ("git stash show", "/p/old"),
        ("git status -v", "/p/old"),
    ],
)
def test_what_git_knows(line: str, reads: str) -> None:
    known = {"tracked": ["/p/.env", "/p/sub/x.key"], "history": ["/p/old"]}
    around = Surroundings(
        directory="/p",
        project="/p",
        git_files=lambda _, scope: known[scope],
        is_there=lambda path: path in ("/p", "/p/sub", "/p/a.txt"),
    )
    found = effects(line, around)
    assert set(found.reads) == set(reads.split())
    assert found.complete or "stash" in line


def test_git_in_a_place_that_is_not_known() -> None:
    around = Surroundings(directory="/p", project="/p", git_files=lambda _, _scope: [])
    assert not effects('cd "$X"; git diff', around).complete
    assert not effects("GIT_DIR=x git diff", around).complete
    assert effects("git diff", around).complete
