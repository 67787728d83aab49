"""What one turn remembers, the next one finds: a whole exchange writes, another one reads."""

from __future__ import annotations

import json

import pytest

from dragoman.ir import AFTER_TEXT, ON_TEXT, SealedSignature, Signature, unseal
from tests.unit.dialects.anthropic.builders import Json, assistant, tool_result, user
from tests.unit.translation.test_exchange import (
    MODEL,
    READ,
    SIGNED_CALL,
    THINKING,
    call,
    chunk,
    message,
    ready,
    run,
    sse,
)


class TestMemory:
    def test_a11_a_signed_call_is_remembered_before_it_is_given_out(self) -> None:
        exchange = ready(stream=True, tools=[READ])
        exchange.open()
        out = exchange.receive(sse(SIGNED_CALL[0]))
        (key, word), *rest = exchange.store_entries
        assert key.encode() in out
        assert rest == []
        assert unseal(word) == SealedSignature(Signature("c2ln", "gemini-g3"), key)

    @pytest.mark.parametrize("thinking", [{"type": "disabled"}, THINKING])
    @pytest.mark.parametrize("stream", [True, False])
    def test_a11_the_next_turn_finds_it_though_the_client_dropped_the_thinking(
        self, stream: bool, thinking: Json
    ) -> None:
        first = ready(stream=stream, tools=[READ], thinking=thinking)
        blocks = [block for block in message(first, *SIGNED_CALL)["content"] if block["type"] == "tool_use"]
        second = ready(user("q"), assistant(*blocks), user(tool_result("x", blocks[0]["id"])))
        assert set(second.missing_keys) == {blocks[0]["id"]}
        recalled = {key: sealed for key, word in first.store_entries if (sealed := unseal(word))}
        parts = json.loads(second.encode(MODEL, recalled))["contents"][1]["parts"]
        assert parts == [
            {"functionCall": {"name": "Read", "args": {"a": 1}, "id": "g1"}, "thoughtSignature": "c2ln"}
        ]
        assert second.notes == ()

    @pytest.mark.parametrize("stream", [True, False])
    @pytest.mark.parametrize(
        ("chunks", "target"),
        [
            (
                (
                    chunk({"text": "a"}),
                    chunk({"text": "b"}),
                    chunk({"text": "", "thoughtSignature": "c2ln"}, finish="STOP"),
                ),
                AFTER_TEXT,
            ),
            ((chunk({"text": "ab", "thoughtSignature": "c2ln"}, finish="STOP"),), ON_TEXT),
            (
                (
                    chunk({"text": "t", "thought": True}),
                    chunk({"text": "ab", "thoughtSignature": "c2ln"}, finish="STOP"),
                ),
                ON_TEXT,
            ),
        ],
    )
    def test_a2_the_signature_of_a_text_comes_back_with_it(
        self, stream: bool, chunks: tuple[Json, ...], target: str
    ) -> None:
        first = ready(stream=stream, thinking=THINKING)
        blocks = [block for block in message(first, *chunks)["content"] if block["type"] == "text"]
        second = ready(user("q"), assistant(*blocks), user("r"))
        recalled = {key: sealed for key, word in first.store_entries if (sealed := unseal(word))}
        assert set(recalled) == set(second.missing_keys)
        parts = json.loads(second.encode(MODEL, recalled))["contents"][1]["parts"]
        expected = [{"text": "ab", "thoughtSignature": "c2ln"}]
        if target == AFTER_TEXT:
            expected = [{"text": "ab"}, {"text": "", "thoughtSignature": "c2ln"}]
        assert parts == expected

    @pytest.mark.parametrize(
        "parts",
        [
            [{"text": "a"}, {"text": "t", "thought": True, "thoughtSignature": "c2ln"}],
            [{"text": "a"}, {"text": "", "thought": True, "thoughtSignature": "c2ln"}],
            [{"text": "a"}, call(a=1), {"text": "", "thoughtSignature": "c2ln"}],
            [{"text": "", "thoughtSignature": "c2ln"}],
        ],
        ids=["thought", "wordless thought", "behind a call", "alone"],
    )
    def test_a2_no_text_is_given_a_signature_that_is_not_its_own(self, parts: list[Json]) -> None:
        exchange = ready(tools=[READ])
        run(exchange, chunk(*parts, finish="STOP"))
        assert exchange.store_entries == []

    def test_an_unsigned_answer_is_not_remembered(self) -> None:
        exchange = ready(tools=[READ])
        run(exchange, chunk({"text": "a"}, call(a=1), finish="STOP"))
        assert exchange.store_entries == []
