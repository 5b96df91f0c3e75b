"""The small parts of the screen that need no screen."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wave_agent.messages import ToolBlock
from wave_agent.permissions.decision import Allow, Deny
from wave_agent.screen.attachments import Attachment, attach, split
from wave_agent.screen.changes import change_of, counts, diff_in
from wave_agent.screen.completion import CompletionItem, complete
from wave_agent.screen.cost import shown, tokens
from wave_agent.screen.dialogs import meaning_of, rules_in
from wave_agent.screen.diff import numbered
from wave_agent.screen.file_index import FileIndex
from wave_agent.screen.history import History
from wave_agent.screen.keys import KEYS, Where, actions
from wave_agent.screen.pastes import Pastes
from wave_agent.screen.plain import plain
from wave_agent.screen.segments import Segmenter
from wave_agent.screen.sizes import elapsed
from wave_agent.screen.todo_card import TodoCard
from wave_agent.screen.tool_card import ToolCard
from wave_agent.text import one_line

# Answers in pieces

MARKDOWN = st.lists(
    st.sampled_from(["word ", "\n", "\n\n", "```python\n", "```\n", "~~~\n", "    code\n", "- item\n", "x", "`"]),
    max_size=80,
)


@given(MARKDOWN, st.integers(1, 40))
def test_the_pieces_of_an_answer_are_the_answer_however_it_comes(parts: list[str], size: int):
    text = "".join(parts)
    segmenter = Segmenter(long=20, long_code=10**9)
    pieces = [""]
    for at in range(0, len(text), size):
        first, *others = segmenter.feed(text[at : at + size])
        pieces[-1] += first
        pieces += others
    assert "".join(pieces) == text
    whole = Segmenter(long=20, long_code=10**9).feed(text)
    assert [piece for piece in pieces if piece] == [piece for piece in whole if piece]


def test_no_piece_ends_inside_of_code_unless_the_code_is_very_long():
    code = "```python\n" + "\n" * 50 + "```\n"
    assert Segmenter(long=10).feed(f"{code}\nafter\n\nlast\n") == [f"{code}\n", "after\n\nlast\n"]
    short = Segmenter(long=10, long_code=3).feed("```py\n1\n2\n3\n4\n```\n")
    assert short == ["```py\n1\n2\n3\n```\n", "```py\n4\n```\n"]


@given(
    st.lists(st.sampled_from(["word ", "x" * 50, "\n", "- item\n", "    deep\n", "| a | b |\n", "```\n"]), max_size=200)
)
def test_no_piece_is_much_longer_than_twice_the_limit_without_code(parts: list[str]):
    text = "".join(part for part in parts if part != "```\n")
    assert all(len(piece) <= 9 * 20 for piece in Segmenter(long=20, long_code=4).feed(text))
    assert all(len(piece) <= 200 + 4 * 9 * 20 for piece in Segmenter(long=20, long_code=4).feed("".join(parts)))


def test_a_table_and_a_code_block_go_on_in_the_next_piece():
    rows = "| one | two |\n" * 5
    first, second, *_ = Segmenter(long=20).feed(f"| a | b |\n|---|---|\n{rows}")
    assert first.startswith("| a | b |\n|---|---|\n| one")
    assert second.startswith("| a | b |\n|---|---|\n| one")
    first, second, *_ = Segmenter(long=20).feed("```js\n" + "x" * 150 + "\n```\n")
    assert (first, second) == ("```js\n" + "x" * 80 + "\n```\n", "```js\n" + "x" * 70 + "\n```\n")


def test_a_line_goes_on_in_the_next_piece_at_a_blank():
    assert Segmenter(long=5).feed("one two three four") == ["one two three ", "four"]
    assert Segmenter(long=5).feed("- one two\n  three\n- four") == ["- one two\n  three\n", "- four"]


# Foreign text


def test_nothing_in_foreign_text_is_markup_or_a_control_character():
    shown_ = plain("[bold]a[/bold]\x1b[31m\tb\x07", "$text-error")
    assert shown_.plain == "[bold]a[/bold]  b"
    assert len(shown_.spans) == 1


@given(st.text())
def test_one_line_is_one_line_and_short(text: str):
    line = one_line(text, 20)
    assert len(line) <= 20
    assert "\n" not in line


@pytest.mark.parametrize(("seconds", "words"), [(0.42, "0.4 s"), (12.3, "12 s"), (185, "3 min 5 s")])
def test_times_are_for_people(seconds: float, words: str):
    assert elapsed(seconds) == words


# Pastes and what goes along


@given(st.text(alphabet=st.characters(categories=["L", "P", "Zs"]), max_size=30))
def test_a_paste_comes_back_whole(text: str):
    pastes = Pastes()
    large = text + "\nx" * 20
    folded = pastes.fold(large)
    assert folded == "[Pasted text #1, 21 lines]"
    assert pastes.unfold(f"see {folded}!") == f"see {large}!"


def test_a_placeholder_that_stands_for_nothing_stays():
    assert Pastes().unfold("[Pasted text #7, 3 lines]") == "[Pasted text #7, 3 lines]"


@given(st.text(), st.text(), st.text())
def test_what_goes_along_is_taken_off_again(prompt: str, what: str, output: str):
    sent = attach(prompt, [Attachment("shell", what, output)])
    typed, along = split(sent)
    if "<from-the-user" not in prompt:
        assert typed == prompt
        assert len(along) == 1


# History


def test_history_survives_torn_lines_and_keeps_the_order(tmp_path: Path):
    file = tmp_path / "history.jsonl"
    file.write_text('"one"\n{"not": "a prompt"}\n"tw\n"three"\n')
    history = History(file)
    assert history.prompts == ["one", "three"]
    history.add("three")
    history.add("four")
    assert history.prompts == ["one", "three", "four"]
    history.write("four")
    assert json.loads(file.read_text().splitlines()[-1]) == "four"
    assert history.search("O") == ["four", "one"]


def test_a_history_that_cannot_be_written_costs_nothing(tmp_path: Path):
    (tmp_path / "file").touch()
    History(tmp_path / "file" / "history.jsonl").write("prompt")


# Completion


def test_names_that_begin_so_come_first(tmp_path: Path):
    for name in ("a/xpars.py", "parse.py", "pars/z.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    files = FileIndex(str(tmp_path))
    assert files.stale
    files.refresh()
    assert not files.stale
    assert files.matching("pars", 8) == ["parse.py", "a/xpars.py", "pars/z.py"]
    found = complete("look at @pars", [], files)
    assert found is not None
    assert (found.start, found.candidates[0].insert, found.submits) == (8, "@parse.py ", False)
    assert complete("mail me@pars", [], files) is None


def test_every_file_is_found_in_whichever_block_it_is(tmp_path: Path):
    for name in ("a", "İx", "Ab", "d/ab", "d/xab", "d/e/ab", "ab.d/x", "z/İ/q", "z/y"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "ignored").touch()
    (tmp_path / ".gitignore").write_text("ignored\n")
    (tmp_path / "link").symlink_to("a")
    for block in (1, 2, 3, 100):
        files = FileIndex(str(tmp_path), block=block)
        files.refresh()
        assert files.matching("AB", 8) == ["Ab", "d/ab", "d/e/ab", "d/xab", "ab.d/x"]
        assert files.matching("ab", 2) == ["Ab", "d/ab"]
        assert files.matching("İ", 8) == ["İx", "z/İ/q"]
        assert files.matching("link", 8) == ["link"]
        assert files.matching("ignored", 8) == []
        assert len(files.matching("", 99)) == 11


def test_files_are_listed_again_by_one_thread_and_no_more_than_a_twentieth_of_the_time(tmp_path: Path):
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    files = FileIndex(str(tmp_path), clock)
    files.refresh()  # takes a second
    (tmp_path / "new").touch()
    assert not files.stale
    now += 10
    assert not files.stale
    now += 20
    assert files.stale
    files.refresh()
    assert files.matching("new", 8) == ["new"]


def test_commands_are_completed_at_the_start_only(tmp_path: Path):
    commands = [CompletionItem("/help"), CompletionItem("/hooks"), CompletionItem("/exit")]
    files = FileIndex(str(tmp_path))
    found = complete("/h", commands, files)
    assert found is not None
    assert [one.insert for one in found.candidates] == ["/help", "/hooks"]
    assert complete("say /h", commands, files) is None


# Money, changes, answers, keys


def test_dollars_and_tokens_are_short():
    assert (shown(4.5), shown(0.0123)) == ("$4.50", "$0.0123")
    assert [tokens(count) for count in (950, 12_345, 1_234_567)] == ["950", "12.3k", "1.2M"]


def test_the_change_that_a_call_would_make_is_known_before_it_runs(tmp_path: Path):
    (tmp_path / "a").write_text("one\n")
    assert "-one" in change_of("Write", {"file_path": str(tmp_path / "a"), "content": "two\n"})
    assert "+two" in change_of("Write", {"file_path": str(tmp_path / "b"), "content": "two\n"})
    assert change_of("Edit", {"old_string": "a", "new_string": "b"}) == "-a\n+b"
    assert change_of("Bash", {"command": "ls"}) == ""
    diff = "@@ -1 +1 @@\n-a\n+b\n+c"
    assert diff_in(f"Edited x.\n{diff}") == diff
    assert diff_in("no diff\nhere") == ""
    assert counts(diff) == "+2 -1"


def test_several_edits_are_one_change_each_on_the_result_of_the_last(tmp_path: Path):
    file = tmp_path / "a"
    file.write_text("one\ntwo\nthree\n")

    def change(*edits: object) -> str:
        return change_of("MultiEdit", {"file_path": str(file), "edits": [*edits]})

    first, second = {"old_string": "one", "new_string": "1"}, {"old_string": "1\ntwo", "new_string": "1\n2"}
    assert change(first, second) == "@@ -1,3 +1,3 @@\n-one\n-two\n+1\n+2\n three"
    wrong = "[edit 1: old_string does not occur in the file as it is now]"
    assert change(second, first) == f"{wrong}\n 1\n-two\n+2\n-one\n+1"
    often = {"old_string": "e", "new_string": "E"}
    assert "[edit 2: old_string occurs more than once" in change(first, often)
    assert "+thrEE" in change(first, {**often, "replace_all": True})
    assert change("nonsense") == ""
    assert change_of("MultiEdit", {"file_path": str(file), "edits": 1}) == ""


def test_the_change_of_a_cell_is_shown_with_its_cell(tmp_path: Path):
    file = tmp_path / "a.ipynb"
    cell = {"cell_type": "code", "id": "load", "metadata": {}, "outputs": [], "source": "a = 1\nb = 2"}
    file.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))

    def change(**fields: str) -> str:
        return change_of("NotebookEdit", {"notebook_path": str(file), **fields})

    replaced = change(cell_id="load", new_source="a = 1\nb = 3")
    assert replaced == "[cell load]\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3"
    assert change(cell_id="load", edit_mode="delete") == "[cell load]\n@@ -1,2 +0,0 @@\n-a = 1\n-b = 2"
    inserted = change(cell_id="load", edit_mode="insert", cell_type="markdown", new_source="# Hi")
    assert inserted == "[new cell after load, markdown]\n@@ -0,0 +1 @@\n+# Hi"
    assert change(edit_mode="insert", new_source="x").startswith("[new cell at the start]")
    missing = change(cell_id="gone", new_source="x")
    assert missing.startswith('[cell gone: there is no cell "gone"; the cells are load]')
    assert "+x" in missing
    file.write_text("no notebook")
    assert change(cell_id="load", new_source="x").startswith("[cell load: not a notebook")


def test_an_edit_that_is_asked_for_has_its_place_and_the_lines_around_it(tmp_path: Path):
    file = tmp_path / "a"
    file.write_bytes(b"".join(b"line %d\r\n" % number for number in range(1, 21)))
    edit = {"file_path": str(file), "old_string": "line 10\nline 11\n", "new_string": "ten\n"}
    change = change_of("Edit", edit)
    assert change.startswith("@@ -7,8 +7,7 @@\n line 7\n")
    assert [line.rstrip() for line in str(numbered(change)).split("\n")] == [
        "      @@ -7,8 +7,7 @@",
        "    7  line 7",
        "    8  line 8",
        "    9  line 9",
        "   10 -line 10",
        "   11 -line 11",
        "   10 +ten",
        "   11  line 12",
        "   12  line 13",
        "   13  line 14",
    ]
    every = change_of("Edit", {**edit, "old_string": "line 2", "new_string": "two", "replace_all": True})
    assert every.count("\n-line 2") == 2


def test_an_edit_that_does_not_fit_the_file_says_so_and_claims_no_place(tmp_path: Path):
    file = tmp_path / "a"
    file.write_text("one\none\n")
    edit = {"file_path": str(file), "old_string": "one", "new_string": "two"}
    assert change_of("Edit", edit) == "[old_string occurs more than once in the file as it is now]\n-one\n+two"
    assert change_of("Edit", {**edit, "old_string": "three"}).startswith("[old_string does not occur in the file")
    file.write_bytes(b"\0\1\2")
    assert change_of("Edit", edit) == "-one\n+two"
    assert change_of("Write", {"file_path": str(file), "content": "x"}).startswith("[cannot be compared with what")
    assert change_of("Write", {"file_path": str(tmp_path / "b"), "content": "x"}).startswith("[new file]\n@@ ")
    file.write_text("same\n")
    same = change_of("Write", {"file_path": str(file), "content": "same\n"})
    assert same == "[no change: the file has this content already]"
    assert change_of("Write", {"file_path": "\0", "content": "x"}).startswith("[new file]\n@@ ")


def test_the_time_of_a_card_is_not_that_of_the_answer_before_it():
    times = iter([10.0, 75.0])
    card = ToolCard(ToolBlock("1", "Bash", {"command": "make"}), "/work", lambda: next(times))
    card.waited(60)
    card.finish(ToolBlock("1", "Bash", {"command": "make"}, "ok", True))
    assert "5.0 s" in str(card.closed_content())


@pytest.mark.parametrize("todos", [None, "x", 5, ["x", {}], [{"content": 5, "status": [], "activeForm": None}]])
def test_a_list_that_is_none_is_shown_nevertheless(todos: object):
    card = TodoCard(ToolBlock("1", "TodoWrite", {"todos": todos}, "done", True), "/work")
    assert str(card.closed_content()).startswith("● TodoWrite ")
    assert card.doing == ""


def test_what_an_answer_means_to_the_agent():
    assert [meaning_of(answer) for answer in ("yes", "always:Read")] == [Allow(), Allow()]
    assert meaning_of("no") == Deny("the user said no. Do without it, or ask what to do instead.")
    assert meaning_of("tell:") == meaning_of("no")
    assert meaning_of("tell:not now") == Deny("the user said no: not now")
    assert meaning_of(None) == Deny("the user interrupted.")
    assert [rules_in(answer) for answer in ("always:Bash(a:b)", "yes", None)] == [("Bash(a:b)",), (), ()]
    assert rules_in("always:Bash(a:*)\0Bash(b:*)") == ("Bash(a:*)", "Bash(b:*)")


def test_no_key_means_two_things_in_one_place():
    for where in Where:
        names = [name for key in KEYS if key.where is where and key.action for name in key.keys.split(",")]
        assert len(names) == len(set(names))
    assert actions(Where.PROMPT)["enter"] == "send"
    assert next(key for key in KEYS if key.keys == "ctrl+home").label == "Ctrl-Home"
