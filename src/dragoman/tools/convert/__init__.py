"""Tools, calls and results in the words of each API; the words are the dialects' own, the values plain JSON.

Every module here has the same functions:

    encode_tools(tools) -> list            decode_tools(list) -> tools        the request's list of tools
    encode_choice(choice) -> value         decode_choice(value) -> choice     may, must, must not, must this one
    encode_calls(calls) -> list            decode_calls(list) -> calls        entries of the history, by the model
    encode_results(results) -> list        decode_results(list) -> results    entries of the history, by the caller
"""

from dragoman.tools.convert import amazonq, anthropic, bedrock, gemini, openai_chat, openai_responses
from dragoman.tools.convert.form import Form

FORMS: dict[str, Form] = {
    "gemini": gemini,
    "anthropic": anthropic,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "amazonq": amazonq,
    "bedrock": bedrock,
}

__all__ = ["FORMS", "Form", "amazonq", "anthropic", "bedrock", "gemini", "openai_chat", "openai_responses"]
