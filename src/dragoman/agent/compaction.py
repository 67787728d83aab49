"""Make a long history short: what is old becomes a summary, the last turns stay whole, signatures included.

A history may be cut only in front of a turn of the user's, or inside a turn in front of a step of the model's:
there every call still has its result behind it, and every step still brings its own signature.
"""

from __future__ import annotations

import msgspec

from dragoman.agent.history import starts_turn, user_message
from dragoman.counting import estimate_tokens
from dragoman.ir import Message, Request, Text, ToolChoice, ToolResult

KEPT_TURNS = 2
KEPT_SHARE = 0.4  # of the context window, for what stays whole
_SUMMARY_SHARE = 0.9  # of the context window, for what is summarised
_RESULT_CHARS = 2_000  # of each tool result, for the summary

INSTRUCTIONS = (
    "Summarise this conversation so that the work can go on without it. Say what the user wants, what was decided,"
    " which files were read or changed and what is in them that matters, what failed, and what is still to be done."
    " Names, paths and numbers word for word. No tool calls, only the summary."
)
HEADING = "Summary of the conversation so far:"
TASK_HEADING = "What the user asked last, word for word:"


class Cut(msgspec.Struct, frozen=True):
    """The messages to summarise and those that stay."""

    old: tuple[Message, ...]
    kept: tuple[Message, ...]


def find_cut(messages: tuple[Message, ...], context_tokens: int) -> Cut | None:
    """Keep as many of the last turns as there is room for, or else of the last steps; None if nothing is old."""
    turns = [index for index, message in enumerate(messages) if starts_turn(message)]
    steps = [
        index
        for index, message in enumerate(messages)
        if message.role == "model" and turns and index > turns[-1]
    ]
    places = [place for place in (*turns[-KEPT_TURNS:], *steps) if _says_much(messages[:place])]
    if not places:
        return None
    room = int(context_tokens * KEPT_SHARE)
    place = next((place for place in places if _size(messages[place:]) <= room), places[-1])
    return Cut(messages[:place], messages[place:])


def summary_request(template: Request, old: tuple[Message, ...], context_tokens: int) -> Request:
    """Ask for the summary; results are shortened and the oldest left out, so that the request itself fits."""
    short = tuple(_shorten(message) for message in old)
    room = int(context_tokens * _SUMMARY_SHARE)
    while len(short) > 1 and _size(short) > room:
        short = _without_first_exchange(short)
    ask = user_message(INSTRUCTIONS)
    return msgspec.structs.replace(
        template, messages=(*short, ask), tool_choice=ToolChoice(mode="none" if template.tools else "auto")
    )


def compacted(cut: Cut, summary: str) -> tuple[Message, ...]:
    """The new history; inside a turn the user's words are repeated, because they were cut off."""
    text = f"{HEADING}\n\n{summary.strip()}"
    if not any(starts_turn(message) for message in cut.kept):
        text += f"\n\n{TASK_HEADING}\n\n{_last_words(cut.old)}"
    return (user_message(text), *cut.kept)


def _size(messages: tuple[Message, ...]) -> int:
    return estimate_tokens(Request(model="", messages=messages))


def _says_much(messages: tuple[Message, ...]) -> bool:
    """A summary of nothing but the user's own words would be no shorter."""
    return any(message.role == "model" for message in messages)


def _last_words(messages: tuple[Message, ...]) -> str:
    """The user's, taken out of an earlier summary if that is all that is left of them."""
    said = next(message for message in reversed(messages) if starts_turn(message))
    text = "\n".join(part.text for part in said.parts if isinstance(part, Text))
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
    """Without the first message and what belongs to it: never a result without its call."""
    rest = messages[1:]
    while rest and isinstance(rest[0].parts[0], ToolResult):
        rest = rest[1:]
    return rest
