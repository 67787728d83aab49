"""The vendor's own SDK is the judge of what we answer."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from anthropic import (
    Anthropic,
    APIStatusError,
    AsyncAnthropic,
    AuthenticationError,
    BadRequestError,
    DefaultHttpxClient,
    beta_tool,
)
from anthropic.types import MessageParam, ToolParam

from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.sample_files import make_png
from tests.e2e.sdk_rounds import MODEL, connect, text_of

ADD: ToolParam = {
    "name": "add",
    "description": "Add two numbers.",
    "input_schema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}


def user(content: Any) -> list[MessageParam]:
    return [{"role": "user", "content": content}]


def test_whole_answer(client: Anthropic) -> None:
    answer = client.messages.create(model=MODEL, max_tokens=2000, messages=user("say Good evening."))
    assert [block.type for block in answer.content] == ["text"]
    assert answer.content[0].to_dict() == {"type": "text", "text": "Good evening."}
    assert answer.type == "message"
    assert answer.id.startswith("msg_")
    assert answer.model == MODEL
    assert answer.stop_reason == "end_turn"
    assert answer.usage.input_tokens > 0
    assert answer._request_id is not None


def test_streamed_answer(client: Anthropic) -> None:
    words = "The quick brown fox jumps over the lazy dog, again and again, until the evening comes."
    with client.messages.stream(model=MODEL, max_tokens=2000, messages=user(f"say {words}")) as stream:
        events = [event.type for event in stream]
        answer = stream.get_final_message()
    assert stream.get_final_text() == words
    assert events[0] == "message_start"
    assert events[-1] == "message_stop"
    assert events.count("text") > 1
    assert answer.stop_reason == "end_turn"
    assert answer.usage.output_tokens > 0


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_is_shown_and_signed(client: Anthropic, google: Google, stream: bool) -> None:
    asked: dict[str, Any] = {
        "model": MODEL,
        "max_tokens": 8000,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "tools": [ADD],
        "messages": user(plan("think Numbers are easy. then " + use("add", {"a": 1, "b": 2}))),
    }
    if stream:
        with client.messages.stream(**asked) as events:
            answer = events.get_final_message()
    else:
        answer = client.messages.create(**asked)
    assert [block.type for block in answer.content] == ["thinking", "tool_use"]
    thought, call = answer.content
    assert thought.type == "thinking"
    assert "Numbers are easy" in thought.thinking
    assert thought.signature
    assert call.type == "tool_use"
    asked["messages"] += [
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "3"}]},
    ]
    answer = client.messages.create(**asked)
    assert "add returned: 3" in text_of(answer)
    assert google.sentinels() == 0


@pytest.mark.parametrize("stream", [False, True])
def test_parallel_calls(client: Anthropic, google: Google, stream: bool) -> None:
    prompt = together(*(use("add", {"a": number, "b": 0}) for number in range(4)))
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 2000, "tools": [ADD], "messages": user(prompt)}
    if stream:
        with client.messages.stream(**asked) as events:
            answer = events.get_final_message()
    else:
        answer = client.messages.create(**asked)
    calls = [block for block in answer.content if block.type == "tool_use"]
    assert [call.input for call in calls] == [{"a": number, "b": 0} for number in range(4)]
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": f"answer {number}"}
        for number, call in reversed(list(enumerate(calls)))
    ]
    asked["messages"] += [
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": results},
    ]
    answer = client.messages.create(**asked)
    expected = "\n".join(f"add returned: answer {number}" for number in range(4))
    assert text_of(answer) == expected
    assert google.sentinels() == 0


@pytest.mark.parametrize(
    ("choice", "stop"),
    [
        ({"type": "any"}, "tool_use"),
        ({"type": "tool", "name": "add"}, "tool_use"),
        ({"type": "none"}, "end_turn"),
        ({"type": "auto", "disable_parallel_tool_use": True}, "end_turn"),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else value,
)
def test_tool_choice(client: Anthropic, choice: Any, stop: str) -> None:
    answer = client.messages.create(
        model=MODEL, max_tokens=2000, tools=[ADD], tool_choice=choice, messages=user("say Nothing to do.")
    )
    assert answer.stop_reason == stop


def test_stop_sequence_and_length(client: Anthropic) -> None:
    long = "say " + "one two three four five " * 40
    cut = client.messages.create(model=MODEL, max_tokens=5, messages=user(long))
    assert cut.stop_reason == "max_tokens"
    stopped = client.messages.create(
        model=MODEL, max_tokens=2000, stop_sequences=["three"], messages=user(long)
    )
    assert text_of(stopped).strip() == "one two"


def test_picture_and_document(client: Anthropic) -> None:
    picture = base64.b64encode(make_png(width=8, height=8)).decode()
    content = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "A page."}},
        {"type": "text", "text": "Hmm, what have we here?"},
    ]
    answer = client.messages.create(model=MODEL, max_tokens=2000, messages=user(content))
    assert "image/png" in text_of(answer)


def test_structured_output(client: Anthropic) -> None:
    schema = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "pages": {"type": "integer"}},
        "required": ["title", "pages"],
        "additionalProperties": False,
    }
    answer = client.messages.create(
        model=MODEL,
        max_tokens=2000,
        messages=user('A book called "Dune" with 412 pages.'),
        output_config={"format": {"type": "json_schema", "schema": schema}},
    )
    assert text_of(answer) == '{"title":"Dune","pages":412}'


def test_count_tokens_counts_everything(client: Anthropic) -> None:
    def count(**more: Any) -> int:
        return client.messages.count_tokens(
            model=MODEL, **{"messages": user("Hello there."), **more}
        ).input_tokens

    picture = base64.b64encode(make_png(width=8, height=8)).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}}
    plain = count()
    assert plain > 0
    assert count(system="You are a helpful librarian.") > plain
    assert count(tools=[ADD]) > plain
    assert count(messages=user([{"type": "text", "text": "Hello there."}, image])) > plain + 100


def test_models(client: Anthropic) -> None:
    models = list(client.models.list(limit=1000))
    assert len(models) == len({model.id for model in models})
    assert any("claude" in model.id for model in models)
    assert any(model.id.startswith("gemini-") for model in models)
    for model in models:
        assert client.models.retrieve(model.id).id == model.id
        assert model.display_name
        assert model.max_input_tokens
        assert model.max_tokens


def test_a_wrong_key_is_refused(gateway: Gateway) -> None:
    with (
        Anthropic(
            base_url=gateway.url, auth_token="not-the-key-000000000", api_key=None, max_retries=0
        ) as stranger,
        pytest.raises(AuthenticationError) as caught,
    ):
        stranger.messages.create(model=MODEL, max_tokens=10, messages=user("Hello"))
    assert caught.value.type == "authentication_error"


def test_a_wrong_request_is_refused_where_it_is_wrong(client: Anthropic) -> None:
    wrong: Any = [{"type": "image", "source": {"type": "base64", "media_type": "image/png"}}]
    with pytest.raises(BadRequestError) as caught:
        client.messages.create(model=MODEL, max_tokens=10, messages=user(wrong))
    assert caught.value.type == "invalid_request_error"
    assert "messages[0].content[0]" in str(caught.value) or "messages.0.content.0" in str(caught.value)


@pytest.mark.parametrize("stream", [False, True])
def test_tool_runner_falls_back_from_threads(gateway: Gateway, google: Google, stream: bool) -> None:
    added: list[tuple[int, int]] = []
    statuses: list[int] = []

    @beta_tool
    def add(a: int, b: int) -> str:
        """Add two numbers."""
        added.append((a, b))
        return str(a + b)

    def note(response: Any) -> None:
        statuses.append(response.status_code)

    prompt = plan(use("add", {"a": 1, "b": 2}), use("add", {"a": 30, "b": 4}))
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 2000, "messages": user(prompt)}
    with (
        DefaultHttpxClient(event_hooks={"response": [note]}) as http,
        Anthropic(
            base_url=gateway.url, auth_token=GATEWAY_KEY, api_key=None, max_retries=0, http_client=http
        ) as client,
    ):
        runner: Any = client.beta.messages.tool_runner(tools=[add], stream=stream, **asked)
        answers = [item.get_final_message() if stream else item for item in runner]
    assert added == [(1, 2), (30, 4)]
    assert text_of(answers[-1]) == "add returned: 3\nadd returned: 34"
    assert statuses == [400, 200, 200, 200]
    assert google.sentinels() == 0


def test_a_deferred_tool_is_withheld_until_referenced(client: Anthropic, google: Google) -> None:
    """With the words Claude Code puts behind such a result, which are no new turn of the user's."""
    search: Any = {"name": "ToolSearch", "input_schema": {"type": "object", "properties": {}}}
    asked: dict[str, Any] = {
        "model": MODEL,
        "max_tokens": 2000,
        "tools": [search, {**ADD, "defer_loading": True}],
        "messages": user(plan(use("ToolSearch", {}), use("add", {"a": 1, "b": 2}))),
    }
    answer = client.messages.create(**asked)
    assert google.declared() == ["ToolSearch"]
    call = answer.content[-1]
    assert call.type == "tool_use"
    found = {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": [{"type": "tool_reference", "tool_name": "add"}],
    }
    reminder = {"type": "text", "text": "<system-reminder>\nTokens are left.\n</system-reminder>"}
    asked["messages"] += [
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": [found, {"type": "text", "text": "Tool loaded."}, reminder]},
    ]
    answer = client.messages.create(**asked)
    assert google.declared() == ["ToolSearch", "add"]
    call = answer.content[-1]
    assert call.type == "tool_use"
    assert (call.name, call.input) == ("add", {"a": 1, "b": 2})
    assert google.sentinels() == 0


def test_a_thread_is_refused_by_name(client: Anthropic) -> None:
    with pytest.raises(APIStatusError) as caught:
        client.messages.create(
            model=MODEL, max_tokens=10, messages=user("Hello"), extra_body={"thread": {"type": "create"}}
        )
    body: Any = caught.value.body
    assert caught.value.status_code == 400
    assert body["error"]["details"]["error_code"] == "thread_unsupported_request"


async def test_async_client(gateway: Gateway) -> None:
    async with (
        AsyncAnthropic(base_url=gateway.url, auth_token=GATEWAY_KEY, api_key=None, max_retries=0) as client,
        client.messages.stream(model=MODEL, max_tokens=2000, messages=user("say Good evening.")) as stream,
    ):
        assert await stream.get_final_text() == "Good evening."


def test_the_embedded_emulator_answers_without_a_key(tmp_path_factory: pytest.TempPathFactory) -> None:
    embedded = Gateway(tmp_path_factory.mktemp("embedded") / "home")
    embedded.start()
    try:
        with connect(embedded) as client:
            answer = client.messages.create(model=MODEL, max_tokens=2000, messages=user("say Good evening."))
        assert text_of(answer) == "Good evening."
    finally:
        embedded.stop()
