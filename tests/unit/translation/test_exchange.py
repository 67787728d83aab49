"""An exchange: the upstream body, the bytes for the client, and what is stored."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from dragoman.dialects import anthropic, gemini
from dragoman.dialects.base import Encoded, Target
from dragoman.errors import InvalidRequest, UpstreamError
from dragoman.ir import Event, Media, Message, Request, Signature, Usage, seal
from dragoman.notes import Note
from dragoman.translation.argument_repair import InvalidArguments
from dragoman.translation.exchange import Exchange, ResponseSummary, TranslationOptions
from tests.unit.dialects.anthropic.builders import assistant, body, tool, tool_result, tool_use, user
from tests.unit.dialects.anthropic.stream_checks import Json, assembled, parse, said, thought, used

MODEL = Target(model="gemini-3-flash-preview")
THINKING = {"type": "adaptive"}
READ = tool(
    "Read", input_schema={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
)
USAGE = {
    "promptTokenCount": 10,
    "cachedContentTokenCount": 4,
    "candidatesTokenCount": 2,
    "thoughtsTokenCount": 3,
}


def chunk(*parts: Json, finish: str = "", **more: Any) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})], **more}


def call(name: str = "Read", signature: str = "", **args: Any) -> Json:
    part: Json = {"functionCall": {"name": name, "args": args, "id": "g1"}}
    return part | ({"thoughtSignature": signature} if signature else {})


def sse(*chunks: Json) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(item).encode() for item in chunks)


def ready(*messages: Json, options: TranslationOptions | None = None, **fields: Any) -> Exchange:
    """An exchange whose request has been sent."""
    numbers = itertools.count()
    exchange = Exchange(
        anthropic, new_id=lambda: f"{next(numbers):016d}", options=options or TranslationOptions()
    )
    exchange.decode(body(*(messages or (user("q"),)), **fields))
    exchange.encode(MODEL)
    return exchange


def run(exchange: Exchange, *chunks: Json) -> bytes:
    return exchange.open() + exchange.receive(sse(*chunks)) + exchange.finish()


def message(exchange: Exchange, *chunks: Json) -> Json:
    data = run(exchange, *chunks)
    return assembled(data) if exchange.request.stream else dict(json.loads(data))


TEXT = (chunk({"text": "a"}), chunk({"text": "b"}, finish="STOP", usageMetadata=USAGE))
SIGNED_CALL = (chunk(call(signature="c2ln", a=1)), chunk({"text": ""}, finish="STOP", usageMetadata=USAGE))


@pytest.mark.parametrize("stream", [True, False])
class TestAnswers:
    def test_text(self, stream: bool) -> None:
        got = message(ready(stream=stream), *TEXT)
        assert got["content"] == [said("ab")]
        assert got["model"] == "m"
        assert got["id"].startswith("msg_")

    def test_a_call_with_and_without_thinking(self, stream: bool) -> None:
        identity = "toolu_0000000000000001-g1" if stream else "toolu_0000000000000000-g1"
        shown = message(ready(stream=stream, tools=[READ], thinking=THINKING), *SIGNED_CALL)
        carrier = thought("", seal(Signature("c2ln", "gemini-g3"), identity))
        assert shown["content"] == [carrier, used(identity)]
        hidden = message(ready(stream=stream, tools=[READ]), *SIGNED_CALL)
        assert hidden["content"] == [used(identity)]

    def test_summary(self, stream: bool) -> None:
        exchange = ready(stream=stream, tools=[READ])
        message(exchange, *(item | {"modelVersion": "gemini-x", "responseId": "r"} for item in SIGNED_CALL))
        usage = Usage(input_tokens=10, cached_tokens=4, output_tokens=5, thought_tokens=3)
        (call_id,) = exchange.summary.call_ids
        assert call_id.startswith("toolu_")
        assert exchange.summary == ResponseSummary(
            model="gemini-x",
            response_id="r",
            usage=usage,
            calls=["Read"],
            call_ids=[call_id],
            stop="STOP",
        )
        assert exchange.has_content
        assert exchange.failure is None
        assert exchange.finished is not None

    def test_an_upstream_that_does_not_count_leaves_our_estimate(self, stream: bool) -> None:
        exchange = ready(stream=stream)
        assert (
            message(exchange, chunk({"text": "a"}, finish="STOP"))["usage"]["input_tokens"]
            == exchange.estimate()
        )

    def test_the_answer_may_be_a_json_array_or_one_document(self, stream: bool) -> None:
        for data in (json.dumps(TEXT), json.dumps(chunk({"text": "ab"}, finish="STOP", usageMetadata=USAGE))):
            exchange = ready(stream=stream)
            out = exchange.open() + exchange.receive(data.encode()) + exchange.finish()
            got = assembled(out) if stream else json.loads(out)
            assert got["content"] == [said("ab")]


class TestFailures:
    CUT = (chunk({"text": "a"}),)
    BROKEN = (
        chunk({"text": "a"}),
        {"error": {"code": 503, "message": "high demand", "status": "UNAVAILABLE"}},
    )

    @pytest.mark.parametrize(("chunks", "words"), [(CUT, "before its end"), (BROKEN, "high demand")])
    def test_e7_in_a_stream_it_is_an_event(self, chunks: tuple[Json, ...], words: str) -> None:
        exchange = ready(stream=True)
        events = parse(run(exchange, *chunks))
        assert [event["event"] for event in events[-3:]] == [
            "content_block_delta",
            "content_block_stop",
            "error",
        ]
        assert words in events[-1]["data"]["error"]["message"]
        assert exchange.failure is not None
        assert exchange.finished is None

    @pytest.mark.parametrize(("chunks", "words"), [(CUT, "before its end"), (BROKEN, "high demand")])
    def test_e7_in_a_whole_answer_it_is_the_answer(self, chunks: tuple[Json, ...], words: str) -> None:
        got = message(ready(), *chunks)
        assert got["type"] == "error"
        assert words in got["error"]["message"]

    def test_nothing_is_sent_after_a_failure(self) -> None:
        exchange = ready(stream=True)
        exchange.open()
        before = exchange.receive(sse(*self.BROKEN))
        assert b"content_block_delta" in before
        assert exchange.receive(sse(*TEXT)) == b""
        assert exchange.end() == b""

    def test_a_call_that_is_cut_off_is_never_sent(self) -> None:
        exchange = ready(stream=True)
        piece = {"functionCall": {"name": "Read", "willContinue": True}}
        names = [event["event"] for event in parse(run(exchange, chunk(piece)))]
        assert names == ["message_start", "error"]
        assert exchange.summary.calls == []

    def test_d4_a_call_cut_by_the_limit_is_not_taken_for_whole(self) -> None:
        got = message(ready(stream=True), chunk(call(a=1), finish="MAX_TOKENS"))
        assert got["stop_reason"] == "max_tokens"

    def test_fail_before_and_after_the_opening(self) -> None:
        error = UpstreamError("x", kind="timeout")
        exchange = ready(stream=True)
        assert json.loads(exchange.fail(error))["error"]["type"] == "timeout_error"
        exchange.open()
        assert exchange.fail(error).startswith(b"event: error\n")

    def test_arguments_that_are_no_object_are_an_upstream_error(self) -> None:
        exchange = ready(stream=True)
        part = {"functionCall": {"name": "Read", "args": [1]}}
        assert parse(run(exchange, chunk(part, finish="STOP")))[-1]["event"] == "error"
        assert isinstance(exchange.failure, UpstreamError)

    def test_the_order_of_calls_is_kept_to(self) -> None:
        exchange = Exchange(anthropic, new_id=lambda: "x")
        with pytest.raises(RuntimeError):
            exchange.receive(b"")
        with pytest.raises(RuntimeError):
            exchange.finish()

    def test_an_upstream_that_never_ends_is_a_cut_one(self) -> None:
        exchange = Exchange(anthropic, _Silent(), new_id=lambda: "x")  # type: ignore[arg-type]
        exchange.decode(body(user("q")))
        exchange.encode(MODEL)
        assert b"no end" in exchange.finish()

    def test_when_nothing_but_counts_can_follow_it_is_known(self) -> None:
        exchange = Exchange(anthropic, new_id=lambda: "x")
        exchange.decode(body(user("q")))
        exchange.encode(MODEL)
        exchange.receive(sse(chunk({"text": "a"})))
        assert not exchange.has_finish
        exchange.receive(sse(chunk(finish="STOP")))
        assert exchange.has_finish


class _Silent:
    """An upstream that breaks its promise to end a stream."""

    name = "silent"
    has_finish = False

    def __init__(self) -> None:
        self.notes: list[Note] = []

    def ends_with_user(self, target: Target) -> bool:
        return False

    def context_tokens(self, target: Target) -> int:
        return 0

    def encode_request(self, request: Request, target: Target, new_id: object) -> Encoded:
        return Encoded(body=b"{}", notes=(), reader=lambda: self)

    def feed(self, data: bytes) -> list[Event]:
        return []

    def close(self) -> list[Event]:
        return []


class TestAttempts:
    """`encode` again: another attempt knows nothing of the one before."""

    def test_a_failed_attempt_leaves_nothing_behind(self) -> None:
        exchange = ready(tools=[READ], thinking=THINKING)
        exchange.receive(
            sse(chunk({"text": "old"}), chunk(call(signature="b2xk", a="5")), chunk({"text": "more"}))
        )
        exchange.end()
        assert b"before its end" in exchange.finish()
        exchange.encode(MODEL)
        assert (exchange.has_content, exchange.failure, exchange.store_entries) == (False, None, [])
        assert exchange.summary == ResponseSummary()
        assert [note for note in exchange.notes if note.kind == "mended"] == []
        assert message(exchange, *TEXT)["content"] == [said("ab")]

    def test_a11_the_text_of_a_failed_attempt_is_not_in_the_key(self) -> None:
        signed = chunk({"text": "", "thoughtSignature": "c2ln"}, finish="STOP")
        fresh, second = ready(), ready()
        second.receive(sse(chunk({"text": "old"})))
        second.end()
        second.encode(MODEL)
        for exchange in (fresh, second):
            run(exchange, chunk({"text": "new"}), signed)
        assert second.store_entries == fresh.store_entries
        assert len(fresh.store_entries) == 1

    def test_feedback_is_the_last_user_message(self) -> None:
        exchange = ready(user("q"), assistant("a"), user("r"))
        contents = json.loads(exchange.encode(MODEL, feedback="Try again."))["contents"]
        assert contents[-1] == {"role": "user", "parts": [{"text": "Try again."}]}
        assert json.loads(exchange.encode(MODEL))["contents"] == contents[:-1]

    def test_another_model_gets_its_own_request(self) -> None:
        exchange = ready(user("q"), assistant(tool_use()), user(tool_result()))
        assert any(note.kind == "sentinel" for note in exchange.notes)
        assert b"thoughtSignature" not in exchange.encode(Target(model="gemini-2.5-flash"))
        assert not any(note.kind == "sentinel" for note in exchange.notes)


class TestArguments:
    def test_c10_what_is_plainly_meant_is_mended_and_noted(self) -> None:
        exchange = ready(tools=[READ])
        assert message(exchange, chunk(call(a="5"), finish="STOP"))["content"][0]["input"] == {"a": 5}
        assert [note.kind for note in exchange.notes] == ["mended"]

    def test_p2_what_fits_is_not_touched(self) -> None:
        exchange = ready(stream=True, tools=[READ])
        exchange.open()
        raw = b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"Read","args":{ "a" : 1 }}}]}}]}'
        assert rb'"{ \"a\" : 1 }"' in exchange.receive(b"data: " + raw + b"\n\n")

    def test_a_call_of_an_unknown_tool_goes_to_the_client(self) -> None:
        assert (
            message(ready(tools=[READ]), chunk(call("Other", b=1), finish="STOP"))["content"][0]["name"]
            == "Other"
        )

    def test_strict_mode_refuses_and_says_why(self) -> None:
        exchange = ready(tools=[READ], options=TranslationOptions(strict_tool_validation=True))
        got = message(exchange, chunk(call(a="5"), finish="STOP"))
        assert got["type"] == "error"
        assert isinstance(exchange.failure, InvalidArguments)
        assert "Read" in str(exchange.failure)
        assert not exchange.has_content

    def test_strict_mode_sends_nothing_after_a_refused_call(self) -> None:
        exchange = ready(stream=True, tools=[READ], options=TranslationOptions(strict_tool_validation=True))
        exchange.open()
        assert exchange.receive(sse(chunk(call(a="5"), call(a=5), {"text": "x"}))) == b""
        assert isinstance(exchange.failure, InvalidArguments)

    def test_strict_mode_passes_what_fits(self) -> None:
        exchange = ready(tools=[READ], options=TranslationOptions(strict_tool_validation=True))
        assert message(exchange, chunk(call(a=5), finish="STOP"))["content"][0]["input"] == {"a": 5}

    def test_strict_mode_applies_every_rule_of_json_schema(self) -> None:
        tool = {"name": "Read", "input_schema": {"properties": {"a": {"pattern": "^/"}}}}
        exchange = ready(tools=[tool], options=TranslationOptions(strict_tool_validation=True))
        message(exchange, chunk(call(a="x"), finish="STOP"))
        assert 'a: the value does not match "^/"' in str(exchange.failure)

    def test_strict_mode_notes_a_schema_that_it_cannot_use(self) -> None:
        tool = {"name": "Read", "input_schema": {"$ref": "https://example.com/read"}}
        exchange = ready(tools=[tool], options=TranslationOptions(strict_tool_validation=True))
        message(exchange, chunk(call(a="x"), finish="STOP"))
        assert exchange.failure is None
        assert "not validated strictly" in exchange.notes[-1].why

    def test_b7_strict_mode_does_not_blame_the_model_for_our_placeholder(self) -> None:
        strict = TranslationOptions(strict_tool_validation=True)
        tool = {"name": "Read", "input_schema": {"type": "object", "additionalProperties": False}}
        exchange = ready(tools=[tool], options=strict)
        got = message(exchange, chunk(call(dragoman_unused=None), finish="STOP"))
        assert got["content"][0]["input"] == {}

    def test_disable_parallel_tool_use_gives_one_call(self) -> None:
        choice = {"type": "auto", "disable_parallel_tool_use": True}
        exchange = ready(tools=[READ], tool_choice=choice)
        got = message(exchange, chunk(call(a=1), call(a=2), finish="STOP"))
        assert [block["input"] for block in got["content"]] == [{"a": 1}]
        assert [note.kind for note in exchange.notes] == ["moved", "dropped"]


def test_tool_calling_can_be_switched_off() -> None:
    off = TranslationOptions(enable_tool_calling=False)
    exchange = ready(tools=[READ], tool_choice={"type": "tool", "name": "Read"}, options=off)
    assert exchange.request.tools == ()
    assert [(note.kind, note.where) for note in exchange.notes] == [("dropped", "tools")]
    assert "toolConfig" not in json.loads(exchange.encode(MODEL))
    assert ready(options=off).notes == ()


def test_a_whole_answer_has_no_first_bytes_and_no_ping() -> None:
    exchange = ready()
    assert (exchange.open(), exchange.ping(), exchange.receive(sse(*TEXT)), exchange.end()) == (
        b"",
        b"",
        b"",
        b"",
    )
    assert json.loads(exchange.finish())["content"] == [said("ab")]


def test_e4_a_stream_can_ping_from_its_opening_on() -> None:
    exchange = ready(stream=True)
    assert exchange.ping() == b""
    assert exchange.open().startswith(b"event: message_start")
    assert exchange.ping().startswith(b"event: ping")


def test_h3_counting_takes_the_same_way() -> None:
    given = (user("q"), assistant(tool_use()))
    exchange = ready(*given, system="s", tools=[READ])
    counted = json.loads(exchange.encode_count(MODEL))["generateContentRequest"]
    sent = json.loads(exchange.encode(MODEL))
    assert counted["contents"] == sent["contents"]
    assert counted["tools"] == sent["tools"]
    assert counted["systemInstruction"] == sent["systemInstruction"]
    assert exchange.estimate() > ready(*given).estimate()


def test_the_session_and_the_headers_are_read() -> None:
    exchange = Exchange(anthropic, gemini, new_id=lambda: "x")
    assert exchange.decode(body(user("q")), {"x-claude-code-session-id": "s"}).session == "s"


def test_c4_a_request_of_nothing_is_refused_when_it_is_encoded() -> None:
    with pytest.raises(InvalidRequest) as caught:
        ready(user(""), assistant(""))
    assert caught.value.where == "messages"


def test_j4_a_file_at_an_address_may_be_put_in_its_place() -> None:
    exchange = ready(user({"type": "image", "source": {"type": "url", "url": "http://x/a.png"}}))
    assert b"fileData" in exchange.encode(MODEL)
    here = Message(role="user", parts=(Media(mime="image/png", data="aGk="),))
    note = Note("dropped", "messages", "another file")
    exchange.replace_messages((here,), (note,))
    assert b'"inlineData":{"mimeType":"image/png","data":"aGk="}' in exchange.encode(MODEL)
    assert note in exchange.notes


def test_a_note_alone_changes_no_message_and_no_missing_keys() -> None:
    exchange = ready(user("q"), assistant(tool_use()), user(tool_result("a")), tools=[READ])
    before, wanted = exchange.encode(MODEL), exchange.missing_keys
    note = Note("moved", "model", "another one answers")
    exchange.replace_messages(exchange.request.messages, (note,))
    assert exchange.missing_keys is wanted
    assert exchange.encode(MODEL) == before
    assert note in exchange.notes


def test_notes_of_all_stages_are_collected() -> None:
    exchange = ready(user("q", {"type": "container_upload"}), assistant(tool_use()), tools=[READ])
    run(exchange, chunk(call(a="5"), finish="STOP"))
    assert [note.kind for note in exchange.notes] == ["dropped", "repaired", "sentinel", "mended"]


def test_a_server_tool_block_that_is_nested_too_deep_does_not_end_the_session() -> None:
    nested = "[" * 600 + "]" * 600
    body = (
        '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":'
        '[{"type":"web_search_tool_result","tool_use_id":"s1","content":' + nested + "}]}"
        ',{"role":"user","content":"go on"}]}'
    )
    exchange = Exchange(anthropic, new_id=lambda: "0" * 16)
    exchange.decode(body.encode())
    assert "(nested too deeply to be shown)" in exchange.encode(MODEL).decode()


def test_a_file_made_by_the_model_is_dropped_with_a_note() -> None:
    exchange = ready()
    message(
        exchange,
        chunk({"inlineData": {"mimeType": "image/png", "data": "eA=="}}, {"text": "a"}, finish="STOP"),
    )
    assert [(note.kind, note.where) for note in exchange.notes] == [("dropped", "answer")]
