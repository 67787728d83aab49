"""Every fault, on every framing and both back ends: exactly what Google, or a broken network, would send."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from dragoman.emulator.faults import FAULTS, FaultDirector, ScheduledFault, make_fault, parse_fault
from dragoman.emulator.faults.kinds import FINISHES
from dragoman.emulator.http_messages import CloseConnection, HttpResponse, RefuseConnections, Wait
from dragoman.emulator.service import EmulatorService
from dragoman.errors import ConfigError
from tests.unit.emulator.builders import (
    MODEL,
    OLD_MODEL,
    STUDIO,
    VERTEX,
    Json,
    declare,
    hello,
    parts,
    send,
    talk,
    text,
    user,
)

LONG = talk(user("say " + "word " * 40))
CALLING = talk(user("say on my way then use f with {}"), tools=declare("f"))
FRAMINGS: dict[str, dict[str, Any]] = {
    "whole": {"method": "generateContent"},
    "sse": {"method": "streamGenerateContent", "alt": "sse"},
    "array": {"method": "streamGenerateContent"},
}


def faulty(name: str, framing: str = "whole", body: Any = LONG, **options: Any) -> HttpResponse:
    director = FaultDirector(plan=[ScheduledFault(fault=parse_fault(name))])
    return send(body, service=EmulatorService("test", director), **{**FRAMINGS[framing], **options})


def chunks(answer: HttpResponse) -> list[Json]:
    """What a client decodes of a stream."""
    if answer.content_type.startswith("text/event-stream"):
        return [json.loads(piece.removeprefix(b"data: ")) for piece in answer.body_writes]
    decoded = json.loads(answer.body)
    return decoded if isinstance(decoded, list) else [decoded]


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_changes_every_kind_of_answer(name: str, framing: str) -> None:
    for path, body, model in itertools.product((STUDIO, VERTEX), (LONG, CALLING), (MODEL, OLD_MODEL)):
        plain = send(body, path=path, model=model, **FRAMINGS[framing])
        answer = faulty(name, framing, body, path=path, model=model)
        assert (answer.status, answer.actions_before_head, answer.actions, answer.content_type) != (
            plain.status,
            plain.actions_before_head,
            plain.actions,
            plain.content_type,
        )
        assert answer.status in (200, 400, 401, 403, 429, 500, 502, 503, 504)


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_the_answer_reach_counting_and_faults_of_the_model_do_not(name: str) -> None:
    plain = send(hello(), method="countTokens")
    director = FaultDirector(plan=[ScheduledFault(fault=make_fault(name))])
    answer = send(hello(), method="countTokens", service=EmulatorService("test", director))
    assert (answer == plain) == (make_fault(name).change_chunks is not None)


ODD: tuple[list[Json], ...] = (
    [],
    [{}],
    [{"error": {"code": 500}}],
    [{"candidates": [{}]}],
    [{"promptFeedback": {}}, {"candidates": []}],
)


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_the_model_take_whatever_a_script_wrote(name: str) -> None:
    change = make_fault(name).change_chunks
    for written in ODD if change else ():
        assert change is not None
        json.dumps(change(list(written)))


def test_the_table_says_what_each_fault_is() -> None:
    for name, kind in FAULTS.items():
        assert kind.name == name == make_fault(name).name
        assert kind.help
        assert (kind.default > 0) == bool(kind.unit)
        fault = kind.make(kind.default)
        assert fault.change_chunks or fault.change_response


ERRORS = {
    "quota_minute=7.5": (429, "RESOURCE_EXHAUSTED"),
    "quota_day": (429, "RESOURCE_EXHAUSTED"),
    "quota_zero": (429, "RESOURCE_EXHAUSTED"),
    "overloaded": (503, "UNAVAILABLE"),
    "internal": (500, "INTERNAL"),
    "deadline": (504, "DEADLINE_EXCEEDED"),
    "bad_key": (400, "INVALID_ARGUMENT"),
    "no_key": (403, "PERMISSION_DENIED"),
    "wrong_token": (401, "UNAUTHENTICATED"),
    "location": (400, "FAILED_PRECONDITION"),
}


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_before_the_first_byte_is_an_object_or_in_a_list_for_the_array_form(
    name: str, framing: str
) -> None:
    answer = faulty(name, framing)
    body = json.loads(answer.body)
    error = body[0]["error"] if framing == "array" else body["error"]
    assert (answer.status, answer.streamed) == (ERRORS[name][0], False)
    assert (error["code"], error["status"]) == ERRORS[name]
    assert answer.content_type.startswith("application/json")


def details(name: str) -> tuple[str, dict[str, Json]]:
    error = json.loads(faulty(name).body)["error"]
    found = {entry["@type"].rpartition(".")[2]: entry for entry in error.get("details", [])}
    return error["message"], found


def test_l2_a_minute_quota_says_when_to_come_back_in_all_the_places_clients_look() -> None:
    message, found = details("quota_minute=7.5")
    assert message.startswith("You exceeded your current quota, ")
    assert "limit: 20, model: gemini-3.8-flash" in message
    assert message.endswith("\nPlease retry in 7.5s.")
    assert found["RetryInfo"]["retryDelay"] == "7.5s"
    (violation,) = found["QuotaFailure"]["violations"]
    assert "PerMinute" in violation["quotaId"]
    assert violation["quotaValue"] == "20"
    assert found["Help"]["links"]
    assert not [name for name, _ in faulty("quota_minute").headers if name.lower() == "retry-after"]


@pytest.mark.parametrize(("name", "limit"), [("quota_day", "250"), ("quota_zero", "0")])
def test_l3_a_quota_that_waiting_does_not_cure_gives_no_time(name: str, limit: str) -> None:
    message, found = details(name)
    assert "retry in" not in message
    assert f"limit: {limit}, " in message
    assert "RetryInfo" not in found
    assert "PerDay" in found["QuotaFailure"]["violations"][0]["quotaId"]


def test_keys_and_tokens_have_their_reasons() -> None:
    assert details("bad_key")[1]["ErrorInfo"]["reason"] == "API_KEY_INVALID"
    assert details("wrong_token")[1]["ErrorInfo"]["reason"] == "ACCESS_TOKEN_TYPE_UNSUPPORTED"
    assert "unregistered callers" in details("no_key")[0]


def test_vertex_has_few_words_and_the_label_of_a_stream() -> None:
    answer = faulty("quota_minute", "sse", path=VERTEX)
    assert answer.content_type == "text/event-stream"
    assert json.loads(answer.body) == {
        "error": {
            "code": 429,
            "message": "Resource exhausted. Please try again later.",
            "status": "RESOURCE_EXHAUSTED",
        }
    }
    assert faulty("overloaded", "whole", path=VERTEX).content_type.startswith("application/json")


def test_a_load_balancer_answers_with_a_page() -> None:
    answer = faulty("unavailable_page", "sse")
    assert (answer.status, answer.content_type) == (502, "text/html; charset=UTF-8")
    assert answer.body.startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize("framing", FRAMINGS)
def test_no_finish_is_all_of_the_text_and_no_end(framing: str) -> None:
    found = chunks(faulty("no_finish", framing))
    assert all("finishReason" not in chunk["candidates"][0] for chunk in found)
    assert "".join(map(text, found)) == ("word " * 40).strip()


@pytest.mark.parametrize("framing", ["sse", "array"])
def test_an_error_in_the_stream_comes_after_the_first_content(framing: str) -> None:
    first, error = chunks(faulty("stream_error", framing))
    assert text(first)
    assert error["error"]["status"] == "UNAVAILABLE"
    assert faulty("stream_error", framing).status == 200
    assert faulty("stream_error", "whole").status == 503


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize(
    ("name", "reason", "explained"),
    [
        ("malformed_call", "MALFORMED_FUNCTION_CALL", True),
        ("unexpected_call", "UNEXPECTED_TOOL_CALL", True),
        ("empty_stop", "STOP", False),
    ],
)
def test_d2_a_spoilt_answer_has_no_parts(name: str, reason: str, explained: bool, framing: str) -> None:
    (chunk,) = chunks(faulty(name, framing, CALLING))
    candidate = chunk["candidates"][0]
    assert (candidate["content"], candidate["finishReason"]) == ({}, reason)
    assert ("finishMessage" in candidate) == explained
    usage = chunk["usageMetadata"]
    assert "candidatesTokenCount" not in usage
    assert usage["totalTokenCount"] == usage["promptTokenCount"]


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_blocked_prompt_has_no_candidates(framing: str) -> None:
    (chunk,) = chunks(faulty("prompt_block", framing))
    assert "candidates" not in chunk
    assert chunk["promptFeedback"] == {"blockReason": "PROHIBITED_CONTENT"}
    assert chunk["usageMetadata"]["promptTokenCount"] > 0
    (chunk,) = chunks(faulty("prompt_block", framing, path=VERTEX))
    assert chunk["promptFeedback"]["blockReasonMessage"]


REASONS = """
MAX_TOKENS SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT
IMAGE_RECITATION ESCALATION MODEL_ARMOR MALFORMED_RESPONSE TOO_MANY_TOOL_CALLS MISSING_THOUGHT_SIGNATURE
CONTINUATION NO_IMAGE IMAGE_OTHER OTHER FINISH_REASON_UNSPECIFIED
"""


def test_every_finish_reason_of_the_contract_has_a_fault() -> None:
    assert sorted(finish.reason for finish in FINISHES) == sorted(REASONS.split())
    assert {finish.name for finish in FINISHES} <= set(FAULTS)
    assert {"finish_max_tokens", "finish_safety", "finish_unspecified"} <= set(FAULTS)


@pytest.mark.parametrize("finish", FINISHES, ids=lambda finish: finish.reason)
@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_finish_reason_ends_what_was_said_so_far(finish: Any, framing: str) -> None:
    found = chunks(faulty(finish.name, framing))
    last = found[-1]["candidates"][0]
    assert last["finishReason"] == finish.reason
    said = "".join(map(text, found))
    whole_text = ("word " * 40).strip()
    kept = finish.partial and not (finish.voids and framing == "whole")
    assert bool(said) == kept
    assert whole_text.startswith(said)
    assert said != whole_text


def test_a_cut_off_answer_keeps_no_call() -> None:
    for framing in FRAMINGS:
        found = chunks(faulty("finish_max_tokens", framing, CALLING))
        assert not [part for chunk in found for part in parts(chunk) if "functionCall" in part]
    mixed: Json = {"candidates": [{"content": {"parts": [{"text": "a"}, {"functionCall": {"name": "f"}}]}}]}
    change = make_fault("finish_max_tokens").change_chunks
    assert change is not None
    assert [chunk["candidates"][0]["content"] for chunk in change([mixed])] == [{}]


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_giant_chunk_is_as_big_as_asked(framing: str) -> None:
    found = chunks(faulty("giant_chunk=50000", framing))
    assert "".join(map(text, found)).startswith("x" * 50_000 + "word")
    assert max(len(piece) for piece in faulty("giant_chunk=50000", framing).body_writes) > 50_000


def test_slowness_is_where_it_is_said_to_be() -> None:
    plain = send(LONG, **FRAMINGS["sse"])
    late = faulty("slow_first_byte=3", "sse")
    assert (late.actions_before_head, late.actions) == ((Wait(3),), plain.actions)
    slow = faulty("slow_stream=0.25", "sse")
    assert slow.actions[1::2] == (Wait(0.25),) * (len(plain.actions) - 1)
    assert slow.actions[0::2] == plain.actions
    silent = faulty("silence=9", "sse")
    place = silent.actions.index(Wait(9))
    assert 0 < place < len(silent.actions) - 1
    assert silent.body == plain.body
    for name in ("slow_stream=1", "silence=1"):
        first, wait, second = faulty(name, "whole").actions
        assert isinstance(wait, Wait)
        assert isinstance(first, bytes)
        assert isinstance(second, bytes)


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("count", [0, 1, 200, 700, 10**6])
@pytest.mark.parametrize(
    ("name", "cut"), [("cut_after", CloseConnection()), ("reset_after", CloseConnection(reset=True))]
)
def test_a_cut_is_after_exactly_so_many_bytes(
    name: str, cut: CloseConnection, count: int, framing: str
) -> None:
    plain = send(LONG, **FRAMINGS[framing])
    answer = faulty(f"{name}={count}", framing)
    assert answer.body == plain.body[:count]
    assert cut in answer.actions
    assert answer.content_length > len(answer.body)
    assert answer.content_length == max(plain.content_length, len(plain.body) + (count >= len(plain.body)))


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_cut_behind_the_last_byte_is_still_a_cut(framing: str) -> None:
    plain = send(LONG, **FRAMINGS[framing])
    answer = faulty(f"cut_after={len(plain.body)}", framing)
    assert answer.actions == (*plain.actions, CloseConnection())
    assert answer.content_length == plain.content_length + 1


def test_connections_are_reset_and_refused_before_anything_is_said() -> None:
    assert faulty("reset").actions_before_head == (CloseConnection(reset=True),)
    assert faulty("refused=4").actions_before_head == (RefuseConnections(4),)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_wrong_label_leaves_the_answer_right(framing: str) -> None:
    answer = faulty("wrong_content_type", framing)
    assert answer.content_type == "text/plain; charset=utf-8"
    assert answer.body == send(LONG, **FRAMINGS[framing]).body


@pytest.mark.parametrize("framing", FRAMINGS)
def test_bytes_that_are_no_text_stand_inside_a_string(framing: str) -> None:
    answer = faulty("invalid_utf8", framing)
    with pytest.raises(UnicodeDecodeError):
        answer.body.decode()
    plain = send(LONG, **FRAMINGS[framing])
    assert answer.body.replace(b"\xff\xfe", b"") == plain.body
    assert answer.content_length == plain.content_length + 2


@pytest.mark.parametrize("framing", FRAMINGS)
def test_half_a_document_stands_in_a_whole_frame(framing: str) -> None:
    answer = faulty("truncated_json", framing)
    plain = send(LONG, **FRAMINGS[framing])
    assert len(answer.body) < len(plain.body)
    if framing == "sse":
        assert answer.body.count(b"\r\n\r\n") == len(plain.body_writes)
        assert all(piece.startswith(b"data: {") for piece in answer.body_writes)
    with pytest.raises(json.JSONDecodeError):
        chunks(answer)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_nothing_at_all_is_a_good_status_without_a_body(framing: str) -> None:
    answer = faulty("empty_body", framing)
    assert (answer.status, answer.body, answer.content_length) == (200, b"", 0)


@pytest.mark.parametrize("framing", ["whole", "array"])
def test_blank_space_is_legal_in_json_and_comments_are_not_sent(framing: str) -> None:
    plain = send(LONG, **FRAMINGS[framing])
    assert json.loads(faulty("extra_blank", framing).body) == json.loads(plain.body)
    assert json.loads(faulty("comments", framing).body) == json.loads(plain.body)


@pytest.mark.parametrize(("name", "opening"), [("extra_blank", "\r\n"), ("comments", ": keep-alive\r\n")])
def test_comments_and_blank_lines_are_legal_in_events(name: str, opening: str) -> None:
    body = faulty(name, "sse").body.decode()
    assert [line for line in body.split("\r\n") if line.startswith("data: ")] == [
        piece.decode().strip() for piece in send(LONG, **FRAMINGS["sse"]).body_writes
    ]
    assert body.startswith(opening)
    assert body.endswith(opening)


@pytest.mark.parametrize("size", [1, 7])
def test_small_pieces_are_the_same_bytes_in_more_writes(size: int) -> None:
    answer = faulty(f"small_pieces={size}", "sse")
    assert answer.body == send(LONG, **FRAMINGS["sse"]).body
    assert max(map(len, answer.body_writes)) == size


def test_faults_can_be_combined() -> None:
    plan = [
        ScheduledFault(fault=parse_fault(name))
        for name in ("slow_first_byte=2", "overloaded", "cut_after=10")
    ]
    answer = send(hello(), service=EmulatorService("test", FaultDirector(plan=plan)))
    assert (answer.status, answer.actions_before_head, len(answer.body)) == (503, (Wait(2),), 10)


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("overloadd", "did you mean overloaded?"),
        ("finish_safty", "did you mean finish_safety?"),
        ("zzz", "--list-faults"),
        ("zzz=1", "--list-faults"),
        ("zzz=x", "--list-faults"),
        ("", "--list-faults"),
        ("overloaded=3", "takes no argument"),
        ("cut_after=many", "is not a number: 'many'"),
        ("cut_after=-1", "takes bytes, not -1"),
        ("silence=nan", "takes seconds, not nan"),
        ("silence=inf", "takes seconds, not inf"),
    ],
)
def test_a_fault_that_is_written_wrong_is_explained(written: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_fault(written)
    assert complaint in raised.value.message


def test_a_fault_is_a_name_and_maybe_a_number() -> None:
    assert parse_fault(" cut_after = 5 ").name == "cut_after"
    assert make_fault("cut_after").name == "cut_after"
