"""Compaction: a conversation's summary, asked of the model and carried in the client's opaque field (pain G3).

Two forms: a `compaction_trigger` item makes any request answer with one `compaction` item; the endpoint
`/responses/compact` is the same request, its answer dressed as a `response.compaction`.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.openai_responses.wire import decode_item

TRIGGER = b'{"type":"compaction_trigger"}'

#: What the model is asked to do with the conversation above.
WISH = (
    "The conversation above is about to be replaced by a summary that you write now. Another session goes on"
    " from it with nothing else to read. Say what was asked and why, what was decided, what has been done and"
    " found out (names of files, commands, errors and values that are still needed), what is unfinished, and"
    " what comes next. Answer with the summary only and call no tool."
)
PREFACE = "Summary of the conversation so far:\n\n"
UNREADABLE = (
    "(An earlier part of this conversation was compacted by another service and cannot be read here.)"
)

_PREFIX = "dgmc1."
_MAX_SUMMARY_BYTES = 8 * 1024 * 1024


def seal_summary(text: str) -> str:
    packed = base64.b64encode(zlib.compress(text.encode("utf-8", "replace"))).decode()
    return f"{_PREFIX}{packed}"


def open_summary(word: str) -> str | None:
    """What `seal_summary` was given, or None if the word is not ours or was changed on the way."""
    if not word.startswith(_PREFIX):
        return None
    try:
        packed = base64.b64decode(word[len(_PREFIX) :], validate=True)
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(packed, _MAX_SUMMARY_BYTES)
        return text.decode() if unpacker.eof else None
    except (binascii.Error, zlib.error, UnicodeDecodeError, ValueError):
        return None


def compact_request(body: bytes) -> bytes:
    """The body of `/responses/compact` as the request that does it: whole, and ending in the trigger."""
    fields = jsontext.decode_leniently(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode, body)
    items = jsontext.decode(_decode_input, bytes(fields.get("input", b"null")), "input")
    if isinstance(items, str):
        items = [msgspec.Raw(msgspec.json.encode({"role": "user", "content": items}))]
    with_trigger = [*(items or ()), msgspec.Raw(TRIGGER)]
    return msgspec.json.encode({**fields, "input": with_trigger, "stream": False})


def compact_response(response: bytes, input_items: Sequence[bytes]) -> bytes:
    """The answer of `/responses/compact`: all messages of the user's, then the compaction item.

    `response` is our answer to `compact_request`; `input_items` are the ones it was asked with, ids assigned.
    """
    whole = msgspec.json.decode(response, type=_Compacted)
    kept = [msgspec.Raw(item) for item in input_items if _is_of_the_user(item)]
    answer: dict[str, Any] = {
        "id": whole.id,
        "object": "response.compaction",
        "created_at": whole.created_at,
        "output": [*kept, *whole.output],
        "usage": whole.usage,
    }
    return msgspec.json.encode(answer)


class _Compacted(msgspec.Struct):
    id: str
    created_at: int
    output: list[msgspec.Raw]
    usage: msgspec.Raw


_decode_input = msgspec.json.Decoder(str | list[msgspec.Raw] | None).decode


def _is_of_the_user(raw: bytes) -> bool:
    item = decode_item(raw)
    return item.kind == "message" and item.role == "user"
