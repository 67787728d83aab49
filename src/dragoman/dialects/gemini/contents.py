"""Messages to `contents`: parts, function responses, signatures."""

from __future__ import annotations

import operator
from typing import Any, assert_never

import msgspec

from dragoman.dialects.gemini.ids import upstream_id
from dragoman.dialects.gemini.models import Profile
from dragoman.ir import (
    AS_BROUGHT,
    REMINDER,
    Media,
    Message,
    Native,
    Part,
    Signature,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from dragoman.notes import Note
from dragoman.schema import NameMap

#: Google's documented word for "this call was not signed by you"; literal on the wire (pains A6, A7).
SENTINEL = "skip_thought_signature_validator"

#: The origin of a request that sends no signatures at all.
NOBODY = "nobody"

_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})

#: What `functionResponse.parts` may hold; other media stands beside the response.
_RESULT_MEDIA = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_ENCODER = msgspec.json.Encoder()


class EncodedContent(msgspec.Struct, frozen=True):
    """One content as JSON. `signed` is the same with the sentinel on its first call, where that has no signature."""

    json: msgspec.Raw
    signed: msgspec.Raw | None
    starts_turn: bool
    notes: tuple[Note, ...]


def encode_contents(
    messages: tuple[Message, ...], profile: Profile, names: NameMap, origin: str
) -> tuple[list[msgspec.Raw], list[Note]]:
    """`contents` of repaired messages: each step's results directly behind its calls."""
    contents: list[EncodedContent] = []
    for group in _with_remarks(messages):
        content = _encoded(group, profile, names, origin)
        if content is not None:
            contents.append(content)
    notes = list(dict.fromkeys(note for content in contents for note in content.notes))
    start = max((index for index, content in enumerate(contents) if content.starts_turn), default=-1)
    chosen: list[msgspec.Raw] = []
    for index, content in enumerate(contents):
        if content.signed is not None and index > start:
            why = "no signature is known for this call; Google's sentinel stands in for it"
            notes.append(Note("sentinel", f"contents[{index}]", why))
            chosen.append(content.signed)
        else:
            chosen.append(content.json)
    return chosen, notes


class _Noted(msgspec.Struct, frozen=True):
    """An encoded content and everything it depends on, so that it is used for nothing else."""

    remarks: tuple[Message, ...]
    profile: Profile
    names: NameMap
    origin: str
    content: EncodedContent | None

    def fits(self, remarks: tuple[Message, ...], profile: Profile, names: NameMap, origin: str) -> bool:
        same = self.profile is profile and self.names is names and self.origin == origin
        return same and len(self.remarks) == len(remarks) and all(map(operator.is_, self.remarks, remarks))


def _encoded(
    group: tuple[Message, ...], profile: Profile, names: NameMap, origin: str
) -> EncodedContent | None:
    """A history comes back with every turn; what of it is unchanged is encoded once."""
    first = group[0]
    noted: _Noted | None = first.notebook.get("content")
    if noted is None or not noted.fits(group[1:], profile, names, origin):
        content = ContentEncoder(profile, names, origin).encode(group)
        noted = first.notebook["content"] = _Noted(group[1:], profile, names, origin, content)
    return noted.content


def _with_remarks(messages: tuple[Message, ...]) -> list[tuple[Message, ...]]:
    """Each message with the remarks of the program behind it; behind the model's a remark stands alone."""
    groups: list[tuple[Message, ...]] = []
    for message in messages:
        if message.role == "system" and groups and groups[-1][0].role != "model":
            groups[-1] = (*groups[-1], message)
        else:
            groups.append((message,))
    return groups


class ContentEncoder:
    """Encodes one content: a message and the remarks that go with it."""

    def __init__(self, profile: Profile, names: NameMap, origin: str) -> None:
        self._profile = profile
        self._names = names
        self._origin = origin
        self._notes: list[Note] = []

    def encode(self, group: tuple[Message, ...]) -> EncodedContent | None:
        first, role = group[0], group[0].role
        parts: list[dict[str, Any]] = []
        if role != "system":
            parts = [wire for part in first.parts for wire in self._part(self._readable(part))]
            # Responses come first, whatever stands beside them (pain C9).
            parts.sort(key=_is_no_response)
        for remark in group if role == "system" else group[1:]:
            _add_remark(parts, [self._readable(part) for part in remark.parts])
        if not parts:
            return None
        content = {"role": "model" if role == "model" else "user", "parts": parts}
        json = msgspec.Raw(_ENCODER.encode(content))
        starts_turn = role != "model" and _is_no_response(parts[0])
        return EncodedContent(json, self._sentinel(content, parts), starts_turn, tuple(self._notes))

    def _sentinel(self, content: dict[str, Any], parts: list[dict[str, Any]]) -> msgspec.Raw | None:
        """In the current turn the first call of every step must be signed (pain A6)."""
        call = next((part for part in parts if "functionCall" in part), None)
        if call is None or "thoughtSignature" in call or not self._profile.signatures:
            return None
        call["thoughtSignature"] = SENTINEL
        return msgspec.Raw(_ENCODER.encode(content))

    def _part(self, part: Part) -> list[dict[str, Any]]:
        match part:
            case Text():
                wire = self._signed({"text": part.text}, part.signature)
                return [wire] if part.text or "thoughtSignature" in wire else []
            case Thought():
                # Summaries are not sent back; a signature on one is (pain A2).
                wire = self._signed({"text": part.text, "thought": True}, part.signature)
                return [wire] if "thoughtSignature" in wire else []
            case Media():
                return [_media(part)]
            case ToolCall():
                wire = _with_native({"functionCall": self._call(part)}, part.native)
                return [self._signed(wire, part.signature)]
            case ToolResult():
                return self._result(part)
            case Native():
                return [msgspec.json.decode(part.json)]
            case _:
                assert_never(part)

    def _readable(self, part: Part) -> Part:
        """A file Gemini refuses would end the conversation for ever: the model is told of it instead."""
        if not isinstance(part, Media):
            return part
        if part.mime == "image/jpg":
            return msgspec.structs.replace(part, mime="image/jpeg")
        known = part.mime in _IMAGES or not part.mime.startswith("image/")
        if known and (part.data or part.uri):
            return part
        why = "it is empty" if known else f"Gemini reads no {part.mime}"
        self._notes.append(Note("dropped", "messages", why))
        return Text(text=f"(A file was left out here: {why}.)")

    def _signed(self, wire: dict[str, Any], signature: Signature | None) -> dict[str, Any]:
        if signature is None:
            return wire
        brought = signature.origin == AS_BROUGHT and self._origin != NOBODY
        if signature.origin != self._origin and not brought:
            self._note_foreign(signature)
            return wire
        return {**wire, "thoughtSignature": signature.data}

    def _note_foreign(self, signature: Signature) -> None:
        why = f"a thought signature of {signature.origin} means nothing to {self._origin}"
        self._notes.append(Note("dropped", "messages", why))

    def _call(self, call: ToolCall) -> dict[str, Any]:
        wire: dict[str, Any] = {"name": self._names.to_wire(call.name), "args": msgspec.Raw(call.args)}
        if self._profile.call_ids:
            wire["id"] = upstream_id(call.id)
        return wire

    def _result(self, result: ToolResult) -> list[dict[str, Any]]:
        """`output` and `error` are the keys the API documents; text is never parsed, so never changed."""
        name = self._names.to_wire(result.name)
        content = [self._readable(part) for part in result.content]
        media = [part for part in content if isinstance(part, Media)]
        text = "\n".join(part.text for part in content if isinstance(part, Text))
        if media and not text:
            text = f"{len(media)} file(s) attached."
        wire: dict[str, Any] = {"name": name, "response": {"error" if result.is_error else "output": text}}
        if result.response:
            wire["response"] = msgspec.json.decode(result.response)
        if self._profile.call_ids:
            wire["id"] = upstream_id(result.call_id)
        inside = [part for part in media if self._inside(part)]
        if inside:
            wire["parts"] = [_media(part) for part in inside]
        return [
            _with_native({"functionResponse": wire}, result.native),
            *_beside(name, [part for part in media if not self._inside(part)]),
        ]

    def _inside(self, media: Media) -> bool:
        return self._profile.media_in_results and bool(media.data) and media.mime in _RESULT_MEDIA


def _is_no_response(wire: dict[str, Any]) -> bool:
    return "functionResponse" not in wire


def _with_native(wire: dict[str, Any], native: bytes) -> dict[str, Any]:
    """A call or a response with what else stood in its part; files of both kinds stay inside it."""
    if not native:
        return wire
    (field,) = wire
    rest: dict[str, Any] = msgspec.json.decode(native)
    more = rest.pop(field, {})
    if "parts" in more:
        more["parts"] = [*more["parts"], *wire[field].get("parts", ())]
    return {field: {**wire[field], **more}, **rest}


def _media(media: Media) -> dict[str, Any]:
    if media.data:
        return {"inlineData": {"mimeType": media.mime, "data": media.data}}
    return {"fileData": {"fileUri": media.uri, **({"mimeType": media.mime} if media.mime else {})}}


def _beside(name: str, media: list[Media]) -> list[dict[str, Any]]:
    if not media:
        return []
    return [{"text": f"Files returned by {name}:"}, *map(_media, media)]


def _add_remark(parts: list[dict[str, Any]], remark: list[Part]) -> None:
    """A remark of the program keeps its place without starting a turn of the user's.

    Behind results it goes inside the last response: the API asks for no text beside responses.
    """
    text = "\n\n".join(_as_reminder(part.text) for part in remark if isinstance(part, Text) and part.text)
    responses = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    if responses and text:
        key = next((key for key, value in responses[-1].items() if isinstance(value, str)), "output")
        before = responses[-1].get(key)
        responses[-1][key] = f"{before}\n\n{text}" if before else text
    elif text:
        parts.append({"text": text})
    parts += [_media(part) for part in remark if isinstance(part, Media)]


def _as_reminder(text: str) -> str:
    return text if text.startswith(REMINDER) else f"{REMINDER}\n{text}\n</system-reminder>"
