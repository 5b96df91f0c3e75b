"""The conversation: what waits for a verdict, and what asks for one when nothing does."""

from wave_agent.messages import Change, MessageManager, PromptRemoved


def test_a_refused_prompt_is_announced_as_it_was_typed() -> None:
    changes: list[Change] = []
    manager = MessageManager(on_change=changes.append)
    manager.add_prompt("/fix it")
    manager.expand_prompt("Please fix it.")
    manager.remove_last_user_message("refused")
    assert manager.messages == []
    assert changes[-1] == PromptRemoved("Please fix it.", "refused", "/fix it")


def test_without_a_waiting_prompt_nothing_is_expanded_accepted_or_dropped() -> None:
    changes: list[Change] = []
    manager = MessageManager(on_change=changes.append)
    manager.add_prompt("Hello.")
    manager.accept_prompt()
    said, announced = manager.messages, len(changes)
    manager.expand_prompt("Something else.")
    manager.accept_prompt()
    manager.drop_unjudged_prompt()
    assert (manager.messages, len(changes)) == (said, announced)


def test_an_empty_conversation_has_no_message_to_remove() -> None:
    changes: list[Change] = []
    manager = MessageManager(on_change=changes.append)
    manager.remove_last_user_message("refused")
    assert (manager.messages, changes) == ([], [])
