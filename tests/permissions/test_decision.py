"""May this call run? Every combination, against a statement of the order that shares nothing with the code."""

from itertools import chain, combinations, product

import pytest
from msgspec.structs import replace

from tests.rows import rows
from wave_agent.hooks.events import Decision, HookEvent
from wave_agent.hooks.semantics import merge
from wave_agent.hooks.verdicts import Approve, Ask, Block, Effect, EndTurn, Outcome, RankedVerdict, Verdict
from wave_agent.permissions.decision import (
    NOBODY_TO_ASK,
    JudgedCall,
    Permission,
    PermissionMode,
    Rules,
    Ruling,
    ToolKind,
    can_permit,
    decide,
    suggested_together,
    suggestions,
    unanswered,
)
from wave_agent.rules.rule import Places, parse_rule, uncovered

PLACES = Places("/srv/project", "/home/me")
TOOLS = {ToolKind.READS: "Read", ToolKind.FETCHES: "WebFetch", ToolKind.EDITS: "Edit", ToolKind.ACTS: "Bash"}
SAYS: dict[str, Effect] = {
    "allow": Approve("looks safe"),
    "ask": Ask("are you sure?"),
    "deny": Block("not on my watch"),
    "stop": EndTurn("enough"),
}
HOOK_ANSWERS = tuple(chain.from_iterable(combinations(SAYS, size) for size in range(len(SAYS) + 1)))
RULE_SETS = tuple(chain.from_iterable(combinations(("deny", "ask", "allow"), size) for size in range(4)))

UNASKED = {
    # mode: kinds inside the project, kinds outside of it
    PermissionMode.DEFAULT: ({ToolKind.READS}, set()),
    PermissionMode.ACCEPT_EDITS: ({ToolKind.READS, ToolKind.EDITS}, set()),
    PermissionMode.PLAN: ({ToolKind.READS}, set()),
    PermissionMode.DONT_ASK: (set(), set()),
    PermissionMode.BYPASS: (
        {ToolKind.READS, ToolKind.FETCHES, ToolKind.EDITS, ToolKind.ACTS},
        {ToolKind.READS, ToolKind.FETCHES, ToolKind.EDITS, ToolKind.ACTS},
    ),
}


def hooks_that_say(*words: str) -> Outcome:
    """What hooks mean together of which each says one of these."""
    readings = [
        RankedVerdict(position=at, name=f"{word}er", verdict=Verdict((SAYS[word],))) for at, word in enumerate(words)
    ]
    return merge(HookEvent.PRE_TOOL_USE, readings)


def rules_that(*words: str, tool: str) -> Rules:
    rule = (parse_rule(tool),)
    return Rules(
        deny=rule if "deny" in words else (), ask=rule if "ask" in words else (), allow=rule if "allow" in words else ()
    )


def call_of(
    kind: ToolKind, *, inside: bool = True, protected: str | None = None, outside: str | None = None, own: bool = False
) -> JudgedCall:
    tool_input = {"command": "make"} if kind is ToolKind.ACTS else {"file_path": "/srv/project/a"}
    return JudgedCall(
        tool=TOOLS[kind],
        tool_input=tool_input,
        kind=kind,
        inside=inside,
        protected=protected,
        outside=outside,
        own=own,
    )


@rows("mode", PermissionMode)
@rows("hooks", HOOK_ANSWERS, ids=lambda words: "+".join(words) or "silence")
def test_every_combination_is_answered_in_the_documented_order(hooks: tuple[str, ...], mode: PermissionMode) -> None:
    for rules, kind, inside, protected, own in product(
        RULE_SETS, ToolKind, (True, False), (None, "/srv/project/.git/config"), (False, True)
    ):
        limited = mode == "plan" and kind in (ToolKind.EDITS, ToolKind.ACTS) and not own
        denied = "deny" in rules or bool({"deny", "stop"} & {*hooks}) or limited
        questioned = protected is not None or "ask" in rules or "ask" in hooks
        granted = own or "allow" in hooks or "allow" in rules or kind in UNASKED[mode][0 if inside else 1]
        if denied:
            expected = Ruling.DENY
        elif granted and not questioned:
            expected = Ruling.ALLOW
        else:
            expected = Ruling.DENY if mode == "dontAsk" else Ruling.ASK

        call = call_of(kind, inside=inside, protected=protected, own=own)
        given = decide(call, mode, rules_that(*rules, tool=call.tool), hooks_that_say(*hooks), PLACES)

        assert given.answer is expected, (rules, kind, inside, protected, own)
        assert given.by
        assert (given.answer is not Ruling.DENY) or given.for_model.startswith("Not run: ")
        assert (given.answer is not Ruling.ASK) or (given.for_user and given.why)


@pytest.mark.parametrize("mode", PermissionMode)
def test_the_modes_table_of_this_test_has_every_mode(mode: PermissionMode) -> None:
    assert mode in UNASKED


# ------------------------------------------------------------------------------------------------------ rules and modes


def test_a_deny_rule_of_many_is_found_and_named() -> None:
    rules = Rules(
        deny=(parse_rule("Read"), parse_rule("Bash(rm:*)"), parse_rule("Bash")),
        ask=(parse_rule("Bash"),),
        allow=(parse_rule("Bash(rm:*)"),),
    )
    call = JudgedCall(tool="Bash", tool_input={"command": "ls && rm -rf x"})
    given = decide(call, PermissionMode.BYPASS, rules, hooks_that_say("allow"), PLACES)
    assert given == Permission(
        answer=Ruling.DENY,
        by="rule Bash(rm:*)",
        for_model="Not run: denied by the permission rule Bash(rm:*). Do without it, or tell the user.",
    )


def test_an_allow_rule_permits_one_command_where_a_deny_rule_looks_at_all_of_the_line() -> None:
    allow = Rules(allow=(parse_rule("Bash(npm test:*)"),))
    deny = Rules(deny=(parse_rule("Bash(rm:*)"),))
    line = JudgedCall(tool="Bash", tool_input={"command": "npm test && rm -rf /"})
    assert decide(line, PermissionMode.DEFAULT, allow, hooks_that_say(), PLACES).answer is Ruling.ASK
    assert decide(line, PermissionMode.BYPASS, deny, hooks_that_say(), PLACES).answer is Ruling.DENY


def test_an_allow_rule_is_named_as_what_decided() -> None:
    rules = Rules(allow=(parse_rule("Edit"), parse_rule("Bash(make:*)")))
    given = decide(call_of(ToolKind.ACTS), PermissionMode.DONT_ASK, rules, hooks_that_say(), PLACES)
    assert given == Permission(answer=Ruling.ALLOW, by="rule Bash(make:*)")


def test_a_rule_that_speaks_of_another_call_changes_nothing() -> None:
    other = (parse_rule("Bash(rm:*)"),)
    given = decide(
        call_of(ToolKind.ACTS),
        PermissionMode.DEFAULT,
        Rules(deny=other, ask=other, allow=other),
        hooks_that_say(),
        PLACES,
    )
    assert given == Permission(
        answer=Ruling.ASK,
        by="mode default",
        for_user="Bash needs your consent",
        why="no permission rule allows `make`, so Bash needs confirmation in the permission mode default",
    )


def test_what_no_rule_allows_is_named() -> None:
    rules = (parse_rule("Bash(make test)"), parse_rule("Bash(git log:*)"), parse_rule("Read(x)"))
    said = {
        line: uncovered(rules, "Bash", {"command": line}) for line in ("make test; ls -l", "A=1 make test", "l" * 99)
    }
    assert said == {
        "make test; ls -l": "`ls -l`",
        "A=1 make test": "a line with an assignment",
        "l" * 99: f"`{'l' * 80}…`",
    }
    assert uncovered((), "Bash", {"command": "cat a; make"}, reading=("cat a",)) == "`make`"
    assert uncovered(rules, "Write", {"command": "ls"}) == uncovered(rules[2:], "Bash", {"command": "ls"}) == ""


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("echo $(date)", "a command substitution"),
        ("diff <(ls) b", "a process substitution"),
        ("cat <<E\nx\nE", "a here-document"),
        ("cat <<< x", "a here-string"),
        ("make > log 2>&1", "a redirection to or from a file"),
        ("make $TARGET", "a variable"),
        ("make ${TARGET}", "a variable"),
        ("for a in b; do make; done", "a loop"),
        ("while true; do make; done", "a loop"),
        ("if true; then make; fi", "an if"),
        ("f() { make; }", "a function"),
        ("(make)", "parentheses"),
        ("make # it", "a comment"),
        ("make &", "a command in the background"),
        ("make \0", "more than a sequence of commands"),
        ("make 2>&1 | tee '>x", "more than a sequence of commands"),
    ],
)
def test_what_makes_a_line_more_than_commands_is_named(line: str, part: str) -> None:
    assert uncovered([parse_rule("Bash(make:*)")], "Bash", {"command": line}) == f"a line with {part}"


def test_what_a_mode_lets_through_is_allowed_by_that_mode() -> None:
    given = decide(call_of(ToolKind.EDITS), PermissionMode.ACCEPT_EDITS, Rules(), hooks_that_say(), PLACES)
    assert given == Permission(answer=Ruling.ALLOW, by="mode acceptEdits")


def test_a_question_about_something_outside_the_project_says_so() -> None:
    for outside, named in (("/etc/hosts", "/etc/hosts"), (None, "a path of this call")):
        call = call_of(ToolKind.READS, inside=False, outside=outside)
        given = decide(call, PermissionMode.DEFAULT, Rules(), hooks_that_say(), PLACES)
        assert given == Permission(
            answer=Ruling.ASK,
            by="mode default",
            for_user="Read outside the project needs your consent",
            why=f"{named} is outside the project, so Read needs confirmation",
        )


def test_plan_mode_tells_the_model_why_it_cannot_act() -> None:
    given = decide(call_of(ToolKind.ACTS), PermissionMode.PLAN, Rules(), hooks_that_say("allow"), PLACES)
    assert given == Permission(
        answer=Ruling.DENY,
        by="mode plan",
        for_model="Not run: plan mode only lets you read, and Bash does more. Put it into the plan.",
    )


# ---------------------------------------------------------------------------------------------------------------- hooks


def test_a_hooks_deny_gives_the_model_every_reason_in_configuration_order() -> None:
    verdicts = [("second", "b", 2), ("first", "a", 1), ("again", "c", 3)]
    outcome = merge(
        HookEvent.PRE_TOOL_USE,
        [RankedVerdict(position=at, name=name, verdict=Verdict((Block(reason),))) for name, reason, at in verdicts],
    )
    given = decide(call_of(ToolKind.READS), PermissionMode.BYPASS, Rules(), outcome, PLACES)
    assert given == Permission(answer=Ruling.DENY, by="hook first, second, again", for_model="Not run: a\nb\nc")


@rows(
    "rule, mode, can",
    [
        ("Edit", PermissionMode.PLAN, False),
        ("mcp__git", PermissionMode.PLAN, False),
        ("WebFetch(domain:example.org)", PermissionMode.PLAN, True),
        ("Edit", PermissionMode.DEFAULT, True),
    ],
)
def test_no_allow_rule_permits_in_plan_mode_what_it_refuses(rule: str, mode: PermissionMode, can: bool) -> None:
    assert can_permit(parse_rule(rule), mode) is can


def test_a_stop_denies_and_keeps_its_reason_from_the_model() -> None:
    given = decide(call_of(ToolKind.READS), PermissionMode.BYPASS, Rules(), hooks_that_say("stop", "deny"), PLACES)
    assert given == Permission(answer=Ruling.DENY, by="hook stoper", for_model="Not run: a hook ended the turn.")


def test_a_hooks_allow_answers_the_question_and_its_reason_is_for_the_user() -> None:
    given = decide(call_of(ToolKind.ACTS), PermissionMode.DEFAULT, Rules(), hooks_that_say("allow"), PLACES)
    assert given == Permission(answer=Ruling.ALLOW, by="hook allower", for_user="looks safe")


def test_every_reason_to_ask_is_given_and_of_a_hook_only_its_name_to_the_model() -> None:
    given = decide(
        call_of(ToolKind.EDITS, protected="/srv/project/.git/config"),
        PermissionMode.BYPASS,
        rules_that("ask", tool="Edit"),
        hooks_that_say("ask", "allow"),
        PLACES,
    )
    assert given == Permission(
        answer=Ruling.ASK,
        by="protected path /srv/project/.git/config; rule Edit; hook asker",
        for_user="/srv/project/.git/config is a protected path\nthe rule Edit asks\nare you sure?",
        needs_person=True,
        why="this call needs confirmation because of the protected path /srv/project/.git/config and the permission "
        "rule Edit and hook asker",
    )


@rows("words, what", [(6000, "too long to be checked (6,000 words)"), (20, "too involved to be checked (20 words)")])
def test_of_a_line_that_cannot_be_checked_its_length_is_the_reason(words: int, what: str) -> None:
    call = replace(call_of(ToolKind.ACTS, protected="/etc/wave/settings.json"), unread_words=words)
    given = decide(call, PermissionMode.BYPASS, Rules(), hooks_that_say("allow"), PLACES)
    assert (given.answer, given.needs_person) == (Ruling.ASK, True)
    assert given.by == "protected path /etc/wave/settings.json"
    assert given.for_user == f"the line is {what}"
    assert given.why == (
        f"this call needs confirmation because of the line, which is {what}: put it into a file with Write and run that"
    )


def test_of_a_path_that_git_may_change_the_way_on_is_told() -> None:
    call = call_of(ToolKind.ACTS, protected="/srv/project/.wave/settings.json")
    given = decide(replace(call, by_git=True), PermissionMode.BYPASS, Rules(), hooks_that_say(), PLACES)
    assert given.why.endswith("(if possible, name specific paths: `git restore src`)")
    assert "which this git command may change" in given.for_user


@pytest.mark.parametrize(
    ("protected", "rule", "hooks", "needs_person"),
    [
        ("/srv/project/.git/config", False, (), True),
        (None, True, (), True),
        (None, True, ("ask",), True),
        (None, False, ("ask",), False),
        (None, False, (), False),
    ],
)
def test_only_a_protected_path_and_an_ask_rule_put_a_question_that_no_hook_may_answer(
    protected: str | None, rule: bool, hooks: tuple[str, ...], needs_person: bool
) -> None:
    rules = rules_that("ask", tool="Edit") if rule else Rules()
    call = call_of(ToolKind.EDITS, protected=protected)
    given = decide(call, PermissionMode.DEFAULT, rules, hooks_that_say(*hooks), PLACES)
    assert (given.answer, given.needs_person) == (Ruling.ASK, needs_person)


def test_a_question_in_dont_ask_is_a_deny_whose_reason_stays_with_the_user() -> None:
    given = decide(call_of(ToolKind.READS), PermissionMode.DONT_ASK, Rules(), hooks_that_say("ask"), PLACES)
    assert given.answer is Ruling.DENY
    assert given.by == "hook asker"
    assert given.for_model == (
        f"Not run: this call needs confirmation because of hook asker, and {NOBODY_TO_ASK} (permission mode dontAsk). "
        "Do without it, or tell the user."
    )
    assert given.for_user == "are you sure?"


def test_a_question_that_nobody_can_answer_is_a_deny() -> None:
    question = Permission(answer=Ruling.ASK, by="hook asker", for_user="are you sure?", why="hook asker asks")
    assert unanswered(question) == Permission(
        answer=Ruling.DENY,
        by="hook asker",
        for_model="Not run: hook asker asks, and nobody can confirm it in this run. Do without it, or tell the user.",
        for_user="are you sure?",
    )


def test_what_no_rule_allows_in_dont_ask_says_so() -> None:
    given = decide(call_of(ToolKind.ACTS), PermissionMode.DONT_ASK, Rules(), hooks_that_say(), PLACES)
    assert given.for_model == (
        f"Not run: no permission rule allows Bash here, and {NOBODY_TO_ASK} (permission mode dontAsk). "
        "Do without it, or tell the user."
    )


def test_an_allow_that_was_for_another_input_counts_for_nothing() -> None:
    reading = RankedVerdict(position=0, name="early", verdict=Verdict((Approve("fine"),)), allow_counts=False)
    outcome = merge(HookEvent.PRE_TOOL_USE, [reading])
    assert outcome.decision is Decision.NONE
    assert decide(call_of(ToolKind.ACTS), PermissionMode.DEFAULT, Rules(), outcome, PLACES).answer is Ruling.ASK


def test_another_name_of_a_file_dodges_no_rule() -> None:
    rules = Rules(deny=(parse_rule("Read(.env)"),))
    linked = replace(call_of(ToolKind.READS), other_inputs=({"file_path": "/srv/project/.env"},))
    assert decide(linked, PermissionMode.BYPASS, rules, hooks_that_say(), PLACES).by == "rule Read(.env)"


def test_where_other_names_could_not_be_compared_a_person_is_asked() -> None:
    unsure = replace(call_of(ToolKind.READS), unsure="/srv/project/a")
    asked = decide(unsure, PermissionMode.BYPASS, Rules(), hooks_that_say("allow"), PLACES)
    assert (asked.answer, asked.by, asked.needs_person) == (Ruling.ASK, "hard links", True)
    assert "/srv/project/a has other names" in asked.for_user


@rows(
    ("command", "alone", "together"),
    [
        ("git status", ["git status", "git status:*"], []),
        ("ls -l", ["ls -l", "ls:*"], []),
        ("echo hello > out.txt", ["echo hello > out.txt"], []),
        ("echo $HOME", ["echo $HOME"], []),
        ("for i in 1 2; do echo $i; done", ["for i in 1 2; do echo $i; done"], []),
        ("cd sub && make test", ["cd sub && make test"], ["cd sub:*", "make test:*"]),
        ("git status | head", ["git status | head"], ["git status:*", "head:*"]),
        ("git log; git log -1", ["git log; git log -1", "git log:*"], []),
        ("a1; a2; a3; a4; a5; a6", ["a1; a2; a3; a4; a5; a6"], []),
        ("echo 'unfinished", [], []),
    ],
)
def test_only_rules_that_answer_the_question_are_offered(command: str, alone: list[str], together: list[str]) -> None:
    call = JudgedCall(tool="Bash", tool_input={"command": command})

    offered = suggestions(call, PLACES)

    assert offered == tuple(f"Bash({pattern})" for pattern in alone)
    assert suggested_together(call, PLACES) == tuple(f"Bash({pattern})" for pattern in together)
    for rules in ([rule] for rule in offered):  # and each does what it promises
        given = decide(call, PermissionMode.DEFAULT, rules_of(*rules), hooks_that_say(), PLACES)
        assert given.answer is Ruling.ALLOW


def rules_of(*texts: str) -> Rules:
    return Rules(allow=tuple(map(parse_rule, texts)))


def test_a_tool_that_no_rule_can_name_is_offered_none() -> None:
    assert suggestions(JudgedCall(tool="Write", tool_input={"file_path": "/x"}), PLACES) == ("Write",)
    assert suggestions(JudgedCall(tool="my tool", tool_input={}), PLACES) == ()
    assert suggested_together(JudgedCall(tool="run", tool_input={"command": "a; b"}), PLACES) == ()


@pytest.mark.parametrize(("real", "answer"), [("src/a.py", Ruling.ALLOW), ("other/a.py", Ruling.ASK)])
def test_a_link_does_not_widen_an_allow_rule(real: str, answer: Ruling) -> None:
    call = JudgedCall(
        tool="Edit",
        kind=ToolKind.EDITS,
        tool_input={"file_path": "/srv/project/src/a.py"},
        real_input={"file_path": f"/srv/project/{real}"},
    )
    rules = Rules(allow=(parse_rule("Edit(src/**)"),))
    assert decide(call, PermissionMode.DEFAULT, rules, hooks_that_say(), PLACES).answer is answer
