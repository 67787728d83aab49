"""What goes over the wire: chunks, their order, counters, framings."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.emulator.response.chunks import merge_chunks
from dragoman.emulator.response.parts import split_text
from tests.unit.emulator.builders import (
    MODEL,
    OLD_MODEL,
    VERTEX,
    Json,
    ask,
    declare,
    hello,
    parts,
    send,
    stream,
    talk,
    user,
)

PNG = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
TWO_CALLS = talk(user('say working then use f with {} and use g with {"a":1}'), tools=declare("f", "g"))
ONE_CALL = talk(user("use f with {}"), tools=declare("f"))


def endings(chunks: list[Json]) -> list[str | None]:
    return [chunk["candidates"][0].get("finishReason") for chunk in chunks]


def test_a_tool_turn_of_gemini_3() -> None:
    chunks = stream({**TWO_CALLS, "generationConfig": {"thinkingConfig": {"includeThoughts": True}}})
    thought, words, first, second, closing = (parts(chunk) for chunk in chunks)
    assert thought[0]["thought"] is True
    assert words == [{"text": "working"}]
    assert list(first[0]) == ["functionCall", "thoughtSignature"]
    assert list(second[0]) == ["functionCall"]
    assert second[0]["functionCall"]["args"] == {"a": 1}
    ids = [part[0]["functionCall"]["id"] for part in (first, second)]
    assert all(re.fullmatch(r"[a-z0-9]{8}", given) for given in ids)
    assert ids[0] != ids[1]
    assert closing == [{"text": ""}]
    assert endings(chunks) == [None, None, None, None, "STOP"]
    assert chunks[-1]["candidates"][0]["finishMessage"] == "Model generated function call(s)."


def test_a_text_turn_of_gemini_3_ends_with_its_signature() -> None:
    chunks = stream(hello())
    assert len(chunks) > 2
    last = parts(chunks[-1])
    assert last[0]["text"] == ""
    assert last[0]["thoughtSignature"]
    assert endings(chunks) == [None] * (len(chunks) - 1) + ["STOP"]
    assert all("index" in chunk["candidates"][0] for chunk in chunks)


def test_gemini_25_finishes_with_the_call_and_gives_no_id() -> None:
    (chunk,) = stream(ONE_CALL, model=OLD_MODEL)
    assert "id" not in parts(chunk)[0]["functionCall"]
    assert endings([chunk]) == ["STOP"]
    assert "finishMessage" not in chunk["candidates"][0]
    spoken = stream(hello(), model=OLD_MODEL)
    assert parts(spoken[-1])[0]["text"] != ""


def test_ai_studio_counts_in_every_chunk() -> None:
    chunks = stream(hello())
    usages = [chunk["usageMetadata"] for chunk in chunks]
    assert all(usage["promptTokenCount"] == 2 for usage in usages)
    produced = [usage["candidatesTokenCount"] for usage in usages]
    assert produced == sorted(produced)
    last = usages[-1]
    assert last["totalTokenCount"] == 2 + last["candidatesTokenCount"] + last["thoughtsTokenCount"]
    assert last["promptTokensDetails"] == [{"modality": "TEXT", "tokenCount": 2}]
    assert last["serviceTier"] == "standard"
    assert "createTime" not in chunks[0]


def test_vertex_counts_only_at_the_end() -> None:
    chunks = stream(hello(), path=VERTEX)
    assert [chunk["usageMetadata"] for chunk in chunks[:-1]] == [{"trafficType": "ON_DEMAND"}] * (
        len(chunks) - 1
    )
    assert chunks[-1]["usageMetadata"]["trafficType"] == "ON_DEMAND"
    assert chunks[-1]["usageMetadata"]["totalTokenCount"] > 0
    assert all(chunk["createTime"] for chunk in chunks)


def test_zero_counters_are_absent() -> None:
    usage = ask(hello(generationConfig={"maxOutputTokens": 1}), model="gemini-3.5-flash-lite")[
        "usageMetadata"
    ]
    assert "thoughtsTokenCount" not in usage
    answer = ask(talk(user("say xx"), generationConfig={"stopSequences": ["x"]}))
    assert "candidatesTokenCount" not in answer["usageMetadata"]


def test_every_chunk_names_the_answer_and_the_model() -> None:
    chunks = stream(hello(), model="gemini-flash-latest")
    assert {chunk["modelVersion"] for chunk in chunks} == {"gemini-3.8-flash"}
    assert len({chunk["responseId"] for chunk in chunks}) == 1


@pytest.mark.parametrize("model", ["gemini-3.8-flash", OLD_MODEL])
@pytest.mark.parametrize("body", [TWO_CALLS, hello()])
def test_the_whole_answer_is_the_merge_of_the_chunks(model: str, body: Json) -> None:
    merged = merge_chunks(stream(body, model=model))
    whole = ask(body, model=model)
    assert [part.get("text") for part in parts(merged)] == [part.get("text") for part in parts(whole)]
    assert merged["usageMetadata"] == whole["usageMetadata"]
    assert all(part.get("text") != "" for part in parts(whole))


def test_sse_frames_are_exact() -> None:
    answer = send(hello(), method="streamGenerateContent", alt="sse")
    assert answer.content_type == "text/event-stream"
    for piece in answer.body_writes:
        assert re.fullmatch(rb"data: \{[^\r\n]*\}\r\n\r\n", piece)


def test_the_array_form_is_exact() -> None:
    answer = send(hello(), method="streamGenerateContent")
    assert answer.content_type == "application/json; charset=UTF-8"
    assert answer.body_writes[0].startswith(b"[{")
    assert all(piece.startswith(b"\n,\r\n{") for piece in answer.body_writes[1:-1])
    assert answer.body_writes[-1] == b"]"
    assert len(json.loads(b"".join(answer.body_writes))) == len(answer.body_writes) - 1


def test_errors_before_the_first_byte() -> None:
    plain = send({}, method="streamGenerateContent", alt="sse")
    array = send({}, method="streamGenerateContent")
    assert plain.content_type == array.content_type == "application/json; charset=UTF-8"
    assert json.loads(array.body_writes[0]) == [json.loads(plain.body_writes[0])]


@settings(deadline=None)
@given(st.text())
def test_split_text_loses_nothing(words: str) -> None:
    assert "".join(split_text(words)) == words


@pytest.mark.parametrize(("model", "tokens"), [(MODEL, 1120), ("gemini-4-argon", 1120), (OLD_MODEL, 258)])
def test_an_image_counts_for_more_since_gemini_3(model: str, tokens: int) -> None:
    body = talk({"role": "user", "parts": [{"text": "12345"}, PNG]})
    counts = [{"modality": "TEXT", "tokenCount": 2}, {"modality": "IMAGE", "tokenCount": tokens}]
    for _ in range(2):  # the second time the pieces are known, to whichever model asks
        usage = ask(body, model=model)["usageMetadata"]
        assert (usage["promptTokenCount"], usage["promptTokensDetails"]) == (2 + tokens, counts)
        assert count(body, model=model)["promptTokensDetails"] == counts


def test_what_googles_own_tools_said_counts_when_it_comes_back() -> None:
    spoken = {
        "toolCall": {"id": "a", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x" * 400]}},
        "toolResponse": {"id": "a", "toolType": "GOOGLE_SEARCH_WEB", "response": {"found": "x" * 400}},
        "executableCode": {"language": "PYTHON", "code": "x" * 400},
        "codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "x" * 400},
    }
    alone = count(talk(user("a"), user("b")))["totalTokens"]
    for name, value in spoken.items():
        history = talk(user("a"), {"role": "model", "parts": [{name: value}]}, user("b"))
        assert count(history)["totalTokens"] - alone > 100, name


def count(body: Json, **options: str) -> Json:
    return ask(body, method="countTokens", **options)


def test_count_tokens_forms() -> None:
    assert count(hello()) == {
        "totalTokens": 2,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 2}],
    }
    wrapped = {"generateContentRequest": {"model": "models/gemini-3.8-flash", **ONE_CALL}}
    assert count(wrapped)["totalTokens"] > count({"contents": ONE_CALL["contents"]})["totalTokens"]
    direct = count({**ONE_CALL, "systemInstruction": {"parts": [{"text": "x"}]}}, path=VERTEX)
    assert direct["totalBillableCharacters"] > 0


def test_count_tokens_takes_prompts_over_the_window() -> None:
    huge = talk(user("x" * 4 * 300_000))
    assert count(huge, model="gemma-4-31b-it")["totalTokens"] == 300_000


def test_count_tokens_refusals() -> None:
    def words(body: Json) -> str:
        found: str = json.loads(send(body, method="countTokens").body_writes[0])["error"]["message"]
        return found

    assert words({}) == "* CountTokensRequest.contents: contents is not specified\n"
    assert "only one of" in words({**hello(), "generateContentRequest": hello()})
    assert 'Unknown name "tools"' in words(ONE_CALL)
    assert "model: unexpected model name format" in words({"generateContentRequest": hello()})


def test_a_wish_for_endless_alternatives_gets_twenty() -> None:
    wanted = {"responseLogprobs": True, "logprobs": 2_000_000}
    answer = ask(talk(user("say abcd"), generationConfig=wanted), path=VERTEX)
    (token,) = answer["candidates"][0]["logprobsResult"]["topCandidates"]
    assert len(token["candidates"]) == 20
