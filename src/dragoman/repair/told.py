"""The last resort for a history whose calls and results Google refuses: write them as text (pain C11)."""

from __future__ import annotations

from dragoman.ir import Message, Part, Text, ToolCall, ToolResult
from dragoman.notes import Note

HISTORY_AS_TEXT = Note("moved", "messages", "Google refuses this history; its calls are told in words")


def history_as_text(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages with every call and result as text; no content is lost."""
    return tuple(Message(role=message.role, parts=_parts_as_text(message)) for message in messages)


def _parts_as_text(message: Message) -> tuple[Part, ...]:
    return tuple(told for part in message.parts for told in _part_as_text(part))


def _part_as_text(part: Part) -> tuple[Part, ...]:
    if isinstance(part, ToolCall):
        return (Text(text=f"[I called the tool {part.name} with {part.args.decode('utf-8', 'replace')}]"),)
    if isinstance(part, ToolResult):
        failed = " failed and" if part.is_error else ""
        head = Text(text=f"[The tool {part.name or 'of the call above'}{failed} answered:]")
        response = (Text(text=part.response.decode("utf-8", "replace")),) if part.response else ()
        return (head, *response, *part.content)
    return (part,)
