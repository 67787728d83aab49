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
from dragoman.observe.captures import CapturedAttempt, CapturedRequest

#: Image types that an <img> element shows and that cannot contain scripts.
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MAX_IMAGE_CHARACTERS = 1_000_000


class TurnPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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


class TurnView(msgspec.Struct, frozen=True, kw_only=True):
    """One turn.

    `by` is "client" for the history that the client sent; otherwise the turn belongs to this request: "model"
    for an answer, "gateway" for results of tools that the gateway ran.
    """

    role: Literal["user", "model", "system"]
    by: Literal["client", "model", "gateway"]
    pieces: tuple[TurnPart, ...]


class ToolView(msgspec.Struct, frozen=True):
    name: str
    description: str


class ConversationView(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation as far as it could be decoded; `trouble` describes the part that could not."""

    system: tuple[str, ...] = ()
    tools: tuple[ToolView, ...] = ()
    turns: tuple[TurnView, ...] = ()
    trouble: str = ""


def view_conversation(captured: CapturedRequest, dialect: ClientDialect) -> ConversationView:
    try:
        request = dialect.decode_request(captured.client_request.data, captured.headers).request
    except DragomanError as error:
        return ConversationView(trouble=f"the request could not be read: {error}")
    asked = [_turn_view(message, "client") for message in request.messages]
    answers, trouble = _model_turns(captured, request)
    return ConversationView(
        system=tuple(part.text for part in request.system),
        tools=tuple(ToolView(tool.name, tool.description) for tool in request.tools),
        turns=(*asked, *answers),
        trouble=trouble,
    )


def _model_turns(captured: CapturedRequest, request: Request) -> tuple[list[TurnView], str]:
    """Return the model's turns, each followed by results of gateway tools, and the last error as text."""
    turns: list[TurnView] = []
    trouble = ""
    target = Target(model=captured.record.model or request.model)
    for index, exchanged in enumerate(captured.upstream):
        try:
            pieces = _answer_parts(exchanged, request, target)
        except DragomanError as error:
            trouble = f"Google's answer: {error}"
            continue
        if not pieces:
            continue
        trouble = ""
        turns.append(TurnView(role="model", by="model", pieces=pieces))
        results = _gateway_tool_results(exchanged, captured.upstream[index + 1 : index + 2])
        if results is not None:
            turns.append(_turn_view(results, "gateway"))
    return turns, trouble


def _answer_parts(exchanged: CapturedAttempt, request: Request, target: Target) -> tuple[TurnPart, ...]:
    numbers = iter(range(1_000_000))
    encoded = gemini.encode_request(request, target, lambda: f"call_{next(numbers)}")
    reader = encoded.reader()
    events = reader.feed(exchanged.answer.data) + reader.close()
    return _turn_parts(collect(events).parts)


def _gateway_tool_results(before: CapturedAttempt, after: Iterable[CapturedAttempt]) -> Message | None:
    """Return the results of gateway tools that the next upstream request adds, if it continues this one."""
    for exchanged in after:
        try:
            first, second = (_decode_messages(one) for one in (before, exchanged))
        except DragomanError:
            return None
        last = second[-1] if len(second) > len(first) else None
        if last is not None and any(isinstance(part, ToolResult) for part in last.parts):
            return last
    return None


def _decode_messages(exchanged: CapturedAttempt) -> tuple[Message, ...]:
    return GeminiClient().decode_request(exchanged.request.data, {}).request.messages


def _turn_view(message: Message, by: Literal["client", "gateway"]) -> TurnView:
    return TurnView(role=message.role, by=by, pieces=_turn_parts(message.parts))


def _turn_parts(parts: Iterable[Part]) -> tuple[TurnPart, ...]:
    return tuple(piece for part in parts for piece in _turn_part(part))


def _turn_part(part: Part) -> Iterator[TurnPart]:
    match part:
        case Text():
            if part.text:
                yield TurnPart(kind="text", text=part.text)
        case Thought():
            if part.text:
                yield TurnPart(kind="thought", text=part.text)
        case Media():
            yield _media_part(part)
        case ToolCall():
            yield TurnPart(kind="call", id=part.id, name=part.name, data=_text(part.args))
        case ToolResult():
            yield from _result_part(part)
        case ServerCall():
            name = part.name or part.kind
            yield TurnPart(kind="call", id=part.id, name=name, data=_text(part.args), server=True)
        case ServerResult():
            yield _server_result_part(part)
        case Native():
            yield TurnPart(kind="other", name=part.field, data=_text(part.json))
        case _:
            assert_never(part)


def _media_part(part: Media) -> TurnPart:
    size = len(part.data) * 3 // 4
    shown = part.data if part.mime in _IMAGE_TYPES and len(part.data) <= _MAX_IMAGE_CHARACTERS else ""
    text = part.uri or f"{size:,} bytes"
    return TurnPart(kind="media", mime=part.mime, data=shown, text=text)


def _result_part(part: ToolResult) -> Iterator[TurnPart]:
    text = "\n".join(one.text for one in part.content if isinstance(one, Text))
    data = _text(part.response)
    yield TurnPart(kind="result", id=part.call_id, name=part.name, text=text, data=data, failed=part.is_error)
    yield from (_media_part(one) for one in part.content if isinstance(one, Media))


def _server_result_part(part: ServerResult) -> TurnPart:
    sources = (f"{one.title or one.url}\n{one.url}" for one in part.sources)
    text = "\n".join((*sources, *part.tools, part.output, part.error)).strip()
    return TurnPart(
        kind="result", id=part.call_id, name=part.kind, text=text, failed=bool(part.error), server=True
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
