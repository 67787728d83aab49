"""What a client was not shown of an answer, back in its place: rounds with tools that the gateway ran itself.

A client keeps what it saw: text and its own calls. What really happened is kept in the store under a key that can
be made of just that, and woven into the history when the client brings it back. If it is lost, the client's part
stands alone, which Google accepts as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby

import msgspec

from dragoman.ir import Media, Message, Part, Text, ToolCall, ToolResult
from dragoman.memo import Memo
from dragoman.repair.signatures import text_key

#: How keys of hidden rounds begin; what tools answered is nobody's business but the caller's.
HIDDEN_KEY = "hidden-"

#: A record that would be longer is kept without files, and if need be without what the tools said.
MAX_RECORD_BYTES = 2 * 1024 * 1024
_LEFT_OUT = "(What this tool answered was too long to be kept.)"
_FILE_LEFT_OUT = "(A file was not kept.)"

#: key -> the messages of the client's history that it stands for, from and up to
Places = Mapping[str, tuple[int, int]]


class Hidden(msgspec.Struct, frozen=True, kw_only=True):
    """One answer as it was: whole rounds (the model's turn, then our results), and the last turn.

    `results` are those of our calls in the last turn; its other calls are the client's to answer. `revealed` names
    the client's tools that had been found by then: any later record knows them all.
    """

    last: Message
    rounds: tuple[Message, ...] = ()
    results: tuple[ToolResult, ...] = ()
    revealed: tuple[str, ...] = ()

    def plus(self, results: Iterable[ToolResult]) -> Hidden:
        """The same with results that have come since, for calls of the last turn that somebody else answers."""
        return msgspec.structs.replace(self, results=(*self.results, *results))

    def closed(self) -> tuple[Message, ...]:
        """All of it as messages of their own, without the client's calls: nothing is left to be answered."""
        answered = {result.call_id for result in self.results}
        kept = (part for part in self.last.parts if not isinstance(part, ToolCall) or part.id in answered)
        turn = Message(role="model", parts=tuple(kept))
        return (*self.rounds, turn, Message(role="user", parts=self.results))

    def encode(self) -> str:
        word = msgspec.json.encode(self)
        for lighter in (_without_files, _without_words):
            if len(word) > MAX_RECORD_BYTES:
                word = msgspec.json.encode(_lightened(self, lighter))
        return word.decode()


_decode = msgspec.json.Decoder(Hidden).decode
_RECORDS: Memo[str, Hidden] = Memo(64 * 1024 * 1024, "hidden rounds")


def hidden_key(before: Message | None, text: str, call_id: str = "") -> str:
    """Of an answer: by its first call, or by its words; white space is changed by too many clients to count."""
    return HIDDEN_KEY + (call_id or text_key(before, "".join(text.split())))


def hidden_places(messages: tuple[Message, ...]) -> dict[str, tuple[int, int]]:
    """What to ask the store for."""
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
    """Noted with the parts of the message before: the message itself may know this one, and they would be a circle."""
    parts = before.parts if before is not None else None
    noted: tuple[tuple[Part, ...] | None, int, str] | None = said[0].notebook.get("hidden")
    if noted is None or noted[0] is not parts or noted[1] != len(said):
        noted = said[0].notebook["hidden"] = parts, len(said), _make_key(before, said)
    return noted[2]


def _make_key(before: Message | None, said: list[Message]) -> str:
    call = next(_calls(said), None)
    if call is not None:
        return hidden_key(before, "", call.id)
    text = "".join(part.text for part in _parts(said) if isinstance(part, Text))
    return hidden_key(before, text) if text.strip() else ""


def weave(messages: tuple[Message, ...], places: Places, found: Mapping[str, str]) -> tuple[Message, ...]:
    """The history with everything that was found in its place."""
    records = {
        places[key][0]: (places[key][1], read_hidden(word)) for key, word in found.items() if key in places
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


def known_tools(messages: tuple[Message, ...], places: Places, found: Mapping[str, str]) -> Iterator[str]:
    """The names of the tools that were revealed or called, in the order of the conversation."""
    records = {places[key][0]: read_hidden(word) for key, word in found.items() if key in places}
    for index, message in enumerate(messages):
        record = records.get(index)
        yield from record.revealed if record is not None else ()
        yield from (call.name for call in _calls((message,)))


def read_hidden(word: str) -> Hidden | None:
    """What is kept comes back with every turn; a record that cannot be read is a lost one."""
    try:
        return _RECORDS.get(word, 3 * len(word), lambda: _decode(word))
    except (msgspec.DecodeError, RecursionError):
        return None


def _whole_turn(record: Hidden, said: tuple[Message, ...]) -> Message | None:
    """The last turn with our calls and with those of the client's that it still knows; None if it knows others."""
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


def _answered(record: Hidden, following: Message | None) -> Message:
    """Our results in one message with the client's; they are put in the order of their calls later."""
    if following is None or not _brings_results(following):
        return Message(role="user", parts=record.results)
    noted: tuple[Hidden, Message] | None = following.notebook.get("answered")
    if noted is None or noted[0] is not record:
        joined = Message(role="user", parts=(*record.results, *following.parts))
        noted = following.notebook["answered"] = record, joined
    return noted[1]


def _parts(messages: list[Message] | tuple[Message, ...]) -> Iterator[Part]:
    return (part for message in messages for part in message.parts)


def _calls(messages: list[Message] | tuple[Message, ...]) -> Iterator[ToolCall]:
    return (part for part in _parts(messages) if isinstance(part, ToolCall))


def _lightened(record: Hidden, lighter: Callable[[ToolResult], ToolResult]) -> Hidden:
    def light(message: Message) -> Message:
        parts = (lighter(part) if isinstance(part, ToolResult) else part for part in message.parts)
        return Message(role=message.role, parts=tuple(parts))

    results = tuple(map(lighter, record.results))
    rounds = tuple(map(light, record.rounds))
    return msgspec.structs.replace(record, rounds=rounds, results=results)


def _without_files(result: ToolResult) -> ToolResult:
    content = (Text(text=_FILE_LEFT_OUT) if isinstance(part, Media) else part for part in result.content)
    return msgspec.structs.replace(result, content=tuple(content))


def _without_words(result: ToolResult) -> ToolResult:
    return msgspec.structs.replace(result, content=(Text(text=_LEFT_OUT),), response=b"", native=b"")
