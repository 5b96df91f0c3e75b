"""Every span and every metric, with its attributes. `docs/telemetry.md` is generated from these tables.

Names that begin with `gen_ai`, `mcp`, `server` and `error` follow the OpenTelemetry conventions for generative AI.
There is no convention for hooks and permissions, so those are `wave.…`.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class SpanKind(StrEnum):
    INTERNAL = "INTERNAL"
    CLIENT = "CLIENT"


class SpanRow(Struct, frozen=True, kw_only=True):
    name: str
    """What a span's name begins with."""
    about: str
    """The attribute that the rest of the name is."""
    kind: SpanKind
    meaning: str
    attributes: Mapping[str, str]
    content: Mapping[str, str] = {}
    """Attributes that are only sent if content is."""


class Instrument(StrEnum):
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class MetricRow(Struct, frozen=True, kw_only=True):
    name: str
    instrument: Instrument
    unit: str
    meaning: str
    attributes: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()
    """Of a histogram's buckets."""


_ERROR = {"error.type": "what went wrong, in one word; the span's status is then `ERROR`"}
_AGENT = {
    "gen_ai.conversation.id": "the session's id",
    "gen_ai.agent.id": "the session's id; in a subagent, the subagent's",
    "gen_ai.agent.name": "`wave`; in a subagent, its type",
}
_PROVIDER = {
    "gen_ai.provider.name": "`openai`, `anthropic`, `gcp.gemini`, `mistral_ai` …; for other servers, by their API",
}
_USAGE = {
    "gen_ai.usage.input_tokens": "tokens of the request, cached or not",
    "gen_ai.usage.output_tokens": "tokens of the answer, including reasoning",
    "gen_ai.usage.cache_read.input_tokens": "the part that came from the server's cache",
    "gen_ai.usage.cache_creation.input_tokens": "the part that was added to the server's cache",
}

INVOKE_AGENT = SpanRow(
    name="invoke_agent",
    about="gen_ai.agent.name",
    kind=SpanKind.INTERNAL,
    meaning="one prompt, from submission to the end of the agent's work on it; or one subagent, below its Task call",
    attributes={
        "gen_ai.operation.name": "`invoke_agent`",
        **_AGENT,
        "gen_ai.agent.version": "the version of Wave",
        "gen_ai.request.model": "the model of the last request",
        **_PROVIDER,
        **_USAGE,
        "wave.status": "`completed`, `blocked`, `stopped`, `error`, `interrupted` …: as in the result",
        "wave.requests": "model requests, without those of subagents",
        **_ERROR,
    },
    content={
        "gen_ai.input.messages": "the prompt, once hooks have accepted it",
        "gen_ai.output.messages": "the last answer",
    },
)
CHAT = SpanRow(
    name="chat",
    about="gen_ai.request.model",
    kind=SpanKind.CLIENT,
    meaning="one model request, with its retries",
    attributes={
        "gen_ai.operation.name": "`chat`",
        **_AGENT,
        "gen_ai.request.model": "the model",
        "gen_ai.request.max_tokens": "the limit for the answer, if there is one",
        **_PROVIDER,
        "server.address": "the host of the model's server",
        "server.port": "its port",
        "gen_ai.response.finish_reasons": "`stop`, `tool_calls`, `length` or `content_filter`",
        **_USAGE,
        "wave.retries": "how often the request was repeated",
        "wave.cost": "US dollars, if the model's prices are known",
        **_ERROR,
    },
    content={"gen_ai.output.messages": "the answer: text, and calls with their arguments"},
)
EXECUTE_TOOL = SpanRow(
    name="execute_tool",
    about="gen_ai.tool.name",
    kind=SpanKind.INTERNAL,
    meaning="one tool call, from the model's answer to its result: hooks, permission, the tool",
    attributes={
        "gen_ai.operation.name": "`execute_tool`",
        **_AGENT,
        "gen_ai.tool.name": "`Bash`, `mcp__server__tool` …",
        "gen_ai.tool.call.id": "the call's id",
        "gen_ai.tool.type": "`function`; for tools of MCP servers `extension`",
        "wave.tool.decision": "`allow`, `deny`, `defer` or `invalid`",
        "wave.tool.decision.source": "who decided; see the metric `wave.tool.decisions`",
        "wave.violations": "files that it changed although a rule denies it",
        "mcp.method.name": "`tools/call`, for tools of MCP servers",
        "mcp.protocol.version": "the version that client and server agreed on",
        "wave.mcp.server": "the server, as it is configured",
        **_ERROR,
    },
    content={
        "gen_ai.tool.call.arguments": "the input as the model wrote it; what hooks insert is not sent",
        "gen_ai.tool.call.result": "the result as the model gets it: after every hook has run",
    },
)
HOOK = SpanRow(
    name="wave.hook",
    about="wave.hook.event",
    kind=SpanKind.INTERNAL,
    meaning="one run of one hook, below the tool call or the agent that it is about",
    attributes={
        "wave.hook.event": "`PreToolUse` …",
        "wave.hook.name": "the hook's name",
        "wave.hook.layer": "`managed`, `code`, `user`, `project`, `local` or `flag`",
        "wave.hook.outcome": "`none`, `context`, `allow`, `ask`, `defer`, `deny`, `block`, `stop` or `failure`",
        "wave.hook.failure": "`timeout`, `signal`, `spawn`, `exit`, `json`, `http`, `answer` or `mcp`",
        "wave.hook.mode": "`enforce`, `shadow` …",
        "wave.hook.look": "1, or 2 for a second look at a rewritten input",
        "wave.hook.let_through": "it failed, its answer could have counted, and the event continued",
        "wave.hook.rewrote": "it changed the tool's input",
        "wave.hook.async": "nothing waited for it",
        "wave.hook.duration": "seconds",
        "wave.hook.tokens": "tokens of the model that a `prompt` or `agent` hook asked",
        **_AGENT,
        "gen_ai.tool.call.id": "the call that it is about",
        **_ERROR,
    },
)
SPANS = (INVOKE_AGENT, CHAT, EXECUTE_TOOL, HOOK)

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_MODEL = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model")
_HOOK = ("wave.hook.event", "wave.hook.name", "wave.hook.layer")

TOKENS = MetricRow(
    name="gen_ai.client.token.usage",
    instrument=Instrument.HISTOGRAM,
    unit="{token}",
    meaning="tokens of a model request",
    attributes=("gen_ai.token.type", *_MODEL),
    boundaries=_TOKENS,
)
DURATION = MetricRow(
    name="gen_ai.client.operation.duration",
    instrument=Instrument.HISTOGRAM,
    unit="s",
    meaning="how long a model request took",
    attributes=(*_MODEL, "error.type"),
    boundaries=_SECONDS,
)
COST = MetricRow(
    name="wave.cost",
    instrument=Instrument.COUNTER,
    unit="USD",
    meaning="what model requests cost, as far as prices are known",
    attributes=_MODEL,
)
DECISIONS = MetricRow(
    name="wave.tool.decisions",
    instrument=Instrument.COUNTER,
    unit="{decision}",
    meaning="decisions about tool calls, by who decided: `rule`, `hook`, `mode`, `user`, `protected_path`, `path`, "
    "`sandbox`, `nobody_to_ask`, `input` (it was invalid) or `error`",
    attributes=("gen_ai.tool.name", "wave.tool.decision", "wave.tool.decision.source"),
)
HOOK_DURATION = MetricRow(
    name="wave.hook.duration",
    instrument=Instrument.HISTOGRAM,
    unit="s",
    meaning="how long a hook took",
    attributes=(*_HOOK, "wave.hook.outcome"),
    boundaries=(0.001, 0.002, 0.005, *_SECONDS),
)
HOOK_FAILURES = MetricRow(
    name="wave.hook.failures",
    instrument=Instrument.COUNTER,
    unit="{failure}",
    meaning="hook runs that failed; with `wave.hook.let_through`, whether the event continued",
    attributes=(*_HOOK, "wave.hook.failure", "wave.hook.let_through"),
)
VIOLATIONS = MetricRow(
    name="wave.violations",
    instrument=Instrument.COUNTER,
    unit="{file}",
    meaning="files that commands changed although a rule denies it",
    attributes=("wave.restored",),
)
SESSIONS = MetricRow(
    name="wave.sessions",
    instrument=Instrument.COUNTER,
    unit="{session}",
    meaning="sessions, counted with their first prompt",
    attributes=("wave.resumed",),
)
DROPPED = MetricRow(
    name="wave.telemetry.dropped",
    instrument=Instrument.COUNTER,
    unit="{item}",
    meaning="spans and measurements that were not sent: the queue was full, or the receiver failed",
    attributes=("wave.telemetry.signal", "wave.telemetry.reason"),
)
METRICS = (
    TOKENS,
    DURATION,
    COST,
    DECISIONS,
    HOOK_DURATION,
    HOOK_FAILURES,
    VIOLATIONS,
    SESSIONS,
    DROPPED,
)
