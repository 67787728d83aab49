"""Stored conversations: one request at a time runs in each, and a failed request leaves nothing in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec

from dragoman.errors import DragomanError, InvalidRequest
from dragoman.gateway.leases import ReleaseLease
from dragoman.gateway.request import RequestContext
from dragoman.gateway.store_errors import require_store
from dragoman.store import Conversation, ConversationTurn, HeadMoved

T = TypeVar("T")

#: The prefix of generated names; an unknown name with it was deleted or never existed.
GENERATED_PREFIX = "conv_"

_PATHS = {"openai_responses": "/v1/responses", "gemini": "/v1/gemini"}

_MAX_NAME_CHARACTERS = 512


class TurnData(msgspec.Struct, frozen=True, kw_only=True):
    """The stored data of a turn: its dialect, its new items, and the settings that later turns inherit."""

    dialect: str
    items: list[msgspec.Raw] = []
    model: msgspec.Raw = msgspec.Raw(b"null")
    tools: msgspec.Raw = msgspec.Raw(b"null")
    tool_choice: msgspec.Raw = msgspec.Raw(b"null")
    input_count: int = 0  # how many of the items, counted from the first, came from the client
    removed: list[str] = []  # ids of earlier items that this turn removes
    in_conversation: bool = False  # the items belong to a conversation and outlive the response


class _ItemId(msgspec.Struct):
    id: str | None = None


_decode_item = msgspec.json.Decoder(_ItemId).decode
decode_turn_data = msgspec.json.Decoder(TurnData).decode


def decode_item_id(item: bytes) -> str:
    return _decode_item(item).id or ""


class ConversationHistory:
    """The earlier turns that one request refers to; empty if it refers to none."""

    def __init__(
        self,
        request: RequestContext,
        conversation: str,
        turns: list[ConversationTurn],
        release_lease: ReleaseLease | None = None,
    ) -> None:
        self._release_lease = release_lease
        self._request = request
        self._conversation = conversation
        self._head = turns[-1].id if turns else ""
        self.turns = [decode_turn_data(turn.data) for turn in turns]

    @property
    def items(self) -> list[bytes]:
        """All items so far, oldest first, without those that later turns removed."""
        items: list[bytes] = []
        for turn in self.turns:
            if turn.removed:
                items = [item for item in items if decode_item_id(item) not in turn.removed]
            items += map(bytes, turn.items)
        return items

    def check_dialect(self, dialect: str) -> None:
        """Raise InvalidRequest if the conversation has items of another dialect; they are not converted."""
        other = next((turn.dialect for turn in self.turns if turn.dialect != dialect), "")
        if other:
            path = _PATHS.get(other, other)
            why = f"this conversation is held on {path}; go on there, or begin a new one"
            raise InvalidRequest(why, where="conversation")

    def changed_setting(self, field: str, value: bytes) -> msgspec.Raw:
        """Return what a turn must store for model, tools or tool choice: null if the value is unchanged."""
        return msgspec.Raw(b"null" if value == self.inherited_setting(field) else value or b"null")

    def inherited_setting(self, field: str) -> bytes:
        """Return the latest stored value of model, tools or tool choice; empty if there is none."""
        for turn in reversed(self.turns):
            raw = bytes(getattr(turn, field))
            if raw != b"null":
                return raw
        return b""

    async def save(self, turn_id: str, data: TurnData, answer: bytes = b"") -> None:
        """Store a turn and release the conversation; raise DragomanError if another request changed it."""
        data = msgspec.structs.replace(data, in_conversation=bool(self._conversation))
        turn = ConversationTurn(
            id=turn_id,
            scope=self._request.caller.scope,
            parent=self._head,
            data=msgspec.json.encode(data),
            answer=answer,
        )
        try:
            await require_store(self._request.gateway.store.turns.save(turn, self._conversation))
        except HeadMoved:
            raise _conversation_locked() from None
        self._head = turn_id
        if self._release_lease is not None:  # the client may continue as soon as it has the response
            await self._release_lease()


@asynccontextmanager
async def open_conversation(
    request: RequestContext, *, conversation: str = "", previous: str = ""
) -> AsyncIterator[ConversationHistory]:
    """Yield what a request refers to: a conversation, locked until the block ends, or an earlier response.

    A conversation with an unknown name is created, unless the name was generated here. Raises DragomanError
    of kind `conflict` if another request runs in the conversation, or of kind `not_found`; InvalidRequest if
    turns are missing.
    """
    turns = request.gateway.store.turns
    scope = request.caller.scope
    if len(conversation) > _MAX_NAME_CHARACTERS:
        raise InvalidRequest(f"a name has at most {_MAX_NAME_CHARACTERS} characters", where="conversation")
    if not conversation:
        yield ConversationHistory(request, "", await _read_turns(request, previous, "previous_response_id"))
        return
    async with request.gateway.leases.acquire(f"{scope}/{conversation}") as release_lease:
        if release_lease is None:
            raise _conversation_locked()
        stored = await require_store(turns.conversation(scope, conversation))
        if stored is None and conversation.startswith(GENERATED_PREFIX):
            raise not_found("Conversation", conversation)
        if stored is None:  # a name that the client chose: a new conversation
            stored = Conversation(name=conversation, scope=scope, created_s=request.created_s)
            await require_store(turns.put_conversation(stored))
        yield ConversationHistory(
            request, conversation, await _read_turns(request, stored.head, "conversation"), release_lease
        )


async def read_conversation(
    request: RequestContext, *, conversation: str = "", previous: str = ""
) -> ConversationHistory:
    """Like `open_conversation`, but read-only: nothing is locked or created."""
    scope = request.caller.scope
    stored = (
        await require_store(request.gateway.store.turns.conversation(scope, conversation))
        if conversation
        else None
    )
    if stored is None and conversation.startswith(GENERATED_PREFIX):
        raise not_found("Conversation", conversation)
    if stored is not None:
        return ConversationHistory(
            request, conversation, await _read_turns(request, stored.head, "conversation")
        )
    return ConversationHistory(request, "", await _read_turns(request, previous, "previous_response_id"))


def not_found(what: str, object_id: str) -> DragomanError:
    return DragomanError(f"{what} with id '{object_id}' not found.", kind="not_found")


async def _read_turns(request: RequestContext, turn_id: str, where: str) -> list[ConversationTurn]:
    if not turn_id:
        return []
    turns = await require_store(request.gateway.store.turns.chain(request.caller.scope, turn_id))
    if not turns:
        why = f"{turn_id!r} is not kept here, or something said before it is not kept any more"
        raise InvalidRequest(why, where=where, code="previous_response_not_found")
    return turns


def _conversation_locked() -> DragomanError:
    why = "another request is running in this conversation; wait for its answer"
    return DragomanError(why, kind="conflict", where="conversation", code="conversation_locked")
