"""A neutral request to a `GenerateContentRequest`, and to the body of `countTokens`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import Encoded, Target
from dragoman.dialects.gemini.contents import NOBODY, encode_contents
from dragoman.dialects.gemini.models import Profile, profile_of
from dragoman.dialects.gemini.stream import GeminiStream
from dragoman.dialects.gemini.thinking import encode_thinking
from dragoman.dialects.gemini.tools import Declarations, declare, encode_tool_choice, encode_tools
from dragoman.errors import UpstreamGarbage
from dragoman.ir import Request, Sampling
from dragoman.notes import Note
from dragoman.schema import clean_schema

MAX_STOP_SEQUENCES = 5
_ENCODER = msgspec.json.Encoder()
_INT32 = 2**31 - 1
_RANGES = {"temperature": (0, 2), "topP": (0, 1), "topK": (1, _INT32), "seed": (-_INT32, _INT32)}
_THINKING = "generationConfig.thinkingConfig"
_ONE_CALL = "Call at most one function at a time and wait for its result."


def origin_of(target: Target) -> str:
    """Who will have signed the thoughts of an answer from there."""
    return f"{target.backend}-{profile_of(target.model).family}"


def ends_with_user(target: Target) -> bool:
    return profile_of(target.model).ends_with_user


def encode_request(request: Request, target: Target, new_id: Callable[[], str]) -> Encoded:
    body, declarations, notes = _body(request, target)
    origin = origin_of(target)
    single = not request.tool_choice.parallel

    def reader() -> GeminiStream:
        return GeminiStream(declarations.names, origin, new_id, single_call=single)

    return Encoded(body=_ENCODER.encode(body), notes=notes, reader=reader)


def encode_count(request: Request, target: Target) -> bytes:
    """Only the wrapped form counts system and tools on AI Studio; Vertex takes the fields as they are."""
    body, _, _ = _body(request, target)
    body.pop("toolConfig", None)
    if target.backend == "vertex":
        return _ENCODER.encode(body)
    return _ENCODER.encode({"generateContentRequest": {"model": f"models/{target.model}", **body}})


def decode_count(body: bytes) -> int:
    try:
        return msgspec.json.decode(body, type=_Count, strict=False).totalTokens
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise UpstreamGarbage("the upstream's token count cannot be read") from None


class _Count(msgspec.Struct):
    totalTokens: int = 0  # noqa: N815


def _body(request: Request, target: Target) -> tuple[dict[str, Any], Declarations, tuple[Note, ...]]:
    profile = profile_of(target.model)
    declarations = declare(request.tools, target)
    notes = list(declarations.notes)
    origin = origin_of(target) if target.trust_signatures else NOBODY
    contents, lost = encode_contents(request.messages, profile, declarations.names, origin)
    notes += lost
    tools, without = encode_tools(request, declarations)
    config, asked, changed = _generation_config(request, target)
    notes += (*without, *changed)
    system = [part.text for part in request.system] + asked
    if declarations.declared and not request.tool_choice.parallel:
        system.append(_ONE_CALL)
        why = (
            "Gemini has no such switch; it is asked for in the instructions, and further calls are held back"
        )
        notes.append(Note("moved", "tool_choice.disable_parallel_tool_use", why))
    body = {
        "contents": contents,
        "systemInstruction": {"parts": [{"text": text} for text in system]} if system else None,
        "tools": tools or None,
        "toolConfig": encode_tool_choice(request.tool_choice, declarations),
        "generationConfig": config or None,
    }
    body = {key: value for key, value in body.items() if value is not None}
    _add_native(body, request.native, target)
    return body, declarations, tuple(notes)


def _add_native(body: dict[str, Any], native: tuple[tuple[str, bytes], ...], target: Target) -> None:
    """What came in Gemini's own dialect goes where it stood."""
    for place, raw in native:
        if place == "tools":
            body.setdefault("tools", []).append(msgspec.Raw(raw))
        elif not (place == _THINKING and target.own_thinking):
            *parents, field = place.split(".")
            node = body
            for parent in parents:
                node = node.setdefault(parent, {})
            node[field] = msgspec.Raw(raw)


def _generation_config(
    request: Request, target: Target
) -> tuple[dict[str, Any], list[str], tuple[Note, ...]]:
    profile = profile_of(target.model)
    config, notes = _sampling(request.sampling, profile)
    thinking, lost = encode_thinking(request.thinking, request.sampling, profile)
    if thinking and not target.own_thinking:
        config["thinkingConfig"] = thinking
    output, asked, more = _output(request, profile, vertex=target.backend == "vertex")
    return {**config, **output}, asked, (*notes, *lost, *more)


def _sampling(sampling: Sampling, profile: Profile) -> tuple[dict[str, Any], list[Note]]:
    config: dict[str, Any] = {}
    notes: list[Note] = []
    if sampling.max_tokens is not None:
        config["maxOutputTokens"] = max(1, min(sampling.max_tokens, profile.output_tokens))
        if config["maxOutputTokens"] != sampling.max_tokens:
            notes.append(Note("clamped", "max_tokens", f"the model's range is 1..{profile.output_tokens}"))
    stop = [text for text in sampling.stop if text]
    if stop:
        config["stopSequences"] = stop[:MAX_STOP_SEQUENCES]
        if len(stop) > MAX_STOP_SEQUENCES:
            notes.append(Note("dropped", "stop_sequences", f"Gemini takes at most {MAX_STOP_SEQUENCES}"))
    for field, word, allowed, value in (
        ("temperature", "temperature", profile.samples, sampling.temperature),
        ("topP", "top_p", profile.samples, sampling.top_p),
        ("topK", "top_k", profile.samples, sampling.top_k),
        ("seed", "seed", True, sampling.seed),
        ("presencePenalty", "presence_penalty", profile.penalties, sampling.presence_penalty or None),
        ("frequencyPenalty", "frequency_penalty", profile.penalties, sampling.frequency_penalty or None),
    ):
        if value is None:
            continue
        if not allowed:
            notes.append(Note("dropped", word, "this model takes no such setting"))
            continue
        low, high = _RANGES.get(field, (value, value))
        config[field] = min(max(value, low), high)
        if config[field] != value:
            notes.append(Note("clamped", word, f"Gemini's range is {low}..{high}"))
    return config, notes


def _output(
    request: Request, profile: Profile, *, vertex: bool
) -> tuple[dict[str, Any], list[str], tuple[Note, ...]]:
    """JSON output; where functions exclude it, the wish goes into the instructions (pain B16)."""
    if request.output is None:
        return {}, [], ()
    schema = request.output.schema
    where = "output_config.format"
    wanted = None if schema is None else jsontext.decode(msgspec.json.decode, schema, f"{where}.schema")
    if request.tools and (not profile.json_with_functions or request.tool_choice.mode in ("any", "none")):
        why = "JSON output cannot be enforced beside these tools; it is asked for in the instructions"
        return {}, [_wish(schema)], (Note("moved", where, why),)
    config: dict[str, Any] = {"responseMimeType": "application/json"}
    if schema is None:
        return config, [], ()
    if not isinstance(wanted, dict) or wanted.get("type", "object") != "object":
        why = "only an object can be enforced; this schema is asked for in the instructions"
        return config, [_wish(schema)], (Note("moved", where, why),)
    config["responseJsonSchema"], notes = clean_schema(wanted, where=f"{where}.schema", vertex=vertex)
    return config, [], notes


def _wish(schema: bytes | None) -> str:
    wish = "When you answer with text, answer with JSON only, without a code fence."
    return wish if schema is None else f"{wish} It must fit this JSON Schema: {schema.decode()}"
