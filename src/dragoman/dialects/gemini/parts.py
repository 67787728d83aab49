"""Neutral parts to Google's: text, files, function calls and responses, each with its signature."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.gemini.ids import upstream_id
from dragoman.dialects.gemini.models import Profile
from dragoman.dialects.gemini.served import SERVED, say_served
from dragoman.ir import (
    AS_BROUGHT,
    REMINDER,
    Media,
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

#: The origin of a request that sends no signatures at all.
NOBODY = "nobody"

#: The member of a response in JSON that holds a remark of the program.
REMARK = "system_reminder"

_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})

#: What `functionResponse.parts` may hold; other media stands beside the response.
_RESULT_MEDIA = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_ENCODER = msgspec.json.Encoder()
_TEXT = operator.attrgetter("text")

#: A part in Google's words.
WirePart = dict[str, Any]


class Setting(msgspec.Struct, frozen=True, gc=False):
    """What an encoded part depends on besides itself: `names` is compared by identity.

    `served`: Google's own tools are at hand, so it knows again what it wrote of them.
    """

    profile: Profile
    names: NameMap
    origin: str
    served: bool = False

    def same_as(self, other: Setting) -> bool:
        same = self.profile is other.profile and self.names is other.names
        return same and self.origin == other.origin and self.served == other.served


class PartEncoder:
    """Encodes what messages say, one after the other; `notes` tells what got lost, and is the caller's to empty."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.notes: list[Note] = []
        self._profile = setting.profile
        self._names = setting.names
        self._origin = setting.origin
        self._served = setting.served

    def say(self, said: Iterable[Part], kinds: set[type[Part]]) -> list[WirePart]:
        """`kinds` are the types of what is said."""
        parts: list[WirePart] = []
        for part in said if SERVED.isdisjoint(kinds) else say_served(said, self._is_own):
            parts += SAY[type(part)](self, part)
        # Responses come first, whatever stands beside them (pain C9).
        if len(parts) > 1 and not kinds <= _NO_RESPONSES:
            parts.sort(key=_is_no_response)
        return parts

    def add_remark(self, parts: list[WirePart], said: Sequence[Part]) -> None:
        """A remark of the program keeps its place without starting a turn of the user's.

        Behind results it goes inside the last response: the API asks for no text beside responses.
        """
        remark = [
            self._readable(part) if isinstance(part, Media) else part
            for part in say_served(said, self._is_own)
        ]
        text = "\n\n".join(_as_reminder(part.text) for part in remark if isinstance(part, Text) and part.text)
        responses = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        if responses and text:
            # What a tool answered in JSON keeps its members as they are.
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
        if signature is not None and self._is_known(signature):
            return [{"text": text, "thoughtSignature": signature.data}]
        return [{"text": text}] if text else []

    def _thought(self, part: Thought) -> list[WirePart]:
        """Summaries are not sent back; a signature on one is (pain A2)."""
        signature = part.signature
        if signature is None or not self._is_known(signature):
            return []
        return [{"text": part.text, "thought": True, "thoughtSignature": signature.data}]

    def _file(self, part: Media) -> list[WirePart]:
        readable = self._readable(part)
        return [_media(readable) if isinstance(readable, Media) else {"text": readable.text}]

    def _native(self, part: Native) -> list[WirePart]:
        return [_read(part.json)]

    def _readable(self, part: Media) -> Media | Text:
        """A file Gemini refuses would end the conversation for ever: the model is told of it instead."""
        if part.mime == "image/jpg":
            return msgspec.structs.replace(part, mime="image/jpeg")
        known = part.mime in _IMAGES or not part.mime.startswith("image/")
        if known and (part.data or part.uri):
            return part
        why = "it is empty" if known else f"Gemini reads no {part.mime}"
        self.notes.append(Note("dropped", "messages", why))
        return Text(text=f"(A file was left out here: {why}.)")

    def _is_known(self, signature: Signature) -> bool:
        if signature.origin == self._origin:
            return True
        brought = signature.origin == AS_BROUGHT and self._origin != NOBODY
        if not brought:
            self._note_foreign(signature)
        return brought

    def _is_own(self, signature: Signature) -> bool:
        return self._served and self._is_known(signature)

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
        if signature is not None and self._is_known(signature):
            part["thoughtSignature"] = signature.data
        return [part]

    def _result(self, result: ToolResult) -> list[WirePart]:
        """`output` and `error` are the keys the API documents; text is never parsed, so never changed."""
        text, media = self._told(result.content)
        response = (
            self._answered(result) if result.response else {"error" if result.is_error else "output": text}
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
        """To the response, and what must stand beside it."""
        inside = [_media(part) for part in media if self._inside(part)]
        if inside:
            wire["parts"] = inside
        if len(inside) == len(media):
            return []
        beside = [_media(part) for part in media if not self._inside(part)]
        return [{"text": f"Files returned by {wire['name']}:"}, *beside]

    def _told(self, content: Sequence[Text | Media]) -> tuple[str, list[Media]]:
        """The words of a result, and its files."""
        if Media not in map(type, content):  # nearly always
            return "\n".join(map(_TEXT, content)), []
        readable = [self._readable(part) if isinstance(part, Media) else part for part in content]
        media = [part for part in readable if isinstance(part, Media)]
        text = "\n".join(part.text for part in readable if isinstance(part, Text))
        return text or f"{len(media)} file(s) attached.", media

    def _answered(self, result: ToolResult) -> Any:
        """Google reads a `$ref` key anywhere in a response as the name of a file beside it (C5)."""
        response = _read(result.response)
        if result.native or not _has_reference(response):
            return response
        why = "Google would read $ref as the name of a file; sent as text"
        self.notes.append(Note("moved", "messages", why))
        key = "error" if result.is_error else "output"
        said = response[key] if response.keys() == {key} else response
        return {key: _ENCODER.encode(said).decode()}

    def _inside(self, media: Media) -> bool:
        return self._profile.media_in_results and bool(media.data) and media.mime in _RESULT_MEDIA


#: How each part is said; all of them are here.
SAY: dict[type[Part], Callable[[PartEncoder, Any], list[WirePart]]] = {
    Text: PartEncoder._text,
    Thought: PartEncoder._thought,
    Media: PartEncoder._file,
    ToolCall: PartEncoder._call,
    ToolResult: PartEncoder._result,
    Native: PartEncoder._native,
}
_NO_RESPONSES = frozenset({Text, Thought, Media, ToolCall})


def _read(raw: bytes) -> Any:
    """What was passed on unread until now: it may hold a number that no machine has."""
    return jsontext.decode(msgspec.json.decode, raw, "contents")


def _has_reference(value: Any) -> bool:
    """Without recursion: a tool may answer with any depth that JSON has."""
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


def _is_no_response(wire: dict[str, Any]) -> bool:
    return "functionResponse" not in wire


def _with_native(wire: dict[str, Any], native: bytes) -> dict[str, Any]:
    """A call or a response with what else stood in its part; files of both kinds stay inside it."""
    (field,) = wire
    rest: dict[str, Any] = _read(native)
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
