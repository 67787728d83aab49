"""Messages to `contents`: parts, function responses, signatures."""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from dragoman.dialects.gemini.ids import upstream_id
from dragoman.dialects.gemini.models import Profile
from dragoman.ir import Media, Message, Part, Signature, Text, Thought, ToolCall, ToolResult
from dragoman.notes import Note
from dragoman.schema import NameMap

#: Google's documented word for "this call was not signed by you"; literal on the wire (pains A6, A7).
SENTINEL = "skip_thought_signature_validator"

_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})

#: What `functionResponse.parts` may hold; other media stands beside the response.
_RESULT_MEDIA = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_REMINDER = "<system-reminder>"


class ContentsEncoder:
    """Builds `contents` from repaired messages: each step's results directly behind its calls."""

    def __init__(self, profile: Profile, names: NameMap, origin: str) -> None:
        self._profile = profile
        self._names = names
        self._origin = origin
        self.notes: list[Note] = []

    def encode(self, messages: tuple[Message, ...]) -> list[dict[str, Any]]:
        contents: list[dict[str, Any]] = []
        for message in messages:
            if message.role == "system":
                _add_remark(contents, [self._readable(part) for part in message.parts])
            else:
                parts = [wire for part in message.parts for wire in self._part(self._readable(part))]
                # Responses come first, whatever stands beside them (pain C9).
                parts.sort(key=_is_no_response)
                if parts:
                    contents.append({"role": message.role, "parts": parts})
        if self._profile.signatures:
            self._add_sentinels(contents)
        return contents

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
                return [self._signed({"functionCall": self._call(part)}, part.signature)]
            case ToolResult():
                return self._result(part)
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
        self._note(Note("dropped", "messages", why))
        return Text(text=f"(A file was left out here: {why}.)")

    def _signed(self, wire: dict[str, Any], signature: Signature | None) -> dict[str, Any]:
        if signature is None:
            return wire
        if signature.origin != self._origin:
            self._note_foreign(signature)
            return wire
        return {**wire, "thoughtSignature": signature.data}

    def _note_foreign(self, signature: Signature) -> None:
        why = f"a thought signature of {signature.origin} means nothing to {self._origin}"
        self._note(Note("dropped", "messages", why))

    def _note(self, note: Note) -> None:
        if note not in self.notes:
            self.notes.append(note)

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
        if self._profile.call_ids:
            wire["id"] = upstream_id(result.call_id)
        inside = [part for part in media if self._inside(part)]
        if inside:
            wire["parts"] = [_media(part) for part in inside]
        return [
            {"functionResponse": wire},
            *_beside(name, [part for part in media if not self._inside(part)]),
        ]

    def _inside(self, media: Media) -> bool:
        return self._profile.media_in_results and bool(media.data) and media.mime in _RESULT_MEDIA

    def _add_sentinels(self, contents: list[dict[str, Any]]) -> None:
        """In the current turn the first call of every step must be signed."""
        for index in range(_turn_start(contents) + 1, len(contents)):
            calls = [part for part in contents[index]["parts"] if "functionCall" in part]
            if calls and "thoughtSignature" not in calls[0]:
                calls[0]["thoughtSignature"] = SENTINEL
                why = "no signature is known for this call; Google's sentinel stands in for it"
                self.notes.append(Note("sentinel", f"contents[{index}]", why))


def _is_no_response(wire: dict[str, Any]) -> bool:
    return "functionResponse" not in wire


def _turn_start(contents: list[dict[str, Any]]) -> int:
    for index in range(len(contents) - 1, -1, -1):
        if contents[index]["role"] == "user" and "functionResponse" not in contents[index]["parts"][0]:
            return index
    return -1


def _media(media: Media) -> dict[str, Any]:
    if media.data:
        return {"inlineData": {"mimeType": media.mime, "data": media.data}}
    return {"fileData": {"fileUri": media.uri, **({"mimeType": media.mime} if media.mime else {})}}


def _beside(name: str, media: list[Media]) -> list[dict[str, Any]]:
    if not media:
        return []
    return [{"text": f"Files returned by {name}:"}, *map(_media, media)]


def _add_remark(contents: list[dict[str, Any]], remark: list[Part]) -> None:
    """A remark of the program keeps its place without starting a turn of the user's.

    Behind results it goes inside the last response: the API asks for no text beside responses.
    """
    text = "\n\n".join(part.text for part in remark if isinstance(part, Text))
    if text and not text.startswith(_REMINDER):
        text = f"{_REMINDER}\n{text}\n</system-reminder>"
    parts = [_media(part) for part in remark if isinstance(part, Media)]
    if not contents or contents[-1]["role"] != "user":
        contents.append({"role": "user", "parts": []})
    last = contents[-1]["parts"]
    responses = [part["functionResponse"]["response"] for part in last if "functionResponse" in part]
    if responses and text:
        key = next(iter(responses[-1]))
        responses[-1][key] = f"{responses[-1][key]}\n\n{text}" if responses[-1][key] else text
    elif text:
        parts.insert(0, {"text": text})
    last += parts
    if not last:
        contents.pop()
