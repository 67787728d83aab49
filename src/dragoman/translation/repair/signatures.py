"""Restore the thought signatures that the client did not send back, from the store."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, compress

import msgspec

from dragoman.incremental.fold import derive, fold, fold_naively
from dragoman.ir import AFTER_TEXT, Message, Part, SealedSignature, ServerCall, Text, ToolCall, ToolResult

#: Prefix of the store keys of texts. Equal texts may come from different callers; call ids are unique.
TEXT_KEY_PREFIX = "text-"


def text_key(before: Message | None, text: str) -> str:
    """Return the store key of a text: a hash of it and of the user message before it, because a text has no id."""
    return _text_key(before.parts if before is not None else (), text)


def _text_key(parts_before: tuple[Part, ...], text: str) -> str:
    words: list[str] = []
    for part in parts_before:
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
    """Signs the messages of one request; `missing_keys` are the store keys of the signatures that are missing.

    With a `scope` the signed messages are cached, so that the next turn of the same scope only looks up its new
    messages. Without a scope every turn looks up everything.
    """

    def __init__(self, messages: tuple[Message, ...], scope: str | None = None) -> None:
        self.messages = messages
        # What is cached with the first message cannot refer to a signed copy of it, so that must not need signatures.
        self._is_cached = scope is not None and bool(messages) and messages[0].role != "model"
        start = _Lookup(scope)
        if self._is_cached:
            self._lookups = fold(messages, "signatures", start, _next_lookup)
            missing = [*chain.from_iterable(map(_MISSING, self._lookups))]
            # A key that occurs twice belongs to its last place, which changes if the client cuts its history there.
            self._is_cached = len(dict(missing)) == len(missing)
        if not self._is_cached:
            self._lookups = fold_naively(messages, start, _next_lookup)
        self._known = [*map(_SIGNED, self._lookups)]
        self._pending = [*compress(range(len(messages)), map(operator.not_, self._known))]
        self._places = {
            key: (index, place) for index in self._pending for key, place in self._lookups[index].missing
        }

        self._signed: tuple[Message, ...] | None = None

    @property
    def missing_keys(self) -> Collection[str]:
        return self._places.keys()

    def sign(self, recalled: Mapping[str, SealedSignature] | None) -> tuple[Message, ...]:
        """Return the messages with the `recalled` signatures; None if the store could not be read."""
        if self._signed is not None:
            return self._signed
        found: dict[int, dict[int, SealedSignature]] = {}
        for key, sealed in (recalled or {}).items():
            if key in self._places:
                index, place = self._places[key]
                found.setdefault(index, {})[place] = sealed
        signed = [*self._known]
        for index in self._pending:
            message = self.messages[index]
            signed[index] = _signed(message, found[index]) if index in found else message
        if signed and signed[0] is _FIRST:
            signed[0] = self.messages[0]
        result = tuple(signed)
        if self._is_cached and recalled is not None:
            self._signed = result
            for index in self._pending:
                self._lookups[index].signed = result[index]
        return result


class _Lookup(msgspec.Struct):
    """The lookup for one message: the `missing` signatures as pairs of the store key and the index of the part.

    `signed` is the message with the signatures that were found; it is None until the store was read. `parts_before` are
    those of the last user message.
    """

    scope: str | None
    parts_before: tuple[Part, ...] = ()
    missing: Sequence[tuple[str, int]] = ()
    signed: Message | None = None


_MISSING, _SIGNED = operator.attrgetter("missing"), operator.attrgetter("signed")
_FIRST = Message(
    role="user", parts=()
)  # stands in for the first message, which no state may refer to, see `fold`


def _next_lookup(before: _Lookup, message: Message) -> _Lookup:
    parts_before = before.parts_before
    if message.role == "user":
        parts_before = message.parts
    elif message.role == "model" and (missing := _missing(message, parts_before)):
        return _Lookup(before.scope, parts_before, missing)
    is_first = before.signed is None and not before.missing
    return _Lookup(before.scope, parts_before, (), _FIRST if is_first else message)


def _missing(message: Message, parts_before: tuple[Part, ...]) -> list[tuple[str, int]]:
    """Return the key and the index of every part without a signature.

    An answer has one signature, on its text or on a call; if the client sent it back, nothing is missing. This does
    not hold for a message with server calls, which may consist of several answers.
    """
    if any(map(_is_signed, message.parts)) and ServerCall not in map(type, message.parts):
        return []
    missing: list[tuple[str, int]] = []
    for place, part in enumerate(message.parts):
        if isinstance(part, _WANTED) and part.signature is None:
            key = part.id if not isinstance(part, Text) else part.text and _text_key(parts_before, part.text)
            if key:
                missing.append((key, place))
    return missing


_WANTED = (Text, ToolCall, ServerCall)


def _is_signed(part: Part) -> bool:
    return isinstance(part, Text | ToolCall) and part.signature is not None and bool(part.signature.data)


def _signed(message: Message, signatures: dict[int, SealedSignature]) -> Message:
    return derive(message, "signed", signatures, _sign, message, signatures)


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
