"""Messages to `contents`: which of them make one, which are known, and which need a signature."""

from __future__ import annotations

import operator
from itertools import chain, compress, count

import msgspec

from dragoman.dialects.gemini.models import Profile
from dragoman.dialects.gemini.parts import PartEncoder, Setting, WirePart
from dragoman.ir import Course, Media, Message, Part, Text, Thought, ToolResult, keep_course, take_course
from dragoman.notes import Note

#: Google's documented word for "this call was not signed by you"; literal on the wire (pains A6, A7).
SENTINEL = "skip_thought_signature_validator"

_ENCODER = msgspec.json.Encoder()


class EncodedContent(msgspec.Struct, frozen=True, gc=False):
    """One content as JSON. `unsigned` is where the signature of its first call would stand, if it should have one."""

    json: msgspec.Raw
    unsigned: int
    starts_turn: bool
    notes: tuple[Note, ...]

    def with_sentinel(self) -> msgspec.Raw:
        json = bytes(self.json)
        return msgspec.Raw(b"%b,%b%b" % (json[: self.unsigned], _SENTINEL_MEMBER, json[self.unsigned :]))


_SENTINEL_MEMBER = _ENCODER.encode({"thoughtSignature": SENTINEL})[1:-1]


def encode_contents(messages: tuple[Message, ...], setting: Setting) -> tuple[list[msgspec.Raw], list[Note]]:
    """`contents` of repaired messages: each step's results directly behind its calls."""
    contents = _contents(messages, setting)
    notes = list(dict.fromkeys(chain.from_iterable(map(_NOTES, contents))))
    chosen: list[msgspec.Raw] = list(map(_JSON, contents))
    # In the current turn the first call of every step must be signed (pain A6).
    start = bytes(map(_STARTS_TURN, contents)).rfind(1) + 1
    for index in compress(count(start), map(_UNSIGNED, contents[start:])):
        why = "no signature is known for this call; Google's sentinel stands in for it"
        notes.append(Note("sentinel", f"contents[{index}]", why))
        chosen[index] = contents[index].with_sentinel()
    return chosen, notes


_JSON, _UNSIGNED, _STARTS_TURN, _NOTES = map(
    operator.attrgetter, ("json", "unsigned", "starts_turn", "notes")
)
_ROLE = operator.attrgetter("role")


def _contents(messages: tuple[Message, ...], setting: Setting) -> list[EncodedContent]:
    """A history comes back with every turn: only what is new is looked at.

    Of a message the content is worked out that begins with it; of a remark that goes along with another, nothing.
    """
    if not messages:
        return []
    course: Course[EncodedContent | None] = take_course(messages, "contents")
    if course.setting is None or not setting.same_as(course.setting):
        course = Course(setting)
    encoder = PartEncoder(course.setting)
    start = max(1, _resume(messages, 1 + len(course.worked)))
    course.cut(start - 1)
    end = _end(messages, 0)
    first = _encoded(messages[:end], encoder)
    worked: list[EncodedContent | None] = [None] * (end - start)
    for group in _groups(messages, max(start, end)):
        worked.append(_encoded(group, encoder))
        if len(group) > 1:
            worked += [None] * (len(group) - 1)
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


def _encoded(group: tuple[Message, ...], encoder: PartEncoder) -> EncodedContent | None:
    """A history comes back with every turn; what of it is unchanged is encoded once."""
    message, remarks = group[0], group[1:]
    notebook = message.notebook
    noted: _Noted | None = notebook.get("content")
    if noted is None or not noted.fits(remarks, encoder.setting):
        noted = notebook["content"] = _Noted(remarks, encoder.setting, _encode(message, remarks, encoder))
    return noted.content


def _encode(message: Message, remarks: tuple[Message, ...], encoder: PartEncoder) -> EncodedContent | None:
    """Nothing if nothing is left of them."""
    role, said = message.role, message.parts
    encoder.notes.clear()
    if role == "system":
        kinds, parts, remarks = set[type[Part]](), list[WirePart](), (message, *remarks)
    else:
        kinds = set(map(type, said))
        parts = encoder.say(said, kinds)
    for remark in remarks:
        encoder.add_remark(parts, remark.parts)
    if not parts:
        return None
    json = _ENCODER.encode({"role": "model" if role == "model" else "user", "parts": parts})
    unsigned = 0 if kinds <= _CALLS_NOTHING else _find_unsigned(json, parts, encoder.setting.profile)
    starts_turn = role != "model" and "functionResponse" not in parts[0]
    return EncodedContent(msgspec.Raw(json), unsigned, starts_turn, tuple(encoder.notes))


_CALLS_NOTHING = frozenset({Text, Thought, Media, ToolResult})


def _find_unsigned(json: bytes, parts: list[WirePart], profile: Profile) -> int:
    """Where the first call ends, behind its last member; 0 if it needs no signature, or has one."""
    if not profile.signatures:
        return 0
    for index, part in enumerate(parts, 1):
        if "functionCall" in part:
            behind = len(b"}]}") + (len(_ENCODER.encode(parts[index:])) - 1 if index < len(parts) else 0)
            return len(json) - behind if "thoughtSignature" not in part else 0
    return 0
