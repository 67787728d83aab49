"""Encode neutral parts as Gemini parts: text, files, function calls and responses, with their signatures.

Server tool calls and results of a history become Google's original parts if the upstream accepts them, and text
otherwise.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.gemini.models import ModelProfile
from dragoman.dialects.gemini.wire import upstream_id
from dragoman.ir import (
    ANY_ORIGIN,
    REMINDER,
    Media,
    Native,
    Part,
    ServerCall,
    ServerKind,
    ServerResult,
    Signature,
    Source,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from dragoman.notes import Note
from dragoman.schema import NameMap

#: A part that Gemini can represent.
EncodablePart = Text | Thought | Media | ToolCall | ToolResult | Native

#: Parts that `say_served` replaces; most messages contain neither.
SERVER_TOOL_PARTS = frozenset({ServerCall, ServerResult})
_decode_own = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode


def encode_server_tools(
    parts: Iterable[Part], is_own: Callable[[Signature], bool]
) -> Iterator[EncodablePart]:
    """Yield the parts with server calls and results replaced by Google's own parts or by text.

    `is_own` decides by the signature of a call whether Google accepts the original parts.
    """
    calls: dict[str, ServerCall] = {}
    replayed: set[str] = set()
    for part in parts:
        if isinstance(part, ServerCall):
            own = (
                _own_parts(part.signature) if part.signature is not None and is_own(part.signature) else None
            )
            if own is None:
                calls[part.id] = part
            else:
                replayed.add(part.id)
                yield from own
        elif isinstance(part, ServerResult):
            if part.call_id not in replayed:
                yield Text(text=_as_text(part.kind, calls.pop(part.call_id, None), part))
        else:
            yield part
    yield from (Text(text=_as_text(call.kind, call, None)) for call in calls.values())


def _own_parts(signature: Signature) -> list[Native] | None:
    """Return the original parts, or None if the signature cannot be decoded.

    The first of several parallel calls has the parts of all; the others have an empty list.
    """
    try:
        return [Native(json=msgspec.json.encode(part)) for part in _decode_own(signature.data)]
    except msgspec.DecodeError:
        return None


def _as_text(kind: ServerKind, call: ServerCall | None, result: ServerResult | None) -> str:
    detail = f": {_describe_call(call)}" if call is not None else ""
    lines = (
        [*map(_describe_source, result.sources), result.output, result.error]
        if result is not None
        else ["no result"]
    )
    return "\n".join([f"[{kind}{detail}]", *filter(None, lines), ""])


def _describe_call(call: ServerCall) -> str:
    """Return the label and name of a call, and its only argument or all arguments as JSON."""
    args: dict[str, Any] = msgspec.json.decode(call.args)
    (subject,) = args.values() if len(args) == 1 else (None,)
    if isinstance(subject, list):
        subject = "; ".join(map(str, subject))
    arguments = subject if isinstance(subject, str) else call.args.decode()
    return " ".join(filter(None, (call.label, call.name if call.name != call.kind else "", arguments)))


def _describe_source(source: Source) -> str:
    return " ".join(filter(None, (source.title, f"<{source.url}>", source.text, source.error)))


#: Origin for a request that sends no signatures at all: no signature matches it.
NOBODY = "nobody"

#: The member that a system reminder is added under when the response of a tool is a JSON object.
REMARK = "system_reminder"

_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})

#: Media types allowed in `functionResponse.parts`; other media is sent in parts after the response.
_RESULT_MEDIA = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_ENCODER = msgspec.json.Encoder()
_TEXT = operator.attrgetter("text")

#: A Gemini part, before it is encoded as JSON.
WirePart = dict[str, Any]


class EncodingContext(msgspec.Struct, frozen=True, gc=False):
    """Everything besides the part itself that its encoding depends on.

    `served` is true if the request offers Google's built-in tools: only then does Google accept its own
    `toolCall` and `toolResponse` parts in the history.
    """

    profile: ModelProfile
    names: NameMap
    origin: str
    served: bool = False


class PartEncoder:
    """Encodes the parts of one message after the other.

    `notes` collects the losses; the caller clears it between messages.
    """

    def __init__(self, setting: EncodingContext) -> None:
        self.setting = setting
        self.notes: list[Note] = []
        self._profile = setting.profile
        self._names = setting.names
        self._origin = setting.origin
        self._served = setting.served

    def encode(self, said: Iterable[Part], kinds: set[type[Part]]) -> list[WirePart]:
        """Encode the parts of a message; `kinds` is the set of their types."""
        parts: list[WirePart] = []
        for part in (
            said if SERVER_TOOL_PARTS.isdisjoint(kinds) else encode_server_tools(said, self._can_replay)
        ):
            parts += ENCODERS[type(part)](self, part)
        # Google wants function responses before all other parts (known problem C9).
        if len(parts) > 1 and not kinds <= _NOT_RESPONSES:
            parts.sort(key=_is_not_response)
        return parts

    def add_remark(self, parts: list[WirePart], said: Sequence[Part]) -> None:
        """Add a system message to the encoded `parts` of the message before it, as a system reminder.

        A separate content would start a new user turn. After tool results the text goes inside the last
        response, because the API asks for no text next to function responses.
        """
        remark = [
            self._readable(part) if isinstance(part, Media) else part
            for part in encode_server_tools(said, self._can_replay)
        ]
        text = "\n\n".join(_as_reminder(part.text) for part in remark if isinstance(part, Text) and part.text)
        responses = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        if responses and text:
            # Do not change the members of a JSON response: add one.
            key = next(
                (key for key in ("output", "error") if isinstance(responses[-1].get(key), str)), REMARK
            )
            before = responses[-1].get(key)
            responses[-1][key] = f"{before}\n\n{text}" if before else text
        elif text:
            parts.append({"text": text})
        parts += [_media(part) for part in remark if isinstance(part, Media)]

    def _text(self, part: Text) -> list[WirePart]:
        text, signature = part.text, part.signature
        if signature is not None and self._is_accepted(signature):
            return [{"text": text, "thoughtSignature": signature.data}]
        return [{"text": text}] if text else []

    def _thought(self, part: Thought) -> list[WirePart]:
        """Encode a thought only if it has a signature: summaries are not sent back (known problem A2)."""
        signature = part.signature
        if signature is None or not self._is_accepted(signature):
            return []
        return [{"text": part.text, "thought": True, "thoughtSignature": signature.data}]

    def _file(self, part: Media) -> list[WirePart]:
        readable = self._readable(part)
        return [_media(readable) if isinstance(readable, Media) else {"text": readable.text}]

    def _native(self, part: Native) -> list[WirePart]:
        return [_decode_json(part.json)]

    def _readable(self, part: Media) -> Media | Text:
        """Replace a file that Gemini rejects by a text that says so.

        The file stays in the history, so every later request of the conversation would fail because of it.
        """
        if part.mime == "image/jpg":
            return msgspec.structs.replace(part, mime="image/jpeg")
        known = part.mime in _IMAGES or not part.mime.startswith("image/")
        if known and (part.data or part.uri):
            return part
        why = "it is empty" if known else f"Gemini reads no {part.mime}"
        self.notes.append(Note("dropped", "messages", why))
        return Text(text=f"(A file was left out here: {why}.)")

    def _is_accepted(self, signature: Signature) -> bool:
        """Whether the upstream accepts this signature; add a note if it does not.

        It accepts its own, and those that a Gemini client sends itself are left for Google to judge.
        """
        if signature.origin == self._origin:
            return True
        brought = signature.origin == ANY_ORIGIN and self._origin != NOBODY
        if not brought:
            self._note_foreign(signature)
        return brought

    def _can_replay(self, signature: Signature) -> bool:
        """Whether Google's own server tool parts can be sent back."""
        return self._served and self._is_accepted(signature)

    def _note_foreign(self, signature: Signature) -> None:
        why = f"a thought signature of {signature.origin} means nothing to {self._origin}"
        self.notes.append(Note("dropped", "messages", why))

    def _call(self, call: ToolCall) -> list[WirePart]:
        wire: dict[str, Any] = {"name": self._names.to_wire(call.name), "args": msgspec.Raw(call.args)}
        if self._profile.call_ids:
            wire["id"] = upstream_id(call.id)
        part: WirePart = {"functionCall": wire}
        if call.native:
            part = _with_native(part, call.native)
        signature = call.signature
        if signature is not None and self._is_accepted(signature):
            part["thoughtSignature"] = signature.data
        return [part]

    def _result(self, result: ToolResult) -> list[WirePart]:
        """Encode a result under the documented keys `output` and `error`; text is never parsed as JSON."""
        text, media = self._split_result(result.content)
        response = (
            self._response(result) if result.response else {"error" if result.is_error else "output": text}
        )
        wire: dict[str, Any] = {"name": self._names.to_wire(result.name), "response": response}
        if self._profile.call_ids:
            wire["id"] = upstream_id(result.call_id)
        beside = self._add_files(wire, media) if media else ()
        part: WirePart = {"functionResponse": wire}
        if result.native:
            part = _with_native(part, result.native)
        return [part, *beside] if beside else [part]

    def _add_files(self, wire: dict[str, Any], media: list[Media]) -> list[WirePart]:
        """Add files to the response `wire`; return the parts for those that it cannot hold."""
        inside = [_media(part) for part in media if self._fits_in_response(part)]
        if inside:
            wire["parts"] = inside
        if len(inside) == len(media):
            return []
        beside = [_media(part) for part in media if not self._fits_in_response(part)]
        return [{"text": f"Files returned by {wire['name']}:"}, *beside]

    def _split_result(self, content: Sequence[Text | Media]) -> tuple[str, list[Media]]:
        """Return the text of a result and its files."""
        if Media not in map(type, content):  # the usual case
            return "\n".join(map(_TEXT, content)), []
        readable = [self._readable(part) if isinstance(part, Media) else part for part in content]
        media = [part for part in readable if isinstance(part, Media)]
        text = "\n".join(part.text for part in readable if isinstance(part, Text))
        return text or f"{len(media)} file(s) attached.", media

    def _response(self, result: ToolResult) -> Any:
        """Return the JSON response of a tool, as text if it contains a `$ref` key.

        Google reads `$ref` anywhere in a response as a reference to a file in `parts` (known problem C5).
        """
        response = _decode_json(result.response)
        if result.native or not _has_reference(response):
            return response
        why = "Google would read $ref as the name of a file; sent as text"
        self.notes.append(Note("moved", "messages", why))
        key = "error" if result.is_error else "output"
        said = response[key] if response.keys() == {key} else response
        return {key: _ENCODER.encode(said).decode()}

    def _fits_in_response(self, media: Media) -> bool:
        return self._profile.media_in_results and bool(media.data) and media.mime in _RESULT_MEDIA


#: The encoder of each type of part.
ENCODERS: dict[type[Part], Callable[[PartEncoder, Any], list[WirePart]]] = {
    Text: PartEncoder._text,
    Thought: PartEncoder._thought,
    Media: PartEncoder._file,
    ToolCall: PartEncoder._call,
    ToolResult: PartEncoder._result,
    Native: PartEncoder._native,
}
_NOT_RESPONSES = frozenset({Text, Thought, Media, ToolCall})


def _decode_json(raw: bytes) -> Any:
    """Decode JSON that has not been parsed before; it may contain numbers out of range."""
    return jsontext.decode(msgspec.json.decode, raw, "contents")


def _has_reference(value: Any) -> bool:
    """Whether `$ref` is a key anywhere in `value`; not recursive, because a tool's answer may nest deeply."""
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if "$ref" in node:
                return True
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return False


def _is_not_response(wire: dict[str, Any]) -> bool:
    return "functionResponse" not in wire


def _with_native(wire: dict[str, Any], native: bytes) -> dict[str, Any]:
    """Merge the fields that the client sent besides the known ones into a call or response part."""
    (field,) = wire
    rest: dict[str, Any] = _decode_json(native)
    more = rest.pop(field, {})
    if "parts" in more:
        more["parts"] = [*more["parts"], *wire[field].get("parts", ())]
    return {field: {**wire[field], **more}, **rest}


def _media(media: Media) -> dict[str, Any]:
    if media.data:
        return {"inlineData": {"mimeType": media.mime, "data": media.data}}
    return {"fileData": {"fileUri": media.uri, **({"mimeType": media.mime} if media.mime else {})}}


def _as_reminder(text: str) -> str:
    return text if text.startswith(REMINDER) else f"{REMINDER}\n{text}\n</system-reminder>"
