"""Restore the thought signatures that the client did not send back, from the store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import blake2b

import msgspec

from dragoman.incremental.fold import IncrementalFold, store_fold, take_fold
from dragoman.ir import AFTER_TEXT, Message, Part, SealedSignature, ServerCall, Text, ToolCall, ToolResult

#: Prefix of the store keys of texts. Equal texts may come from different callers; call ids are unique.
TEXT_KEY_PREFIX = "text-"
_FOLD_NAME = "signing"


def text_key(before: Message | None, text: str) -> str:
    """Return the store key of a text: a hash of it and of the user message before it, because a text has no id."""
    words: list[str] = []
    for part in before.parts if before is not None else ():
        if isinstance(part, ToolResult):
            words.append(part.call_id)
        elif isinstance(part, Text):
            words.append(part.text)
    known = "".join((*words, "\0", text)).encode("utf-8", "replace")
    return TEXT_KEY_PREFIX + blake2b(known, digest_size=16).hexdigest()


def last_user_message(messages: tuple[Message, ...], end: int | None = None) -> Message | None:
    """Return the last user message before the index `end`, or None."""
    at = (len(messages) if end is None else end) - 1
    while at >= 0 and messages[at].role != "user":
        at -= 1
    return messages[at] if at >= 0 else None


class SignatureRestorer:
    """Signs the messages of one request; `wanted` are the store keys of the signatures that are missing.

    With a `scope` the signed messages are cached, so that the next turn of the same scope only looks up its new
    messages. Without a scope every turn looks up everything.
    """

    def __init__(self, messages: tuple[Message, ...], scope: str | None = None) -> None:
        self.messages = messages
        self._scope = scope if messages and messages[0].role != "model" else None
        self._fold = _take_fold(messages, self._scope)
        # The first message that is not cached yet. The message at 0, which holds the cache, is never the model's
        # if there is a scope, so it needs no signature.
        self._start = 0 if self._scope is None else 1 + len(self._fold.results)
        found = _keys(messages, self._start)
        self._places = dict(found)
        # A key that occurs twice belongs to its last place, which changes if the client cuts its history there.
        # The cache cannot express that, so it is not used.
        if len(self._places) < len(found) or not self._fold.state.keys.isdisjoint(self._places):
            self._scope, self._fold, self._start = None, IncrementalFold(), 0
            self._places = dict(_keys(messages, 0))
        self._signed: tuple[Message, ...] | None = None

    @property
    def missing_keys(self) -> Collection[str]:
        return self._places.keys()

    def sign(self, recalled: Mapping[str, SealedSignature] | None) -> tuple[Message, ...]:
        """Return the messages with the `recalled` signatures; None if the store could not be read."""
        if self._signed is not None:
            return self._signed
        start, course = self._start, self._fold
        new = self._sign_from(start, recalled or {})
        signed = (*self.messages[: min(start, 1)], *course.results, *new)
        if self._scope is not None:
            if recalled is not None:
                course.extend(self.messages[start:], new)
                course.state.keys.update(self._places)
                self._signed = signed
            store_fold(self.messages, _FOLD_NAME, course)
        return signed

    def _sign_from(self, start: int, recalled: Mapping[str, SealedSignature]) -> list[Message]:
        changed: dict[int, dict[int, SealedSignature]] = {}
        for key, sealed in recalled.items():
            if key in self._places:
                index, place = self._places[key]
                changed.setdefault(index, {})[place] = sealed
        signed = list(self.messages[start:])
        for index, signatures in changed.items():
            signed[index - start] = _signed(self.messages[index], signatures)
        return signed


class _LookedUp(msgspec.Struct, frozen=True):
    """The scope of a course, and the keys that were looked up for it."""

    scope: str | None
    keys: set[str]


def _take_fold(messages: tuple[Message, ...], scope: str | None) -> IncrementalFold[Message]:
    course: IncrementalFold[Message] = (
        take_fold(messages, _FOLD_NAME) if scope is not None else IncrementalFold()
    )
    if course.state is None or course.state.scope != scope:
        return IncrementalFold(_LookedUp(scope, set()))
    return course


def _keys(messages: tuple[Message, ...], start: int) -> list[tuple[str, tuple[int, int]]]:
    """Return the key of every part without a signature, with the index of its message and part.

    An answer has one signature, on its text or on a call; if the client sent it back, nothing is missing. This does
    not hold for a message with server calls, which may consist of several answers.
    """
    keys: list[tuple[str, tuple[int, int]]] = []
    before = last_user_message(messages, start)
    for index in range(start, len(messages)):
        message = messages[index]
        role = message.role
        if role == "user":
            before = message
        elif role == "model":
            if any(map(_is_signed, message.parts)) and ServerCall not in map(type, message.parts):
                continue
            for place, part in enumerate(message.parts):
                if isinstance(part, _WANTED) and part.signature is None:
                    key = part.id if not isinstance(part, Text) else part.text and text_key(before, part.text)
                    if key:
                        keys.append((key, (index, place)))
    return keys


_WANTED = (Text, ToolCall, ServerCall)


def _is_signed(part: Part) -> bool:
    return isinstance(part, Text | ToolCall) and part.signature is not None and bool(part.signature.data)


def _signed(message: Message, signatures: dict[int, SealedSignature]) -> Message:
    noted: tuple[dict[int, SealedSignature], Message] | None = message.derived.get("signed")
    if noted is None or noted[0] != signatures:
        noted = message.derived["signed"] = signatures, _sign(message, signatures)
    return noted[1]


def _sign(message: Message, signatures: Mapping[int, SealedSignature]) -> Message:
    parts: list[Part] = []
    for place, part in enumerate(message.parts):
        sealed = signatures.get(place)
        if sealed is None or not isinstance(part, Text | ToolCall | ServerCall):
            parts.append(part)
        elif sealed.target == AFTER_TEXT:
            parts += [part, Text(text="", signature=sealed.signature)]
        else:
            parts.append(msgspec.structs.replace(part, signature=sealed.signature))
    return Message(role=message.role, parts=tuple(parts))


NO_SIGNATURES = SignatureRestorer(())
