"""Programs and variables that carry a command: tables, and how they are looked up.

Programs whose command line needs a special reader are in `wrappers`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.options import OptionTable, has, read, values_of
from wave_agent.shell.runs import ANY_COMMAND, ForeignCode, Inner, ShellText, Tail, joined
from wave_agent.shell.values import Word

# ------------------------------------------------------------------------------------------ a command from some word on

_EVERYWHERE = """
    aa-exec alacritty bunx bwrap capsh cgexec choom chpst chronic cpulimit daemonize dpkg-architecture dumb-init
    debconf eatmydata entr fakechroot firejail gdb gnome-terminal hyperfine i386 kitty konsole linux32 linux64
    logsave memusage msgexec msgfilter npx numactl perf pnpx prlimit proot proxychains proxychains4 retry rlwrap
    schedtool screen setarch setpriv setuidgid sg softlimit sotruss ssh-agent start-stop-daemon systemd-inhibit
    systemd-nspawn tini tmux torsocks trickle uname26 uvx valgrind x86_64 xterm xvfb-run
"""
EVERYWHERE = frozenset(_EVERYWHERE.split())
"""After these, any word may start a command, and a word containing blanks may be a line for a shell."""
AFTER: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("docker", "podman", "nerdctl"), frozenset({"exec", "run"})),
    **dict.fromkeys(("kubectl", "oc"), frozenset({"exec", "run"})),
    **dict.fromkeys(("uv", "poetry", "pipenv", "hatch", "pdm", "rye", "conda", "mamba"), frozenset({"run"})),
    **dict.fromkeys(("doppler", "op", "pipx", "toolbox", "heroku", "foreman", "flatpak"), frozenset({"run"})),
    **dict.fromkeys(("bundle", "direnv", "mise", "asdf", "aws-vault", "rbenv", "pyenv", "lerna"), frozenset({"exec"})),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), frozenset({"exec", "x", "dlx"})),
    **dict.fromkeys(("ip", "lxc", "incus", "multipass", "chamber"), frozenset({"exec"})),
    **dict.fromkeys(("nix", "guix"), frozenset({"-c", "--command", "--"})),
    "adb": frozenset({"shell"}),
    "cmake": frozenset({"-E"}),
    "dotenv": frozenset({"run", "--"}),
    "machinectl": frozenset({"shell"}),
}
"""The same, after one of these words."""
_MENTIONING = frozenset({"cat", "echo", "egrep", "fgrep", "grep", "ls", "printf", "rg", "test", "wc", "which"})
"""After one of these, nothing is run."""
_LOADER = lazy_regex(r"ld(?:-[\w.-]+)?\.so(?:\.\d+)*")
_MOST = 24
_LONGEST = 200
"""Words of a command to check."""


def _tails(words: Sequence[Word]) -> Iterator[Inner]:
    name = words[0].text
    anywhere = name in EVERYWHERE or _LOADER.fullmatch(name) is not None
    start = 1 if anywhere else _after(words, AFTER.get(name, frozenset()))
    for at in range(start, min(len(words), start + _MOST)):
        if not words[at].text.startswith("-"):
            yield Tail(tuple(words[at : at + _LONGEST]))
        if words[at].text in _MENTIONING:
            return
        if re.search(r"\s", words[at].text):
            yield ShellText(words[at]) if anywhere else ForeignCode(words[at])


def _after(words: Sequence[Word], subcommands: frozenset[str]) -> int:
    return next((at + 1 for at, word in enumerate(words) if at and word.text in subcommands), len(words))


# ---------------------------------------------------------------------------------------- the value of an option is one


class Given(Struct, frozen=True):
    """A command given by an option, however it is attached, abbreviated or bundled."""

    names: tuple[str, ...]
    options: OptionTable
    bundled: bool = False
    """The first word may be option letters without a dash: `tar xIf PROGRAM FILE`."""


def _given(*names: str, values: str = "", longs: tuple[str, ...] = (), bundled: bool = False) -> Given:
    """The options whose value is a command; letters and names of others that take a value."""
    letters = "".join(name[1] for name in names if len(name) == 2)
    return Given(names, OptionTable(letters + values, (*(name for name in names if len(name) > 2), *longs)), bundled)


_REMOTE = _given("-S", values="cDFiJloPX")
SCRIPTS: Mapping[str, Given] = {
    **dict.fromkeys(("mapfile", "readarray"), _given("-C", values="cdnOsu")),
    **dict.fromkeys(("compgen", "complete"), _given("-C", values="AFGPSWX")),
    **dict.fromkeys(
        ("tar", "bsdtar", "gtar"),
        _given(
            *("-I", "-F", "--use-compress-program", "--to-command", "--info-script", "--new-volume-script"),
            *("--rsh-command", "--rmt-command", "--checkpoint-action"),
            values="fCTXbgHKLNV",
            longs=("--file", "--directory", "--files-from", "--exclude-from"),
            bundled=True,
        ),
    ),
    "aria2c": _given("--on-download-complete", "--on-download-error", "--on-download-start", "--on-download-stop"),
    "bat": _given("--pager", values="lmHrn"),
    "cpio": _given("--rsh-command", values="CEFHIMOR"),
    "crontab": _given(values="u"),
    "dpkg": _given("--pre-invoke", "--post-invoke"),
    "go": _given("-toolexec", "-exec", "-vettool"),
    "install": _given("--strip-program", values="tSmogZ"),
    "man": _given("-P", "-H", "--pager", "--html", values="CLmMSsepRET"),
    **dict.fromkeys(("nc", "ncat", "netcat"), _given("-e", "-c", "--exec", "--sh-exec", "--lua-exec", values="piswX")),
    "nix-shell": _given("--run", "--command", values="pAIE"),
    "repo": _given("-c", values="grp"),
    "rg": _given("--pre", "--hostname-bin", values="efgtTmABCEjMr"),
    "rsync": _given("-e", "--rsh", "--rsync-path", values="TfB"),
    "prove": _given("-e", "--exec", values="IPMajo"),
    "scp": _REMOTE,
    "sftp": _given("-D", "-S", values="BbcFiJloPRX"),
    **dict.fromkeys(("pip", "pip3"), _given("--editor")),
    "sort": _given("--compress-program", values="koStT"),
    "split": _given("--filter", values="abClnt"),
    "svn": _given("--diff-cmd", "--diff3-cmd", "--editor-cmd", values="mFrNc"),
    "vagrant": _given("-c", "--command"),
    "wget": _given("--use-askpass", values="oOaPieBtTwQUl"),
    **dict.fromkeys(("yt-dlp", "youtube-dl"), _given("--exec", "--exec-before-download", values="fo")),
    **dict.fromkeys(
        ("npx", "npm"), _given("-c", "--call", "--editor", "--script-shell", "--shell", "--viewer", values="pw")
    ),
}
"""Options whose value is text for a shell, or the words of a command."""
_ONE_DASH: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("cc", "gcc", "g++", "c++"), lazy_regex(r"-wrapper")),
    "go": lazy_regex(r"--?(?:toolexec|exec|vettool)"),
    "zip": lazy_regex(r"-TT|--unzip-command"),
}
"""The same, for long options with one dash."""
_IN_FRONT = lazy_regex(r"=?(?:exec=|!|\|)?")
_SUBSCRIPTED = lazy_regex(r"[^\[]*+\[.*(?:\$\(|`)", re.DOTALL)
_SSH_RUNS = lazy_regex(r"\s*(?:ProxyCommand|LocalCommand|KnownHostsCommand|RemoteCommand)\s*[=\s]\s*(.*)", re.I | re.S)
_SSH_OPTIONS = OptionTable("BbcDEeFIiJLlmOoPpQRSWw")
_EVALUATING = frozenset({"[", "declare", "let", "local", "readonly", "test", "typeset", "unset"})
"""They expand the index of an array: `test -v 'a[$(x)]'`."""


def _scripts(words: Sequence[Word]) -> Iterator[Word]:
    name = words[0].text
    if name in _EVALUATING:
        yield from (word for word in words[1:] if word.static and _SUBSCRIPTED.match(word.text))
    if name in SCRIPTS:
        row = SCRIPTS[name]
        options, _ = read(unbundled(words, row.options) if row.bundled else words, row.options, mixed=True)
        yield from (_stripped(value) for value in values_of(options, *row.names))
    if name in ("compgen", "complete"):
        options, _ = read(words, SCRIPTS[name].options, mixed=True)
        yield from (Word(f": {value.text}", value.static) for value in values_of(options, "-W") if _expands(value.text))
    if name in _ONE_DASH:
        yield from _one_dash(words, _ONE_DASH[name])
    if name in ("ssh", "scp", "sftp"):
        options, _ = read(words, _SSH_OPTIONS, mixed=True)
        for value in values_of(options, "-o"):
            if runs := _SSH_RUNS.fullmatch(value.text):
                yield Word(runs[1], value.static)


def _expands(text: str) -> bool:
    """Whether expanding this text runs something."""
    return "$(" in text or "`" in text or "${" in text


def unbundled(words: Sequence[Word], options: OptionTable) -> list[Word]:
    """`tar xIf A B` → `tar -x -I A -f B`"""
    if len(words) < 2 or not re.fullmatch("[A-Za-z]+", words[1].text):
        return list(words)
    rest, out = list(words[2:]), [words[0]]
    for letter in words[1].text:
        out.append(Word(f"-{letter}"))
        if letter in options.values and rest:
            out.append(rest.pop(0))
    return out + rest


def _one_dash(words: Sequence[Word], names: re.Pattern[str]) -> Iterator[Word]:
    for at, word in enumerate(words[1:], 1):
        if option := names.match(word.text):
            attached = Word(word.text[option.end() :], word.static)
            yield from (
                Word(_stripped(value).text.replace(",", " "), value.static)
                for value in ([attached] if attached.text else words[at + 1 : at + 2])
            )


def _stripped(value: Word) -> Word:
    return Word(_IN_FRONT.sub("", value.text, count=1), value.static)


# ------------------------------------------------------------------------------------------------------ other languages


class CodeCarrier(Struct, frozen=True):
    """A program that runs text in its own language, and where it gets that text."""

    names: tuple[str, ...] = ()
    """Options whose value is code."""
    options: OptionTable = OptionTable()
    first: bool = False
    """The first operand is code, unless one of these options, or `unless`, is given."""
    unless: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """The first operand is code, if one of these is given."""
    every: bool = False
    """Every word is code."""
    stdin: bool = True
    """Its stdin is code, if no operand names a file."""
    plus: bool = False
    """The text after a plus sign is code."""
    only_if: str = ""
    """Text without this runs nothing."""
    editor: bool = False
    """Its operands are files to work on, so it also reads commands from stdin."""


def _code(*names: str, values: str = "", longs: tuple[str, ...] = ()) -> CodeCarrier:
    letters = "".join(name[1] for name in names if len(name) == 2)
    return CodeCarrier(names, OptionTable(letters + values, (*(name for name in names if len(name) > 2), *longs)))


_AWK = CodeCarrier(
    ("-e", "--source"),
    OptionTable("Ffve", ("--source", "--file", "--field-separator")),
    first=True,
    unless=("-f",),
    only_if=r"system|\||@|>",
)
_NODE = CodeCarrier(
    ("-e", "--eval", "--print"),
    OptionTable("erC", ("--eval", "--print", "--require", "--import")),
    flags=("-p",),
)
_VIM = CodeCarrier(("-c", "--cmd", "-S"), OptionTable("cSuUiTtwW", ("--cmd",)), plus=True, editor=True)
_DATABASE = CodeCarrier(every=True)
_PYTHON = lazy_regex(r"(?:python|pypy)[\d.]*t?")
LANGUAGES: Mapping[str, CodeCarrier] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), _AWK),
    **dict.fromkeys(("ex", "vi", "vim", "nvim", "view", "gvim", "vimdiff", "rvim"), _VIM),
    **dict.fromkeys(("node", "nodejs", "bun", "tsx", "ts-node"), _NODE),
    **dict.fromkeys(("sqlite3", "psql", "mysql", "mariadb", "lftp", "socat", "fzf", "expect"), _DATABASE),
    **dict.fromkeys(("pdflatex", "lualatex", "xelatex", "latex", "tex", "gs"), _DATABASE),
    **dict.fromkeys(("apt", "apt-get"), _code("-o", "--option", values="ct")),
    **dict.fromkeys(("ed", "red"), CodeCarrier(editor=True)),
    **dict.fromkeys(("tclsh", "wish", "m4", "bc", "ocaml", "crontab", "nft"), CodeCarrier()),
    **dict.fromkeys(("pwsh", "powershell"), CodeCarrier(every=True)),
    **dict.fromkeys(("lua", "luajit"), _code("-e", values="l")),
    **dict.fromkeys(("Rscript", "R"), _code("-e")),
    "dc": _code("-e", "--expression", values="f"),
    "deno": CodeCarrier(every=True),
    "elixir": _code("-e", "--eval", values="r"),
    "emacs": _code("--eval", "--execute", "-f", "--funcall", "-l", "--load", longs=("-eval", "-execute")),
    "erl": CodeCarrier(every=True),
    "gdb": CodeCarrier(every=True),
    "gnuplot": _code("-e"),
    **dict.fromkeys(
        ("groff", "troff", "gtroff", "nroff", "ditroff", "pic", "grap", "soelim"),
        CodeCarrier(options=OptionTable("dDfFIKLmMnoPrTwWt")),
    ),
    "cmake": CodeCarrier(stdin=False),
    "hg": _code("--config", values="R"),
    "guile": _code("-c", values="Llsex"),
    "julia": _code("-e", "-E", "--eval", "--print"),
    "less": CodeCarrier(plus=True, stdin=False),
    "lldb": CodeCarrier(every=True),
    "make": CodeCarrier(("--eval", "-E"), OptionTable("fCIoEW", ("--eval", "--file", "--makefile", "--directory"))),
    "osascript": _code("-e"),
    "perl": _code("-e", "-E", "-M", "-m", values="IF"),
    "php": _code("-r", "-B", "-R", "-E", values="dcf"),
    "rake": _code("-e", "-E", "-p"),
    "rpm": _code("-E", "--eval"),
    "ruby": _code("-e", values="IrCF"),
    "sbcl": _code("--eval", "--load"),
    "scala": _code("-e"),
}
"""The code they run is only searched for the words of a rule."""
_MODULES = frozenset({"cProfile", "code", "pdb", "profile", "timeit", "trace"})
"""Of Python's modules, those that run text they are given."""
RUNS_PROGRAMS = lazy_regex(
    r"system|exec|spawn|popen|fork|subprocess|child_process|\bqx\b|`|\|\s*getline|\|\s*\"|\beval\b|__import__|import_module"
    r"|getattr|Open3|proc_open|passthru|os\.|Command|\bpty\b",
    re.IGNORECASE,
)
"""In code: it may run a program with words that come from elsewhere."""
_PYTHON_CODE = CodeCarrier(("-c",), OptionTable("cmWX"))
_SED = OptionTable("efl", ("--expression", "--file", "--line-length"), attached="i")
_SED_RUNS = lazy_regex(
    r"(?:^|[\n;{}!0-9$/,+~I])\s*e(?=[\s\w./]|$)|[^\w\s]\w{0,6}e\w{0,6}\s*(?:$|[;}\n])",
)
"""The command `e`, or the flag of that name."""


def language(name: str) -> CodeCarrier | None:
    return _PYTHON_CODE if _PYTHON.fullmatch(name) else LANGUAGES.get(name)


def _texts(words: Sequence[Word], stdin: Word | None) -> Iterator[Inner]:
    found = language(words[0].text)
    if words[0].text == "sed":
        yield from _sed(words, stdin)
    if found is None:
        return
    options, operands = read(words, found.options, mixed=found.first or found.plus)
    texts = values_of(options, *found.names) + (operands[:1] if has(options, *found.flags) else [])
    named = [word for word in operands if word.text != "-"]
    reads_stdin = found.editor or (found.stdin and not (texts or named))
    if found.every:
        texts, reads_stdin = [joined(words[1:])], True
    elif found.first and not values_of(options, *found.names, *found.unless):
        texts, reads_stdin = operands[:1], False
    if _PYTHON.fullmatch(words[0].text) and any(one.text in _MODULES for one in values_of(options, "-m")):
        texts += operands
    if found.plus:
        texts += [Word(word.text[1:], word.static) for word in operands if word.text.startswith("+")]
    if words[0].text == "make":
        texts += [joined([word for word in words[1:] if re.match(r"[.\w]+[:+?!]*=", word.text)])]
    if reads_stdin and stdin is not None:
        texts.append(stdin)
    data = joined([*words[1:], *([stdin] if stdin is not None and not reads_stdin else [])])
    for text in texts:
        if not found.only_if or re.search(found.only_if, text.text):
            yield ForeignCode(text, data)
        if found.plus and (runs := _VIM_RUNS.fullmatch(text.text)):
            yield ShellText(Word(runs[1], text.static))


_VIM_RUNS = lazy_regex(r":?!(.*)", re.DOTALL)


def _sed(words: Sequence[Word], stdin: Word | None) -> Iterator[Inner]:
    """The command `e` runs its input."""
    options, operands = read(words, _SED, mixed=True)
    files = values_of(options, "-f", "--file")
    if stdin is not None and any(_STANDARD_INPUT.fullmatch(file.text) for file in files):
        yield ForeignCode(stdin)
    for text in values_of(options, "-e", "--expression") or operands[:1]:
        if _SED_RUNS.search(text.text):
            yield ForeignCode(Word(f"{text.text}\n{_SED_RUNS.sub(' ', text.text)}", text.static))
            yield from (ShellText(one) for one in [stdin] if one is not None and one.static)


_STANDARD_INPUT = lazy_regex(r"-|/dev/(?:stdin|fd/0)|/proc/(?:self|thread-self)/fd/0")


# ------------------------------------------------------------------------------------------------------------ variables


class Variable(Struct, frozen=True):
    """A variable that makes programs run something."""

    name: re.Pattern[str]
    harmless: re.Pattern[str]
    """Values that do not."""
    unseen: bool
    """What it runs is not in the value: settings, a file, a library."""


def _variable(name: str, harmless: str = "(?!)", *, unseen: bool = False) -> Variable:
    return Variable(re.compile(name), re.compile(harmless, re.DOTALL), unseen)


VARIABLES = (
    _variable("GIT_CONFIG_(?:GLOBAL|SYSTEM)", "/dev/null|", unseen=True),
    _variable("GIT_CONFIG(?:_(?:COUNT|KEY_.*|VALUE_.*|PARAMETERS))?", "0|", unseen=True),
    _variable("GIT_EXEC_PATH|GIT_TEMPLATE_DIR|LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES", "", unseen=True),
    _variable("PERL5OPT", "-[wWTt]+|", unseen=True),
    _variable("RUBYOPT", r"(?:-[wWvd]\S*\s*)*", unseen=True),
    _variable("NODE_OPTIONS", r"(?!.*(?:-r\b|--(?:require|import|loader|\w+-loader))).*", unseen=True),
    _variable("BASH_ENV", r"[\w-]*|/dev/null", unseen=True),
    _variable("ENV", r"[\w-]*|/dev/null|.*(?:\$\(|`).*", unseen=True),
    _variable("PS[0-4]", r"(?!.*(?:\$[({]|`)).*"),
    _variable("BASH_ENV|ENV|PROMPT_COMMAND|ZDOTDIR|VIMINIT|EXINIT"),
    _variable("(?:MAN|SYSTEMD_|PSQL_|BAT_|DELTA_|GH_|AWS_|HG|SVN_|SUDO_|KUBE_)?(?:EDITOR|PAGER)|VISUAL|FCEDIT"),
    _variable(r"GIT_\w*(?:COMMAND|EDITOR|SSH|ASKPASS|DIFF|PAGER)|SSH_ASKPASS|SUDO_ASKPASS|RSYNC_RSH|CVS_RSH|SVN_SSH"),
    _variable("BROWSER|LESSOPEN|LESSCLOSE|TAR_OPTIONS|MAKEFLAGS|GNUMAKEFLAGS|GOFLAGS"),
    _variable(r"CC|CXX|CPP|LD|AR|HOSTCC|RUSTC|RUSTDOC|RUSTC_(?:WORKSPACE_)?WRAPPER|CARGO_\w*RUNNER"),
)


def variable_runs(name: str, value: Word) -> Inner | None:
    """What other programs run if this variable is set."""
    rows = [row for row in VARIABLES if row.name.fullmatch(name)]
    row = next((row for row in rows if not (value.static and row.harmless.fullmatch(value.text))), None)
    if row is None:
        return None
    if row.unseen:
        return ANY_COMMAND
    if value.prints is not None:
        value = Word(value.prints)
    if not value.static:
        return ShellText(value)
    if name.startswith("PS"):
        return ShellText(Word(f": {value.text}"))
    plain = _stripped(value)
    return ForeignCode(plain) if name in _OPTIONS_IN else ShellText(plain)


_OPTIONS_IN = frozenset({"TAR_OPTIONS", "MAKEFLAGS", "GNUMAKEFLAGS", "GOFLAGS", "VIMINIT", "EXINIT"})
"""Variables whose value is not a command, but may contain one."""


def carried(words: Sequence[Word], stdin: Word | None) -> Iterator[Inner]:
    """What this command runs, according to the tables."""
    yield from map(ShellText, _scripts(words))
    yield from _tails(words)
    yield from _texts(words, stdin)
