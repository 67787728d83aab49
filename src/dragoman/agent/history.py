"""Messages that the agent itself adds to a history, so that it stays valid after errors and interruptions."""

from __future__ import annotations

from dragoman.ir import Message, Text, ToolCall, ToolResult

CALL_INTERRUPTED = "The user stopped this call before it had finished."
ANSWER_INTERRUPTED = "The user stopped you here."
RESULT_LOST = "The program ended before the result of this call was known. Check before you repeat it."
CALL_NOT_RUN = "This call was not run: the answer was cut off ({raw}). Make it shorter or split it."
REPEATED_CALL = (
    "You have called {name} {times} times with the same arguments and got the same answer."
    " Do something else, or tell the user what is in the way."
)


def user_message(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def program_message(text: str) -> Message:
    """Return a message from the program to the model; unlike a user message it does not start a turn."""
    return Message(role="system", parts=(Text(text=text),))


def error_result(call: ToolCall, text: str) -> ToolResult:
    return ToolResult(call_id=call.id, name=call.name, content=(Text(text=text),), is_error=True)


def starts_turn(message: Message) -> bool:
    """Return whether this is a message of the user, as opposed to tool results or program messages."""
    return message.role == "user" and not isinstance(message.parts[0], ToolResult)


def add_missing_results(history: tuple[Message, ...]) -> tuple[Message, ...]:
    """Add error results to a history that ends with calls, because its process died while the tools ran."""
    calls = [part for part in history[-1].parts if isinstance(part, ToolCall)] if history else []
    if not calls:
        return history
    return (*history, Message(role="user", parts=tuple(error_result(call, RESULT_LOST) for call in calls)))


def without_last_turn(history: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages before the user's last one."""
    starts = [index for index, message in enumerate(history) if starts_turn(message)]
    return history[: starts[-1]] if starts else ()
