"""The model itself: choose the next step for a request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.emulator.arguments.fill import fill_arguments
from dragoman.emulator.model.builtin import CodeExecution, asks_for_search, find_urls, write_code
from dragoman.emulator.model.choose import find_by_name, rank_functions
from dragoman.emulator.model.directives import DirectivePlan, DirectiveStep, read_directives
from dragoman.emulator.model.wishes import read_intents
from dragoman.emulator.model.wording import (
    echo_turn,
    explain_missing_tools,
    format_answer,
    is_failure,
    report_code_output,
    report_results,
    result_text,
    shorten,
)
from dragoman.emulator.turn import CurrentTurn, RequestTools, read_tools, read_turn

#: Clients declare their tools even when they only ask for a summary.
_FORBIDS_TOOLS = re.compile(r"\bdo not (?:call|use) any tools\b", re.IGNORECASE)


class ModelCall(msgspec.Struct, frozen=True):
    """A function call."""

    name: str
    args: Mapping[str, Any]


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """The output of the model: a thought, results of Google's own tools, text, and calls, in this order.

    `search` is the search query, `urls` are the pages that were read, `code` is the program that was run, and
    `cites` are the cited sources.
    """

    thought: str
    text: str = ""
    calls: tuple[ModelCall, ...] = ()
    search_query: str = ""
    urls: tuple[str, ...] = ()
    code: CodeExecution | None = None
    cited_urls: tuple[str, ...] = ()


def generate_reply(request: Mapping[str, Any]) -> ModelReply:
    """Return the model's reply to a valid request; the same request always gets the same reply."""
    turn = read_turn(request.get("contents", ()))
    tools = read_tools(request)
    plan = read_directives(turn.user_text)
    thought = plan.think or f"**Considering the request**\n\nThe user wrote: {shorten(turn.user_text, 120)}"
    calls, text = _choose_calls(turn, tools, plan)
    if tools.call_required and not calls:
        calls = (_forced_call(turn, tools),)
    looked = _use_google_tools(turn, tools, answering=not calls)
    if calls:
        return msgspec.structs.replace(looked, thought=thought, text=text, calls=calls)
    text = _write_text(request, turn, plan, text, looked.code)
    return msgspec.structs.replace(looked, thought=thought, text=text, cited_urls=plan.cited_urls)


def _use_google_tools(turn: CurrentTurn, tools: RequestTools, *, answering: bool) -> ModelReply:
    """Use Google's own tools, at most once per turn.

    They run before function calls, and a search runs next to declared functions, only if the text asks for
    it.
    """
    words = turn.user_text
    asked = asks_for_search(words)
    if turn.used_builtin_tool or turn.results or not (answering or asked):
        return ModelReply(thought="")
    return ModelReply(
        thought="",
        search_query=shorten(words, 120)
        if tools.google_search and (asked or not tools.declared_functions)
        else "",
        urls=find_urls(words) if tools.url_context else (),
        code=write_code(words) if tools.code_execution and answering else None,
    )


def _choose_calls(
    turn: CurrentTurn, tools: RequestTools, plan: DirectivePlan
) -> tuple[tuple[ModelCall, ...], str]:
    """Return the calls of the next step, and the text before them or the reason why there are none."""
    if plan.steps:
        if turn.finished_steps < len(plan.steps):
            return _follow_directives(plan.steps[turn.finished_steps], tools)
        return (), ""
    if plan.say is not None or not turn.user_text.strip() or _FORBIDS_TOOLS.search(turn.user_text):
        return (), ""
    return _next_calls(turn, tools), ""


def _next_calls(turn: CurrentTurn, tools: RequestTools) -> tuple[ModelCall, ...]:
    """Return the next calls that the prose asks for; a failed result ends the plan."""
    steps = read_intents(turn.user_text, tools.callable_functions)
    if turn.finished_steps >= len(steps) or any(map(is_failure, turn.results)):
        return ()
    earlier = "\n".join(map(result_text, turn.last_results)) if turn.last_results else None
    filled = [(wish.function.name, wish.arguments(earlier)) for wish in steps[turn.finished_steps]]
    return tuple(ModelCall(name, args) for name, args in filled if args is not None)


def _follow_directives(step: DirectiveStep, tools: RequestTools) -> tuple[tuple[ModelCall, ...], str]:
    found = [(use, find_by_name(use.name, tools.callable_functions)) for use in step.calls]
    calls = tuple(ModelCall(function.name, use.args) for use, function in found if function is not None)
    absent = [use.name for use, function in found if function is None]
    lines = [step.text, explain_missing_tools(absent, tools) if absent else ""]
    return calls, "\n".join(line for line in lines if line)


def _forced_call(turn: CurrentTurn, tools: RequestTools) -> ModelCall:
    function = rank_functions(turn.user_text, tools.callable_functions)[0][1]
    return ModelCall(function.name, fill_arguments(function.schema, turn.user_text))


def _write_text(
    request: Mapping[str, Any],
    turn: CurrentTurn,
    plan: DirectivePlan,
    explanation: str,
    code: CodeExecution | None,
) -> str:
    config = request.get("generationConfig", {})
    answer = explanation or plan.say
    if answer is None:
        default = report_code_output(code) if code is not None else echo_turn(turn)
        answer = report_results(turn.results) if turn.results else default
    return format_answer(config, turn, answer)
