"""What a launcher is asked to run: the name of a package, with or without a version, or a path."""

from wave_agent.lazy_regex import lazy_regex

_VERSION = lazy_regex(r"(?<=.)(?:@|==|>=|<=|~=|!=|>|<|\[).*")


def without_version(package: str) -> str:
    return _VERSION.sub("", package)


def program_of_package(package: str) -> str:
    """Its program: `@scope/server-x@1.2` → `server-x`. Empty for a path."""
    name = without_version(package).rpartition("/")[2]
    return "" if name in ("", ".", "..") or package.startswith(("-", ".")) else name


def local_path(word: str) -> str:
    """`file:x`, also as the version of a package: `name@file:x`."""
    word = word[max(0, word.find("@file:") + 1) :]
    return word.removeprefix("file:").removeprefix("//") if word.startswith("file:") else word
