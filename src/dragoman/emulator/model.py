"""The deterministic model: it reads the conversation, uses the declared tools, and reports their results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.emulator.choose import find_by_name, find_by_words, rank
from dragoman.emulator.directives import Plan, Step, read_plan
from dragoman.emulator.fill import fill_arguments
from dragoman.emulator.turn import Function, Tools, Turn, read_tools, read_turn
from dragoman.emulator.wording import echo, missing_tools, report, shorten, write_json

#: Clients that ask for a summary declare their tools all the same.
_FORBIDS_TOOLS = re.compile(r"\bdo not (?:call|use) any tools\b", re.IGNORECASE)


class Call(msgspec.Struct, frozen=True):
    """A function the model wants called."""

    name: str
    args: Mapping[str, Any]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the model says: a thought, then text, then calls; `search` is what it looked up."""

    thought: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    search: str = ""


def respond(request: Mapping[str, Any]) -> Reply:
    """The model's next step for a valid request; the same request always gets the same one."""
    turn = read_turn(request.get("contents", ()))
    tools = read_tools(request)
    plan = read_plan(turn.words)
    thought = plan.think or f"**Considering the request**\n\nThe user wrote: {shorten(turn.words, 120)}"
    calls, text = _act(turn, tools, plan)
    if tools.forced and not calls:
        calls = (_forced_call(turn, tools),)
    if calls:
        return Reply(thought=thought, text=text, calls=calls)
    search = shorten(turn.words, 120) if tools.search else ""
    return Reply(thought=thought, text=_say(request, turn, plan, text), search=search)


def _act(turn: Turn, tools: Tools, plan: Plan) -> tuple[tuple[Call, ...], str]:
    """The calls of the next step, and the text that goes with them or explains why there are none."""
    if plan.steps:
        if turn.steps < len(plan.steps):
            return _follow(plan.steps[turn.steps], tools)
        return (), ""
    if plan.say is not None or turn.steps or not turn.words.strip() or _FORBIDS_TOOLS.search(turn.words):
        return (), ""
    chosen = find_by_words(turn.words, tools.functions)
    return ((_filled(chosen, turn.words),) if chosen is not None else (), "")


def _follow(step: Step, tools: Tools) -> tuple[tuple[Call, ...], str]:
    found = [(use, find_by_name(use.name, tools.functions)) for use in step.uses]
    calls = tuple(Call(function.name, use.args) for use, function in found if function is not None)
    absent = [use.name for use, function in found if function is None]
    lines = [step.text, missing_tools(absent, tools) if absent else ""]
    return calls, "\n".join(line for line in lines if line)


def _forced_call(turn: Turn, tools: Tools) -> Call:
    return _filled(rank(turn.words, tools.functions)[0][1], turn.words)


def _filled(function: Function, words: str) -> Call:
    return Call(function.name, fill_arguments(function.schema, words))


def _say(request: Mapping[str, Any], turn: Turn, plan: Plan, explanation: str) -> str:
    config = request.get("generationConfig", {})
    answer = explanation or plan.say
    if answer is None:
        answer = report(turn.results) if turn.results else echo(turn)
    return write_json(config, turn, answer)
