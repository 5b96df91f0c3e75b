"""Rules about effects: what they deny, and what happens if not all effects are known."""

from msgspec.structs import replace

from tests.rows import rows
from wave_agent.effects.values import Effects, PathOrigin
from wave_agent.hooks.events import HookEvent
from wave_agent.hooks.semantics import merge
from wave_agent.hooks.verdicts import Approve, Effect, Outcome, RankedVerdict, Verdict
from wave_agent.permissions.decision import (
    JudgedCall,
    Permission,
    PermissionMode,
    PermissionRequest,
    Rules,
    Ruling,
    ToolKind,
    decide,
    unanswered,
)
from wave_agent.rules.rule import Places, parse_rule

PLACES = Places("/srv/project", "/home/me")
UNKNOWN = Effects(complete=False)
READS = Effects(reads=("/srv/project/.env",))
CALL = JudgedCall(tool="Bash", tool_input={"command": "run it"}, effects=UNKNOWN)


def said(*effects: Effect) -> Outcome:
    verdicts = [RankedVerdict(position=at, name="hook", verdict=Verdict((one,))) for at, one in enumerate(effects)]
    return merge(HookEvent.PRE_TOOL_USE, verdicts)


def judged(
    call: JudgedCall = CALL,
    mode: PermissionMode = PermissionMode.DEFAULT,
    hooks: Outcome | None = None,
    **rules: tuple[str, ...],
) -> Permission:
    given = Rules(**{kind: tuple(map(parse_rule, texts)) for kind, texts in rules.items()})
    return decide(call, mode, given, hooks or said(), PLACES)


def command(effects: Effects | None, **more: object) -> JudgedCall:
    return JudgedCall(tool="Bash", tool_input={"command": "run it"}, effects=effects, **more)  # pyright: ignore[reportArgumentType]


@rows("mode", list(PermissionMode))
def test_a_deny_rule_denies_a_command_that_has_the_effect_whatever_permits_it(mode: PermissionMode) -> None:
    found = judged(command(READS), mode, said(Approve("fine")), deny=("Read(.env)",), allow=("Bash", "Bash(run it)"))
    assert (found.answer, found.by) == (Ruling.DENY, "rule Read(.env)")
    assert "denied by the permission rule Read(.env), because the call would read .env." in found.for_model


def test_a_value_that_a_hook_inserted_is_not_shown_to_the_model() -> None:
    assert "would" not in judged(command(READS, secret=True), deny=("Read(.env)",)).for_model


def test_an_ask_rule_asks_about_the_effect_and_no_hook_can_answer_it() -> None:
    found = judged(command(READS), PermissionMode.BYPASS, said(Approve("fine")), ask=("Read(.env)",))
    assert (found.answer, found.needs_person) == (Ruling.ASK, True)
    assert found.for_user == "the rule Read(.env) asks, because the call would read .env"


def test_a_rule_for_the_tool_is_named_before_a_rule_about_effects() -> None:
    found = judged(command(READS), deny=("Read(.env)", "Bash(run:*)"))
    assert (found.by, "would" in found.for_model) == ("rule Bash(run:*)", False)


@rows(
    ("rule", "may"),
    [
        ("Read(.env)", "read .env"),
        ("Edit(vendor/**)", "change vendor/**"),
        ("Write(vendor/**)", "change vendor/**"),
        ("Net(evil.example)", "reach evil.example"),
        ("Net(*)", "reach the network"),
    ],
)
def test_a_command_with_unknown_effects_asks_if_a_rule_denies_some(rule: str, may: str) -> None:
    found = judged(deny=(rule,), allow=("Bash",))
    assert (found.answer, found.needs_person) == (Ruling.ASK, False)
    assert (
        found.for_user == f"this command may {may}, which the rule {rule} denies: its effects are not known completely"
    )
    assert found.for_user in unanswered(found).for_model
    assert judged(mode=PermissionMode.DONT_ASK, deny=(rule,), allow=("Bash",)).answer is Ruling.DENY


@rows("rule", ["Bash", "Bash(cat .env)", "Read", "Glob(.env)", "WebFetch"])
def test_other_rules_do_not_make_a_command_with_unknown_effects_ask(rule: str) -> None:
    assert judged(deny=("Read(.env)",), allow=("Bash",)).answer is Ruling.ASK
    assert judged(ask=(rule,) if rule == "Read" else (), allow=("Bash",)).answer is Ruling.ALLOW
    assert judged(ask=("Read(.env)",), allow=("Bash",)).answer is Ruling.ALLOW


@rows("allow", [("Bash(run it)",), ("Bash", "Bash(run:*)"), ("Bash(run *)",)])
def test_an_allow_rule_for_the_command_permits_unknown_effects(allow: tuple[str, ...]) -> None:
    found = judged(deny=("Read(.env)",), allow=allow)
    assert (found.answer, found.by) == (Ruling.ALLOW, f"rule {allow[-1]}")


@rows("allow", ["Bash", "Bash(*)", "Bash(:*)", "Bash(**)", "Bash(* *)"])
def test_an_allow_rule_for_every_command_does_not(allow: str) -> None:
    assert judged(allow=(allow,)).answer is Ruling.ALLOW
    assert judged(deny=("Read(.env)",), allow=(allow,)).answer is Ruling.ASK


def test_a_hook_and_bypass_permit_unknown_effects() -> None:
    assert judged(hooks=said(Approve("fine")), deny=("Read(.env)",)).answer is Ruling.ALLOW
    assert judged(mode=PermissionMode.BYPASS, deny=("Read(.env)",)).answer is Ruling.ALLOW


def test_only_commands_ask_because_of_unknown_effects() -> None:
    other = JudgedCall(tool="mcp__a__b", tool_input={}, effects=UNKNOWN)
    assert judged(other, deny=("Read(.env)",), allow=("mcp__a",)).answer is Ruling.ALLOW
    assert judged(command(None), deny=("Read(.env)",), allow=("Bash",)).answer is Ruling.ALLOW


def test_a_host_that_is_not_known_is_denied_by_a_rule_for_all_and_asked_about_by_others() -> None:
    somewhere = command(Effects(hosts=("*",)))
    assert judged(somewhere, PermissionMode.BYPASS, deny=("Net(*)",)).answer is Ruling.DENY
    assert judged(somewhere, PermissionMode.BYPASS, deny=("Net(evil.example)",)).answer is Ruling.ALLOW
    assert judged(somewhere, deny=("Net(evil.example)",), allow=("Bash",)).answer is Ruling.ASK
    found = judged(somewhere, ask=("Net(evil.example)",), allow=("Bash",))
    assert "which the rule Net(evil.example) asks about" in found.for_user


def test_too_many_files_to_compare_need_a_person() -> None:
    found = judged(command(Effects(), unsearched="/srv/project/**"), PermissionMode.BYPASS, said(Approve("fine")))
    assert (found.answer, found.needs_person) == (Ruling.ASK, True)
    assert found.for_user == "/srv/project/** matches too many files to compare them with the rules"


def test_an_allow_rule_never_covers_a_command() -> None:
    reads = command(READS, kind=ToolKind.ACTS)
    assert judged(reads, allow=("Read(.env)", "Read", "Edit(**)")).answer is Ruling.ASK


def test_a_rule_would_answer_a_question_about_unknown_effects_for_good() -> None:
    found = judged(deny=("Read(.env)",), allow=("Bash",))
    assert PermissionRequest(tool_name="Bash", tool_input={}, reason="", by=found.by).lasting
    assert not PermissionRequest(tool_name="Bash", tool_input={}, reason="", by="rule Read(.env)").lasting


@rows(
    ("mode", "expected"),
    [
        (PermissionMode.DEFAULT, Ruling.ALLOW),
        (PermissionMode.ACCEPT_EDITS, Ruling.ALLOW),
        (PermissionMode.PLAN, Ruling.ALLOW),
        (PermissionMode.DONT_ASK, Ruling.DENY),
    ],
)
def test_a_command_that_only_reads_runs_like_read(mode: PermissionMode, expected: Ruling) -> None:
    assert judged(command(Effects(), kind=ToolKind.READS), mode).answer is expected
    outside = command(Effects(), kind=ToolKind.READS, inside=False, outside="/etc")
    assert judged(outside, mode).answer is not Ruling.ALLOW
    assert judged(command(READS, kind=ToolKind.READS), mode, deny=("Read(.env)",)).answer is Ruling.DENY


@rows(
    ("rule", "argument", "expected"),
    [
        ("Edit(a)", "message", 'because its argument "message" names ./a. A tool of an MCP server may read and write '),
        ("Edit(a)", "", "because its input names ./a. A tool of an MCP server may read and write whatever its "),
        ("Edit(a)", "x", "whatever its arguments name. To read that, use Read. Do without it, or tell the user."),
        ("Read(a)", "x", "whatever its arguments name. Do without it, or tell the user."),
        ("Read(b)", "x", "because the call would read b. Do without it"),
        ("Net(c.d)", "x", "because the call would reach c.d. Do without it"),
    ],
)
def test_a_reason_names_the_argument_and_the_word(rule: str, argument: str, expected: str) -> None:
    named = (PathOrigin("/srv/project/a", argument, "./a"),)
    effects = Effects(
        reads=("/srv/project/a", "/srv/project/b"),
        writes=("/srv/project/a",),
        hosts=("c.d",),
        origins=named,
        complete=False,
    )
    call = JudgedCall(tool="mcp__git__commit", tool_input={}, effects=effects)
    denied = judged(call, deny=(rule,))
    assert expected in denied.for_model
    assert denied.for_user == f"the rule {rule} denies it{denied.for_model.partition(rule)[2].partition('. ')[0]}"
    assert "names" not in judged(replace(call, secret=True), deny=(rule,)).for_model
    asked = judged(call, ask=(rule,)).for_user
    assert asked.startswith(f"the rule {rule} asks, because ")
    assert "whatever" not in asked
