"""The answers of the fake Gemini, selected by a mark in the request, so that every answer can be checked."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

MODEL_VERSION = "gemini-flash-latest"
CALLED_TOOL = "Read"

_MARK = re.compile(rb"\[bench chunks=(\d+) pace_ms=(\d+) id=(\w+)\]")
_MARK_START = b"[bench chunks="
#: In turn: litellm takes a hundred equal chunks for a model that has lost its mind.
_WORDS = (
    "The handler reads the whole file before it looks at the first line, so we",
    " should let it stop at the first row that is newer than the last one seen,",
    " and keep what it has read in a list that the next caller can begin with,",
    " since nobody but the exporter ever needs more than the rows of one day;",
)
_THOUGHT = "**Looking at the handler** I should read the file that the last result names."
_SIGNATURE = "CiQBjz1rX5" + "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789" * 16
_USAGE = {
    "promptTokenCount": 31234,
    "candidatesTokenCount": 57,
    "totalTokenCount": 31291,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 31234}],
}
_encode = msgspec.json.Encoder().encode


class AnswerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of an answer: `chunks` of a stream, `pace_ms` apart; the answer contains the id."""

    id: str
    chunks: int = 1
    pace_ms: int = 0

    def mark(self) -> str:
        return f"[bench chunks={self.chunks} pace_ms={self.pace_ms} id={self.id}]"

    @property
    def text(self) -> str:
        rounds, rest = divmod(self.chunks, len(_WORDS))
        return f"{self.id}: " + "".join(_WORDS) * rounds + "".join(_WORDS[:rest])

    @property
    def arguments(self) -> dict[str, object]:
        return {"file_path": f"/home/dev/shop/src/{self.id}.py", "offset": 1, "limit": 200}

    @property
    def signature(self) -> str:
        return _SIGNATURE + self.id


def find_answer_spec(body: bytes) -> AnswerSpec | None:
    """Return the last mark in the body; earlier ones belong to earlier turns."""
    found = _MARK.match(body, max(0, body.rfind(_MARK_START)))
    if found is None:
        return None
    return AnswerSpec(id=found[3].decode(), chunks=int(found[1]), pace_ms=int(found[2]))


def encode_answer(order: AnswerSpec) -> bytes:
    parts: list[dict[str, object]] = [{"text": _THOUGHT, "thought": True}, {"text": order.text}, _call(order)]
    return _encode(_response(parts, finish="STOP"))


def encode_stream(order: AnswerSpec) -> list[bytes]:
    """Server-sent events as Google writes them: one thought, `chunks` of text, one call."""
    first = _event([{"text": f"{order.id}: {_WORDS[0]}"}])
    last = _event([_call(order)], finish="STOP")
    more = _text_events() * -(-order.chunks // len(_WORDS))
    return [_thought_event(), first, *more[1 : order.chunks], last]


@lru_cache
def _thought_event() -> bytes:
    return _event([{"text": _THOUGHT, "thought": True}])


@lru_cache
def _text_events() -> list[bytes]:
    return [_event([{"text": words}]) for words in _WORDS]


def _call(order: AnswerSpec) -> dict[str, object]:
    call = {"id": f"fc{order.id}", "name": CALLED_TOOL, "args": order.arguments}
    return {"functionCall": call, "thoughtSignature": order.signature}


def _event(parts: list[dict[str, object]], finish: str = "") -> bytes:
    return b"data: %b\r\n\r\n" % _encode(_response(parts, finish))


def _response(parts: list[dict[str, object]], finish: str) -> dict[str, object]:
    candidate: dict[str, object] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": _USAGE,
        "modelVersion": MODEL_VERSION,
        "responseId": "qLIXae6fJ_PNxN8P0cvJ4AE",
    }
