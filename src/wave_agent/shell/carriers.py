"""Commands with another command somewhere among their words: tables of names, without their options."""

import re
from collections.abc import Iterator, Mapping, Sequence

from wave_agent.shell.values import Word

EVERYWHERE = frozenset(
    {
        *("aa-exec", "bwrap", "capsh", "cgexec", "choom", "chpst"),
        *("chronic", "cpulimit", "daemonize", "dpkg-architecture", "dumb-init", "eatmydata"),
        *("entr", "fakechroot", "firejail", "gdb", "hyperfine", "i386"),
        *("linux32", "linux64", "numactl", "perf", "prlimit", "proot"),
        *("proxychains", "proxychains4", "retry", "rlwrap", "schedtool", "screen"),
        *("setarch", "setpriv", "setuidgid", "softlimit", "ssh-agent", "start-stop-daemon"),
        *("systemd-inhibit", "tini", "tmux", "torsocks", "trickle", "uname26"),
        *(
            "valgrind",
            "x86_64",
            "xvfb-run",
        ),
    }
)
"""What stands behind these may be a command from any word on."""
_AFTER: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("docker", "podman", "nerdctl"), frozenset({"exec", "run"})),
    **dict.fromkeys(("kubectl", "oc"), frozenset({"exec", "run"})),
    **dict.fromkeys(
        ("uv", "poetry", "pipenv", "hatch", "pdm", "rye", "conda", "mamba", "doppler", "op"), frozenset({"run"})
    ),
    **dict.fromkeys(("bundle", "direnv", "mise", "asdf", "aws-vault", "rbenv", "pyenv", "npm"), frozenset({"exec"})),
}
"""The same, behind one of these words."""
_MENTIONING = frozenset({"cat", "echo", "egrep", "fgrep", "grep", "ls", "printf", "rg", "test", "wc", "which"})
"""Behind one of these nothing is run."""
_LOADER = re.compile(r"ld(?:-[\w.-]+)?\.so(?:\.\d+)*")
_MOST = 24
_LONGEST = 200
"""Words of a command that are looked at."""


def tails(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    name = words[0].text
    start = 1 if name in EVERYWHERE or _LOADER.fullmatch(name) else _after(words, _AFTER.get(name, frozenset()))
    for at in range(start, min(len(words), start + _MOST)):
        if not words[at].text.startswith("-"):
            yield words[at : at + _LONGEST]
        if words[at].text in _MENTIONING:
            return


def _after(words: Sequence[Word], subcommands: frozenset[str]) -> int:
    return next((at + 1 for at, word in enumerate(words) if at and word.text in subcommands), len(words))


_SCRIPTS: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("mapfile", "readarray", "compgen", "complete"), re.compile("-C")),
    **dict.fromkeys(("ex", "vi", "vim", "nvim", "view"), re.compile(r"-c|--cmd|\+(?=!)")),
    "bsdtar": re.compile("--use-compress-program"),
    "rsync": re.compile("-e|--rsh|--rsync-path"),
    "sort": re.compile("--compress-program"),
    "split": re.compile("--filter"),
    "nix-shell": re.compile("--run|--command"),
    "tar": re.compile("-[IF]|--(?:use-compress-program|to-command|info-script|rsh-command|checkpoint-action)"),
}
"""Options whose value is a command."""
_EVALUATING = frozenset({"[", "declare", "let", "local", "readonly", "test", "typeset", "unset"})
"""They expand what stands in the index of an array: `test -v 'a[$(x)]'`."""
_IN_FRONT = re.compile(r"=?(?:exec=|!)?")


def scripts_in(words: Sequence[Word]) -> Iterator[Word]:
    if words[0].text in _EVALUATING:
        yield from (word for word in words[1:] if word.static and re.search(r"\[.*(?:\$\(|`)", word.text))
    options = _SCRIPTS.get(words[0].text)
    for at, word in enumerate(words[1:] if options else (), 1):
        option = options.match(word.text) if options else None
        if option is None:
            continue
        attached = word.text[option.end() :]
        following = words[at + 1 : at + 2]
        yield from (
            [Word(_IN_FRONT.sub("", attached, count=1), word.static)]
            if attached
            else [Word(_IN_FRONT.sub("", value.text, count=1), value.static) for value in following]
        )
