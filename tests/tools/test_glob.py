"""Glob's promises, and what both searches leave out."""

import os
from pathlib import Path

import pytest

from tests.tools.session import Session
from tests.tools.trees import write
from wave_agent.tools.base import ToolInputError

NAMES = "[Glob looks at names only: to search in files, use Grep]"


async def glob(searcher: Session, pattern: str, **rest: object) -> list[str]:
    return (await searcher.call("Glob", pattern=pattern, **rest)).content.split("\n")


async def grep(searcher: Session, pattern: str, **rest: object) -> list[str]:
    return (await searcher.call("Grep", pattern=pattern, **rest)).content.split("\n")


class TestGlob:
    @pytest.mark.parametrize(
        ("pattern", "found"),
        [
            ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
            ("**/*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
            ("src/*.py", ["src/b.py"]),
            ("src/**", ["src/b.py", "src/d.ts", "src/deep/c.py"]),
            ("src/**/*.{ts,py}", ["src/b.py", "src/d.ts", "src/deep/c.py"]),
            ("./src/?.[t]s", ["src/d.ts"]),
            ("[!a]*.py", ["src/b.py", "src/deep/c.py"]),
            (".hidden", [".hidden"]),
            ("deep", ["No files found.", NAMES]),
            ("src/deep/", ["No files found.", NAMES, "[src/deep is a directory: use src/deep/** to list its files]"]),
            ("*.PY", ["No files found.", NAMES]),
        ],
    )
    async def test_patterns(self, searcher: Session, pattern: str, found: list[str]) -> None:
        write(searcher.project, dict.fromkeys(["a.py", "src/b.py", "src/deep/c.py", "src/d.ts", ".hidden"], ""))
        assert await glob(searcher, pattern) == found

    async def test_path_is_where_to_look_and_hooks_get_absolute_names(self, searcher: Session) -> None:
        write(searcher.project, {"a.py": "", "src/b.py": ""})
        result = await searcher.call("Glob", pattern="*.py", path="src")
        assert result.content == "src/b.py"
        assert result.response == {"filenames": [f"{searcher.project}/src/b.py"], "numFiles": 1, "truncated": False}

    async def test_an_absolute_pattern_inside_the_path_will_do(self, searcher: Session) -> None:
        write(searcher.project, {"a.py": ""})
        assert await glob(searcher, f"{searcher.project}/*.py") == ["a.py"]

    @pytest.mark.parametrize("pattern", ["/etc/*", "../*", "src/../../*"])
    async def test_a_pattern_that_leads_out_is_wrong_input(self, searcher: Session, pattern: str) -> None:
        with pytest.raises(ToolInputError, match="path"):
            await glob(searcher, pattern)

    async def test_a_missing_path_is_told_the_nearest_name(self, searcher: Session) -> None:
        write(searcher.project, {"source/a.py": ""})
        result = await searcher.call("Glob", pattern="*", path="sorce")
        assert not result.ran
        assert "Did you mean" in result.content

    async def test_a_file_as_path_is_told(self, searcher: Session) -> None:
        write(searcher.project, {"a.py": ""})
        assert not (await searcher.call("Glob", pattern="*", path="a.py")).ran

    async def test_many_files_are_cut_with_a_note(self, searcher: Session) -> None:
        write(searcher.project, {f"{number:04}": "" for number in range(600)})
        lines = await glob(searcher, "*")
        assert lines[499:] == ["0499", "[500 of 600 files shown: use a narrower pattern or path]"]

    async def test_links_are_listed_and_not_entered(self, searcher: Session, tmp_path: Path) -> None:
        (searcher.project / "loop").symlink_to(searcher.project)
        (searcher.project / "link").symlink_to("/etc/passwd")
        assert await glob(searcher, "*") == ["link", "loop"]

    async def test_names_that_are_no_text_are_shown_as_well_as_may_be(self, searcher: Session) -> None:
        Path(os.fsdecode(os.fsencode(searcher.project) + b"/a\xff")).touch()
        assert await glob(searcher, "*") == ["a\ufffd"]


class TestIgnored:
    async def test_gitignore_counts_nested_ones_too_and_dot_git_never(self, searcher: Session) -> None:
        write(
            searcher.project,
            {
                ".gitignore": "*.log\n/build/\n",
                "src/.gitignore": "!keep.log\ngenerated\n",
                ".git/config": "word",
                "build/out.txt": "word",
                "src/build/in.txt": "word",
                "src/keep.log": "word",
                "src/other.log": "word",
                "src/generated": "word",
                "generated": "word",
            },
        )
        expected = ["generated", "src/build/in.txt", "src/keep.log"]
        assert await grep(searcher, "word") == expected
        assert await glob(searcher, "[gik]*") == expected

    async def test_those_of_directories_above_count_too(self, searcher: Session) -> None:
        write(searcher.project, {".git/HEAD": "", ".gitignore": "*.log\n", "src/a.log": "word", "src/a.py": "word"})
        assert await grep(searcher, "word", path="src") == ["src/a.py"]

    async def test_those_above_the_project_count_only_inside_its_repository(self, searcher: Session) -> None:
        write(searcher.project.parent, {".gitignore": "*.log\n"})
        write(searcher.project, {"a.log": "word"})
        assert await grep(searcher, "word") == ["a.log"]
        (searcher.project.parent / ".git").mkdir()
        assert await grep(searcher, "word") == ["No matches found."]

    async def test_a_repository_inside_has_rules_of_its_own(self, searcher: Session) -> None:
        write(searcher.project, {".gitignore": "*.log\n", "inner/.git/HEAD": "", "inner/a.log": "word"})
        assert await grep(searcher, "word") == ["inner/a.log"]

    async def test_what_is_named_as_path_is_searched_though_it_is_ignored(self, searcher: Session) -> None:
        write(searcher.project, {".gitignore": "vendor/\n", "vendor/a.py": "word"})
        assert await grep(searcher, "word") == ["No matches found."]
        assert await grep(searcher, "word", path="vendor") == ["vendor/a.py"]

    @pytest.mark.parametrize("tool", ["Glob", "Grep"])
    async def test_dot_git_is_not_searched_even_as_path(self, searcher: Session, tool: str) -> None:
        write(searcher.project, {".git/config": "word"})
        result = await searcher.call(tool, pattern="word", path=".git")
        assert not result.ran
        assert "git commands" in result.content
