"""The effects of a call, as values."""

from msgspec import Struct

ANY_HOST = "*"
"""A host that the call does not name: a remote, a mirror, a setting."""


class PathOrigin(Struct, frozen=True):
    """Which argument of a call names a path, and how."""

    path: str
    """As in `Effects`."""
    argument: str
    """Its name, with those of the objects around it: `edits.path`. Empty: the input itself."""
    word: str


class Effects(Struct, frozen=True):
    """What a call would do.

    Paths are absolute and normalised. They are patterns: `*` and `?` match within a name, `**` also across directories
    and at a leading dot, brackets quote (`[*]` is a star). `/a/b` is that path alone, `/a/b/**` everything below it.
    What git keeps in its own directory is not listed, and neither are `/dev/null` and its like.
    """

    reads: tuple[str, ...] = ()
    """Files whose content it reads. Listing names is not reading."""
    writes: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    runs: tuple[tuple[str, ...], ...] = ()
    """The words of each command, those inside other commands and scripts included."""
    hosts: tuple[str, ...] = ()
    """Names or addresses in lower case, without a port. `*` is a host that is not known."""
    complete: bool = True
    """Whether this is the whole of it. False: it may do more."""
    bare_hosts: tuple[str, ...] = ()
    """Words that a tool may take for hosts, although nothing says so: `example.com`, and `notes.md`. Only compared with
    hosts that a rule names."""
    origins: tuple[PathOrigin, ...] = ()
    """Where the paths come from, if the call is one of a tool that is not known."""


NO_EFFECTS = Effects()
UNKNOWN_EFFECTS = Effects(complete=False)
