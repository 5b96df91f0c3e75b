"""What was seen in a run, against what a good host does. Pure."""

import msgspec

from tests.hosts.arena import Seen
from tests.hosts.situations import Expected, Situation


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one host fared in one situation."""

    faults: list[str] = []
    """What it did wrong, in words; empty: nothing."""
    note: str = ""
    """How it did it, where there are several good ways."""
    cannot: str = ""
    """Why the situation does not exist in this host."""
    trouble: str = ""
    """Why the run shows nothing."""
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        return not (self.faults or self.cannot or self.trouble)


def outcome(situation: Situation, seen: Seen, *, guarded: bool) -> Outcome:
    trouble = _trouble(situation, seen, guarded=guarded)
    if trouble:
        return Outcome(trouble=trouble, seconds=seen.seconds)
    found = faults(situation.expect, seen)
    if seen.exit_code is None:
        found.append(f"has to be ended after {situation.patience:g} s")
    return Outcome(faults=found, note=_note(situation.expect, seen), seconds=seen.seconds)


def faults(expect: Expected, seen: Seen) -> list[str]:
    """In words that finish a sentence about the host."""
    heard = "\n".join(seen.requests)
    count = len(seen.requests)
    found = [_made(name) for name in expect.absent if name in seen.files]
    found += ["does not run it" for name in expect.present if name not in seen.files]
    found += ["the model is not told" for text in expect.told if text not in heard]
    found += ["the model sees it" for text in expect.untold if text in heard]
    found += ["writes it" for name in expect.unchanged if name not in seen.unchanged]
    if expect.either and not (expect.either in seen.files or expect.either in heard):
        found.append("neither rewrites it nor says so")
    if expect.most_requests is not None and count > expect.most_requests:
        found.append("the model gets it" if expect.most_requests == 0 else f"goes on for {count} requests")
    if expect.least_requests is not None and count < expect.least_requests:
        found.append("does not go on")
    return list(dict.fromkeys(found))


def _made(name: str) -> str:
    return {"ran": "runs it", "rewritten": "runs the rewritten call"}.get(name, "writes it")


def _note(expect: Expected, seen: Seen) -> str:
    if expect.either:
        return "rewrites it" if expect.either in seen.files else "denies it, with advice"
    return ""


def _trouble(situation: Situation, seen: Seen, *, guarded: bool) -> str:
    """A host that did nothing must not pass for a careful one."""
    by_script = [hook for hook in situation.hooks if hook.script]
    judged_by_rules = guarded and situation.rules
    if by_script and not judged_by_rules and not seen.hook_runs:
        return f"no hook ran: {_last_line(seen.output)}"
    if not seen.requests and situation.expect.most_requests != 0:
        return f"the model was not asked: {_last_line(seen.output)}"
    return ""


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:120] if lines else "no output"
