"""Whatever a body says after a conversation was seen: what is remembered of that changes nothing about it."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect
from dragoman.dialects.bedrock import ConverseClient
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.errors import InvalidRequest
from dragoman.incremental import envelope, fingerprint_index
from tests.props.dialect_encoders import TONGUES
from tests.props.no_caches import nothing_known

_MADE: dict[str, ClientDialect] = {"gemini": GeminiClient("m"), "bedrock": ConverseClient("m")}
_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture)
_LISTS = {"gemini": "contents", "openai_responses": "input", "amazonq": "history"}

#: Conversations that have nothing to do with each other.
_TALKS = itertools.count(1000)

#: What breaks JSON, or makes other JSON of it.
_SCRAPS = (
    *(
        b"",
        b'"',
        b"\\",
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b":",
        b" ",
        b"\n",
        b"0",
        b"null",
        b"x",
        b"\xff",
        b"\x00",
    ),
    *(
        b"\xc3\xa9",
        b'"\\ud83d"',
        b"\\ud83d",
        b"],[",
        b"]]",
        b',"x":[',
        b'],"x":[',
        b"},{",
        b'"},{"',
        b"[]",
        b"{}",
    ),
)


def _words(talk: int) -> str:
    """Other words in every talk, wherever one looks."""
    return f"word {talk} " * 6


def _element(tongue: str, talk: int, number: int) -> Any:
    text, own = f"talk {talk} number {number}: {_words(talk)}", number % 2 == 0
    if tongue == "gemini":
        return {"role": "user" if own else "model", "parts": [{"text": text}]}
    if tongue == "bedrock":
        return {"role": "user" if own else "assistant", "content": [{"text": text}]}
    if tongue == "amazonq":
        return {"userInputMessage" if own else "assistantResponseMessage": {"content": text}}
    return {"role": "user" if own else "assistant", "content": text}


#: Members that may stand on either side of the list.
_AROUND: dict[str, dict[str, Any]] = {
    "anthropic": {
        "model": "m",
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cch=1;"},
            {"type": "text", "text": "s"},
        ],
        "tools": [{"name": "find", "input_schema": {"type": "object"}}],
        "metadata": {"user_id": "user_session_1"},
        "max_tokens": 10,
    },
    "openai_chat": {
        "model": "m",
        "tools": [{"type": "function", "function": {"name": "find"}}],
        "temperature": 0.5,
        "user": "me",
    },
    "openai_responses": {
        "model": "m",
        "instructions": "be brief",
        "tools": [{"type": "function", "name": "find"}],
        "reasoning": {"effort": "low"},
        "metadata": {"a": "b"},
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "tools": [{"functionDeclarations": [{"name": "find"}]}],
        "generationConfig": {"temperature": 0.5},
    },
    "bedrock": {
        "system": [{"text": "s"}],
        "toolConfig": {"tools": [{"toolSpec": {"name": "find", "inputSchema": {"json": {}}}}]},
        "inferenceConfig": {"maxTokens": 10},
    },
    "amazonq": {"conversationId": "c", "currentMessage": {"userInputMessage": {"content": "now?"}}},
}


def _body(tongue: str, talk: int, count: int, before: int, *, spaced: bool) -> bytes:
    """With so many of the members before the list."""
    around = [*_AROUND[tongue].items()]
    history = [_element(tongue, talk, number) for number in range(count)]
    members = dict([*around[:before], (_LISTS.get(tongue, "messages"), history), *around[before:]])
    value = {"conversationState": members} if tongue == "amazonq" else members
    return json.dumps(value, separators=None if spaced else (",", ":")).encode()


Edit = tuple[str, float, int, bytes]
_EDITS = st.lists(
    st.tuples(
        st.sampled_from(("new", "new", "new", "behind", "behind", "before", "known")),
        st.floats(0, 1),
        st.integers(0, 3),
        st.sampled_from(_SCRAPS),
    ),
    max_size=2,
)


def _edited(body: bytes, edits: list[Edit], last_known: bytes) -> bytes:
    """Each with its part of the body, how far into it, how many bytes go there, and what comes."""
    for part, depth, gone, scrap in edits:
        start = body.find(b"[", max(0, body.find(b"number 0") - 90)) + 1
        known = body.find(last_known) + len(last_known)
        end = body.rfind(b"word ") + 10
        begin, finish = {
            "before": (0, start),
            "known": (start, known),
            "new": (known, end),
            "behind": (end, len(body)),
        }[part]
        at = begin + int(depth * max(0, finish - begin))
        body = body[:at] + scrap + body[at + gone :]
    return body


def _read(tongue: str, body: bytes) -> Any:
    """Or what is wrong with it, in the same words."""
    try:
        return (_MADE.get(tongue) or CLIENTS[tongue]).decode_request(body, {})
    except InvalidRequest as error:
        return error.message, error.where, error.code


@pytest.fixture
def short_texts_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint_index, "_SHORTEST", 64)


class _Watched:
    """Whether a frame was there, and whether it was the one."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.said = "no frame"
        self._new_elements = envelope.RequestEnvelope.new_elements
        patch.setattr(envelope.RequestEnvelope, "new_elements", lambda *args: self._watch(*args))

    def _watch(self, *args: Any) -> list[bytes]:
        found = self._new_elements(*args)
        self.said = "framed" if found else "another frame"
        return found


@pytest.mark.usefixtures("short_texts_count")
@pytest.mark.parametrize("tongue", TONGUES)
@settings(max_examples=150, deadline=None, suppress_health_check=_SLOW)
@given(
    before=st.integers(0, 5),
    spaced=st.booleans(),
    edits=_EDITS,
    more=st.integers(1, 3),
    twice=st.sampled_from((b"", b"", b"", b"", b"[]", b"[{}]", b"null", b'"words"')),
)
def test_any_body_is_read_as_if_nothing_was_known(
    tongue: str, before: int, spaced: bool, edits: list[Edit], more: int, twice: bytes
) -> None:
    talk = next(_TALKS)
    for count in (6, 7, 9):
        _read(tongue, _body(tongue, talk, count, before, spaced=spaced))
    known = f'number 7: {_words(talk)}"'.encode()
    body = _edited(_body(tongue, talk, 9 + more, before, spaced=spaced), edits, known)
    if twice:
        body = body[:-1] + b',"%b":%b}' % (_LISTS.get(tongue, "messages").encode(), twice)
    with pytest.MonkeyPatch.context() as patch:
        watched = _Watched(patch)
        read = _read(tongue, body)
    event(f"{tongue}: {watched.said}")
    with nothing_known():
        assert read == _read(tongue, body)


@pytest.mark.usefixtures("short_texts_count")
@pytest.mark.parametrize("spaced", [False, True])
@pytest.mark.parametrize("before", [0, 2, 5])
@pytest.mark.parametrize("tongue", TONGUES)
def test_every_single_byte_that_differs_is_seen(tongue: str, before: int, spaced: bool) -> None:
    """Each byte of a next turn in turn is something else, with the frame and the history of the turn before known."""
    seen = set[str]()
    for index in range(-1, len(_body(tongue, 1000, 10, before, spaced=spaced))):
        talk = next(_TALKS)
        turns = [_body(tongue, talk, count, before, spaced=spaced) for count in (6, 7, 9, 10)]
        for turn in turns[:-1]:
            _read(tongue, turn)
        body = bytearray(turns[-1])
        if index >= 0:
            body[index] = ord("x" if body[index] == ord('"') else '"')
        with pytest.MonkeyPatch.context() as patch:
            watched = _Watched(patch)
            known = _read(tongue, bytes(body))
        seen.add(watched.said)
        with nothing_known():
            assert known == _read(tongue, bytes(body)), index
    assert seen == ({"no frame"} if tongue == "amazonq" else {"no frame", "another frame", "framed"})
