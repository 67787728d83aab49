"""The agent's loop as a state machine without I/O: events in, commands out.

    session = (turn | compaction)*
    turn    = UserMessage step* TurnEnd
    step    = [summary] SendRequest ModelEvent* [RunTools (ToolFinished | approval)*]
    approval = ApprovalRequested AskApproval ApprovalAnswered ResolveApproval     one question at a time
    summary = SendRequest("summary") ModelEvent*                         when the context window fills up
    compaction = CompactionRequested summary TurnEnd

Invariants between two events:
- before the next request, every call in the history has exactly one result directly after it;
- everything shown and saved is in the history, and a turn always ends with a history that Google accepts;
- `InterruptRequested` and `LimitReached` end any turn with `CancelTasks`; later events are ignored.
"""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec

from dragoman import ir
from dragoman.agent import compaction
from dragoman.agent.events import (
    ApprovalAnswer,
    ApprovalAnswered,
    ApprovalQuestion,
    ApprovalRequested,
    AskApproval,
    CancelTasks,
    Command,
    CompactionRequested,
    EndReason,
    Event,
    InterruptRequested,
    LimitReached,
    ModelEvent,
    ResolveApproval,
    RunTools,
    SaveHistory,
    SendRequest,
    ShowCall,
    ShowNotice,
    ShowResult,
    ShowText,
    ShowThought,
    ToolFinished,
    TurnEnd,
    UserMessage,
)
from dragoman.agent.history import (
    ANSWER_INTERRUPTED,
    CALL_INTERRUPTED,
    CALL_NOT_RUN,
    REPEATED_CALL,
    add_missing_results,
    error_result,
    program_message,
    user_message,
)
from dragoman.agent.limits import AgentLimits, SessionUsage, exceeded_limit
from dragoman.errors import DragomanError
from dragoman.ir import Message, Text, ToolCall, ToolResult
from dragoman.translation.token_estimate import estimate_tokens
from dragoman.translation.tool_loop import LoopDetector


class ApprovalQueue:
    """Queues questions; each method returns the commands to perform: ask the next question, deliver answers."""

    def __init__(self) -> None:
        self._waiting: list[ApprovalQuestion] = []

    def add(self, question: ApprovalQuestion) -> list[Command]:
        self._waiting.append(question)
        return [AskApproval(question)] if len(self._waiting) == 1 else []

    def answer(self, question_id: str, answer: ApprovalAnswer) -> list[Command]:
        """Settle the current question and ask the next.

        `always` and `never` also settle all waiting questions with the same tool and subject.
        """
        if not self._waiting or self._waiting[0].id != question_id:
            return []
        asked, *rest = self._waiting
        lasting = answer in ("always", "never")
        same = [one for one in rest if lasting and (one.tool, one.subject) == (asked.tool, asked.subject)]
        self._waiting = [one for one in rest if one not in same]
        following = [AskApproval(self._waiting[0])] if self._waiting else []
        return [*(ResolveApproval(one.id, answer) for one in (asked, *same)), *following]

    def reject_all(self) -> list[Command]:
        """Answer all waiting questions with `no`."""
        settled: list[Command] = [ResolveApproval(one.id, "no") for one in self._waiting]
        self._waiting = []
        return settled


#: Stop reasons after which the calls of a response are complete.
_COMPLETE_REASONS: frozenset[ir.StopReason] = frozenset({"end", "tool_calls"})
#: How a response without calls ends the turn, by its stop reason.
_END_REASONS: dict[ir.StopReason, EndReason] = {
    "end": "done",
    "tool_calls": "done",
    "max_tokens": "cut",
    "blocked": "blocked",
    "malformed": "failed",
    "other": "failed",
}


class AgentMachine:
    """`handle` takes one event and returns the commands to perform, in order.

    `template` is a request without messages (model, instructions, tools); `history` may come from a saved session.
    """

    def __init__(
        self,
        template: ir.Request,
        *,
        context_tokens: int,
        limits: AgentLimits | None = None,
        history: tuple[Message, ...] = (),
        usage: SessionUsage | None = None,
    ) -> None:
        self.template = template
        self.limits = limits or AgentLimits()
        self.history = add_missing_results(history)
        self.usage = usage or SessionUsage()
        self.state: Literal["idle", "asking", "running", "summarising"] = "idle"
        self.steps = 0
        self.context_tokens = context_tokens
        self._known_tokens = 0  # reported for the last request and its response
        self._request_number = 0
        self._answer = ir.Collector()
        self._text: list[str] = []
        self._calls: dict[str, ToolCall] = {}
        self._results: dict[str, ToolResult] = {}
        self._questions = ApprovalQueue()
        self._loop_detector = LoopDetector()
        self._cut: compaction.HistoryCut | None = None
        self._continue_turn = False
        self._may_compact = True

    def handle(self, event: Event) -> list[Command]:
        match event:
            case UserMessage():
                return self._on_user_message(event.text)
            case ModelEvent():
                return (
                    self._on_model_event(event.event) if event.request_number == self._request_number else []
                )
            case ToolFinished():
                return self._on_tool_finished(event)
            case ApprovalRequested():
                return self._on_approval_requested(event.question)
            case ApprovalAnswered():
                return self._questions.answer(event.question_id, event.answer)
            case LimitReached():
                return self._end_early(TurnEnd("time", event.detail))
            case InterruptRequested():
                return self._end_early(TurnEnd("interrupted"))
            case CompactionRequested():
                return self._on_compaction_requested()
            case _:
                assert_never(event)

    def set_model(self, model: str, context_tokens: int) -> None:
        """Use another model, with its context window, from the next request on."""
        self.template = msgspec.structs.replace(self.template, model=model)
        self.context_tokens = context_tokens

    def replace_history(self, history: tuple[Message, ...]) -> SaveHistory:
        """Replace the history, for example after an undo or a compaction; return the command to save it."""
        self.history = add_missing_results(history)
        self._known_tokens = 0
        return SaveHistory(self.history, replace=True)

    # One step: request, response, tool calls

    def _on_user_message(self, text: str) -> list[Command]:
        if self.state != "idle":
            return [ShowNotice("a turn is running; interrupt it first")]
        self.steps = 0
        self._loop_detector = LoopDetector()
        self._may_compact = True
        return [*self._add(user_message(text)), *self._next_request()]

    def _next_request(self) -> list[Command]:
        exceeded = exceeded_limit(self.limits, self.usage, self.steps)
        if exceeded is not None:
            return self._stop(exceeded)
        request = msgspec.structs.replace(self.template, messages=self.history)
        size = max(estimate_tokens(request), self._known_tokens)
        if self._may_compact and size > self.context_tokens * self.limits.compact_at:
            commands = self._summarise(continue_turn=True)
            if commands:
                return commands
        self.steps += 1
        return self._send_request("asking", SendRequest(self._request_number + 1, request))

    def _send_request(self, state: Literal["asking", "summarising"], command: SendRequest) -> list[Command]:
        self.state = state
        self._request_number = command.number
        self._answer = ir.Collector()
        self._text = []
        return [command]

    def _on_model_event(self, event: ir.Event) -> list[Command]:
        if self.state not in ("asking", "summarising"):
            return []
        self._answer.feed(event)
        if isinstance(event, ir.Finished):
            response = self._answer.close()
            self.usage = self.usage.plus(response.usage, response.model or self.template.model)
            return self._on_response(response) if self.state == "asking" else self._on_summary(response)
        if isinstance(event, ir.Failed):
            return self._on_failure(event.error)
        if self.state == "asking" and isinstance(event, ir.TextDelta):
            self._text.append(event.text)
            return [ShowText(event.text)]
        if self.state == "asking" and isinstance(event, ir.ThoughtDelta):
            return [ShowThought(event.text)]
        return []

    def _on_response(self, response: ir.Response) -> list[Command]:
        self._known_tokens = response.usage.input_tokens + response.usage.output_tokens
        finished = response.finished
        calls = tuple(part for part in response.parts if isinstance(part, ToolCall))
        if not calls:
            saved = self._add(Message(role="model", parts=response.parts)) if response.parts else []
            empty = not response.parts and finished.reason in _COMPLETE_REASONS
            reason = "failed" if empty else _END_REASONS[finished.reason]
            detail = "the model returned an empty response" if empty else finished.detail or finished.raw
            return [*saved, *self._stop(TurnEnd(reason, "" if reason == "done" else detail))]
        saved = self._add(Message(role="model", parts=response.parts))
        self._calls = {call.id: call for call in calls}
        self._results = {}
        if finished.reason in _COMPLETE_REASONS:
            self.state = "running"
            return [*saved, *map(ShowCall, calls), RunTools(calls)]
        why = CALL_NOT_RUN.format(raw=finished.raw or finished.reason)
        return [*saved, *self._add(self._all_results(why)), *self._next_request()]

    def _on_tool_finished(self, event: ToolFinished) -> list[Command]:
        call = self._calls.get(event.result.call_id)
        if self.state != "running" or call is None or call.id in self._results:
            return []
        result = msgspec.structs.replace(event.result, name=call.name)
        self._results[call.id] = result
        commands: list[Command] = [ShowResult(call, result, event.seconds)]
        if len(self._results) < len(self._calls):
            return commands
        return [*commands, *self._add(self._all_results("")), *self._after_results()]

    def _after_results(self) -> list[Command]:
        counted = [
            (self._loop_detector.count(call, self._results[id_]), call) for id_, call in self._calls.items()
        ]
        times, call = max(counted, key=lambda pair: pair[0])
        if times >= self.limits.stop_after_repeats:
            return self._stop(
                TurnEnd("loop", f"{call.name} was called {times} times with the same arguments")
            )
        warning: list[Command] = []
        if times >= self.limits.warn_after_repeats:
            text = REPEATED_CALL.format(name=call.name, times=times)
            warning = self._add(program_message(text))
        return [*warning, *self._next_request()]

    def _all_results(self, missing_text: str) -> Message:
        """Return the results of this step in call order; a call without a result gets the error `otherwise`."""
        results = (
            self._results.get(id_) or error_result(call, missing_text) for id_, call in self._calls.items()
        )
        return Message(role="user", parts=tuple(results))

    def _on_approval_requested(self, question: ApprovalQuestion) -> list[Command]:
        return (
            self._questions.add(question) if self.state == "running" else [ResolveApproval(question.id, "no")]
        )

    # Ending a turn

    def _end_early(self, stop: TurnEnd) -> list[Command]:
        """End the turn with a valid history: text received so far stays, calls without results get an error."""
        if self.state == "idle":
            return []
        saved: list[Command] = []
        if self.state == "running":
            saved = self._add(self._all_results(CALL_INTERRUPTED))
        elif self.state == "asking":
            text = "".join(self._text)
            if text:
                saved = self._add(Message(role="model", parts=(Text(text=text),)))
            saved = [*saved, *self._add(program_message(ANSWER_INTERRUPTED))]
        return [CancelTasks(), *saved, *self._stop(stop)]

    def _on_failure(self, error: DragomanError) -> list[Command]:
        if self.state == "summarising":
            return self._continue(f"the history could not be summarised: {error}")
        if error.kind == "overflow" and self._may_compact:
            self.steps -= 1
            commands = self._summarise(continue_turn=True)
            if commands:
                return commands
        return self._stop(TurnEnd("failed", str(error)))

    def _stop(self, stop: TurnEnd) -> list[Command]:
        self.state = "idle"
        self._calls, self._results = {}, {}
        return [*self._questions.reject_all(), stop]

    # Compaction

    def _on_compaction_requested(self) -> list[Command]:
        if self.state != "idle":
            return [ShowNotice("a turn is running; interrupt it first")]
        return self._summarise(continue_turn=False) or self._stop(
            TurnEnd("done", "there is nothing to summarise yet")
        )

    def _summarise(self, *, continue_turn: bool) -> list[Command]:
        """Start a summary; return no commands if no part of the history is old enough."""
        self._may_compact = False  # once per turn: a second summary would not help
        self._cut = compaction.find_cut(self.history, self.context_tokens)
        if self._cut is None:
            return []
        self._continue_turn = continue_turn
        request = compaction.summary_request(self.template, self._cut.old, self.context_tokens)
        ask = SendRequest(self._request_number + 1, request, "summary")
        return [ShowNotice("summarising the conversation"), *self._send_request("summarising", ask)]

    def _on_summary(self, response: ir.Response) -> list[Command]:
        summary = "".join(part.text for part in response.parts if isinstance(part, Text))
        if self._cut is None or not summary.strip():
            return self._continue("the model returned no summary; the history is unchanged")
        before = len(self.history)
        saved = self.replace_history(compaction.compact_history(self._cut, summary))
        return [saved, *self._continue(f"{before} messages became {len(self.history)}")]

    def _continue(self, remark: str) -> list[Command]:
        return [
            ShowNotice(remark),
            *(self._next_request() if self._continue_turn else self._stop(TurnEnd("done"))),
        ]

    def _add(self, message: Message) -> list[Command]:
        self.history = (*self.history, message)
        return [SaveHistory((message,))]
