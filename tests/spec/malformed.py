"""Output that starts like a JSON object and is none."""

MALFORMED = {
    "cut off": '{"decision": "block", "reason": "half',
    "cut off before a value": '{"permissionDecision": ',
    "single quotes": "{'decision': 'block'}",
    "a comma too many": '{"decision": "block",}',
    "not a number": '{"continue": NaN}',
    "something after it": '{"decision": "block"} done',
}
