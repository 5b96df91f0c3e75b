"""What an MCP server asks the user passes the hooks before and after the user."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent, NoticeBlock, ToolBlock
from wave_agent.agent.options import Options
from wave_agent.mcp.values import Elicit, Elicitation, ElicitationAnswer, McpResult, Progress, Server, ToolDefinition
from wave_agent.testing import FakeMcpHost, Reply, ScriptedModel, call

FORM = {"type": "object", "properties": {"shop": {"type": "string"}}}


class AskingShops(FakeMcpHost):
    """Its tool asks the user: for a form, or for a page to be opened."""

    def __init__(self, question: Elicitation) -> None:
        super().__init__()
        self.question = question
        self.got: ElicitationAnswer | None = None
        self.add("shops", ToolDefinition(name="buy"), lambda _: "")

    async def call(
        self,
        server: Server,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Progress | None = None,
        elicit: Elicit | None = None,
        meta: Mapping[str, str] | None = None,
    ) -> McpResult:
        self.got = None if elicit is None else await elicit(self.question)
        return McpResult(content=({"type": "text", "text": "bought"},))


FORM_ASKED = Elicitation(server="shops", message="Which shop?", schema=FORM)
PAGE_ASKED = Elicitation(server="shops", message="Log in", mode="url", url="https://example.com")
USER = ElicitationAnswer(action="accept", content={"shop": "corner"})


def answering(**fields: Any) -> Callable[[Any], Any]:
    def answer(_: Any) -> Any:
        return {"hookSpecificOutput": fields} if fields else None

    return answer


@pytest.mark.parametrize(
    ("question", "hooks", "attended", "expected", "asked"),
    [
        (FORM_ASKED, {}, True, USER, True),
        (FORM_ASKED, {}, False, ElicitationAnswer(), False),
        (
            FORM_ASKED,
            {"Elicitation": answering(action="accept", content={"shop": "x"})},
            True,
            ElicitationAnswer(action="accept", content={"shop": "x"}),
            False,
        ),
        (FORM_ASKED, {"Elicitation": answering(action="cancel")}, True, ElicitationAnswer(action="cancel"), False),
        (FORM_ASKED, {"ElicitationResult": answering(action="decline")}, True, ElicitationAnswer(), True),
        (FORM_ASKED, {"ElicitationResult": answering()}, False, ElicitationAnswer(), False),
        (PAGE_ASKED, {"Elicitation": answering(action="accept")}, True, ElicitationAnswer(), False),
        (PAGE_ASKED, {"ElicitationResult": answering(action="accept")}, True, ElicitationAnswer(action="accept"), True),
    ],
)
async def test_hooks_and_the_user_answer_a_server(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    question: Elicitation,
    hooks: dict[str, Any],
    attended: bool,
    expected: ElicitationAnswer,
    asked: bool,
) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    host = AskingShops(question)
    seen: list[Elicitation] = []

    async def user(question: Elicitation) -> ElicitationAnswer:
        seen.append(question)
        return USER

    options = Options(
        workdir=tmp_path,
        model_client=ScriptedModel([Reply(tool_calls=[call("mcp__shops__buy")]), "Done."]),
        mcp_host=host,
        mcp_servers={"shops": {"command": "not-started"}},
        permission_mode="bypassPermissions",
        hooks={event: [{"hooks": [{"function": function}]}] for event, function in hooks.items()},
        elicit=user if attended else None,
    )
    async with Agent.from_options(options) as agent:
        result = await agent.send_message("Buy milk.")
        blocks = [block for message in agent.messages for block in message.blocks]
    [text] = [block.result or "" for block in blocks if isinstance(block, ToolBlock)]
    assert text.startswith("bought"), result
    assert ("this run is not interactive" in text) == (not attended and not hooks)
    assert host.got == expected
    assert seen == ([question] if asked else [])
    told = "\n".join(block.content for block in blocks if isinstance(block, NoticeBlock))
    assert ("a person has to open" in told) == (question is PAGE_ASKED and not asked)
