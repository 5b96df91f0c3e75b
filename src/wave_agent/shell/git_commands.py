"""Git's own subcommands, and what its settings run: tables. Any other name may be an alias."""

from collections.abc import Mapping

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.options import OptionTable

# `git --list-cmds=builtins,main` and the `list-…` groups of git 2.39, plus additions up to 2.52.
_OWN = """
    add add--interactive am annotate apply archimport archive backfill bisect bisect--helper blame branch bugreport
    bundle cat-file check-attr check-ignore check-mailmap check-ref-format checkout checkout--worker checkout-index
    cherry cherry-pick citool clean clone column commit commit-graph commit-tree config count-objects credential
    credential-cache credential-cache--daemon credential-libsecret credential-manager credential-netrc
    credential-osxkeychain credential-store credential-wincred cvsexportcommit cvsimport cvsserver daemon describe
    diagnose diff diff-files diff-index diff-pairs diff-tree difftool difftool--helper env--helper fast-export
    fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch fsck
    fsck-objects fsmonitor--daemon gc get-tar-commit-id grep gui hash-object help hook http-backend http-fetch
    http-push imap-send index-pack init init-db instaweb interpret-trailers last-modified log ls-files ls-remote
    ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index merge-octopus merge-one-file
    merge-ours merge-recursive merge-recursive-ours merge-recursive-theirs merge-resolve merge-subtree merge-tree
    mergetool mktag mktree multi-pack-index mv name-rev notes p4 pack-objects pack-redundant pack-refs patch-id
    pickaxe prune prune-packed pull push quiltimport range-diff read-tree rebase receive-pack reflog refs remote
    remote-ext remote-fd remote-ftp remote-ftps remote-http remote-https repack replace replay request-pull rerere
    reset restore rev-list rev-parse revert rm send-email send-pack sh-i18n sh-i18n--envsubst sh-setup shell
    shortlog show show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule
    submodule--helper subtree svn switch symbolic-ref tag unpack-file unpack-objects update-index update-ref
    update-server-info upload-archive upload-archive--writer upload-pack var verify-commit verify-pack verify-tag
    version web--browse whatchanged worktree write-tree
"""
_KNOWN_ADDITIONS = "lfs"
"""A separate program that many projects need. Git prefers a program of that name to an alias."""
COMMANDS = frozenset(f"{_OWN} {_KNOWN_ADDITIONS}".split())

SAME_AS: Mapping[tuple[str, ...], str] = {
    ("send-pack",): "push",
    ("http-push",): "push",
    ("subtree", "push"): "push",
    ("stage",): "add",
    ("init-db",): "init",
}
"""Subcommands that are another name for a different one."""


class Carries(Struct, frozen=True):
    """How a subcommand gets the command to run."""

    options: tuple[str, ...] = ()
    """Options whose value is text for a shell."""
    operands: int | None = None
    """The command starts with this operand."""
    script: bool = False
    """These operands are text for a shell."""
    git: bool = False
    """They are a git command, without the word git."""
    reads: OptionTable = OptionTable()
    """Options that take a value."""


_TRANSPORT = Carries(
    ("-u", "--upload-pack", "--exec"), reads=OptionTable("uojbc", ("--upload-pack", "--exec", "--config"))
)
_FILTERS = (
    *("--setup", "--env-filter", "--tree-filter", "--index-filter", "--parent-filter", "--msg-filter"),
    *("--commit-filter", "--tag-name-filter"),
)
CARRIES: Mapping[str, Carries] = {
    "archive": Carries(("--exec",), reads=OptionTable("o", ("--exec", "--remote", "--format", "--prefix"))),
    "clone": _TRANSPORT,
    "daemon": Carries(("--access-hook",)),
    "difftool": Carries(("-x", "--extcmd"), reads=OptionTable("xt", ("--extcmd", "--tool"))),
    "fetch": Carries(("--upload-pack", "--exec"), reads=OptionTable("joO", ("--upload-pack", "--exec", "--depth"))),
    "fetch-pack": Carries(("--upload-pack", "--exec")),
    "filter-branch": Carries(_FILTERS, reads=OptionTable("df", _FILTERS)),
    "for-each-repo": Carries(operands=1, git=True, reads=OptionTable("", ("--config",))),
    "grep": Carries(
        ("-O", "--open-files-in-pager"),
        reads=OptionTable("efABCmd", ("--max-depth", "--threads"), attached="O"),
    ),
    "instaweb": Carries(("-b", "--browser", "-d", "--httpd"), reads=OptionTable("bdpm", ("--browser", "--httpd"))),
    "ls-remote": Carries(("--upload-pack", "--exec"), reads=OptionTable("o", ("--upload-pack", "--exec", "--sort"))),
    "merge-index": Carries(operands=1),
    "pull": Carries(("--upload-pack",), reads=OptionTable("Xsjo", ("--upload-pack", "--depth", "--strategy"))),
    "push": Carries(("--receive-pack", "--exec"), reads=OptionTable("o", ("--receive-pack", "--exec", "--repo"))),
    "rebase": Carries(
        ("-x", "--exec"), reads=OptionTable("xsXC", ("--exec", "--onto", "--strategy", "--strategy-option"))
    ),
    "send-email": Carries(
        ("--sendmail-cmd", "--to-cmd", "--cc-cmd", "--header-cmd", "--smtp-server"),
        reads=OptionTable("", ("--sendmail-cmd", "--to-cmd", "--cc-cmd", "--header-cmd", "--smtp-server")),
    ),
    "send-pack": Carries(("--receive-pack", "--exec")),
    "web--browse": Carries(("-b", "--browser", "-t", "--tool"), reads=OptionTable("btc", ("--browser", "--tool"))),
}
UNDER: Mapping[tuple[str, str], Carries] = {
    ("bisect", "run"): Carries(operands=2),
    ("submodule", "foreach"): Carries(operands=2, script=True),
}

RUNS = lazy_regex(
    r"core\.(?:editor|pager|sshcommand|fsmonitor|askpass|gitproxy|alternaterefscommand)|sequence\.editor|pager\..+"
    r"|diff\.external|diff\..+\.(?:command|textconv)|(?:difftool|mergetool|browser|man|guitool)\..+\.(?:cmd|path)"
    r"|merge\..+\.driver|filter\..+\.(?:clean|smudge|process)|gpg\.(?:.+\.)?program|gpg\.ssh\.defaultkeycommand"
    r"|interactive\.difffilter|sendemail\..*cmd|(?:web|help)\.browser|remote\..+\.(?:uploadpack|receivepack|vcs)"
    r"|tar\..+\.command|trailer\..+\.(?:cmd|command)|uploadpack\.packobjectshook|imap\.tunnel|submodule\..+\.update"
)
"""Settings whose value is a command."""
HELPER = lazy_regex(r"credential\.(?:.+\.)?helper")
"""Settings whose value is a command or the end of a name: `store` is `git credential-store`."""
_CORE = (
    "abbrev|attributesfile|autocrlf|bare|bigfilethreshold|checkroundtripencoding|checkstat|commentchar|commitgraph"
    "|compression|createobject|deltabasecachelimit|disambiguate|eol|excludesfile|filemode|fscache|fsync.*|ignorecase"
    "|logallrefupdates|longpaths|loosecompression|maxtreedepth|multipackindex|notesref|packedgit.*|precomposeunicode"
    "|preloadindex|protect.*|quotepath|repositoryformatversion|safecrlf|sharedrepository|sparsecheckout.*|splitindex"
    "|symlinks|trustctime|untrackedcache|warnambiguousrefs|whitespace|worktree"
)
HARMLESS = lazy_regex(
    rf"core\.(?:{_CORE})|(?:user|author|committer|color|column|advice|safe|protocol|https?|url|tag|log|pull|push|fetch"
    r"|gc|pack|index|status|branch|feature|versionsort|grep|format|clone|checkout|maintenance|blame|apply|am|stash"
    r"|worktree|transfer|notes|rerere|extensions|receive|uploadpack|commit)\..+"
    r"|(?:diff|merge|rebase|init|submodule)\.[a-z]+|remote\..+\.(?:url|pushurl|fetch|push|prune|tagopt|mirror)"
    r"|lfs\.(?!custom|extension).+|credential\.(?:.+\.)?(?:username|usehttppath)"
)
"""Settings that run nothing."""
UNLESS = lazy_regex(r"init\.templatedir|diff\.external|uploadpack\.packobjectshook|receive\.procreceiverefs")
"""Settings that these patterns would wrongly take for harmless."""
