"""A captured request as a readable conversation, decoded from any dialect through the neutral model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, assert_never

import msgspec

from dragoman.dialects import gemini
from dragoman.dialects.base import ClientDialect, Target
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.errors import DragomanError
from dragoman.ir import (
    Media,
    Message,
    Native,
    Part,
    Request,
    ServerCall,
    ServerResult,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    collect,
)
from dragoman.observe.captures import Captured, Exchanged

#: Image types that an <img> element shows and that cannot contain scripts.
_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MAX_PICTURE_CHARACTERS = 1_000_000


class Piece(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One part of a turn.

    `data` is JSON text, or the base64 of an image that can be shown.
    """

    kind: Literal["text", "thought", "call", "result", "media", "other"]
    text: str = ""
    id: str = ""
    name: str = ""
    data: str = ""
    mime: str = ""
    failed: bool = False
    server: bool = False  # run by the model provider


class TurnShown(msgspec.Struct, frozen=True, kw_only=True):
    """One turn.

    `by` is "client" for the history that the client sent; otherwise the turn belongs to this request: "model"
    for an answer, "gateway" for results of tools that the gateway ran.
    """

    role: Literal["user", "model", "system"]
    by: Literal["client", "model", "gateway"]
    pieces: tuple[Piece, ...]


class ToolShown(msgspec.Struct, frozen=True):
    name: str
    description: str


class ConversationShown(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation as far as it could be decoded; `trouble` describes the part that could not."""

    system: tuple[str, ...] = ()
    tools: tuple[ToolShown, ...] = ()
    turns: tuple[TurnShown, ...] = ()
    trouble: str = ""


def show_conversation(captured: Captured, dialect: ClientDialect) -> ConversationShown:
    try:
        request = dialect.decode_request(captured.client_request.data, captured.headers).request
    except DragomanError as error:
        return ConversationShown(trouble=f"the request could not be read: {error}")
    asked = [_turn(message, "client") for message in request.messages]
    answers, trouble = _answers(captured, request)
    return ConversationShown(
        system=tuple(part.text for part in request.system),
        tools=tuple(ToolShown(tool.name, tool.description) for tool in request.tools),
        turns=(*asked, *answers),
        trouble=trouble,
    )


def _answers(captured: Captured, request: Request) -> tuple[list[TurnShown], str]:
    """Return the model's turns, each followed by results of gateway tools, and the last error as text."""
    turns: list[TurnShown] = []
    trouble = ""
    target = Target(model=captured.record.model or request.model)
    for index, exchanged in enumerate(captured.upstream):
        try:
            pieces = _answer_pieces(exchanged, request, target)
        except DragomanError as error:
            trouble = f"Google's answer: {error}"
            continue
        if not pieces:
            continue
        trouble = ""
        turns.append(TurnShown(role="model", by="model", pieces=pieces))
        results = _own_results(exchanged, captured.upstream[index + 1 : index + 2])
        if results is not None:
            turns.append(_turn(results, "gateway"))
    return turns, trouble


def _answer_pieces(exchanged: Exchanged, request: Request, target: Target) -> tuple[Piece, ...]:
    numbers = iter(range(1_000_000))
    encoded = gemini.encode_request(request, target, lambda: f"call_{next(numbers)}")
    reader = encoded.reader()
    events = reader.feed(exchanged.answer.data) + reader.close()
    return _pieces(collect(events).parts)


def _own_results(before: Exchanged, after: Iterable[Exchanged]) -> Message | None:
    """Return the results of gateway tools that the next upstream request adds, if it continues this one."""
    for exchanged in after:
        try:
            first, second = (_messages(one) for one in (before, exchanged))
        except DragomanError:
            return None
        last = second[-1] if len(second) > len(first) else None
        if last is not None and any(isinstance(part, ToolResult) for part in last.parts):
            return last
    return None


def _messages(exchanged: Exchanged) -> tuple[Message, ...]:
    return GeminiClient().decode_request(exchanged.request.data, {}).request.messages


def _turn(message: Message, by: Literal["client", "gateway"]) -> TurnShown:
    return TurnShown(role=message.role, by=by, pieces=_pieces(message.parts))


def _pieces(parts: Iterable[Part]) -> tuple[Piece, ...]:
    return tuple(piece for part in parts for piece in _shown(part))


def _shown(part: Part) -> Iterator[Piece]:
    match part:
        case Text():
            if part.text:
                yield Piece(kind="text", text=part.text)
        case Thought():
            if part.text:
                yield Piece(kind="thought", text=part.text)
        case Media():
            yield _media(part)
        case ToolCall():
            yield Piece(kind="call", id=part.id, name=part.name, data=_text(part.args))
        case ToolResult():
            yield from _result(part)
        case ServerCall():
            name = part.name or part.kind
            yield Piece(kind="call", id=part.id, name=name, data=_text(part.args), server=True)
        case ServerResult():
            yield _server_result(part)
        case Native():
            yield Piece(kind="other", name=part.field, data=_text(part.json))
        case _:
            assert_never(part)


def _media(part: Media) -> Piece:
    size = len(part.data) * 3 // 4
    shown = part.data if part.mime in _PICTURES and len(part.data) <= _MAX_PICTURE_CHARACTERS else ""
    text = part.uri or f"{size:,} bytes"
    return Piece(kind="media", mime=part.mime, data=shown, text=text)


def _result(part: ToolResult) -> Iterator[Piece]:
    text = "\n".join(one.text for one in part.content if isinstance(one, Text))
    data = _text(part.response)
    yield Piece(kind="result", id=part.call_id, name=part.name, text=text, data=data, failed=part.is_error)
    yield from (_media(one) for one in part.content if isinstance(one, Media))


def _server_result(part: ServerResult) -> Piece:
    sources = (f"{one.title or one.url}\n{one.url}" for one in part.sources)
    text = "\n".join((*sources, *part.tools, part.output, part.error)).strip()
    return Piece(
        kind="result", id=part.call_id, name=part.kind, text=text, failed=bool(part.error), server=True
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
