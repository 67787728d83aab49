"""What can happen to an agent, and what it wants done about it: the two vocabularies of `agent.machine`."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman import ir

#: What a person answers to "may I?": this time, from now on, not this time, never again.
Answer = Literal["once", "always", "no", "never"]

#: Why a turn ended; `done` is the only good end.
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
    """A tool wants to do something that needs a yes; `preview` is a diff or what else helps to decide."""

    id: str
    tool: str
    subject: str = ""
    preview: str = ""


# Events


class UserSaid(msgspec.Struct, frozen=True):
    text: str


class Heard(msgspec.Struct, frozen=True):
    """One event of the model's answer to the `Ask` with that number."""

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
    """A limit only the outside can watch, such as time."""

    detail: str


class Interrupted(msgspec.Struct, frozen=True):
    """The user wants this turn to end now."""


class CompactionWanted(msgspec.Struct, frozen=True):
    """The user wants the history summarised."""


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
    """Send this request and bring every event of the answer back as `Heard` with this number."""

    number: int
    request: ir.Request
    purpose: Literal["answer", "summary"] = "answer"


class Run(msgspec.Struct, frozen=True):
    """Run these calls at the same time; each ends in exactly one `ToolFinished`."""

    calls: tuple[ir.ToolCall, ...]


class AskApproval(msgspec.Struct, frozen=True):
    """Ask the person; the next question comes only after the answer to this one."""

    question: Question


class Settle(msgspec.Struct, frozen=True):
    """Tell the waiting tool."""

    question_id: str
    answer: Answer


class Say(msgspec.Struct, frozen=True):
    """A piece of the model's text."""

    text: str


class Think(msgspec.Struct, frozen=True):
    """A piece of the model's thoughts."""

    text: str


class ShowCall(msgspec.Struct, frozen=True):
    call: ir.ToolCall


class ShowResult(msgspec.Struct, frozen=True):
    call: ir.ToolCall
    result: ir.ToolResult
    seconds: float


class Remark(msgspec.Struct, frozen=True):
    """A sentence of the agent's own."""

    text: str


class Save(msgspec.Struct, frozen=True):
    """Keep these messages: behind what is kept already, or instead of it."""

    messages: tuple[ir.Message, ...]
    instead: bool = False


class Cancel(msgspec.Struct, frozen=True):
    """Stop the running request and the running tools, and wait until they are stopped."""


class Stop(msgspec.Struct, frozen=True):
    """The turn is over."""

    reason: Reason
    detail: str = ""


Shown = Say | Think | ShowCall | ShowResult | Remark
Command = Ask | Run | AskApproval | Settle | Save | Cancel | Stop | Shown
