"""The agent's loop as a state machine without I/O: events in, commands out.

    session = (turn | compaction)*
    turn    = UserSaid step* Stop
    step    = [summary] Ask Heard* [Run (ToolFinished | approval)*]
    approval = ApprovalWanted AskApproval ApprovalAnswered Settle         one question at a time
    summary = Ask("summary") Heard*                                      when the context window fills up
    compaction = CompactionWanted summary Stop

Invariants between two events:
- before the next request, every call in the history has exactly one result directly after it;
- everything shown and saved is in the history, and a turn always ends with a history that Google accepts;
- `Interrupted` and `LimitReached` end any turn with `Cancel`; events that arrive afterwards are ignored.
"""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec

from dragoman import ir
from dragoman.agent import compaction
from dragoman.agent.events import (
    ApprovalAnswered,
    ApprovalWanted,
    Ask,
    Cancel,
    Command,
    CompactionWanted,
    Event,
    Heard,
    Interrupted,
    LimitReached,
    Question,
    Reason,
    Remark,
    Run,
    Save,
    Say,
    Settle,
    ShowCall,
    ShowResult,
    Stop,
    Think,
    ToolFinished,
    UserSaid,
)
from dragoman.agent.history import (
    NOT_RUN,
    REPEATED,
    STOPPED,
    STOPPED_ANSWER,
    error_result,
    mend,
    remark_message,
    user_message,
)
from dragoman.agent.limits import Limits, Spent, blown_fuse
from dragoman.agent.questions import Questions
from dragoman.counting import estimate_tokens
from dragoman.errors import DragomanError
from dragoman.ir import Message, Text, ToolCall, ToolResult
from dragoman.repeats import Repeats

#: Stop reasons after which the calls of a response are complete.
_COMPLETE: frozenset[ir.StopReason] = frozenset({"end", "tool_calls"})
#: How a response without calls ends the turn, by its stop reason.
_ENDS: dict[ir.StopReason, Reason] = {
    "end": "done",
    "tool_calls": "done",
    "max_tokens": "cut",
    "blocked": "blocked",
    "malformed": "failed",
    "other": "failed",
}


class Machine:
    """`handle` takes one event and returns the commands to perform, in order.

    `template` is a request without messages (model, instructions, tools); `history` may come from a saved session.
    """

    def __init__(
        self,
        template: ir.Request,
        *,
        context_tokens: int,
        limits: Limits | None = None,
        history: tuple[Message, ...] = (),
        spent: Spent | None = None,
    ) -> None:
        self.template = template
        self.limits = limits or Limits()
        self.history = mend(history)
        self.spent = spent or Spent()
        self.state: Literal["idle", "asking", "running", "summarising"] = "idle"
        self.steps = 0
        self.context_tokens = context_tokens
        self._known_tokens = 0  # reported for the last request and its response
        self._asks = 0
        self._answer = ir.Collector()
        self._said: list[str] = []
        self._calls: dict[str, ToolCall] = {}
        self._results: dict[str, ToolResult] = {}
        self._questions = Questions()
        self._repeats = Repeats()
        self._cut: compaction.Cut | None = None
        self._then_ask = False
        self._may_compact = True

    def handle(self, event: Event) -> list[Command]:
        match event:
            case UserSaid():
                return self._user_said(event.text)
            case Heard():
                return self._heard(event.event) if event.ask == self._asks else []
            case ToolFinished():
                return self._tool_finished(event)
            case ApprovalWanted():
                return self._approval_wanted(event.question)
            case ApprovalAnswered():
                return self._questions.answer(event.question_id, event.answer)
            case LimitReached():
                return self._end_now(Stop("time", event.detail))
            case Interrupted():
                return self._end_now(Stop("interrupted"))
            case CompactionWanted():
                return self._compaction_wanted()
            case _:
                assert_never(event)

    def replace_history(self, history: tuple[Message, ...]) -> Save:
        """Replace the history, for example after an undo or a compaction; return the command to save it."""
        self.history = mend(history)
        self._known_tokens = 0
        return Save(self.history, instead=True)

    # One step: request, response, tool calls

    def _user_said(self, text: str) -> list[Command]:
        if self.state != "idle":
            return [Remark("still busy; interrupt first")]
        self.steps = 0
        self._repeats = Repeats()
        self._may_compact = True
        return [*self._add(user_message(text)), *self._ask()]

    def _ask(self) -> list[Command]:
        blown = blown_fuse(self.limits, self.spent, self.steps)
        if blown is not None:
            return self._stop(blown)
        request = msgspec.structs.replace(self.template, messages=self.history)
        size = max(estimate_tokens(request), self._known_tokens)
        if self._may_compact and size > self.context_tokens * self.limits.compact_at:
            commands = self._summarise(then_ask=True)
            if commands:
                return commands
        self.steps += 1
        return self._begin_ask("asking", Ask(self._asks + 1, request))

    def _begin_ask(self, state: Literal["asking", "summarising"], ask: Ask) -> list[Command]:
        self.state = state
        self._asks = ask.number
        self._answer = ir.Collector()
        self._said = []
        return [ask]

    def _heard(self, event: ir.Event) -> list[Command]:
        if self.state not in ("asking", "summarising"):
            return []
        self._answer.feed(event)
        if isinstance(event, ir.Finished):
            response = self._answer.close()
            self.spent = self.spent.plus(response.usage, response.model or self.template.model)
            return self._answered(response) if self.state == "asking" else self._summarised(response)
        if isinstance(event, ir.Failed):
            return self._failed(event.error)
        if self.state == "asking" and isinstance(event, ir.TextDelta):
            self._said.append(event.text)
            return [Say(event.text)]
        if self.state == "asking" and isinstance(event, ir.ThoughtDelta):
            return [Think(event.text)]
        return []

    def _answered(self, response: ir.Response) -> list[Command]:
        self._known_tokens = response.usage.input_tokens + response.usage.output_tokens
        finished = response.finished
        calls = tuple(part for part in response.parts if isinstance(part, ToolCall))
        if not calls:
            kept = self._add(Message(role="model", parts=response.parts)) if response.parts else []
            empty = not response.parts and finished.reason in _COMPLETE
            reason = "failed" if empty else _ENDS[finished.reason]
            detail = "the model said nothing" if empty else finished.detail or finished.raw
            return [*kept, *self._stop(Stop(reason, "" if reason == "done" else detail))]
        said = self._add(Message(role="model", parts=response.parts))
        self._calls = {call.id: call for call in calls}
        self._results = {}
        if finished.reason in _COMPLETE:
            self.state = "running"
            return [*said, *map(ShowCall, calls), Run(calls)]
        why = NOT_RUN.format(raw=finished.raw or finished.reason)
        return [*said, *self._add(self._all_results(why)), *self._ask()]

    def _tool_finished(self, event: ToolFinished) -> list[Command]:
        call = self._calls.get(event.result.call_id)
        if self.state != "running" or call is None or call.id in self._results:
            return []
        result = msgspec.structs.replace(event.result, name=call.name)
        self._results[call.id] = result
        shown: list[Command] = [ShowResult(call, result, event.seconds)]
        if len(self._results) < len(self._calls):
            return shown
        return [*shown, *self._add(self._all_results("")), *self._after_results()]

    def _after_results(self) -> list[Command]:
        counted = [(self._repeats.count(call, self._results[id_]), call) for id_, call in self._calls.items()]
        times, call = max(counted, key=lambda pair: pair[0])
        if times >= self.limits.repeats_stopped:
            return self._stop(Stop("loop", f"{call.name} was called {times} times with the same arguments"))
        told: list[Command] = []
        if times >= self.limits.repeats_told:
            text = REPEATED.format(name=call.name, times=times)
            told = self._add(remark_message(text))
        return [*told, *self._ask()]

    def _all_results(self, otherwise: str) -> Message:
        """Return the results of this step in call order; a call without a result gets the error `otherwise`."""
        results = (
            self._results.get(id_) or error_result(call, otherwise) for id_, call in self._calls.items()
        )
        return Message(role="user", parts=tuple(results))

    def _approval_wanted(self, question: Question) -> list[Command]:
        return self._questions.want(question) if self.state == "running" else [Settle(question.id, "no")]

    # Ending a turn

    def _end_now(self, stop: Stop) -> list[Command]:
        """End the turn with a valid history: text received so far stays, calls without results get an error."""
        if self.state == "idle":
            return []
        kept: list[Command] = []
        if self.state == "running":
            kept = self._add(self._all_results(STOPPED))
        elif self.state == "asking":
            said = "".join(self._said)
            if said:
                kept = self._add(Message(role="model", parts=(Text(text=said),)))
            kept = [*kept, *self._add(remark_message(STOPPED_ANSWER))]
        return [Cancel(), *kept, *self._stop(stop)]

    def _failed(self, error: DragomanError) -> list[Command]:
        if self.state == "summarising":
            return self._continue(f"the history could not be summarised: {error}")
        if error.kind == "overflow" and self._may_compact:
            self.steps -= 1
            commands = self._summarise(then_ask=True)
            if commands:
                return commands
        return self._stop(Stop("failed", str(error)))

    def _stop(self, stop: Stop) -> list[Command]:
        self.state = "idle"
        self._calls, self._results = {}, {}
        return [*self._questions.drop(), stop]

    # Compaction

    def _compaction_wanted(self) -> list[Command]:
        if self.state != "idle":
            return [Remark("still busy; interrupt first")]
        return self._summarise(then_ask=False) or self._stop(
            Stop("done", "there is nothing to summarise yet")
        )

    def _summarise(self, *, then_ask: bool) -> list[Command]:
        """Start a summary; return no commands if no part of the history is old enough."""
        self._may_compact = False  # once per turn: a second summary would not help
        self._cut = compaction.find_cut(self.history, self.context_tokens)
        if self._cut is None:
            return []
        self._then_ask = then_ask
        request = compaction.summary_request(self.template, self._cut.old, self.context_tokens)
        ask = Ask(self._asks + 1, request, "summary")
        return [Remark("summarising the conversation"), *self._begin_ask("summarising", ask)]

    def _summarised(self, response: ir.Response) -> list[Command]:
        summary = "".join(part.text for part in response.parts if isinstance(part, Text))
        if self._cut is None or not summary.strip():
            return self._continue("the model gave no summary; the history stays as it is")
        before = len(self.history)
        saved = self.replace_history(compaction.compacted(self._cut, summary))
        return [saved, *self._continue(f"{before} messages became {len(self.history)}")]

    def _continue(self, remark: str) -> list[Command]:
        return [Remark(remark), *(self._ask() if self._then_ask else self._stop(Stop("done")))]

    def _add(self, message: Message) -> list[Command]:
        self.history = (*self.history, message)
        return [Save((message,))]
