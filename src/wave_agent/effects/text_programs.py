"""sed and awk: programs whose first operand is a program of its own."""

import re

from wave_agent.effects.gathering import Command
from wave_agent.effects.sed_scripts import SedScript, read_sed_script
from wave_agent.shell.options import OptionTable, has, values_of
from wave_agent.shell.values import Word

SED = OptionTable("efl", ("--expression", "--file", "--line-length"), attached="i")
AWK = OptionTable(
    "FfveilE", ("--field-separator", "--file", "--assign", "--source", "--include", "--load", "--exec", "--profile")
)
_AWK_ACTS = re.compile(r"[>|@]|\bsystem\b|\bgetline\b|ARG[VC]|\bFILENAME\s*=")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
AWKS = ("awk", "gawk", "mawk", "nawk", "original-awk")


def sed_script(words: list[Word]) -> SedScript:
    """Several expressions are lines of one script."""
    if all(word.static for word in words):
        return read_sed_script("\n".join(word.text for word in words))
    return SedScript(understood=False)


def sed(command: Command) -> None:
    options, operands = command.options(SED)
    code = values_of(options, "-e", "--expression")
    files = values_of(options, "-f", "--file")
    rest = operands if code or files else operands[1:]
    found = sed_script(code if code or files else operands[:1])
    lengths = values_of(options, "-l", "--line-length")
    if files or not found.understood or not all(value.text.isdigit() for value in lengths):
        command.unknown()
    command.reads((*rest, *files, *map(Word, found.reads)))
    command.writes(map(Word, found.writes))
    if has(options, "-i", "--in-place"):
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
    rest = operands if code or elsewhere else operands[1:]
    text = " ".join(word.text for word in (code if code or elsewhere else operands[:1]))
    if elsewhere or awk_acts(text) or has(options, "--profile", "--dump-variables", "--debug", "--pretty-print"):
        command.unknown()
    _awk_strings(command, text)
    command.reads(values_of(options, "-f", "--file"))
    command.reads(word for word in rest if not _ASSIGNMENT.fullmatch(word.text))


_AWK_WRITES = re.compile(r'>>?\s*"([^"\\]+)"')
_AWK_READS = re.compile(r'<\s*"([^"\\]+)"')
_AWK_RUNS = re.compile(r'\|&?\s*"([^"\\]+)"|"([^"\\]+)"\s*\|&?\s*getline|\bsystem\s*\(\s*"([^"\\]+)"')
_AWK_SOCKET = re.compile(r'"/inet[46]?/\w+/\w+/([^"/]+)/\w+"')


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
    """Whether the program may write, run something or choose its own input."""
    return _AWK_ACTS.search(text) is not None
