"""Compaction: replace a conversation by a summary that the model writes (known problem G3).

The summary is stored at the client, in the `encrypted_content` of a `compaction` item. A client asks for it in two
ways: with an input item `compaction_trigger`, which makes the answer of any request one `compaction` item; or at the
endpoint `/responses/compact`, which answers the same request with a `response.compaction` object.
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

#: The prompt for the summary, sent after the conversation.
SUMMARY_PROMPT = (
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
    """Encode a summary for `encrypted_content`: compressed and marked as ours, but not encrypted."""
    packed = base64.b64encode(zlib.compress(text.encode("utf-8", "replace"))).decode()
    return f"{_PREFIX}{packed}"


def open_summary(word: str) -> str | None:
    """Decode a summary that `seal_summary` encoded; None if another service made it, or if it is damaged."""
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
    """Return a `/responses/compact` body as a Responses body: not streamed, ending with the trigger."""
    fields = jsontext.decode_leniently(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode, body)
    items = jsontext.decode(_decode_input, bytes(fields.get("input", b"null")), "input")
    if isinstance(items, str):
        items = [msgspec.Raw(msgspec.json.encode({"role": "user", "content": items}))]
    with_trigger = [*(items or ()), msgspec.Raw(TRIGGER)]
    return msgspec.json.encode({**fields, "input": with_trigger, "stream": False})


def compact_response(response: bytes, input_items: Sequence[bytes]) -> bytes:
    """Return the answer of `/responses/compact`: all user messages, then the compaction item.

    `response` is the encoded answer to `compact_request`; `input_items` are its input items, with ids.
    """
    whole = msgspec.json.decode(response, type=_Compacted)
    kept = [msgspec.Raw(item) for item in input_items if _is_user_message(item)]
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


def _is_user_message(raw: bytes) -> bool:
    item = decode_item(raw)
    return item.kind == "message" and item.role == "user"
