"""A player of each dialect, with its tools and the plans that it makes the model follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.unit.dialects import scripted_client
from tests.unit.dialects.amazonq import scripted_client as amazonq
from tests.unit.dialects.amazonq.builders import tool
from tests.unit.dialects.anthropic import scripted_client as anthropic
from tests.unit.dialects.bedrock import scripted_client as bedrock
from tests.unit.dialects.openai_chat import scripted_client as openai_chat
from tests.unit.dialects.openai_responses import scripted_client as openai_responses
from tests.unit.dialects.scripted_client import MODELS

Json = dict[str, Any]

SCHEMA: Json = {"type": "object", "properties": {"n": {"type": "integer"}}}
NAMES = ("Read", "Bash", "mcp__" + "x" * 86)
PLANS = (
    'think "hm" then use Read with {"n": 1} then say done',
    'use Read with {"n": 1} and use Bash with {"n": 2} then use Bash with {"n": 3} then say done',
    'say first then use Bash with {"n": 1} then use Read with {"n": 2} and use Read with {"n": 3}',
    "just say hello",
    "tell me a story",
)
#: The same steps in the shapes of the Responses API.
RESPONSES_PLANS = (
    'think "hm" then use read with {"n": 1} then say done',
    'use read with {"n": 1} and use agents.wait with {"n": 2} then use apply_patch with {"input": "x"} then say done',
    'say first then use shell with {"commands": ["ls"]} then use read with {"n": 2} and use read with {"n": 3}',
    "just say hello",
    "tell me a story",
)
MODERN = [model for model in MODELS if not model.startswith("gemini-2")]
THIRD = [model for model in MODERN if "gemini-4" not in model]

ANTHROPIC_TOOLS: list[Json] = [{"name": name, "input_schema": SCHEMA} for name in NAMES]
FUNCTIONS: list[Json] = [{"name": name, "parameters": SCHEMA} for name in NAMES]
CHAT_TOOLS: Json = {"tools": [{"type": "function", "function": function} for function in FUNCTIONS]}
RESPONSES_TOOLS: list[Json] = [
    {"type": "function", "name": "read", "parameters": SCHEMA, "strict": False},
    {
        "type": "custom",
        "name": "apply_patch",
        "format": {"type": "grammar", "syntax": "lark", "definition": "s"},
    },
    {
        "type": "namespace",
        "name": "agents",
        "description": "Helpers.",
        "tools": [{"type": "function", "name": "wait", "parameters": SCHEMA}],
    },
    {"type": "function", "name": "mcp__" + "x" * 86, "parameters": SCHEMA},
    {"type": "shell"},
]
BEDROCK_TOOLS: Json = {
    "toolConfig": {"tools": [{"toolSpec": {"name": name, "inputSchema": {"json": SCHEMA}}} for name in NAMES]}
}
Q_TOOLS: list[Json] = [tool(name, SCHEMA) for name in NAMES]

_EFFORTS: st.SearchStrategy[Json] = st.sampled_from(
    [{}, {"reasoning_effort": "high"}, {"reasoning_effort": "none"}]
)
_REASONING: st.SearchStrategy[Json] = st.sampled_from(
    [
        {"reasoning": {"summary": "auto"}, "include": ["reasoning.encrypted_content"]},
        {"reasoning": {"effort": "low"}},
        {"reasoning": {"effort": "none"}, "include": ["reasoning.encrypted_content"]},
        {},
    ]
)
THINKING: Json = {"thinking": {"type": "adaptive"}}
AMAZON_THINKING: Json = {"additionalModelRequestFields": THINKING}
REMARK: Json = {"type": "text", "text": "<system-reminder>\nremember\n</system-reminder>"}


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """Who plays, and with which settings; `carries` says whether its client then has somewhere to keep signatures."""

    player: Callable[..., scripted_client.Player[Any]]
    usual: Json
    settings: st.SearchStrategy[Json]
    more_settings: st.SearchStrategy[Json] = st.nothing()  # with which a carrier alone is not enough
    carries: Callable[[Json], bool] = lambda settings: True
    plans: tuple[str, ...] = PLANS

    def turns(self) -> st.SearchStrategy[list[str]]:
        return st.lists(st.sampled_from(self.plans), min_size=1, max_size=3)


def _amazonq(*, stream: bool = True, **fields: Any) -> amazonq.Player:
    """Always a stream."""
    return amazonq.Player(Q_TOOLS, **fields)


SEATS: dict[str, Seat] = {
    "anthropic": Seat(
        player=anthropic.Player,
        usual={"tools": ANTHROPIC_TOOLS, **THINKING},
        settings=st.builds(
            lambda thinking, beside: {"tools": ANTHROPIC_TOOLS, **thinking, "beside": beside},
            st.sampled_from([THINKING, {"thinking": {"type": "disabled"}}, {}]),
            st.sampled_from([(), (REMARK,)]),
        ),
        carries=lambda settings: settings.get("thinking") == THINKING["thinking"],
    ),
    "openai_chat": Seat(
        player=openai_chat.Player,
        usual=CHAT_TOOLS,
        settings=_EFFORTS.map(lambda effort: {**CHAT_TOOLS, **effort}),
        more_settings=_EFFORTS.map(lambda effort: {"functions": FUNCTIONS, **effort}),
    ),
    "openai_responses": Seat(
        player=openai_responses.Player,
        usual={"tools": RESPONSES_TOOLS, "reasoning": {"summary": "auto"}},
        settings=_REASONING.map(lambda reasoning: {"tools": RESPONSES_TOOLS, **reasoning}),
        carries=lambda settings: "reasoning" in settings,
        plans=RESPONSES_PLANS,
    ),
    "bedrock": Seat(
        player=bedrock.Player,
        usual={**BEDROCK_TOOLS, **AMAZON_THINKING},
        settings=st.sampled_from([{}, AMAZON_THINKING, {"outputConfig": {"effort": "low"}}]).map(
            lambda thinking: {**BEDROCK_TOOLS, **thinking}
        ),
        carries=lambda settings: "additionalModelRequestFields" in settings,
    ),
    "amazonq": Seat(
        player=_amazonq,
        usual=AMAZON_THINKING,
        settings=st.sampled_from([{}, AMAZON_THINKING]),
        carries=lambda settings: bool(settings),
    ),
}
