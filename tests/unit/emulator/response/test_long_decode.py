"""Long decode: Gemini 4 answers in hops that continue each other exactly."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.emulator.errors import ApiError
from dragoman.emulator.model import ModelCall, ModelReply, generate_reply
from dragoman.emulator.models import find_model
from dragoman.emulator.response import ResponseContext
from dragoman.emulator.response.chunks import merge_chunks, write_chunks
from dragoman.emulator.routes import Backend
from dragoman.emulator.signature import Signer
from tests.unit.emulator.builders import Json, ask, calls, message, parts, stream, talk, text, user

MODEL = "gemini-4-argon"
LONG = "say " + " ".join(f"word{number}" for number in range(40_000))


def setting(hop_tokens: int, seed: str = "test", model: str = MODEL) -> ResponseContext:
    facts = find_model(model, "v1beta")
    assert facts is not None
    digest = hashlib.blake2b(b"x").digest()
    backend = Backend("studio", "v1beta")
    return ResponseContext(
        backend=backend, model=facts, signer=Signer(seed), digest=digest, now="", hop_tokens=hop_tokens
    )


def hops(request: Json, reply: ModelReply, hop_tokens: int) -> list[Json]:
    """Every hop's whole answer, resumed as Google says: the same request plus the token."""
    answers: list[Json] = []
    resumed = request
    while len(answers) < 200:
        answers.append(merge_chunks(write_chunks(resumed, reply, setting(hop_tokens))))
        token = answers[-1]["candidates"][0].get("continuationToken")
        if token is None:
            break
        resumed = {**request, "continuationToken": base64.b64decode(token)}
    return answers


def finishes(answers: list[Json]) -> list[str]:
    return [answer["candidates"][0]["finishReason"] for answer in answers]


@settings(deadline=None)
@given(st.text("ab \n", min_size=1, max_size=300), st.integers(2, 40), st.integers(1, 100), st.booleans())
def test_the_hops_joined_are_the_text(words: str, hop: int, cap: int, capped: bool) -> None:
    request = talk(user("x"), generationConfig={"maxOutputTokens": cap} if capped else {})
    answers = hops(request, ModelReply(thought="t", text=words), hop)
    whole = "".join(map(text, answers))
    assert words.startswith(whole)
    assert (whole == words) == (finishes(answers)[-1] == "STOP")
    assert set(finishes(answers)[:-1]) <= {"CONTINUATION"}
    used = [answer["usageMetadata"] for answer in answers]
    spent = [usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0) for usage in used]
    assert all(tokens <= hop + 25 for tokens in spent)
    assert all("thoughtsTokenCount" not in usage for usage in used[1:])


def test_calls_come_once_at_the_end() -> None:
    reply = ModelReply(thought="t", text="word " * 30, calls=(ModelCall("f", {"a": 1}), ModelCall("g", {})))
    answers = hops(talk(user("x")), reply, 24)
    assert len(answers) > 1
    assert [calls(answer) for answer in answers[:-1]] == [[]] * (len(answers) - 1)
    assert calls(answers[-1]) == [("f", {"a": 1}), ("g", {})]
    assert finishes(answers)[-1] == "STOP"


def test_a_call_that_fits_no_hop_ends_it() -> None:
    answers = hops(talk(user("x")), ModelReply(thought="t", calls=(ModelCall("f", {"a": "x" * 400}),)), 20)
    assert finishes(answers) == ["MAX_TOKENS"]


def test_a_long_answer_over_the_wire() -> None:
    request = talk(user(LONG))
    first = stream(request, model=MODEL)
    ending = first[-1]["candidates"][0]
    assert ending["finishReason"] == "CONTINUATION"
    second = ask({**request, "continuationToken": ending["continuationToken"]}, model=MODEL)
    assert "".join(map(text, first)) + text(second) == LONG.removeprefix("say ")
    assert second["candidates"][0]["finishReason"] == "STOP"
    assert "continuationToken" not in second["candidates"][0]


def test_older_models_have_no_hops() -> None:
    ending = ask(talk(user(LONG)), model="gemini-3.8-flash")["candidates"][0]
    assert ending["finishReason"] == "MAX_TOKENS"
    assert "continuationToken" not in ending


def token_of(request: Json, hop_tokens: int = 10) -> str:
    answer = merge_chunks(write_chunks(request, generate_reply(request), setting(hop_tokens)))
    found: str = answer["candidates"][0]["continuationToken"]
    return found


def test_a_wrong_token_is_refused() -> None:
    request = talk(user("say " + "word " * 40))
    good = base64.b64decode(token_of(request))
    other = base64.b64decode(token_of(talk(user("say " + "other " * 40))))
    moved = (int.from_bytes(good[:8], "big") + 4).to_bytes(8, "big") + good[8:]
    sentinel = good[:8] + b"skip_thought_signature_validator"
    for wrong in (b"x", other, moved, sentinel, good[:-1]):
        with pytest.raises(ApiError):
            write_chunks({**request, "continuationToken": wrong}, generate_reply(request), setting(10))
    write_chunks({**request, "continuationToken": good}, generate_reply(request), setting(10))
    with pytest.raises(ApiError):
        write_chunks(
            {**request, "continuationToken": good}, generate_reply(request), setting(10, seed="another")
        )


def test_the_refusal_goes_over_the_wire() -> None:
    token = base64.b64encode(b"nonsense of some length").decode()
    for model in (MODEL, "gemini-3.8-flash"):
        assert "invalid argument" in message({**talk(user("x")), "continuationToken": token}, model=model)


def test_a_hop_that_goes_on_carries_no_closing_signature() -> None:
    request = talk(user("say " + "word " * 40))
    answer = merge_chunks(write_chunks(request, generate_reply(request), setting(12)))
    assert "thoughtSignature" not in json.dumps(parts(answer))
