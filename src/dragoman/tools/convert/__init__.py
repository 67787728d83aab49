"""Convert tools, calls and results to and from the wire format of each API, as plain JSON values.

The conversions themselves are those of the dialects. Every module here implements `ToolFormat`:

    encode_tools(tools) -> list            decode_tools(list) -> tools        the request's list of tools
    encode_choice(choice) -> value         decode_choice(value) -> choice     the tool choice: auto, any, none, named
    encode_calls(calls) -> list            decode_calls(list) -> calls        messages of the model in the history
    encode_results(results) -> list        decode_results(list) -> results    messages of the caller in the history

Decoders raise `InvalidRequest` for values that do not fit the API's format.
"""

from dragoman.tools.convert import amazonq, anthropic, bedrock, gemini, openai_chat, openai_responses
from dragoman.tools.convert.base import ToolFormat

FORMATS: dict[str, ToolFormat] = {
    "gemini": gemini,
    "anthropic": anthropic,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "amazonq": amazonq,
    "bedrock": bedrock,
}

__all__ = [
    "FORMATS",
    "ToolFormat",
    "amazonq",
    "anthropic",
    "bedrock",
    "gemini",
    "openai_chat",
    "openai_responses",
]
