"""A neutral request to a `GenerateContentRequest`, and to the body of `countTokens`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import Encoded, Target, UpstreamStream
from dragoman.dialects.gemini.builtin import BuiltIns, encode_built_ins
from dragoman.dialects.gemini.contents import encode_contents
from dragoman.dialects.gemini.grounded import GroundedStream
from dragoman.dialects.gemini.models import Profile, profile_of
from dragoman.dialects.gemini.parts import NOBODY, Setting
from dragoman.dialects.gemini.stream import GeminiStream
from dragoman.dialects.gemini.thinking import encode_thinking
from dragoman.dialects.gemini.tools import Declarations, declare, encode_tool_choice
from dragoman.errors import InvalidRequest, UpstreamGarbage
from dragoman.ir import Request, Sampling, Thinking
from dragoman.memo import Memo
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


def context_tokens(target: Target) -> int:
    return profile_of(target.model).input_tokens


def encode_request(request: Request, target: Target, new_id: Callable[[], str]) -> Encoded:
    for remote in request.remotes:  # an address in a request is followed only where the operator says so (Q9)
        why = f"the MCP server {remote.label!r} is not called from here; its operator may allow it (mcp.servers)"
        raise InvalidRequest(why, where=remote.where)
    body, declarations, built_ins, notes = _body(request, target)
    origin = origin_of(target)
    single = not request.tool_choice.parallel

    def reader() -> UpstreamStream:
        plain = GeminiStream(declarations.names, origin, new_id, single_call=single)
        return GroundedStream(plain, built_ins, origin, new_id) if built_ins.offered else plain

    return Encoded(body=_ENCODER.encode(body), notes=notes, reader=reader)


def encode_count(request: Request, target: Target) -> bytes:
    """Only the wrapped form counts system and tools on AI Studio; Vertex takes the fields as they are."""
    body, *_ = _body(request, target)
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


def _body(
    request: Request, target: Target
) -> tuple[dict[str, Any], Declarations, BuiltIns, tuple[Note, ...]]:
    profile = profile_of(target.model)
    declarations = declare(request.tools, target)
    functions = bool(declarations.declared)
    built_ins = encode_built_ins(request.server_tools, target, functions=functions)
    notes = [*declarations.notes, *built_ins.notes]
    origin = origin_of(target) if target.trust_signatures else NOBODY
    setting = Setting(profile, declarations.names, origin, bool(built_ins.offered))
    contents, lost = encode_contents(request.messages, setting)
    notes += lost
    config, asked, changed = _generation_config(request, target, tooled=functions or bool(built_ins.tools))
    notes += changed
    system = [part.text for part in request.system] + asked + list(built_ins.asked)
    if functions and not request.tool_choice.parallel:
        system.append(_ONE_CALL)
        why = (
            "Gemini has no such switch; it is asked for in the instructions, and further calls are held back"
        )
        notes.append(Note("moved", "tool_choice.disable_parallel_tool_use", why))
    body: dict[str, Any] = {"contents": contents}
    if system:
        body["systemInstruction"] = {"parts": [{"text": text} for text in system]}
    if tools := _tools(declarations, built_ins):
        body["tools"] = tools
    if choice := _tool_config(request, declarations, built_ins):
        body["toolConfig"] = choice
    if config:
        body["generationConfig"] = config
    _add_native(body, request.native, target)
    for place in target.without:
        notes += _leave_away(body, place)
    return body, declarations, built_ins, tuple(notes)


def _tools(declarations: Declarations, built_ins: BuiltIns) -> list[dict[str, Any]]:
    functions = [{"functionDeclarations": declarations.json}] if declarations.declared else []
    return [*functions, *built_ins.tools]


def _tool_config(request: Request, declarations: Declarations, built_ins: BuiltIns) -> dict[str, Any]:
    config = encode_tool_choice(request.tool_choice, declarations) or {}
    return {**config, "includeServerSideToolInvocations": True} if built_ins.shown else config


def _leave_away(body: dict[str, Any], place: str) -> list[Note]:
    """What this back end does not know, by the name it gave it: `generation_config.responseJsonSchema`."""
    *parents, field = (_alike(name) for name in place.split("."))
    node: Any = body
    for parent in parents:
        node = next((value for name, value in node.items() if _alike(name) == parent), None)
        if not isinstance(node, dict):
            return []
    gone = [name for name in node if _alike(name) == field]
    for name in gone:
        del node[name]
    return [Note("dropped", name, "this back end does not know it") for name in gone]


def _alike(name: str) -> str:
    """Google spells the same name in two ways."""
    return name.replace("_", "").lower()


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
    request: Request, target: Target, *, tooled: bool
) -> tuple[dict[str, Any], list[str], tuple[Note, ...]]:
    profile = profile_of(target.model)
    known = _SETTINGS.find((request.sampling, request.thinking, target.model))
    sampling, thinking, notes = known or _settings(request.sampling, request.thinking, target.model)
    config = {**sampling}
    if thinking and not target.own_thinking:
        config["thinkingConfig"] = {**thinking}
    output, asked, more = _output(request, profile, tooled=tooled, vertex=target.backend == "vertex")
    return {**config, **output}, asked, (*notes, *more)


#: `generationConfig` without what it says of thinking, that, and what got lost.
_Settings = tuple[dict[str, Any], dict[str, Any], tuple[Note, ...]]

#: The same come with every turn.
_SETTINGS: Memo[tuple[Sampling, Thinking, str], _Settings] = Memo(1024 * 1024, "settings")


def _settings(sampling: Sampling, thinking: Thinking, model: str) -> _Settings:
    profile = profile_of(model)
    config, notes = _sampling(sampling, profile)
    thoughts, lost = encode_thinking(thinking, sampling, profile)
    settings = config, thoughts, (*notes, *lost)
    _SETTINGS.put((sampling, thinking, model), len(model) + 4 * sum(map(len, sampling.stop)), settings)
    return settings


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
    request: Request, profile: Profile, *, tooled: bool, vertex: bool
) -> tuple[dict[str, Any], list[str], tuple[Note, ...]]:
    """JSON output; where functions exclude it, the wish goes into the instructions (pain B16)."""
    if request.output is None:
        return {}, [], ()
    schema = request.output.schema
    where = "output_config.format"
    wanted = None if schema is None else jsontext.decode(msgspec.json.decode, schema, f"{where}.schema")
    excluded = request.tools and request.tool_choice.mode in ("any", "none")
    if excluded or (tooled and not profile.json_with_functions):
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
