"""Programs that report something, so that a line cannot choose the text they print."""

from collections.abc import Sequence

from wave_agent.lazy_regex import lazy_regex

_NAMES = (
    "apt-cache arch asdf aws az basename brew bundle cargo cat chezmoi cmake composer conda curl dart date df direnv"
    " dirname docker docker-compose docker-machine dpkg du egrep fgrep file find flutter fnm free fzf gcloud gem gh git"
    " glab go gpg grep groups head helm hg hostname id jj kubectl kustomize lerna limactl ls lsb_release luarocks"
    " md5sum minikube mise mktemp nodenv npm nproc nvm oc opam pass pg_config pgrep pidof pip pip3 pipenv pkg-config"
    " pnpm podman poetry port pwd pyenv rbenv readlink realpath rg rpm rustc rustup sha256sum sha1sum stat starship"
    " ssh-agent sw_vers sysctl tail terraform thefuck tput tty uname uptime uv wc wget which whoami xcode-select"
    " xcrun yarn zoxide"
)
REPORTING = frozenset(_NAMES.split())
_PASSING_ON = frozenset(
    {"cat", "egrep", "fgrep", "grep", "head", "sort", "tail", "tee", "uniq", "wc", "gunzip", "zcat"}
)
_READING = frozenset({"cat", "egrep", "fgrep", "grep", "head", "rg", "tail", "wc"})
_OWN_TEXT = lazy_regex(
    r"%|format|printf|\$'|--template|-w\b|--jq|<\(|^-+exec|^(?:run|exec|x|dlx|alias|eval|-c|-)$|/dev/|/proc/"
)
"""In an argument: the caller controls what is printed or run."""
_OTHER_TEXT = lazy_regex(r"\$'|<\(|/dev/|/proc/|^-$")
"""The same, for programs that read files: they print other text than a file's."""
_REPLACED = lazy_regex(rf"{_OTHER_TEXT.pattern}|^-\w*r|^--r|^--pre|^--hostname")
"""`rg -r` prints something other than what it finds."""
_DATE = lazy_regex(r"['\"]?\+['\"]?[%A-Za-z0-9:._ -]*['\"]?")
_FILE = lazy_regex(r"[^-].*[A-Za-z.$*]")


def reports(words: Sequence[str], *, first: bool) -> bool:
    """Whether this stage of a pipeline, as written, prints what it finds elsewhere, or passes on its input."""
    name = words[0].rsplit("/", 1)[-1]
    if not first:
        return name in _PASSING_ON
    if name == "date":
        return all(word.startswith("-") or _DATE.fullmatch(word) for word in words[1:])
    if name in _READING:
        operands = [word for word in words[1:] if not word.startswith("-")]
        files = operands[1:] if "grep" in name or name == "rg" else operands
        own = _REPLACED if name == "rg" else _OTHER_TEXT
        # Without a file, the line may have chosen its input.
        return any(map(_FILE.fullmatch, files)) and not any(map(own.search, words[1:]))
    return name in REPORTING and not any(map(_OWN_TEXT.search, words[1:]))
