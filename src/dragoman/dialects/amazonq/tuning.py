"""Decode `additionalModelRequestFields`: thinking and sampling in the format of Anthropic's or OpenAI's API."""

from __future__ import annotations

import msgspec

from dragoman import jsontext
from dragoman.dialects.amazonq.wire import ModelFields, decode_model_fields, decode_object
from dragoman.dialects.thinking import decode_thinking
from dragoman.ir import Sampling, Thinking
from dragoman.notes import Note

_PLACE = "additionalModelRequestFields"
_KNOWN = frozenset(ModelFields.__struct_fields__)


class ModelSettings(msgspec.Struct, frozen=True):
    thinking: Thinking = Thinking()
    sampling: Sampling = Sampling()
    notes: tuple[Note, ...] = ()


def decode_model_settings(raw: bytes) -> ModelSettings:
    wire = jsontext.decode(decode_model_fields, raw or b"null", _PLACE)
    if wire is None:
        return ModelSettings()
    names = jsontext.decode(decode_object, raw, _PLACE) or {}
    thinking, notes = _thinking(wire)
    dropped = [
        Note("dropped", f"{_PLACE}.{name}", "Gemini has no such setting")
        for name, value in names.items()
        if name not in _KNOWN and bytes(value) != b"null"
    ]
    sampling = Sampling(
        max_tokens=wire.max_tokens,
        temperature=wire.temperature,
        top_p=wire.top_p,
        top_k=wire.top_k,
        stop=tuple(wire.stop_sequences or ()),
    )
    return ModelSettings(thinking, sampling, (*notes, *dropped))


def _thinking(wire: ModelFields) -> tuple[Thinking, list[Note]]:
    """Decode thinking; `reasoning` alone, as OpenAI's models use it, also turns thinking on."""
    reasoning = wire.reasoning.effort if wire.reasoning is not None else None
    if reasoning == "none":
        return Thinking(mode="off"), []
    effort = wire.output_config.effort if wire.output_config is not None else wire.effort
    thinking, notes = decode_thinking(wire.thinking, reasoning or effort, f"{_PLACE}.")
    if reasoning and thinking.mode == "default":
        thinking = msgspec.structs.replace(thinking, mode="on", show=True)
    return thinking, notes
