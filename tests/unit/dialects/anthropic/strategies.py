"""Hypothesis invents whole conversations as a correct Anthropic client would send them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dragoman.ir import AFTER_TEXT, ON_THOUGHT, Signature, seal

Json = dict[str, Any]

PIXEL = "iVBORw0KGgo="
WORDS = st.one_of(
    st.sampled_from(
        ["", " ", "hello", "ünï\u2028cödé", "<system-reminder>\nx\n</system-reminder>", '{"a": 1}']
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
SAID = WORDS.filter(lambda words: bool(words.strip()))
NAMES = st.sampled_from(
    ["Bash", "Read", "mcp__server__do-it", "mcp__" + "x" * 86, "weird name!", "1st", "a.b:c", "büro"]
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(-1e9, 1e9), WORDS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
ARGS = st.dictionaries(WORDS, VALUES, max_size=3)
SCHEMAS = st.sampled_from(
    [
        {"type": "object", "properties": {}},
        {"type": "object"},
        {
            "type": "object",
            "properties": {"pattern": {"type": "string"}, "-A": {"type": "number"}},
            "required": ["pattern"],
        },
        {
            "type": "object",
            "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "additionalProperties": False,
        },
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/n"}},
            "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}},
        },
    ]
)
CLAUDE_SIGNATURE = "EqQBCgIYAhIkYmFzZTY0IG9mIHNvbWVib2R5IGVsc2U="


def text_block(words: st.SearchStrategy[str] = WORDS) -> st.SearchStrategy[Json]:
    return words.map(lambda said: {"type": "text", "text": said})


IMAGE: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
PDF: Json = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
}
FILES = st.sampled_from(
    [
        IMAGE,
        PDF,
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lGODlh"}},
        {
            "type": "document",
            "title": "T",
            "source": {"type": "text", "media_type": "text/plain", "data": "words"},
        },
        {
            "type": "document",
            "source": {"type": "content", "content": [IMAGE, {"type": "text", "text": "x"}]},
        },
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "image", "source": {"type": "url", "url": f"data:image/webp;base64,{PIXEL}"}},
        {
            "type": "search_result",
            "source": "https://h",
            "title": "T",
            "content": [{"type": "text", "text": "x"}],
        },
    ]
)
#: Thinking of other models, damaged thinking; ours of another family, which must not be forwarded either.
THINKING = st.sampled_from(
    [
        {"type": "thinking", "thinking": "hm", "signature": CLAUDE_SIGNATURE},
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking", "thinking": "hm", "signature": seal(Signature("eA", "vertex-g9"), ON_THOUGHT)},
        {"type": "thinking", "thinking": "hm", "signature": seal(Signature("eA", "vertex-g9"), AFTER_TEXT)},
        {
            "type": "thinking",
            "thinking": "hm",
            "signature": seal(Signature("eA", "gemini-g3"), ON_THOUGHT)[:-1],
        },
        {"type": "redacted_thinking", "data": CLAUDE_SIGNATURE},
    ]
)
SERVER_BLOCKS = st.sampled_from(
    [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "encrypted_content": "x", "url": "u"}],
        },
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [
                {
                    "type": "web_search_result",
                    "encrypted_content": seal(Signature("[]", "gemini-g3"), "toolu_1"),
                }
            ],
        },
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "1"}},
        {
            "type": "code_execution_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": {"stdout": "1", "stderr": "", "return_code": 0, "content": []},
        },
        {"type": "mcp_tool_use", "id": "m", "name": "f", "server_name": "s", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": True, "content": "no"},
        {"type": "compaction", "content": "what was"},
        {"type": "fallback", "from": {}, "to": {}},
    ]
)


SERVER_TOOLS: st.SearchStrategy[Json] = st.sampled_from(
    [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 2, "blocked_domains": ["a.org"]},
        {"type": "web_search_20260318", "name": "look", "allowed_domains": ["a.org"]},
        {"type": "web_fetch_20260318", "name": "web_fetch"},
        {"type": "code_execution_20260521", "name": "code_execution"},
    ]
)


@st.composite
def conversations(draw: st.DrawFn) -> Json:
    """A request: settled rounds, then an open one; ids are unique, every call has its result."""
    tools = draw(st.lists(_tools(), max_size=4, unique_by=lambda tool: tool["name"]))
    numbers = iter(range(10_000))
    messages: list[Json] = []
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(_said_by_user())})
        _remark(draw, messages)
        for _ in range(draw(st.integers(0, 2))):
            messages += draw(_step(tools, numbers))
            _remark(draw, messages)
        if draw(st.booleans()):
            messages.append({"role": "assistant", "content": draw(_said_by_model())})
    request: Json = {"model": "claude-x", "max_tokens": draw(st.integers(1, 100_000)), "messages": messages}
    served = draw(st.just([]) | st.lists(SERVER_TOOLS, max_size=3, unique_by=lambda tool: tool["name"]))
    if tools or served:
        request["tools"] = [*tools, *served]
        request["tool_choice"] = draw(_choices(request["tools"]))
    return request | draw(_settings())


def _tools() -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {"name": NAMES, "input_schema": SCHEMAS},
        optional={
            "description": WORDS,
            "defer_loading": st.booleans(),
            "cache_control": st.just({"type": "ephemeral"}),
        },
    )


def _said_by_user() -> st.SearchStrategy[Any]:
    return SAID | st.tuples(text_block(SAID), st.lists(text_block() | FILES, max_size=3)).map(
        lambda pair: [*pair[1], pair[0]]
    )


def _said_by_model() -> st.SearchStrategy[Any]:
    return WORDS | st.lists(text_block() | THINKING | SERVER_BLOCKS, max_size=3)


def _remark(draw: st.DrawFn, messages: list[Json]) -> None:
    if draw(st.integers(0, 3)) == 0:
        messages.append({"role": "system", "content": draw(WORDS | st.lists(text_block(), max_size=2))})


@st.composite
def _step(draw: st.DrawFn, tools: list[Json], numbers: Any) -> list[Json]:
    """The model calls, the client answers in any order, perhaps with a remark in between."""
    names = NAMES if not tools else st.sampled_from([tool["name"] for tool in tools]) | NAMES
    calls: list[Json] = [
        {"type": "tool_use", "id": f"toolu_{next(numbers):024d}", "name": draw(names), "input": draw(ARGS)}
        for _ in range(draw(st.integers(1, 3)))
    ]
    before = draw(st.lists(text_block() | THINKING, max_size=2))
    steps: list[Json] = [{"role": "assistant", "content": [*before, *calls]}]
    _remark(draw, steps)
    results = [draw(_result(call["id"])) for call in draw(st.permutations(calls))]
    beside = draw(st.lists(text_block() | FILES, max_size=2))
    if draw(st.booleans()):
        steps.append({"role": "user", "content": [*results, *beside]})
    else:
        steps += [{"role": "user", "content": [result]} for result in results]
    return steps


def _result(identity: str) -> st.SearchStrategy[Json]:
    content = st.one_of(
        WORDS,
        st.none(),
        st.lists(text_block() | FILES | st.just({"type": "tool_reference", "tool_name": "Read"}), max_size=3),
    )
    return st.fixed_dictionaries(
        {"type": st.just("tool_result"), "tool_use_id": st.just(identity), "content": content},
        optional={"is_error": st.booleans()},
    )


def _choices(tools: list[Json]) -> st.SearchStrategy[Any]:
    plain = st.sampled_from([{"type": kind} for kind in ("auto", "any", "none")])
    forced = st.sampled_from([{"type": "tool", "name": tool["name"]} for tool in tools])
    single = plain.map(lambda choice: {**choice, "disable_parallel_tool_use": True})
    return st.none() | plain | forced | single


def _settings() -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {},
        optional={
            "system": st.none() | WORDS | st.lists(text_block(), max_size=2),
            "thinking": st.sampled_from(
                [
                    {"type": "disabled"},
                    {"type": "adaptive", "budget_tokens": 0},
                    {"type": "adaptive", "display": "omitted"},
                    {"type": "enabled", "budget_tokens": 1024},
                    {"type": "enabled", "budget_tokens": 64_000},
                ]
            ),
            "output_config": st.sampled_from(
                [
                    {"effort": "low"},
                    {"effort": "xhigh"},
                    {
                        "format": {
                            "type": "json_schema",
                            "schema": {"type": "object", "properties": {"a": {"type": "string"}}},
                        }
                    },
                ]
            ),
            "temperature": st.floats(0, 1),
            "top_p": st.floats(0, 1),
            "top_k": st.integers(1, 100),
            "stop_sequences": st.lists(WORDS, max_size=7),
            "metadata": st.just({"user_id": "u"}),
            "stream": st.booleans(),
        },
    )
