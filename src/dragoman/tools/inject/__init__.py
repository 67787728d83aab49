"""Tools that a client never declared: put into its Gemini request, their calls taken out of the answer.

    body = modify_request(body, context)       tools, tool config, and results that have come since
    calls = captured_calls(answer)             what the model called; an answer whole or in chunks
    answer = withhold(answer, calls)           the same answer for a client that knows nothing of them
    open_calls(context)                        calls without results: until they have some, a follow-up must wait

Everything here is pure: dicts of Google's JSON in, new dicts out, in either of Google's spellings.
"""

from dragoman.tools.inject.capture import captured_calls, withhold
from dragoman.tools.inject.context import (
    CallResult,
    CapturedCall,
    Step,
    ToolContext,
    call_key,
    open_calls,
    stand_in,
    stand_ins,
)
from dragoman.tools.inject.fit import fit
from dragoman.tools.inject.history import follows_up, question_of
from dragoman.tools.inject.request import modify_request

__all__ = [
    "CallResult",
    "CapturedCall",
    "Step",
    "ToolContext",
    "call_key",
    "captured_calls",
    "fit",
    "follows_up",
    "modify_request",
    "open_calls",
    "question_of",
    "stand_in",
    "stand_ins",
    "withhold",
]
