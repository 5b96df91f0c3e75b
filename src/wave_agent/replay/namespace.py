"""A private view of the file system for one process and its children: they may change directories, and the changes are
discarded (overlayfs in a mount namespace).

Needs Linux, and either root or user namespaces (Linux 5.11 or newer). Nothing is copied: a file is copied by the kernel
when it is first changed.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

_NEW_MOUNTS, _NEW_USER, _NEW_NETWORK = 0x0002_0000, 0x1000_0000, 0x4000_0000
_PRIVATE = 0x4000 | 0x4_0000
"""Recursively: no mount made here is seen elsewhere."""
_SET_FLAGS, _UP = 0x8914, 0x1
_DETACH = 0x2
_TMPFS_SIZE = "size=1g"


class Overlay(Struct, frozen=True):
    """A directory whose changes are discarded."""

    directory: str
    changes: str
    """An existing, empty directory for what is changed."""
    above: str = ""
    """Files here replace those of the same name in the directory."""


def enter(overlays: Sequence[Overlay], *, network: bool) -> None:
    """Move this process into namespaces of its own. Raises `OSError` if the system does not allow that.

    Must be called before the process has threads. Its children keep the user, and get no more rights than it had.
    """
    flags = _NEW_MOUNTS | (0 if network else _NEW_NETWORK)
    user = os.geteuid() != 0 or not _is_possible(flags)
    if user:
        own = os.getuid(), os.getgid()
        _check(_libc().unshare(flags | _NEW_USER))
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{own[0]} {own[0]} 1")
        _write("/proc/self/gid_map", f"{own[1]} {own[1]} 1")
    _check(_libc().mount(b"none", b"/", None, _PRIVATE, None))
    for overlay in overlays:
        _mount(overlay, user=user)
    if not network:
        _raise_loopback()


def _is_possible(flags: int) -> bool:
    """Whether root may do without a user namespace; does it. In containers, root often may not."""
    try:
        _check(_libc().unshare(flags))
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
        return False
    return True


def leave(overlays: Sequence[Overlay]) -> None:
    """Take the overlays off, so that what they were made of can be removed."""
    os.chdir("/")
    for overlay in overlays:
        for place in (overlay.directory, overlay.changes):  # the latter if it is in memory
            _libc().umount2(os.fsencode(place), _DETACH)


def _mount(overlay: Overlay, *, user: bool) -> None:
    try:
        _mount_over(overlay, user=user)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        # Changes cannot be kept on this file system, which may be an overlay itself (as in a container): use memory.
        _check(_libc().mount(b"tmpfs", os.fsencode(overlay.changes), b"tmpfs", 0, _TMPFS_SIZE.encode()))
        _mount_over(overlay, user=user)


def _mount_over(overlay: Overlay, *, user: bool) -> None:
    upper, work = (os.path.join(overlay.changes, name) for name in ("upper", "work"))
    for directory in (upper, work):
        with suppress(FileExistsError):
            os.mkdir(directory)
    facts = os.stat(overlay.directory)
    os.chmod(upper, facts.st_mode & 0o7777)
    layers = ":".join(_escaped(layer) for layer in (overlay.above, overlay.directory) if layer)
    options = f"lowerdir={layers},upperdir={_escaped(upper)},workdir={_escaped(work)}{',userxattr' if user else ''}"
    place = os.fsencode(overlay.directory)
    _check(_libc().mount(b"overlay", place, b"overlay", 0, os.fsencode(options)))


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


def _raise_loopback() -> None:
    """So that a hook may talk to itself, as it may under bubblewrap."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _write(file: str, text: str) -> None:
    with open(file, "w") as opened:
        opened.write(text)


def main() -> None:
    """Try it: enter, and change something in each directory. The overlays are the argument, as JSON."""
    overlays = msgspec.json.decode(sys.argv[1], type=tuple[Overlay, ...])
    enter(overlays, network=False)
    for overlay in overlays:
        name = os.path.join(overlay.directory, f".wave-{os.getpid()}")
        os.mkdir(name)
        os.rmdir(name)
