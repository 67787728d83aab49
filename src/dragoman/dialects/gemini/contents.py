"""Messages to `contents`: parts, function responses, signatures."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.gemini.ids import upstream_id
from dragoman.dialects.gemini.models import Profile
from dragoman.dialects.gemini.served import Sayable, say_served
from dragoman.ir import (
    AS_BROUGHT,
    REMINDER,
    Course,
    Media,
    Message,
    Native,
    Signature,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    keep_course,
    take_course,
)
from dragoman.notes import Note
from dragoman.schema import NameMap

#: Google's documented word for "this call was not signed by you"; literal on the wire (pains A6, A7).
SENTINEL = "skip_thought_signature_validator"

#: The origin of a request that sends no signatures at all.
NOBODY = "nobody"

#: The member of a response in JSON that holds a remark of the program.
REMARK = "system_reminder"

_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})

#: What `functionResponse.parts` may hold; other media stands beside the response.
_RESULT_MEDIA = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_ENCODER = msgspec.json.Encoder()


class Setting(msgspec.Struct, frozen=True):
    """What an encoded content depends on besides its messages: `names` is compared by identity.

    `served`: Google's own tools are at hand, so it knows again what it wrote of them.
    """

    profile: Profile
    names: NameMap
    origin: str
    served: bool = False

    def same_as(self, other: Setting) -> bool:
        same = self.profile is other.profile and self.names is other.names
        return same and self.origin == other.origin and self.served == other.served


class EncodedContent(msgspec.Struct, frozen=True):
    """One content as JSON. `signed` is the same with the sentinel on its first call, where that has no signature."""

    json: msgspec.Raw
    signed: msgspec.Raw | None
    starts_turn: bool
    notes: tuple[Note, ...]


def encode_contents(messages: tuple[Message, ...], setting: Setting) -> tuple[list[msgspec.Raw], list[Note]]:
    """`contents` of repaired messages: each step's results directly behind its calls."""
    contents = _contents(messages, setting)
    notes = list(dict.fromkeys(chain.from_iterable(map(_NOTES, contents))))
    chosen: list[msgspec.Raw] = list(map(_JSON, contents))
    start = bytes(map(_STARTS_TURN, contents)).rfind(1) + 1
    for index, signed in enumerate(map(_SIGNED, contents[start:]), start):
        if signed is not None:
            why = "no signature is known for this call; Google's sentinel stands in for it"
            notes.append(Note("sentinel", f"contents[{index}]", why))
            chosen[index] = signed
    return chosen, notes


_JSON, _SIGNED, _STARTS_TURN, _NOTES = map(operator.attrgetter, ("json", "signed", "starts_turn", "notes"))
_ROLE, _TEXT = map(operator.attrgetter, ("role", "text"))


def _contents(messages: tuple[Message, ...], setting: Setting) -> list[EncodedContent]:
    """A history comes back with every turn: only what is new is looked at.

    Of a message the content is worked out that begins with it; of a remark that goes along with another, nothing.
    """
    if not messages:
        return []
    course: Course[EncodedContent | None] = take_course(messages, "contents")
    if course.setting is None or not setting.same_as(course.setting):
        course = Course(setting)
    encoder = ContentEncoder(course.setting)
    start = max(1, _resume(messages, 1 + len(course.worked)))
    course.cut(start - 1)
    end = _end(messages, 0)
    first = _encoded(messages[:end], encoder)
    worked: list[EncodedContent | None] = [None] * (end - start)
    for group in _groups(messages, max(start, end)):
        worked += (_encoded(group, encoder), *[None] * (len(group) - 1))
    course.extend(messages[start:], worked)
    keep_course(messages, "contents", course)
    return [*filter(None, (first, *course.worked))]


def _groups(messages: tuple[Message, ...], start: int) -> list[tuple[Message, ...]]:
    """From there on, each message with the remarks that go along with it."""
    new = messages[start:]
    if "system" not in map(_ROLE, new):  # nearly always
        return list(zip(new, strict=True))
    groups: list[tuple[Message, ...]] = []
    while start < len(messages):
        end = _end(messages, start)
        groups.append(messages[start:end])
        start = end
    return groups


def _end(messages: tuple[Message, ...], start: int) -> int:
    """A message goes with the remarks of the program behind it; behind the model's a remark stands alone."""
    end = start + 1
    if messages[start].role != "model":
        while end < len(messages) and messages[end].role == "system":
            end += 1
    return end


def _resume(messages: tuple[Message, ...], known: int) -> int:
    """Where to go on: a new remark may go along with what was the last content until now."""
    while 0 < known < len(messages) and messages[known].role == "system":
        known -= 1
    return known


class _Noted(msgspec.Struct, frozen=True):
    """An encoded content and everything it depends on, so that it is used for nothing else."""

    remarks: tuple[Message, ...]
    setting: Setting
    content: EncodedContent | None

    def fits(self, remarks: tuple[Message, ...], setting: Setting) -> bool:
        same = self.setting is setting or self.setting.same_as(setting)
        return same and len(self.remarks) == len(remarks) and all(map(operator.is_, self.remarks, remarks))


def _encoded(group: tuple[Message, ...], encoder: ContentEncoder) -> EncodedContent | None:
    """A history comes back with every turn; what of it is unchanged is encoded once."""
    notebook = group[0].notebook
    noted: _Noted | None = notebook.get("content")
    if noted is None or not noted.fits(group[1:], encoder.setting):
        noted = notebook["content"] = _Noted(group[1:], encoder.setting, encoder.encode(group))
    return noted.content


class ContentEncoder:
    """Encodes contents one by one: a message and the remarks that go with it."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._profile = setting.profile
        self._names = setting.names
        self._origin = setting.origin
        self._served = setting.served
        self._notes: list[Note] = []

    def encode(self, group: tuple[Message, ...]) -> EncodedContent | None:
        self._notes = []
        said, role = group[0].parts, group[0].role
        parts: list[dict[str, Any]] = []
        if role != "system":
            for part in say_served(said, self._is_own):
                parts += SAY[type(part)](self, part)
            # Responses come first, whatever stands beside them (pain C9).
            if len(parts) > 1 and not _NO_RESPONSES.issuperset(map(type, said)):
                parts.sort(key=_is_no_response)
        for remark in group if role == "system" else group[1:]:
            _add_remark(parts, self._remark(remark))
        if not parts:
            return None
        content = {"role": "model" if role == "model" else "user", "parts": parts}
        json = msgspec.Raw(_ENCODER.encode(content))
        starts_turn = role != "model" and _is_no_response(parts[0])
        return EncodedContent(json, self._sentinel(content, parts), starts_turn, tuple(self._notes))

    def _sentinel(self, content: dict[str, Any], parts: list[dict[str, Any]]) -> msgspec.Raw | None:
        """In the current turn the first call of every step must be signed (pain A6)."""
        for part in parts:
            if "functionCall" in part:
                if "thoughtSignature" in part or not self._profile.signatures:
                    return None
                part["thoughtSignature"] = SENTINEL
                return msgspec.Raw(_ENCODER.encode(content))
        return None

    def _text(self, part: Text) -> list[dict[str, Any]]:
        if part.signature is None:
            return [{"text": part.text}] if part.text else []
        wire = self._signed({"text": part.text}, part.signature)
        return [wire] if part.text or "thoughtSignature" in wire else []

    def _thought(self, part: Thought) -> list[dict[str, Any]]:
        """Summaries are not sent back; a signature on one is (pain A2)."""
        wire = self._signed({"text": part.text, "thought": True}, part.signature)
        return [wire] if "thoughtSignature" in wire else []

    def _file(self, part: Media) -> list[dict[str, Any]]:
        readable = self._readable(part)
        return [_media(readable) if isinstance(readable, Media) else {"text": readable.text}]

    def _native(self, part: Native) -> list[dict[str, Any]]:
        return [_read(part.json)]

    def _readable(self, part: Media) -> Media | Text:
        """A file Gemini refuses would end the conversation for ever: the model is told of it instead."""
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
        return {**wire, "thoughtSignature": signature.data} if self._is_known(signature) else wire

    def _is_known(self, signature: Signature) -> bool:
        brought = signature.origin == AS_BROUGHT and self._origin != NOBODY
        known = signature.origin == self._origin or brought
        if not known:
            self._note_foreign(signature)
        return known

    def _is_own(self, signature: Signature) -> bool:
        return self._served and self._is_known(signature)

    def _note_foreign(self, signature: Signature) -> None:
        why = f"a thought signature of {signature.origin} means nothing to {self._origin}"
        self._notes.append(Note("dropped", "messages", why))

    def _call(self, call: ToolCall) -> list[dict[str, Any]]:
        wire: dict[str, Any] = {"name": self._names.to_wire(call.name), "args": msgspec.Raw(call.args)}
        if self._profile.call_ids:
            wire["id"] = upstream_id(call.id)
        return [self._signed(_with_native({"functionCall": wire}, call.native), call.signature)]

    def _result(self, result: ToolResult) -> list[dict[str, Any]]:
        """`output` and `error` are the keys the API documents; text is never parsed, so never changed."""
        name = self._names.to_wire(result.name)
        text, media = self._told(result.content)
        wire: dict[str, Any] = {"name": name, "response": {"error" if result.is_error else "output": text}}
        if result.response:
            wire["response"] = self._answered(result)
        if self._profile.call_ids:
            wire["id"] = upstream_id(result.call_id)
        inside = [_media(part) for part in media if self._inside(part)] if media else []
        if inside:
            wire["parts"] = inside
        parts = [_with_native({"functionResponse": wire}, result.native)]
        if len(inside) < len(media):
            parts.append({"text": f"Files returned by {name}:"})
            parts += [_media(part) for part in media if not self._inside(part)]
        return parts

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
        self._notes.append(Note("moved", "messages", why))
        key = "error" if result.is_error else "output"
        said = response[key] if response.keys() == {key} else response
        return {key: _ENCODER.encode(said).decode()}

    def _inside(self, media: Media) -> bool:
        return self._profile.media_in_results and bool(media.data) and media.mime in _RESULT_MEDIA

    def _remark(self, message: Message) -> list[Sayable]:
        said = say_served(message.parts, self._is_own)
        return [self._readable(part) if isinstance(part, Media) else part for part in said]


#: How each part is said; all of them are here.
SAY: dict[type[Sayable], Callable[[ContentEncoder, Any], list[dict[str, Any]]]] = {
    Text: ContentEncoder._text,
    Thought: ContentEncoder._thought,
    Media: ContentEncoder._file,
    ToolCall: ContentEncoder._call,
    ToolResult: ContentEncoder._result,
    Native: ContentEncoder._native,
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
    if not native:
        return wire
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


def _add_remark(parts: list[dict[str, Any]], remark: list[Sayable]) -> None:
    """A remark of the program keeps its place without starting a turn of the user's.

    Behind results it goes inside the last response: the API asks for no text beside responses.
    """
    text = "\n\n".join(_as_reminder(part.text) for part in remark if isinstance(part, Text) and part.text)
    responses = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    if responses and text:
        # What a tool answered in JSON keeps its members as they are.
        key = next((key for key in ("output", "error") if isinstance(responses[-1].get(key), str)), REMARK)
        before = responses[-1].get(key)
        responses[-1][key] = f"{before}\n\n{text}" if before else text
    elif text:
        parts.append({"text": text})
    parts += [_media(part) for part in remark if isinstance(part, Media)]


def _as_reminder(text: str) -> str:
    return text if text.startswith(REMINDER) else f"{REMINDER}\n{text}\n</system-reminder>"
