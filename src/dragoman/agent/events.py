"""The events that `agent.machine` handles, and the commands that it returns."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman import ir

#: A person's answer to an approval question; `always` and `never` apply for the rest of the session.
ApprovalAnswer = Literal["once", "always", "no", "never"]

#: Why a turn ended; only `done` is a normal end.
EndReason = Literal[
    "done",
    "interrupted",
    "max_steps",
    "max_tokens",
    "max_cost",
    "time",
    "loop",
    "cut",
    "blocked",
    "failed",
]


class ApprovalQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that needs approval; `preview` is a diff or another description of what it would do."""

    id: str
    tool: str
    subject: str = ""
    preview: str = ""


# Events


class UserMessage(msgspec.Struct, frozen=True):
    text: str


class ModelEvent(msgspec.Struct, frozen=True):
    """One event of the model's response to the `Ask` with this number."""

    request_number: int
    event: ir.Event


class ToolFinished(msgspec.Struct, frozen=True):
    result: ir.ToolResult
    seconds: float = 0.0


class ApprovalRequested(msgspec.Struct, frozen=True):
    question: ApprovalQuestion


class ApprovalAnswered(msgspec.Struct, frozen=True):
    question_id: str
    answer: ApprovalAnswer


class LimitReached(msgspec.Struct, frozen=True):
    """A limit that the machine cannot check itself was reached, such as a time limit."""

    detail: str


class InterruptRequested(msgspec.Struct, frozen=True):
    """The user wants to end this turn now."""


class CompactionRequested(msgspec.Struct, frozen=True):
    """The user wants to compact the history."""


Event = (
    UserMessage
    | ModelEvent
    | ToolFinished
    | ApprovalRequested
    | ApprovalAnswered
    | LimitReached
    | InterruptRequested
    | CompactionRequested
)


# Commands


class SendRequest(msgspec.Struct, frozen=True):
    """Send this request and post every event of the response as `ModelEvent` with this number."""

    number: int
    request: ir.Request
    purpose: Literal["answer", "summary"] = "answer"


class RunTools(msgspec.Struct, frozen=True):
    """Run these calls concurrently; each must end with exactly one `ToolFinished`."""

    calls: tuple[ir.ToolCall, ...]


class AskApproval(msgspec.Struct, frozen=True):
    """Ask the person; the machine sends the next question only after the answer to this one."""

    question: ApprovalQuestion


class ResolveApproval(msgspec.Struct, frozen=True):
    """Deliver the answer to the tool that waits for it."""

    question_id: str
    answer: ApprovalAnswer


class ShowText(msgspec.Struct, frozen=True):
    """Show a piece of the model's text."""

    text: str


class ShowThought(msgspec.Struct, frozen=True):
    """Show a piece of the model's thoughts."""

    text: str


class ShowCall(msgspec.Struct, frozen=True):
    call: ir.ToolCall


class ShowResult(msgspec.Struct, frozen=True):
    call: ir.ToolCall
    result: ir.ToolResult
    seconds: float


class ShowNotice(msgspec.Struct, frozen=True):
    """Show a message from the agent program itself."""

    text: str


class SaveHistory(msgspec.Struct, frozen=True):
    """Save these messages: append them to the saved history, or replace it (`instead`)."""

    messages: tuple[ir.Message, ...]
    replace: bool = False


class CancelTasks(msgspec.Struct, frozen=True):
    """Cancel the running request and the running tools, and wait until they have stopped."""


class TurnEnd(msgspec.Struct, frozen=True):
    """The turn is over."""

    reason: EndReason
    detail: str = ""


ShowCommand = ShowText | ShowThought | ShowCall | ShowResult | ShowNotice
Command = (
    SendRequest | RunTools | AskApproval | ResolveApproval | SaveHistory | CancelTasks | TurnEnd | ShowCommand
)
