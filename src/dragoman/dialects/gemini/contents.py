"""Encode messages as `contents`, incrementally.

A conversation repeats its history in every request. The encoded contents are cached with the messages, so that
only new messages are encoded. Calls without a signature get Google's sentinel where one is required.
"""

from __future__ import annotations

import operator
from bisect import bisect_left

import msgspec

from dragoman.dialects.gemini.models import ModelProfile
from dragoman.dialects.gemini.parts import EncodingContext, PartEncoder, WirePart
from dragoman.incremental.fold import IncrementalFold, store_fold, take_fold
from dragoman.ir import Media, Message, Part, Text, Thought, ToolResult
from dragoman.notes import Note

#: Google's documented value for a call that it did not sign; sent literally (known problems A6, A7).
SENTINEL = "skip_thought_signature_validator"

_ENCODER = msgspec.json.Encoder()
_NOT_SIGNED = "no signature is known for this call; Google's sentinel stands in for it"
_SENTINEL_MEMBER = _ENCODER.encode({"thoughtSignature": SENTINEL})[1:-1]


def encode_contents(
    messages: tuple[Message, ...], setting: EncodingContext
) -> tuple[list[bytes], list[Note]]:
    """Encode messages as `contents`; return the JSON of each content, and notes.

    The messages must be repaired: the results of each step directly follow its calls.
    """
    if not messages:
        return [], []
    contents: _Contents = take_fold(messages, "contents", lambda: _Contents(setting))
    if contents.state is not setting and not setting.same_as(contents.state):
        contents = _Contents(setting)
    contents.write(messages)
    result = contents.tell()
    store_fold(messages, "contents", contents)
    return result


class Special(msgspec.Struct, frozen=True, gc=False):
    """Properties that only some contents have.

    `unsigned` is the byte offset at which the signature of the first call can be inserted; 0 if none is missing.
    """

    unsigned: int
    starts_turn: bool
    notes: tuple[Note, ...]


class EncodedContent(msgspec.Struct, frozen=True):
    """One message as JSON, with the values it depends on, so that a cached content is reused only if they match.

    `remarks` are the system messages that are encoded inside this content.
    """

    json: bytes
    special: Special | None
    remarks: tuple[Message, ...]
    setting: EncodingContext

    def fits(self, remarks: tuple[Message, ...], setting: EncodingContext) -> bool:
        same = self.setting is setting or self.setting.same_as(setting)
        return same and len(self.remarks) == len(remarks) and all(map(operator.is_, self.remarks, remarks))


_JSON, _SPECIAL, _ROLE = map(operator.attrgetter, ("json", "special", "role"))


class _Contents(IncrementalFold[bytes]):
    """The encoded contents of a history; `write` encodes only the messages that are new.

    `worked` has the JSON of the content that begins with each message; it is empty for a system message that is
    part of the content before it and for a message without encoded parts. `_turns`, `_unsigned` and `_notes`
    refer to messages by index, in ascending order.
    """

    def __init__(self, setting: EncodingContext) -> None:
        super().__init__(setting)
        self._encoder = PartEncoder(setting)
        self._first: bytes | None = None
        self._turns: list[int] = []
        self._unsigned: list[tuple[int, int]] = []
        self._notes: dict[Note, int] = {}

    def truncate(self, length: int) -> None:
        """Drop everything from `length` on; if a system message is there, also the content that includes it."""
        while length > 0 and not self.results[length]:
            length -= 1
        super().truncate(max(0, length))
        if length <= 0:
            self._first = None
        known = self._known()
        del self._turns[bisect_left(self._turns, known) :]
        del self._unsigned[bisect_left(self._unsigned, (known, 0)) :]
        self._notes = {note: index for note, index in self._notes.items() if index < known}

    def _known(self) -> int:
        """Return the number of messages that are encoded."""
        return 0 if self._first is None else 1 + len(self.results)

    def write(self, messages: tuple[Message, ...]) -> None:
        """Encode the new messages; if they begin with a system message, encode the last content again with it."""
        known = self._known()
        new = messages[known:]
        remarks = "system" in map(_ROLE, new)
        if remarks and known and new[0].role == "system":
            self.truncate(known - 2)
            known = self._known()
            new = messages[known:]
        encoder = self._encoder
        contents = _with_remarks(new, encoder) if remarks else [_encoded(one, (), encoder) for one in new]
        jsons = map(_JSON, contents)
        if not known:
            self._first = next(jsons)
        self.results += jsons
        self.messages += new if known else new[1:]
        if any(map(_SPECIAL, contents)):
            for index, content in enumerate(contents, known):
                if content.special is not None:
                    self._index_special(index, content.special)

    def _index_special(self, index: int, special: Special) -> None:
        if special.starts_turn:
            self._turns.append(index)
        if special.unsigned:
            self._unsigned.append((index, special.unsigned))
        for note in special.notes:
            self._notes.setdefault(note, index)

    def tell(self) -> tuple[list[bytes], list[Note]]:
        """Return all contents and notes, with sentinels inserted.

        In the current turn the first call of every step must have a signature (known problem A6).
        """
        contents = [*filter(None, (self._first, *self.results))]
        notes = [*self._notes]
        turn = self._turns[-1] if self._turns else -1
        if self._unsigned and self._unsigned[-1][0] > turn:
            for index, at in self._unsigned[bisect_left(self._unsigned, (turn + 1, 0)) :]:
                place = index - (self._first, *self.results)[:index].count(b"")
                notes.append(Note("sentinel", f"contents[{place}]", _NOT_SIGNED))
                json = contents[place]
                contents[place] = b"%b,%b%b" % (json[:at], _SENTINEL_MEMBER, json[at:])
        return contents, notes


def _with_remarks(messages: tuple[Message, ...], encoder: PartEncoder) -> list[EncodedContent]:
    """Encode messages, each together with the system messages that follow it.

    After a message of the model, a system message becomes a content of its own.
    """
    contents: list[EncodedContent] = []
    start = 0
    while start < len(messages):
        end = start + 1
        if messages[start].role != "model":
            while end < len(messages) and messages[end].role == "system":
                end += 1
        contents.append(_encoded(messages[start], messages[start + 1 : end], encoder))
        contents += [EncodedContent(b"", None, (), encoder.setting)] * (end - start - 1)
        start = end
    return contents


def _encoded(message: Message, remarks: tuple[Message, ...], encoder: PartEncoder) -> EncodedContent:
    """Return the content of a message, from the message's own cache if it still fits."""
    notebook = message.derived
    cached: EncodedContent | None = notebook.get("content")
    if cached is None or not cached.fits(remarks, encoder.setting):
        cached = notebook["content"] = _encode(message, remarks, encoder)
    return cached


def _encode(message: Message, remarks: tuple[Message, ...], encoder: PartEncoder) -> EncodedContent:
    """Encode a message with its system messages; the JSON is empty if no part is left."""
    role, said, setting, notes = message.role, message.parts, encoder.setting, encoder.notes
    notes.clear()
    if role == "system":
        role, kinds, parts = "user", set[type[Part]](), list[WirePart]()
        encoder.add_remark(parts, said)
    else:
        kinds = set(map(type, said))
        parts = encoder.encode(said, kinds)
    for remark in remarks:
        encoder.add_remark(parts, remark.parts)
    if not parts:
        return EncodedContent(b"", None, remarks, setting)
    json = _ENCODER.encode({"role": role, "parts": parts})
    unsigned = 0 if kinds <= _NO_CALLS else _find_unsigned(json, parts, setting.profile)
    starts_turn = role == "user" and "functionResponse" not in parts[0]
    special = Special(unsigned, starts_turn, tuple(notes)) if unsigned or starts_turn or notes else None
    return EncodedContent(json, special, remarks, setting)


_NO_CALLS = frozenset({Text, Thought, Media, ToolResult})


def _find_unsigned(json: bytes, parts: list[WirePart], profile: ModelProfile) -> int:
    """Return the offset after the last member of the first call's part; 0 if it needs no signature or has one."""
    if not profile.signatures:
        return 0
    for index, part in enumerate(parts, 1):
        if "functionCall" in part:
            if "thoughtSignature" in part:
                return 0
            following = len(_ENCODER.encode(parts[index:])) - 1 if index < len(parts) else 0
            return len(json) - following - len(b"}]}")
    return 0
