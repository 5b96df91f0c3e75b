"""Programs that reach other machines: which of their words name them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from wave_agent.effects.gathering import Command
from wave_agent.effects.values import ANY_HOST
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.options import Option, OptionTable, has, values_of
from wave_agent.shell.values import Word

_SCHEME = lazy_regex(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?=//)|(?:https?|wss?|s?ftps?|tftp|scp|file|dict|gophers?|ldaps?|imaps?|pop3s?|smtps?|rtsp"
    r"|telnet|smbs?|mqtt|git|ssh):(?=/)",
    re.IGNORECASE,
)
"""Curl takes one slash for two."""
_REMOTE = lazy_regex(r"(?:[^/:@\s]+@)?(\[[0-9A-Fa-f:]+\]|[^/:@\s]+):(?!//|:)(.*)", re.DOTALL)
"""`user@host:path`"""
_HOST = lazy_regex(r"(?:[^/?#\s]*@)?(\[[^\]\s]+\]|[^/:?#@\s]+)")
_BUILT = lazy_regex(r"[$`{}\[\],]")
"""Something in a name that is not literal: curl has braces and ranges of its own."""


def reach(command: Command, address: Word) -> None:
    """A URL, an scp-like address, or the name of a host: `https://host/x`, `git@host:x`, `host/x`, `host:80`."""
    text = address.text
    scheme = _SCHEME.match(text)
    if scheme is not None and scheme[0].lower() == "file:":
        command.reads([Word("/" + text[scheme.end() :].lstrip("/").removeprefix("localhost/"), address.static)])
        return
    named = _HOST.match(text[scheme.end() :].lstrip("/") if scheme is not None else text)
    if named is None or _BUILT.search(named[1].strip("[]")):
        command.host(ANY_HOST)
        command.unknown()
    else:
        command.host(named[1])


_CURL_FILES = (
    *("-T", "--upload-file", "-E", "--cert", "--key", "--cacert", "--netrc-file", "--proto-default", "--pass"),
    *("--config", "-K", "--unix-socket", "--egd-file", "--random-file"),
)
_CURL_DATA = ("-d", "--data", "--data-ascii", "--data-binary", "--data-urlencode", "--json", "-F", "--form")
_CURL_HEADERS = ("-H", "--header", "-b", "--cookie", "-w", "--write-out", "--url-query", "--variable")
_CURL_ELSEWHERE = ("-K", "--config", "--resolve", "--connect-to", "--unix-socket", "--abstract-unix-socket", "-:")
_CURL_PROXIES = (
    *("-x", "--proxy", "--preproxy", "--socks4", "--socks4a", "--socks5", "--socks5-hostname", "--doh-url"),
    "--proxy1.0",
)
_CURL = OptionTable(
    "AbCcdDeEFhHKmoPQrTtuUwxXYyz",
    (
        *(name for name in (*_CURL_FILES, *_CURL_DATA, *_CURL_HEADERS, *_CURL_ELSEWHERE) if len(name) > 2),
        *(name for name in _CURL_PROXIES if len(name) > 2),
        *("--output", "--output-dir", "--request", "--user", "--max-time", "--retry", "--url", "--user-agent"),
        *("--referer", "--connect-timeout", "--limit-rate", "--cookie-jar", "--dump-header", "--trace"),
        *("--trace-ascii", "--stderr", "--max-redirs", "--range", "--retry-delay", "--retry-max-time", "--interface"),
        *("--ciphers", "--tls-max", "--cert-type", "--key-type", "--proxy-user", "--proto", "--speed-limit"),
        *(
            "--speed-time",
            "--etag-save",
            "--etag-compare",
            "--form-string",
            "--data-raw",
            "--oauth2-bearer",
            "--libcurl",
        ),
        *("--hsts", "--alt-svc", "--keepalive-time", "--max-filesize", "--quote", "--time-cond", "--continue-at"),
    ),
)
_FROM_FILE = lazy_regex(r"(?:[^@<]*=)?[@<]([^;]+).*|[^=@]*@(.+)", re.DOTALL)


def _curl(command: Command) -> None:
    options, operands = command.options(_CURL)
    for address in (*operands, *values_of(options, "--url", *_CURL_PROXIES)):
        reach(command, address)
    command.reads(values_of(options, *_CURL_FILES))
    for value in values_of(options, *_CURL_DATA, *_CURL_HEADERS):
        if found := _FROM_FILE.fullmatch(value.text):
            command.reads([Word(found[1] or found[2], value.static)])
    cookies = values_of(options, "-b", "--cookie")
    command.reads(value for value in cookies if "=" not in value.text)
    for value in values_of(options, "--connect-to", "--resolve"):
        _instead(command, value)
    if has(options, *_CURL_ELSEWHERE, "-n", "--netrc", "--netrc-optional", "-L", "--location", "--location-trusted"):
        command.unknown()
    if not operands and not has(options, "--url", "--version", "-V", "--help", "-h"):
        command.unknown()


def _instead(command: Command, value: Word) -> None:
    """`HOST:PORT:HOST:PORT`, or `HOST:PORT:ADDRESS,ADDRESS`: what comes third is reached."""
    third = value.text.split(":", 2)[2:]
    for one in third[0].split(",") if third else ():
        if one.strip(":"):
            reach(command, Word(one, value.static))


def proxies_in(text: str) -> Iterator[str]:
    """The hosts of the proxies that `name=address` sets, for wget or in the environment."""
    for found in _PROXY.finditer(text):
        scheme = _SCHEME.match(found[1])
        named = _HOST.match(found[1][scheme.end() :].lstrip("/") if scheme is not None else found[1])
        yield ANY_HOST if named is None or _BUILT.search(named[1].strip("[]")) else named[1]


_PROXY = re.compile(r"""\b(?:https?|ftp|all|rsync)_proxy\s*=\s*["']?([^\s"';&|]+)""", re.IGNORECASE)
_WGET_FILES = ("--post-file", "--body-file", "--ca-certificate", "--certificate", "--private-key", "--load-cookies")
_WGET = OptionTable(
    "oOaPieBtTwQUlADRIX",
    (
        *_WGET_FILES,
        *("--output-document", "--output-file", "--append-output", "--directory-prefix", "--header", "--tries"),
        *("--timeout", "--user", "--password", "--user-agent", "--input-file", "--base", "--level", "--accept"),
        *("--reject", "--domains", "--wait", "--quota", "--limit-rate", "--execute", "--post-data", "--save-cookies"),
    ),
)


def _wget(command: Command) -> None:
    options, operands = command.options(_WGET)
    for address in operands:
        reach(command, address)
    command.reads(values_of(options, *_WGET_FILES, "-i", "--input-file"))
    for value in values_of(options, "-e", "--execute"):
        for host in proxies_in(value.text):
            command.host(host)
    command.unknown()  # it follows redirections to other hosts


_SSH = OptionTable("BbcDEeFIiJLlmOoPpQRSWw")
_SCP = OptionTable("cDFiJloPSX")
_SFTP = OptionTable("BbcDFiJloPRSsX")


def _ssh(command: Command) -> None:
    options, operands = command.options(_SFTP if command.name == "sftp" else _SSH, mixed=False)
    _log_in(command, operands[:1], options)


def _log_in(command: Command, names: Iterable[Word], options: list[Option]) -> None:
    """A name without a dot may be an alias in the settings of ssh, which may also say what else runs."""
    command.reads(values_of(options, "-i", "-F"))
    command.unknown()
    for one in (*names, *values_of(options, "-J")):
        reach(command, one)


def _copy_between(command: Command) -> None:
    """`scp` and `rsync`: `host:path`, or a path here."""
    table = _SCP if command.name == "scp" else _RSYNC
    options, operands = command.options(table)
    far = [found for word in operands if (found := _far(word.text))]
    for name in far:
        command.host(name)
    if far or command.name == "scp":
        command.unknown()
    near = [word for word in operands[:-1] if _far(word.text) is None]
    deep = command.name == "rsync" or has(options, "-r")
    command.reads(near, tree=deep)
    if command.name == "rsync":
        command.reads(values_of(options, *_RSYNC_FILES))
        if has(options, "--files-from", "-f", "--filter"):
            command.unknown()
    else:
        command.reads(values_of(options, "-i", "-F"))


_RSYNC_FILES = ("--password-file", "--exclude-from", "--include-from", "--files-from", "--read-batch")
_RSYNC = OptionTable(
    "eTfBM",
    (
        *_RSYNC_FILES,
        *("--rsh", "--exclude", "--include", "--filter", "--rsync-path", "--log-file", "--backup-dir", "--partial-dir"),
        *("--temp-dir", "--bwlimit", "--chmod", "--chown", "--timeout", "--port", "--suffix", "--max-size"),
        *("--min-size", "--compare-dest", "--copy-dest", "--link-dest", "--out-format", "--write-batch"),
    ),
)


def _far(text: str) -> str | None:
    """The host of an operand, if there is one."""
    if scheme := _SCHEME.match(text):
        named = _HOST.match(text[scheme.end() + 2 :])
        return ANY_HOST if named is None else named[1]
    found = _REMOTE.fullmatch(text) or re.fullmatch(r"(?:[^/:@\s]+@)?([^/:@\s]+)::.*", text, re.DOTALL)
    return None if found is None else found[1]


def address_host(text: str) -> str | None:
    """The host in an address of git; None for a path here."""
    return None if text.startswith("file://") else _far(text)


def _named(command: Command) -> None:
    """Any word may be the host, as the same option takes a value in one version and none in another."""
    words = [word for word in command.arguments if not word.text.startswith("-") and not word.text.isdigit()]
    for word in words:
        reach(command, word)
    if not words and not {"-l", "--listen", "-h", "--help"} & set(command.texts):
        command.host(ANY_HOST)


def _dig(command: Command) -> None:
    """The question goes to the server after `@`, or to one that the system chooses; the name itself tells something."""
    options, operands = command.options(OptionTable("bcfkpqtxyi"))
    command.reads(values_of(options, "-f", "-k"))
    for word in operands:
        if word.text.startswith("@") or "." in word.text:
            reach(command, Word(word.text.removeprefix("@"), word.static))
    command.host(ANY_HOST)


def _socat(command: Command) -> None:
    for text in command.texts:
        parts = re.split(r"[:,]", text)
        if re.fullmatch(r"(?:tcp|udp|openssl|ssl|sctp|proxy|socks)\w*(?:-connect)?", parts[0], re.IGNORECASE):
            reach(command, Word(parts[1] if len(parts) > 1 else ""))
    command.reads_like_paths(command.arguments)
    command.unknown()


class _Registry(Struct, frozen=True):
    """A package manager: where it gets packages, and which subcommands do not. Where that is usually set by the user or
    the company, it is any host."""

    hosts: tuple[str, ...]
    offline: frozenset[str] = frozenset()
    """Subcommands that reach nothing, with effects that are known well enough."""
    indexes: tuple[str, ...] = ()
    """Options that name another registry."""
    variables: tuple[str, ...] = ()
    """Variables that do."""

    def __call__(self, command: Command) -> None:
        words = [text for text in command.texts if not text.startswith("-")]
        if not (words and words[0] in self.offline):
            for name in self.hosts:
                command.host(name)
        for at, text in enumerate(command.texts):
            name, equals, value = text.partition("=")
            if name in self.indexes:
                named = Word(value) if equals else next(iter(command.arguments[at + 1 : at + 2]), Word(""))
                reach(command, named)
        for name in self.variables:
            if value := command.surroundings.variables.get(name):
                reach(command, Word(value))
        command.reads_like_paths(command.arguments)
        command.unknown()


_PIP = _Registry(
    (ANY_HOST,),
    frozenset({"list", "freeze", "show", "check", "config", "cache", "help", "debug", "uninstall"}),
    ("-i", "--index-url", "--extra-index-url", "--index", "--default-index", "-f", "--find-links"),
    ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"),
)
_LOCAL_SCRIPTS = frozenset({"run", "run-script", "test", "t", "start", "stop", "ls", "list", "root", "bin", "help"})
_NPM = _Registry((ANY_HOST,), _LOCAL_SCRIPTS, ("--registry",), ("npm_config_registry",))
_YARN = _Registry((ANY_HOST,), _LOCAL_SCRIPTS, ("--registry",), ("npm_config_registry",))
_CARGO = _Registry(
    (ANY_HOST,),
    frozenset({"fmt", "clean", "tree", "version", "help", "metadata", "locate-project"}),
    ("--index", "--registry"),
)
_GO = _Registry(
    ("proxy.golang.org", "sum.golang.org"),
    frozenset({"fmt", "vet", "version", "env", "doc", "clean", "help", "tool"}),
    variables=("GOPROXY",),
)
REGISTRIES: Mapping[str, _Registry] = {
    **dict.fromkeys(("pip", "pip3", "pipx", "uv", "uvx", "poetry", "pdm", "hatch", "pipenv", "twine"), _PIP),
    **dict.fromkeys(("npm", "npx", "pnpm", "pnpx", "bun", "bunx", "corepack"), _NPM),
    "yarn": _YARN,
    "cargo": _CARGO,
    "go": _GO,
    "rustup": _Registry(("static.rust-lang.org",), frozenset({"show", "which", "help", "default"})),
    **dict.fromkeys(("gem", "bundle", "bundler"), _Registry((ANY_HOST,), frozenset({"list", "env", "help"}))),
    **dict.fromkeys(("composer",), _Registry(("repo.packagist.org",), frozenset({"show", "validate", "help"}))),
    **dict.fromkeys(("gh", "hub"), _Registry(("api.github.com", "github.com"), frozenset({"help", "version"}))),
    "glab": _Registry(("gitlab.com",)),
    **dict.fromkeys(
        (
            *("apt", "apt-get", "aptitude", "yum", "dnf", "apk", "pacman", "zypper", "brew", "port", "conda", "mamba"),
            *("nix", "nix-shell", "nix-build", "guix", "snap", "flatpak", "mvn", "gradle", "gradlew", "sbt", "lein"),
            *("kubectl", "helm", "aws", "gcloud", "az", "terraform", "ansible", "ansible-playbook", "heroku", "fly"),
            *("vercel", "netlify", "wrangler", "firebase", "doctl", "aria2c", "lftp", "rclone", "s3cmd", "smbclient"),
            *("psql", "mysql", "mongosh", "redis-cli", "sendmail", "mail", "mutt", "swaks", "gpg", "hg", "svn"),
        ),
        _Registry((ANY_HOST,), frozenset({"help", "version"})),
    ),
}
_ENGINE_OFFLINE = frozenset(
    {"ps", "images", "inspect", "logs", "stop", "rm", "rmi", "version", "info", "kill", "start"}
)
_IMAGE = lazy_regex(r"(?:([\w.-]+\.[\w.-]+|localhost|[\w.-]+:\d+)/)?[\w./-]+(?::[\w.-]+)?(?:@sha256:\w+)?")


def _containers(command: Command) -> None:
    """`docker pull registry.example.com/image`; without a host it is Docker Hub."""
    words = [word for word in command.arguments if not word.text.startswith("-")]
    command.unknown()
    command.reads_like_paths(word for word in command.arguments if "/" not in word.text or word.text[0] in "/.-~")
    if not words or words[0].text in _ENGINE_OFFLINE:
        return
    found = _IMAGE.fullmatch(words[1].text) if words[0].text in ("pull", "push") and len(words) > 1 else None
    if found is None:
        command.host(ANY_HOST)
    elif found[1]:
        command.host(found[1].partition(":")[0])
    else:
        command.host("registry-1.docker.io")
        command.host("auth.docker.io")


NETWORK: Mapping[str, Callable[[Command], None]] = {
    **REGISTRIES,
    **dict.fromkeys(("docker", "podman", "nerdctl", "skopeo", "crane"), _containers),
    **dict.fromkeys(("scp", "rsync"), _copy_between),
    **dict.fromkeys(("ssh", "sftp", "autossh", "mosh", "ssh-copy-id"), _ssh),
    **dict.fromkeys(
        (
            *("nc", "ncat", "netcat", "telnet", "ping", "ping6", "traceroute", "tracepath", "mtr", "ftp", "tftp"),
            *("whois", "ssh-keyscan", "fping", "nmap", "http", "https", "xh", "w3m", "lynx", "links", "elinks"),
        ),
        _named,
    ),
    **dict.fromkeys(("dig", "host", "nslookup", "drill", "getent"), _dig),
    "curl": _curl,
    "wget": _wget,
    "socat": _socat,
}
