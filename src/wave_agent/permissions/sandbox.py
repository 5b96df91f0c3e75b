"""A sandbox enforced by the kernel: commands run under bubblewrap, and see only what it mounts for them.

The whole file system is readable; the project, added directories and a private /tmp are writable. On top of that, files
that would let the agent rewrite its guards, or that a rule protects from changes, are mounted read-only; those that a
rule protects from being read are covered. Every directory on the path to such a file is a mount too: a mount can be
neither renamed nor removed, so nothing can replace the directory.
"""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SandboxError
from wave_agent.permissions.protected_paths import ProtectedPaths
from wave_agent.rules.rule import NET, Places, Rule
from wave_agent.system.real_files import is_below
from wave_agent.text import strip_controls

if TYPE_CHECKING:
    from wave_agent.permissions.denied_files import Denied, DeniedFiles
    from wave_agent.permissions.hosts import Network
    from wave_agent.permissions.network_proxy import NetworkProxy, WayOut

SETTINGS_DIRECTORIES = (".wave", ".claude", ".codex")
"""Read-only as a whole: a settings file that does not exist yet cannot be mounted."""
PRIVATE_PLACES = ("/tmp", "/var/tmp")
EMPTIED_PLACES = ("/run", "/var/run")
"""Where services listen: Docker, D-Bus, ssh and gpg agents. A read-only mount does not prevent use of a socket."""
KEPT_IN_RUN = ("/run/current-system", "/run/wrappers")
"""Where NixOS stores its programs."""
DROPPED_VARIABLES = (
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"),
    *("DOCKER_HOST", "TMUX", "STY", "WAYLAND_DISPLAY", "DISPLAY", "TMP", "TEMP", "TEMPDIR"),
)
LOADER_VARIABLES = ("GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH", "BASH_ENV", "ENV")
"""Like `LD_…`, they make a program load files. bubblewrap runs outside and must not load what a command wrote."""
_PROBE_SECONDS = 30
_SOCKETS = Path("/proc/net/unix")

# bubblewrap dies of the SIGTERM that its group is sent first, and kills the command before it can clean up. So it
# ignores that signal, and the default is restored for the command, which would otherwise inherit this.
_IGNORE_TERM = 'trap "" TERM; exec "$@"'
_RESTORE_TERM = ("env", "--default-signal=TERM")


class Borders(Struct, frozen=True, kw_only=True):
    """What a command can see and change: existing paths, with links resolved."""

    writable: tuple[str, ...]
    pinned: tuple[str, ...] = ()
    """Directories below a writable one that contain something read-only."""
    read_only: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    """Directories that appear empty."""
    silenced: tuple[str, ...] = ()
    """Sockets that cannot be reached."""
    private: Mapping[str, str] = {}
    """Directories and their replacements."""
    masked: Mapping[str, str] = {}
    """Paths that must not be read, and the file mounted there instead; empty for a directory, which appears empty."""
    written: tuple[str, ...] = ()
    """Files of ours that the command has to write, wherever they are."""
    network: bool = False


def arguments(borders: Borders) -> list[str]:
    """bubblewrap's arguments for these borders. If a path is listed twice, the stricter one wins."""
    mounts: dict[str, tuple[str, ...]] = {"/": ("--ro-bind", "/", "/")}
    mounts |= {path: ("--bind", source, path) for path, source in borders.private.items()}
    mounts |= {path: ("--bind", path, path) for path in (*borders.writable, *borders.pinned)}
    mounts |= {path: ("--perms", "0700", "--tmpfs", path) for path in borders.hidden}
    mounts |= {path: ("--ro-bind", "/dev/null", path) for path in borders.silenced}
    mounts |= {path: ("--ro-bind", path, path) for path in borders.read_only}
    emptied = [path for path, cover in borders.masked.items() if not cover]
    mounts = {path: words for path, words in mounts.items() if not any(is_below(path, one) for one in emptied)}
    mounts |= {path: ("--ro-bind", cover, path) for path, cover in borders.masked.items() if cover}
    mounts |= {path: ("--perms", "0555", "--tmpfs", path) for path in emptied}
    mounts |= {"/dev": ("--dev", "/dev"), "/proc": ("--proc", "/proc")}
    # A mount hides earlier mounts below it.
    ordered = sorted(mounts, key=lambda path: path.split("/"))
    closed = [path for path in borders.hidden if path in mounts and path not in borders.masked]
    return [
        *("--die-with-parent", "--cap-drop", "ALL"),
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if borders.network else ("--unshare-net",)),
        *(word for path in ordered for word in mounts[path]),
        *(word for path in borders.written for word in ("--bind", path, path)),
        *(word for path in (*closed, *emptied) for word in ("--remount-ro", path)),
    ]


class Sandbox:
    """The borders of one session. They are rebuilt for every command, as files come and go."""

    def __init__(
        self,
        program: str,
        *,
        project: str,
        directories: Sequence[str],
        protected: ProtectedPaths,
        state: Path,
        outputs: Path,
        network: "Network",
        denied: Sequence[Rule] = (),
        home: str = "",
    ) -> None:
        """`directories` are treated as part of the project; `state` is the agent's own directory, `outputs` the part of
        it that the model may read. `denied` are the deny rules, `home` the user's directory, which `~/` in rules means.
        Does not touch the disk."""
        self._program = program
        self._project = project
        self._state = os.path.realpath(state)
        self._transcripts = os.path.join(self._state, "projects")
        self._outputs = outputs
        self._network = False if any(rule.tool == NET and rule.pattern is None for rule in denied) else network
        self._directories = tuple(os.path.realpath(path) for path in (project, *directories))
        settings = [os.path.join(project, name) for name in SETTINGS_DIRECTORIES]
        closed = (*protected.directories, *settings, *map(os.path.realpath, settings))
        self._protected = ProtectedPaths(protected.files, tuple(dict.fromkeys(closed)))
        self._denied = tuple(rule for rule in denied if rule.is_about_effects)
        self._places = Places(project, home or os.path.expanduser("~"))
        self._unread: DeniedFiles | None = None
        self._unchanged: DeniedFiles | None = None
        self._notes: dict[str, bool] = {}
        """Notes on rules that are applied more or less strictly than they say, and whether they were taken."""
        self._proxy: NetworkProxy | None = None
        self._lock = threading.Lock()
        self._mask: str | None = None
        self._private: str | None = None
        self._placeholders: list[str] = []
        self._gentle = True

    @classmethod
    def open(
        cls,
        *,
        project: str,
        directories: Sequence[str],
        protected: ProtectedPaths,
        state: Path,
        outputs: Path,
        network: "Network",
        environment: Mapping[str, str],
        denied: Sequence[Rule] = (),
    ) -> Self:
        """A sandbox that has been tested. Raises `SandboxError` if none is available."""
        program = find_bubblewrap(environment, distrusted=(project, *directories))
        sandbox = cls(
            program,
            project=project,
            directories=directories,
            protected=protected,
            state=state,
            outputs=outputs,
            network=network,
            denied=denied,
        )
        try:
            sandbox.probe(environment)
        finally:
            sandbox.close()  # a session that runs no command leaves no trace, even while it is running
        return sandbox

    def probe(self, environment: Mapping[str, str]) -> None:
        """Runs a command that does nothing. Raises `SandboxError` with bubblewrap's error message."""
        problem = self._try(environment)
        if problem and self._gentle:
            self._gentle = False  # an `env` that cannot restore signals costs the grace period, not the sandbox
            problem = self._try(environment)
        if problem:
            raise _unusable(problem)

    @property
    def description(self) -> str:
        """The description for the model."""
        network = "" if self._network else " There is no network."
        if isinstance(self._network, tuple) and self._network:
            network = (
                f" The network is limited to {', '.join(self._network)}, over HTTP and HTTPS, through the proxy in the "
                "environment."
            )
        rules = " Files that rules deny are unreadable or read-only." if self._denied else ""
        return (
            "Commands run in a sandbox: only the project, added directories and a private /tmp are writable; "
            f"settings, hook scripts, .git/config and .git/hooks are read-only.{rules}{network}"
        )

    def why_unreachable(self, host: str, port: int) -> str | None:
        """Why the agent itself must not reach a host for the model: commands could not. None: it may."""
        if isinstance(self._network, bool) or not self._network:
            return None if self._network else "the sandbox has no network (setting sandbox.network)"
        from wave_agent.permissions.hosts import HostList  # lazy: needs a list of hosts

        return HostList(self._network).why_not(host, port)

    def way_out(self) -> "WayOut | None":
        """The network of one command, if it may reach some hosts only. Close it when the command has ended."""
        if isinstance(self._network, bool) or not self._network:
            return None
        from wave_agent.permissions.hosts import HostList
        from wave_agent.permissions.network_proxy import NetworkProxy  # lazy: needs a list of hosts

        with self._lock:
            if self._proxy is None:
                rules = [rule.pattern for rule in self._denied if rule.tool == NET]
                self._proxy = NetworkProxy(HostList(self._network, rules))
        return self._proxy.open()

    def take_notes(self) -> list[str]:
        """Where rules are applied more or less strictly than they say. Each is returned once."""
        new = [note for note, taken in self._notes.items() if not taken]
        self._notes |= dict.fromkeys(new, True)
        return new

    def command(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: str,
        writable: Sequence[str] = (),
        way_out: "WayOut | None" = None,
    ) -> list[str]:
        """The command line that runs `argv` inside. `writable` are files outside the borders that it must write.

        Run it with the environment that `outside` returns for the command's own, plus that of `way_out`. Blocks while
        it looks for files that rules deny. Raises `SandboxError` if it cannot apply these rules.
        """
        with self._lock:
            borders = replace(self._draw(), written=tuple(writable))
        hidden = next((path for path in borders.masked if is_below(cwd, path)), None)
        if hidden is not None and cwd not in borders.masked:
            raise SandboxError(f"a permission rule denies reading {hidden}, and commands start in {cwd}")
        loader = {name: value for name, value in environment.items() if _is_for_the_loader(name)}
        extra = [word for name, value in loader.items() for word in ("--setenv", name, value)]
        inside = [self._program, *arguments(borders), *extra, "--chdir", cwd, "--"]
        argv = [*_RESTORE_TERM, *argv] if self._gentle else argv
        inside += argv if way_out is None else way_out.enter(argv)
        return ["/bin/sh", "-c", _IGNORE_TERM, "sh", *inside] if self._gentle else inside

    def outside(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment for programs that must run outside."""
        kept = {name: value for name, value in environment.items() if not _is_for_the_loader(name)}
        return {**{name: value for name, value in kept.items() if name not in DROPPED_VARIABLES}, "TMPDIR": "/tmp"}

    def may_have_changed(self, program: str) -> bool:
        """Whether a command may have written this program, so that only other commands should run it."""
        forms = (program, os.path.realpath(program))
        return any(is_below(form, base) for form in forms for base in self._directories)

    def watch(self) -> Callable[[], str]:
        """Records what cannot be mounted: links that lead to protected files, and files that do not exist yet.

        The returned function checks again: anything created there is moved away, which its return value reports.
        Otherwise it returns an empty string.
        """
        before = {path: _seen(path) for path in self._survey().open}
        return lambda: "\n".join(self._put_right(path, was) for path, was in before.items() if _seen(path) != was)

    def refusal(self, path: str) -> str | None:
        """Why the agent itself must not write to this path; None if it may."""
        if self._protected.find(path) is not None or os.path.realpath(path) in self._protected.directories:
            return f"{path} is protected, and read-only in the sandbox. Ask the user to change it."
        real = os.path.realpath(path)
        usable = [path for path in self._directories if self._is_usable(path)]
        if _innermost(real, (*usable, self._state, self._transcripts)) not in usable:
            inside = ", ".join(dict.fromkeys(self._directories))
            return f"{path} is outside the directories that are writable in the sandbox: {inside}."
        return None

    def close(self) -> None:
        """Removes everything it created, and ends the network."""
        if self._proxy is not None:
            self._proxy.close()
            self._proxy = None
        if self._mask is not None:
            with suppress(OSError):
                os.unlink(self._mask)
            self._mask = None
        for path in reversed(self._placeholders):
            with suppress(OSError):  # Something was put there: leave it alone.
                os.rmdir(path)
        self._placeholders.clear()
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)
            self._private = None
            with suppress(OSError):  # It contains outputs.
                self._outputs.rmdir()

    # ---------------------------------------------------------------------------------------------------------- inside

    def _try(self, environment: Mapping[str, str]) -> str:
        """Why a command cannot run inside; empty if it can."""
        way_out = self.way_out()
        try:
            kept = () if way_out is None else (way_out.descriptor,)
            command = self.command(["true"], environment, cwd="/", way_out=way_out)
            return _why_failing(command, self.outside(environment), kept)
        finally:
            if way_out is not None:
                way_out.close()

    def _draw(self) -> Borders:
        survey = self._survey()
        for path in survey.placeholders:
            try:
                os.mkdir(path, 0o755)
            except OSError:
                continue
            self._placeholders.append(path)
        unread, unchanged = self._denied_now()
        usable = [path for path in dict.fromkeys(self._directories) if self._is_usable(path)]
        # What lies in a directory that must not change is not writable either.
        writable = tuple(path for path in usable if not any(is_below(path, one) for one in unchanged.paths))
        hidden = [path for path in EMPTIED_PLACES if _is_directory(path) and path not in writable]
        hidden += [path for path in (self._state, self._transcripts) if os.path.isdir(path) and path not in writable]
        shown = [path for path in (*KEPT_IN_RUN, str(self._outputs)) if os.path.isdir(path)]
        if self._network is True and os.path.exists("/etc/resolv.conf"):
            shown.append(os.path.realpath("/etc/resolv.conf"))
        shown = [path for path in shown if not any(is_below(path, one) for one in unread.paths)]
        private = {path: self._private_directory() for path in PRIVATE_PLACES if _is_directory(path)}
        covered = (*hidden, *private)
        visible = (*writable, *covered)
        # Nothing is mounted where nothing can be seen: the mount would need a file to be created there.
        masked = [path for path in unread.paths if path in writable or _innermost(path, visible) not in covered]
        masked += [path for path in usable if any(is_below(path, one) for one in unread.paths)]
        locked = [path for path in unchanged.paths if _innermost(path, visible) in writable]
        locked += [path for path in usable if path not in writable]
        for path in (*masked, *locked):
            survey.pin([base for base in writable if is_below(path, base) and path != base], path)
        kept = (*survey.read_only, *unchanged.paths, *(path for path in survey.placeholders if _is_directory(path)))
        return Borders(
            writable=writable,
            # A pinned directory is writable, so there must be none in a read-only one.
            pinned=tuple(path for path in survey.pinned if not any(is_below(path, one) for one in kept)),
            read_only=(
                *survey.read_only,
                *locked,
                *(path for path in survey.placeholders if _is_directory(path)),
                *(path for path in shown if any(is_below(path, one) for one in covered)),
            ),
            hidden=tuple(hidden),
            silenced=tuple(path for path in _sockets() if _innermost(path, (*writable, *covered)) not in covered),
            private=private,
            masked={path: "" if os.path.isdir(path) else self._mask_file() for path in masked},
            network=self._network is True,
        )

    def _denied_now(self) -> "tuple[Denied, Denied]":
        """What commands must not read, and what they must not change."""
        from wave_agent.permissions.denied_files import Denied, DeniedFiles  # lazy: only with a sandbox

        if not any(rule.pattern is not None and rule.tool != NET for rule in self._denied):
            return Denied(), Denied()
        if self._unread is None or self._unchanged is None:
            kept = self._directories
            reading = [rule for rule in self._denied if rule.tool == "read"]
            changing = [rule for rule in self._denied if rule.tool not in ("read", NET)]
            self._unread = DeniedFiles(reading, self._places, kept=kept)
            self._unchanged = DeniedFiles(changing, self._places, kept=kept)
        found = self._unread.find(), self._unchanged.find()
        if "/" in found[0].paths:
            raise SandboxError("a permission rule denies reading /, so no command can run")
        for note in (note for one in found for note in one.notes):
            self._notes.setdefault(note, False)
        return found

    def _mask_file(self) -> str:
        """An empty file that cannot be opened, where no command can write."""
        if self._mask is None:
            _make_private(self._outputs)
            mask = str(self._outputs / f"mask-{os.urandom(4).hex()}")
            os.close(os.open(mask, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0))
            self._mask = mask
        return self._mask

    def _is_usable(self, directory: str) -> bool:
        """It exists, was not replaced by a link, and adding it exposes nothing protected."""
        if os.path.realpath(directory) != directory:
            return False
        if directory == self._project:
            return True
        inside = self._protected.find(directory) is not None or directory in self._protected.directories
        state = directory == self._state or is_below(directory, self._transcripts)
        return os.path.isdir(directory) and not inside and not state

    def _private_directory(self) -> str:
        """In a place that commands cannot write: they could replace it with a link that the next mount would follow."""
        if self._private is None:
            _make_private(self._outputs)
            private = self._outputs / f"tmp-{os.urandom(4).hex()}"
            private.mkdir(mode=0o700)
            self._private = str(private)
        return self._private

    def _survey(self) -> "_MountPlan":
        survey = _MountPlan()
        for inner in self._directories:
            survey.pin([base for base in self._directories if is_below(inner, base) and inner != base], inner)
        closed = self._protected.directories
        for path in sorted({*self._protected.files, *closed}):
            if any(is_below(path, directory) and path != directory for directory in closed):
                continue  # read-only with everything in it
            around = [base for base in self._directories if is_below(path, base) and path != base]
            if around:
                survey.add(min(around, key=len), path, is_directory=path in closed)
        return survey

    def _put_right(self, path: str, was: str | None) -> str:
        moved = ""
        if os.path.lexists(path):
            _make_private(self._outputs)
            moved = str(self._outputs / f"moved-{os.urandom(4).hex()}-{os.path.basename(path)}")
            shutil.move(path, moved)
        if was is not None:
            os.symlink(was, path)
        where = f"; what was put there is now {moved}" if moved else ""
        return f"{path} is protected and must not be created or replaced by a command{where}"


class _MountPlan:
    """What has to be done to keep protected paths unchanged."""

    def __init__(self) -> None:
        self.pinned: dict[str, None] = {}
        self.read_only: dict[str, None] = {}
        self.placeholders: dict[str, None] = {}
        """Missing, and an empty directory there is harmless: it can be created, mounted and removed again."""
        self.open: dict[str, None] = {}
        """Nothing can be mounted there."""

    def pin(self, bases: Sequence[str], path: str) -> None:
        """A writable directory in another one: nothing may replace the directories that lead to it."""
        while bases and (path := os.path.dirname(path)) not in bases:
            self.pinned[path] = None

    def add(self, base: str, path: str, *, is_directory: bool) -> None:
        """Follows the path from the writable directory down to the first decisive part."""
        current = base
        for name in os.path.relpath(path, base).split("/"):
            current = os.path.join(current, name)
            if os.path.islink(current):
                self.open[current] = None
            elif not os.path.lexists(current):
                harmless = (is_directory and current == path) or (name.startswith(".") and name != ".git")
                (self.placeholders if harmless else self.open)[current] = None
            elif current == path or not os.path.isdir(current):
                self.read_only[current] = None
            else:
                self.pinned[current] = None
                continue
            return


def find_bubblewrap(environment: Mapping[str, str], *, distrusted: Sequence[str] = ()) -> str:
    """The program, from a directory of PATH that no command can have written. Raises `SandboxError`."""
    without = "or omit --sandbox: commands then run unconfined"
    if sys.platform != "linux":
        raise SandboxError(f"--sandbox needs Linux and bubblewrap; this is {sys.platform}. Omit --sandbox here.")
    absolute = map(os.path.realpath, environment.get("PATH", os.defpath).split(os.pathsep))
    usable = [path for path in absolute if not any(is_below(path, base) for base in distrusted)]
    found = shutil.which("bwrap", path=os.pathsep.join(usable))
    if found is None:
        raise SandboxError(f"--sandbox needs bwrap, which was not found. Install the package bubblewrap, {without}.")
    return found


def try_bubblewrap(environment: Mapping[str, str], *, distrusted: Sequence[str] = ()) -> None:
    """Raises `SandboxError` if there is no bubblewrap, or it cannot do what a sandbox needs."""
    program = find_bubblewrap(environment, distrusted=distrusted)
    problem = _why_failing([program, *arguments(Borders(writable=())), "--", "true"], environment)
    if problem:
        raise _unusable(problem)


def _why_failing(command: Sequence[str], environment: Mapping[str, str], kept: Sequence[int] = ()) -> str:
    """Why this command fails; empty if it does not."""
    import subprocess  # lazy: used once per session

    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            pass_fds=kept,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    problem = strip_controls(done.stderr.decode(errors="replace")).strip()
    return (problem or f"exit code {done.returncode}") if done.returncode else ""


def _unusable(problem: str) -> SandboxError:
    return SandboxError(
        f"--sandbox: bubblewrap does not work here: {problem}\n"
        "If the system forbids user namespaces, an administrator can allow them "
        "(kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, or the container's "
        "seccomp profile). Without --sandbox, commands run unconfined."
    )


def _sockets() -> Iterable[str]:
    """The bound sockets in this machine's file system."""
    try:
        lines = _SOCKETS.read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return ()
    paths = (line.split(maxsplit=7)[7] for line in lines if " /" in line)
    real = {os.path.realpath(path) for path in paths if path.startswith("/") and os.path.exists(path)}
    return sorted(real)


def _is_for_the_loader(name: str) -> bool:
    return name in LOADER_VARIABLES or name.startswith("LD_")


def _make_private(directory: Path) -> None:
    """Creates the directory with all parents; new ones are accessible only to the user."""
    if not directory.is_dir():
        _make_private(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)


def _seen(path: str) -> str | None:
    """The target of a link; "" for any other file, None if there is nothing."""
    if os.path.islink(path):
        return os.readlink(path)
    return "" if os.path.lexists(path) else None


def _is_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _innermost(path: str, bases: Iterable[str]) -> str | None:
    return max((base for base in bases if is_below(path, base)), key=len, default=None)
