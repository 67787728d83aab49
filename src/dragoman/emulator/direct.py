"""Who decides what is answered: a director may replace the model's reply, its chunks or the whole answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.emulator.answer.setting import Setting
from dragoman.emulator.model.respond import Reply
from dragoman.emulator.refusal import Refusal
from dragoman.emulator.routes import Method, Route
from dragoman.emulator.wire import Answer, Framing

Chunk = dict[str, Any]

#: What a director decides about, with the message that the body is; everything else is only looked up.
DIRECTED: Mapping[Method, str] = {
    "generateContent": "GenerateContentRequest",
    "streamGenerateContent": "GenerateContentRequest",
    "countTokens": "CountTokensRequest",
}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request: `raw` is what came, `request` the same in canonical spelling.

    `problem` is the parser's refusal, if it has one; `request` is then the JSON as it came. Only a scene that does
    not validate is played for it.
    """

    route: Route
    request: Mapping[str, Any]
    raw: bytes
    headers: Mapping[str, str]
    framing: Framing = "whole"
    problem: Refusal | None = None


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A way to fail: it changes the chunks before they are framed, the framed answer, or both."""

    name: str
    on_chunks: Callable[[list[Chunk]], list[Chunk]] | None = None
    on_answer: Callable[[Answer, Asked], Answer] | None = None


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """How one request is answered; what is left out is the emulator's own.

    `answer` replaces everything. `chunks` writes the stream from the setting. `reply` is what the model says.
    `pace` turns the framed answer into a slower or otherwise cut one. Faults come last. `validate` False takes
    the request as it is. `signatures` are thought signatures of others that are good here. `on_refused` hears in
    which words validation refused the request, if it did: the scene was not played.
    """

    answer: Answer | None = None
    chunks: Callable[[Setting], list[Chunk]] | None = None
    reply: Reply | None = None
    pace: Callable[[Answer], Answer] | None = None
    faults: Sequence[Fault] = ()
    validate: bool = True
    signatures: frozenset[bytes] = frozenset()
    on_refused: Callable[[str], None] | None = None


class Director(Protocol):
    """Asked once per generateContent, streamGenerateContent and countTokens, before the request is checked further.

    A Refusal it raises is the answer. Files, caches, models and embeddings are answered without it.
    """

    def direct(self, asked: Asked) -> Scene: ...


class NoDirector:
    """Everything is the emulator's own."""

    def direct(self, asked: Asked) -> Scene:
        del asked
        return Scene()
