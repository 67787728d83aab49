"""The events that `agent.machine` handles, and the commands that it returns."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman import ir

#: A person's answer to an approval question; `always` and `never` apply for the rest of the session.
Answer = Literal["once", "always", "no", "never"]

#: Why a turn ended; only `done` is a normal end.
Reason = Literal[
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


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that needs approval; `preview` is a diff or another description of what it would do."""

    id: str
    tool: str
    subject: str = ""
    preview: str = ""


# Events


class UserSaid(msgspec.Struct, frozen=True):
    text: str


class Heard(msgspec.Struct, frozen=True):
    """One event of the model's response to the `Ask` with this number."""

    ask: int
    event: ir.Event


class ToolFinished(msgspec.Struct, frozen=True):
    result: ir.ToolResult
    seconds: float = 0.0


class ApprovalWanted(msgspec.Struct, frozen=True):
    question: Question


class ApprovalAnswered(msgspec.Struct, frozen=True):
    question_id: str
    answer: Answer


class LimitReached(msgspec.Struct, frozen=True):
    """A limit that the machine cannot check itself was reached, such as a time limit."""

    detail: str


class Interrupted(msgspec.Struct, frozen=True):
    """The user wants to end this turn now."""


class CompactionWanted(msgspec.Struct, frozen=True):
    """The user wants to compact the history."""


Event = (
    UserSaid
    | Heard
    | ToolFinished
    | ApprovalWanted
    | ApprovalAnswered
    | LimitReached
    | Interrupted
    | CompactionWanted
)


# Commands


class Ask(msgspec.Struct, frozen=True):
    """Send this request and post every event of the response as `Heard` with this number."""

    number: int
    request: ir.Request
    purpose: Literal["answer", "summary"] = "answer"


class Run(msgspec.Struct, frozen=True):
    """Run these calls concurrently; each must end with exactly one `ToolFinished`."""

    calls: tuple[ir.ToolCall, ...]


class AskApproval(msgspec.Struct, frozen=True):
    """Ask the person; the machine sends the next question only after the answer to this one."""

    question: Question


class Settle(msgspec.Struct, frozen=True):
    """Deliver the answer to the tool that waits for it."""

    question_id: str
    answer: Answer


class Say(msgspec.Struct, frozen=True):
    """Show a piece of the model's text."""

    text: str


class Think(msgspec.Struct, frozen=True):
    """Show a piece of the model's thoughts."""

    text: str


class ShowCall(msgspec.Struct, frozen=True):
    call: ir.ToolCall


class ShowResult(msgspec.Struct, frozen=True):
    call: ir.ToolCall
    result: ir.ToolResult
    seconds: float


class Remark(msgspec.Struct, frozen=True):
    """Show a message from the agent program itself."""

    text: str


class Save(msgspec.Struct, frozen=True):
    """Save these messages: append them to the saved history, or replace it (`instead`)."""

    messages: tuple[ir.Message, ...]
    instead: bool = False


class Cancel(msgspec.Struct, frozen=True):
    """Cancel the running request and the running tools, and wait until they have stopped."""


class Stop(msgspec.Struct, frozen=True):
    """The turn is over."""

    reason: Reason
    detail: str = ""


Shown = Say | Think | ShowCall | ShowResult | Remark
Command = Ask | Run | AskApproval | Settle | Save | Cancel | Stop | Shown
