"""Compaction: replace the old part of a history by a summary and keep the last turns with their signatures.

A history may only be cut before a user turn, or inside a turn before a message of the model. At these places every
call in the kept part still has its result, and every step its own thought signature.
"""

from __future__ import annotations

import msgspec

from dragoman.agent.history import starts_turn, user_message
from dragoman.ir import Message, Request, Text, ToolChoice, ToolResult
from dragoman.translation.token_estimate import estimate_tokens

KEPT_TURNS = 2
KEPT_SHARE = 0.4  # share of the context window for the messages that are kept
_SUMMARY_SHARE = 0.9  # share of the context window for the messages to summarise
_RESULT_CHARS = 2_000  # per tool result in the summary request

INSTRUCTIONS = (
    "Summarise this conversation so that the work can go on without it. Say what the user wants, what was decided,"
    " which files were read or changed and what is in them that matters, what failed, and what is still to be done."
    " Names, paths and numbers word for word. No tool calls, only the summary."
)
HEADING = "Summary of the conversation so far:"
TASK_HEADING = "What the user asked last, word for word:"


class HistoryCut(msgspec.Struct, frozen=True):
    """The messages to summarise and the messages to keep."""

    old: tuple[Message, ...]
    kept: tuple[Message, ...]


def find_cut(messages: tuple[Message, ...], context_tokens: int) -> HistoryCut | None:
    """Choose where to cut a history; return None if there is nothing worth summarising.

    Keep the last turns that fit into `KEPT_SHARE` of the context window; if not even the last turn fits, keep the
    last steps that do.
    """
    turns = [index for index, message in enumerate(messages) if starts_turn(message)]
    steps = [
        index
        for index, message in enumerate(messages)
        if message.role == "model" and turns and index > turns[-1]
    ]
    cut_points = [
        cut_point
        for cut_point in (*turns[-KEPT_TURNS:], *steps)
        if _is_worth_summarising(messages[:cut_point])
    ]
    if not cut_points:
        return None
    budget_tokens = int(context_tokens * KEPT_SHARE)
    cut_point = next(
        (cut_point for cut_point in cut_points if _size(messages[cut_point:]) <= budget_tokens),
        cut_points[-1],
    )
    return HistoryCut(messages[:cut_point], messages[cut_point:])


def summary_request(template: Request, old: tuple[Message, ...], context_tokens: int) -> Request:
    """Build the request for the summary.

    Tool results are shortened and the oldest messages dropped until the request fits into the context window.
    """
    short = tuple(_shorten(message) for message in old)
    budget_tokens = int(context_tokens * _SUMMARY_SHARE)
    while len(short) > 1 and _size(short) > budget_tokens:
        short = _without_first_exchange(short)
    instruction = user_message(INSTRUCTIONS)
    return msgspec.structs.replace(
        template,
        messages=(*short, instruction),
        tool_choice=ToolChoice(mode="none" if template.tools else "auto"),
    )


def compact_history(cut: HistoryCut, summary: str) -> tuple[Message, ...]:
    """Return the new history: the summary and the kept messages.

    If the cut is inside a turn, the summary message repeats the user's request, which was cut off.
    """
    text = f"{HEADING}\n\n{summary.strip()}"
    if not any(starts_turn(message) for message in cut.kept):
        text += f"\n\n{TASK_HEADING}\n\n{_last_user_request(cut.old)}"
    return (user_message(text), *cut.kept)


def _size(messages: tuple[Message, ...]) -> int:
    return estimate_tokens(Request(model="", messages=messages))


def _is_worth_summarising(messages: tuple[Message, ...]) -> bool:
    """Return whether a summary is worthwhile; one of user messages alone would be no shorter."""
    return any(message.role == "model" for message in messages)


def _last_user_request(messages: tuple[Message, ...]) -> str:
    """Return the user's last request, taken from an earlier summary message if that is where it is."""
    request = next(message for message in reversed(messages) if starts_turn(message))
    text = "\n".join(part.text for part in request.parts if isinstance(part, Text))
    return text.rpartition(TASK_HEADING)[2].strip() if text.startswith(HEADING) else text


def _shorten(message: Message) -> Message:
    if not any(isinstance(part, ToolResult) for part in message.parts):
        return message
    parts = tuple(_short_result(part) if isinstance(part, ToolResult) else part for part in message.parts)
    return Message(role=message.role, parts=parts)


def _short_result(result: ToolResult) -> ToolResult:
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    text = text or result.response.decode("utf-8", "replace")
    if len(text) > _RESULT_CHARS:
        text = f"{text[:_RESULT_CHARS]}\n(… {len(text) - _RESULT_CHARS} more characters)"
    return msgspec.structs.replace(result, content=(Text(text=text),), response=b"")


def _without_first_exchange(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Drop the first message and the results of its calls, so that no result is left without its call."""
    rest = messages[1:]
    while rest and isinstance(rest[0].parts[0], ToolResult):
        rest = rest[1:]
    return rest
