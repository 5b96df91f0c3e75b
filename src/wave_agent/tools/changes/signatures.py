"""A file's signature: values that differ after any change that the clock can tell apart, as a few bytes."""

import os
import struct

_FACTS = struct.Struct("<QQII")
_MODE = struct.Struct("<H")
FACTS = _FACTS.size
"""The part that git's index has too: all but the mode."""
SIGNATURE = FACTS + _MODE.size
_SIGNATURE = struct.Struct("<QQIIH")


def signature(facts: os.stat_result) -> bytes:
    return _SIGNATURE.pack(
        facts.st_mtime_ns % (1 << 64),  # a time before 1970
        facts.st_ctime_ns % (1 << 64),
        facts.st_ino & 0xFFFFFFFF,
        facts.st_size & 0xFFFFFFFF,
        facts.st_mode,
    )


def packed_facts(modified: int, changed: int, inode: int, size: int) -> bytes:
    """Times in nanoseconds; inode and size modulo 2³²."""
    return _FACTS.pack(modified, changed, inode, size)


def mode_in(value: bytes) -> int:
    return _MODE.unpack_from(value, FACTS)[0]


def size_in(value: bytes) -> int:
    """Modulo 4 GiB."""
    return _FACTS.unpack_from(value)[3]


def inode_in(value: bytes) -> bytes:
    return value[16:20]
