"""May this call run? One pure function, one order:

    deny rule > hook deny > plan mode's limit > protected path, ask rule, hook ask > hook allow > allow rule for the
    command > effects that are not known, if a rule denies some > allow rule > mode

A hook can tighten, and can answer the question that would be asked. It cannot override a deny or ask rule, plan mode,
or a protected path.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from wave_agent.hooks.events import Decision
from wave_agent.hooks.verdicts import Outcome
from wave_agent.messages import NOT_RUN, STOPPED
from wave_agent.rules.rule import (
    NET,
    Places,
    Rule,
    RuleError,
    parse_rule,
    permitting,
    plain_commands,
    uncovered,
)
from wave_agent.text import one_line

if TYPE_CHECKING:
    from wave_agent.effects.values import Effects  # many sessions need none

NOBODY_TO_ASK = "nobody can confirm it in this run"
INSTEAD = "Do without it, or tell the user."


ModeName: TypeAlias = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]
"""A `PermissionMode` as users write it."""


class PermissionMode(StrEnum):
    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"


NOT_LOOSER: Mapping[PermissionMode, frozenset[PermissionMode]] = {
    PermissionMode.PLAN: frozenset({PermissionMode.PLAN}),
    PermissionMode.DONT_ASK: frozenset({PermissionMode.DONT_ASK}),
    PermissionMode.DEFAULT: frozenset({PermissionMode.DEFAULT, PermissionMode.PLAN, PermissionMode.DONT_ASK}),
    PermissionMode.ACCEPT_EDITS: frozenset(PermissionMode) - {PermissionMode.BYPASS},
    PermissionMode.BYPASS: frozenset(PermissionMode),
}
"""For each mode, the modes that are no looser. `plan` can read what `dontAsk` may not."""


def stricter(above: PermissionMode, own: PermissionMode) -> PermissionMode:
    """The stricter of two modes. If neither is, `plan`: the model should know that it can only read."""
    if own in NOT_LOOSER[above]:
        return own
    return above if above in NOT_LOOSER[own] else PermissionMode.PLAN


class ToolKind(StrEnum):
    """What a tool does, from the point of view of modes."""

    READS = "reads"
    FETCHES = "reads pages of other machines"
    EDITS = "edits files"
    ACTS = "acts"

    @property
    def only_looks(self) -> bool:
        """It changes nothing here."""
        return self in (ToolKind.READS, ToolKind.FETCHES)


class Ruling(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Rules(Struct, frozen=True, kw_only=True):
    """The rules of all layers together."""

    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()


class JudgedCall(Struct, frozen=True, kw_only=True):
    """A tool call, with everything needed to judge it."""

    tool: str
    tool_input: Mapping[str, Any]
    kind: ToolKind = ToolKind.ACTS
    inside: bool = True
    """Everything it touches is in the project or an added directory."""
    outside: str | None = None
    """The path that is outside, if the model may see it."""
    protected: str | None = None
    """A protected path it would write to."""
    unread_words: int = 0
    """The words of a command of which nothing is known but its length, so that it might write to that path."""
    by_git: bool = False
    """Git would or might write to it, in a command that does not name it."""
    real_input: Mapping[str, Any] | None = None
    """The input with links resolved, if that makes a difference."""
    own: bool = False
    """It touches only what this session started."""
    other_names: tuple[str, ...] = ()
    """Names of the tool that restrictive rules may use as well."""
    claims_to_read: bool = False
    """Its tool, which the user chose, says that it only reads. Nothing else follows from that than a question less."""
    other_inputs: tuple[Mapping[str, Any], ...] = ()
    """The input with the file's other names: hard links."""
    unsure: str | None = None
    """A path that may have other names, which could not all be searched for."""
    effects: "Effects | None" = None
    """What it would do, with the paths that the disk adds. None: nothing depends on it."""
    unsearched: str | None = None
    """A pattern among its paths that matches too many files to compare them with the rules."""
    reading: tuple[str, ...] = ()
    """The commands of its line that only read by themselves, inside the project."""
    secret: bool = False
    """Its input is not for the model: a hook may have inserted it."""

    @property
    def real(self) -> Mapping[str, Any]:
        """The input that an allow rule must match: links must not widen it."""
        return self.tool_input if self.real_input is None else self.real_input


class Permission(Struct, frozen=True, kw_only=True):
    """The answer, its source, and the text for each side."""

    answer: Ruling
    by: str
    """What decided: `rule Bash(rm:*)`, `hook guard`, `mode plan` …"""
    for_model: str = ""
    """Why a call was denied, for the model."""
    for_user: str = ""
    """Why it asks or was allowed."""
    needs_person: bool = False
    """A question that no hook may answer with an allow."""
    why: str = ""
    """What needs confirmation, in the model's version: only the name of a hook."""


class PermissionRequest(Struct, frozen=True, kw_only=True):
    """The question to be answered before a call runs."""

    tool_name: str
    tool_input: Mapping[str, Any]
    reason: str
    suggestions: tuple[str, ...] = ()
    """Rules that would each answer it permanently, the narrowest first."""
    together: tuple[str, ...] = ()
    """Rules that would answer it permanently together: one for each command of a line."""
    tool_use_id: str = ""
    by: str = ""
    """What asks: `rule Bash(git push:*)`, `hook guard`, `mode default` …"""
    does: str = ""
    """What the call would do, on one line: `reads .env, writes 2 files, reaches api.example.com`."""
    effects: "Effects | None" = None
    """The same, in full. None: not known."""
    agent_type: str = ""
    """The type of the subagent that makes the call; empty: the agent itself."""
    question: str = ""
    """How to ask, if it is the user who wants the call; empty: it is the model."""

    @property
    def lasting(self) -> bool:
        """An allow rule would answer it permanently: only the mode asks, or effects are not known."""
        return is_lasting(self.by)


_UNKNOWN = "unknown effects"


def is_lasting(by: str) -> bool:
    """Whether an allow rule would answer a question that this asks."""
    return by.startswith(("mode ", _UNKNOWN))


class Allow(Struct, frozen=True):
    """Run it, possibly with a different input."""

    updated_input: Mapping[str, Any] | None = None


class Deny(Struct, frozen=True):
    """Do not run it. The model gets the reason."""

    message: str = ""


Approver: TypeAlias = Callable[[PermissionRequest], Allow | Deny | Awaitable[Allow | Deny]]
"""Answers questions on behalf of the program."""


class UnforeseenChange(Struct, frozen=True, kw_only=True):
    """A file that a call changed although a rule denies it."""

    path: str
    kind: Literal["created", "changed", "deleted"]
    rule: str
    """The rule that denies it; empty if it names a link to the file."""


class RestoreRequest(Struct, frozen=True, kw_only=True):
    """The question whether files become what they were before a call."""

    tool_name: str
    tool_use_id: str
    changes: tuple[UnforeseenChange, ...]
    meanwhile: bool
    """Something else was running that may have changed them."""


RestoreApprover: TypeAlias = Callable[[RestoreRequest], Awaitable[bool]]
"""True: restore them."""


_TOGETHER = 5
"""Rules offered at once: users do not read more."""


def suggestions(call: JudgedCall, places: Places) -> tuple[str, ...]:
    """Rules to offer with the question, the narrowest first. Each of them alone permits the call."""
    if call.kind is ToolKind.FETCHES:
        from wave_agent.rules.pages import page_rules  # lazy: many sessions fetch no page

        offered: tuple[str, ...] = (*page_rules(call.tool_input.get("url")), call.tool)
    elif call.tool != "Bash":
        offered = (call.tool,)
    else:
        wide = _for_each_command(call)
        offered = (f"Bash({call.tool_input.get('command', '')})", *(wide if len(wide) == 1 else ()))
    return tuple(rule for rule in offered if _would_permit((rule,), call, places))


def suggested_together(call: JudgedCall, places: Places) -> tuple[str, ...]:
    """For a line of several commands: rules that together permit it and similar lines. Empty if one rule is enough, or
    if no rules can."""
    offered = _for_each_command(call) if call.tool == "Bash" else ()
    return offered if 1 < len(offered) <= _TOGETHER and _would_permit(offered, call, places) else ()


def _for_each_command(call: JudgedCall) -> tuple[str, ...]:
    commands = [one for one in plain_commands(call.tool_input) if one not in call.reading]
    return tuple(dict.fromkeys(f"Bash({_beginning(one)}:*)" for one in commands))


def _beginning(command: str) -> str:
    """The first word or two, which identify the command."""
    words = command.split()
    return " ".join(words[:2]) if len(words) > 1 and words[1].isalnum() else words[0]


def _would_permit(texts: Sequence[str], call: JudgedCall, places: Places) -> bool:
    """Do not offer a rule that would not answer the question."""
    try:
        rules = [parse_rule(text) for text in texts]
    except RuleError:
        return False
    return bool(permitting(rules, call.tool, call.real, places, call.reading))


def decide(call: JudgedCall, mode: PermissionMode, rules: Rules, hooks: Outcome, places: Places) -> Permission:
    """The first stage that has an opinion decides."""
    case = _Situation(call, mode, rules, hooks.as_ask(), places)
    judged = next(found for stage in _STAGES if (found := stage(case)) is not None)
    if judged.answer is Ruling.ASK and mode is PermissionMode.DONT_ASK:
        return unanswered(judged, f"{NOBODY_TO_ASK} (permission mode {mode})")
    return judged


def unanswered(question: Permission, because: str = NOBODY_TO_ASK) -> Permission:
    """A question that cannot be answered is a deny. A hook's reason is shown only to the user."""
    return Permission(
        answer=Ruling.DENY,
        by=question.by,
        for_model=f"{NOT_RUN}{question.why}, and {because}. {INSTEAD}",
        for_user=question.for_user,
    )


class _Situation(Struct, frozen=True):
    call: JudgedCall
    mode: PermissionMode
    rules: Rules
    hooks: Outcome
    places: Places

    def restricting(self, rules: Sequence[Rule]) -> "_Restriction | None":
        """The first of these rules that applies to the call. Neither symlinks nor hard links can dodge it."""
        call = self.call
        inputs = (call.tool_input, *(() if call.real == call.tool_input else (call.real,)), *call.other_inputs)
        names = (call.tool, *call.other_names)
        for rule in rules:
            if any(rule.matches(name, one, self.places) for name in names for one in inputs):
                return _Restriction(rule)
        found = ((rule, rule.touched(call.effects, self.places)) for rule in rules)
        return next((self._because_of_effects(rule, would) for rule, would in found if would), None)

    def _because_of_effects(self, rule: Rule, would: str) -> "_Restriction":
        named = rule.named(self.call.effects, self.places)
        if named is None:
            return _Restriction(rule, f"the call would {would}")
        word = one_line(named.word, _SHOWN)
        where = f'its argument "{one_line(named.argument, _SHOWN)}"' if named.argument else "its input"
        # Reading has a way of its own: the rule is about changes.
        instead = "" if rule.tool == "read" else " To read that, use Read."
        return _Restriction(rule, f"{where} names {word}", f" {_ANYTHING_NAMED}{instead}")

    def permitting(self, rules: Sequence[Rule]) -> tuple[Rule, ...]:
        """Those of these allow rules that permit the call. Links must not widen them."""
        return permitting(rules, self.call.tool, self.call.real, self.places, self.call.reading)


class _Restriction(Struct, frozen=True):
    """A rule that applies to a call."""

    rule: Rule
    because: str = ""
    """What the call would do or name, if that is why."""
    advice: str = ""
    """A sentence for the model."""


_SHOWN = 80
"""Characters of a word or a name in a reason."""
_ANYTHING_NAMED = "A tool of an MCP server may read and write whatever its arguments name."


def _hooks(outcome: Outcome, decision: Decision) -> str:
    names = dict.fromkeys(said.hook for said in outcome.reasons.get(decision, ()))
    return f"hook {', '.join(names)}"


def _deny_rule(case: _Situation) -> Permission | None:
    found = case.restricting(case.rules.deny)
    if found is None:
        return None
    because = f", because {found.because}" if found.because and not case.call.secret else ""
    advice = found.advice if because else ""
    return Permission(
        answer=Ruling.DENY,
        by=f"rule {found.rule.text}",
        for_model=f"{NOT_RUN}denied by the permission rule {found.rule.text}{because}.{advice} {INSTEAD}",
        # Whoever wrote the rule hardly thought of this tool.
        for_user=f"the rule {found.rule.text} denies it{because}" if case.call.tool.startswith("mcp__") else "",
    )


def _hook_deny(case: _Situation) -> Permission | None:
    if case.hooks.decision < Decision.BLOCK:
        return None
    stopped = case.hooks.decision is Decision.STOP  # its reason is only for the user
    return Permission(
        answer=Ruling.DENY,
        by=_hooks(case.hooks, case.hooks.decision),
        for_model=STOPPED if stopped else NOT_RUN + case.hooks.reason,
    )


def _plan_limit(case: _Situation) -> Permission | None:
    """A page may be fetched for a plan, but not unasked: its address tells another machine something."""
    if case.mode is not PermissionMode.PLAN or case.call.kind.only_looks or case.call.own:
        return None
    return Permission(
        answer=Ruling.DENY,
        by=f"mode {case.mode}",
        for_model=f"{NOT_RUN}plan mode only lets you read, and {case.call.tool} does more. Put it into the plan.",
    )


def can_permit(rule: Rule, mode: PermissionMode) -> bool:
    """Whether an allow rule can permit anything in this mode that would not run without it. In plan mode, what tools
    like these do beyond reading is refused, whatever a rule says."""
    return mode is not PermissionMode.PLAN or not (rule.tool in _REFUSED_IN_PLAN or rule.tool.startswith("mcp__"))


_REFUSED_IN_PLAN = frozenset({"bash", "edit", "multiedit", "notebookedit", "write"})


def _ask(case: _Situation) -> Permission | None:
    """Collects every reason to ask; a hook's allow cannot answer any of them."""
    asking: list[_Asking] = []
    if (path := case.call.protected) and (words := case.call.unread_words):
        what = f"too {'long' if words > _LONG_LINE else 'involved'} to be checked ({words:,} words)"
        advice = "put it into a file with Write and run that"
        asking.append(_Asking(f"protected path {path}", f"the line is {what}", f"the line, which is {what}: {advice}"))
    elif path:
        how = _BY_GIT if case.call.by_git else ""
        asking.append(
            _Asking(f"protected path {path}", f"{path} is a protected path{how}", f"the protected path {path}{how}")
        )
    if path := case.call.unsure:
        reason = f"{path} has other names (hard links), and there are too many files to check them against the rules"
        asking.append(_Asking("hard links", reason, f"the hard links of {path}"))
    if pattern := case.call.unsearched:
        reason = f"{pattern} matches too many files to compare them with the rules"
        asking.append(_Asking("too many files", reason, "the number of files it touches"))
    if found := case.restricting(case.rules.ask):
        text, because = found.rule.text, f", because {found.because}" if found.because else ""
        asking.append(_Asking(f"rule {text}", f"the rule {text} asks{because}", f"the permission rule {text}"))
    asks = case.hooks.reasons.get(Decision.ASK, ())
    if asks or case.hooks.decision is Decision.ASK:
        hooks = _hooks(case.hooks, Decision.ASK)
        asking.append(_Asking(hooks, "\n".join(said.text for said in asks), hooks))
    if not asking:
        return None
    return Permission(
        answer=Ruling.ASK,
        by="; ".join(one.by for one in asking),
        for_user="\n".join(one.for_user for one in asking),
        needs_person=any(
            one is not None for one in (case.call.protected, case.call.unsure, case.call.unsearched, found)
        ),
        why=f"this call needs confirmation because of {' and '.join(one.for_model for one in asking)}",
    )


_LONG_LINE = 500
"""Words. A shorter line that cannot be checked has many expansions or levels."""
_BY_GIT = ", which this git command may change or restore (if possible, name specific paths: `git restore src`)"


class _Asking(Struct, frozen=True):
    """One reason to ask."""

    by: str
    for_user: str
    for_model: str


def _hook_allow(case: _Situation) -> Permission | None:
    if case.hooks.decision is not Decision.ALLOW:
        return None
    return Permission(answer=Ruling.ALLOW, by=_hooks(case.hooks, Decision.ALLOW), for_user=case.hooks.reason)


def _allow_rule_for_the_command(case: _Situation) -> Permission | None:
    """Rules that name the command. `Bash` alone does not."""
    return _permitted(case, [rule for rule in case.rules.allow if rule.tool == "bash" and _names_something(rule)])


def _names_something(rule: Rule) -> bool:
    return rule.pattern is not None and bool(rule.pattern.strip("*: "))


_JUDGED_BY_EFFECTS: Mapping[str, str] = {"Bash": "command", "WebFetch": "call"}
"""Tools that may do what a rule denies, although it does not match."""


def _unknown_effects(case: _Situation) -> Permission | None:
    """A command that may do what a rule denies. Those who use `bypassPermissions` want to be asked nothing."""
    effects = case.call.effects
    if effects is None or case.call.tool not in _JUDGED_BY_EFFECTS or case.mode is PermissionMode.BYPASS:
        return None
    unknown = (rule for rule in (*case.rules.deny, *case.rules.ask) if rule.may_mean(effects.hosts))
    denied = (rule for rule in case.rules.deny if rule.is_about_effects and not effects.complete)
    rule = next(chain(unknown, denied), None)
    if rule is None:
        return None
    verb = "denies" if rule in case.rules.deny else "asks about"
    what = f"this {_JUDGED_BY_EFFECTS[case.call.tool]} may {_forbidden(rule)}, which the rule {rule.text} {verb}"
    may = f"{what}: its effects are not known completely"
    return Permission(answer=Ruling.ASK, by=f"{_UNKNOWN}, rule {rule.text}", for_user=may, why=may)


def _forbidden(rule: Rule) -> str:
    """What a rule about effects denies, in words."""
    if rule.tool == NET:
        return "reach the network" if rule.pattern is None else f"reach {rule.pattern}"
    return f"{'read' if rule.tool == 'read' else 'change'} {rule.pattern}"


def _allow_rule(case: _Situation) -> Permission | None:
    return _permitted(case, case.rules.allow)


def _permitted(case: _Situation, allowing: Sequence[Rule]) -> Permission | None:
    rules = case.permitting(allowing)
    if not rules:
        return None
    named = "rule" if len(rules) == 1 else "rules"
    return Permission(answer=Ruling.ALLOW, by=f"{named} {', '.join(rule.text for rule in rules)}")


MODE_ALLOWS: Mapping[PermissionMode, frozenset[ToolKind]] = {
    PermissionMode.DEFAULT: frozenset({ToolKind.READS}),
    PermissionMode.ACCEPT_EDITS: frozenset({ToolKind.READS, ToolKind.EDITS}),
    PermissionMode.PLAN: frozenset({ToolKind.READS}),
    PermissionMode.DONT_ASK: frozenset(),
    PermissionMode.BYPASS: frozenset(ToolKind),
}
"""What runs without asking, inside the project."""
_CLAIM_COUNTS = frozenset({PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS})
"""Modes in which a tool's claim to read spares a question."""


def _by_mode(case: _Situation) -> Permission:
    call, mode = case.call, case.mode
    if call.claims_to_read and mode in _CLAIM_COUNTS and call.inside:
        return Permission(answer=Ruling.ALLOW, by=f"mode {mode}, a tool that says it only reads")
    if call.own or (call.kind in MODE_ALLOWS[mode] and (call.inside or mode is PermissionMode.BYPASS)):
        return Permission(answer=Ruling.ALLOW, by=f"mode {mode}")
    if mode is PermissionMode.DONT_ASK:
        outside, why = "", f"no permission rule allows {_uncovered(case) or call.tool} here"
    elif call.inside:
        outside, why = "", f"{_unpermitted(case)} needs confirmation in the permission mode {mode}"
    else:
        outside = " outside the project"
        why = f"{call.outside or 'a path of this call'} is outside the project, so {call.tool} needs confirmation"
    return Permission(
        answer=Ruling.ASK, by=f"mode {mode}", for_user=f"{call.tool}{outside} needs your consent", why=why
    )


def _uncovered(case: _Situation) -> str:
    return uncovered(case.rules.allow, case.call.tool, case.call.tool_input, case.call.reading)


def _unpermitted(case: _Situation) -> str:
    """What no rule allows: if rules allow some commands of the line, the first one they do not."""
    missing = _uncovered(case)
    return f"no permission rule allows {missing}, so {case.call.tool}" if missing else case.call.tool


_STAGES: tuple[Callable[[_Situation], Permission | None], ...] = (
    _deny_rule,
    _hook_deny,
    _plan_limit,
    _ask,
    _hook_allow,
    _allow_rule_for_the_command,
    _unknown_effects,
    _allow_rule,
    _by_mode,
)
"""The order. The last one always has an opinion."""
