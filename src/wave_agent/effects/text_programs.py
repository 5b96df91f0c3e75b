"""sed and awk: programs whose first operand is a program of its own."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from wave_agent.effects.gathering import Command
from wave_agent.effects.sed_scripts import SedScript, read_sed_script
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.options import Option, OptionTable, has, read, values_of
from wave_agent.shell.values import Word

SED = OptionTable("efl", ("--expression", "--file", "--line-length"), attached="i")
AWK = OptionTable(
    "FfveilE", ("--field-separator", "--file", "--assign", "--source", "--include", "--load", "--exec", "--profile")
)
_AWK_ACTS = lazy_regex(
    r"[>|@]|\\\n|\b(?:system|getline|extension)\b|ARG[VC]|ENVIRON|SYMTAB|FUNCTAB|PROCINFO|\bFILENAME\s*="
)
_ASSIGNMENT = lazy_regex(r"[A-Za-z_]\w*=.*", re.DOTALL)
AWKS = ("awk", "gawk", "mawk", "nawk", "original-awk")


def sed_script(words: list[Word]) -> SedScript:
    """Several expressions are lines of one script. A pattern may become names of files."""
    if all(word.static for word in words):
        found = read_sed_script("\n".join(word.text for word in words))
        return replace(found, understood=found.understood and all(word.glob is None for word in words))
    return SedScript(understood=False)


def sed_arguments(words: Sequence[Word]) -> tuple[list[Option], list[Word], list[Word], bool]:
    """Options, the expressions, the files, and whether every sed reads them so: BSD knows no options after operands."""
    options, operands = read(words, SED, mixed=True)
    first, _ = read(words, SED)
    code = values_of(options, "-e", "--expression")
    given = bool(code) or has(options, "-f", "--file")
    certain = len(code) == len(values_of(first, "-e", "--expression")) and (
        has(options, "-f", "--file") == has(first, "-f", "--file")
    )
    return options, code if given else operands[:1], operands if given else operands[1:], certain


def sed(command: Command) -> None:
    command.options(SED)
    options, code, rest, certain = sed_arguments(command.words)
    files = values_of(options, "-f", "--file")
    found = sed_script(code)
    lengths = values_of(options, "-l", "--line-length")
    if files or not certain or not found.understood or not all(value.text.isdigit() for value in lengths):
        command.unknown()
    for line in found.runs:
        for directory in command.directories:
            command.script(line, "sed", directory)
    if not certain or any(word.glob is not None for word in code):
        rest = [*rest, *code]
    command.reads((*rest, *files, *map(Word, found.reads)))
    command.writes(map(Word, found.writes))
    if has(options, "-i", "--in-place", "-I"):
        command.writes(rest)
        suffixes = [value.text for value in values_of(options, "-i", "--in-place")]
        copies = [(word, one if "*" in one else f"*{one}") for word in rest for one in suffixes]
        command.writes(Word(_copy(word.text, form), word.static, word.glob) for word, form in copies)


def _copy(file: str, form: str) -> str:
    """`-i.bak` and `-i'old/*'` keep the original."""
    directory, _, name = file.rpartition("/")
    kept = form.replace("*", name)
    return kept if "/" in kept or not directory else f"{directory}/{kept}"


def awk(command: Command) -> None:
    options, operands = command.options(AWK, mixed=False)
    code = values_of(options, "-e", "--source")
    elsewhere = has(options, "-f", "--file", "-i", "--include", "-l", "--load", "-E", "--exec", "-o", "-p", "-d", "-D")
    code = code if code or elsewhere else operands[:1]
    rest = operands[1:] if code == operands[:1] else operands
    text = " ".join(word.text for word in code)
    if any(word.glob is not None for word in code):  # it may become names of files
        command.unknown()
        command.reads(code)
    for word in rest:
        if socket := _AWK_SOCKET.fullmatch(f'"{word.text}"'):
            command.host(socket[1])
    if elsewhere or awk_acts(text) or has(options, "--profile", "--dump-variables", "--debug", "--pretty-print"):
        command.unknown()
    _awk_strings(command, text)
    if names := set(_AWK_WRITES_TO.findall(text)):
        given = (word for word in (*values_of(options, "-v", "--assign"), *rest) if _ASSIGNMENT.fullmatch(word.text))
        parts = ((word, *word.text.partition("=")) for word in given)
        command.writes(Word(value, word.static) for word, name, _, value in parts if name in names)
    command.reads(values_of(options, "-f", "--file"))
    command.reads(word for word in rest if not _ASSIGNMENT.fullmatch(word.text))


_AWK_WRITES = lazy_regex(r'>>?\s*"([^"\\]+)"')
_AWK_WRITES_TO = lazy_regex(r">>?\s*\(?\s*([A-Za-z_]\w*)")
_AWK_READS = lazy_regex(r'<\s*"([^"\\]+)"')
_AWK_RUNS = lazy_regex(r'\|&?\s*"([^"\\]+)"|"([^"\\]+)"\s*\|&?\s*getline|\bsystem\s*\(\s*"([^"\\]+)"')
_AWK_SOCKET = lazy_regex(r'"/inet[46]?/\w+/\w+/([^"/]+)/\w+"')


def _awk_strings(command: Command, text: str) -> None:
    """Files, commands and hosts that the program names in full. There may be more, so it is not complete either way."""
    command.writes(Word(found[1]) for found in _AWK_WRITES.finditer(text))
    command.reads(Word(found[1]) for found in _AWK_READS.finditer(text))
    for found in _AWK_SOCKET.finditer(text):
        command.host(found[1])
    for found in _AWK_RUNS.finditer(text):
        for directory in command.directories:
            command.script(found[1] or found[2] or found[3], text, directory)


def awk_acts(text: str) -> bool:
    """Whether the program may write, run something, choose its own input or show the environment."""
    before, _, after = text.partition("print")
    # Only print has an output: before the first one, these signs compare and join conditions.
    return _AWK_ACTS.search(f"{_AWK_COMPARES.sub(' ', before)}print{after}") is not None


_AWK_COMPARES = re.compile(r">=?|\|\|")
