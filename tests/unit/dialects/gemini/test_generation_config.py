"""`generationConfig`: clamps, stop sequences, what a model takes; JSON output; countTokens bodies."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.errors import InvalidRequest, UpstreamProtocolError
from dragoman.ir import OutputFormat, Request, Sampling, Text, Thinking, ToolChoice
from tests.unit.dialects.gemini.builders import NEW, OLD, READ, body_of, config_of, encode, notes_of, user

SAMPLED = "gemini-3.1-pro-preview"


def sampled(to: str = SAMPLED, **settings: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    encoded = encode(sampling=Sampling(**settings), to=to)
    config = json.loads(encoded.body).get("generationConfig", {})
    config.pop("thinkingConfig", None)
    return config, [(note.kind, note.where) for note in encoded.notes]


@pytest.mark.parametrize(
    ("to", "wanted", "sent", "clamped"),
    [
        (NEW, 8_000, 8_000, False),
        (NEW, 65_536, 65_536, False),
        (NEW, 65_537, 65_536, True),
        (NEW, 128_000, 65_536, True),
        (NEW, 1, 1, False),
        (NEW, 0, 1, True),
        (NEW, -5, 1, True),
        ("gemma-4-31b-it", 65_536, 32_768, True),
        (OLD, 65_536, 65_536, False),
    ],
)
def test_c11_i3_max_tokens_is_held_in_the_models_range(
    to: str, wanted: int, sent: int, clamped: bool
) -> None:
    config, notes = sampled(to, max_tokens=wanted)
    assert config == {"maxOutputTokens": sent}
    assert notes == ([("clamped", "max_tokens")] if clamped else [])


@pytest.mark.parametrize(
    ("given", "sent", "notes"),
    [
        ((), None, []),
        (("a",), ["a"], []),
        (("", "a"), ["a"], []),
        (("",), None, []),
        (tuple("abcde"), list("abcde"), []),
        (tuple("abcdef"), list("abcde"), [("dropped", "stop_sequences")]),
        (("", *"abcde"), list("abcde"), []),
    ],
)
def test_stop_sequences_are_at_most_five(given: tuple[str, ...], sent: Any, notes: Any) -> None:
    config, told = sampled(stop=given)
    assert config.get("stopSequences") == sent
    assert told == notes


@pytest.mark.parametrize(
    ("given", "sent", "clamped"),
    [(0.0, 0.0, False), (2.0, 2.0, False), (2.5, 2.0, True), (-1.0, 0.0, True), (1, 1, False)],
)
def test_temperature_is_clamped_and_that_is_said(given: float, sent: float, clamped: bool) -> None:
    config, notes = sampled(temperature=given)
    assert config == {"temperature": sent}
    assert notes == ([("clamped", "temperature")] if clamped else [])


TUNING = {"temperature": 0.5, "top_p": 0.9, "top_k": 40}
WIRE = {"temperature": 0.5, "topP": 0.9, "topK": 40}


@pytest.mark.parametrize(
    ("to", "taken"),
    [
        (OLD, True),
        ("gemini-3-flash-preview", True),
        ("gemini-3.1-flash-lite", True),
        ("gemini-3.5-flash", True),
        ("gemini-3.5-flash-lite", True),
        ("gemini-flash-lite-latest", True),
        ("gemma-4-31b-it", True),
        ("gemini-3.6-flash", False),
        ("gemini-3.7-flash", False),
        (NEW, False),
        ("gemini-4-argon", False),
        ("gemini-9", False),
    ],
)
def test_sampling_goes_where_it_has_an_effect(to: str, taken: bool) -> None:
    config, notes = sampled(to, seed=7, **TUNING)
    assert config == ({"seed": 7, **WIRE} if taken else {"seed": 7})
    assert notes == ([] if taken else [("dropped", word) for word in TUNING])


@pytest.mark.parametrize("to", [OLD, SAMPLED, NEW, "gemini-4-argon"])
def test_penalties_are_taken_by_no_model(to: str) -> None:
    config, notes = sampled(to, presence_penalty=0.5, frequency_penalty=-1.0)
    assert config == {}
    assert notes == [("dropped", "presence_penalty"), ("dropped", "frequency_penalty")]


def test_a_penalty_of_nothing_is_no_loss() -> None:
    assert sampled(NEW, presence_penalty=0.0, frequency_penalty=0) == ({}, [])


def test_what_google_would_refuse_as_out_of_range_is_brought_into_it() -> None:
    config, notes = sampled(OLD, seed=2**40, top_p=1.5, top_k=0, temperature=-1)
    assert config == {"seed": 2**31 - 1, "topP": 1, "topK": 1, "temperature": 0}
    assert notes == [("clamped", word) for word in ("temperature", "top_p", "top_k", "seed")]


SCHEMA = b'{"$schema":"x","type":"object","properties":{"a":{"const":"b"}},"required":["a"]}'
LIST = b'{"type":"array","items":{"type":"string"}}'
ENFORCED = {"responseMimeType": "application/json"}


@pytest.mark.parametrize("to", [OLD, NEW])
def test_b16_json_output_without_tools_is_enforced(to: str) -> None:
    config = config_of(output=OutputFormat(schema=SCHEMA), to=to)
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"]["properties"] == {"a": {"type": "string", "enum": ["b"]}}
    assert "$schema" not in config["responseJsonSchema"]
    assert config_of(output=OutputFormat(), to=to) == ENFORCED


@pytest.mark.parametrize(
    ("to", "mode", "enforced"),
    [
        (NEW, "auto", True),
        (NEW, "validated", True),
        (NEW, "any", False),
        (NEW, "none", False),
        (OLD, "auto", False),
        (OLD, "any", False),
    ],
)
def test_b16_json_output_beside_functions(to: str, mode: Any, enforced: bool) -> None:
    options: Any = {
        "tools": (READ,),
        "tool_choice": ToolChoice(mode=mode),
        "output": OutputFormat(schema=SCHEMA),
    }
    body = body_of(to=to, **options)
    moved = [note for note in notes_of(to=to, **options) if note.kind == "moved"]
    if enforced:
        assert body["generationConfig"]["responseMimeType"] == "application/json"
        assert "systemInstruction" not in body
        assert moved == []
    else:
        assert "generationConfig" not in body
        assert SCHEMA.decode() in body["systemInstruction"]["parts"][-1]["text"]
        assert [note.where for note in moved] == ["output_config.format"]


def test_b16_a_wish_without_a_schema_is_said_in_words_too() -> None:
    body = body_of(to=OLD, tools=(READ,), output=OutputFormat(), system=(Text(text="Be kind."),))
    texts = [part["text"] for part in body["systemInstruction"]["parts"]]
    assert texts[0] == "Be kind."
    assert "JSON only" in texts[1]
    assert "Schema" not in texts[1]


@pytest.mark.parametrize("schema", [LIST, b'{"type":["string","null"]}', b"true"])
def test_b16_a_schema_that_is_no_object_is_never_lost(schema: bytes) -> None:
    """Function arguments are always objects; an answer need not be one."""
    encoded = encode(output=OutputFormat(schema=schema))
    body = json.loads(encoded.body)
    assert body["generationConfig"] == ENFORCED
    assert schema.decode() in body["systemInstruction"]["parts"][-1]["text"]
    assert [note.kind for note in encoded.notes] == ["moved"]


def test_h7_the_beginning_of_the_body_is_stable_and_complete() -> None:
    body = body_of(
        user("q"),
        system=(Text(text="S"), Text(text="T")),
        tools=(READ,),
        tool_choice=ToolChoice(mode="any"),
        sampling=Sampling(max_tokens=9_000),
        thinking=Thinking(mode="on", show=True),
    )
    assert list(body) == ["contents", "systemInstruction", "tools", "toolConfig", "generationConfig"]
    assert body["systemInstruction"] == {"parts": [{"text": "S"}, {"text": "T"}]}
    assert list(body_of(user("q"))) == ["contents"]


FULL = Request(
    model="any",
    messages=(user("q"),),
    system=(Text(text="S"),),
    tools=(READ,),
    tool_choice=ToolChoice(mode="any"),
    sampling=Sampling(max_tokens=9_000),
)


def test_h3_ai_studio_counts_the_wrapped_request() -> None:
    body = json.loads(gemini.encode_count(FULL, Target(model=NEW)))
    assert list(body) == ["generateContentRequest"]
    inner = body["generateContentRequest"]
    assert inner.pop("model") == f"models/{NEW}"
    assert list(inner) == ["contents", "systemInstruction", "tools", "generationConfig"]


def test_h3_vertex_counts_the_bare_request() -> None:
    body = json.loads(gemini.encode_count(FULL, Target(model=NEW, backend="vertex")))
    assert list(body) == ["contents", "systemInstruction", "tools", "generationConfig"]


def test_h3_a_plain_request_can_be_counted() -> None:
    plain = msgspec.structs.replace(FULL, tools=(), tool_choice=ToolChoice(), system=(), sampling=Sampling())
    body = json.loads(gemini.encode_count(plain, Target(model=NEW, backend="vertex")))
    assert list(body) == ["contents"]


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        (b'{"totalTokens":7,"promptTokensDetails":[{"modality":"TEXT","tokenCount":7}]}', 7),
        (b'{"totalTokens":"7"}', 7),
        (b"{}", 0),
    ],
)
def test_h3_the_count_is_read(body: bytes, tokens: int) -> None:
    assert gemini.decode_count(body) == tokens


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"totalTokens":"many"}',
        b'{"x":"\xff"',
        b"[" * 100_000,
        b'{"totalTokens":null}',
    ],
)
def test_h3_a_count_that_cannot_be_read_is_a_typed_error(body: bytes) -> None:
    """So that the caller falls back to the estimate instead of failing."""
    with pytest.raises(UpstreamProtocolError):
        gemini.decode_count(body)


@pytest.mark.parametrize(
    ("to", "demanded"),
    [
        (OLD, False),
        ("gemini-3-flash-preview", False),
        ("gemini-3.1-pro-preview", False),
        ("gemini-3.5-flash", False),
        ("gemma-4-31b-it", False),
        ("gemini-3.5-flash-lite", True),
        ("gemini-3.6-flash", True),
        (NEW, True),
        ("gemini-4-carbon", True),
        ("gemini-flash-latest", True),
        ("gemini-pro-latest", True),
        ("gemini-flash-lite-latest", True),
        ("gemini-99-ultra", True),
    ],
)
def test_c3_newer_models_must_be_asked_by_a_user_turn(to: str, demanded: bool) -> None:
    assert gemini.ends_with_user(Target(model=to)) is demanded


@pytest.mark.parametrize("tools", [(), (READ,)])
@pytest.mark.parametrize("schema", [b"{", b'{"description":"\xff"}'])
def test_b16_an_output_schema_that_cannot_be_read_is_the_callers_mistake(schema: bytes, tools: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        encode(output=OutputFormat(schema=schema), tools=tools, to=OLD)
    assert caught.value.where == "output_config.format.schema"
