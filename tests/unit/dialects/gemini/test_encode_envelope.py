"""What stands around the contents: worked out once for a conversation, and anew for everything that is different."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.dialects.gemini import encode
from dragoman.incremental.lru import LruCache
from dragoman.ir import Message, OutputFormat, Request, Sampling, ServerTool, Text, Thinking, Tool, ToolChoice
from tests.unit.dialects.gemini.builders import NEW, OLD, READ, model, user

ASKED = Request(model="m", messages=(user("q"),), system=(Text(text="Be brief."),), tools=(READ,))
TARGET = Target(model=NEW)
CHANGED: list[dict[str, Any]] = [
    {"system": ()},
    {"system": (Text(text="Be"), Text(text=" brief."))},
    {"tools": ()},
    {"tools": (READ, Tool(name="other"))},
    {"tools": (msgspec.structs.replace(READ, description="Read another file."),)},
    {"server_tools": (ServerTool(kind="web_search"),)},
    {"tool_choice": ToolChoice(mode="any")},
    {"tool_choice": ToolChoice(parallel=False)},
    {"thinking": Thinking(mode="off")},
    {"sampling": Sampling(seed=1)},
    {"output": OutputFormat()},
    {"native": (("cachedContent", b'"c"'),)},
]
ELSEWHERE: list[dict[str, Any]] = [
    {"model": OLD},
    {"backend": "vertex"},
    {"proto_schemas": True},
    {"own_thinking": True},
    {"relaxed_schemas": True},
    {"unmixed_tools": True},
    {"trust_signatures": False},
    {"omit_fields": ("system_instruction",)},
]


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests whose surroundings were not known."""
    made: list[Request] = []
    work_out = encode._make_envelope

    def counted(request: Request, target: Target) -> encode.UpstreamEnvelope:
        made.append(request)
        return work_out(request, target)

    monkeypatch.setattr(encode, "_make_envelope", counted)
    monkeypatch.setattr(encode, "_ENVELOPES", LruCache(1 << 20))
    return made


def _body(request: Request, target: Target = TARGET) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(gemini.encode_request(request, target, lambda: "id").body)
    return body


def test_a_next_turn_is_put_into_what_is_known(worked_out: list[Request]) -> None:
    first = _body(ASKED)
    following = msgspec.structs.replace(ASKED, messages=(*ASKED.messages, model("a"), user("r")))
    second = _body(following)
    assert worked_out == [ASKED]
    assert [content["role"] for content in second.pop("contents")] == ["user", "model", "user"]
    assert first.pop("contents") == [{"role": "user", "parts": [{"text": "q"}]}]
    assert [*first.items()] == [*second.items()]


def test_equal_objects_are_as_good_as_the_same(worked_out: list[Request]) -> None:
    copied = msgspec.convert(msgspec.to_builtins(ASKED.tools), tuple[Tool, ...])
    _body(ASKED)
    _body(msgspec.structs.replace(ASKED, tools=copied, system=(Text(text="Be brief."),)))
    assert worked_out == [ASKED]


@pytest.mark.parametrize("change", CHANGED)
def test_whatever_is_different_counts(worked_out: list[Request], change: dict[str, Any]) -> None:
    _body(ASKED)
    other = msgspec.structs.replace(ASKED, **change)
    body = _body(other)
    assert worked_out == [ASKED, other]
    assert body != _body(ASKED)


@pytest.mark.parametrize("change", ELSEWHERE)
def test_another_place_has_other_surroundings(worked_out: list[Request], change: dict[str, Any]) -> None:
    _body(ASKED)
    _body(ASKED, msgspec.structs.replace(TARGET, **change))
    assert worked_out == [ASKED, ASKED]


@pytest.mark.parametrize(
    ("request_", "without", "expected"),
    [
        (Request(model="m", messages=()), (), b'{"contents":[]}'),
        (
            Request(model="m", messages=(), system=(Text(text="s"),)),
            (),
            b'{"contents":[],"systemInstruction":{"parts":[{"text":"s"}]}}',
        ),
        (
            Request(model="m", messages=(user("q"), model("a"))),
            (),
            b'{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"a"}]}]}',
        ),
        (
            Request(model="m", messages=(user("q"),), system=(Text(text="s"),)),
            ("contents",),
            b'{"systemInstruction":{"parts":[{"text":"s"}]}}',
        ),
        (Request(model="m", messages=(user("q"),)), ("contents",), b"{}"),
    ],
)
def test_bodies_that_lack_something(request_: Request, without: tuple[str, ...], expected: bytes) -> None:
    target = Target(model=NEW, omit_fields=without)
    assert gemini.encode_request(request_, target, lambda: "id").body == expected
    assert gemini.encode_count(request_, msgspec.structs.replace(target, backend="vertex")) == expected


def test_a_system_prompt_that_is_too_long_is_not_kept(
    worked_out: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode, "_ENVELOPES", LruCache(1_000))
    long = msgspec.structs.replace(ASKED, system=(Text(text="s" * 1_000),))
    assert _body(long) == _body(long)
    assert worked_out == [long, long]


def test_what_is_known_holds_no_history(worked_out: list[Request]) -> None:
    message = Message(role="user", parts=(Text(text="only mine"),))
    _body(msgspec.structs.replace(ASKED, messages=(message,)))
    assert len(worked_out) == 1
    kept = encode.make_envelope(ASKED, TARGET)
    assert b"only mine" not in b"".join(kept.rest)
    assert len(worked_out) == 1
