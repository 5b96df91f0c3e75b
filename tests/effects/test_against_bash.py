"""Generated lines, run by a real Bash: whatever they change is among the effects, or the effects are not complete. So
is whatever they open in the project, where system calls can be traced."""

import os
from pathlib import Path
from random import Random

import pytest

from tests.effects.arena import effects, surroundings
from tests.effects.matching import any_names
from tests.effects.scratch import STRACE, Scratch, opened

FILES = ["secret.txt", "other.txt", "victim.txt", "sub/victim.txt", "./sub/../other.txt", "'a b.txt'", "package.json"]
PLACES = ["sub", ".", "empty", "sub/deep/", "new", "./"]
GLOBS = ["*.txt", "sub/*", "s*", "[so]*.txt", "{secret,other}.txt", "sub/deep/*.md"]
READING = [
    *("cat {f}", "head -n 2 {f} {f}", "tail -c 5 {f}", "grep -n a {f}", "grep -r a {d}", "sort -k 1 {f}", "wc -l {g}"),
    *("cut -c1-3 {f}", "sed -n 2p {f}", "sed 's/a/b/' {g}", "awk '{{print $1}}' {f}", "base64 {f}", "od {f}", "nl {f}"),
    *("diff {f} {f}", "diff -r {d} {d}", "cmp {f} {f}", "md5sum {g}", "jq . package.json", "cat < {f}", "cat {g}"),
    *("find {d} -name '*.txt'", "ls -l {d}", "find {d} -type f -exec cat {{}} +", "find {d} -type f | xargs cat"),
    *("paste {f} {f}", "comm {f} {f}", "tac {f}", "strings {f}", "uniq {f}", "stat {f}", "test -s {f}", "echo {g}"),
    *(
        "head -c 3 -q {f} {f}",
        "tail -n +2 {f}",
        "grep -A 1 -m 2 -e a {f}",
        "sort -t , -k 2 -u {f} {f}",
        "cut -d' ' -f 1 {f}",
    ),
    *(
        "join -t , -1 1 {f} {f}",
        "nl -b a {f}",
        "od -A x -t x1 -N 4 {f}",
        "fold -s -w 9 {f}",
        "column -t {f}",
        "pr -2 {f}",
    ),
    *(
        "sed -n -e 1p -e '$p' {f}",
        "sed -E 's/(a)/b/;2q' {g}",
        "awk -F: -v x=1 'NR==x' {f} {f}",
        "xxd -l 4 {f}",
        "rev {g}",
    ),
    *(
        "git diff --no-index {f} {f}",
        "git hash-object {f}",
        "git blame other.txt",
        "git show HEAD:other.txt",
        "b2sum {f}",
    ),
    *("find {d} -newer {f} -print", "tar cf - {f} {d}", "zip -q - {f}", "gzip -c {f}", "xz -kc {f}", "expand -t 4 {f}"),
    *(
        "jq --arg x y '.scripts' package.json",
        "jq -n --slurpfile x package.json '$x'",
        "cmp -n 3 {f} {f}",
        "iconv -t ascii {f}",
    ),
    *(
        "bash show.sh",
        "./show.sh",
        ". ./show.sh",
        "make show",
        "make",
        "xargs -a {f} echo",
        "cat $(echo {f})",
        "cat {f}{{,}}",
    ),
    *(
        "mapfile -t a < {f}; echo ${{a[@]}}",
        "exec 3<{f}; cat <&3",
        "tee < {f}",
        "cat <<E\n$(cat {f})\nE",
        "strings -n 2 {f}",
    ),
    *("tr a b < {f}", "x=$(<{f}); echo $x", "while read l; do echo $l; done < {f}", "grep -f {f} {f}", "fold {f}"),
]
WRITING = [
    *("cp {f} {n}", "cp {f} {f} {d}", "cp -r {d} {n}", "mv {f} {n}", "mv {f} {d}", "rm {f}", "rm -rf {d}", "rm -f {g}"),
    *(
        "touch {n}",
        "touch {f}",
        "mkdir {n}",
        "mkdir -p {n}/x",
        "rmdir empty",
        "ln -s {f} {n}",
        "ln {f} {n}",
        "dd if={f} of={n}",
    ),
    *(
        "sed -i s/e/x/ {f}",
        "sed -i.bak s/e/x/ {f}",
        "sed -n 'w {n}' {f}",
        "sort -o {n} {f}",
        "tee {n} < {f}",
        "gzip {f}",
    ),
    *("gzip -k {f}", "tar cf {n} {f}", "tar czf {n} {d}", "truncate -s 3 {f}", "split -l 1 {f} {n}", "echo x > {n}"),
    *("echo x >> {f}", "cat {f} > {n}", "cat {f} | tee -a {f}", "find {d} -name '*.md' -delete", "chmod 600 {f}"),
    *("install -m 600 {f} {n}", "uniq {f} {n}", "git mv other.txt {n}", "git rm -qf other.txt", "git clean -fdx"),
    *("git checkout -- {f}", "git restore other.txt", "git add {f}", "xargs -n 1 touch <<< '{n} {n}2'", "unlink {n}"),
    *("cat > {n} <<'E'\nx\nE", "cp -t {d} {f}", "mv -t {d} {f}", "find {d} -type f | xargs rm -f", "csplit -s {f} 1"),
    *(
        "bash -c 'echo x > {n}'",
        "sh change.sh",
        "make change",
        "bash show.sh > {n}",
        "(cd sub && touch {n})",
        "mktemp -p .",
    ),
    *(
        "cp -a {d} {n}",
        "cp -R {f} {f} {d}",
        "cp -p {f} {n}",
        "cp --parents {f} {d}",
        "cp -T {f} {n}",
        "cp -r sub/. {d}",
    ),
    *(
        "mv -n {f} {n}",
        "mv {f} {f} {d}",
        "mv {d} {n}",
        "ln -sf {f} {n}",
        "ln -t {d} {f}",
        "install -d {n}/x",
        "tee -a {n} {f}",
    ),
    *(
        "sed -i -e 1d -e 's/a/b/' {g}",
        "sed --in-place=.old 1d {f}",
        "sed 's/e/x/w {n}' {f}",
        "sort -u {f} -o {n}",
        "touch -m {f}",
    ),
    *(
        "touch -d yesterday {n}",
        "truncate --size=+2 {f}",
        "mkdir -m 700 {n}",
        "rm -r -- {f}",
        "dd of={n} if={f} bs=1 count=2",
    ),
    *(
        "xz {f}",
        "bzip2 -k {f}",
        "gzip -9 {f} {f}",
        "gunzip {f}",
        "tar -c -f {n} -C sub .",
        "tar czvf {n} --exclude=x {d}",
    ),
    *(
        "find {d} -type f -name '*.t*' -exec rm {{}} \\;",
        "find . -maxdepth 1 -fprint {n}",
        "echo x | tee {n} >/dev/null",
    ),
    *(
        "{{ echo a; cat {f}; }} >> {n}",
        "for i in 1 2; do echo $i > {n}$i; done",
        "exec 4>{n}; echo x >&4",
        "cat {f} &> {n}",
    ),
    *(
        "v={n}; echo x > $v",
        "echo x > {n} 2>&1",
        "git archive -o {n} HEAD",
        "git diff --output={n}",
        "git format-patch -o {d} -1",
    ),
    *(
        "git checkout HEAD -- {f}",
        "git rm -r -q --cached sub",
        "git init -q {n}",
        "split -b 4 {f}",
        "shred -n 1 {f}",
        "cp {g} {d}",
    ),
    *(
        "git stash -q",
        "git reset -q --hard",
        "git clean -fdq sub",
        "xxd -r -p {f} {n}",
        "base64 {f} > {n}",
        "uniq -c {f} {n}",
    ),
    *("tar xf box.tar -C {d}", 'python3 -c \'open("made", "w")\'', "shuf -o {n} {f}", "patch -s < change.patch"),
]
AROUND = [
    "{}",
    "{}",
    "{}",
    "sudo -n {}",
    "env {}",
    "timeout 9 {}",
    "( {} )",
    "{{ {}; }}",
    "if true; then {}; fi",
    "! {}",
]
BETWEEN = ["; ", " && ", " || ", "\n", " | "]
BEFORE = ["cd sub && ", "cd sub; ", "f=x; ", "cd nowhere; ", "pushd sub >/dev/null; "]


def filled(template: str, random: Random) -> str:
    return template.format(
        f=random.choice(FILES),
        d=random.choice(PLACES),
        g=random.choice(GLOBS),
        n=random.choice(["new.txt", "sub/made", "out", "victim.txt", "other.txt", "sub"]),
    )


def line(random: Random) -> str:
    parts = [
        filled(random.choice(random.choice([READING, WRITING])), random) for _ in range(random.choice([1, 1, 2, 3]))
    ]
    text = random.choice(AROUND[:7]).format(parts[0]) if "\n" not in parts[0] else parts[0]
    for part in parts[1:]:
        text += "\n" + part if "\n" in text else random.choice(BETWEEN) + part
    return random.choice(BEFORE) + text if random.random() < 0.2 else text


SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_really_changes_is_among_the_effects(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    scratch = Scratch(tmp_path)
    around = surroundings(str(scratch.project), HOME=str(scratch.home))
    complete = 0
    for _ in range(40):
        text = line(random)
        scratch.reset()
        found = effects(text, around)
        before = scratch.files()
        calls = scratch.run(text, {}, traced=True)
        after = scratch.files()
        if not found.complete:
            continue
        complete += 1
        touched = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        for path in sorted(touched):
            if os.path.isdir(path) and path in before and path in after:
                continue  # another entry of it was changed
            if not path.startswith(f"{scratch.project}/.git/"):
                assert any_names((*found.writes, *found.deletes), path), (text, path, found)
        for call in calls if STRACE else ():
            path = opened(*call, str(scratch.project))
            if path is not None and path in before and is_content(path, scratch):
                assert any_names((*found.reads, *found.writes), path), (text, path, found)
    assert complete > 15


def is_content(path: str, scratch: Scratch) -> bool:
    return path.startswith(f"{scratch.project}/") and "/.git/" not in path and not os.path.isdir(path)
