"""Inject tools that the client did not declare into its Gemini requests, and hide their calls from it.

    body = modify_request(body, context)       add tools, tool config, and results that have arrived
    calls = captured_calls(answer)             return the model's calls, from a whole or a chunked response
    answer = withhold(answer, calls)           return the response for the client, without these calls
    open_calls(context)                        return calls without results; a follow-up must wait for them

All functions are pure: they take dicts of Google's JSON, with camelCase or snake_case names, and return new dicts.
"""

from dragoman.tools.inject.capture import captured_calls, withhold
from dragoman.tools.inject.context import (
    CallResult,
    CallStep,
    CapturedCall,
    ToolContext,
    adapt_to_model,
    call_key,
    open_calls,
    placeholder,
    placeholder_ids,
)
from dragoman.tools.inject.history import continues_from, question_of
from dragoman.tools.inject.request import modify_request

__all__ = [
    "CallResult",
    "CallStep",
    "CapturedCall",
    "ToolContext",
    "adapt_to_model",
    "call_key",
    "captured_calls",
    "continues_from",
    "modify_request",
    "open_calls",
    "placeholder",
    "placeholder_ids",
    "question_of",
    "withhold",
]
