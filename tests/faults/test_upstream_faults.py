"""Google fails in every way it does; the client gets the answer, or the truth."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.gateway.response_writer import ResponseWriter
from tests.faults.harness import (
    EMPTY,
    HELLO,
    MALFORMED,
    FakeGoogle,
    answers,
    chunk,
    events_of,
    gateway,
    refuses,
    silence,
    streams,
    text_of,
    types_of,
)
from tests.record_collector import RecordCollector

RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.01s"}
PER_DAY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "RequestsPerDay"}],
}
GOOD = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
]


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(refuses(503), id="503"),
        pytest.param(refuses(500), id="500"),
        pytest.param(refuses(429, "slow down", RETRY_INFO), id="429"),
        pytest.param(streams(cut=True), id="cut before the first byte"),
        pytest.param(streams(chunk(), cut=True), id="cut before any content"),
        pytest.param(streams(chunk()), id="no finish reason"),
        pytest.param(streams(MALFORMED), id="malformed call"),
        pytest.param(streams(EMPTY), id="empty stop"),
        pytest.param(
            streams(b'data: {"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}\r\n\r\n'),
            id="error chunk",
        ),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_bad_luck_before_the_first_content_byte_is_tried_again(trouble: Any, stream: bool) -> None:
    google = FakeGoogle(trouble, streams(HELLO) if stream else _whole("Hello"))
    async with gateway(google) as running:
        response = await running.messages(stream=stream)
        assert response.status == 200
        if stream:
            events = await events_of(response)
            assert (types_of(events), text_of(events)) == (GOOD, "Hello")
        else:
            assert (await response.json())["content"] == [{"type": "text", "text": "Hello"}]
    assert len(google.arrived) == 2


def _whole(text: str) -> Any:
    return answers({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]})


@pytest.mark.parametrize("stream", [True, False])
async def test_l3_a_daily_quota_is_not_tried_again(stream: bool) -> None:
    google = FakeGoogle(refuses(429, "quota", PER_DAY))
    async with gateway(google) as running:
        response = await running.messages(stream=stream)
        body = await response.json()
    assert (response.status, body["error"]["type"]) == (429, "rate_limit_error")
    assert response.headers["x-should-retry"] == "false"
    assert len(google.arrived) == 1


async def test_l2_the_attempts_of_one_request_are_bounded() -> None:
    google = FakeGoogle(refuses(503, "overloaded"))
    async with gateway(google) as running:
        events = await events_of(await running.messages())
    assert events[-1]["error"] == {"type": "overloaded_error", "message": "overloaded"}
    assert len(google.arrived) == 3


async def test_a_refused_request_is_an_honest_status_and_not_tried_again() -> None:
    google = FakeGoogle(refuses(400, "The temperature is wrong"))
    async with gateway(google) as running:
        response = await running.messages()
        assert response.status == 400
        assert (await response.json())["error"]["message"] == "The temperature is wrong"
    assert len(google.arrived) == 1


async def test_h4_overflow_is_said_in_the_words_that_make_clients_compact() -> None:
    text = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    async with gateway(FakeGoogle(refuses(400, text))) as running:
        response = await running.messages()
        assert response.status == 400
        assert (await response.json())["error"] == {
            "type": "invalid_request_error",
            "message": "prompt is too long: 1200000 tokens > 1048576 maximum",
        }


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param(streams(chunk({"text": "par"}), cut=True), id="cut"),
        pytest.param(streams(chunk({"text": "par"})), id="no finish reason"),
        pytest.param(streams(chunk({"text": "par"}), MALFORMED), id="malformed"),
        pytest.param(
            streams(chunk({"text": "par"}), b'data: {"error":{"code":500,"message":"x"}}\r\n\r\n'),
            id="error chunk",
        ),
        pytest.param(streams(chunk({"text": "par"}), b"data: {broken\r\n\r\n"), id="garbage"),
    ],
)
async def test_e7_a_failure_after_content_is_an_error_event_never_a_clean_stop(ending: Any) -> None:
    google = FakeGoogle(ending)
    async with gateway(google) as running:
        events = await events_of(await running.messages())
    assert types_of(events) == [*GOOD[:4], "error"]
    assert len(google.arrived) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_e7_what_is_lost_behind_the_finish_reason_costs_no_answer(stream: bool) -> None:
    """The connection breaks where only HTTP's own end is missing."""
    google = FakeGoogle(streams(HELLO, cut=True)) if stream else FakeGoogle(_cut_whole, _whole("Hello"))
    async with gateway(google) as running:
        response = await running.messages(stream=stream)
        if stream:
            events = await events_of(response)
            assert (types_of(events), text_of(events)) == (GOOD, "Hello")
        else:
            assert (await response.json())["content"] == [{"type": "text", "text": "Hello"}]
    assert len(google.arrived) == (1 if stream else 2)


async def _cut_whole(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{")
    await writer.drain()
    writer.close()


@pytest.mark.parametrize("stream", [True, False])
async def test_e7_a_compressed_answer_that_is_cut_is_not_taken_for_whole(stream: bool) -> None:
    text = random.Random(1).randbytes(2_000).hex()
    body = {"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]}
    raw = chunk({"text": text}, finish="STOP") if stream else json.dumps(body).encode()
    packed = gzip.compress(raw)[:-100]

    async def cut(writer: asyncio.StreamWriter) -> None:
        kind = b"text/event-stream" if stream else b"application/json"
        head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % (kind, len(packed)) + packed)

    google = FakeGoogle(cut, streams(HELLO) if stream else _whole("Hello"))
    async with gateway(google) as running:
        response = await running.messages(stream=stream)
        assert b"Hello" in await response.read()
    assert len(google.arrived) == 2


async def test_e5_an_end_that_never_comes_is_not_waited_for_like_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.upstream.client._TRAILING_TIMEOUT_S", 0.2)

    async def stays_open(writer: asyncio.StreamWriter) -> None:
        await streams(HELLO, cut=False)(NoEnd(writer))  # type: ignore[arg-type]
        await asyncio.sleep(3600)

    google = FakeGoogle(stays_open)
    async with gateway(google) as running:  # whose idle time-out is five minutes
        events = await events_of(await running.messages())
    assert (types_of(events), text_of(events)) == (GOOD, "Hello")


class NoEnd:
    """A connection on which HTTP's last chunk is lost."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.drain = writer.drain

    def write(self, data: bytes) -> None:
        if data != b"0\r\n\r\n":
            self._writer.write(data)


async def test_e5_a_whole_answer_that_stops_in_the_middle_is_not_waited_for_an_hour() -> None:
    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{")
        await asyncio.sleep(3600)

    async with gateway(FakeGoogle(half), upstream={"idle_timeout_s": 0.4}) as running:
        response = await running.messages(stream=False)
    assert response.status == 504


async def test_d2_the_second_attempt_tells_the_model_what_was_wrong() -> None:
    google = FakeGoogle(streams(MALFORMED), streams(HELLO))
    async with gateway(google) as running:
        await events_of(await running.messages())
    assert "not a valid function call" in json.dumps(google.arrived[1].body["contents"][-1])


async def test_d5_an_answer_that_stays_empty_is_an_error() -> None:
    async with gateway(FakeGoogle(streams(EMPTY))) as running:
        response = await running.messages()
        assert response.status == 529
        assert (await response.json())["error"]["message"] == "the model gave an empty answer"


async def test_strict_mode_makes_the_model_correct_its_arguments() -> None:
    bad = chunk({"functionCall": {"name": "get_weather", "args": {"city": 5}}}, finish="STOP")
    good = chunk({"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}}, finish="STOP")
    google = FakeGoogle(streams(bad), streams(good))
    async with gateway(google, strict_tool_validation=True) as running:
        events = await events_of(await running.messages())
    assert [e["delta"]["partial_json"] for e in events if e["type"] == "content_block_delta"] == [
        '{"city": "Oslo"}'
    ]
    assert "do not fit its schema" in json.dumps(google.arrived[1].body["contents"][-1])


async def test_b_a_refusal_of_the_json_schema_form_is_answered_with_the_older_one() -> None:
    google = FakeGoogle(refuses(400, "parameters_json_schema: unsupported"), streams(HELLO))
    async with gateway(google) as running:
        assert text_of(await events_of(await running.messages())) == "Hello"
    first, second = (arrived.body["tools"][0]["functionDeclarations"][0] for arrived in google.arrived)
    assert "parametersJsonSchema" in first
    assert second["parameters"] == {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}


async def test_e4_the_stream_opens_and_stays_alive_while_gemini_thinks() -> None:
    async with gateway(FakeGoogle(silence), server={"ping_s": 0.05}) as running:
        response = await running.messages()
        seen = b""
        while seen.count(b"event: ping") < 3:
            seen += await response.content.readany()
        assert seen.startswith(b"event: message_start")
        response.close()


async def test_e5_pings_do_not_hide_a_dead_upstream() -> None:
    limits = {"idle_timeout_s": 1.0, "max_attempts": 1}
    async with gateway(FakeGoogle(silence), server={"ping_s": 0.05}, upstream=limits) as running:
        events = await events_of(await running.messages())
    assert events[-1]["error"]["type"] == "timeout_error"


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(silence, id="before the first token"),
        pytest.param(streams(chunk({"text": "a"}), pause_s=60), id="mid-stream"),
    ],
)
async def test_e12_a_client_that_leaves_cancels_the_upstream_call(act: Any) -> None:
    google = FakeGoogle(act)
    async with gateway(google) as running:
        response = await running.messages()
        await response.content.readany()
        response.close()
        await asyncio.wait_for(google.hung_up.wait(), 10)
        while running.app.running:
            await asyncio.sleep(0.01)
    assert len(google.arrived) == 1


async def test_a_slow_reader_holds_the_upstream_back_instead_of_filling_memory() -> None:
    sent = 0
    piece = chunk({"text": "x" * 65_536})

    async def flood(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for _ in range(2_000):
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            sent += len(piece)
        writer.write(b"0\r\n\r\n")

    async with gateway(FakeGoogle(flood)) as running:
        response = await running.messages()
        before = -1
        while sent != before or not sent:  # until nothing moves any more
            before = sent
            await asyncio.sleep(0.5)
        assert sent < 40 * 1024 * 1024
        response.close()


async def test_a_stuck_reader_is_not_pinged_over_and_over() -> None:
    """Pings behind bytes that nobody takes would only pile up."""
    piece = chunk({"text": "x" * 1_000_000})
    async with gateway(FakeGoogle(streams(*[piece] * 40)), server={"ping_s": 0.02}) as running:
        response = await running.messages()
        await asyncio.sleep(0.5)
        waiting = [task for task in asyncio.all_tasks() if "_write_tick" in repr(task)]
        assert len(waiting) <= 1
        response.close()


async def test_credentials_that_fail_late_are_told_inside_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow_refusal(*_args: Any) -> dict[str, str]:
        await asyncio.sleep(0.6)
        raise ConfigError("Google's default credentials do not work", kind="permission")

    monkeypatch.setattr("dragoman.gateway.context.Gateway.auth_headers", slow_refusal)
    async with gateway(FakeGoogle(silence)) as running:
        events = await events_of(await running.messages())
    assert types_of(events) == ["message_start", "error"]
    assert events[-1]["error"]["type"] == "permission_error"


async def test_a_slow_reader_is_not_taken_for_a_silent_google() -> None:
    pieces = [chunk({"text": f"{number} "}) for number in range(20)]
    google = FakeGoogle(streams(*pieces, chunk({"text": "end"}, finish="STOP")))
    async with gateway(google, upstream={"idle_timeout_s": 0.4}) as running:
        held = asyncio.Event()
        write = ResponseWriter.write

        async def slow_write(self: ResponseWriter, data: bytes) -> None:
            if not held.is_set():
                held.set()
                await asyncio.sleep(1.5)
            await write(self, data)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ResponseWriter, "write", slow_write)
            events = await events_of(await running.messages())
    assert types_of(events)[-1] == "message_stop"
    assert text_of(events).endswith("19 end")


@pytest.mark.parametrize("raw", ["OTHER", "NO_IMAGE", "SOMETHING_NEW"])
async def test_d1_an_aborted_or_empty_answer_is_no_clean_stop(raw: str) -> None:
    google = FakeGoogle(streams(chunk(finish=raw)))
    async with gateway(google) as running:
        response = await running.messages()
        assert response.status == 529
    assert len(google.arrived) == 3


@pytest.mark.parametrize("stream", [True, False])
async def test_d5_thoughts_alone_are_no_answer(stream: bool) -> None:
    thought = {"text": "hmm", "thought": True}
    body = {"candidates": [{"content": {"parts": [thought]}, "finishReason": "STOP"}]}
    first = streams(chunk(thought, finish="STOP")) if stream else answers(body)
    google = FakeGoogle(first, streams(HELLO) if stream else _whole("Hello"))
    async with gateway(google) as running:
        response = await running.messages(stream=stream)
        assert b"Hello" in await response.read()
    assert len(google.arrived) == 2


async def test_a_client_that_has_seen_a_thought_gets_no_second_answer_behind_it() -> None:
    google = FakeGoogle(streams(chunk({"text": "hmm", "thought": True}), cut=True), streams(HELLO))
    async with gateway(google) as running:
        events = await events_of(await running.messages(thinking={"type": "adaptive"}))
    assert types_of(events)[-1] == "error"
    assert len(google.arrived) == 1


HISTORY = [
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "get_weather", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "rain"}]},
]


@pytest.mark.parametrize(
    ("complaint", "changed"),
    [
        ("Corrupted thought signature.", lambda body: "skip_thought" in json.dumps(body["contents"])),
        (
            "Thinking level HIGH is not supported for this model.",
            lambda body: "thinkingConfig" not in body["generationConfig"],
        ),
        (
            "Please ensure that the number of function response parts is equal to the number of function call parts",
            lambda body: (
                "functionCall" not in json.dumps(body["contents"]) and "rain" in json.dumps(body["contents"])
            ),
        ),
        (
            "Unknown name \"thinkingLevel\" at 'generation_config.thinking_config': Cannot find field.",
            lambda body: "thinkingLevel" not in json.dumps(body["generationConfig"]),
        ),
    ],
)
async def test_a12_i2_a_refusal_that_another_form_cures_is_cured_once(complaint: str, changed: Any) -> None:
    google = FakeGoogle(refuses(400, complaint), streams(HELLO))
    async with gateway(google) as running:
        response = await running.messages(messages=HISTORY, output_config={"effort": "high"})
        assert text_of(await events_of(response)) == "Hello"
    assert changed(google.arrived[1].body)
    google = FakeGoogle(refuses(400, complaint))
    async with gateway(google) as running:
        assert (await running.messages(messages=HISTORY)).status == 400
    assert len(google.arrived) == 2


async def test_b12_rules_that_are_too_much_for_google_move_into_the_descriptions() -> None:
    states = refuses(400, "The specified schema produces a constraint that has too many states for serving.")
    google = FakeGoogle(states, streams(HELLO))
    city = {"type": "string", "pattern": "^[A-Z]", "maxLength": 80}
    tools = [{"name": "look", "input_schema": {"type": "object", "properties": {"city": city}}}]
    async with gateway(google) as running:
        await events_of(await running.messages(tools=tools))
    (first, second) = (
        arrived.body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["properties"]["city"]
        for arrived in google.arrived
    )
    assert first["maxLength"] == 80
    assert second["type"] == "string"
    assert "maxLength" not in second
    assert "At most 80 characters." in second["description"]


async def test_c11_an_opaque_refusal_gets_our_own_diagnosis() -> None:
    google = FakeGoogle(refuses(400, "Request contains an invalid argument."))
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "%%%"}}
    async with gateway(google) as running:
        response = await running.messages(messages=[{"role": "user", "content": "hi"}])
        plain = (await response.json())["error"]["message"]
        response = await running.messages(messages=[{"role": "user", "content": [picture]}])
        told = (await response.json())["error"]["message"]
    assert plain == "Request contains an invalid argument. Dragoman's own check finds nothing wrong with it"
    assert "Dragoman's own check says: Invalid value at" in told


async def test_l8_a_word_in_a_refusal_does_not_change_the_form_for_everybody() -> None:
    google = FakeGoogle(refuses(400, "Unknown name \"schema\" at 'contents[0]'"), streams(HELLO))
    async with gateway(google) as running:
        assert (await running.messages()).status == 400
        await events_of(await running.messages())
    declared = google.arrived[1].body["tools"][0]["functionDeclarations"][0]
    assert "parametersJsonSchema" in declared


async def test_e5_a_silence_that_was_waited_for_is_not_waited_for_again() -> None:
    google = FakeGoogle(silence)
    async with gateway(google, upstream={"idle_timeout_s": 0.6}) as running:
        events = await events_of(await running.messages())
    assert events[-1]["error"]["type"] == "timeout_error"
    assert len(google.arrived) == 1


async def test_h3_a_count_that_google_does_not_give_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.handlers.generate._COUNT_TIMEOUT_S", 0.2)
    async with gateway(FakeGoogle(silence)) as running:
        body = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "x" * 400}]}
        response = await running.post("/v1/messages/count_tokens", **body)
        assert response.headers["x-dragoman-count"] == "estimate"
        assert (await response.json())["input_tokens"] >= 100


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("complaint", "how"),
    [
        ("Corrupted thought signature.", "without the signatures"),
        ("Thinking level HIGH is not supported for this model.", "thinking that is the model's own"),
        (
            "Please ensure that the number of function response parts is equal to the number of function call parts",
            "told as text",
        ),
        (
            "Unknown name \"thinkingLevel\" at 'generation_config.thinking_config': Cannot find field.",
            "does not know",
        ),
        (
            "The specified schema produces a constraint that has too many states for serving.",
            "fewer rules in the schemas",
        ),
    ],
)
async def test_l8_every_cure_is_noted_and_the_client_is_told_how_many_notes_there_are(
    complaint: str, how: str, stream: bool
) -> None:
    ear = RecordCollector()

    def good() -> Any:
        return streams(HELLO) if stream else _whole("Hello")

    city = {"type": "string", "pattern": "^[A-Z]", "maxLength": 80}
    tools = [{"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": city}}}]
    ask: dict[str, Any] = {"messages": HISTORY, "tools": tools, "output_config": {"effort": "high"}}
    headers: list[int] = []
    async with gateway(FakeGoogle(good(), refuses(400, complaint), good())) as running:
        running.app.gateway.observer_hub.observers = (ear,)
        for _ in range(2):
            response = await running.messages(stream=stream, **ask)
            assert b"Hello" in await response.read()
            headers.append(int(response.headers["x-dragoman-notes"]))
    plain, healed = ([note.why for note in record.notes] for record in ear.records)
    assert [why for why in healed if how in why and "Google refused" in why]
    assert not [why for why in plain if "Google refused" in why]
    assert headers == [len(plain), len(healed)]


@pytest.mark.parametrize("stream", [True, False])
async def test_l5_a_google_that_is_slow_to_refuse_gets_no_more_time_than_one_request_has(
    stream: bool,
) -> None:
    """Its refusal takes most of the time there is: the wait for another attempt would take the rest."""

    async def refuse_late(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.7)
        await refuses(503)(writer)

    google = FakeGoogle(*[refuse_late] * 5)
    async with gateway(google, upstream={"total_timeout_s": 1.0, "max_attempts": 5}) as running:
        response = await running.messages(stream=stream)
        if response.status == 200:
            assert types_of(await events_of(response))[-1] == "error"
        else:
            assert response.status == 529
    assert len(google.arrived) == 1


async def test_l5_a_second_attempt_has_what_the_first_one_left() -> None:
    """A silence that comes second ends when the whole time does, not when its own would."""

    async def cut_late(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        writer.close()

    google = FakeGoogle(cut_late, silence)
    async with gateway(google, upstream={"total_timeout_s": 1.5}) as running:
        asked_s: list[float] = []
        post = running.app.gateway.client.post

        def watched(*args: Any, **how: Any) -> Any:
            asked_s.append(how["within_s"])
            return post(*args, **how)

        running.app.gateway.client.post = watched  # type: ignore[method-assign]
        response = await running.messages(stream=False)
        assert response.status == 504
    first_s, second_s = asked_s
    assert second_s <= first_s - 0.3
