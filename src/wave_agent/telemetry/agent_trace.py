"""What happens in an agent, as spans and metrics. It only listens: nothing that the agent does depends on it."""

from collections.abc import Callable, Mapping
from typing import Any

from wave_agent.events import Event, SessionStarted, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from wave_agent.lazy_regex import lazy_regex
from wave_agent.messages import Change, PromptAccepted
from wave_agent.telemetry.propagation import Position
from wave_agent.telemetry.spans import Measurement, Sink, TraceSpan
from wave_agent.telemetry.token_count import TokenCount
from wave_agent.telemetry.traced_hook import TracedHook
from wave_agent.telemetry.traced_request import RequestOutcome, TracedRequest
from wave_agent.telemetry.vocabulary import (
    CHAT,
    COST,
    DECISIONS,
    DURATION,
    EXECUTE_TOOL,
    HOOK,
    INVOKE_AGENT,
    SESSIONS,
    TOKENS,
    VIOLATIONS,
    MetricRow,
)

MAIN = "wave"
_ENDS = 1.0
_TOOL_NAME = lazy_regex(r"[\w.-]{1,128}")
"""A model may invent a tool, and call it anything."""
_DENIED, _FAILED, _UNFINISHED = "denied", "tool_error", "interrupted"


class AgentTrace:
    """One agent: the session's own, or a subagent."""

    def __init__(
        self,
        sink: Sink,
        *,
        session_id: str,
        version: str,
        started_by: Position | None,
        with_content: bool = False,
        protocol_of: Callable[[str], str] = lambda _: "",
        identity: tuple[str, str] | None = None,
        above: "AgentTrace | None" = None,
    ) -> None:
        """`started_by` is the span below which the agent's spans are. `protocol_of` returns the version that was agreed
        on with an MCP server, if it is one. `identity`: id and type of a subagent."""
        self._sink = sink
        self._session_id = session_id
        self._version = version
        self._started_by = started_by
        self._with_content = with_content
        self._protocol_of = protocol_of
        agent_id, name = identity or (session_id, MAIN)
        self._about = {
            "gen_ai.conversation.id": session_id,
            "gen_ai.agent.id": agent_id,
            "gen_ai.agent.name": name,
        }
        self._above = above
        self._below: dict[str, AgentTrace] = {}
        """Subagents by their id."""
        self._agent: TraceSpan | None = None
        self._last: Position | None = None
        """The last turn: what happens between two turns belongs to it."""
        self._tools: dict[str, TraceSpan] = {}
        """By call id, until the turn ends: hooks may run after a call has its result."""
        self._tokens = TokenCount()
        self._requests = 0
        self._output: Any = None
        """The last answer."""
        self._is_left = False
        self.ends = _ENDS
        """Seconds that the end of the session may be delayed."""

    # ------------------------------------------------------------------------------------------------------- the agent

    def see(self, event: Event) -> None:
        """An event of this agent. Those of its subagents, which pass through it, are theirs to report."""
        match event:
            case SessionStarted(resumed=resumed):
                self._measure(SESSIONS, 1, {"wave.resumed": resumed})
            case TurnStarted():
                self.begin()
            case ToolStarted(agent_id=None):
                self._begin_tool(event)
            case ToolFinished(agent_id=None):
                self._end_tool(event)
            case TurnEnded(status=status):
                self.end(status)
            case _:
                pass

    def change(self, change: Change) -> None:
        """A change of the conversation. A prompt counts once hooks have accepted it."""
        if self._with_content and self._agent is not None and isinstance(change, PromptAccepted):
            self._agent.content["gen_ai.input.messages"] = [
                {"role": "user", "parts": [{"type": "text", "content": change.text}]}
            ]

    def begin(self) -> None:
        """A turn begins."""
        self.end(_UNFINISHED)
        self._tokens, self._requests, self._output = TokenCount(), 0, None
        about = {"gen_ai.operation.name": INVOKE_AGENT.name, **self._about, "gen_ai.agent.version": self._version}
        self._agent = TraceSpan(INVOKE_AGENT, about, self._started_by, self._sink)
        self._last = self._agent.position

    def end(self, status: str) -> None:
        """It has ended, and so has everything in it."""
        for span in self._tools.values():
            span.end(_UNFINISHED)
        self._tools.clear()
        agent, self._agent = self._agent, None
        if agent is None:
            return
        if self._output is not None:
            agent.content["gen_ai.output.messages"] = self._output
        agent.end(
            "error" if status == "error" else "",
            **{"wave.status": status, "wave.requests": self._requests},
            **self._tokens.attributes(),
        )

    @property
    def _position(self) -> Position | None:
        return self._agent.position if self._agent is not None else self._last or self._started_by

    # ------------------------------------------------------------------------------------------------------ tool calls

    def _begin_tool(self, event: ToolStarted) -> None:
        about = {
            "gen_ai.operation.name": EXECUTE_TOOL.name,
            **self._about,
            "gen_ai.tool.name": event.name if _TOOL_NAME.fullmatch(event.name) else "invalid",
            "gen_ai.tool.call.id": event.id,
            "gen_ai.tool.type": "function",
        }
        span = self._tools[event.id] = TraceSpan(EXECUTE_TOOL, about, self._position, self._sink)
        if self._with_content:
            span.content["gen_ai.tool.call.arguments"] = event.parameters

    def _end_tool(self, event: ToolFinished) -> None:
        span = self._tools.get(event.id)
        if span is None or span.ended:
            return
        if self._with_content:
            span.content["gen_ai.tool.call.result"] = event.result
        if protocol := self._protocol_of(span.attributes.get("wave.mcp.server", "")):
            span.attributes["mcp.protocol.version"] = protocol
        is_denied = span.attributes.get("wave.tool.decision") == "deny"
        span.end("" if event.success else _DENIED if is_denied else _FAILED)

    def called_server(self, call_id: str, server: str) -> None:
        """The tool of this call is an MCP server's."""
        if span := self._tools.get(call_id):
            about = {"gen_ai.tool.type": "extension", "mcp.method.name": "tools/call", "wave.mcp.server": server}
            span.attributes |= about

    def decided(self, call_id: str, tool: str, decision: str, source: str) -> None:
        """Whether a call runs, and who decided that."""
        about = {"wave.tool.decision": decision, "wave.tool.decision.source": source}
        if (span := self._tools.get(call_id)) and not span.ended:
            span.attributes |= about
        self._measure(DECISIONS, 1, {"gen_ai.tool.name": tool, **about})

    def violated(self, facts: Mapping[str, Any]) -> None:
        """A file was changed although a rule denies it."""
        self._measure(VIOLATIONS, 1, {"wave.restored": bool(facts.get("restored"))})
        for agent in (self, *self._below.values()):
            if (span := agent._tools.get(str(facts.get("tool_use_id")))) and not span.ended:
                span.attributes["wave.violations"] = span.attributes.get("wave.violations", 0) + 1

    def traceparent(self, call_id: str) -> str:
        """For what a call starts."""
        span = self._tools.get(call_id)
        return "" if span is None else span.position.traceparent

    # ----------------------------------------------------------------------------------------------------------- hooks

    def hook(self, event: str, name: str, tool_use_id: str | None, agent_id: str | None) -> "TracedHook":
        """A hook begins to run, in this agent or in one of its subagents."""
        agent = self._below.get(agent_id or "", self)
        return agent._hook(event, name, tool_use_id)

    def _hook(self, event: str, name: str, tool_use_id: str | None) -> "TracedHook":
        about = {"wave.hook.event": event, "wave.hook.name": name, **self._about}
        call = self._tools.get(tool_use_id or "")
        if tool_use_id:
            about["gen_ai.tool.call.id"] = tool_use_id
        span = TraceSpan(HOOK, about, call.position if call else self._position, self._sink)
        return TracedHook(span, self._sink.measure)

    # -------------------------------------------------------------------------------------------------------- requests

    def request(self, model: str, about: Mapping[str, Any]) -> "TracedRequest":
        """A request to the model begins. `about` says to whom."""
        self._requests += 1
        named = {"gen_ai.request.model": model} if model else {}
        known = {"gen_ai.operation.name": CHAT.name, **self._about, **named, **about}
        return TracedRequest(TraceSpan(CHAT, known, self._position, self._sink), self._answered)

    def sent(self) -> None:
        """A request was sent: there is time for what has been put off."""
        self._sink.begin()

    def _answered(self, span: TraceSpan, answer: RequestOutcome) -> None:
        self._tokens += answer.tokens
        if self._with_content:
            span.content["gen_ai.output.messages"] = self._output = answer.messages()
        known = {name: span.attributes[name] for name in _OF_A_MODEL if name in span.attributes}
        if self._agent is not None:
            self._agent.attributes |= {name: value for name, value in known.items() if name != "gen_ai.operation.name"}
        for kind, tokens in (("input", answer.tokens.input), ("output", answer.tokens.output)):
            if tokens:
                self._measure(TOKENS, tokens, {**known, "gen_ai.token.type": kind})
        failed = {"error.type": answer.error} if answer.error else {}
        self._measure(DURATION, span.seconds_so_far, {**known, **failed})
        if answer.cost:
            self._measure(COST, answer.cost, known)

    # ------------------------------------------------------------------------------------------------------- subagents

    def subagent(self, agent_id: str, agent_type: str, call_id: str) -> "AgentTrace":
        """A subagent that this call has started."""
        call = self._tools.get(call_id)
        child = self._below[agent_id] = AgentTrace(
            self._sink,
            session_id=self._session_id,
            version=self._version,
            started_by=call.position if call else self._position,
            with_content=self._with_content,
            protocol_of=self._protocol_of,
            identity=(agent_id, agent_type),
            above=self,
        )
        child.begin()
        return child

    # ------------------------------------------------------------------------------------------------------------- end

    def take_problem(self) -> str:
        """Why telemetry is not sent, once; otherwise empty."""
        return self._sink.take_problem()

    def leave(self) -> None:
        """The session is over. Waits a moment until everything is sent; not in the thread of an event loop."""
        self.end(_UNFINISHED)
        if not self._is_left and self._above is None:
            self._is_left = True
            self._sink.leave(self.ends)

    def _measure(self, metric: MetricRow, value: float, attributes: Mapping[str, Any]) -> None:
        self._sink.measure(Measurement(metric, value, attributes))


_OF_A_MODEL = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model")
