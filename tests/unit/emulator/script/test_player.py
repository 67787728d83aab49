"""Who gets which step, what is counted, and what a program is told that does not follow the script."""

from __future__ import annotations

import base64
import json
import threading
from typing import Any

import pytest

from dragoman.emulator.http_messages import CloseConnection, HttpResponse, Wait
from dragoman.emulator.script.load import load_data
from tests.unit.emulator.builders import (
    calls,
    function_responses,
    hello,
    model_calls,
    parts,
    talk,
    text,
    user,
)
from tests.unit.emulator.script.scripted_service import WEATHER, ScriptedService, user_request


def said(answer: HttpResponse) -> str:
    assert answer.status == 200, answer.body
    return text(json.loads(answer.body))


def message(answer: HttpResponse) -> str:
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["status"]) == (400, "FAILED_PRECONDITION")
    words: str = error["message"]
    return words


def test_steps_are_taken_in_order_and_used_up() -> None:
    stage = ScriptedService(
        "steps: [{reply: one}, {reply: two, times: 2}, {when: {says: never}, reply: x, optional: true}]"
    )
    assert [said(stage.send(hello())) for _ in range(3)] == ["one", "two", "two"]
    assert said(stage.send(user_request("say four"))) == "four"
    assert stage.player.problems() == []


def test_a_step_waits_for_the_request_it_fits() -> None:
    stage = ScriptedService("steps: [{when: {says: b}, reply: for b}, {reply: for anyone, times: always}]")
    assert said(stage.send(user_request("aaa"))) == "for anyone"
    assert said(stage.send(user_request("bbb"))) == "for b"
    assert said(stage.send(user_request("bbb"))) == "for anyone"


def test_a_reply_is_spoken_in_the_manner_of_the_model() -> None:
    script = """
steps:
  - reply: [{thought: hm}, {text: One moment.}, {call: {name: get_weather, args: {city: Paris}}}, {call: {name: f}}]
    times: always
    usage: {promptTokenCount: 1000, cachedContentTokenCount: 900}
"""
    stage = ScriptedService(script)
    thinking = {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
    answer = json.loads(stage.send(user_request("x", tools=WEATHER, **thinking)).body)
    assert parts(answer)[0] == {"text": "hm", "thought": True}
    assert calls(answer) == [("get_weather", {"city": "Paris"}), ("f", {})]
    signed = ["thoughtSignature" in part for part in parts(answer)]
    assert signed == [False, False, True, False]
    usage = answer["usageMetadata"]
    assert (usage["promptTokenCount"], usage["cachedContentTokenCount"]) == (1000, 900)
    assert usage["totalTokenCount"] == 1000 + usage["candidatesTokenCount"] + usage["thoughtsTokenCount"]
    old = json.loads(stage.send(user_request("x", tools=WEATHER), model="gemini-2.5-flash").body)
    assert all("id" not in part["functionCall"] for part in parts(old) if "functionCall" in part)
    # What was not asked for is not shown, and a reply without a thought shows none.
    assert not any(part.get("thought") for part in parts(old))
    plain = ScriptedService("steps: [{reply: hi}]").stream(user_request("x", **thinking))
    assert b'"thought":true' not in plain.body


def test_what_the_reply_says_can_be_sent_back() -> None:
    stage = ScriptedService(
        "steps: [{reply: [{call: {name: get_weather}}]}, {when: {answers: get_weather}, reply: sunny}]"
    )
    first = json.loads(stage.send(user_request("w", tools=WEATHER)).body)["candidates"][0]["content"]
    call = first["parts"][0]["functionCall"]
    history = talk(user("w"), first, function_responses("get_weather", ids=(call["id"],)), tools=WEATHER)
    assert said(stage.send(history)) == "sunny"
    assert stage.player.problems() == []


def test_a_block_without_words_has_no_parts() -> None:
    answer = json.loads(ScriptedService("steps: [{reply: [], finish: SAFETY}]").send(hello()).body)
    assert (answer["candidates"][0]["finishReason"], answer["candidates"][0]["content"]) == ("SAFETY", {})
    assert b'"finishReason":"STOP"' in ScriptedService("steps: [{reply: []}]").stream(hello()).body_writes[-1]


def test_a_counter_that_is_no_number_is_sent_as_it_is() -> None:
    answer = json.loads(
        ScriptedService("steps: [{reply: a, usage: {promptTokenCount: many}}]").send(hello()).body
    )
    assert answer["usageMetadata"]["promptTokenCount"] == "many"


def test_a_finish_reason_ends_an_answer_with_calls_without_googles_praise() -> None:
    script = "steps: [{reply: [{call: {name: f}}], finish: MALFORMED_FUNCTION_CALL}]"
    candidate = json.loads(ScriptedService(script).send(hello()).body)["candidates"][0]
    assert "finishMessage" not in candidate
    assert candidate["content"]["parts"][0]["functionCall"]["name"] == "f"


def test_a_refused_request_does_not_use_up_its_step() -> None:
    stage = ScriptedService("steps: [{when: {request: 1}, reply: hi}]")
    wrong: list[Any] = [{"contents": []}, {"nonsense": 1}, b"{", talk(model_calls("f"))]
    for body in wrong:
        assert stage.send(body).status == 400
    assert any("never used" in line for line in stage.player.problems())
    assert any("a request was refused: " in line for line in stage.player.problems())
    assert said(stage.send(hello())) == "hi"
    assert stage.player.problems() == []


def test_a_failed_expectation_is_told_to_the_program_and_remembered() -> None:
    script = "steps:\n- reply: a\n- name: second\n  when: {says: b}\n  expect: {system: polite, declares: f}\n  reply: b"
    stage = ScriptedService(script)
    stage.send(hello())
    complaint = message(stage.send(user_request("b")))
    assert complaint == (
        "emulator script: step 2 'second' (line 3): system: expected /polite/, got ''; "
        "declares: expected f, got no functions"
    )
    assert stage.player.problems() == [complaint]


def test_an_expectation_that_holds_is_silent() -> None:
    stage = ScriptedService("steps: [{expect: {declares: get_*}, reply: a}]")
    assert said(stage.send(user_request("x", tools=WEATHER))) == "a"
    assert stage.player.problems() == []


def test_an_unexpected_request_is_told_what_was_expected() -> None:
    stage = ScriptedService("otherwise: refuse\nsteps:\n- when: {says: a, model: gemini-3*}\n  reply: a\n")
    complaint = message(stage.send(user_request("b")))
    assert complaint == (
        "emulator script: no step fits request 1, a generate of gemini-3.8-flash saying 'b'; what is left:\n"
        "  step 1 (line 3): says: expected /a/, got 'b'"
    )
    assert said(stage.send(user_request("a"))) == "a"
    assert message(stage.send(user_request("a"))).endswith("saying 'a'; all 1 steps are used up")
    assert len(stage.player.problems()) == 2


def test_a_stream_that_is_refused_by_the_script_is_framed_as_google_frames_errors() -> None:
    stage = ScriptedService("otherwise: refuse")
    array = stage.send(hello(), method="streamGenerateContent")
    assert json.loads(array.body)[0]["error"]["status"] == "FAILED_PRECONDITION"


def test_counting_is_not_mistaken_for_generating() -> None:
    stage = ScriptedService("steps: [{reply: hi}, {when: {method: count}, http: {json: {totalTokens: 7}}}]")
    assert json.loads(stage.send(hello(), method="countTokens").body) == {"totalTokens": 7}
    assert said(stage.send(hello())) == "hi"
    assert stage.player.problems() == []


def test_an_unused_step_is_a_problem_unless_it_is_optional() -> None:
    stage = ScriptedService(
        "steps:\n- {reply: a, times: 2}\n- {reply: b, optional: true}\n- {reply: c, times: always}"
    )
    stage.send(hello())
    assert stage.player.problems() == [
        "step 1 (line 2) was used 1 of 2 times",
        "step 3 (line 4) was never used",
    ]


def test_exact_chunks_reach_the_wire_in_every_framing() -> None:
    script = """
steps:
  - times: always
    chunks:
      - {parts: [{text: a}]}
      - {wait: 0.5}
      - {raw: ": comment\\n\\n"}
      - {json: {candidates: [{content: {parts: [{text: b}]}, finishReason: STOP}]}}
      - {cut: reset}
"""
    stage = ScriptedService(script)
    sse = stage.stream(hello())
    assert [type(act) for act in sse.actions] == [bytes, Wait, bytes, bytes, CloseConnection]
    assert sse.body_writes[1] == b": comment\n\n"
    assert (
        sse.body_writes[2]
        == b'data: {"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}\r\n\r\n'
    )
    assert sse.actions[-1] == CloseConnection(reset=True)
    array = stage.send(hello(), method="streamGenerateContent")
    assert array.body_writes[0].startswith(b'[{"candidates"')
    assert array.body_writes[2].startswith(b"\n,\r\n{")
    unary = stage.send(hello())
    assert unary.actions_before_head == (Wait(0.5),)
    assert isinstance(unary.actions[-1], CloseConnection)


def test_chunks_in_one_answer_are_merged() -> None:
    script = "steps: [{chunks: [{parts: [{text: a}]}, {parts: [{text: b}], finish: STOP, usage: {totalTokenCount: 3}}]}]"
    answer = json.loads(ScriptedService(script).send(hello()).body)
    assert parts(answer) == [{"text": "ab"}]
    assert answer["usageMetadata"] == {"totalTokenCount": 3}


def test_an_error_between_chunks_is_a_chunk_of_a_stream_and_the_whole_of_an_answer() -> None:
    stage = ScriptedService("steps: [{times: always, chunks: [{parts: [{text: a}]}, {error: {code: 503}}]}]")
    chunk = json.loads(stage.stream(hello()).body_writes[-1].removeprefix(b"data: "))
    assert chunk["error"]["status"] == "UNAVAILABLE"
    assert stage.send(hello()).status == 503


@pytest.mark.parametrize(
    "bits", ["[{raw: hello}]", "[{json: {promptFeedback: {}}}]", "[]", "[{json: {candidates: 3}}]"]
)
def test_chunks_without_content_make_an_answer_too(bits: str) -> None:
    answer = ScriptedService(f"steps: [{{chunks: {bits}}}]").send(hello())
    assert answer.status == 200
    assert answer.body in (b"hello", b'{"promptFeedback":{}}', b"", b'{"candidates":3}')


def test_an_http_answer_is_sent_as_written() -> None:
    pieces = "[abc, {text: d}, {base64: /w==}, {wait: 1}, {cut: true}]"
    script = (
        f"steps: [{{http: {{status: 418, headers: {{X-A: b, Content-Type: text/plain}}, pieces: {pieces}}}}}]"
    )
    answer = ScriptedService(script).send(hello())
    assert (answer.status, answer.content_type, answer.headers) == (418, "text/plain", (("x-a", "b"),))
    assert answer.actions == (b"abc", b"d", b"\xff", Wait(1), CloseConnection())
    assert answer.streamed
    assert not ScriptedService("steps: [{http: {body: x}}]").send(hello()).streamed


def test_pace_and_faults_change_how_an_answer_comes() -> None:
    stage = ScriptedService("steps: [{reply: hello, split: 7, delay: 0.25, pause: 0.5, times: always}]")
    answer = stage.stream(hello())
    assert answer.actions_before_head == (Wait(0.25),)
    assert {len(piece) for piece in answer.body_writes[:-1]} == {7}
    assert all(act == Wait(0.5) for act in answer.actions[1::2])
    whole = ScriptedService("steps: [{reply: hello}]").stream(hello())
    assert answer.body == whole.body
    assert ScriptedService("steps: [{fault: overloaded}]").send(hello()).status == 503
    cut = ScriptedService("steps: [{reply: hello, fault: [{cut_after: 10}]}]").stream(hello())
    assert len(cut.body) == 10


def test_a_split_keeps_waits_in_their_place() -> None:
    script = "steps: [{http: {pieces: [abcde, {wait: 1}, fg]}, split: 2}]"
    assert ScriptedService(script).send(hello()).actions == (b"ab", b"cd", b"e", Wait(1), b"fg")


FOREIGN = base64.b64encode(b"a signature that Google made").decode()


@pytest.mark.parametrize(
    "step",
    [
        f"chunks: [{{parts: [{{functionCall: {{name: f, args: {{}}}}, thoughtSignature: {FOREIGN}}}]}}]",
        f"""http: {{body: '{{"thoughtSignature": "{FOREIGN}"}}'}}""",
        f"""http: {{pieces: ['{{"thoughtSig', 'nature": "{FOREIGN[:9]}', '{FOREIGN[9:]}"}}']}}""",
        f"""chunks: [{{raw: '"thought_signature":"{FOREIGN.replace("=", chr(92) + "u003d")}"'}}]""",
    ],
)
def test_signatures_of_a_recording_are_accepted_back(step: str) -> None:
    history = talk(user("x"), model_calls("f", signature=FOREIGN), function_responses("f"))
    stage = ScriptedService(f"steps: [{{{step}}}]")
    stage.send(hello())
    assert stage.send(history).status == 200
    other = talk(
        user("x"),
        model_calls("f", signature=base64.b64encode(b"of nobody").decode()),
        function_responses("f"),
    )
    assert stage.send(other).status == 400


def test_without_validation_requests_are_taken_as_they_are() -> None:
    stage = ScriptedService("validate: false\nsteps: [{times: always, http: {body: ok}}]")
    odd: list[Any] = [
        {"contents": []},
        {"newField": 1, "contents": "x"},
        talk(model_calls("f"), model_calls("f")),
        b"{",
        b"[]",
    ]
    for body in odd:
        assert stage.send(body, model="gemini-99").body == b"ok"
    assert stage.player.problems() == []


@pytest.mark.parametrize(
    "body",
    [
        talk(user("a"), model_calls("f", signature=None), user("b")),
        hello(newField=1, generationConfig={"candidateCount": 10**6}),
        talk({"parts": [{"fileData": {"fileUri": "files/gone"}}]}),
        hello(cachedContent="cachedContents/gone"),
        b"{",
    ],
)
def test_without_validation_a_reply_is_given_to_requests_as_they_are(body: Any) -> None:
    assert said(ScriptedService("validate: false\nsteps: [{reply: hi}]").send(body)) == "hi"


def test_a_request_that_cannot_be_parsed_is_still_recognised_without_validation() -> None:
    when = "{says: hi, not: {system: rude}, answers: []}"
    stage = ScriptedService(
        f"validate: false\notherwise: refuse\nsteps: [{{when: {when}, http: {{body: ok}}}}]"
    )
    odd = {"contents": [3, {"parts": [7, {"text": "hi"}]}], "systemInstruction": "x", "newField": 1}
    assert stage.send(odd).body == b"ok"


def test_two_scripts_play_one_after_the_other() -> None:
    stage = ScriptedService("steps: [{reply: a}]")
    stage.player.add(load_data({"otherwise": "refuse", "steps": [{"reply": "b"}]}))
    assert [said(stage.send(hello())) for _ in range(2)] == ["a", "b"]
    assert stage.send(hello()).status == 400


def test_many_threads_share_a_script_without_losing_count() -> None:
    stage = ScriptedService("steps: [{reply: x, times: 35}]")
    answers: list[str] = []

    def work() -> None:
        answers.extend(said(stage.send(user_request("say y"))) for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["x"] * 35 + ["y"] * 5
    assert stage.player.problems() == []


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        (500, "INTERNAL", "Internal error encountered."),
        (503, "UNAVAILABLE", "This model is currently experiencing high demand."),
        (418, "UNKNOWN", "Unknown error."),
    ],
)
def test_an_error_without_words_has_googles(code: int, status: str, words: str) -> None:
    stage = ScriptedService(f"steps: [{{chunks: [{{error: {{code: {code}}}}}]}}]")
    answer = stage.send(hello())
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"], error["status"]) == (code, code, status)
    assert error["message"].startswith(words)
