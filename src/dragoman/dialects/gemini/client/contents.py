"""Decode `contents` into neutral messages, and give every call and result an id."""

from __future__ import annotations

import operator
from collections.abc import Callable

import msgspec

from dragoman.dialects.gemini.client.protojson import Object, read_flag, read_list, read_object, read_text
from dragoman.errors import InvalidRequest
from dragoman.incremental.fold import derive, fold
from dragoman.incremental.items import decode_new_items
from dragoman.ir import (
    ANY_ORIGIN,
    Media,
    Message,
    Native,
    Part,
    Role,
    Signature,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)

#: Google documents `user` and `model`; `function` and `tool` are older roles for function responses.
_ROLES: dict[str, Role] = {
    "": "user",
    "user": "user",
    "model": "model",
    "function": "user",
    "tool": "user",
    "system": "system",
}


def decode_contents(raw: bytes | msgspec.Raw) -> tuple[Message, ...]:
    """Decode `contents`, a list or a string; calls and responses without ids are matched by name and order."""
    messages = tuple(decode_new_items("contents", [*map(bytes, elements_of(raw))], decode_content))
    return link_contents(messages) or decode_text_contents(raw)


def elements_of(raw: bytes | msgspec.Raw) -> list[msgspec.Raw]:
    """Return the raw elements of `contents`; none if it is a string."""
    text = bytes(raw).lstrip()
    return [] if text[:1] == b'"' else read_list(text, "contents")


def decode_text_contents(raw: bytes | msgspec.Raw) -> tuple[Message, ...]:
    """Decode contents without elements: a string is one user message; raise `InvalidRequest` otherwise."""
    text = bytes(raw).lstrip()
    if text[:1] != b'"':
        raise InvalidRequest("contents is not specified", where="contents")
    return (Message(role="user", parts=(Text(text=read_text(text, "contents")),)),)


def decode_content(raw: bytes, where: str) -> Message:
    """Decode one content; raise `InvalidRequest` if its role is unknown."""
    content = read_object(raw, where)
    word = read_text(content["role"], f"{where}.role") if "role" in content else ""
    role = _ROLES.get(word)
    if role is None:
        raise InvalidRequest("Please use a valid role: user, model.", where=f"{where}.role")
    wires = read_list(content["parts"], f"{where}.parts") if "parts" in content else []
    parts = [decode_part(wire, f"{where}.parts[{index}]") for index, wire in enumerate(wires)]
    spoken = [part for part in parts if part is not None]
    if role == "system" and not all(isinstance(part, Text) for part in spoken):
        role = "user"  # neutral system messages contain only text
    return Message(role=role, parts=_with_files_inside(spoken))


def decode_part(raw: bytes | msgspec.Raw, where: str) -> Part | None:
    """Decode a part; one that the neutral model cannot represent becomes `Native`, an empty one None."""
    part = read_object(raw, where)
    known = next((kind for kind in _READERS if kind in part), None)
    if known is None:
        return Native(json=bytes(raw)) if part.keys() - {"thought"} else None
    allowed, read = _READERS[known]
    if allowed and part.keys() - allowed:
        return Native(json=bytes(raw))
    return read(part, where) or Native(json=bytes(raw))


def _signature(part: Object, where: str) -> Signature | None:
    data = (
        read_text(part["thoughtSignature"], f"{where}.thoughtSignature") if "thoughtSignature" in part else ""
    )
    return Signature(data, ANY_ORIGIN) if data else None


def _text(part: Object, where: str) -> Part:
    kind = Thought if read_flag(part.get("thought")) else Text
    return kind(text=read_text(part["text"], f"{where}.text"), signature=_signature(part, where))


def _call(part: Object, where: str) -> Part | None:
    where = f"{where}.functionCall"
    call = read_object(part["functionCall"], where)
    name = read_text(call["name"], f"{where}.name") if "name" in call else ""
    if not name and call.keys() - {"id", "args"}:  # a piece of a streamed call
        return None
    if not name:
        raise InvalidRequest("a function call needs a name", where=where)
    args = bytes(call.get("args", b"{}"))
    if not args.startswith(b"{"):
        raise InvalidRequest("the arguments of a call are an object", where=f"{where}.args")
    own = read_text(call["id"], f"{where}.id") if "id" in call else ""
    native = _other_members(part, call, "functionCall", frozenset({"id", "name", "args"}))
    return ToolCall(id=own, name=name, args=args, signature=_signature(part, where), native=native)


def _response(part: Object, where: str) -> Part | None:
    where = f"{where}.functionResponse"
    response = read_object(part["functionResponse"], where)
    answer = bytes(response.get("response", b"{}"))
    if not answer.startswith(b"{"):
        raise InvalidRequest("the response of a function is an object", where=f"{where}.response")
    files = read_list(response["parts"], f"{where}.parts") if "parts" in response else []
    inside = [decode_part(file, f"{where}.parts[{index}]") for index, file in enumerate(files)]
    content = tuple(file for file in inside if isinstance(file, Media))
    known = _RESPONSE_FIELDS
    if len(content) != len(inside):  # files with a `displayName`, which the response refers to
        content, known = (), known - {"parts"}
    return ToolResult(
        call_id=read_text(response["id"], f"{where}.id") if "id" in response else "",
        name=read_text(response["name"], f"{where}.name") if "name" in response else "",
        content=content,
        response=answer,
        native=_other_members(part, response, "functionResponse", known),
    )


_RESPONSE_FIELDS = frozenset({"id", "name", "response", "parts"})


def _other_members(part: Object, inner: Object, field: str, known: frozenset[str]) -> bytes:
    """Return the other members of a call or response part as JSON, to be sent back with it.

    The part cannot become `Native`, because calls and responses must stay paired.
    """
    rest = {name: raw for name, raw in part.items() if name not in (field, "thoughtSignature")}
    more = {name: raw for name, raw in inner.items() if name not in known}
    if more:
        rest[field] = msgspec.Raw(msgspec.json.encode(more))
    return msgspec.json.encode(rest) if rest else b""


def _inline(part: Object, where: str) -> Part | None:
    where = f"{where}.inlineData"
    blob = read_object(part["inlineData"], where)
    if blob.keys() != {"mimeType", "data"}:
        return None
    return Media(mime=read_text(blob["mimeType"], where), data=read_text(blob["data"], where))


def _file(part: Object, where: str) -> Part | None:
    where = f"{where}.fileData"
    file = read_object(part["fileData"], where)
    if "fileUri" not in file or file.keys() - {"mimeType", "fileUri"}:
        return None
    mime = read_text(file["mimeType"], where) if "mimeType" in file else ""
    return Media(mime=mime, uri=read_text(file["fileUri"], where))


#: The member that identifies a part -> the members it may have (empty: any), and its decoder.
_READERS: dict[str, tuple[frozenset[str], Callable[[Object, str], Part | None]]] = {
    "functionCall": (frozenset(), _call),
    "functionResponse": (frozenset(), _response),
    "text": (frozenset({"text", "thought", "thoughtSignature"}), _text),
    "inlineData": (frozenset({"inlineData"}), _inline),
    "fileData": (frozenset({"fileData"}), _file),
}


def _with_files_inside(parts: list[Part]) -> tuple[Part, ...]:
    """Move files next to function responses into the last response; otherwise they would start a new turn."""
    last = max((index for index, part in enumerate(parts) if isinstance(part, ToolResult)), default=-1)
    result = parts[last] if last >= 0 else None
    if not isinstance(result, ToolResult):
        return tuple(parts)
    files = tuple(part for part in parts if isinstance(part, Media))
    parts[last] = msgspec.structs.replace(result, content=result.content + files)
    return tuple(part for part in parts if not isinstance(part, Media))


class _Link(msgspec.Struct, frozen=True):
    """A message with all its ids, and the state after it.

    `message` is None for the first message if it is unchanged, see `fold`. `waiting` are the calls without a result;
    `answered` is true once results or another turn followed them.
    """

    index: int = -1
    message: Message | None = None
    waiting: tuple[ToolCall, ...] = ()
    answered: bool = False


_LINKED = operator.attrgetter("message")


def link_contents(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Give every call and result an id: a result without one answers the next waiting call of its name."""
    links = [*map(_LINKED, fold(messages, "links", _Link(), _link))]
    return (links[0] or messages[0], *links[1:]) if links else ()


def _link(before: _Link, message: Message) -> _Link:
    index, waiting, answered = before.index + 1, before.waiting, before.answered
    linked = message
    if any(isinstance(part, ToolCall) for part in message.parts):
        linked = _with_call_ids(message, index)
        calls = tuple(part for part in linked.parts if isinstance(part, ToolCall))
        waiting, answered = (calls if answered else waiting + calls), False
    elif any(isinstance(part, ToolResult) for part in message.parts):
        linked = _with_result_ids(message, waiting)
        given = {part.call_id for part in linked.parts if isinstance(part, ToolResult)}
        waiting, answered = tuple(call for call in waiting if call.id not in given), True
    else:  # calls do not wait beyond the next user turn
        answered = answered or message.role == "user"
    return _Link(index, None if index == 0 and linked is message else linked, waiting, answered)


def _with_call_ids(message: Message, index: int) -> Message:
    """Give calls without an id one that is made of their position."""
    if all(part.id for part in message.parts if isinstance(part, ToolCall)):
        return message
    return derive(message, "numbered", index, _number_calls, message, index)


def _number_calls(message: Message, index: int) -> Message:
    parts = (
        msgspec.structs.replace(part, id=f"call-{index}-{place}")
        if isinstance(part, ToolCall) and not part.id
        else part
        for place, part in enumerate(message.parts)
    )
    return Message(role=message.role, parts=tuple(parts))


def _with_result_ids(message: Message, waiting: tuple[ToolCall, ...]) -> Message:
    """Give results without an id the id of the call they answer."""
    if all(part.call_id for part in message.parts if isinstance(part, ToolResult)):
        return message
    calls = tuple((call.id, call.name) for call in waiting)
    return derive(message, "answering", calls, _number_results, message, waiting)


def _number_results(message: Message, waiting: tuple[ToolCall, ...]) -> Message:
    return Message(role=message.role, parts=_addressed(message.parts, waiting))


def _addressed(parts: tuple[Part, ...], waiting: tuple[ToolCall, ...]) -> tuple[Part, ...]:
    """Match results to calls, first by the name of the function, then by order."""
    given = {part.call_id for part in parts if isinstance(part, ToolResult)}
    left = [call for call in waiting if call.id not in given]
    addressed = list(parts)
    for by_name in (True, False):
        for index, part in enumerate(addressed):
            if not isinstance(part, ToolResult) or part.call_id:
                continue
            call = next((call for call in left if call.name == part.name or not by_name), None)
            if call is not None:
                left.remove(call)
                addressed[index] = msgspec.structs.replace(part, call_id=call.id)
    return tuple(addressed)
