"""Where in a line of Bash an argument is data, whatever characters it has: a positive list.

Quotes keep a word together. They do not keep the program that gets it from running it, and no list of such programs
is ever complete. So a place counts only if the line is simple enough to see what each word is for, and the word is an
operand of a program that is known never to run one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from wave_agent.agent.line_words import (
    MARKS,
    SEVERAL,
    SPLIT,
    UNCLEAR,
    VARIABLES,
    LineSign,
    LineWord,
    NotDataError,
    Token,
    tokens,
)
from wave_agent.effects.sed_scripts import read_sed_script


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_INERT = _names(
    """
    : b2sum base64 basename break cal cat cd chmod chown cksum cmp column comm continue cp cut date df diff
    dirname du echo egrep exit expand false fgrep file fmt fold grep head hexdump hostname id join jq ln ls
    md5sum mkdir mv nl nproc od paste printenv pwd readlink realpath return rev rm rmdir seq sha1sum sha224sum
    sha256sum sha384sum sha512sum sleep stat strings tac tail tee touch tr tree true type uname unexpand uniq wc
    whereis which whoami xxd
    """
)
"""Nothing that they get runs, not as an option and not as input."""
_BUILT_IN = _names(
    """
    . alias bg bind builtin caller command compgen complete compopt coproc declare dirs disown enable eval exec
    export fc fg function getopts hash help history jobs kill let local logout mapfile popd pushd read readarray
    readonly select set shift shopt source suspend times trap typeset ulimit umask unalias unset wait
    """
)
"""They see or change the state of the shell, in which arguments leave traces (`$_`, the history)."""
_OPENING = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{", "time"})
_CLOSING = frozenset({"fi", "done", "}", "esac"})
_KEYWORDS = _OPENING | _CLOSING | {"for", "case", "[["}
_BETWEEN = frozenset({"&&", "||", ";", "&"})
_PIPES = frozenset({"|", "|&"})
_INPUT = frozenset({"<", "<<<"})
_OUTPUT = frozenset({">", ">>", ">|", "&>", "&>>"})
_DUPLICATE = frozenset({">&", "<&"})
_REDIRECTS = _INPUT | _OUTPUT | _DUPLICATE
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.ASCII | re.DOTALL)
_OWN_NAME = re.compile(r"[a-z][a-z0-9_]*")
"""Variables that mean something to a program or to Bash itself have capitals."""
_PROGRAM = re.compile(r"[\w.+/@:\[-]+", re.ASCII)
_SYSTEM = re.compile(r"(?:/usr(?:/local)?)?/bin/([^/]+)")
_SCRIPT = re.compile(r"(?![/-])(?!.*\.\.)[\w./-]*\w\.(?:sh|bash|py|js|mjs|cjs|ts|rb|php)", re.ASCII)
_RUNS_A_SCRIPT = frozenset({"bash", "sh", "dash", "zsh", "python", "python3", "node", "ruby", "php"})
"""Not perl, to which an operand such as `rm x|` is a command, if the script reads its operands as files."""
_UNARY = frozenset(f"-{letter}" for letter in "nzefdrwxsLh")
_BINARY = frozenset({"=", "==", "!="})
_SET = re.compile(r"[-+][euxo]+|pipefail")


class _Options(NamedTuple):
    """The options of a program after which an argument is data: its own value, or an operand."""

    flags: str
    """Letters without a value."""
    values: str
    """Letters with one."""
    long_flags: frozenset[str] = frozenset()
    long_values: frozenset[str] = frozenset()


def _options(flags: str, values: str, long_flags: str = "", long_values: str = "") -> _Options:
    return _Options(flags, values, _names(long_flags), _names(long_values))


_LISTED: Mapping[str, _Options] = {
    "curl": _options(
        "sSfLGIikvg#",
        "dHXAumFeb",
        "--silent --show-error --fail --location --get --head --include --compressed",
        "--data --data-raw --data-urlencode --data-binary --json --header --request --url --max-time --user-agent "
        "--form",
    ),
    "pytest": _options("qvxs", "km"),
    "rg": _options(
        "nilcwvFSsoHhNuUPxLqa0.",
        "egtTABCmMjr",
        "--hidden --no-ignore --files-with-matches --ignore-case --line-number --fixed-strings --word-regexp --count "
        "--json --multiline --smart-case --heading --no-heading --vimgrep --files --files-without-match",
        "--regexp --glob --iglob --type --type-not --context --max-count --max-depth --replace --sort",
    ),
    "sort": _options("nruhVfbszcgMdi", "ktS", "--numeric-sort --reverse --unique", "--key --field-separator"),
}
_GIT_GREP = _options(
    "nilcwvEFGLPhHaqpWz",
    "eABCm",
    "--line-number --ignore-case --files-with-matches --name-only --count --word-regexp --fixed-strings --cached "
    "--untracked --extended-regexp --perl-regexp --show-function --function-context --heading --break --all-match "
    "--and --or --not",
    "--max-count --max-depth --context --before-context --after-context",
)
_GIT = _options(
    "pniFEwlcvqsadDu",
    "SGLembBC",
    "--oneline --stat --patch --name-only --name-status --all --graph --cached --staged --reverse --no-merges --merges "
    "--follow --decorate --numstat --shortstat --raw --no-color --first-parent --tags --verify --short --abbrev-ref "
    "--quiet --no-patch --no-ext-diff --all-match --amend --no-edit",
    "--grep --author --committer --since --until --after --before --format --pretty --max-count --message --contains "
    "--merged --no-merged --points-at --sort --list --date --diff-filter --skip --trailer",
)
_GIT_COMMANDS = _names(
    """
    add blame branch cat-file checkout commit describe diff grep log ls-files ls-tree merge-base name-rev reflog
    restore rev-list rev-parse shortlog show status switch tag
    """
)
_GH = _options(
    "wc",
    "SLRqTtblasABHmnefFX",
    "--web --comments",
    "--search --limit --repo --jq --template --title --body --label --assignee --state --author --base --head "
    "--milestone --json --name --notes --branch",
)
_GH_COMMANDS = frozenset({"issue", "label", "pr", "release", "repo", "run", "search", "workflow"})
_GH_ACTIONS = _names(
    "checks close code comment commits create diff edit issues list prs reopen repos review status view"
)
_BRINGS = frozenset({"cd", "cp", "ln", "mv"})
"""They bring a file, or a directory of files, to where a program may find it."""
_ACTING = frozenset({"gh", "git", "pytest"})
"""They may run something, though not what they get here: files that a line has written, for example."""
_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_AWK_ACTS = re.compile(r"[>|@]|\b(?:system|getline|extension)\b")
_FIND_VALUES = _names(
    """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -newer -mtime -mmin -size
    -user -group -perm -type -maxdepth -mindepth -samefile -printf
    """
)
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_SED_FLAGS = re.compile(r"-[nErsuz]+|-i.*|--(?:quiet|silent|regexp-extended|separate|null-data|in-place.*)", re.DOTALL)
_SED_BEFORE = re.compile(r"\bsed\b[^|;&]*[\0\1]")
_MARK = re.compile(r"[\0\1]")
_SED_CODE = re.compile(r"(?:-[nErsuz]*e|--expression=)(.*)", re.DOTALL)


def check_places(line: str, *, options: bool) -> None:
    """Raises `NotDataError` unless every mark in the line is in a place where its argument is data. `options`: some
    argument starts with a hyphen."""
    _PlaceReader(tokens(line), options=options).run()


def check_sed_scripts(line: str, arguments: Sequence[str]) -> None:
    """Plain words can make a script for sed run something, as `x/e./y` does in `/$1/p`. Raises `NotDataError` unless
    the scripts of the line are harmless with these in the places of its marks."""
    if _SED_BEFORE.search(line) is None:
        return
    try:
        found = tokens(line)
    except NotDataError:
        if not all(map(str.isdecimal, arguments)):
            raise NotDataError("sed may run it") from None
        return
    left = iter(arguments)
    written: list[str] = []
    filled: list[str] = []
    for token in [*found, LineSign(";")]:
        if isinstance(token, LineWord):
            written.append(token.text)
            filled.append(_MARK.sub(lambda _: next(left), token.text))
        elif token.text not in _REDIRECTS:
            _check_sed_in(written, filled)
            written, filled = [], []


def _check_sed_in(written: Sequence[str], filled: Sequence[str]) -> None:
    at = next((at for at, text in enumerate(filled, 1) if text.rpartition("/")[2] == "sed"), len(filled))
    was_code, were_others = _sed_parts(written[at:])
    code, others = _sed_parts(filled[at:])
    more = [one for one in others if one.startswith("-") and one != "--" and one not in were_others]
    if more or (code != was_code and not _is_harmless_sed(code)):
        raise NotDataError("sed may run it")


def _sed_parts(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """The scripts, and the other words but plain options. An option that is not known makes all of it a script."""
    code: list[str] = []
    others: list[str] = []
    is_next = False
    for text in texts:
        if is_next:
            code.append(text)
            is_next = False
        elif option := _SED_CODE.fullmatch(text):
            is_next = not option[1] and not text.startswith("--")
            code += [option[1]] if not is_next else []
        elif not _SED_FLAGS.fullmatch(text):
            others.append(text)
    return (code, others) if code else (others[:1], others[1:])


def _is_harmless_sed(code: Sequence[str]) -> bool:
    found = read_sed_script("\n".join(code))
    return found.understood and not found.reads and not found.writes


def _carries(text: str, marks: Sequence[str]) -> bool:
    return any(mark in text for mark in marks)


class _PlaceReader:
    """One pass over the tokens: each command is looked at for itself, and what it leaves for others at the end."""

    def __init__(self, found: list[Token], *, options: bool) -> None:
        self.left = found[::-1]
        self.options = options
        self.keeps = any(isinstance(one, LineWord) and (one == ("for", True) or _is_kept(one.text)) for one in found)
        """A variable has an argument, perhaps: then any may."""
        self.marks = (*MARKS, *VARIABLES) if self.keeps else MARKS
        self.first = next((at for at, one in enumerate(found) if _carries(one.text, MARKS)), len(found))
        self.length = len(found)
        self.leaves = ""
        """What the line leaves for programs to find."""
        self.foreign = ""
        """A program of which nothing is known."""
        self.acting = ""

    def run(self) -> None:
        is_piped, starts = False, True
        while self.left:
            token = self.left.pop()
            if isinstance(token, LineWord):
                if not starts or (is_piped and token.bare and token.text in _KEYWORDS):
                    raise NotDataError(UNCLEAR)
                starts = self._begin(token, is_fed=is_piped)
                is_piped = False
            elif token.text in _PIPES or token.text in _BETWEEN:
                is_piped, starts = token.text in _PIPES, True
            elif token.text == ";;":
                starts = True
                self._patterns()
            elif starts and is_piped:
                raise NotDataError(UNCLEAR)
            elif token.text == ")":
                starts = False
            elif token.text not in _REDIRECTS:
                if token.text != "(" or not starts:
                    raise NotDataError(UNCLEAR)
            elif starts or self._redirect(token):
                raise NotDataError(UNCLEAR)
        if self.keeps and self.foreign:
            raise NotDataError(f"{self.foreign} may run what a variable of the line says")
        if self.leaves and (other := self.foreign or self.acting):
            raise NotDataError(f"{other} may run {self.leaves}")

    # ------------------------------------------------------------------------------------------------------- statements

    def _begin(self, word: LineWord, *, is_fed: bool) -> bool:
        """What begins with this word. Returns whether a command may follow without a separator."""
        if not word.bare or word.text not in _KEYWORDS:
            self._command(word, is_fed=is_fed)
            return False
        if word.text == "for":
            self._loop()
        elif word.text == "case":
            self._word()
            self._keyword("in")
            self._patterns()
        elif word.text == "[[":
            self._condition()
        return word.text in _OPENING or word.text == "case"

    def _word(self) -> LineWord:
        if not self.left or not isinstance(self.left[-1], LineWord):
            raise NotDataError(UNCLEAR)
        return self._pop_word()

    def _pop_word(self) -> LineWord:
        token = self.left.pop()
        assert isinstance(token, LineWord)
        return token

    def _keyword(self, text: str) -> None:
        if self._word() != (text, True):
            raise NotDataError(UNCLEAR)

    def _words(self) -> list[LineWord]:
        found: list[LineWord] = []
        while self.left and isinstance(self.left[-1], LineWord):
            found.append(self._pop_word())
        return found

    def _loop(self) -> None:
        if not _OWN_NAME.fullmatch(self._word().text):
            raise NotDataError(UNCLEAR)
        self._keyword("in")
        self._words()

    def _patterns(self) -> None:
        """Of a branch, up to its parenthesis; or nothing before the end of all branches."""
        if self.left and self.left[-1] == ("esac", True):
            return
        while self.left:
            token = self.left.pop()
            if token == LineSign(")"):
                return
            if isinstance(token, LineSign) and token.text not in ("|", "("):
                break
        raise NotDataError(UNCLEAR)

    def _condition(self) -> None:
        parts: list[Token] = []
        while self.left:
            token = self.left.pop()
            is_quoted = isinstance(token, LineWord) and not token.bare
            if not is_quoted and token.text in ("&&", "||", "(", ")", "!", "]]"):
                self._check_comparison(parts)
                parts = []
                if token.text == "]]":
                    return
            else:
                parts.append(token)
        raise NotDataError(UNCLEAR)

    @staticmethod
    def _check_comparison(parts: Sequence[Token]) -> None:
        """Some operators evaluate their operands, so these must be others."""
        match parts:
            case [] | [LineWord()]:
                known = True
            case [LineWord(text=operator, bare=True), LineWord()]:
                known = operator in _UNARY
            case [LineWord(), operator, LineWord()]:
                known = operator.text in ("<", ">", "=~") or operator.text in _BINARY
            case _:
                known = False
        if not known or any(SEVERAL in one.text for one in parts):
            raise NotDataError("[[ may evaluate it")

    # --------------------------------------------------------------------------------------------------------- commands

    def _command(self, first: LineWord, *, is_fed: bool) -> None:
        words = [first]
        while self.left and (isinstance(self.left[-1], LineWord) or self.left[-1].text in _REDIRECTS):
            token = self.left.pop()
            if isinstance(token, LineWord):
                words.append(token)
            else:
                is_fed = self._redirect(token) or is_fed
        is_fed = is_fed and self.length - len(self.left) > self.first  # otherwise the input has no argument in it
        texts = [word.text for word in words]
        assigned = False
        while texts and (found := _ASSIGNMENT.fullmatch(texts[0])):
            if _carries(found[2], self.marks):
                assigned = True
                if not _OWN_NAME.fullmatch(found[1]):
                    raise NotDataError(f"{found[1]} may mean something to Bash or a program")
            texts = texts[1:]
        if texts:
            if assigned:
                raise NotDataError("it would be in the environment of a program")
            self._judge(texts, is_fed=is_fed)

    def _redirect(self, sign: LineSign) -> bool:
        """Whether it is input."""
        target = self._word().text
        if sign.text in _INPUT:
            return True
        if sign.text in _DUPLICATE and (target.isdecimal() or target == "-"):
            return False
        if _carries(target, self.marks):
            raise NotDataError("it names a file that the line writes")
        if target != "/dev/null":
            self.leaves = "what the line writes to a file"
        return sign.text == "<&"

    def _judge(self, words: list[str], *, is_fed: bool) -> None:
        """A command without its assignments."""
        name = words[0]
        if _PROGRAM.fullmatch(name) is None:
            raise NotDataError(UNCLEAR)
        system = _SYSTEM.fullmatch(name)
        program = system[1] if system else name
        try:
            self._check(program, words[1:], is_fed=is_fed)
        except NotDataError:
            if is_fed or program in _BUILT_IN or any(_carries(word, self.marks) for word in words):
                raise
            self.foreign = program

    def _check(self, program: str, words: list[str], *, is_fed: bool) -> None:
        """Raises `NotDataError` if the program may run its operands or its input, or is not known."""
        if program in _INERT:
            if program == "tee":
                self.leaves = "what the line writes to a file"
            elif program in _BRINGS and any(_carries(word, self.marks) for word in words):
                self.leaves = "what an argument names"
            return
        if self.keeps and any(SPLIT in word for word in words):
            raise NotDataError(f"{program} gets a variable that is not in quotes")
        takes_input = self._check_reading(program, words) or program in ("rg", "sort")
        if is_fed and not takes_input:
            raise NotDataError(f"{program} may run its input")
        self.acting = program if program in _ACTING else self.acting

    def _check_reading(self, program: str, words: list[str]) -> bool:
        """Whether input is data as well."""
        if program in ("[", "test"):
            _check_test(words[:-1] if program == "[" else words)
        elif program == "printf":
            _check_printf(words)
        elif program == "sed":
            self._check_sed(words)
        elif program in _AWKS:
            _check_awk(program, words)
        elif program == "set":
            if not all(map(_SET.fullmatch, words)):
                raise NotDataError("set changes what the shell does")
        else:
            self._check_acting(program, words)
            return False
        return True

    def _check_acting(self, program: str, words: list[str]) -> None:
        if program in _LISTED:
            self._check_operands(program, words, _LISTED[program])
        elif program == "git":
            while words[:1] in (["--no-pager"], ["-P"], ["-C"]):
                if _carries("".join(words[:2]), self.marks) and words[0] == "-C":
                    raise NotDataError("git may run what another repository configures")
                words = words[2:] if words[0] == "-C" else words[1:]
            if not words or words[0] not in _GIT_COMMANDS:
                raise NotDataError("git may run it")
            self._check_operands(program, words[1:], _GIT_GREP if words[0] == "grep" else _GIT)
        elif program == "gh":
            is_known = len(words) > 1 and words[0] in _GH_COMMANDS and words[1] in _GH_ACTIONS
            if not is_known and words[:1] != ["api"]:
                raise NotDataError("gh may run it")
            self._check_operands(program, words[1:], _GH)
        elif program == "find":
            self._check_find(words)
        elif self._is_own_script(program, words):
            self.foreign = program
        else:
            raise NotDataError(f"{program} may run what it is given")

    @staticmethod
    def _is_own_script(program: str, words: Sequence[str]) -> bool:
        """A script in a file is not one in an argument: it gets its operands as they are."""
        if program in _RUNS_A_SCRIPT:
            return bool(words) and _SCRIPT.fullmatch(words[0]) is not None
        return "/" in program and _SCRIPT.fullmatch(program) is not None

    # --------------------------------------------------------------------------------------------------------- operands

    def _check_option(self, word: str) -> None:
        if self.options and (word.startswith(self.marks) or SEVERAL in word):
            raise NotDataError("it may be an option there: write -- before it")

    def _check_operands(self, program: str, words: Iterable[str], known: _Options) -> None:
        doubt = False
        have_ended = False
        for word in words:
            if doubt and _carries(word, self.marks):
                raise NotDataError(f"{program} may run it, after an option that is not known")
            doubt = False
            if have_ended:
                continue
            self._check_option(word)
            if word == "--":
                have_ended = True
            elif word.startswith("-"):
                doubt = self._is_unknown(program, word, known)

    def _is_unknown(self, program: str, word: str, known: _Options) -> bool:
        """Whether the next word may be the value of this option, and not data."""
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if _carries(name, self.marks) or (_carries(value, self.marks) and name not in known.long_values):
                raise NotDataError(f"{program} may run it, in an option that is not known")
            return not equals and name not in known.long_flags | known.long_values
        for at, letter in enumerate(word[1:], 1):
            if letter in known.values:
                break
            if letter not in known.flags and not letter.isdecimal():
                if _carries(word[at:], self.marks):
                    raise NotDataError(f"{program} may run it, in an option that is not known")
                return True
        return False

    def _check_find(self, words: Sequence[str]) -> None:
        if not any(_carries(word, self.marks) for word in words):
            return
        previous, is_start = "", True
        for word in words:
            is_start = is_start and not word.startswith(("-", "(", "!"))
            if _carries(word, self.marks):
                self._check_option(word)
                if (not is_start and previous not in _FIND_VALUES) or SEVERAL in word:
                    raise NotDataError("find may run it")
            previous = word
        if _FIND_RUNS.intersection(words):
            raise NotDataError("find runs a command")

    def _check_sed(self, words: Sequence[str]) -> None:
        code, files = _sed_parts(words)
        is_marked = any(_carries(text, (*MARKS, *VARIABLES)) for text in code)
        if is_marked or any(one.startswith("-") and one != "--" for one in files) or not _is_harmless_sed(code):
            raise NotDataError("sed may run it")
        for one in files:
            self._check_option(one)


def _is_kept(text: str) -> bool:
    found = _ASSIGNMENT.fullmatch(text)
    return found is not None and _carries(found[2], MARKS)


def _check_test(words: Sequence[str]) -> None:
    """Some of its operators evaluate a name, and with more words it is not known which are operators."""
    if words[:1] == ["!"]:
        words = words[1:]
    match words:
        case [] | [_]:
            known = True
        case [operator, _]:
            known = operator in _UNARY
        case [_, operator, _]:
            known = operator in _BINARY
        case _:
            known = False
    if not known or any(SEVERAL in word for word in words):
        raise NotDataError("test may evaluate it")


def _check_printf(words: Sequence[str]) -> None:
    """`printf -v NAME` evaluates the name."""
    form = words[1:2] if words[:1] == ["--"] else words[:1]
    if not form or form[0].startswith("-") or _carries(form[0], (*MARKS, *VARIABLES)):
        raise NotDataError("printf may take it for an option or a format")


def _check_awk(program: str, words: Sequence[str]) -> None:
    is_marked = any(_carries(word, (*MARKS, *VARIABLES)) for word in words)
    if words[:1] == ["-F"]:
        words = words[2:]
    elif words and words[0].startswith("-F"):
        words = words[1:]
    if is_marked or not words or words[0].startswith("-") or _AWK_ACTS.search(words[0]):
        raise NotDataError(f"{program} may run it")
