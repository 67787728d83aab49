"""Builders for agent tests: requests, answers of a model, and a person who says things."""

from __future__ import annotations

from dragoman import ir
from dragoman.agent.events import Command, ModelEvent, RunTools, SendRequest, ToolFinished
from dragoman.agent.limits import AgentLimits
from dragoman.agent.machine import AgentMachine
from dragoman.errors import DragomanError
from dragoman.ir import Message, Text, ToolCall, ToolResult

TEMPLATE = ir.Request(model="gemini-test", messages=(), tools=(ir.Tool(name="look"),), stream=True)
CONTEXT = 100_000


def machine(*history: Message, context: int = CONTEXT, **limits: float) -> AgentMachine:
    wanted = AgentLimits(**limits)  # type: ignore[arg-type]
    return AgentMachine(TEMPLATE, context_tokens=context, limits=wanted, history=history)


def call(id_: str = "c1", name: str = "look", args: bytes = b"{}") -> ToolCall:
    return ToolCall(id=id_, name=name, args=args, signature=ir.Signature(f"sig-{id_}", "gemini-g3"))


def result(id_: str = "c1", text: str = "seen", *, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id=id_, content=(Text(text=text),), is_error=is_error)


def user(text: str = "hello") -> Message:
    return Message(role="user", parts=(Text(text=text),))


def model(*parts: ir.Part) -> Message:
    return Message(role="model", parts=parts)


def results(*parts: ToolResult) -> Message:
    return Message(role="user", parts=parts)


def answer(
    *parts: str | ToolCall,
    reason: ir.StopReason = "end",
    raw: str = "STOP",
    usage: ir.Usage | None = None,
    name: str = "gemini-2.5-flash",
) -> list[ir.Event]:
    """The events of an answer, in their legal order."""
    said = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    response = ir.Response(
        parts=said,
        model=name,
        usage=usage or ir.Usage(input_tokens=100, output_tokens=10),
        finished=ir.Finished(reason=reason, raw=raw),
    )
    return list(ir.replay(response))


def hear(machine: AgentMachine, ask: SendRequest, events: list[ir.Event]) -> list[Command]:
    return [command for event in events for command in machine.handle(ModelEvent(ask.number, event))]


def fail(kind: str = "overloaded") -> list[ir.Event]:
    return [ir.Failed(DragomanError("it broke", kind=kind))]  # type: ignore[arg-type]


def asked(commands: list[Command]) -> SendRequest:
    (found,) = [command for command in commands if isinstance(command, SendRequest)]
    return found


def finish(machine: AgentMachine, commands: list[Command], text: str = "seen") -> list[Command]:
    """Every call that was to be run is finished with this text."""
    calls = [call for command in commands if isinstance(command, RunTools) for call in command.calls]
    return [done for one in calls for done in machine.handle(ToolFinished(result(one.id, text)))]
