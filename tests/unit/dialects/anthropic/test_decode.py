"""Everything of a request beside its content blocks and tools."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects import anthropic
from dragoman.ir import Message, OutputFormat, Sampling, Text, Thinking, ToolCall
from tests.unit.dialects.anthropic.builders import (
    Json,
    assistant,
    body,
    decode,
    messages,
    request,
    system,
    text,
    tool_result,
    tool_use,
    user,
)


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        (None, []),
        ("", []),
        ("be brief", ["be brief"]),
        ([], []),
        ([text("a", cache_control={"type": "ephemeral"}), text(""), text("b")], ["a", "b"]),
        ([text("x-anthropic-billing-header: cc_version=2; cch=1a2b3;"), text("a")], ["a"]),
        ("x-anthropic-billing-header: x", []),
        (
            [text("mentions x-anthropic-billing-header: in passing")],
            ["mentions x-anthropic-billing-header: in passing"],
        ),
        ([{"type": "someday", "text": "a"}], ["a"]),
        ([{"type": "text", "text": None}], []),
    ],
)
def test_f6_system_without_the_billing_header(given: Any, texts: list[str]) -> None:
    assert request(system=given).system == tuple(Text(text=words) for words in texts)


def test_f6_the_billing_header_is_dropped_from_system_only() -> None:
    words = "x-anthropic-billing-header: said by the user"
    assert messages(user(words)) == (Message(role="user", parts=(Text(text=words),)),)


@pytest.mark.parametrize(
    ("given", "roles"),
    [
        ([system("s"), user("u")], ["system", "user"]),
        ([user("u"), system("s")], ["user", "system"]),
        (
            [user("u"), system(text("a"), text("b")), assistant("m"), system("s")],
            ["user", "system", "model", "system"],
        ),
        (
            [user("u"), assistant(tool_use()), system("s"), user(tool_result())],
            ["user", "model", "system", "user"],
        ),
    ],
)
def test_f1_system_messages_keep_their_place(given: list[Json], roles: list[str]) -> None:
    assert [message.role for message in messages(*given)] == roles


@pytest.mark.parametrize(
    ("fields", "thinking"),
    [
        ({}, Thinking()),
        ({"thinking": None}, Thinking()),
        ({"thinking": {"type": "disabled"}}, Thinking(mode="off")),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
            Thinking(mode="on", budget_tokens=2048, show=True),
        ),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 31999, "display": "updates"}},
            Thinking(mode="on", budget_tokens=31999, show=True),
        ),
        ({"thinking": {"type": "enabled"}}, Thinking(mode="on", show=True)),
        ({"thinking": {"type": "enabled", "budget_tokens": 0}}, Thinking(mode="on", show=True)),
        ({"thinking": {"type": "adaptive"}}, Thinking(mode="on", show=True)),
        ({"thinking": {"type": "adaptive", "budget_tokens": 0}}, Thinking(mode="on", show=True)),
        ({"thinking": {"type": "adaptive", "budget_tokens": 9, "display": "omitted"}}, Thinking(mode="on")),
        ({"thinking": {"type": "between_tools"}}, Thinking(mode="on", show=True)),
        ({"output_config": {"effort": "low"}}, Thinking(effort="low")),
        ({"output_config": {"effort": None}}, Thinking()),
        ({"output_config": {}}, Thinking()),
        (
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "minimal"}},
            Thinking(mode="on", effort="minimal", show=True),
        ),
        (
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}},
            Thinking(mode="on", effort="medium", show=True),
        ),
        (
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}},
            Thinking(mode="on", effort="max", show=True),
        ),
        (
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
            Thinking(mode="on", effort="max", show=True),
        ),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 9}, "output_config": {"effort": "high"}},
            Thinking(mode="on", effort="high", show=True),
        ),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}}, Thinking(mode="off")),
    ],
)
def test_f2_thinking(fields: Json, thinking: Thinking) -> None:
    decoded = decode(**fields)
    assert decoded.request.thinking == thinking
    assert decoded.notes == ()


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"thinking": {"type": "someday"}}, "thinking"),
        ({"output_config": {"effort": "epic"}}, "output_config.effort"),
    ],
)
def test_f2_a_wish_of_tomorrow_is_noted_and_costs_nothing(fields: Json, where: str) -> None:
    decoded = decode(**fields)
    assert decoded.request.thinking == Thinking()
    assert [(note.kind, note.where) for note in decoded.notes] == [("dropped", where)]


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("fields", "output"),
    [
        ({}, None),
        ({"output_config": {"format": None}}, None),
        ({"output_config": {"format": {"type": "text"}}}, None),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
            OutputFormat(schema=json.dumps(SCHEMA).encode()),
        ),
        ({"output_config": {"format": {"type": "json_schema"}}}, OutputFormat(schema=None)),
        ({"output_format": {"type": "json_schema", "schema": {}}}, OutputFormat(schema=b"{}")),
    ],
)
def test_output_format(fields: Json, output: OutputFormat | None) -> None:
    assert request(**fields).output == output


def test_sampling() -> None:
    got = request(temperature=1, top_p=0.5, top_k=3, stop_sequences=["a", "b"], stream=True)
    assert got.sampling == Sampling(max_tokens=8192, temperature=1.0, top_p=0.5, top_k=3, stop=("a", "b"))
    assert got.stream
    nothing = request(
        temperature=None, top_p=None, top_k=None, stop_sequences=None, stream=None, max_tokens=None
    )
    assert nothing.sampling == Sampling()
    assert not nothing.stream


@pytest.mark.parametrize(
    ("metadata", "headers", "session"),
    [
        (None, {}, ""),
        ({}, {}, ""),
        ({"user_id": None}, {}, ""),
        ({"user_id": '{"device_id":"d","account_uuid":"","session_id":"s-1"}'}, {}, "s-1"),
        ({"user_id": "user_ab_account__session_1234-56"}, {}, "1234-56"),
        ({"user_id": "plain"}, {}, "plain"),
        ({"user_id": '{"device_id":"d"}'}, {}, '{"device_id":"d"}'),
        ({"user_id": '{"session_id":5}'}, {}, '{"session_id":5}'),
        ({"user_id": "x"}, {"x-claude-code-session-id": "h"}, "h"),
        ({"user_id": "x"}, {"x-claude-code-session-id": ""}, "x"),
    ],
)
def test_h8_the_session_is_what_the_client_says_anyway(
    metadata: Any, headers: dict[str, str], session: str
) -> None:
    assert request(metadata=metadata, headers=headers).session == session


def test_f3_unknown_fields_are_tolerated_everywhere() -> None:
    decoded = decode(
        {"role": "user", "content": [text("x", someday=[1])], "clear_at": "never"},
        context_management={"edits": [{"type": "clear_thinking_20251015"}]},
        safeguards={"a": 1},
        service_tier="auto",
        speed=None,
        cache_control=None,
        mcp_servers=[],
        tools=[{"name": "f", "input_schema": {}, "strict": True, "eager_input_streaming": True}],
        tool_choice={"type": "auto", "someday": 1},
        metadata={"user_id": "x", "someday": {}},
        output_config={"task_budget": {"type": "tokens", "total": 5}},
        thinking={"type": "adaptive", "block_binding": None},
    )
    assert decoded.request.messages == (Message(role="user", parts=(Text(text="x"),)),)
    assert decoded.notes == ()


def test_the_same_message_is_read_once_but_named_by_its_own_place() -> None:
    dropped = user({"type": "container_upload", "file_id": "f"})
    assert [note.where for note in decode(dropped, user("a"), dropped).notes] == [
        "messages[0].content[0]",
        "messages[2].content[0]",
    ]


def test_count_is_one_number() -> None:
    assert json.loads(anthropic.encode_count(12)) == {"input_tokens": 12}


class TestCachePoints:
    """Agents move one to the last message with every turn: without it the message is the same, and known."""

    @pytest.mark.parametrize(
        "point",
        [{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral", "ttl": "5m"}],
    )
    @pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
    def test_a_message_is_read_once_wherever_the_point_stands(self, point: Json, separators: Any) -> None:
        marked, plain = (
            json.dumps({"model": "m", "max_tokens": 9, "messages": [user(block)]}, separators=separators)
            for block in (tool_result(f"{point}", cache_control=point), tool_result(f"{point}"))
        )
        first = anthropic.decode_request(marked.encode(), {}).request.messages[0]
        assert anthropic.decode_request(plain.encode(), {}).request.messages[0] is first

    @pytest.mark.parametrize(
        "block",
        [
            tool_use(input={"a": 1, "cache_control": {"type": "ephemeral"}}),
            tool_use(input={"list": [{"a": 1, "cache_control": {"type": "ephemeral"}}]}),
            text('say ,"cache_control":{"type":"ephemeral"}}]}'),
        ],
    )
    def test_what_only_looks_like_one_stays(self, block: Json) -> None:
        asked = json.dumps(json.loads(body(user("q"), assistant(block))), separators=(",", ":"))
        (part,) = anthropic.decode_request(asked.encode(), {}).request.messages[1].parts
        assert isinstance(part, ToolCall | Text)
        said = json.loads(part.args) if isinstance(part, ToolCall) else part.text
        assert said == block.get("text", block.get("input"))
