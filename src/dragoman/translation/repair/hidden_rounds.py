"""Hidden rounds: rounds with gateway tools that the client did not see, restored into its history.

A client only keeps what it saw: text and its own calls. The complete answer is kept in the store under a key that
is computed from just that, and is restored when the client sends its history back. If the record is lost, the
client's version is sent as it is, which Google accepts too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby

import msgspec

from dragoman.incremental.fold import derive
from dragoman.incremental.lru import LruCache
from dragoman.ir import Media, Message, Part, Text, ToolCall, ToolResult
from dragoman.translation.repair.signatures import text_key

#: Prefix of the store keys of hidden rounds. The records hold tool results, so only their caller may read them.
HIDDEN_KEY_PREFIX = "hidden-"

#: A longer record is stored without the files in its results, and if it is still too long without any results.
MAX_RECORD_BYTES = 2 * 1024 * 1024
_LEFT_OUT = "(What this tool answered was too long to be kept.)"
_FILE_LEFT_OUT = "(A file was not kept.)"

#: store key -> start and end (exclusive) of the messages in the client's history that the record replaces
HiddenPlaces = Mapping[str, tuple[int, int]]


class HiddenRounds(msgspec.Struct, frozen=True, kw_only=True):
    """One complete answer: `rounds` (the model's turn and the gateway's results, alternating) and the last turn.

    `results` are the results of the gateway calls in the last turn; the client answers its other calls. `revealed`
    names the deferred tools that were declared at that time, including those of earlier records.
    """

    last: Message
    rounds: tuple[Message, ...] = ()
    results: tuple[ToolResult, ...] = ()
    revealed: tuple[str, ...] = ()

    def with_results(self, results: Iterable[ToolResult]) -> HiddenRounds:
        """Return the record with more results for calls of the last turn, which arrived later."""
        return msgspec.structs.replace(self, results=(*self.results, *results))

    def to_messages(self) -> tuple[Message, ...]:
        """Return the record as complete messages, without the calls that have no result."""
        answered = {result.call_id for result in self.results}
        kept = (part for part in self.last.parts if not isinstance(part, ToolCall) or part.id in answered)
        turn = Message(role="model", parts=tuple(kept))
        return (*self.rounds, turn, Message(role="user", parts=self.results))

    def encode(self) -> str:
        """Return the record as JSON, with results reduced until it is at most `MAX_RECORD_BYTES` long if possible."""
        word = msgspec.json.encode(self)
        for lighter in (_without_files, _without_content):
            if len(word) > MAX_RECORD_BYTES:
                word = msgspec.json.encode(_reduce(self, lighter))
        return word.decode()


_decode = msgspec.json.Decoder(HiddenRounds).decode
_RECORDS: LruCache[str, HiddenRounds] = LruCache(64 * 1024 * 1024, "hidden rounds")


def hidden_key(before: Message | None, text: str, call_id: str = "") -> str:
    """Return the store key of an answer: its first call's id, or a hash of its text and the user message `before`.

    White space in the text is ignored, because many clients change it.
    """
    return HIDDEN_KEY_PREFIX + (call_id or text_key(before, "".join(text.split())))


def hidden_places(messages: tuple[Message, ...]) -> dict[str, tuple[int, int]]:
    """Return the keys of all answers in a history, with the places of their messages."""
    places: dict[str, tuple[int, int]] = {}
    before: Message | None = None
    start = 0
    for role, run in groupby(messages, key=lambda message: message.role):
        said = list(run)
        if role == "user":
            before = said[-1]
        elif role == "model":
            key = _key(before, said)
            if key:
                places[key] = start, start + len(said)
        start += len(said)
    return places


def _key(before: Message | None, said: list[Message]) -> str:
    """Return the key of an answer, cached in its first message; empty if it has neither calls nor text.

    The cache entry refers to the parts of the message before, not to that message, whose own cache may refer to this
    one: that would be a reference cycle.
    """
    parts = before.parts if before is not None else None
    return derive(said[0], "hidden", (parts, len(said)), _make_key, before, said)


def _make_key(before: Message | None, said: list[Message]) -> str:
    call = next(_calls(said), None)
    if call is not None:
        return hidden_key(before, "", call.id)
    text = "".join(part.text for part in _parts(said) if isinstance(part, Text))
    return hidden_key(before, text) if text.strip() else ""


def restore_hidden_rounds(
    messages: tuple[Message, ...], places: HiddenPlaces, found: Mapping[str, str]
) -> tuple[Message, ...]:
    """Return the history with the records that the store `found` in place of what the client sent for them."""
    records = {
        places[key][0]: (places[key][1], decode_hidden(word)) for key, word in found.items() if key in places
    }
    if not records:
        return messages
    woven: list[Message] = []
    index = 0
    while index < len(messages):
        end, record = records.get(index, (index + 1, None))
        whole = record and _whole_turn(record, messages[index:end])
        if not record or not whole:
            woven += messages[index:end]
        else:
            woven += (*record.rounds, whole)
            if record.results:
                following = messages[end] if end < len(messages) else None
                woven.append(_answered(record, following))
                end += _brings_results(following)
        index = end
    return tuple(woven)


def known_tools(
    messages: tuple[Message, ...], places: HiddenPlaces, found: Mapping[str, str]
) -> Iterator[str]:
    """Yield the names of the tools that were revealed or called, in the order of the conversation."""
    records = {places[key][0]: decode_hidden(word) for key, word in found.items() if key in places}
    for index, message in enumerate(messages):
        record = records.get(index)
        yield from record.revealed if record is not None else ()
        yield from (call.name for call in _calls((message,)))


def decode_hidden(word: str) -> HiddenRounds | None:
    """Decode a record, cached because every turn needs it again. Return None if it is damaged."""
    try:
        return _RECORDS.get(word, 3 * len(word), lambda: _decode(word))
    except (msgspec.DecodeError, RecursionError):
        return None


def _whole_turn(record: HiddenRounds, said: tuple[Message, ...]) -> Message | None:
    """Return the last turn with the gateway's calls and those of the client's calls that are still in its history.

    Return None if the history has calls that the record does not: it belongs to another answer then.
    """
    known = {call.id for call in _calls(said)}
    ours = {result.call_id for result in record.results}
    calls = {call.id for call in _calls((record.last,))}
    if known - calls:
        return None
    if calls == known | ours:
        return record.last
    kept = (part for part in record.last.parts if not isinstance(part, ToolCall) or part.id in known | ours)
    return Message(role="model", parts=tuple(kept))


def _brings_results(message: Message | None) -> bool:
    return message is not None and any(isinstance(part, ToolResult) for part in message.parts)


def _answered(record: HiddenRounds, following: Message | None) -> Message:
    """Join the gateway's results and the client's in one message; `repair.history` puts them in call order."""
    if following is None or not _brings_results(following):
        return Message(role="user", parts=record.results)
    return derive(following, "answered", (record,), _join_results, record, following)


def _join_results(record: HiddenRounds, following: Message) -> Message:
    return Message(role="user", parts=(*record.results, *following.parts))


def _parts(messages: list[Message] | tuple[Message, ...]) -> Iterator[Part]:
    return (part for message in messages for part in message.parts)


def _calls(messages: list[Message] | tuple[Message, ...]) -> Iterator[ToolCall]:
    return (part for part in _parts(messages) if isinstance(part, ToolCall))


def _reduce(record: HiddenRounds, lighter: Callable[[ToolResult], ToolResult]) -> HiddenRounds:
    def light(message: Message) -> Message:
        parts = (lighter(part) if isinstance(part, ToolResult) else part for part in message.parts)
        return Message(role=message.role, parts=tuple(parts))

    results = tuple(map(lighter, record.results))
    rounds = tuple(map(light, record.rounds))
    return msgspec.structs.replace(record, rounds=rounds, results=results)


def _without_files(result: ToolResult) -> ToolResult:
    content = (Text(text=_FILE_LEFT_OUT) if isinstance(part, Media) else part for part in result.content)
    return msgspec.structs.replace(result, content=tuple(content))


def _without_content(result: ToolResult) -> ToolResult:
    return msgspec.structs.replace(result, content=(Text(text=_LEFT_OUT),), response=b"", native=b"")
