"""When a model goes round in circles."""

from wave_agent.agent.repeated_calls import GIVEN_UP, HINTED, Repeats, hint


def after(*calls: tuple[str, str]) -> Repeats:
    repeats = Repeats()
    for name, result in calls:
        repeats.note(name, {"b": 1, "a": 2}, result)
    return repeats


def test_the_same_call_with_the_same_result_counts() -> None:
    assert Repeats().times() == 0
    assert Repeats().before("Read", {}) == 0
    assert after(("Read", "x")).times() == 1
    repeats = after(("Read", "x"), ("Read", "x"), ("Read", "x"))
    assert repeats.times() == 3
    assert repeats.before("Read", {"a": 2, "b": 1}) == 3
    assert repeats.before("Read", {"a": 3, "b": 1}) == 0
    assert repeats.before("Bash", {"a": 2, "b": 1}) == 0


def test_another_description_is_the_same_call() -> None:
    repeats = Repeats()
    for number in range(3):
        repeats.note("Bash", {"command": "make", "description": f"Try {number}"}, "failed")
    assert repeats.times() == 3
    assert repeats.before("Bash", {"command": "make"}) == 3


def test_another_result_or_another_call_begins_anew() -> None:
    assert after(("Read", "x"), ("Read", "x"), ("Read", "y")).times() == 1
    assert after(("Read", "x"), ("Bash", "y"), ("Read", "x")).times() == 1


def test_a_cycle_of_several_calls_counts_too() -> None:
    cycle = [("Edit", "failed"), ("Bash", "red")]
    repeats = after(*cycle * 3)
    assert repeats.times() == 3
    assert repeats.before("Edit", {"b": 1, "a": 2}) == 3
    assert repeats.before("Bash", {"b": 1, "a": 2}) == 1


def test_a_call_that_was_not_run_again_goes_on_with_the_row() -> None:
    repeats = after(*[("Read", "x")] * 4)
    for _ in range(GIVEN_UP):
        repeats.note_refused("Read", {"b": 1, "a": 2})
    assert repeats.times() >= GIVEN_UP


def test_a_call_that_reads_is_recognised_after_other_calls_that_read() -> None:
    repeats = Repeats()
    assert not repeats.note("Read", {"file_path": "a"}, "x", reads=True)
    assert not repeats.note("Grep", {"pattern": "a"}, "y", reads=True)
    assert repeats.note("Read", {"file_path": "a"}, "x", reads=True)
    assert repeats.times() == 1


def test_after_something_may_have_changed_the_same_result_is_news() -> None:
    repeats = Repeats()
    repeats.note("Read", {"file_path": "a"}, "x", reads=True)
    assert not repeats.note("Bash", {"command": "make"}, "done")
    assert not repeats.note("Read", {"file_path": "a"}, "x", reads=True)


def test_another_result_of_a_call_that_reads_is_news() -> None:
    repeats = Repeats()
    repeats.note("Read", {"file_path": "a"}, "x", reads=True)
    assert not repeats.note("Read", {"file_path": "a"}, "y", reads=True)
    assert repeats.note("Read", {"file_path": "a"}, "y", reads=True)


def test_the_hint_gets_firmer() -> None:
    assert "You have made this Read call before, with the same result." in hint(HINTED, "Read")
    assert "the same call 3 times in a row" in hint(3, "Read")
