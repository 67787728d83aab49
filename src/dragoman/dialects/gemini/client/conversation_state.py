"""Requests to `/v1/gemini`: a Gemini request with `input` for a conversation that the gateway stores."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman import jsontext
from dragoman.dialects.gemini.client.protojson import (
    Object,
    read_enum,
    read_flag,
    read_list,
    read_object,
    read_text,
)
from dragoman.errors import InvalidRequest

_GATEWAY_FIELDS = frozenset({"input", "contents", "conversation", "stream", "model"})


class ConversationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded request to `/v1/gemini`; `rest` has the fields that are passed on to Google."""

    model: str
    contents: list[msgspec.Raw]
    rest: Object
    conversation: str
    stream: bool


def read_call(body: bytes) -> ConversationRequest:
    """Decode a request; raise `InvalidRequest` if it has neither `input` nor `contents`."""
    fields = read_object(jsontext.replace_lone_surrogates(body), "")
    return ConversationRequest(
        model=read_text(fields["model"], "model").removeprefix("models/") if "model" in fields else "",
        contents=_contents(fields),
        rest={name: raw for name, raw in fields.items() if name not in _GATEWAY_FIELDS},
        conversation=_conversation(fields.get("conversation")),
        stream=read_flag(fields.get("stream")),
    )


def request_body(
    call: ConversationRequest, earlier: Sequence[bytes], tools: bytes, tool_config: bytes
) -> bytes:
    """Return the complete Gemini request.

    `earlier` are the stored contents; the stored `tools` and `tool_config` apply if the request has none.
    """
    contents = [*map(msgspec.Raw, earlier), *call.contents]
    body: dict[str, object] = {"contents": contents, **call.rest}
    if tools:
        body.setdefault("tools", msgspec.Raw(tools))
    if tool_config:
        body.setdefault("toolConfig", msgspec.Raw(tool_config))
    return msgspec.json.encode(body)


def forces_a_call(tool_config: bytes) -> bool:
    """Whether the config forces a function call. It must not apply to later turns, or the calls never end."""
    if not tool_config:
        return False
    calling = read_object(tool_config, "toolConfig").get("functionCallingConfig", msgspec.Raw(b"{}"))
    mode = read_object(calling, "toolConfig").get("mode", msgspec.Raw(b'""'))
    return read_enum(mode, "toolConfig") in ("ANY", "2")


def answer_content(response: bytes) -> bytes:
    """Return the model's content, which the next request must repeat; empty if it has no parts."""
    candidates = msgspec.json.decode(response, type=_Response).candidates
    content = bytes(candidates[0].content) if candidates else b""
    return b"" if content == b"{}" else content


class _Candidate(msgspec.Struct):
    content: msgspec.Raw = msgspec.Raw(b"")


class _Response(msgspec.Struct):
    candidates: list[_Candidate] = []


def _contents(fields: Object) -> list[msgspec.Raw]:
    raw = fields.get("input", fields.get("contents"))
    if raw is None:
        raise InvalidRequest("there is no input: a string, or contents", where="input")
    if bytes(raw).startswith(b'"'):
        return [msgspec.Raw(b'{"role":"user","parts":[{"text":%b}]}' % bytes(raw))]
    return read_list(raw, "input")


def _conversation(raw: msgspec.Raw | None) -> str:
    if raw is None:
        return ""
    if bytes(raw).startswith(b"{"):
        raw = read_object(raw, "conversation").get("id", msgspec.Raw(b'""'))
    return read_text(raw, "conversation")
