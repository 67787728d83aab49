"""The model itself: choose the next step for a request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.emulator.arguments.fill import fill_arguments
from dragoman.emulator.model.builtin import Code, asks_to_look_up, find_urls, write_code
from dragoman.emulator.model.choose import find_by_name, rank
from dragoman.emulator.model.directives import Plan, Step, read_plan
from dragoman.emulator.model.wishes import read_wishes
from dragoman.emulator.model.wording import (
    echo,
    is_failure,
    missing_tools,
    quote,
    report,
    say_result,
    shorten,
    write_json,
)
from dragoman.emulator.turn import Tools, Turn, read_tools, read_turn

#: Clients declare their tools even when they only ask for a summary.
_FORBIDS_TOOLS = re.compile(r"\bdo not (?:call|use) any tools\b", re.IGNORECASE)


class Call(msgspec.Struct, frozen=True):
    """A function call."""

    name: str
    args: Mapping[str, Any]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The output of the model: a thought, results of Google's own tools, text, and calls, in this order.

    `search` is the search query, `urls` are the pages that were read, `code` is the program that was run, and
    `cites` are the cited sources.
    """

    thought: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    search: str = ""
    urls: tuple[str, ...] = ()
    code: Code | None = None
    cites: tuple[str, ...] = ()


def respond(request: Mapping[str, Any]) -> Reply:
    """Return the model's reply to a valid request; the same request always gets the same reply."""
    turn = read_turn(request.get("contents", ()))
    tools = read_tools(request)
    plan = read_plan(turn.words)
    thought = plan.think or f"**Considering the request**\n\nThe user wrote: {shorten(turn.words, 120)}"
    calls, text = _act(turn, tools, plan)
    if tools.forced and not calls:
        calls = (_forced_call(turn, tools),)
    looked = _look(turn, tools, answering=not calls)
    if calls:
        return msgspec.structs.replace(looked, thought=thought, text=text, calls=calls)
    text = _say(request, turn, plan, text, looked.code)
    return msgspec.structs.replace(looked, thought=thought, text=text, cites=plan.cites)


def _look(turn: Turn, tools: Tools, *, answering: bool) -> Reply:
    """Use Google's own tools, at most once per turn.

    They run before function calls, and a search runs next to declared functions, only if the text asks for
    it.
    """
    words = turn.words
    asked = asks_to_look_up(words)
    if turn.looked or turn.results or not (answering or asked):
        return Reply(thought="")
    return Reply(
        thought="",
        search=shorten(words, 120) if tools.search and (asked or not tools.declared) else "",
        urls=find_urls(words) if tools.urls else (),
        code=write_code(words) if tools.code and answering else None,
    )


def _act(turn: Turn, tools: Tools, plan: Plan) -> tuple[tuple[Call, ...], str]:
    """Return the calls of the next step, and the text before them or the reason why there are none."""
    if plan.steps:
        if turn.steps < len(plan.steps):
            return _follow(plan.steps[turn.steps], tools)
        return (), ""
    if plan.say is not None or not turn.words.strip() or _FORBIDS_TOOLS.search(turn.words):
        return (), ""
    return _next_calls(turn, tools), ""


def _next_calls(turn: Turn, tools: Tools) -> tuple[Call, ...]:
    """Return the next calls that the prose asks for; a failed result ends the plan."""
    steps = read_wishes(turn.words, tools.functions)
    if turn.steps >= len(steps) or any(map(is_failure, turn.results)):
        return ()
    earlier = "\n".join(map(quote, turn.latest)) if turn.latest else None
    filled = [(wish.function.name, wish.arguments(earlier)) for wish in steps[turn.steps]]
    return tuple(Call(name, args) for name, args in filled if args is not None)


def _follow(step: Step, tools: Tools) -> tuple[tuple[Call, ...], str]:
    found = [(use, find_by_name(use.name, tools.functions)) for use in step.uses]
    calls = tuple(Call(function.name, use.args) for use, function in found if function is not None)
    absent = [use.name for use, function in found if function is None]
    lines = [step.text, missing_tools(absent, tools) if absent else ""]
    return calls, "\n".join(line for line in lines if line)


def _forced_call(turn: Turn, tools: Tools) -> Call:
    function = rank(turn.words, tools.functions)[0][1]
    return Call(function.name, fill_arguments(function.schema, turn.words))


def _say(request: Mapping[str, Any], turn: Turn, plan: Plan, explanation: str, code: Code | None) -> str:
    config = request.get("generationConfig", {})
    answer = explanation or plan.say
    if answer is None:
        default = say_result(code) if code is not None else echo(turn)
        answer = report(turn.results) if turn.results else default
    return write_json(config, turn, answer)
