"""Decode settings: Bedrock's own, and those of its models in `additionalModelRequestFields`."""

from __future__ import annotations

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import EFFORTS
from dragoman.dialects.bedrock.tools import AnthropicChoice
from dragoman.dialects.bedrock.wire import (
    InferenceConfig,
    OutputConfig,
    TextFormat,
    decode_json_schema,
    decode_object,
    decode_union,
    member,
)
from dragoman.errors import InvalidRequest
from dragoman.ir import Effort, OutputFormat, Sampling, Thinking
from dragoman.notes import Note

_WHERE = "additionalModelRequestFields"
_THINKS = frozenset({"enabled", "adaptive", "between_tools"})

#: Fields that select a version of Anthropic's API; ignored without a note.
_IGNORED = frozenset({"anthropic_beta", "anthropic_version"})


class ClaudeThinking(msgspec.Struct):
    type: str = "enabled"
    budget_tokens: int | None = None
    display: str | None = None


class ClaudeFormat(msgspec.Struct):
    type: str = ""
    schema: msgspec.Raw = msgspec.Raw(b"")


class ClaudeOutput(msgspec.Struct):
    effort: str | None = None
    format: ClaudeFormat | None = None


class NovaReasoning(msgspec.Struct, rename="camel"):
    type: str = "enabled"
    budget_tokens: int | None = None
    max_reasoning_effort: str | None = None


class NovaInference(msgspec.Struct, rename="camel"):
    top_k: int | None = None


class GptReasoning(msgspec.Struct):
    effort: str | None = None


class ModelFields(msgspec.Struct):
    """The fields that clients send for Claude, Nova and GPT models.

    `reasoning_config` is Amazon's earlier name for `thinking`.
    """

    thinking: ClaudeThinking | None = None
    reasoning_config: ClaudeThinking | None = None
    output_config: ClaudeOutput | None = None
    tool_choice: AnthropicChoice | None = None
    top_k: int | None = None
    reasoningConfig: NovaReasoning | None = None  # noqa: N815 (on the wire)
    inferenceConfig: NovaInference | None = None  # noqa: N815
    topK: int | None = None  # noqa: N815
    reasoning: GptReasoning | None = None
    reasoning_effort: str | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None


_decode_fields = msgspec.json.Decoder(ModelFields).decode
_KNOWN = frozenset(ModelFields.__struct_fields__) | _IGNORED


def decode_fields(raw: bytes) -> tuple[ModelFields, list[Note]]:
    """Decode `additionalModelRequestFields`, with a note for each unknown field."""
    if raw in (b"", b"null"):
        return ModelFields(), []
    raw = jsontext.validate_text(raw, _WHERE)
    names = jsontext.decode(decode_union, raw, _WHERE)
    unknown = [name for name in names if name not in _KNOWN]
    notes = [Note("dropped", f"{_WHERE}.{name}", "it is not known here") for name in unknown]
    return jsontext.decode(_decode_fields, raw, _WHERE), notes


def decode_thinking(fields: ModelFields, output: OutputConfig) -> tuple[Thinking, list[Note]]:
    effort, off, notes = _effort(fields, output)
    wanted = fields.thinking or fields.reasoning_config or _from_nova(fields.reasoningConfig)
    if off or (wanted is not None and wanted.type == "disabled"):
        return Thinking(mode="off"), notes
    if wanted is None:
        asked = fields.reasoning_effort or (fields.reasoning or GptReasoning()).effort
        if asked and effort is not None:  # with GPT models, the effort is the only way to ask for reasoning
            return Thinking(mode="on", effort=effort, show=True), notes
        return Thinking(effort=effort), notes
    if wanted.type not in _THINKS:
        notes.append(Note("dropped", f"{_WHERE}.thinking", f"{wanted.type!r} is not known"))
        return Thinking(effort=effort), notes
    budget = wanted.budget_tokens if wanted.type == "enabled" and effort is None else None
    show = wanted.display != "omitted"
    return Thinking(mode="on", budget_tokens=budget or None, effort=effort, show=show), notes


def _from_nova(nova: NovaReasoning | None) -> ClaudeThinking | None:
    return ClaudeThinking(type=nova.type, budget_tokens=nova.budget_tokens) if nova is not None else None


def _effort(fields: ModelFields, output: OutputConfig) -> tuple[Effort | None, bool, list[Note]]:
    """Return the effort, whether it is `none` (no thinking), and notes; the first field that is set counts."""
    nova = fields.reasoningConfig or NovaReasoning()
    candidates = {
        "outputConfig.effort": output.effort,
        f"{_WHERE}.output_config.effort": (fields.output_config or ClaudeOutput()).effort,
        f"{_WHERE}.reasoning_effort": fields.reasoning_effort,
        f"{_WHERE}.reasoning.effort": (fields.reasoning or GptReasoning()).effort,
        f"{_WHERE}.reasoningConfig.maxReasoningEffort": nova.max_reasoning_effort,
    }
    where, word = next(((where, word) for where, word in candidates.items() if word), ("", ""))
    effort = EFFORTS.get(word)
    if effort is not None or word in ("", "none"):
        return effort, word == "none", []
    return None, False, [Note("dropped", where, f"{word!r} is not known")]


def decode_sampling(config: InferenceConfig, fields: ModelFields) -> Sampling:
    top_k = (config.top_k, fields.top_k, fields.topK, (fields.inferenceConfig or NovaInference()).top_k)
    return Sampling(
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        top_p=config.top_p,
        top_k=next((number for number in top_k if number is not None), None),
        seed=fields.seed,
        presence_penalty=fields.presence_penalty,
        frequency_penalty=fields.frequency_penalty,
        stop=tuple(config.stop_sequences or ()),
    )


def decode_output(output: OutputConfig, fields: ModelFields) -> OutputFormat | None:
    if output.text_format is not None:
        return _text_format(output.text_format)
    claude = (fields.output_config or ClaudeOutput()).format
    if claude is None or claude.type != "json_schema":
        return None
    return _json_format(bytes(claude.schema), f"{_WHERE}.output_config.format.schema")


def _text_format(wire: TextFormat) -> OutputFormat:
    where = "outputConfig.textFormat"
    if wire.type != "json_schema":
        raise InvalidRequest(f"{wire.type!r} is not json_schema", where=f"{where}.type")
    where = f"{where}.structure"
    kind, raw = member(wire.structure, where)
    if kind != "jsonSchema":
        raise InvalidRequest(f"{kind!r} is not understood here: use jsonSchema", where=where)
    where = f"{where}.{kind}"
    return _json_format(jsontext.decode(decode_json_schema, raw, where).schema.encode(), f"{where}.schema")


def _json_format(schema: bytes, where: str) -> OutputFormat:
    schema = jsontext.validate_text(schema, where)
    jsontext.decode(decode_object, schema, where)
    return OutputFormat(schema=schema)
