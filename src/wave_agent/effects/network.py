"""Programs that reach other machines: which of their words name them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from wave_agent.effects.gathering import Command
from wave_agent.effects.values import ANY_HOST
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.options import Option, OptionTable, has, read, values_of
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
    for text in _told(command, values_of(options, "-K", "--config")):
        for found in _CURL_CONFIG.finditer(text):
            reach(command, Word(found[1]))
    if has(options, *_CURL_ELSEWHERE, "-n", "--netrc", "--netrc-optional", "-L", "--location", "--location-trusted"):
        command.unknown()
    if not operands and not has(options, "--url", "--version", "-V", "--help", "-h"):
        command.unknown()


_CURL_CONFIG = re.compile(
    r"""^\s*-*(?:url|proxy|preproxy|socks\w*|doh-url)\s*[=:\s]\s*["']?([^"'\s]+)""", re.MULTILINE | re.IGNORECASE
)


def _told(command: Command, lists: Sequence[Word]) -> list[str]:
    """Lines of files that hosts are in. What they say when the command runs may be something else."""
    known = command.stdin is not None and command.stdin.static and all(one.text == "-" for one in lists)
    if lists and not known:
        command.host(ANY_HOST)
    return [word.text for word in command.listed(lists, "\n")]


def _instead(command: Command, value: Word) -> None:
    """`HOST:PORT:HOST:PORT`, or `HOST:PORT:ADDRESS,ADDRESS`: what comes third is reached."""
    third = value.text.split(":", 2)[2:]
    for one in third[0].split(",") if third else ():
        if one.strip(":"):
            reach(command, Word(one, value.static))


def names_a_host(variable: str) -> bool:
    """Whether programs reach the host in this variable."""
    return variable.lower().endswith("_proxy") or _SERVER_NAME.fullmatch(variable) is not None


def proxies_in(text: str) -> Iterator[str]:
    """The hosts of the proxies and servers that `name=address` sets, for wget or in the environment."""
    for found in _SERVER.finditer(text):
        for address in re.split(r"[,|]", found[1]):
            if "://" in address and not address.startswith(_LOCAL_SOCKETS):
                yield from proxies_in(f"http_proxy={address}")
    for found in _PROXY.finditer(text):
        scheme = _SCHEME.match(found[1])
        named = _HOST.match(found[1][scheme.end() :].lstrip("/") if scheme is not None else found[1])
        yield ANY_HOST if named is None or _BUILT.search(named[1].strip("[]")) else named[1]


_LOCAL_SOCKETS = ("unix:", "npipe:", "fd:")
_SERVERS = r"(?:DOCKER|CONTAINER|BUILDKIT)_HOST|GOPROXY|npm_config_registry|(?:PIP|UV)_\w*(?:INDEX|URL)\w*"
_SERVER_NAME = lazy_regex(_SERVERS)
_SERVER = lazy_regex(rf"""\b(?:{_SERVERS})\s*=\s*["']?([^\s"';&]+)""")
_PROXY = re.compile(r"""\b(?:https?|ftp|all|rsync)_proxy\s*=\s*["']?([^\s"';&|]+)""", re.IGNORECASE)
_WGET_FILES = (
    *("--post-file", "--body-file", "--ca-certificate", "--certificate", "--private-key", "--load-cookies", "--config"),
    *("--crl-file", "--pinnedpubkey", "--random-file", "--egd-file"),
)
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
    for line in _told(command, values_of(options, "-i", "--input-file")):
        reach(command, Word(line.strip()))
    if has(options, "--config"):
        command.host(ANY_HOST)
    for value in values_of(options, "-e", "--execute"):
        for host in proxies_in(value.text):
            command.host(host)
    command.unknown()  # it follows redirections to other hosts


_SSH = OptionTable("BbcDEeFIiJLlmOoPpQRSWw")
_SCP = OptionTable("cDFiJloPSX")
_SFTP = OptionTable("BbcDFiJloPRSsX")


def _ssh(command: Command) -> None:
    table = _SFTP if command.name == "sftp" else _SSH
    options, operands = command.options(table, mixed=False)
    more, _ = read(operands, table)  # they may also follow the host
    _log_in(command, operands[:1], [*options, *more])


def _log_in(command: Command, names: Iterable[Word], options: list[Option]) -> None:
    """A name without a dot may be an alias in the settings of ssh, which may also say what else runs."""
    command.reads(values_of(options, "-i", "-F"))
    command.unknown()
    for one in names:
        reach(command, one)
    _on_the_way(command, options)


def _on_the_way(command: Command, options: Sequence[Option]) -> None:
    """Hosts that options of ssh name: `-J`, `-o HostName=…`."""
    named = values_of(options, "-J")
    for value in values_of(options, "-o"):
        if found := _SSH_HOST.fullmatch(value.text):
            named.append(Word(found[1], value.static))
    for value in named:
        for one in value.text.split(","):
            if one.strip().lower() != "none":
                reach(command, Word(_SSH_SCHEME.sub("", one.strip(" \"'")), value.static))


_SSH_HOST = lazy_regex(r"\s*(?:HostName|ProxyJump)\s*[=\s]\s*(.*)", re.IGNORECASE | re.DOTALL)
_SSH_SCHEME = lazy_regex(r"^ssh://")


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
        _on_the_way(command, options)


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


def _scans_keys(command: Command) -> None:
    """`ssh-keyscan -f FILE`"""
    options, operands = command.options(OptionTable("fOpTt"))
    lines = _told(command, values_of(options, "-f"))
    for text in (*(word.text for word in operands), *(word for line in lines for word in re.split(r"[\s,]+", line))):
        if text:
            reach(command, Word(text))
    if lines or not operands:
        command.unknown()


def _secure(command: Command) -> None:
    """`openssl s_client`: of its options and operands, each may be a host. Other subcommands read files."""
    if not command.texts or command.texts[0] not in _SECURE:
        return
    named = False
    for before, word in pairwise(command.arguments):
        option = f"-{before.text.lstrip('-')}" if before.text.startswith("-") else ""
        if option in _SECURE_HOSTS or (word is command.arguments[-1] and not word.text.startswith("-") and not option):
            named = True
            reach(command, word)
    if not named:
        command.host(ANY_HOST)


_SECURE = ("s_client", "s_time", "ocsp", "cmp", "tsget")
_SECURE_HOSTS = ("-connect", "-host", "-proxy", "-url", "-server", "-xmpphost", "-tlsproxy")


def _logs(command: Command) -> None:
    """`logger` writes to the log of the system, or sends it to a server."""
    options, _ = command.options(
        OptionTable("fnpPtuS", ("--file", "--server", "--priority", "--port", "--tag", "--socket", "--size", "--msgid"))
    )
    command.reads(values_of(options, "-f", "--file"))
    for value in values_of(options, "-n", "--server"):
        reach(command, value)
    command.unknown()


def _debugs(command: Command) -> None:
    """`gdb -ex 'target remote HOST:PORT'`"""
    text = " ".join((*command.texts, *([command.stdin.text] if command.stdin is not None else [])))
    for found in _DEBUGGED.finditer(text):
        address = _TRANSPORT.sub("", found[1])
        if not address.startswith(("|", "/")):
            reach(command, Word(address))
    command.reads_like_paths(command.arguments)
    command.unknown()


_DEBUGGED = lazy_regex(
    r"(?:target\s+(?:extended-|async-)?remote|gdb-remote|process\s+connect|platform\s+connect)\s+([^\s'\"]+)"
)
_TRANSPORT = lazy_regex(r"^(?:tcp[46]?|udp[46]?|connect):(?://)?")


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
    options, rest = command.options(OptionTable("Hcl", ("--host", "--context", "--url", "--connection")), mixed=False)
    engines = [value.text for value in values_of(options, "-H", "--host", "--url")]
    for text in (*engines, command.surroundings.variables.get("DOCKER_HOST", "")):
        for host in proxies_in(f"DOCKER_HOST={text}"):
            command.host(host)
    if has(options, "-c", "--context", "--connection"):
        command.host(ANY_HOST)
    words = words if len(rest) == len(command.arguments) else [word for word in rest if not word.text.startswith("-")]
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
            *("whois", "fping", "nmap", "http", "https", "xh", "w3m", "lynx", "links", "elinks"),
        ),
        _named,
    ),
    **dict.fromkeys(("dig", "host", "nslookup", "drill", "getent"), _dig),
    "curl": _curl,
    "ssh-keyscan": _scans_keys,
    "openssl": _secure,
    "logger": _logs,
    **dict.fromkeys(("gdb", "lldb"), _debugs),
    "wget": _wget,
    "socat": _socat,
}
